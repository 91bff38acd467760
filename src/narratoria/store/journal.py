"""The journal of one open session: it keeps every record, in order, without blocking the event loop.

Records gather for a few milliseconds and are written as one batch by the store's thread. A batch is handed over by a
callback of the loop, never inside `push`, so the records of one step of a coroutine (a commit and the end of its
call) are written together or not at all. A batch that ends a turn is on the disk before any viewer gets it.

Viewers attach here rather than to the session: they get a record once it is written, so that a viewer never knows
more than a restarted server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from narratoria.errors import JournalError, LeaseLost
from narratoria.events import AnyRuntimeEvent, CallFinished, PlanMade, TurnCommitted, TurnStarted
from narratoria.session.record import EmittedRecords, Record, Sink
from narratoria.session.resources.write_notes import WriteNotes
from narratoria.session.session import Session
from narratoria.store.journal_store import Batch, JournalStore, Lease
from narratoria.store.restoration import FetchTurn, Restoration, SnapshotTaken, take_snapshot
from narratoria.store.store import notes_folder
from narratoria.store.timeline import Timeline
from narratoria.store.writer import ConnectionLost

GATHER: Final = 0.008  # seconds records may wait for company ...
GATHER_PATIENTLY: Final = 0.05  # ... and in a journal that is patient
BATCH: Final = 512  # records that are written without waiting any longer
ROOM: Final = 8192  # records in memory, beyond which tools are asked to pause
SNAPSHOT_BYTES: Final = 16 * 1024  # of packed records, at least, between two snapshots ...
SNAPSHOT_RATIO: Final = (
    4  # ... and as many times the last snapshot's size, so that they stay a fraction of the whole
)

_PROMPT: Final = frozenset({TurnStarted, PlanMade, CallFinished, TurnCommitted})  # worth writing at once


class Journal:
    """The writer of the records of `session`. It holds the lease: no other process writes the session meanwhile."""

    def __init__(
        self,
        store: JournalStore,
        session: Session,
        key: int,
        lease: Lease,
        timeline: Timeline,
        *,
        open_records: Sequence[Record] = (),
        snapshot_size: int = 0,
    ) -> None:
        self.store = store
        self.session = session
        self.timeline = timeline
        self.open_records = list(open_records)  # of a turn that a crash left open
        self.failure: JournalError | None = None
        self._reason = ""  # of it, without what waits
        self.written = session.seq
        self.closed = False
        self.patient = False
        """True if whoever records says itself, with `flush` or `commit_turn`, what has to be written at once. Short
        calls that change nothing then share a transaction."""
        self._key = key
        self._lease: Lease | None = lease
        self._pending: list[Record | EmittedRecords] = []
        self._writing: list[Record | EmittedRecords] = []
        self._gathered = 0  # records in `_pending` ...
        self._handed = 0  # ... and in `_writing`
        self._future: Future[int] | None = None
        self._scheduled: asyncio.Handle | None = None
        self._hurried = False
        self._durable = session.seq
        self._waiters: list[tuple[int, bool, asyncio.Future[None]]] = []
        self._viewers: tuple[Sink, ...] = ()
        self._since_snapshot = 0
        self._snapshot_size = snapshot_size
        self._detach: Callable[[], None] = session.attach(self)
        session.journal = self
        self.notes = session.notes = WriteNotes(lambda: notes_folder(store.assets, session.id), session)

    # --- the sink ----------------------------------------------------------------------------------------

    def push(self, record: Record) -> None:
        self._pending.append(record)
        self._gathered += 1
        self.timeline.apply(record)
        self._wake_up(type(record.event) in _PROMPT)

    def push_emitted(self, emitted: EmittedRecords) -> None:
        """Take many records at once: events of a tool, which do not change the timeline."""
        self._pending.append(emitted)
        self._gathered += len(emitted.emitted)
        self._wake_up(False)

    def _wake_up(self, at_once: bool) -> None:
        if self._scheduled is None:
            self._schedule(GATHER_PATIENTLY if self.patient else GATHER)
        if not self._hurried and ((at_once and not self.patient) or self._gathered >= BATCH):
            self._hurried = True
            self._schedule(0)

    @property
    def full(self) -> bool:
        return self._gathered + self._handed > ROOM or any(sink.full for sink in self._viewers)

    async def wait(self) -> None:
        """Wait until there is room again. Raise `JournalError` if writing fails."""
        if self._gathered + self._handed > ROOM:
            await self._reach(self.session.seq, durable=False)
        for sink in self._viewers:
            if sink.full:
                await sink.wait()

    def attach(self, sink: Sink) -> Callable[[], None]:
        """Send every record to `sink` once it is written; return a function that detaches it."""
        self._viewers = (*self._viewers, sink)

        def detach() -> None:
            self._viewers = tuple(one for one in self._viewers if one is not sink)

        return detach

    # --- promises ----------------------------------------------------------------------------------------

    async def commit_turn(self) -> None:
        """Return once everything recorded so far is on the disk. Raise `JournalError` with what was kept."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self.store.patience, 0.0
        attempts = 3
        while True:
            try:
                await self._reach(self.session.seq, durable=True)
                return
            except ConnectionLost:
                attempts -= 1
                if attempts <= 0 and loop.time() + pause >= until:
                    raise
                await asyncio.sleep(pause)
                pause = min(1.0, pause * 2 or 0.05) if self.store.patience else 0.0
                with contextlib.suppress(ConnectionLost):
                    await self.acquire()

    async def flush(self) -> None:
        """Return once everything recorded so far is written, and survives the end of this process."""
        await self._reach(self.session.seq, durable=False)

    async def keep(self, *events: AnyRuntimeEvent, revert: Callable[[], None]) -> None:
        """Record events, and return once they are on the disk; no viewer gets them before.

        If they cannot be written, `revert` takes back their changes to the session, they are forgotten, and the
        `JournalError` is raised, as if they had never happened. Only if something else was recorded after them, which
        builds on them, do they stay, to be written with it.
        """
        after = self.session.seq
        records = [self.session.next_record(event) for event in events]
        for record in records:
            self.push(record)
        kept = True
        try:
            await self.commit_turn()
        except JournalError as error:
            if self.session.seq != records[-1].seq or self._future is not None or self.written > after:
                raise
            kept = False
            revert()
            self._forget(after)
            raise type(error)(f"{self._reason}; it was not done") from None
        finally:
            for record in records if kept else ():
                self.session.tell(record, but=self)

    def _forget(self, after: int) -> None:
        self._pending = [entry for entry in self._pending if entry.last <= after]
        self._gathered -= self.session.seq - after
        self.session.seq = after

    async def close(self) -> None:
        """Write the rest, detach from the session, and give the lease back. The session stays usable."""
        if self.closed:
            return
        try:
            if self._lease is not None:
                await self.commit_turn()
        finally:
            self.closed = True
            self._detach()
            self.session.journal = self.session.notes = None
            self.notes.close()
            self.release()

    def abandon(self) -> None:
        """Detach from the session, which another process has now: what is not written yet is dropped."""
        if self.closed:
            return
        self.closed = True
        self._detach()
        self.session.journal = self.session.notes = None
        self.notes.close()
        self._pending, self._gathered = [], 0
        if self._lease is not None and self._future is None:
            self._fail(LeaseLost(f"session {self.session.id} is played by another process now"))
        self.release()

    # --- sharing -----------------------------------------------------------------------------------------

    def release(self) -> None:
        """Let another process take the session over. Writing needs `acquire` first."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release(open_turn=self.timeline.open is not None)

    async def acquire(self) -> None:
        """Take the session back, and fold in the records of others. Raise `SessionBusy` if it is locked."""
        if self._lease is not None and self._lease.held:
            return
        lease = await asyncio.to_thread(self.store.lease, self.session.id)
        try:
            if self._pending or self._writing:  # lost in mid-turn: the store decides if these still follow
                self._lease = lease
                return
            self.open_records = await asyncio.to_thread(self.store.catch_up, self.session, self.timeline)
        except BaseException:
            lease.release()
            raise
        self._lease = lease
        self.written = self._durable = self.notes.written = self.session.seq

    def resumes(self, turn: int | None) -> bool:
        """Tell if a crash left this turn open: a call of it may have acted already without a record."""
        return any(
            isinstance(record.event, TurnStarted) and record.event.turn == turn
            for record in self.open_records
        )

    def restoration(self, fetch: FetchTurn | None = None) -> Restoration:
        """Return the restoration that takes turns of this session back and redoes them, read by `fetch` if given."""
        return Restoration(
            self.session, self.timeline, fetch or (lambda turn: self.store.read_turn(self.session.id, turn))
        )

    # --- writing -----------------------------------------------------------------------------------------

    def _schedule(self, delay: float) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # outside a loop records wait until somebody awaits `commit_turn` or `close`
        if self._scheduled is not None:
            self._scheduled.cancel()
        self._scheduled = (
            loop.call_later(delay, self._hand_over) if delay else loop.call_soon(self._hand_over)
        )

    def _hand_over(self) -> None:
        """Give the gathered records to the writer, unless it still has a batch of ours: then they gather on."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        self._hurried = False
        if self._future is not None or not self._pending:
            return
        if self._lease is None:
            self._fail(JournalError(f"session {self.session.id} was released; acquire it before writing"))
            return
        batch, self._pending = self._pending, []
        self._writing = batch
        self._gathered, self._handed = 0, self._gathered
        durable = any(need_disk for _, need_disk, _ in self._waiters) or any(map(_ends_a_turn, batch))
        snapshot = self._snapshot_if_due(batch)
        loop = asyncio.get_running_loop()
        self._future = self.store.submit(
            self._key,
            self._lease,
            Batch(self.written, batch, durable, None if snapshot is None else snapshot.content),
        )
        self._future.add_done_callback(
            lambda future: _on_loop(loop, lambda: self._settle(future, batch, durable, snapshot))
        )

    def _snapshot_if_due(self, batch: Sequence[Record | EmittedRecords]) -> SnapshotTaken | None:
        due = max(SNAPSHOT_BYTES, SNAPSHOT_RATIO * self._snapshot_size)
        if self._since_snapshot < due or not _ends_a_turn(batch[-1]) or self._pending:
            return None
        if self.session.seq != batch[-1].last or self.session.turn is not None:
            return None
        return take_snapshot(self.session, self.timeline)

    def _settle(
        self,
        future: Future[int],
        batch: list[Record | EmittedRecords],
        durable: bool,
        snapshot: SnapshotTaken | None,
    ) -> None:
        self._future = None
        self._writing = []
        handed, self._handed = self._handed, 0
        error = future.exception()
        if error is not None:
            self._pending[:0] = batch  # kept: once there is room on the disk, the next attempt writes them
            self._gathered += handed
            self._fail(error if isinstance(error, JournalError) else JournalError(f"not written: {error!r}"))
            return
        self.failure = None
        self.written = batch[-1].last
        self.notes.note_written(self.written)
        if durable:
            self._durable = self.written
        self._since_snapshot += future.result()
        if snapshot is not None:
            self._since_snapshot, self._snapshot_size = 0, len(snapshot.content) // 4
            self.session.asset_records.kept(snapshot.assets, snapshot.seq)
        if self._viewers:
            self._show(batch)
        self._wake()
        if self._pending:
            self._schedule(0 if self._waiters else GATHER)

    def _show(self, batch: list[Record | EmittedRecords]) -> None:
        for entry in batch:
            for record in entry.records() if isinstance(entry, EmittedRecords) else (entry,):
                for sink in self._viewers:
                    sink.push(record)

    def _fail(self, error: JournalError) -> None:
        kept = f"session {self.session.id}: saved up to record {self.written}, {self._gathered} records wait"
        self._reason = str(error)
        self.failure = type(error)(f"{error} ({kept})")
        waiters, self._waiters = self._waiters, []
        for _, _, waiter in waiters:
            if not waiter.done():
                waiter.set_exception(self.failure)

    # --- waiting -----------------------------------------------------------------------------------------

    async def _reach(self, seq: int, *, durable: bool) -> None:
        if (self._durable if durable else self.written) >= seq:
            return
        if self.closed:
            raise JournalError(f"session {self.session.id} is closed; open it again to write")
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((seq, durable, waiter))
        if self._future is None and self._pending:
            self._hand_over()
        elif self._future is None:
            self._sync()
        await waiter

    def _sync(self) -> None:
        """Make written records durable, by an empty durable transaction."""
        loop, reached = asyncio.get_running_loop(), self.written
        self._future = self.store.submit_sync(self._key)
        self._future.add_done_callback(lambda future: _on_loop(loop, lambda: self._synced(future, reached)))

    def _synced(self, future: Future[int], reached: int) -> None:
        self._future = None
        error = future.exception()
        if error is not None:
            self._fail(error if isinstance(error, JournalError) else JournalError(f"not written: {error!r}"))
            return
        self._durable = max(self._durable, reached)
        self._wake()
        if self._pending:
            self._schedule(0)

    def _wake(self) -> None:
        waiting = self._waiters
        self._waiters = []
        for seq, durable, waiter in waiting:
            if waiter.done():
                continue
            if (self._durable if durable else self.written) >= seq:
                waiter.set_result(None)
            elif seq > self.written and self._future is None and not self._pending:
                waiter.set_exception(
                    JournalError(
                        f"session {self.session.id}: record {seq} never came to the journal, which has {self.written}"
                    )
                )
            else:
                self._waiters.append((seq, durable, waiter))
        if self._waiters and self._future is None and not self._pending:
            self._sync()


def _ends_a_turn(entry: Record | EmittedRecords) -> bool:
    return type(entry) is Record and type(entry.event) is TurnCommitted


def _on_loop(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    """Run an action on the loop, from the writer's thread. A closed loop is ignored."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(action)
