"""The answer of a node on its way: parts are sent in batches, and a process that is too fast has to wait.

The loop of the node puts parts in; the thread that Ray gave the call takes batches out and hands them to Ray, which
holds it up while the coordinator is behind.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Final

from narratoria.kinds.remote.wire import Part, pack_parts

ROOM_BYTES: Final = 4 * 1024 * 1024
"""Bytes that may wait here before the process has to."""
POLL_SECONDS: Final = 0.05
"""Time in which the thread notices that Ray has interrupted it, which does not end a wait by itself."""
_DONE_SECONDS: Final = 0.02


class Outbox:
    """The parts that are not sent yet."""

    def __init__(self, batch_seconds: float, batch_bytes: int) -> None:
        self._changed = threading.Condition()
        self._parts: list[Part] = []
        self._bytes = 0
        self._seconds, self._full = batch_seconds, batch_bytes
        self._last = time.monotonic()
        self._due = 0.0
        self._closed = False
        self._room: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, part: Part, size: int, *, ending: bool = False) -> None:
        """Add a part. The first after a silence is sent at once; `ending` if the end of the process is near."""
        with self._changed:
            if not self._parts:
                now = time.monotonic()
                self._due = max(now, self._last + self._seconds)
                if ending:
                    self._due = max(self._due, now + min(_DONE_SECONDS, self._seconds))
            self._parts.append(part)
            self._bytes += size
            self._changed.notify()

    @property
    def crowded(self) -> bool:
        """True while a process has to wait."""
        return self._bytes >= ROOM_BYTES

    async def drained(self) -> None:
        """Wait until there is room."""
        while (room := self._wanted_room()) is not None:
            await room

    def _wanted_room(self) -> asyncio.Future[None] | None:
        with self._changed:
            if not self.crowded:
                return None
            self._loop = asyncio.get_running_loop()
            self._room = self._loop.create_future()
            return self._room

    def close(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self) -> bytes | None:
        """Wait for the next batch; None after the last."""
        with self._changed:
            while not self._ready():
                if self._closed and not self._parts:
                    return None
                wait = self._due - time.monotonic() if self._parts else POLL_SECONDS
                self._changed.wait(min(max(wait, 0.0005), POLL_SECONDS))
            parts, self._parts, self._bytes = self._parts, [], 0
            self._last = time.monotonic()
            room, self._room = self._room, None
        if room is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(_let_in, room)
        return pack_parts(parts)

    def _ready(self) -> bool:
        if not self._parts:
            return False
        return self._closed or self._bytes >= self._full or time.monotonic() >= self._due


def _let_in(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)
