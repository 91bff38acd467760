"""The rows a damaged database still holds: those that SQLite finds, and those that only its pages show.

Rows that SQLite finds come first, so that nothing readable is lost, and no row that was deleted long ago, but still
lies on a page, takes the place of one that counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from narratoria.errors import JournalError
from narratoria.events import SessionStarted
from narratoria.session.assets import AssetStore
from narratoria.store import record_batches as chunks
from narratoria.store.restoration import SessionSnapshot
from narratoria.store.salvage.found_rows import COLUMNS, DAMAGE, FoundRows, SessionRow, unpacked
from narratoria.store.salvage.pages import readable_rows
from narratoria.store.sql_reading import SqlReader
from narratoria.store.sqlite import SqliteStore
from narratoria.store.sqlite_database import connect, default_driver
from narratoria.store.writer import Database

_MANY: Final = 64
_ENDS: Final = -(1 << 62), 1 << 62
_BY_ID: Final = "SELECT id, key FROM sessions INDEXED BY sqlite_autoindex_sessions_1 WHERE id > ? ORDER BY id"


def rebuild(copy: Path, folder: Path) -> tuple[Path, set[str]]:
    """Return a sound database with every row that can still be read from a damaged one, and the ids of the sessions
    that may differ from what was written.
    """
    rows = FoundRows()
    _fold_log(copy)
    _ask_sqlite(copy, rows)
    for key, last in rows.ends().items():  # a batch and the row's count of records are written together
        if key in rows.sessions:
            rows.sessions[key]["last_seq"] = max(last, rows.sessions[key]["last_seq"])
    _look_at_pages(copy, rows)
    _add_nameless(rows)
    doubtful = {row["id"] for key, row in rows.sessions.items() if not rows.is_proven(key)}
    _untie_orphans(rows.sessions)
    path = folder / "rebuilt.db"
    store = SqliteStore(path, assets=folder / "assets")
    try:
        store.writer.run(lambda database: _insert(database, rows), durable=False)
    finally:
        store.close()
    return path, doubtful


def _insert(database: Database, rows: FoundRows) -> None:
    """Insert the rows without checksums: what is behind a gap is read too."""
    kept = [column for column in COLUMNS if column not in ("chained", "head", "seal")]
    marks = ", ".join("?" * len(kept))
    for key, row in rows.sessions.items():
        database.execute(
            f"INSERT OR IGNORE INTO sessions (key, {', '.join(kept)}) VALUES (?, {marks})",  # noqa: S608
            (key, *(row[column] for column in kept)),
        )
    for (key, last), batch in rows.batches.items():
        database.execute(
            "INSERT INTO batches (session, last_seq, first_seq, data) VALUES (?, ?, ?, ?)",
            (key, last, batch.first, batch.data),
        )
    for (key, seq), data in rows.snapshots.items():
        database.execute("INSERT INTO snapshots (session, seq, data) VALUES (?, ?, ?)", (key, seq, data))


# --- what SQLite finds ------------------------------------------------------------------------------------


def _fold_log(copy: Path) -> None:
    """Copy the contents of the write-ahead log into the file, whose pages are read."""
    try:
        database = connect(copy, default_driver(), readonly=False)
    except JournalError:
        return
    try:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except JournalError:
        pass  # then SQLite cannot read the log either
    finally:
        database.close()


def _ask_sqlite(copy: Path, rows: FoundRows) -> None:
    try:
        database = connect(copy, default_driver(), readonly=True)
    except JournalError:
        return
    try:
        for row in _from_both_ends(
            database, "SELECT * FROM sessions WHERE key {sign} ? ORDER BY key {order}", 0
        ):
            _add_session(rows.sessions, row[0], list(row))
        _add_indexed(database, rows.sessions)
        _overhear(database, rows)
        for key in rows.sessions:
            batches = f"SELECT * FROM batches WHERE session = {key} AND last_seq {{sign}} ? ORDER BY last_seq {{order}}"  # noqa: S608
            for row in _from_both_ends(database, batches, 1):
                rows.add_batch(row)
            snapshots = (
                f"SELECT * FROM snapshots WHERE session = {key} AND seq {{sign}} ? ORDER BY seq {{order}}"  # noqa: S608
            )
            for row in _from_both_ends(database, snapshots, 1):
                rows.add_snapshot(row)
        _prefer_told_names(database, rows)
    finally:
        database.close()


class _Overheard(SqlReader):
    """A reader that keeps every row it gets: the rows that SQLite finds depend on the query."""

    def __init__(self, database: Database, rows: FoundRows) -> None:
        super().__init__(AssetStore())
        self._reader = database
        self._rows = rows

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        found = super().query(sql, values)
        for row in found:
            if "data FROM batches" in sql:
                self._rows.add_batch((values[0], 0, 0, row[-1], row[-2]))
            elif "data FROM snapshots" in sql:
                self._rows.add_snapshot((values[0], _record_of(row[-1]), row[-1]))
        return found


def _record_of(data: Any) -> int | None:
    """Return the record that a snapshot was taken at."""
    try:
        main = chunks.parted(data, "a snapshot")[1]
        found: SessionSnapshot = chunks.read_as(
            SessionSnapshot, chunks.unpack(main, "a snapshot"), "a snapshot"
        )
    except DAMAGE:
        return None
    return found.seq


def _overhear(database: Database, rows: FoundRows) -> None:
    reader = _Overheard(database, rows)
    for name in {*(row["id"] for row in rows.sessions.values()), *(name for name, _ in _names(database))}:
        with suppress(*DAMAGE):
            len(reader.restore(name).asset_records)
        with suppress(*DAMAGE):
            deque(reader.read(name), maxlen=0)


def _from_both_ends(database: Database, sql: str, column: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows up to the first unreadable one, and from the last down to it; some may come twice.

    They are queried many at a time, as the store does: a row whose own number is damaged is found among its
    neighbours only.
    """
    bound, reached = _ENDS
    for sign, order, step in ((">", "ASC", 1), ("<", "DESC", -1)):
        size = _MANY
        while True:
            try:
                found = database.execute(f"{sql.format(sign=sign, order=order)} LIMIT {size}", (bound,))
            except DAMAGE:
                if size == 1:
                    break
                size = 1
                continue
            yield from found
            place = found[-1][column] if found else bound
            if not isinstance(place, int) or (place - bound) * step <= 0:
                break
            bound = place
            if step < 0 and bound <= reached:
                break
        bound, reached = reached, bound


