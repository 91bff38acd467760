"""Moving a store: all its sessions, with the pasts they share and their assets, from one database to another.

Rows are copied as they are, and their own checksums with them; only what holds the key of a session is sealed anew,
once the old seal was checked. A session is there whole or not at all. One that is there already is not copied again: a
move that was cut short is begun again and goes on. At the end both are read and compared, record by record.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import msgspec

from narratoria.errors import JournalError
from narratoria.events import AssetStored
from narratoria.store import checksums
from narratoria.store import record_batches as chunks
from narratoria.store.sql_rows import COLUMNS, SessionRow
from narratoria.store.sql_store import SqlStore
from narratoria.store.store import JournalDamaged, Store
from narratoria.store.writer import Database

_TURN: Final = "INSERT INTO turns (session, turn, first_seq, last_seq, seal) VALUES (?, ?, ?, ?, ?)"
_PORTION: Final = 64  # batches read at once


class MovedSession(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One session that is in both stores now, compared."""

    id: str
    records: int
    sha256: str  # of its records, as an export has them
    assets: int
    missing: int = 0  # assets that the first store had lost already
    copied: bool = True  # False: it was there already, the same


def move_store(
    source: Store, target: Store, told: Callable[[MovedSession], None] = lambda _: None
) -> list[MovedSession]:
    """Copy every session; the first store stays as it is. Nobody may play there meanwhile (`SessionBusy`)."""
    if not isinstance(source, SqlStore) or not isinstance(target, SqlStore):
        raise JournalError("only stores in SQLite and PostgreSQL can be moved")
    rows = [SessionRow(*row) for row in source.query(f"SELECT {COLUMNS} FROM sessions s ORDER BY s.key")]  # noqa: S608
    keys: dict[int, int] = {}
    copied: set[str] = set()
    with ExitStack() as held:
        for row in rows:
            if not row.whole:
                raise JournalDamaged(
                    f"session {row.id} is damaged; `narratoria sessions salvage` saves what is whole"
                )
            held.callback(source.lease(row.id).release)
        for row in _parents_first(rows):
            there = target.query("SELECT key FROM sessions WHERE id = ?", (row.id,))
            if there:
                keys[row.key] = int(there[0][0])
            else:
                _keep_assets(source, target, row.key)
                kept = [digest for (digest,) in _assets(source, row.key) if digest in source.assets]
                with target.brought(kept):
                    keys[row.key] = target.writer.run(_copying(source, target, row, keys))
                copied.add(row.id)
        found = []
        for row in rows:
            if not row.hidden:
                found.append(_compared(source, target, row, row.id in copied))
                told(found[-1])
    return found


def _parents_first(rows: list[SessionRow]) -> Iterator[SessionRow]:
    waiting, known = list(rows), set[int]()
    while waiting:
        ready = [row for row in waiting if row.parent is None or row.parent in known]
        if not ready:
            raise JournalDamaged(
                f"session {waiting[0].id} is damaged: the session it branched from is missing"
            )
        yield from ready
        known.update(row.key for row in ready)
        waiting = [row for row in waiting if row.key not in known]


def _copying(
    source: SqlStore, target: SqlStore, row: SessionRow, keys: dict[int, int]
) -> Callable[[Database], int]:
    def copy(database: Database) -> int:
        parent = None if row.parent is None else keys[row.parent]
        columns = ", ".join(SessionRow._fields[1:])
        values = row._replace(parent=parent)[1:]
        marks = ", ".join("?" * len(values))
        made = database.execute(f"INSERT INTO sessions ({columns}) VALUES ({marks}) RETURNING key", values)  # noqa: S608
        key = int(made[0][0])
        if row.seal is not None:
            new = row._replace(key=key, parent=parent)
            database.execute("UPDATE sessions SET seal = ? WHERE key = ?", (new.right_seal(new.stays), key))
        _copy_batches(source, database, row.key, key)
        for turn, first, last, seal in source.query(
            "SELECT turn, first_seq, last_seq, seal FROM turns WHERE session = ?", (row.key,)
        ):
            if seal is not None:
                if seal != checksums.seal((row.key, turn, first, last)):
                    raise JournalDamaged(
                        f"session {row.id} is damaged: the row of its turn {turn} is not as written"
                    )
                seal = checksums.seal((key, turn, first, last))
            database.execute(_TURN, (key, turn, first, last, seal))
        for seq, data, checksum in source.query(
            "SELECT seq, data, checksum FROM snapshots WHERE session = ?", (row.key,)
        ):
            sql = "INSERT INTO snapshots (session, seq, data, checksum) VALUES (?, ?, ?, ?)"
            database.execute(sql, (key, seq, data, checksum))
        for (digest,) in _assets(source, row.key):
            database.execute("INSERT INTO assets (session, hash) VALUES (?, ?)", (key, digest))
            if digest in source.assets:
                target.keep_asset(database, _named(digest), durable=True)
        return key

    return copy


def _copy_batches(source: SqlStore, database: Database, old: int, new: int) -> None:
    after = -1
    while rows := source.query(
        "SELECT last_seq, first_seq, data, checksum FROM batches WHERE session = ? AND last_seq > ? "
        "ORDER BY last_seq LIMIT ?",
        (old, after, _PORTION),
    ):
        for last, first, data, checksum in rows:
            sql = "INSERT INTO batches (session, last_seq, first_seq, data, checksum) VALUES (?, ?, ?, ?, ?)"
            database.execute(sql, (new, last, first, data, checksum))
        after = rows[-1][0]


def _assets(store: SqlStore, key: int) -> list[tuple[str]]:
    return [(row[0],) for row in store.query("SELECT hash FROM assets WHERE session = ?", (key,))]


def _named(digest: str) -> AssetStored:
    return AssetStored(
        call="", asset_id="", kind="", media_type="application/octet-stream", hash=digest, size=0, name=""
    )


def _keep_assets(source: SqlStore, target: SqlStore, key: int) -> None:
    """Put the contents of a session's assets into the other store's folder, unless both have one folder."""
    for (digest,) in _assets(source, key):
        if digest in source.assets and digest not in target.assets:
            folder = target.assets.staging()
            try:
                shutil.copyfile(source.assets.path_of(digest), folder / digest)
                target.assets.take(folder / digest, digest)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


def _compared(source: SqlStore, target: SqlStore, row: SessionRow, copied: bool) -> MovedSession:
    (count, digest), (there, other) = _sum(source, row.id), _sum(target, row.id)
    if digest != other:
        raise JournalError(
            f"session {row.id} is in the other store with other records ({there:,} there, {count:,} here); "
            "nothing of it was changed. Rename or delete one of the two, then move again"
        )
    hashes = source.asset_hashes(row.id)
    kept = {one for one in hashes if one in source.assets}
    for one in sorted(kept):
        if not target.holds_content(one):
            raise JournalError(f"asset {one} of session {row.id} did not arrive whole; move again")
    return MovedSession(
        id=row.id, records=count, sha256=digest, assets=len(kept), missing=len(hashes - kept), copied=copied
    )


def _sum(store: SqlStore, session_id: str) -> tuple[int, str]:
    hasher, count = hashlib.sha256(), 0
    for record in store.read(session_id):
        hasher.update(chunks.to_lines([record]))
        count += 1
    return count, hasher.hexdigest()
