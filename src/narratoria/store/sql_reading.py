"""Reading a store in SQL: its sessions, their records, and sessions restored from them.

A branch has no copy of the past it shares: its records are stretches of its ancestors' and then its own. Whatever is
read is checked against its checksum on the way (`JournalDamaged`); records that a snapshot stands for are not read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from narratoria.errors import JournalError
from narratoria.events import AssetStored
from narratoria.session.asset_records import AssetChanges
from narratoria.session.assets import AssetStore
from narratoria.session.record import Record
from narratoria.session.resources.resources import ResourceRegistry
from narratoria.session.session import Session
from narratoria.store import checksums
from narratoria.store import record_batches as chunks
from narratoria.store.restoration import Restoration, SessionSnapshot
from narratoria.store.sql_rows import COLUMNS, SessionRow, SqlRows, Stretch, unknown
from narratoria.store.store import (
    LARGEST,
    Faults,
    JournalDamaged,
    Metas,
    Records,
    SessionMeta,
    Spans,
    TurnSpan,
    TurnUnknown,
)
from narratoria.store.timeline import Timeline
from narratoria.store.writer import Database
from narratoria.unicode_text import legible

_ALL: Final = f"SELECT {COLUMNS}, p.id FROM sessions s LEFT JOIN sessions p ON p.key = s.parent"  # noqa: S608
_META: Final = _ALL + " WHERE s.hidden = 0"
_STRAY: Final = """SELECT b.session, b.last_seq FROM batches b LEFT JOIN sessions s ON s.key = b.session
    WHERE COALESCE(s.last_seq, 0) < b.last_seq LIMIT 10"""


class SqlReader(SqlRows):
    """The reading half of a store."""

    def __init__(self, assets: AssetStore) -> None:
        super().__init__()
        self.assets = assets

    # --- restoring -----------------------------------------------------------------------------------------

    def restore(self, session_id: str, *, upto: int | None = None) -> Session:
        return self._restore(session_id, upto).session

    def timeline(self, session_id: str, *, upto: int | None = None) -> Timeline:
        """Return the timeline of a session, now or at record `upto`."""
        return self._restore(session_id, upto).timeline

    def glimpse(self, session_id: str) -> tuple[Timeline, int]:
        """Return the timeline of a session as it is now, and its last record."""
        restored = self._restore(session_id, None)
        return restored.timeline, restored.session.seq

    def _restore(
        self,
        session_id: str,
        upto: int | None,
        *,
        resources: ResourceRegistry | None = None,
        clock: Callable[[], float] | None = None,
        hidden: bool = False,
        step: Callable[[], None] | None = None,
    ) -> Restoration:
        session = Session(session_id, assets=self.assets, resources=resources, clock=clock or time.time)
        row = self._row(session_id, hidden=hidden)
        restoration = Restoration(session, Timeline(), partial(self._read_turn, row))
        upto = row.last_seq if upto is None else min(upto, row.last_seq)
        stretches = self._stretches(row, upto)
        found = self._newest_snapshot(stretches)
        if found is not None:
            what = f"a snapshot of session {session_id}"
            restoration.load(_snapshot(chunks.parted(found, what)[1], what), partial(self._assets_at, row))
        records = self._read(stretches, session.seq, None)
        restoration.apply_all(records if step is None else _stepped(records, step))
        if session.seq > upto:
            raise JournalError(
                f"how session {session_id} stood at record {upto} was lost to damage; it is known again from "
                f"record {session.seq} on"
            )
        session.seq = upto
        return restoration

    def catch_up(self, session: Session, timeline: Timeline) -> Records:
        """Fold in the records of others since `session.seq`; return the records of a turn left open."""
        restoration = Restoration(session, timeline, lambda turn: self.read_turn(session.id, turn))
        restoration.apply_all(self.read(session.id, session.seq))
        session.seq = self._row(session.id).last_seq
        return restoration.open_records

    def _assets_at(self, row: SessionRow, seq: int) -> dict[int, AssetStored]:
        """Return the assets that stood at the snapshot `seq`: the changes of each snapshot up to it, in order."""
        found: dict[int, AssetStored] = {}
        what = f"a snapshot of session {row.id}"
        for _, data in self._snapshots(self._stretches(row, seq)):
            changes, main = chunks.parted(data, what)
            if changes:
                chunks.read_as(AssetChanges, changes, f"the assets in {what}").apply_to(found)
            else:
                found = dict(_snapshot(main, what).assets)
        return found

    def snapshots(self, session_id: str) -> Iterator[tuple[int, bytes]]:
        """Yield the snapshots of a session and of the past it shares, by their record, oldest first, packed."""
        return self._snapshots(self._stretches(self._row(session_id)))

    def unchecked(self, session_id: str) -> int:
        stretches = self._stretches(self._row(session_id))
        ends = [one.upto if one.chained is None else min(one.upto, one.chained) for one in stretches]
        return sum(max(0, end - one.after) for one, end in zip(stretches, ends, strict=True))

    def listed_assets(self, session_id: str) -> tuple[int, set[str]]:
        own = self._stretches(self._row(session_id))[-1]
        return own.after, {
            row[0] for row in self.query("SELECT hash FROM assets WHERE session = ?", (own.key,))
        }

    def table_faults(self) -> Faults:
        found = self.query(_STRAY)
        return [
            f"the batch up to record {last} belongs to no session (its key is {key})" for key, last in found
        ]

    # --- knowing -----------------------------------------------------------------------------------------

    def list(self) -> Metas:
        return self.listed()

    def listed(self, which: str = "", values: Sequence[Any] = ()) -> Metas:
        found = self.query(f"{_ALL}{which} ORDER BY s.updated DESC, s.key DESC", values)
        rows = [(SessionRow(*row[:-1]), row[-1]) for row in found]
        return [
            row.meta(parent) for row, parent in rows if not row.hidden or not row.whole
        ]  # damage hides nothing

    def meta(self, session_id: str) -> SessionMeta:
        rows = self.query(_META + " AND s.id = ?", (_as_id(session_id),))
        if not rows:
            raise self._unknown(session_id)
        self._check_row(SessionRow(*rows[0][:-1]))
        return _meta(rows[0])

    def _unknown(self, session_id: str) -> JournalError:
        """Return the error for an id that is not found, by its index: damage to that hides a session."""
        if self.query("SELECT 1 FROM sessions WHERE id || '' = ? AND hidden = 0", (session_id,)):
            return JournalDamaged(f"the index of sessions is damaged: it lacks {session_id}. {self.remedy}")
        return unknown(session_id)

    def find(self, prefix: str) -> SessionMeta:
        pattern = _as_id(prefix).replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_") + "%"
        rows = self.query(_META + " AND s.id LIKE ? ESCAPE '\\' ORDER BY s.id LIMIT 3", (pattern,))
        exact = [row for row in rows if row[1] == prefix]
        if not prefix or not rows:
            raise unknown(prefix)
        if len(rows) > 1 and not exact:
            raise JournalError(
                f"several sessions begin with {prefix!r}: {', '.join(row[1] for row in rows)} …"
            )
        return _meta((exact or rows)[0])

    def _key(self, session_id: str) -> int:
        """Return the key of a session, whatever else is wrong with it."""
        rows = self.query("SELECT key FROM sessions WHERE id = ? AND hidden = 0", (_as_id(session_id),))
        if not rows:
            raise self._unknown(session_id)
        return int(rows[0][0])

    def _row(self, session_id: str, *, hidden: bool = False) -> SessionRow:
        rows = self.query(
            f"SELECT {COLUMNS} FROM sessions s WHERE s.id = ? AND s.hidden = ?",  # noqa: S608 - our own names
            (_as_id(session_id), int(hidden)),
        )
        if not rows:
            raise self._unknown(session_id)
        row = SessionRow(*rows[0])
        self._check_row(row)
        return row

    # --- reading -----------------------------------------------------------------------------------------

    def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Iterator[Record]:
        return self._read(self._stretches(self._row(session_id)), after, limit)

    def _read(self, stretches: Sequence[Stretch], after: int, limit: int | None) -> Iterator[Record]:
        left = limit
        for stretch in stretches:
            position = max(after, stretch.after)
            if left == 0 or position >= stretch.upto:
                continue
            for last, data in self._batches(stretches, stretch, position):
                what = f"the batch of records up to {last} of session {stretch.id}"
                for record in chunks.read_records(data, what):
                    if position < record.seq <= stretch.upto and left != 0:
                        yield record
                        left = None if left is None else left - 1
                if left == 0:
                    return

    def read_turn(self, session_id: str, turn: int) -> Records:
        return self._read_turn(self._row(session_id), turn)

    def _read_turn(self, row: SessionRow, turn: int) -> Records:
        stretches = self._stretches(row)
        span = self._span(stretches, turn)
        if span is None:
            raise TurnUnknown(f"session {row.id} has no turn {turn}")
        limit = row.last_seq if span.last is None else span.last
        within = [one if one.upto <= limit else one._replace(upto=limit, head=None) for one in stretches]
        return [record for record in self._read(within, span.first - 1, None) if record.turn == turn]

    def _span(self, stretches: Sequence[Stretch], turn: int) -> TurnSpan | None:
        if not 0 <= turn < LARGEST:
            return None
        for stretch in reversed(stretches):
            rows = self.query(
                "SELECT turn, first_seq, last_seq, seal FROM turns "
                "WHERE session = ? AND turn = ? AND first_seq <= ?",
                (stretch.key, turn, stretch.upto),
            )
            if rows:
                return self._checked_span(stretches, stretch, rows[0])
        return None

    def turns(self, session_id: str) -> Spans:
        stretches = self._stretches(self._row(session_id))
        return [
            self._checked_span(stretches, stretch, row)
            for stretch in stretches
            for row in self.query(
                "SELECT turn, first_seq, last_seq, seal FROM turns "
                "WHERE session = ? AND first_seq <= ? ORDER BY turn",
                (stretch.key, stretch.upto),
            )
        ]

    def sharing(self, session_id: str, turn: int) -> dict[str, Timeline]:
        """Return the other sessions whose past has this very turn, taken back or not, with their timelines."""
        found: dict[int, tuple[str, bool]] = {}
        for stretch in self._stretches(self._row(session_id)):
            owner, upto = stretch.key, stretch.upto
            rows = self.query(
                "SELECT s.id, s.hidden, t.last_seq FROM turns t JOIN sessions s ON s.key = t.session "
                "WHERE t.session = ? AND t.turn = ? AND t.last_seq <= ?",
                (owner, turn, upto),
            )
            for name, hidden, end in rows:
                found[owner] = name, bool(hidden)
                fresh = [owner]
                while fresh:
                    children = self.query(
                        "SELECT key, id, hidden FROM sessions WHERE parent = ? AND parent_seq >= ?",
                        (fresh.pop(), end),
                    )
                    found.update({child: (name, bool(hidden)) for child, name, hidden in children})
                    fresh += [child for child, _, _ in children]
        others = [name for name, hidden in found.values() if not hidden and name != session_id]
        return {name: self.timeline(name) for name in others}

    def asset_hashes(self, session_id: str | None = None) -> set[str]:
        if session_id is None:
            return {row[0] for row in self.query("SELECT DISTINCT hash FROM assets")}
        return {r.event.hash for r in self.read(session_id) if isinstance(r.event, AssetStored)}


def _meta(row: tuple[Any, ...]) -> SessionMeta:
    return SessionRow(*row[:-1]).meta(row[-1])


class ReaderWithin(SqlReader):
    """A reader on a connection that the caller opens and closes."""

    def __init__(self, database: Database) -> None:
        super().__init__(AssetStore())
        self._reader = database

    def snapshot_link(self, key: int, upto: int) -> tuple[str, bytes]:
        """Return the id of a session, and the link for its next snapshot: the sum of the one before."""
        row = self._row_at(key)
        for stretch in reversed(self._stretches(row, upto)):
            rows = self.query(
                "SELECT checksum FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
                (stretch.key, stretch.upto),
            )
            if rows:
                return row.id, checksums.own_sum(rows[0][0] or b"") or checksums.first_link(row.id)
        return row.id, checksums.first_link(row.id)


def _stepped(records: Iterable[Record], step: Callable[[], None]) -> Iterator[Record]:
    for record in records:
        step()
        yield record


def _as_id(session_id: str) -> str:
    """Return an id that the database can be asked for; no session has one that it cannot."""
    if legible(session_id) != session_id:
        raise unknown(legible(session_id))
    return session_id


def _snapshot(packed: bytes, what: str) -> SessionSnapshot:
    found: SessionSnapshot = chunks.read_as(SessionSnapshot, chunks.unpack(packed, what), what)
    return found
