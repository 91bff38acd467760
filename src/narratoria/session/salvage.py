"""What can be saved of a damaged database. The damaged file is read from a copy, and kept as it is."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from narratoria.errors import JournalError
from narratoria.events import RecordsLost, SessionStarted, TurnCommitted
from narratoria.session import chunks
from narratoria.session.file_lease import nobody_playing
from narratoria.session.pages import Pages
from narratoria.session.session import Record
from narratoria.session.sqlite import NewerVersion, SqliteStore
from narratoria.session.writer import Database

_COLUMNS: Final = (
    "key, id, story, title, created, updated, turns, last_seq, bytes, "
    "parent, parent_turn, parent_seq, hidden, folder"
)
Fate = Literal["whole", "partly", "lost"]
_LAST_SEQ: Final = 6  # among them, the key left out


@dataclass(slots=True)
class SavedSession:
    id: str
    title: str | None
    records: int
    expected: int  # the number of its last record, before the damage
    turns: int = 0  # how many of those that stand are saved
    lost_before: int = 0  # records that an earlier salvage could not read either

    @property
    def readable(self) -> bool:
        """Whether everything can be read that this file should hold of it."""
        return self.records >= self.expected

    @property
    def whole(self) -> bool:
        return self.readable and not self.lost_before

    @property
    def fate(self) -> Fate:
        """Of a lost session no finished turn can be read; nothing of it is kept but in the damaged file."""
        return "whole" if self.whole else "partly" if self.records else "lost"


@dataclass(slots=True)
class Salvaged:
    damaged: Path | None  # where the damaged file lies now; None if nothing is damaged
    sessions: list[SavedSession] = field(default_factory=list)


def salvage(path: Path) -> Salvaged:
    """Put a new database with everything readable in the place of a damaged one.

    Of each session its records are kept up to the first that cannot be read, if a turn ended before that.
    A sound file is left as it is, and so is one of a newer version (`NewerVersion`). `SessionBusy` while any
    session in it is being played: that process would go on writing to the file that was moved away.
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
        saved = _copy_sessions(_rebuild(copy, Path(folder)), fresh, path.parent / "assets")
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
    """Its sessions, if every page, index and record of a copy of the database at `path` can be read."""
    store = SqliteStore(copy, assets=path.parent / "assets")
    try:
        if store.query("PRAGMA integrity_check") != [("ok",)]:
            return None
        found: list[SavedSession] = []
        for meta in store.list():
            last = lost = 0
            for record in store.read(meta.id):
                last, lost = record.seq, lost + _lost_by(record)
            found.append(SavedSession(meta.id, meta.title, last, meta.last_seq, meta.turns, lost))
        return found if all(one.readable for one in found) else None
    except NewerVersion as error:
        raise NewerVersion(str(error).replace(str(copy), str(path))) from None
    except JournalError:
        return None
    finally:
        store.close()


def _rebuild(copy: Path, folder: Path) -> Path:
    """A sound database with every row that the pages of a damaged one still hold."""
    path = folder / "rebuilt.db"
    sessions: dict[int, tuple[Any, ...]] = {}
    batches: dict[tuple[int, int], tuple[int, bytes]] = {}
    for rowid, row in Pages(copy).rows():
        if len(row) == 4 and isinstance(row[3], bytes) and all(isinstance(one, int) for one in row[:3]):
            batches[row[0], row[1]] = row[2], row[3]
        elif rowid and (found := _session_row(row)) is not None:
            known = sessions.get(rowid)  # a page that is free again may hold the row as it once was
            if known is None or known[_LAST_SEQ] < found[_LAST_SEQ]:
                sessions[rowid] = found
    _add_nameless(sessions, batches)
    store = SqliteStore(path, assets=folder / "assets")

    def insert(database: Database) -> None:
        for key, row in sessions.items():
            marks = ", ".join("?" * (1 + len(row)))
            database.execute(f"INSERT OR IGNORE INTO sessions ({_COLUMNS}) VALUES ({marks})", (key, *row))  # noqa: S608
        for (key, last), (first, data) in batches.items():
            database.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", (key, last, first, data))

    try:
        store.writer.run(insert)
    finally:
        store.close()
    return path


def _session_row(row: list[Any]) -> tuple[Any, ...] | None:
    """The columns of `_COLUMNS` after the key. The folder stands where the table was made with it, or was added later,
    or not at all."""
    if len(row) not in (13, 14) or not isinstance(row[1], str):
        return None
    if len(row) == 13:
        row = [*row, None]
    if not isinstance(row[4], int | float):
        row = [*row[:4], *row[5:], row[4]]
    numbers, optional = row[4:9], row[9:12]
    if not all(isinstance(one, int | float) for one in numbers):
        return None
    if not all(one is None or isinstance(one, int) for one in optional):
        return None
    return tuple(row[1:])


def _add_nameless(
    sessions: dict[int, tuple[Any, ...]], batches: dict[tuple[int, int], tuple[int, bytes]]
) -> None:
    """Sessions whose own row is lost: their first record tells what they are."""
    last_of: dict[int, int] = {}
    for key, last in batches:
        last_of[key] = max(last, last_of.get(key, 0))
    keys = {row[0]: key for key, row in sessions.items()}
    for key in sorted(last_of.keys() - sessions.keys()):
        first = min(last for one, last in batches if one == key)
        try:
            record = chunks.read_records(batches[key, first][1], "the first batch of a session")[0]
        except JournalError:
            continue
        event = record.event
        if not isinstance(event, SessionStarted) or event.session in keys:
            continue
        parent = None if event.parent_session is None else keys.get(event.parent_session)
        if event.parent_session is not None and parent is None:
            continue  # what it shares with its parent is lost
        keys[event.session] = key
        begins = (parent, event.parent_turn, record.seq - 1) if parent else (None, None, None)
        times = (record.ts, record.ts)
        sessions[key] = (
            event.session,
            event.story,
            event.title,
            *times,
            0,
            last_of[key],
            0,
            *begins,
            0,
            None,
        )


def _copy_sessions(source_path: Path, fresh: Path, assets: Path) -> list[SavedSession]:
    source, target = SqliteStore(source_path, assets=assets), SqliteStore(fresh, assets=assets)
    saved: list[SavedSession] = []
    try:
        for meta in source.list():
            kept = _readable(source, meta.id)
            whole = bool(kept) and kept[-1].seq >= meta.last_seq
            if not whole and not any(isinstance(record.event, TurnCommitted) for record in kept):
                saved.append(SavedSession(meta.id, meta.title, 0, meta.last_seq))
                continue
            records, lost = kept[-1].seq, sum(map(_lost_by, kept))
            if not whole:  # said in the session itself: nobody else will know it later
                loss = RecordsLost(first=records + 1, last=meta.last_seq)
                kept.append(Record(records + 1, time.time(), None, loss))
            adopted = target.adopt(meta, kept, lacking=True)  # its pictures may be lost too
            saved.append(SavedSession(meta.id, meta.title, records, meta.last_seq, adopted.turns, lost))
    finally:
        source.close()
        target.close()
    return saved


def _lost_by(record: Record) -> int:
    return record.event.count if isinstance(record.event, RecordsLost) else 0


def _readable(source: SqliteStore, session_id: str) -> list[Record]:
    """A session's records up to the first that cannot be read: what came after it stood on it."""
    kept: list[Record] = []
    try:
        for record in source.read(session_id):
            if record.seq != (kept[-1].seq if kept else 0) + 1:
                break
            kept.append(record)
    except JournalError:
        pass  # the rest of it is lost
    return kept
