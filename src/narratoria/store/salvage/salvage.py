"""Salvage of a damaged database. The damaged file is read from a copy, and kept as it is."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from narratoria.errors import JournalError
from narratoria.events import RecordsLost, TurnCommitted
from narratoria.session.record import Record
from narratoria.store.file_lease import nobody_playing
from narratoria.store.salvage.found_rows import DAMAGE
from narratoria.store.salvage.gaps import BridgedRecords, snapshots_of
from narratoria.store.salvage.rows import rebuild
from narratoria.store.salvage.verification import check_session
from narratoria.store.sqlite import NewerVersion, SqliteStore
from narratoria.store.store import Adoption, SessionMeta

Fate = Literal["whole", "partly", "lost"]


@dataclass(slots=True)
class SavedSession:
    id: str
    title: str | None
    records: int
    expected: int  # the number of its last record, before the damage
    turns: int = 0  # that stand in what is saved
    lost_before: int = 0  # records that an earlier salvage could not read either
    doubtful: bool = False  # something in it differs from its checksum, though its records follow each other

    @property
    def readable(self) -> bool:
        """Tell if all records of the session could be read."""
        return self.records >= self.expected

    @property
    def whole(self) -> bool:
        return self.readable and not self.lost_before and not self.doubtful

    @property
    def fate(self) -> Fate:
        """The outcome for a session. Of a lost one no finished turn can be read; only the damaged file has it."""
        return "whole" if self.whole else "partly" if self.records else "lost"


@dataclass(slots=True)
class Salvaged:
    damaged: Path | None  # where the damaged file lies now; None if nothing is damaged
    sessions: list[SavedSession] = field(default_factory=list)


def salvage(path: Path) -> Salvaged:
    """Replace a damaged database by a new one with everything readable.

    Of each session the records are kept up to the first unreadable one, if a turn ended before that, and those after
    it if a snapshot has the state at that point. A sound file is left as it is, and so is one of a newer version
    (`NewerVersion`). Raises `SessionBusy` while any session in it is being played: that process would go on writing
    to the file that was moved away.
    """
    if not path.is_file():
        raise JournalError(f"{path}: no such file; there is nothing to salvage")
    with nobody_playing(path):
        return _salvage(path)


def _salvage(path: Path) -> Salvaged:
    fresh = path.with_name(f"{path.stem}.salvaged.db")
    if fresh.exists():
        raise JournalError(f"{fresh} is in the way, from an earlier attempt; move it first")
    with tempfile.TemporaryDirectory(prefix="narratoria-salvage-") as folder:
        copy = Path(folder) / path.name
        for suffix in ("", "-wal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + suffix))
        sound = _sound(copy, path)
        if sound is not None:
            return Salvaged(None, sound)
        try:
            rebuilt, doubtful = rebuild(copy, Path(folder))
            saved = _copy_sessions(rebuilt, fresh, path.parent / "assets")
            for one in saved:
                one.doubtful = one.id in doubtful
        except BaseException:  # a full disk, say: the next attempt begins anew
            for suffix in ("", "-wal", "-shm"):
                fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
            raise
    if not any(one.records for one in saved):
        fresh.unlink(missing_ok=True)
        found = f"; there are the names of {len(saved)}" if saved else ""
        raise JournalError(
            f"no turn of any session can be read from {path}{found}; it was left as it is. Restore a backup"
        )
    damaged = path.with_name(f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}.db")
    for suffix in ("-wal", "-shm"):
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(damaged.with_name(damaged.name + suffix))
    path.rename(damaged)
    fresh.rename(path)
    return Salvaged(damaged, saved)


def _sound(copy: Path, path: Path) -> list[SavedSession] | None:
    """Return the sessions, if every page, index and record of a copy of the database at `path` can be read."""
    store = SqliteStore(copy, assets=path.parent / "assets")
    try:
        if store.table_faults():
            return None
        found = [check_session(store, meta)[0] for meta in store.list()]
        if any(one.faults for one in found):
            return None
        return [
            SavedSession(
                one.meta.id, one.meta.title, one.reached, one.meta.last_seq, one.meta.turns, one.lost
            )
            for one in found
        ]
    except NewerVersion as error:
        raise NewerVersion(str(error).replace(str(copy), str(path))) from None
    except DAMAGE:
        return None
    finally:
        store.close()


def _copy_sessions(source_path: Path, fresh: Path, assets: Path) -> list[SavedSession]:
    source, target = SqliteStore(source_path, assets=assets), SqliteStore(fresh, assets=assets)
    try:
        return [_copied(source, target, meta) for meta in source.list()]
    finally:
        source.close()
        target.close()


def _copied(source: SqliteStore, target: SqliteStore, meta: SessionMeta) -> SavedSession:
    for told in _tellings(source, meta):
        kept, end = list(told.kept), told.reached
        whole = end >= meta.last_seq
        if not kept or not (whole or any(map(_holds_a_turn, kept))) or not told.makes_a_game():
            continue
        lost = sum(map(_lost_by, kept)) - told.lost
        if not whole:  # said in the session itself: nobody else will know it later
            kept.append(Record(end + 1, time.time(), None, RecordsLost(first=end + 1, last=meta.last_seq)))
        adopted = target.adopt(meta, kept, Adoption(lacking=True))  # its pictures may be lost too
        return SavedSession(meta.id, meta.title, max(1, end - told.lost), meta.last_seq, adopted.turns, lost)
    return SavedSession(meta.id, meta.title, 0, meta.last_seq)


def _tellings(source: SqliteStore, meta: SessionMeta) -> Iterator[BridgedRecords]:
    """Yield ways to rebuild a session, the most complete first. If a turn in a gap is taken back behind it, only a
    later snapshot will do.
    """
    records = list(source.read(meta.id))
    plain = BridgedRecords(meta, records, {})
    if plain.reached >= meta.last_seq:
        yield plain
    snapshots = snapshots_of(source, meta.id)
    for least in sorted(snapshots):
        yield BridgedRecords(meta, records, {seq: one for seq, one in snapshots.items() if seq >= least})
    if plain.reached < meta.last_seq:
        yield plain


def _holds_a_turn(record: Record) -> bool:
    event = record.event
    if isinstance(event, RecordsLost):
        return event.resumed is not None and bool(event.resumed.get("turns"))
    return isinstance(event, TurnCommitted)


def _lost_by(record: Record) -> int:
    return record.event.count if isinstance(record.event, RecordsLost) else 0
