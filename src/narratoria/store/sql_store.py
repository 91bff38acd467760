"""A store in SQL: sessions are begun, imported and deleted here. SQLite and PostgreSQL connect and lock."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Unpack

from narratoria.errors import JournalError
from narratoria.events import (
    AnyRuntimeEvent,
    AssetStored,
    Change,
    Committed,
    SessionStarted,
)
from narratoria.session.memory import MemoryAccessError
from narratoria.session.record import Record
from narratoria.session.session import Session
from narratoria.store import record_batches as chunks
from narratoria.store.imported_snapshot import Unfit
from narratoria.store.journal import Journal
from narratoria.store.restoration import take_snapshot
from narratoria.store.sql_versions import TABLES
from narratoria.store.sql_writing import SqlWriter
from narratoria.store.store import (
    PLAIN_ADOPTION,
    AboutSession,
    Adoption,
    OutsideWorld,
    SessionMeta,
    is_plain_id,
    notes_folder,
)
from narratoria.store.timeline import Timeline
from narratoria.store.writer import Database
from narratoria.unicode_text import as_one_line

_ADOPTED: Final = 512  # records in a batch of an import ...
_ADOPTED_BYTES: Final = 4 * 1024 * 1024  # ... which ends early when it has so many bytes
_SWEEP_AGE: Final = 3600.0  # an import that is still running is not swept away


class SqlStore(SqlWriter):
    """Sessions in SQL tables. A subclass connects, and grants the right to write."""

    def create(self, session: Session | None = None, **about: Unpack[AboutSession]) -> Journal:
        session = session or Session(assets=self.assets)
        meta = SessionMeta(
            id=session.id, story=about.get("story"), title=about.get("title"), folder=about.get("folder")
        )
        title = None if meta.title is None else as_one_line(meta.title)
        session.assets = self.assets
        now = session.clock()
        lease = self.lease(session.id)
        started = SessionStarted(
            session=session.id,
            story=meta.story,
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
                (session.id, meta.story, title, meta.folder, now, now, session.seq),
            )
            key = int(rows[0][0])
            self.append(database, key, session.seq, records, True, beginning.content)
            self.give(database, session.id, about.get("owner"))
            return key

        try:
            key = self.writer.run(insert)
        except BaseException:
            lease.release()
            raise
        session.seq = records[-1].seq
        session.asset_records.kept(beginning.assets, beginning.seq)
        return Journal(self, session, key, lease, Timeline(), snapshot_size=len(beginning.content) // 4)

    def open(self, session_id: str, **world: Unpack[OutsideWorld]) -> Journal:
        self.meta(session_id)
        lease = self.lease(session_id)
        try:
            restoration = self._restore(session_id, None, **world)
            key = self._key(session_id)
        except BaseException:
            lease.release()
            raise
        return Journal(
            self, restoration.session, key, lease, restoration.timeline, open_records=restoration.open_records
        )

    def adopt(
        self, meta: SessionMeta, records: Iterable[Record], how: Adoption = PLAIN_ADOPTION
    ) -> SessionMeta:
        # It stays hidden until it is complete, so that a crash half way shows nothing.
        name = meta.id if is_plain_id(meta.id) else uuid.uuid4().hex
        if self.query("SELECT 1 FROM sessions WHERE id = ?", (name,)):
            name = uuid.uuid4().hex
        key = self.writer.run(lambda database: _insert_hidden(database, name, meta))
        try:
            after = 0
            for batch in _batched(records):
                absent = self._absent(batch) if how.lacking else frozenset()
                job = partial(self._adopt_batch, key=key, after=after, batch=batch, absent=absent)
                with self.brought(_hashes(batch) - absent):
                    self.writer.run(job, durable=False)
                after = batch[-1].seq
            self._check_adopted(name, key, how.step)
            for stored in how.accepted():
                with self.brought([stored.hash]):
                    self.writer.run(partial(self.keep_asset, stored=stored, durable=True))
            self.writer.run(partial(self._show, key=key, name=name, owner=how.owner))
        except BaseException:
            self.writer.run(lambda database: self._forget(database, key))
            raise
        return self.meta(name)

    def _show(self, database: Database, key: int, name: str, owner: str | None) -> None:
        self._change(database, key, hidden=0)
        self.give(database, name, owner)

    def _absent(self, batch: Sequence[Record]) -> frozenset[str]:
        return frozenset(one for one in _hashes(batch) if one not in self.assets)

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
            restored = self._restore(name, None, hidden=True, step=step)
        except Unfit:
            raise
        except (
            MemoryAccessError,
            ValueError,
            LookupError,
            TypeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise JournalError(f"the records of session {name} do not make a game ({error!r})") from None
        turns = restored.timeline.standing  # those too whose own records were lost to damage
        self.writer.run(partial(self._change, key=key, turns=turns))
        if restored.timeline.open is None:
            content = take_snapshot(restored.session, restored.timeline).content

            def keep(database: Database) -> None:
                row = self._row_to_write(database, key)
                if row is not None:
                    self._keep_snapshot(database, key, row.last_seq, content)

            self.writer.run(keep)

    def sweep(self) -> int:
        def collect(database: Database) -> int:
            left = database.execute(
                "SELECT key FROM sessions s WHERE hidden = 1 "
                "AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent = s.key) AND updated < ?",
                (time.time() - _SWEEP_AGE,),
            )
            for (key,) in left:
                self._forget(database, int(key))
            return len(left)

        return self.writer.run(collect)

    def delete(self, session_id: str) -> None:
        key = self._key(session_id)
        lease = self.lease(
            session_id
        )  # a session that is being played is not pulled away from under the player
        try:
            self.writer.run(lambda database: self._forget(database, key))
            shutil.rmtree(notes_folder(self.assets, session_id), ignore_errors=True)
        finally:
            lease.release()

    def _forget(self, database: Database, key: int) -> None:
        """Delete a session, or hide it while branches share its past; then its parent, if that waited for it."""
        current: int | None = key
        while current is not None:
            if database.execute("SELECT 1 FROM sessions WHERE parent = ?", (current,)):
                self._change(database, current, hidden=1)
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


def _insert_hidden(database: Database, name: str, meta: SessionMeta) -> int:
    rows = database.execute(
        "INSERT INTO sessions (id, story, title, folder, created, updated, turns, last_seq, bytes, hidden) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 1) RETURNING key",
        (name, meta.story, meta.title, meta.folder, meta.created, meta.updated),
    )
    return int(rows[0][0])


def _hashes(batch: Iterable[Record]) -> set[str]:
    return {record.event.hash for record in batch if isinstance(record.event, AssetStored)}


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
