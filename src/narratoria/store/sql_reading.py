"""Reading a store in SQL: its sessions, their records, and sessions restored from them.

A branch has no copy of the past it shares: its records are stretches of its ancestors' and then its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from narratoria.errors import JournalError, unwritten
from narratoria.events import AssetStored
from narratoria.session.asset_records import AssetChanges
from narratoria.session.assets import AssetStore
from narratoria.session.record import Record
from narratoria.session.resources.resources import ResourceRegistry
from narratoria.session.session import Session
from narratoria.store import record_batches as chunks
from narratoria.store.restoration import Restoration, SessionSnapshot
from narratoria.store.store import (
    LARGEST,
    Metas,
    Records,
    SessionMeta,
    SessionUnknown,
    Spans,
    TurnSpan,
    TurnUnknown,
)
from narratoria.store.timeline import Timeline
from narratoria.store.writer import Database
from narratoria.unicode_text import legible

_META: Final = """SELECT s.id, s.story, s.title, s.folder, s.created, s.updated, s.turns, s.last_seq, s.bytes,
    p.id, s.parent_turn FROM sessions s LEFT JOIN sessions p ON p.key = s.parent WHERE s.hidden = 0"""
_META_FIELDS: Final = (
    "id", "story", "title", "folder", "created", "updated", "turns", "last_seq", "bytes", "parent",
    "parent_turn",
)  # fmt: skip
Stretch = tuple[int, int, int]  # (session key, after, upto): which records of which session
Stretches = list[Stretch]  # inside the class, `list` is the method
Rows = list[tuple[Any, ...]]


class SqlReader:
    """The reading half of a store. It has one connection, used by one thread at a time."""

    def __init__(self, assets: AssetStore) -> None:
        self.assets = assets
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
            return self._reader.execute(sql, values)

    def close(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    # --- restoring -----------------------------------------------------------------------------------------

    def restore(self, session_id: str, *, upto: int | None = None) -> Session:
        return self._restore(session_id, upto).session

    def timeline(self, session_id: str, *, upto: int | None = None) -> Timeline:
        """Return the timeline of a session, now or at record `upto`."""
        return self._restore(session_id, upto).timeline

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
        key, last = self._key_and_last(session_id, hidden=hidden)
        restoration = Restoration(session, Timeline(), partial(self._read_turn, session_id, key, last))
        upto = last if upto is None else min(upto, last)
        stretches = self._stretches(key, upto)
        found = self._newest_snapshot(stretches)
        if found is not None:
            what = f"a snapshot of session {session_id}"
            restoration.load(
                _snapshot(chunks.parted(found, what)[1], what), partial(self._assets_at, session_id, key)
            )
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
        session.seq = self._key_and_last(session.id)[1]
        return restoration.open_records

    def _newest_snapshot(self, stretches: Sequence[Stretch]) -> bytes | None:
        for key, _, upto in reversed(stretches):
            rows = self.query(
                "SELECT data FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
                (key, upto),
            )
            if rows:
                return bytes(rows[0][0])
        return None

    def _assets_at(self, session_id: str, key: int, seq: int) -> dict[int, AssetStored]:
        """Return the assets that stood at the snapshot `seq`: the changes of each snapshot up to it, in order."""
        found: dict[int, AssetStored] = {}
        for part, _, upto in self._stretches(key, seq):
            rows = self.query(
                "SELECT data FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq", (part, upto)
            )
            for (data,) in rows:
                what = f"a snapshot of session {session_id}"
                changes, main = chunks.parted(bytes(data), what)
                if changes:
                    chunks.read_as(AssetChanges, changes, f"the assets in {what}").apply_to(found)
                else:
                    found = dict(_snapshot(main, what).assets)
        return found

    def snapshots(self, session_id: str) -> Iterator[tuple[int, bytes]]:
        """Yield the snapshots of a session and of the past it shares, by their record, oldest first, packed."""
        for key, _, upto in self._stretches(*self._key_and_last(session_id)):
            for (seq,) in self.query(
                "SELECT seq FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq", (key, upto)
            ):
                ((data,),) = self.query(
                    "SELECT data FROM snapshots WHERE session = ? AND seq = ?", (key, seq)
                )
                yield int(seq), bytes(data)

    # --- knowing -----------------------------------------------------------------------------------------

    def list(self) -> Metas:
        return [_meta(row) for row in self.query(_META + " ORDER BY s.updated DESC, s.key DESC")]

    def meta(self, session_id: str) -> SessionMeta:
        rows = self.query(_META + " AND s.id = ?", (_as_id(session_id),))
        if not rows:
            raise _unknown(session_id)
        return _meta(rows[0])

    def find(self, prefix: str) -> SessionMeta:
        pattern = _as_id(prefix).replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_") + "%"
        rows = self.query(_META + " AND s.id LIKE ? ESCAPE '\\' ORDER BY s.id LIMIT 3", (pattern,))
        exact = [row for row in rows if row[0] == prefix]
        if not prefix or not rows:
            raise _unknown(prefix)
        if len(rows) > 1 and not exact:
            raise JournalError(
                f"several sessions begin with {prefix!r}: {', '.join(row[0] for row in rows)} …"
            )
        return _meta((exact or rows)[0])

    def _key(self, session_id: str) -> int:
        return self._key_and_last(session_id)[0]

    def _key_and_last(self, session_id: str, *, hidden: bool = False) -> tuple[int, int]:
        rows = self.query(
            "SELECT key, last_seq FROM sessions WHERE id = ? AND hidden = ?",
            (_as_id(session_id), int(hidden)),
        )
        if not rows:
            raise _unknown(session_id)
        return int(rows[0][0]), int(rows[0][1])

    def _stretches(self, key: int, upto: int) -> Stretches:
        """Return the sessions whose records make up a session, from the eldest ancestor to itself."""
        found: Stretches = []
        current: int | None = key
        while current is not None:
            parent, parent_seq = self.query(
                "SELECT parent, parent_seq FROM sessions WHERE key = ?", (current,)
            )[0]
            start = parent_seq or 0
            if start < upto or not found:
                found.append((current, start, upto))
            current, upto = parent, min(upto, start)
        return found[::-1]

    # --- reading -----------------------------------------------------------------------------------------

    def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Iterator[Record]:
        key, last = self._key_and_last(session_id)
        return self._read(self._stretches(key, last), after, limit)

    def _read(self, stretches: Sequence[Stretch], after: int, limit: int | None) -> Iterator[Record]:
        left = limit
        for key, start, upto in stretches:
            position = max(after, start)
            while position < upto and left != 0:
                rows = self.query(
                    "SELECT last_seq, data FROM batches WHERE session = ? AND last_seq > ? "
                    "AND first_seq <= ? ORDER BY last_seq LIMIT 64",
                    (key, position, upto),
                )
                for last, data in rows:
                    what = f"the batch of records up to {last} of session key {key}"
                    for record in chunks.read_records(bytes(data), what):
                        if position < record.seq <= upto and left != 0:
                            yield record
                            left = None if left is None else left - 1
                if not rows:
                    break
                if int(rows[-1][0]) <= position:
                    raise JournalError(
                        f"the batches of session key {key} are damaged (they are out of order)"
                    )
                position = int(rows[-1][0])

    def read_turn(self, session_id: str, turn: int) -> Records:
        return self._read_turn(session_id, *self._key_and_last(session_id), turn)

    def _read_turn(self, session_id: str, key: int, last: int, turn: int) -> Records:
        stretches = self._stretches(key, last)
        span = self._span(stretches, turn)
        if span is None:
            raise TurnUnknown(f"session {session_id} has no turn {turn}")
        limit = last if span.last is None else span.last
        return [
            record
            for record in self._read(
                [(key, max(start, span.first - 1), min(upto, limit)) for key, start, upto in stretches],
                0,
                None,
            )
            if record.turn == turn
        ]

    def _span(self, stretches: Sequence[Stretch], turn: int) -> TurnSpan | None:
        if not 0 <= turn < LARGEST:
            return None
        for key, _, upto in reversed(stretches):
            rows = self.query(
                "SELECT turn, first_seq, last_seq FROM turns "
                "WHERE session = ? AND turn = ? AND first_seq <= ?",
                (key, turn, upto),
            )
            if rows:
                return TurnSpan(*rows[0])
        return None

    def turns(self, session_id: str) -> Spans:
        key, last = self._key_and_last(session_id)
        return [
            TurnSpan(*row)
            for one, _, upto in self._stretches(key, last)
            for row in self.query(
                "SELECT turn, first_seq, last_seq FROM turns "
                "WHERE session = ? AND first_seq <= ? ORDER BY turn",
                (one, upto),
            )
        ]

    def sharing(self, session_id: str, turn: int) -> dict[str, Timeline]:
        """Return the other sessions whose past has this very turn, taken back or not, with their timelines."""
        key, last = self._key_and_last(session_id)
        found: dict[int, tuple[str, bool]] = {}
        for owner, _, upto in self._stretches(key, last):
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
    return SessionMeta(**dict(zip(_META_FIELDS, row, strict=True)))


def _stepped(records: Iterable[Record], step: Callable[[], None]) -> Iterator[Record]:
    for record in records:
        step()
        yield record


def _as_id(session_id: str) -> str:
    """Return an id that the database can be asked for; no session has one that it cannot."""
    if legible(session_id) != session_id:
        raise _unknown(legible(session_id))
    return session_id


def _unknown(session_id: str) -> SessionUnknown:
    return SessionUnknown(
        f"there is no session {session_id!r}; `narratoria sessions list` shows those there are"
    )


def _snapshot(packed: bytes, what: str) -> SessionSnapshot:
    found: SessionSnapshot = chunks.read_as(SessionSnapshot, chunks.unpack(packed, what), what)
    return found
