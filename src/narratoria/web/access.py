"""Who may talk to this server: the person who started it, from a page of its own.

A loopback port is open to every program and, through a browser, to every web site. So each request must name
a host we serve (DNS rebinding), a browser's request must come from our own pages (CSRF), and everything but
the page's own code needs a cookie. The token in the printed address is made anew at each start and exchanged
for that cookie; the key behind the cookie is kept, so that an open page goes on after a restart.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import secrets
from collections.abc import Collection, Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narratoria.web.refusals import refusal

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
OPEN_PATHS: Final = ("/static/",)
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
THIRTY_DAYS: Final = 30 * 24 * 3600

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types narration"  # only `prose.js` turns a string into elements
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


def load_key(path: Path) -> bytes:
    """The key cookies are made with: kept in a file only its owner may read, made on first use."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        key = secrets.token_bytes(32)
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        try:
            os.link(fresh, path)  # of two servers that start at once, one makes the key
        except FileExistsError:
            key = path.read_bytes()
        finally:
            fresh.unlink()
    return key


class Access:
    """Lets a request through, or answers it with what is missing."""

    def __init__(
        self, app: ASGIApp, *, token: str, key: bytes, port: int, hosts: Collection[str] = ()
    ) -> None:
        self.app = app
        self.token = token
        self.hosts = LOOPBACK | {host.lower() for host in hosts}
        # Cookies know no ports: two servers on one machine must not overwrite each other's.
        self.cookie_name = f"narratoria-{port}"
        self.cookie = hmac.new(key, b"narratoria web cookie", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        app = self.app if refusal is None else refusal
        alone = Headers(scope=scope).get("sec-fetch-site") in OPENED_BY_NOBODY
        await app(scope, receive, _with_headers(send, HEADERS if alone else HEADERS | ISOLATED))

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that may not pass, or None."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = _without_port(host)
        if name not in self.hosts and not _is_number(name):
            return refusal(
                headers, 421, "wrong_host", f"{host!r} is not served here; open the address that was printed"
            )
        if not self._is_own_page(scope["method"], headers, host):
            return refusal(headers, 403, "wrong_origin", "another web site may not use this server")
        if scope["path"].startswith(OPEN_PATHS):
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if "token" in query and scope["method"] == "GET":
            return self._exchange(scope, headers, query)
        if self._is_known(headers):
            return None
        answer = "Not signed in. Open the address that `narratoria play` printed: it carries the key."
        return refusal(headers, 401, "not_signed_in", answer)

    def _is_own_page(self, method: str, headers: Headers, host: str) -> bool:
        """Browsers say where a request comes from; programs do not, and have no cookie to steal."""
        origin = headers.get("origin")
        if origin is not None and origin != "null":
            return _host_of(origin) == host
        site = headers.get("sec-fetch-site", "none")
        if origin == "null" or site not in {"same-origin", "none"}:
            return method in SAFE_METHODS and headers.get("sec-fetch-mode") == "navigate"
        return True

    def _is_known(self, headers: Headers) -> bool:
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer ") and _same(bearer.removeprefix("Bearer "), self.token):
            return True
        return _same(_cookie(headers.get("cookie", ""), self.cookie_name), self.cookie)

    def _exchange(self, scope: Scope, headers: Headers, query: dict[str, str]) -> Response:
        """To the same address without the token, which an old one does not hinder for someone already known."""
        if not _same(query.pop("token"), self.token) and not self._is_known(headers):
            answer = (
                "This address is from an earlier start. Open the one that `narratoria play` printed last."
            )
            return refusal(headers, 401, "wrong_token", answer)
        rest = f"?{urlencode(query)}" if query else ""
        response = RedirectResponse(_local_path(scope["path"]) + rest, status_code=303)
        response.set_cookie(
            self.cookie_name, self.cookie, max_age=THIRTY_DAYS, httponly=True, samesite="lax", path="/"
        )
        return response


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _host_of(origin: str) -> str | None:
    """The host and port of an origin; None for what is none, such as `http://[`."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _is_number(host: str) -> bool:
    """Rebinding needs a name; a browser that was given our number talks to us and knows it."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _local_path(path: str) -> str:
    """`//elsewhere/` would be read as another host."""
    return "/" + path.lstrip("/\\")


def _cookie(header: str, name: str) -> str:
    try:
        morsel = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _with_headers(send: Send, added: Mapping[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
