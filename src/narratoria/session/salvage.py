"""What can be saved of a damaged database. The damaged file is read from a copy, and kept as it is."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from narratoria.errors import JournalError
from narratoria.session.session import Record
from narratoria.session.sqlite import SqliteStore, nobody_playing
from narratoria.session.store import SessionMeta

_GAP = 1000  # session keys tried beyond the last one found


@dataclass(slots=True)
class SavedSession:
    id: str
    title: str | None
    records: int
    expected: int  # the number of its last record, before the damage

    @property
    def whole(self) -> bool:
        return self.records >= self.expected


@dataclass(slots=True)
class Salvaged:
    damaged: Path | None  # where the damaged file lies now; None if nothing is damaged
    sessions: list[SavedSession] = field(default_factory=list)


def salvage(path: Path) -> Salvaged:
    """Put a new database with everything readable in the place of a damaged one.

    Of each session its records are kept up to the first that cannot be read: what came after stood on it.
    A sound file is left as it is. `SessionBusy` while any session in it is being played: that process would
    go on writing to the file that was moved away.
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
        sound = _sound(copy, path.parent / "assets")
        if sound is not None:
            return Salvaged(None, sound)
        _pad(copy)
        saved = _copy_sessions(copy, fresh, path.parent / "assets")
    if not saved:
        fresh.unlink(missing_ok=True)
        raise JournalError(f"no session can be read from {path}; it was left as it is. Restore a backup")
    damaged = path.with_name(f"{path.stem}.damaged-{time.strftime('%Y%m%d-%H%M%S')}.db")
    for suffix in ("-wal", "-shm"):
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(damaged.with_name(damaged.name + suffix))
    path.rename(damaged)
    fresh.rename(path)
    return Salvaged(damaged, saved)


def _sound(copy: Path, assets: Path) -> list[SavedSession] | None:
    """Its sessions, if every page, index and record of a database can be read."""
    store = SqliteStore(copy, assets=assets)
    try:
        if store.query("PRAGMA integrity_check") != [("ok",)]:
            return None
        found: list[SavedSession] = []
        for meta in store.list():
            last = 0
            for record in store.read(meta.id):
                last = record.seq
            found.append(SavedSession(meta.id, meta.title, last, meta.last_seq))
        return found if all(one.whole for one in found) else None
    except JournalError:
        return None
    finally:
        store.close()


def _pad(copy: Path) -> None:
    """SQLite refuses a file shorter than its header says; with zeros in place of the end it reads the rest."""
    with copy.open("r+b") as file:
        header = file.read(32)
        if len(header) == 32 and header.startswith(b"SQLite format 3\0"):
            size = int.from_bytes(header[16:18], "big")
            length = (65536 if size == 1 else size) * int.from_bytes(header[28:32], "big")
            if file.seek(0, 2) < length:
                file.truncate(length)


def _copy_sessions(copy: Path, fresh: Path, assets: Path) -> list[SavedSession]:
    source, target = SqliteStore(copy, assets=assets), SqliteStore(fresh, assets=assets)
    saved: list[SavedSession] = []
    try:
        for meta in _sessions(source):
            kept: list[Record] = []

            def readable(session_id: str = meta.id, kept: list[Record] = kept) -> Iterator[Record]:
                try:
                    for record in source.read(session_id):
                        kept.append(record)
                        yield record
                except JournalError:
                    return  # the rest of it is lost

            target.adopt(meta, readable(), lacking=True)  # its pictures may be lost too
            last = kept[-1].seq if kept else 0
            saved.append(SavedSession(meta.id, meta.title, last, meta.last_seq))
    finally:
        source.close()
        target.close()
    return saved


def _sessions(source: SqliteStore) -> list[SessionMeta]:
    try:
        return source.list()
    except JournalError:
        pass  # some of the table is damaged: ask for its rows one by one
    found: list[SessionMeta] = []
    missed = key = 0
    while missed < _GAP:
        key += 1
        try:
            rows = source.query("SELECT id FROM sessions WHERE key = ? AND hidden = 0", (key,))
            found += [source.meta(row[0]) for row in rows]
        except JournalError:
            rows = []
        missed = 0 if rows else missed + 1
    return found
