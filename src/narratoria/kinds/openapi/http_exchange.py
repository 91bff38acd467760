"""One exchange with a server: the request, redirects on the same host, and an answer within bounds."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from narratoria.errors import EXECUTION_FAILED, OUTPUT_LIMIT, CallFailure
from narratoria.extras import needed
from narratoria.kinds.openapi.api_request import Request
from narratoria.kinds.redaction import shown_url

if TYPE_CHECKING:
    import httpx2

ANSWER_BYTES: Final = 32 * 1024 * 1024
"""Cap on an answer."""
MOST_REDIRECTS: Final = 5
CONNECT_TIMEOUT: Final = 10.0
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
LONGEST_WAIT: Final = 3600.0
"""Cap on the wait that a server's answer makes other calls wait."""


@dataclass(frozen=True)
class Answer:
    """The answer of a server."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes
    charset: str | None = None

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_rate_limit(self) -> bool:
        """Tell if the server asks for fewer requests. Some say so with a 403 and a count that is used up."""
        return self.status == 429 or (self.status == 403 and self._used_up)

    @property
    def _used_up(self) -> bool:
        names = ("x-ratelimit-remaining", "ratelimit-remaining", "x-rate-limit-remaining")
        return any(self.headers.get(name, "").strip() == "0" for name in names)

    def wait(self) -> float | None:
        """Return the seconds that the server wants us to wait, if it says so: `Retry-After`, or the time at which a
        used up limit is reset.
        """
        if (said := self.headers.get("retry-after", "").strip()) and (after := _seconds(said)) is not None:
            return after
        if self._used_up:
            for name in ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset"):
                if (after := _seconds(self.headers.get(name, "").strip())) is not None:
                    return after
        return None


def _seconds(said: str) -> float | None:
    """Read a number of seconds, a moment in seconds since 1970, or an HTTP date."""
    try:
        number = float(said)
    except ValueError:
        try:
            number = email.utils.parsedate_to_datetime(said).timestamp()
        except (ValueError, TypeError, OverflowError):
            return None
    if not math.isfinite(number):
        return None
    if number > 1_000_000_000:
        number -= time.time()
    return max(0.0, number)


def http_library() -> ModuleType:
    """Return the module `httpx2`; raise `CallFailure`, with the command that helps, if it is missing."""
    try:
        import httpx2
    except ImportError:
        raise CallFailure(
            EXECUTION_FAILED, f"a tool of an OpenAPI document {needed('openapi')}", recoverable=False
        ) from None
    return httpx2


def new_client() -> httpx2.AsyncClient:
    """Return a client. Redirects are followed by us; the time of a call bounds all its parts together."""
    library = http_library()
    client: httpx2.AsyncClient = library.AsyncClient(
        follow_redirects=False,
        timeout=library.Timeout(None, connect=CONNECT_TIMEOUT),
        headers={"User-Agent": "narratoria"},
    )
    return client


async def exchange(client: httpx2.AsyncClient | None, request: Request) -> Answer:
    """Send a request and return the answer, whatever its status. Raises `httpx2.HTTPError`, or `CallFailure`."""
    opened: AbstractAsyncContextManager[httpx2.AsyncClient] = (
        new_client() if client is None else nullcontext(client)
    )
    async with opened as one:
        url, method = request.url, request.method
        for _ in range(MOST_REDIRECTS + 1):
            answer = await _send(one, request, method, url)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or not location:
                return answer
            target = urljoin(url, location)
            if not _same_host(url, target):
                raise CallFailure(
                    EXECUTION_FAILED,
                    f"{shown_url(url)} redirects to {shown_url(target)}, another host, which is not followed",
                    recoverable=False,
                    details={"status": answer.status},
                )
            # RFC 9110, 15.4: only 307 and 308 keep the method and the body of a POST.
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method = "HEAD" if method == "HEAD" else "GET"
            url = target
    raise CallFailure(
        EXECUTION_FAILED, f"{shown_url(request.url)}: more than {MOST_REDIRECTS} redirects", recoverable=False
    )


async def _send(client: httpx2.AsyncClient, request: Request, method: str, url: str) -> Answer:
    with_body = method == request.method
    headers = {
        name: value for name, value in request.headers.items() if with_body or name.lower() != "content-type"
    }
    async with client.stream(
        method,
        url,
        headers={name: value.encode() for name, value in headers.items()},  # type: ignore[arg-type]  # bytes are taken too
        content=request.content if with_body else None,
        files=request.parts if with_body else None,
    ) as response:
        pieces, size = [], 0
        async for piece in response.aiter_bytes(65_536):
            size += len(piece)
            if size > ANSWER_BYTES:
                raise CallFailure(
                    OUTPUT_LIMIT,
                    f"{shown_url(url)}: an answer of more than {ANSWER_BYTES:,} bytes",
                    recoverable=False,
                )
            pieces.append(piece)
        return Answer(
            response.status_code,
            response.reason_phrase,
            {name.lower(): value for name, value in response.headers.items()},
            b"".join(pieces),
            response.charset_encoding,
        )


def _same_host(before: str, after: str) -> bool:
    """Tell if a redirect stays on the host and port; it may go from http to https, and not back."""
    old, new = urlsplit(before), urlsplit(after)
    try:
        ports = (old.port, new.port)
    except ValueError:
        return False
    if old.scheme == new.scheme:
        default = 443 if old.scheme == "https" else 80
        return old.hostname == new.hostname and (ports[0] or default) == (ports[1] or default)
    upgraded = (old.scheme, new.scheme) == ("http", "https")
    return upgraded and old.hostname == new.hostname and ports[0] in (None, 80) and ports[1] in (None, 443)
