"""A session's records on their way to viewers: encoded once, sent together, never in a turn's way.

Records are gathered for about 30 ms and go out as one server-sent event whose bytes all viewers share. Nobody
waits for a viewer that does not keep up: its queue is thrown away and it gets the story again, condensed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from narratoria.events import CallEmitted, Log, Narration, NarrationDelta
from narratoria.session import Record

GATHER_SECONDS: Final = 0.03
# Writing to a socket is what costs: many viewers are served less often.
GATHER_SECONDS_PER_VIEWER: Final = 0.001
QUEUE_CHUNKS: Final = 256
QUEUE_BYTES: Final = 8 * 1024 * 1024
TAIL_RECORDS: Final = 200_000
CHUNK_RECORDS: Final = 2_000
SNAPSHOT_LOG_LINES: Final = 1_000
KEEP_ALIVE_SECONDS: Final = 15.0

encode: Final = msgspec.json.Encoder().encode
KEEP_ALIVE: Final = b": still here\n\n"

ReadPast = Callable[[int, int], Iterable[Record]]
"""Records after the first number and before the second, from the journal."""


def no_past(after: int, before: int) -> Iterable[Record]:
    return ()


class Viewer:
    """One connection's queue."""

    def __init__(self) -> None:
        self.chunks: deque[bytes] = deque()
        self.size = 0
        self.lost = False
        self.ready = asyncio.Event()

    def offer(self, chunk: bytes) -> None:
        if self.lost:
            return
        if len(self.chunks) >= QUEUE_CHUNKS or self.size + len(chunk) > QUEUE_BYTES:
            self.chunks.clear()
            self.size, self.lost = 0, True
        else:
            self.chunks.append(chunk)
            self.size += len(chunk)
        self.ready.set()

    def take(self) -> bytes:
        """Everything that waits, as one write."""
        waiting = b"".join(self.chunks)
        self.chunks.clear()
        self.size = 0
        self.ready.clear()
        return waiting


class Feed:
    """The sink of one session that viewers read from."""

    full = False  # a viewer never asks a tool to pause

    def __init__(
        self, read_past: ReadPast = no_past, seq: int = 0, *, keep_alive: float = KEEP_ALIVE_SECONDS
    ) -> None:
        self._read_past = read_past
        self._keep_alive = keep_alive
        self._tail: deque[Record] = deque(maxlen=TAIL_RECORDS)
        self._gathered: list[Record] = []
        self._timer: asyncio.TimerHandle | None = None
        self._viewers: set[Viewer] = set()
        self.seq = seq
        self.closed = False

    # --- the session's side --------------------------------------------------------------------------------

    def push(self, record: Record) -> None:
        self._tail.append(record)
        self.seq = record.seq
        if not self._viewers:
            return
        self._gathered.append(record)
        if self._timer is None:
            pause = GATHER_SECONDS + GATHER_SECONDS_PER_VIEWER * len(self._viewers)
            self._timer = asyncio.get_running_loop().call_later(pause, self._send)

    async def wait(self) -> None:
        return

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._gathered:
            return
        chunk = _message(self._gathered)
        self._gathered = []
        for viewer in self._viewers:
            viewer.offer(chunk)

    def close(self) -> None:
        """Let every viewer go; each takes up again, or is told that the session is gone."""
        self._send()
        self.closed = True
        for viewer in self._viewers:
            viewer.ready.set()

    # --- the viewers' side ---------------------------------------------------------------------------------

    async def follow(self, after: int = 0) -> AsyncIterator[bytes]:
        """The stream of one viewer: what it has not seen, then what happens."""
        self._send()  # so that nothing gathered before this viewer came reaches it twice
        viewer = Viewer()
        until = self.seq
        self._viewers.add(viewer)
        try:
            yield b"retry: 1000\n\n"
            if after > until:  # the viewer saw records that a crash has taken back
                yield self._snapshot()
            for chunk in self._past(after, until):
                yield chunk
                await asyncio.sleep(0)
            while not self.closed:
                try:
                    async with asyncio.timeout(self._keep_alive):
                        await viewer.ready.wait()
                except TimeoutError:
                    yield KEEP_ALIVE
                    continue
                if viewer.lost:
                    self._send()
                    viewer.lost = False
                    viewer.take()
                    yield self._snapshot()
                else:
                    yield viewer.take()
        finally:
            self._viewers.discard(viewer)

    def records(self, after: int, until: int) -> Iterator[Record]:
        """The records after `after`, up to `until`; from the journal what the tail does not hold."""
        first = self._tail[0].seq if self._tail else until + 1
        if after + 1 < first:
            yield from self._read_past(after, first)
        for record in list(self._tail):
            if after < record.seq <= until:
                yield record

    def _past(self, after: int, until: int) -> Iterator[bytes]:
        part: list[Record] = []
        for record in self.records(after, until):
            part.append(record)
            if len(part) >= CHUNK_RECORDS:
                yield _message(part)
                part = []
        if part:
            yield _message(part)

    def _snapshot(self) -> bytes:
        body = encode({"seq": self.seq, "records": condense(list(self.records(0, self.seq)))})
        return b"id: %d\nevent: snapshot\ndata: %s\n\n" % (self.seq, body)


def condense(records: list[Record]) -> list[Record]:
    """Enough to show the same page: the last lines of each log, no pieces of finished narration."""
    told = {record.turn for record in records if isinstance(record.event, Narration)}
    lines: dict[str, int] = {}
    kept = []
    for record in reversed(records):
        event: Any = record.event
        if isinstance(event, NarrationDelta) and record.turn in told:
            continue
        if isinstance(event, CallEmitted) and isinstance(event.event, Log):
            lines[event.call] = lines.get(event.call, 0) + 1
            if lines[event.call] > SNAPSHOT_LOG_LINES:
                continue
        kept.append(record)
    kept.reverse()
    return kept


def _message(records: list[Record]) -> bytes:
    """One server-sent event. Pieces of a narration that is complete in the same batch need not travel."""
    told = {record.turn for record in records if isinstance(record.event, Narration)}
    kept = [one for one in records if not (isinstance(one.event, NarrationDelta) and one.turn in told)]
    # JSON has no raw line breaks, so one `data:` line holds any number of records.
    return b"id: %d\ndata: %s\n\n" % (records[-1].seq, encode(kept))
