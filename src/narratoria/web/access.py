"""Access control of the server: only the person who started it, from its own page.

A loopback port is open to every program and, through a browser, to every web site. So each request must name a host
we serve (DNS rebinding), a browser's request must come from our own pages (CSRF), and everything but the page's own
code needs a sign-in: a cookie, for which the token in an address is exchanged, or that token as a program sends it
(`sign_ins.py`).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Collection, Mapping
from typing import Final, Protocol, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narratoria.errors import JournalError
from narratoria.web.refusals import refusal
from narratoria.web.sign_ins import THIRTY_DAYS, SignIn

T = TypeVar("T")

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:@/\\\[\]]+)(?::[0-9]{1,5})?")
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
OPEN_PATHS: Final = ("/static/", "/service-worker.js", "/healthz", "/readyz")
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
SIGN_IN: Final = "narratoria.sign_in"  # in the scope of a request that was let in
FORWARDED: Final = "narratoria.forwarded"
"""In the scope of a request that another server has let in and sent on; no client can set it."""
GRANT: Final = "narratoria.grant"
"""In the scope of a request about a session: the right of the caller to it, where callers differ."""
RETRY_SECONDS: Final = "2"

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; "
    # only `prose.js` turns a string into elements, only `worker.js` into a worker
    "require-trusted-types-for 'script'; trusted-types narration worker"
)
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the first address carries the token
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": PAGE_POLICY,
}
# Takes a page out of the hands of whoever opened it. It costs the browser a second process (a fifth of the time a page
# takes to come), so it is left out where nobody can have: an address that was typed, or a page of ours.
ISOLATED: Final = {"Cross-Origin-Opener-Policy": "same-origin"}
OPENED_BY_NOBODY: Final = frozenset({"none", "same-origin"})


class AccessPolicy(Protocol):
    """Decides who may come in. `SignIns` is that of one person's own machine, `Accounts` that of several servers.

    A policy that has to read something first returns an awaitable.
    """

    sign_in_path: str | None
    """The address where a browser signs in, if there is one."""
    texts: Mapping[str, str]
    """The words for refusals that are not those of one person's own machine."""
    secure: bool
    """Cookies go over TLS only."""

    def of_program(self, token: str) -> SignIn | Awaitable[SignIn | None] | None:
        """Return the sign-in of a program that sends this token with every request."""

    def of_browser(self, secret: str) -> SignIn | Awaitable[SignIn | None] | None:
        """Return the sign-in of a browser that has this cookie."""

    def exchange(self, token: str) -> str | Awaitable[str | None] | None:
        """Return the cookie for a token in an address; None for one that is not good."""

    def renewed(self, known: SignIn) -> str | None:
        """Return another cookie to use from now on."""

    def spend(self, token: str, *, by: SignIn) -> bool | Awaitable[bool]:
        """Use a token up that a signed-in browser has in its address; tell if it was good."""

    def new_token(self, *, of: SignIn) -> str | Awaitable[str]:
        """Return a token for another browser, asked for by one that is signed in."""

    def end(self, known: SignIn) -> Awaitable[None] | None:
        """Sign out."""

    def refuses(self, known: SignIn, scope: Scope) -> str | None:
        """Return the code of the refusal if this sign-in may not make this request. It may put what it knows of the
        caller into `scope[CALLER]` (`callers.py`), which goes along to another server.
        """


async def settled(answer: T | Awaitable[T]) -> T:
    """Return the answer of a policy, whether or not it had to read something first."""
    return await answer if isinstance(answer, Awaitable) else answer


