"""The records of a session on their way to viewers: encoded once, sent together, without slowing a turn.

Records are gathered for about 30 ms and go out as one server-sent event whose bytes all viewers share. A viewer that
does not keep up delays nobody: its queue is thrown away and it gets the story again, condensed. Records older than
the tail kept here are read and encoded in a thread, and narration is rendered in one: a text may be long, and
hostile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from narratoria.events import CallEmitted, Log, Narration, NarrationDelta, TurnCommitted
from narratoria.session import Record
from narratoria.web.narration_html import TOLD, Key, UnfinishedNarrations, dress, tells
from narratoria.web.turn_pages import PastRecords, Window

GATHER_SECONDS: Final = 0.03
# Writing to a socket is what costs: many viewers are served less often.
GATHER_SECONDS_PER_VIEWER: Final = 0.001
QUEUE_CHUNKS: Final = 256
QUEUE_BYTES: Final = 8 * 1024 * 1024
TAIL_RECORDS: Final = 10_000
CHUNK_RECORDS: Final = 2_000
SNAPSHOT_LOG_LINES: Final = 1_000  # of each call's log, for a viewer that was too slow ...
FIRST_LOG_LINES: Final = 100_000  # ... and for one that begins
KEEP_ALIVE_SECONDS: Final = 15.0

encode: Final = msgspec.json.Encoder().encode
KEEP_ALIVE: Final = b": still here\n\n"
LATER: Final = b"event: later\ndata: {}\n\n"  # this answer ends here; ask again for what follows


class Viewer:
    """One connection's queue of records after `since`."""

    def __init__(self, since: int) -> None:
        self.since = since
        self.chunks: deque[bytes] = deque()
        self.size = 0
        self.lost = False
        self.gone = False
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

    def leave(self) -> None:
        """End this connection at once."""
        self.gone = True
        self.ready.set()

    def take(self) -> bytes:
        """Return everything in the queue as one write; a single item is returned without a copy."""
        waiting = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        self.clear()
        return waiting

    def clear(self) -> None:
        self.chunks.clear()
        self.size, self.lost = 0, False
        if not self.gone:
            self.ready.clear()


class Batch(NamedTuple):
    """Records on their way, and the text of the unfinished narrations up to the last of them."""

    records: list[Record]
    texts: dict[Key, str]


class FeedSnapshot(NamedTuple):
    """The story up to the record `seq`, as a server-sent event whose bytes all viewers share."""

    seq: int
    message: bytes

    @property
    def body(self) -> bytes:
        """The JSON text in it."""
        return self.message.partition(b"\ndata: ")[2].rstrip()


