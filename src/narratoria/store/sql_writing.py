"""A store in SQL: writing to its tables."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

from narratoria.errors import JournalError, unwritten
from narratoria.events import (
    AnyRuntimeEvent,
    AssetStored,
    Checkpoint,
    Committed,
    NarrationEdited,
    SessionStarted,
    TurnCommitted,
    TurnRedone,
    TurnStarted,
    TurnUndone,
)
from narratoria.session.assets import AssetStore
from narratoria.session.memory import LORE, changes_between
from narratoria.session.record import EmittedRecords, Record
from narratoria.store import checksums, mending
from narratoria.store import record_batches as chunks
from narratoria.store.journal_store import Batch, Lease
from narratoria.store.sql_reading import ReaderWithin, SqlReader
from narratoria.store.sql_rows import ROW, GrowingRow, SessionRow, change_row
from narratoria.store.store import SessionMeta, TurnUnknown
from narratoria.store.timeline import Timeline
from narratoria.store.writer import ConnectionLost, Database, Writer
from narratoria.unicode_text import as_one_line

# The seal tells that the row is the one that was known.
_GROW: Final = """UPDATE sessions SET updated = ?, turns = ?, last_seq = ?, bytes = ?, head = ?, seal = ?
    WHERE key = ? AND seal = ? RETURNING key"""
_END_TURN: Final = """UPDATE turns SET last_seq = ?, seal = ? WHERE session = ? AND turn = ? AND first_seq = ?
    RETURNING turn"""
_WRITTEN: Final = 1000  # rows that are kept in memory
_MARKED: Final = frozenset({TurnStarted, TurnCommitted, TurnUndone, TurnRedone, AssetStored, SessionStarted})


class SqlWriter(SqlReader):
    """Sessions in SQL tables, to be written and branched."""

    row_lock = ""  # put behind a query for a row that is about to be written
    patience = 0.0

    def __init__(self, assets: AssetStore, name: str) -> None:
        super().__init__(assets)
        self._written: dict[int, GrowingRow] = {}  # by key; of the writer's thread
        self._begun: dict[int, tuple[int, int]] = {}  # by key, the turn it is in and the first record of that
        self.writer = Writer(self._connect, f"narratoria-{name}")

    @property
    def database_file(self) -> Path | None:
        return None

    def _connect(self) -> Database:
        raise unwritten(self, "_connect")

    def lease(self, session_id: str) -> Lease:
        """Take the right to write a session, or raise `SessionBusy` that names the holder."""
        raise unwritten(self, "lease")

    def keep_asset(self, database: Database, stored: AssetStored, *, durable: bool) -> None:
        """Make an asset's content last as long as its record; called in the transaction that records it."""
        raise unwritten(self, "keep_asset")

    def brought(self, digests: Iterable[str]) -> AbstractContextManager[None]:
        """Bring contents from our folder to where they are kept, if that is no part of a transaction. The records that
        refer to them are written inside.
        """
        return nullcontext()

    def holds_content(self, digest: str) -> bool:
        """Tell if the content of an asset is in this store, as it was written."""
        return self.assets.is_whole(digest) is True

    def close(self) -> None:
        super().close()
        self.writer.close()  # last, so that SQLite folds its log into the file

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
        first, last = entries[0].seq, entries[-1].last
        marks = [entry for entry in entries if type(entry) is Record and type(entry.event) in _MARKED]
        turns = sum(map(_counted, marks)) if marks else 0
        ts = float(entries[-1].ts)
        for row in (self._written.get(key), None):
            if row is None:
                row = self._written[key] = self._begin_growing(database, key, after, marks)
            if row.last_seq == after:
                known, checksum = row.seal, checksums.batch_checksum(row.link, first, last, data)
                new = row.grow(last, ts, len(data), turns, checksums.own_sum(checksum))
                if database.execute(_GROW, (*new, key, known)):
                    break  # else somebody has changed it since
        else:
            raise JournalError(
                "the session was changed while it was written; nothing was saved. Open it again"
            )
        database.execute(
            "INSERT INTO batches (session, last_seq, first_seq, data, checksum) VALUES (?, ?, ?, ?, ?)",
            (key, last, first, data, checksum),
        )
        for entry in marks:
            self._mark(database, key, entry, durable, absent)
        if snapshot is not None:
            self._keep_snapshot(database, key, last, snapshot)
        return len(data)

    def _begin_growing(self, database: Database, key: int, after: int, marks: Sequence[Record]) -> GrowingRow:
        """Return the row of a session as it is now, with the chain begun and named by its first record."""
        row = self._row_to_write(database, key)
        if row is None or row.last_seq != after:
            raise JournalError(
                "the session was changed or deleted by another process; what this one did since then is not "
                "saved. Open the session again"
            )
        if len(self._written) > _WRITTEN:
            self._written.clear()
            self._begun.clear()
        chained = after if row.chained is None else row.chained
        return GrowingRow(change_row(database, row, chained=chained, **_named_by(row, marks)))

    def _row_to_write(self, database: Database, key: int) -> SessionRow | None:
        """Return the row of a session; nobody else changes it until the commit."""
        rows = database.execute(ROW + self.row_lock, (key,))
        if not rows:
            return None
        row = SessionRow(*rows[0])
        self._check_row(row)
        return row

    def _change(self, database: Database, key: int, **changes: Any) -> None:
        """Change columns of a session's row. A job for the writer."""
        row = self._row_to_write(database, key)
        if row is not None:
            change_row(database, row, **changes)

    def _keep_snapshot(self, database: Database, key: int, seq: int, snapshot: bytes) -> None:
        """Write a snapshot of a session as it is at record `seq`."""
        data = chunks.pack_lines(snapshot)
        session_id, link = ReaderWithin(database).snapshot_link(key, seq - 1)
        checksum = checksums.snapshot_checksum(link, session_id, seq, data)
        database.execute(
            "INSERT INTO snapshots (session, seq, data, checksum) VALUES (?, ?, ?, ?)",
            (key, seq, data, checksum),
        )

    def submit(self, key: int, lease: Lease, batch: Batch) -> Future[int]:
        def append(database: Database) -> int:
            if not lease.held:
                raise ConnectionLost("the connection was lost, and with it the right to write")
            return self.append(database, key, batch.after, batch.records, batch.durable, batch.snapshot)

        return self.writer.submit(append, durable=batch.durable)

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
                "INSERT INTO turns (session, turn, first_seq, seal) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (key, event.turn, record.seq, checksums.seal((key, event.turn, record.seq, None))),
            )
            self._begun[key] = event.turn, record.seq
        elif isinstance(event, TurnCommitted):
            self._end_turn(database, key, event.turn, record.seq)
        elif isinstance(event, AssetStored):
            if event.hash not in absent:
                self.keep_asset(database, event, durable=durable)
            database.execute(
                "INSERT INTO assets (session, hash) VALUES (?, ?) ON CONFLICT DO NOTHING", (key, event.hash)
            )

    def _end_turn(self, database: Database, key: int, turn: int, last: int) -> None:
        """Write the end of a turn into its row. If this process began it, its first record need not be asked for."""
        known, first = self._begun.pop(key, (turn, None))
        if first is not None and known == turn:
            values = last, checksums.seal((key, turn, first, last)), key, turn, first
            if database.execute(_END_TURN, values):
                return
        for (first,) in database.execute(
            "SELECT first_seq FROM turns WHERE session = ? AND turn = ?", (key, turn)
        ):
            database.execute(_END_TURN, (last, checksums.seal((key, turn, first, last)), key, turn, first))

    def rename(self, session_id: str, title: str) -> None:
        key, title = self._key(session_id), as_one_line(title)
        self.writer.run(partial(self._change, key=key, title=title))

    def relocate(self, session_id: str, folder: str | None) -> None:
        self.writer.run(partial(self._change, key=self._key(session_id), folder=folder))

    def give(self, database: Database, session_id: str, owner: str | None) -> None:
        """Note whose a new session is, in the transaction that makes it. A store for one person keeps no owners."""

    def branch(
        self, session_id: str, turn: int, *, title: str | None = None, owner: str | None = None
    ) -> SessionMeta:
        parent = self.meta(session_id)
        row = self._row(session_id)
        key, span = row.key, self._span(self._stretches(row), turn)
        if span is None:
            raise TurnUnknown(f"session {session_id} has no turn {turn} to branch from")
        if span.last is None:
            raise JournalError(
                f"turn {turn} of session {session_id} is not finished; let it end, then branch"
            )
        title = None if title is None else as_one_line(title)
        child, now, end = uuid.uuid4().hex, time.time(), span.last
        called = title or parent.title
        then = self.timeline(session_id, upto=end)
        changes = self._changed_since(session_id, then)
        lore = self._lore_since(session_id, turn, end)
        started = SessionStarted(
            session=child, story=parent.story, title=title, parent_session=session_id, parent_turn=turn
        )

        def insert(database: Database) -> None:
            rows = database.execute(
                "INSERT INTO sessions (id, story, title, folder, created, updated, turns, last_seq, bytes, "
                "parent, parent_turn, parent_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?) RETURNING key",
                (child, parent.story, called, parent.folder, now, now, then.standing, end, key, turn, end),
            )
            records = [
                Record(seq, now, None, one) for seq, one in enumerate([started, *changes, *lore], end + 1)
            ]
            self.append(database, int(rows[0][0]), end, records, True, None)
            self.give(database, child, owner)

        self.writer.run(insert)
        return self.meta(child)

    def _changed_since(self, session_id: str, then: Timeline) -> list[AnyRuntimeEvent]:
        """Return what turns that stood then got after their end: names, and edited text."""
        now = self.timeline(session_id)
        names = [
            Checkpoint(name=name, turn=turn)
            for name, turn in {**now.dropped, **now.checkpoints}.items()
            if turn in then.turns and then.checkpoints.get(name) != turn
        ]
        texts = [
            NarrationEdited(turn=turn, text=now.edited.get(turn))
            for turn in then.turns
            if now.edited.get(turn) != then.edited.get(turn)
        ]
        return [*names, *texts]

    def _lore_since(self, session_id: str, turn: int, end: int) -> list[AnyRuntimeEvent]:
        """Return what the player changed in the lore between the turn that ended at `end` and the next that stands:
        that is no part of a turn, and a branch has it.
        """
        later = [one for one in self.timeline(session_id).turns if one > turn]
        next_turn = self._span(self._stretches(self._row(session_id)), later[0]) if later else None
        upto = None if next_turn is None else next_turn.first - 1
        then, now = (self.restore(session_id, upto=one).memory for one in (end, upto))
        changes = changes_between(then, now, LORE)
        if not changes:
            return []
        return [Committed(call="", changes=[*changes], inverse=[*changes_between(now, then, LORE)])]


def _counted(record: Record) -> int:
    """Return the change to the number of standing turns. The opening is not a turn the player took."""
    event = record.event
    if isinstance(event, TurnCommitted | TurnRedone):
        return int(event.turn > 0)
    return -int(event.turn > 0) if isinstance(event, TurnUndone) else 0


def _named_by(row: SessionRow, records: Sequence[Record]) -> dict[str, str | None]:
    """Return story and title as the beginning of a session gives them, where its row has none."""
    for event in (record.event for record in records):
        if isinstance(event, SessionStarted) and event.parent_session is None:
            return {
                "story": event.story if row.story is None else row.story,
                "title": event.title if row.title is None else row.title,
            }
    return {}