class Access:
    """Lets a request through, or answers it with what is missing."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        sign_ins: AccessPolicy,
        cookie: str,
        hosts: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
        advice: str | None = None,
    ) -> None:
        """`headers` and `advice`, the words for whoever is not signed in, take the place of those of a page, in a
        server that has none.
        """
        self.advice = advice
        self.app = app
        self.headers = headers
        self.sign_ins = sign_ins
        self.cookie = cookie
        self.hosts = LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or FORWARDED in scope:
            await self.app(scope, receive, send)
            return
        refusal = await self._answer(scope)
        app = self.app if refusal is None else refusal
        if self.headers is None:
            alone = Headers(scope=scope).get("sec-fetch-site") in OPENED_BY_NOBODY
            added = dict(HEADERS if alone else HEADERS | ISOLATED)
        else:
            added = dict(self.headers)
        known: SignIn | None = scope.get(SIGN_IN)
        if refusal is None and known is not None and (secret := self.sign_ins.renewed(known)):
            added["Set-Cookie"] = set_cookie(self.cookie, secret, secure=self.sign_ins.secure)
        await app(scope, receive, _with_headers(send, added))

    async def _answer(self, scope: Scope) -> Response | None:
        try:
            return await self._refusal(scope)
        except JournalError:  # nobody can be known now
            answer = refusal(Headers(scope=scope), 503, "database")
            answer.headers["Retry-After"] = RETRY_SECONDS
            return answer

    async def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused, or None."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = _without_port(host)
        if name not in self.hosts and not _is_number(name):
            return refusal(headers, 421, "wrong_host", host=repr(host))
        if not self._is_own_page(scope["method"], headers, host):
            return refusal(headers, 403, "wrong_origin")
        sign_in = self.sign_ins.sign_in_path
        if scope["path"].startswith((*OPEN_PATHS, sign_in) if sign_in else OPEN_PATHS):
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if "token" in query and scope["method"] == "GET":
            return await self._exchange(scope, headers, query)
        known = scope[SIGN_IN] = await self._known(headers)
        if known is not None:
            code = self.sign_ins.refuses(known, scope)
            return None if code is None else refusal(headers, 403, code)
        return self._unknown(headers, "not_signed_in", scope["path"])

    def _unknown(self, headers: Headers, error: str, path: str) -> Response:
        sign_in = self.sign_ins.sign_in_path
        if sign_in is not None:
            sign_in = f"{sign_in}?{urlencode({'to': path})}"
        advice = self.advice if error == "not_signed_in" else None
        return refusal(headers, 401, error, advice, text=self.sign_ins.texts.get(error), sign_in=sign_in)

    def _is_own_page(self, method: str, headers: Headers, host: str) -> bool:
        """Tell if a request comes from our own page. Browsers name the origin; programs do not, and have no cookie to
        steal.
        """
        origin = headers.get("origin")
        if origin is not None and origin != "null":
            return _host_of(origin) == host
        site = headers.get("sec-fetch-site", "none")
        if origin == "null" or site not in {"same-origin", "none"}:
            return method in SAFE_METHODS and headers.get("sec-fetch-mode") == "navigate"
        return True

    async def _known(self, headers: Headers) -> SignIn | None:
        scheme, space, token = headers.get("authorization", "").partition(" ")
        if space and scheme.lower() == "bearer":  # RFC 9110 §11.1: case-insensitive
            return await settled(self.sign_ins.of_program(token.strip()))
        return await settled(self.sign_ins.of_browser(_cookie(headers.get("cookie", ""), self.cookie)))

    async def _exchange(self, scope: Scope, headers: Headers, query: dict[str, str]) -> Response:
        """Redirect to the same address without the token; a used token is no obstacle for a browser already signed
        in.
        """
        token = query.pop("token")
        secret = None
        known = await self._known(headers)
        if known is not None and not known.passing:
            await settled(self.sign_ins.spend(token, by=known))  # it stands in a history now
        else:
            joined = known is not None and await settled(self.sign_ins.spend(token, by=known))
            secret = None if joined else await settled(self.sign_ins.exchange(token))
            if secret is None and not joined:
                return self._unknown(headers, "wrong_token", scope["path"])
        rest = f"?{urlencode(query)}" if query else ""
        response = RedirectResponse(local_path(scope["path"]) + rest, status_code=303)
        if secret is not None:
            response.headers["Set-Cookie"] = set_cookie(self.cookie, secret, secure=self.sign_ins.secure)
        return response


def cookie_name(port: int) -> str:
    """Return the cookie's name, with the port: cookies know no ports, and two servers on one machine must not share
    one.
    """
    return f"narratoria-{port}"


def set_cookie(name: str, value: str, seconds: int = THIRTY_DAYS, *, secure: bool = False) -> str:
    return f"{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"


def signed_out(name: str) -> str:
    """Return the header that removes a cookie."""
    return set_cookie(name, "", 0)


def _host_of(origin: str) -> str | None:
    """Return the host and port of an origin; None for an invalid one, such as `http://[`."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_port(host: str) -> str:
    """Return the name or address of a `Host` header; "" for one that is not written as RFC 9110 says."""
    found = _HOST.fullmatch(host)
    return found[1] if found else ""


def _is_number(host: str) -> bool:
    """Tell if a host is an IP address: DNS rebinding needs a name."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def local_path(path: str) -> str:
    """Return a path of this server: `//elsewhere/` would be read as another host."""
    return "/" + path.lstrip("/\\")


def _cookie(header: str, name: str) -> str:
    for pair in header.split(";"):
        key, _, value = pair.partition("=")
        if key.strip() == name:
            return value.strip()
    return ""


def _with_headers(send: Send, added: Mapping[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
