"""A store in SQL: writing to its tables. SQLite and PostgreSQL do the connecting and locking."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final

from narratoria.errors import JournalError
from narratoria.events import (
    AnyRuntimeEvent,
    AssetStored,
    Change,
    Checkpoint,
    Committed,
    SessionStarted,
    TurnCommitted,
    TurnRedone,
    TurnStarted,
    TurnUndone,
)
from narratoria.session.assets import AssetStore
from narratoria.session.record import EmittedRecords, Record
from narratoria.session.resources.resources import ResourceRegistry
from narratoria.session.session import Session
from narratoria.store import mending
from narratoria.store import record_batches as chunks
from narratoria.store.imported_snapshot import Unfit
from narratoria.store.journal import Journal, Lease
from narratoria.store.restoration import take_snapshot
from narratoria.store.sql_reading import SqlReader
from narratoria.store.sql_versions import TABLES
from narratoria.store.store import SessionMeta, is_plain_id, notes_folder
from narratoria.store.timeline import Timeline
from narratoria.store.writer import ConnectionLost, Database, Writer
from narratoria.unicode_text import legible

_ADOPTED: Final = 512  # records in a batch of an import ...
_ADOPTED_BYTES: Final = 4 * 1024 * 1024  # ... which ends early when it has so many bytes
_SWEEP_AGE: Final = 3600.0  # an import that is still running is not swept away
_MARKED: Final = frozenset({TurnStarted, TurnCommitted, TurnUndone, TurnRedone, AssetStored, SessionStarted})


class SqlStore(SqlReader):
    """Sessions in SQL tables. A subclass connects, and grants the right to write."""

    def __init__(self, assets: AssetStore, name: str) -> None:
        super().__init__(assets)
        self.writer = Writer(self._connect, f"narratoria-{name}")

    @property
    def database_file(self) -> Path | None:
        return None

    def _connect(self) -> Database:
        raise NotImplementedError

    def lease(self, session_id: str) -> Lease:
        """Take the right to write a session, or raise `SessionBusy` that names the holder."""
        raise NotImplementedError

    def keep_asset(self, database: Database, stored: AssetStored, *, durable: bool) -> None:
        """Make an asset's content last as long as its record; called in the transaction that records it."""
        raise NotImplementedError

    def close(self) -> None:
        super().close()
        self.writer.close()  # last, so that SQLite folds its log into the file

    # --- opening -----------------------------------------------------------------------------------------

    def create(
        self,
        session: Session | None = None,
        *,
        story: str | None = None,
        title: str | None = None,
        folder: str | None = None,
    ) -> Journal:
        session = session or Session(assets=self.assets)
        title = None if title is None else legible(title)
        session.assets = self.assets
        now = session.clock()
        lease = self.lease(session.id)
        started = SessionStarted(
            session=session.id,
            story=story,
            title=title,
            state=session.snapshot(),
            permissions=sorted(session.permissions),
        )
        events: list[AnyRuntimeEvent] = [started]  # so that the records alone make the session
        held: list[int | Change] = [*session.memory.changes(), *session.slices.export()]
        if held:
            events.append(Committed(call="", changes=held))
        records = [Record(seq, now, None, event) for seq, event in enumerate(events, session.seq + 1)]
        beginning = take_snapshot(session, Timeline(), seq=records[-1].seq)

        def insert(database: Database) -> int:
            if database.execute("SELECT 1 FROM sessions WHERE id = ?", (session.id,)):
                raise JournalError(f"session {session.id} exists already; open it, or choose another id")
            rows = database.execute(
                "INSERT INTO sessions (id, story, title, folder, created, updated, turns, last_seq, bytes) "
                "VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0) RETURNING key",
                (session.id, story, title, folder, now, now, session.seq),
            )
            key = int(rows[0][0])
            self.append(database, key, session.seq, records, True, beginning.content)
            return key

        try:
            key = self.writer.run(insert)
        except BaseException:
            lease.release()
            raise
        session.seq = records[-1].seq
        session.asset_records.kept(beginning.assets, beginning.seq)
        return Journal(self, session, key, lease, Timeline(), snapshot_size=len(beginning.content) // 4)

    def open(
        self,
        session_id: str,
        *,
        resources: ResourceRegistry | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Journal:
        self.meta(session_id)
        lease = self.lease(session_id)
        try:
            restoration = self._restore(session_id, None, resources, clock)
            key = self._key(session_id)
        except BaseException:
            lease.release()
            raise
        return Journal(
            self, restoration.session, key, lease, restoration.timeline, open_records=restoration.open_records
        )

    # --- writing -----------------------------------------------------------------------------------------

    def append(
        self,
        database: Database,
        key: int,
        after: int,
        entries: Sequence[Record | EmittedRecords],
        durable: bool,
        snapshot: bytes | None,
        *,
        absent: Collection[str] = (),
    ) -> int:
        """Write one batch behind record `after`; return its size in bytes. A job for the writer.

        `absent` are assets without content.
        """
        entries, lines = mending.readable(entries)
        data = chunks.pack(lines)
        last, now = entries[-1].last, entries[-1].ts
        rows = database.execute(
            "UPDATE sessions SET last_seq = ?, bytes = bytes + ?, "
            "updated = CASE WHEN updated < ? THEN ? ELSE updated END "
            "WHERE key = ? AND last_seq = ? RETURNING key",
            (last, len(data), now, now, key, after),
        )
        if not rows:
            raise JournalError(
                "the session was changed or deleted by another process; what this one did since then is not "
                "saved. Open the session again"
            )
        database.execute(
            "INSERT INTO batches (session, last_seq, first_seq, data) VALUES (?, ?, ?, ?)",
            (key, last, entries[0].seq, data),
        )
        for entry in entries:
            if type(entry) is Record and type(entry.event) in _MARKED:
                self._mark(database, key, entry, durable, absent)
        if snapshot is not None:
            database.execute(
                "INSERT INTO snapshots (session, seq, data) VALUES (?, ?, ?)",
                (key, last, chunks.pack_lines(snapshot)),
            )
        return len(data)

    def submit(
        self,
        key: int,
        lease: Lease,
        after: int,
        batch: list[Record | EmittedRecords],
        *,
        durable: bool,
        snapshot: bytes | None,
    ) -> Future[int]:
        def append(database: Database) -> int:
            if not lease.held:
                raise ConnectionLost("the connection was lost, and with it the right to write")
            return self.append(database, key, after, batch, durable, snapshot)

        return self.writer.submit(append, durable=durable)

    def submit_sync(self, key: int) -> Future[int]:
        def touch(database: Database) -> int:  # something is written, so that the commit reaches the disk
            database.execute("UPDATE sessions SET bytes = bytes WHERE key = ?", (key,))
            return 0

        return self.writer.submit(touch, durable=True)

    def _mark(
        self, database: Database, key: int, record: Record, durable: bool, absent: Collection[str]
    ) -> None:
        """Update the tables beside the batches for a record."""
        event = record.event
        if isinstance(event, TurnStarted):
            database.execute(
                "INSERT INTO turns (session, turn, first_seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (key, event.turn, record.seq),
            )
        elif isinstance(event, TurnCommitted):
            database.execute(
                "UPDATE turns SET last_seq = ? WHERE session = ? AND turn = ?", (record.seq, key, event.turn)
            )
            self._count(database, key, event.turn, 1)
        elif isinstance(event, TurnUndone):
            self._count(database, key, event.turn, -1)
        elif isinstance(event, TurnRedone):
            self._count(database, key, event.turn, 1)
        elif isinstance(event, AssetStored):
            if event.hash not in absent:
                self.keep_asset(database, event, durable=durable)
            database.execute(
                "INSERT INTO assets (session, hash) VALUES (?, ?) ON CONFLICT DO NOTHING", (key, event.hash)
            )
        elif isinstance(event, SessionStarted) and event.parent_session is None:
            database.execute(
                "UPDATE sessions SET story = COALESCE(story, ?), title = COALESCE(title, ?) WHERE key = ?",
                (event.story, event.title, key),
            )

    def _count(self, database: Database, key: int, turn: int, step: int) -> None:
        if turn > 0:  # the opening is not a turn the player took
            database.execute("UPDATE sessions SET turns = turns + ? WHERE key = ?", (step, key))

    def rename(self, session_id: str, title: str) -> None:
        key, title = self._key(session_id), legible(title)
        self.writer.run(lambda db: db.execute("UPDATE sessions SET title = ? WHERE key = ?", (title, key)))

    def relocate(self, session_id: str, folder: str | None) -> None:
        key = self._key(session_id)
        self.writer.run(lambda db: db.execute("UPDATE sessions SET folder = ? WHERE key = ?", (folder, key)))

    def branch(self, session_id: str, turn: int, *, title: str | None = None) -> SessionMeta:
        parent = self.meta(session_id)
        key, last = self._key_and_last(session_id)
        span = self._span(self._stretches(key, last), turn)
        if span is None:
            raise JournalError(f"session {session_id} has no turn {turn} to branch from")
        if span.last is None:
            raise JournalError(
                f"turn {turn} of session {session_id} is not finished; let it end, then branch"
            )
        title = None if title is None else legible(title)
        child, now, end = uuid.uuid4().hex, time.time(), span.last
        called = title or parent.title
        then = self.timeline(session_id, upto=end)
        names = self._named_since(session_id, then)
        started = SessionStarted(
            session=child, story=parent.story, title=title, parent_session=session_id, parent_turn=turn
        )

        def insert(database: Database) -> None:
            rows = database.execute(
                "INSERT INTO sessions (id, story, title, folder, created, updated, turns, last_seq, bytes, "
                "parent, parent_turn, parent_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?) RETURNING key",
                (child, parent.story, called, parent.folder, now, now, then.standing, end, key, turn, end),
            )
            records = [Record(seq, now, None, one) for seq, one in enumerate([started, *names], end + 1)]
            self.append(database, int(rows[0][0]), end, records, True, None)

        self.writer.run(insert)
        return self.meta(child)

    def _named_since(self, session_id: str, then: Timeline) -> list[AnyRuntimeEvent]:
        """Return the checkpoints of turns that stood then: a turn gets its names after its end."""
        now = self.timeline(session_id)
        return [
            Checkpoint(name=name, turn=turn)
            for name, turn in {**now.dropped, **now.checkpoints}.items()
            if turn in then.turns and then.checkpoints.get(name) != turn
        ]

    def adopt(
        self,
        meta: SessionMeta,
        records: Iterable[Record],
        *,
        lacking: bool = False,
        accepted: Callable[[], Iterable[AssetStored]] | None = None,
        step: Callable[[], None] = lambda: None,
    ) -> SessionMeta:
        """Import a session. It stays hidden until it is complete, so that a crash half way shows nothing."""
        name = meta.id if is_plain_id(meta.id) else uuid.uuid4().hex
        if self.query("SELECT 1 FROM sessions WHERE id = ?", (name,)):
            name = uuid.uuid4().hex
        key = self.writer.run(lambda database: _insert_hidden(database, name, meta))
        try:
            after = 0
            for batch in _batched(records):
                absent = self._absent(batch) if lacking else frozenset()
                job = partial(self._adopt_batch, key=key, after=after, batch=batch, absent=absent)
                self.writer.run(job, durable=False)
                after = batch[-1].seq
            self._check_adopted(name, key, step)
            for stored in accepted() if accepted is not None else ():
                self.writer.run(partial(self.keep_asset, stored=stored, durable=True))
            self.writer.run(lambda db: db.execute("UPDATE sessions SET hidden = 0 WHERE key = ?", (key,)))
        except BaseException:
            self.writer.run(lambda database: _forget(database, key))
            raise
        return self.meta(name)

    def _absent(self, batch: Sequence[Record]) -> frozenset[str]:
        hashes = {record.event.hash for record in batch if isinstance(record.event, AssetStored)}
        return frozenset(one for one in hashes if one not in self.assets)

    def _adopt_batch(
        self, database: Database, key: int, after: int, batch: Sequence[Record], absent: Collection[str]
    ) -> None:
        if batch[0].seq <= after:
            raise JournalError(
                f"record {batch[0].seq} comes after record {after}; the journal is out of order"
            )
        self.append(database, key, after, batch, False, None, absent=absent)

    def _check_adopted(self, name: str, key: int, step: Callable[[], None]) -> None:
        """Fold the imported session once: one that cannot be folded is refused, and the next opening need not fold it
        all.
        """
        try:
            restored = self._restore(name, None, None, None, hidden=True, step=step)
        except Unfit:
            raise
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            raise JournalError(f"the records of session {name} do not make a game ({error!r})") from None
        turns = restored.timeline.standing  # those too whose own records were lost to damage
        self.writer.run(lambda db: db.execute("UPDATE sessions SET turns = ? WHERE key = ?", (turns, key)))
        if restored.timeline.open is None:
            packed = chunks.pack_lines(take_snapshot(restored.session, restored.timeline).content)
            values = (key, restored.session.seq, packed)
            self.writer.run(
                lambda db: db.execute("INSERT INTO snapshots (session, seq, data) VALUES (?, ?, ?)", values)
            )

    def sweep(self) -> int:
        def collect(database: Database) -> int:
            left = database.execute(
                "SELECT key FROM sessions s WHERE hidden = 1 "
                "AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent = s.key) AND updated < ?",
                (time.time() - _SWEEP_AGE,),
            )
            for (key,) in left:
                _forget(database, int(key))
            return len(left)

        return self.writer.run(collect)

    def delete(self, session_id: str) -> None:
        key = self._key(session_id)
        lease = self.lease(
            session_id
        )  # a session that is being played is not pulled away from under the player
        try:
            self.writer.run(lambda database: _forget(database, key))
            shutil.rmtree(notes_folder(self.assets, session_id), ignore_errors=True)
        finally:
            lease.release()


def _insert_hidden(database: Database, name: str, meta: SessionMeta) -> int:
    rows = database.execute(
        "INSERT INTO sessions (id, story, title, folder, created, updated, turns, last_seq, bytes, hidden) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 1) RETURNING key",
        (name, meta.story, meta.title, meta.folder, meta.created, meta.updated),
    )
    return int(rows[0][0])


def _batched(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield batches that are quickly written and do not fill the memory."""
    batch: list[Record] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(chunks.to_lines([record]))
        if len(batch) == _ADOPTED or size > _ADOPTED_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _forget(database: Database, key: int) -> None:
    """Delete a session, or hide it while branches share its past; then its parent, if that waited for it."""
    current: int | None = key
    while current is not None:
        if database.execute("SELECT 1 FROM sessions WHERE parent = ?", (current,)):
            database.execute("UPDATE sessions SET hidden = 1 WHERE key = ?", (current,))
            return
        parent = database.execute("SELECT parent FROM sessions WHERE key = ?", (current,))[0][0]
        for table in TABLES:
            database.execute(f"DELETE FROM {table} WHERE session = ?", (current,))  # noqa: S608 - our own names
        database.execute("DELETE FROM sessions WHERE key = ?", (current,))
        current = None
        if parent is not None and database.execute(
            "SELECT 1 FROM sessions WHERE key = ? AND hidden = 1", (parent,)
        ):
            current = parent
