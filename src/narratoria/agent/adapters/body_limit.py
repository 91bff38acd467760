"""A size limit on the bodies that model servers send."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2

from narratoria.agent.adapters.adapter import ModelFailed, ReplyTooLarge


class _BoundedStream(httpx2.AsyncByteStream):
    """A response's bytes, cut off at a limit, so that a huge reply never fills the memory."""

    def __init__(self, inner: httpx2.AsyncByteStream, limit: int, address: str) -> None:
        self._inner = inner
        self._limit = limit
        self._address = address

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for piece in self._inner:
            received += len(piece)
            if received > self._limit:
                raise ReplyTooLarge(f"{self._address}: cut off after {self._limit:,} bytes of reply")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def bound(limit: int) -> Callable[[httpx2.Response], Any]:
    """A hook that bounds every response."""

    async def at_limit(response: httpx2.Response) -> None:
        address = f"{response.url.scheme}://{response.url.netloc.decode()}"
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":  # a few compressed bytes can stand for gigabytes
            raise ModelFailed(f"{address}: the reply is {encoding!r}-encoded although none was accepted")
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - an async client's
        response.stream = _BoundedStream(response.stream, limit, address)

    return at_limit
