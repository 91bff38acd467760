"""The rows of a store in SQL, each checked against its checksum as it is read.

Rows that an older version wrote have none, and are taken as they are. From the first batch on that has a checksum, one
without is damage.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from narratoria.errors import JournalError, unwritten
from narratoria.store import checksums
from narratoria.store.checksums import BatchChain
from narratoria.store.store import JournalDamaged, SessionMeta, SessionUnknown, TurnSpan
from narratoria.store.writer import ConnectionLost, Database

Rows = list[tuple[Any, ...]]
Sum = bytes  # inside the class, `bytes` is a column
Seal = Sum | None


class SessionRow(NamedTuple):
    """A row as it is stored. `seal` is None in one that was last written before there were checksums."""

    key: int
    id: str
    story: str | None
    title: str | None
    folder: str | None
    created: float
    updated: float
    turns: int
    last_seq: int
    bytes: int
    parent: int | None
    parent_turn: int | None
    parent_seq: int | None
    hidden: int
    chained: int | None  # the last record without a checksum; None: no batch has one
    head: Seal  # the sum of its last batch
    seal: Seal

    @property
    def whole(self) -> bool:
        if self.seal is None:
            return self.chained is None
        try:
            return self.seal == self.right_seal(self.stays)
        except (struct.error, TypeError):  # damage has made something else of a number
            return False

    @property
    def stays(self) -> Sum:
        """The columns that no batch changes, once the chain has begun."""
        return checksums.lasting((*self[:6], *self[10:15]))

    def right_seal(self, stays: Sum) -> Sum:
        return checksums.growing_seal(stays, self.updated, self.turns, self.last_seq, self.bytes, self.head)

    @property
    def link(self) -> Sum:
        """The sum that the checksum of the next batch begins with."""
        return self.head or checksums.first_link(self.id)

    def meta(self, parent: str | None) -> SessionMeta:
        return SessionMeta(
            id=self.id,
            story=self.story,
            title=self.title,
            folder=self.folder,
            created=self.created,
            updated=self.updated,
            turns=self.turns,
            last_seq=self.last_seq,
            bytes=self.bytes,
            parent=parent,
            parent_turn=self.parent_turn,
            damaged=not self.whole,
        )


class GrowingRow:
    """The row of a session as this process has written it last."""

    __slots__ = ("bytes", "last_seq", "link", "seal", "stays", "turns", "updated")

    def __init__(self, row: SessionRow) -> None:
        self.stays = row.stays
        self.updated, self.turns, self.last_seq, self.bytes = row.updated, row.turns, row.last_seq, row.bytes
        self.link, self.seal = row.link, row.seal

    def grow(self, last: int, ts: float, size: int, turns: int, link: Sum) -> tuple[Any, ...]:
        """Add a batch; return the new values of the columns that it changes, the checksum last."""
        self.last_seq, self.link = last, link
        self.updated = updated = max(ts, self.updated)
        self.turns = turns = self.turns + turns
        self.bytes = size = self.bytes + size
        self.seal = seal = checksums.growing_seal(self.stays, updated, turns, last, size, link)
        return updated, turns, last, size, link, seal


class Stretch(NamedTuple):
    """The records of one session after `after`, up to `upto`."""

    key: int
    after: int
    upto: int
    id: str
    chained: int | None
    head: Seal = None  # the sum of its last batch, if that is the one with record `upto`


Stretches = list[Stretch]
StoredBatches = Iterator[tuple[int, bytes]]  # (last record, data)
COLUMNS: Final = ", ".join(f"s.{name}" for name in SessionRow.__annotations__)
ROW: Final = f"SELECT {COLUMNS} FROM sessions s WHERE s.key = ?"  # noqa: S608 - our own names
_MANY: Final = 64  # batches that are asked for at once


def change_row(database: Database, row: SessionRow, **changes: Any) -> SessionRow:
    """Write changes to a row that was read in this transaction, and a new checksum; return the new row."""
    new = row._replace(**changes)
    changes["seal"] = new.right_seal(new.stays)
    new = new._replace(seal=changes["seal"])
    columns = ", ".join(f"{name} = ?" for name in changes)
    database.execute(f"UPDATE sessions SET {columns} WHERE key = ?", (*changes.values(), row.key))  # noqa: S608
    return new


class SqlRows:
    """The rows of a store, each checked as it is read. There is one connection, used by one thread at a time."""

    remedy: str = "Restore a backup of the database"

    def __init__(self) -> None:
        self._reader: Database | None = None
        self._reading = threading.RLock()

    def _connect_reader(self) -> Database:
        raise unwritten(self, "_connect_reader")

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        with self._reading:
            if self._reader is None:
                self._reader = self._connect_reader()
            try:
                return self._reader.execute(sql, values)
            except JournalError:
                if not self._reader.broken:
                    raise
            self._reader.close()
            self._reader = None
            self._reader = self._connect_reader()
            try:
                return self._reader.execute(sql, values)
            except JournalError as error:
                if not self._reader.broken:
                    raise
                raise ConnectionLost(str(error)) from None

    def close(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    # --- sessions ----------------------------------------------------------------------------------------

    def _check_row(self, row: SessionRow) -> None:
        if not row.whole:
            raise JournalDamaged(
                f"session {row.id} is damaged: its row in the table of sessions differs from its checksum, so its "
                f"title, its times or the number of its records are not what was written. {self.remedy}"
            )

    def _stretches(self, row: SessionRow, upto: int | None = None) -> Stretches:
        """Return the sessions whose records make up a session, from the eldest ancestor to itself."""
        found: Stretches = []
        seen: set[int] = set()
        end = row.last_seq if upto is None else upto
        while True:
            seen.add(row.key)
            start = row.parent_seq or 0
            if start < end or not found:
                head = row.head if end == row.last_seq else None
                found.append(Stretch(row.key, start, end, row.id, row.chained, head))
            end = min(end, start)
            if row.parent is None:
                return found[::-1]
            if row.parent in seen:
                raise JournalDamaged(f"session {row.id} is damaged: it is its own ancestor. {self.remedy}")
            row = self._row_at(row.parent)

    def _row_at(self, key: int) -> SessionRow:
        rows = self.query(ROW, (key,))
        if not rows:
            raise JournalDamaged(
                f"the session with key {key} is not where its branches look for it; it was deleted just now, or is "
                f"lost to damage. {self.remedy}"
            )
        row = SessionRow(*rows[0])
        self._check_row(row)
        return row

    # --- batches -----------------------------------------------------------------------------------------

    def _batches(self, stretches: Sequence[Stretch], stretch: Stretch, position: int) -> StoredBatches:
        """Yield the batches with the records of a stretch behind `position`, each once it is checked."""
        chain = self._chain_at(stretches, stretch, position)
        while position < stretch.upto:
            rows = self._next_batches(stretch, position)
            if not rows and stretch.chained is None:
                return  # nothing told then how far the batches go
            if not rows:
                raise self._missing(stretches, stretch, position)
            for last, first, checksum, data in rows:
                fault = chain.fault(first, last, checksum, data)
                if not fault and last <= position:
                    fault = "is out of order"
                if fault:
                    raise self._damaged(stretches, f"the batch of records {first} to {last} {fault}")
                yield last, data
                position = last
        if stretch.head is not None and stretch.head != chain.link:
            raise self._damaged(stretches, f"the batch up to record {stretch.upto} is not its last one")

    def _next_batches(self, stretch: Stretch, position: int) -> Rows:
        return self.query(
            "SELECT last_seq, first_seq, checksum, data FROM batches WHERE session = ? AND last_seq > ? "
            "AND first_seq <= ? ORDER BY last_seq LIMIT ?",
            (stretch.key, position, stretch.upto, _MANY),
        )

    def _chain_at(self, stretches: Sequence[Stretch], stretch: Stretch, position: int) -> BatchChain:
        """Return the chain of a stretch as it stands behind a record. The batch before is checked too: damage to its
        number leads the database to another one.
        """
        link = b""
        if stretch.chained is not None and position > stretch.chained:
            rows = self.query(
                "SELECT last_seq, first_seq, checksum, data FROM batches WHERE session = ? AND last_seq <= ? "
                "ORDER BY last_seq DESC LIMIT 1",
                (stretch.key, position),
            )
            for last, first, checksum, data in rows:
                if checksum is not None and not checksums.fits_batch(checksum, first, last, data):
                    raise self._damaged(
                        stretches, f"the batch of records {first} to {last} differs from its checksum"
                    )
                link = b"" if checksum is None else checksums.own_sum(checksum)
        return BatchChain(stretch.chained, link or checksums.first_link(stretch.id))

    def _missing(self, stretches: Sequence[Stretch], stretch: Stretch, position: int) -> JournalError:
        if not self.query("SELECT 1 FROM sessions WHERE key = ?", (stretch.key,)):
            return unknown(stretch.id)  # deleted while it was read
        return self._damaged(stretches, f"the batch with record {position + 1} is missing")

    # --- snapshots and turns -----------------------------------------------------------------------------

    def _newest_snapshot(self, stretches: Sequence[Stretch]) -> bytes | None:
        for stretch in reversed(stretches):
            rows = self.query(
                "SELECT seq, checksum, data FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
                (stretch.key, stretch.upto),
            )
            if rows:
                return self._checked_snapshot(stretches, stretch, *rows[0])
        return None

    def _checked_snapshot(
        self, stretches: Sequence[Stretch], stretch: Stretch, seq: Any, checksum: Any, data: Any
    ) -> bytes:
        """Return a snapshot if it is as it was written, and of this session."""
        sound = isinstance(seq, int) and isinstance(data, bytes)
        if sound and stretch.chained is not None and seq > stretch.chained:
            sound = checksums.fits_snapshot(checksum, stretch.id, seq, data)
        if not sound:
            raise self._damaged(stretches, f"its snapshot at record {seq} differs from its checksum")
        return bytes(data)

    def _snapshots(self, stretches: Sequence[Stretch]) -> Iterator[tuple[int, bytes]]:
        link = b""  # of the snapshot before, none if that was written without a checksum
        for stretch in stretches:
            places = self.query(
                "SELECT seq FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq",
                (stretch.key, stretch.upto),
            )
            for (seq,) in places:
                rows = self.query(
                    "SELECT checksum, data FROM snapshots WHERE session = ? AND seq = ?", (stretch.key, seq)
                )
                checksum, data = rows[0] if rows else (None, None)
                found = self._checked_snapshot(stretches, stretch, seq, checksum, data)
                if checksum is not None:
                    if not checksums.links_to(checksum, link or checksums.first_link(stretch.id)):
                        raise self._damaged(stretches, f"a snapshot before that at record {seq} is missing")
                    link = checksums.own_sum(checksum)
                yield seq, found

    def _checked_span(self, stretches: Sequence[Stretch], stretch: Stretch, row: tuple[Any, ...]) -> TurnSpan:
        *span, seal = row
        if seal is None:  # of an older version, or of a turn that began in one
            sound = stretch.chained is None or (isinstance(span[1], int) and span[1] <= stretch.chained)
        else:
            sound = seal == checksums.seal((stretch.key, *span))
        if not sound:
            raise self._damaged(stretches, f"the row of its turn {span[0]} differs from its checksum")
        return TurnSpan(*span)

    # --- damage ------------------------------------------------------------------------------------------

    def _damaged(self, stretches: Sequence[Stretch], what: str) -> JournalDamaged:
        """Return the error that names the session, the place, what is whole, and what to do."""
        whole = self._whole_upto(stretches)
        turns: list[int] = []
        with suppress(JournalError):
            for one in stretches:
                rows = self.query(
                    "SELECT max(turn) FROM turns WHERE session = ? AND last_seq <= ?",
                    (one.key, min(whole, one.upto)),
                )
                turns += [row[0] for row in rows if isinstance(row[0], int)]
        turn = f", the end of turn {max(turns)} included" if turns else ""
        kept = f"it is whole up to record {whole}{turn}" if whole else "nothing of it is known to be whole"
        return JournalDamaged(f"session {stretches[-1].id} is damaged: {what}; {kept}. {self.remedy}")

    def _whole_upto(self, stretches: Sequence[Stretch]) -> int:
        reached = 0
        for stretch in stretches:
            chain, position = BatchChain(stretch.chained, checksums.first_link(stretch.id)), stretch.after
            while position < stretch.upto:
                try:
                    rows = self._next_batches(stretch, position)
                except JournalError:
                    return reached
                if not rows:
                    return reached
                for last, first, checksum, data in rows:
                    if chain.fault(first, last, checksum, data) or last <= position:
                        return reached
                    reached = position = min(last, stretch.upto)
        return reached


def unknown(session_id: str) -> SessionUnknown:
    return SessionUnknown(
        f"there is no session {session_id!r}; `narratoria sessions list` shows those there are"
    )
