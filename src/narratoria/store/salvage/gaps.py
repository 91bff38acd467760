"""A session with lost records, rebuilt as far as possible: a snapshot bridges the gap before it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from narratoria.errors import JournalError
from narratoria.events import AssetStored, JsonObject, RecordsLost, SessionStarted, TurnCommitted, TurnStarted
from narratoria.session.asset_records import AssetChanges
from narratoria.session.record import Record
from narratoria.session.session import Session
from narratoria.store import record_batches as chunks
from narratoria.store.restoration import Restoration, SessionSnapshot
from narratoria.store.salvage.found_rows import DAMAGE
from narratoria.store.sql_reading import SqlReader
from narratoria.store.store import SessionMeta
from narratoria.store.timeline import Timeline


class BridgedRecords:
    """The records of one session in order, with gaps and the snapshots that bridge them.

    Turns that a gap has cut are left out, so that no half of one is ever taken back. Turns behind a gap are kept even
    if the state at that time is unknown: they can be read.
    """

    def __init__(
        self, meta: SessionMeta, records: list[Record], snapshots: Mapping[int, SessionSnapshot]
    ) -> None:
        self.kept: list[Record] = []
        self.lost = 0  # records in gaps that are bridged
        self._meta = meta
        self._left = records[::-1]
        self._snapshots = snapshots
        self._known = 0  # up to which record the snapshot last used knows everything
        self._bridged = [
            (one.event.first, one.seq) for one in records if isinstance(one.event, RecordsLost)
        ]  # by an earlier salvage
        self._tell()

    @property
    def reached(self) -> int:
        return self.kept[-1].seq if self.kept else 0

    def makes_a_game(self) -> bool:
        """Tell if it can be folded: a turn behind a gap may be taken back though it lies in the gap."""
        turns: dict[int | None, list[Record]] = {}
        for record in self.kept:
            turns.setdefault(record.turn, []).append(record)
        restoration = Restoration(Session(self._meta.id), Timeline(), turns.__getitem__)
        try:
            restoration.apply_all(self.kept)
        except DAMAGE:
            return False
        return True

    def _tell(self) -> None:
        while True:
            while self._left and self._follows(self._left[-1]):
                self.kept.append(self._left.pop())
            if self.reached >= self._meta.last_seq or not self._bridge():
                return

    def _follows(self, record: Record) -> bool:
        if record.seq == self.reached + 1:
            return True
        if not self.kept:  # a session may have lived before it was stored
            return isinstance(record.event, SessionStarted) and record.event.parent_session is None
        return any(first <= self.reached + 1 and record.seq <= last for first, last in self._bridged)

    def _bridge(self) -> bool:
        """Cross the next gap, if a snapshot has the state behind it."""
        while self._left:
            record = self._left[-1]
            last = record.seq - 1
            begins = record.turn is None or isinstance(record.event, TurnStarted)
            if begins and (last > 1 or self.kept or last in self._snapshots):
                if last <= self._known:
                    return self._leap(last, None)
                enough = min((seq for seq in self._snapshots if seq >= last), default=None)
                if enough is None:
                    break
                return self._leap(last, enough)
            self._left.pop()
        self._left.clear()
        newest = max(self._snapshots, default=0)
        if newest > max(self.reached, self._known):
            return self._leap(newest, newest)
        return self._known > self.reached and self._leap(self._known, None)

    def _leap(self, last: int, snapshot: int | None) -> bool:
        self._drop_open_turn()
        first = self.reached + 1
        if not self.kept:
            self.kept.append(self._beginning(self._snapshots.get(1) if last == 1 else None))
            if last == 1:
                return True
        resumed = None if snapshot is None else self._snapshots[snapshot]
        if resumed is not None:
            self._known = resumed.seq
            for seq, stored in sorted(resumed.assets.items()):
                if self.reached < seq < last:
                    self.kept.append(Record(seq, self._meta.updated, None, stored))
        content: JsonObject | None = None if resumed is None else msgspec.to_builtins(resumed, str_keys=True)
        loss = RecordsLost(first=first, last=last, resumed=content)
        self.kept.append(Record(last, self._meta.updated, None, loss))
        self.lost += loss.count
        return True

    def _drop_open_turn(self) -> None:
        end = len(self.kept)
        for index in range(end - 1, -1, -1):
            event = self.kept[index].event
            if isinstance(event, TurnCommitted):
                break
            if isinstance(event, TurnStarted):
                end = index  # and on: a turn that a crash cut short was begun twice
        del self.kept[end:]

    def _beginning(self, snapshot: SessionSnapshot | None) -> Record:
        """Return the first record, made from the session's row and its first snapshot."""
        meta = self._meta
        held: dict[str, Any] = {}
        if snapshot is not None:
            permissions = [*snapshot.permissions, *snapshot.claimed]
            held = {
                "state": snapshot.state,
                "permissions": permissions,
                "imported": bool(snapshot.claimed),  # then nobody knows of the others whose they were
            }
        started = SessionStarted(session=meta.id, story=meta.story, title=meta.title, **held)
        return Record(1, meta.created, None, started)


def snapshots_of(source: SqlReader, session_id: str) -> dict[int, SessionSnapshot]:
    """Return a session's snapshots by record, each with all its assets, as far as they are known."""
    found: dict[int, SessionSnapshot] = {}
    assets: dict[int, AssetStored] = {}
    for seq, data in source.snapshots(session_id):
        changes, snapshot = _opened(data)
        if changes is not None:
            changes.apply_to(assets)
        elif snapshot is not None:
            assets = dict(snapshot.assets)  # as in version 1
        if snapshot is not None and snapshot.seq == seq:
            found[seq] = msgspec.structs.replace(snapshot, assets=dict(assets))
    return found


def _opened(data: bytes) -> tuple[AssetChanges | None, SessionSnapshot | None]:
    """Return the readable ones of the two parts of a snapshot."""
    what = "a snapshot"
    first, main = chunks.parted(data, what)
    changes: AssetChanges | None = None
    snapshot: SessionSnapshot | None = None
    with suppress(JournalError):
        changes = chunks.read_as(AssetChanges, first, what) if first else None
    with suppress(JournalError):
        snapshot = chunks.read_as(SessionSnapshot, chunks.unpack(main, what), what)
    return changes, snapshot