class Feed:
    """The sink of one session that viewers read from."""

    full = False  # a viewer never asks a tool to pause

    def __init__(
        self, past: PastRecords | None = None, seq: int = 0, *, keep_alive: float = KEEP_ALIVE_SECONDS
    ) -> None:
        self._past = past
        self._keep_alive = keep_alive
        self._tail: deque[Record] = deque(maxlen=TAIL_RECORDS)
        self._gathered: list[Record] = []
        self._batches: deque[Batch] = deque()
        self._rendering: asyncio.Future[bytes] | None = None
        self._telling = UnfinishedNarrations()
        self._shown: dict[Key, list[str]] = {}  # of the narrations under way, what all viewers have
        self._timer: asyncio.TimerHandle | None = None
        self._pulse: asyncio.TimerHandle | None = None
        self._viewers: set[Viewer] = set()
        self._snapshots: dict[tuple[int | None, int], FeedSnapshot] = {}
        self._condensing = asyncio.Lock()
        self.seq = seq
        self.closed = False

    # --- the session's side --------------------------------------------------------------------------------

    def push(self, record: Record) -> None:
        self._tail.append(record)
        self.seq = record.seq
        if type(record.event) in TOLD:
            self._telling.hear(record)
        if not self._viewers:
            return
        self._gathered.append(record)
        if isinstance(record.event, TurnCommitted):  # what somebody waits for does not wait for company
            self._wait_at_most(0)
        elif self._timer is None:
            self._wait_at_most(GATHER_SECONDS + GATHER_SECONDS_PER_VIEWER * len(self._viewers))

    def _wait_at_most(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._send)

    async def wait(self) -> None:
        return

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._gathered:
            self._batches.append(Batch(self._gathered, self._telling.texts()))
            self._gathered = []
            self._pump()

    def _pump(self) -> None:
        """Send batches in their order; one that waits for its narration holds up those behind it."""
        while self._batches and self._rendering is None:
            batch = self._batches.popleft()
            if not tells(batch.records):
                self._offer(_message(batch.records), batch.records[-1].seq)
                continue
            loop = asyncio.get_running_loop()
            self._rendering = loop.run_in_executor(None, _told, batch, self._shown)
            self._rendering.add_done_callback(partial(self._rendered, batch))

    def _rendered(self, batch: Batch, rendering: asyncio.Future[bytes]) -> None:
        self._rendering = None
        try:
            self._offer(rendering.result(), batch.records[-1].seq)
        finally:
            self._pump()

    def _offer(self, chunk: bytes, seq: int) -> None:
        for viewer in self._viewers:
            if viewer.since < seq:
                viewer.offer(chunk)

    def _begin_at(self, viewer: Viewer) -> int:
        """Return the last record that `viewer` gets by itself: later ones it gets with the others."""
        self._send()
        self._shown = {}
        viewer.since = self.seq
        return self.seq

    def _say_still_here(self) -> None:
        """Send a keep-alive to all viewers, by one timer: a proxy must not take a quiet story for a dead connection."""
        for viewer in self._viewers:
            if not viewer.chunks:
                viewer.offer(KEEP_ALIVE)
        self._pulse = None
        self._keep_pulse()

    def _keep_pulse(self) -> None:
        if self._pulse is None and self._viewers and not self.closed:
            self._pulse = asyncio.get_running_loop().call_later(self._keep_alive, self._say_still_here)

    def close(self) -> None:
        """Disconnect every viewer; each reconnects, or is told that the session is gone."""
        self._send()
        self.closed = True
        if self._pulse is not None:
            self._pulse.cancel()
        for viewer in self._viewers:
            viewer.ready.set()

    def rebase(self, past: PastRecords) -> None:
        """Read older records from elsewhere from now on."""
        self._past = past

    @property
    def watched(self) -> bool:
        return bool(self._viewers)

    # --- the viewers' side ---------------------------------------------------------------------------------

    async def follow(
        self,
        after: int | None = None,
        turns: int | None = None,
        *,
        once: bool = False,
        viewer: Viewer | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield the stream of one viewer: the records it has not seen, then new ones, unless it asks `once`.

        `turns` bounds its snapshots; a viewer that has seen nothing yet then begins with one. Whoever passes `viewer`
        can end the stream.
        """
        viewer = viewer or Viewer(self.seq)
        until = self._begin_at(viewer)
        texts = self._telling.texts()
        self._viewers.add(viewer)
        self._keep_pulse()
        try:
            yield b"retry: 1000\n\n"
            begins = after is None and turns is not None
            if begins or (after or 0) > until:  # the viewer saw records that a crash has taken back
                yield await self._snapshot(viewer, turns, FIRST_LOG_LINES)
            else:
                async for chunk in self._missed(after or 0, until, texts):
                    yield chunk
            if once:
                yield LATER
            while not self.closed and not once:
                await viewer.ready.wait()
                if viewer.gone:
                    break
                if viewer.lost:
                    yield await self._snapshot(viewer, turns, SNAPSHOT_LOG_LINES)
                elif viewer.chunks:
                    yield viewer.take()
        finally:
            self._viewers.discard(viewer)
            if not self._viewers:
                self._snapshots.clear()

    async def read(self, after: int, until: int) -> AsyncIterator[list[Record]]:
        """Yield the records after `after`, up to `until`, in parts; from the journal if the tail does not hold them."""
        tail = [record for record in self._tail if after < record.seq <= until]
        first = tail[0].seq if tail else until + 1
        if self._past is not None and after + 1 < first:
            older = iter(self._past.read(after, first))
            while part := await asyncio.to_thread(lambda: list(islice(older, CHUNK_RECORDS))):
                yield part
        for start in range(0, len(tail), CHUNK_RECORDS):
            yield tail[start : start + CHUNK_RECORDS]

    async def _missed(self, after: int, until: int, texts: dict[Key, str]) -> AsyncIterator[bytes]:
        async for part in self.read(after, until):
            yield await asyncio.to_thread(_told, Batch(part, texts))

    async def _snapshot(self, viewer: Viewer, turns: int | None, lines: int) -> bytes:
        """Return the story so far. Later records wait in the viewer's queue."""
        async with self._condensing:
            self._begin_at(viewer)
            viewer.clear()
            return (await self._condensed(turns, lines)).message

    async def so_far(self, turns: int) -> FeedSnapshot:
        """Return the story so far for a client that opens the stream later, after the record it ends with."""
        async with self._condensing:
            return await self._condensed(turns, FIRST_LOG_LINES)

    async def _condensed(self, turns: int | None, lines: int) -> FeedSnapshot:
        """Return a snapshot; viewers that come together share one."""
        known = self._snapshots.get((turns, lines))
        if known is None or known.seq != self.seq:
            seq, tail, texts = self.seq, list(self._tail), self._telling.texts()
            message = await asyncio.to_thread(self._condense, turns, lines, seq, tail, texts)
            known = FeedSnapshot(seq, message)
            self._snapshots = {(turns, lines): known}
        return known

    def _condense(
        self, turns: int | None, lines: int, until: int, tail: list[Record], texts: dict[Key, str]
    ) -> bytes:
        if self._past is None:
            window = Window(tail)
        elif turns is None:
            window = Window(list(self._past.read(0, until + 1)))
        else:
            window = self._past.newest(turns, until)
        records = dress(condense(window.records, lines), texts)
        body = encode({"seq": until, "earlier": window.earlier, "records": records})
        return b"id: %d\nevent: snapshot\ndata: %s\n\n" % (until, body)


def condense(records: list[Record], most_lines: int = SNAPSHOT_LOG_LINES) -> list[Record]:
    """Return the records needed to show the same page: the last lines of each log, no pieces of finished narration."""
    lines: dict[str, int] = {}
    kept = []
    for record in reversed(_without_pieces(records)):
        event: Any = record.event
        if isinstance(event, CallEmitted) and isinstance(event.event, Log):
            lines[event.call] = lines.get(event.call, 0) + 1
            if lines[event.call] > most_lines:
                continue
        kept.append(record)
    kept.reverse()
    return kept


def _told(batch: Batch, shown: dict[Key, list[str]] | None = None) -> bytes:
    """Return one server-sent event with its narration rendered. Slow for a hostile text."""
    kept = _without_pieces(batch.records)
    return _encoded(dress(kept, batch.texts, shown), batch.records[-1].seq)


def _message(records: list[Record]) -> bytes:
    """Return one server-sent event. Pieces of a narration that is complete in the same batch are left out."""
    return _encoded(_without_pieces(records), records[-1].seq)


def _encoded(records: list[Record], seq: int) -> bytes:
    # JSON has no raw line breaks, so one `data:` line holds any number of records.
    return b"id: %d\ndata: %s\n\n" % (seq, encode(records))


def _without_pieces(records: list[Record]) -> list[Record]:
    """Drop the pieces of finished narrations but the first, which marks the place of the text among the pictures."""
    told = {record.turn for record in records if isinstance(record.event, Narration)}
    begun: set[tuple[int | None, int]] = set()
    kept = []
    for record in records:
        event = record.event
        if isinstance(event, NarrationDelta) and record.turn in told:
            if (record.turn, event.attempt) in begun:
                continue
            begun.add((record.turn, event.attempt))
        kept.append(record)
    return kept
