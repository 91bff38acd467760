"""The HTTP client for MCP servers: times are bounded, and so is the body of an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import httpx2

MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""Cap on one message of a server."""
TIMEOUT: Final = 30.0
READ_TIMEOUT: Final = 300.0  # between two pieces of an answer; the call's own limit is usually shorter


def http_client(
    headers: Mapping[str, str], on_refused: Callable[[int], None] = lambda status: None
) -> httpx2.AsyncClient:
    """Return a client that sends `headers` with each request, and gives up on an answer that is too long. `on_refused`
    gets the status of an answer that asks for a login.
    """

    async def look(response: httpx2.Response) -> None:
        if response.status_code in (401, 403):
            on_refused(response.status_code)
        await _bound(response)

    return httpx2.AsyncClient(
        headers=dict(headers),
        timeout=httpx2.Timeout(TIMEOUT, read=READ_TIMEOUT),
        event_hooks={"response": [look]},
    )


async def _bound(response: httpx2.Response) -> None:
    """Bound an answer that is one message; a stream of them is bounded event by event."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: object) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MESSAGE_BYTES
        async for piece in self._stream:  # type: ignore[attr-defined]  # the client's own is asynchronous
            left -= len(piece)
            if left < 0:
                raise httpx2.StreamError(f"an answer of more than {MESSAGE_BYTES:,} bytes")
            yield piece

    async def aclose(self) -> None:
        if isinstance(self._stream, httpx2.AsyncByteStream):
            await self._stream.aclose()