def _add_indexed(database: Database, sessions: dict[int, SessionRow]) -> None:
    """Add sessions that the index of ids still leads to."""
    for _, key in _names(database):
        if key not in sessions:
            try:
                found = database.execute("SELECT * FROM sessions WHERE key = ?", (key,))
            except DAMAGE:
                continue
            if found:
                _add_session(sessions, key, list(found[0]))


def _names(database: Database) -> Iterator[tuple[str, int]]:
    after = ""
    while True:
        try:
            found = database.execute(_BY_ID + " LIMIT 1", (after,))
            if not found or not found[0][0] > after:
                return
        except DAMAGE:
            return
        after, key = found[0]
        if isinstance(key, int):
            yield after, key


def _prefer_told_names(database: Database, rows: FoundRows) -> None:
    """Correct a session's id from its first record if the index and the row give two ids."""
    for name, key in _names(database):
        row = rows.sessions.get(key)
        if row is None or row["id"] == name:
            continue
        own = sorted(last for one, last in rows.batches if one == key)
        first = unpacked(rows.batches[key, own[0]].data)[0].event if own else None
        if isinstance(first, SessionStarted) and first.session == name:
            row["id"] = name


# --- what the pages show ----------------------------------------------------------------------------------


def _look_at_pages(copy: Path, rows: FoundRows) -> None:
    sessions: dict[int, SessionRow] = {}
    for rowid, row in readable_rows(copy):
        if rowid:
            _add_session(sessions, rowid, row)
        else:
            rows.add_batch(row)
            rows.add_snapshot(row)
    ends = rows.ends()
    for key, found in sessions.items():
        if key not in rows.sessions:  # what was written since that row was may be found too
            found["last_seq"] = max(found["last_seq"], ends.get(key, 0))
            rows.sessions[key] = found


def _add_session(sessions: dict[int, SessionRow], key: int, row: list[Any]) -> None:
    found = _session_row(row)
    known = sessions.get(key)  # a page that is free again may hold the row as it once was
    if found is not None and (known is None or known["last_seq"] < found["last_seq"]):
        sessions[key] = found


def _session_row(row: list[Any]) -> SessionRow | None:
    """Read a row of the table, the key first. The column of the folder depends on the version that made the table."""
    if len(row) not in (13, 14, 17) or not isinstance(row[1], str):
        return None
    row, checks = row[:14], row[14:] or [None, None, None]
    if len(row) == 13:
        row = [*row, None]
    if not isinstance(row[4], int | float):
        row = [*row[:4], *row[5:], row[4]]
    numbers, optional = row[4:9], row[9:12]
    if not all(isinstance(one, int | float) for one in numbers):
        return None
    if not all(one is None or isinstance(one, int) for one in optional):
        return None
    found = dict(zip(COLUMNS, [*row[1:], *checks], strict=True))
    for text in ("story", "title", "folder"):
        if not isinstance(found[text], str):
            found[text] = None
    found["last_seq"], found["hidden"] = int(found["last_seq"]), int(found["hidden"] == 1)
    return found


def _add_nameless(rows: FoundRows) -> None:
    """Add sessions whose own row is lost, from their first record."""
    keys = {row["id"]: key for key, row in rows.sessions.items()}
    ends = rows.ends()
    waiting = sorted(ends.keys() - rows.sessions.keys())
    met = True
    while met:  # a branch is known once its parent is
        met = False
        for key in waiting:
            first = min(last for one, last in rows.batches if one == key)
            batch = rows.batches[key, first]
            record = unpacked(batch.data)[0]
            event = record.event
            if key in rows.sessions or not isinstance(event, SessionStarted) or event.session in keys:
                continue
            parent = None if event.parent_session is None else keys.get(event.parent_session)
            if event.parent_session is not None and parent is None:
                continue  # what it shares with its parent is lost
            met = True
            keys[event.session] = key
            begins = (parent, event.parent_turn, record.seq - 1) if parent else (None, None, None)
            numbers = (record.ts, record.ts, 0, ends[key], 0)
            # with a chain and without a seal it is doubtful: nobody knows if these are all of its records
            chained = None if batch.checksum is None else 0
            told = (event.session, event.story, event.title, *numbers, *begins, 0, None, chained, None, None)
            rows.sessions[key] = dict(zip(COLUMNS, told, strict=True))


def _untie_orphans(sessions: dict[int, SessionRow]) -> None:
    """Cut a branch whose parent is lost to its own records."""
    for key, row in sessions.items():
        seen, current = {key}, row["parent"]
        while current is not None and current in sessions and current not in seen:
            seen.add(current)
            current = sessions[current]["parent"]
        if current is not None and (row["parent"] not in sessions or current in seen):
            row["parent"] = row["parent_turn"] = row["parent_seq"] = None
