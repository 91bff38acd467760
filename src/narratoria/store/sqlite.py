"""The embedded store: one SQLite file beside a folder of assets."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from narratoria.errors import JournalError
from narratoria.events import AssetStored
from narratoria.session.assets import AssetStore
from narratoria.session.private_files import make_file, make_folder
from narratoria.store.file_lease import FileLease, lock_name
from narratoria.store.sql_reading import SqlReader
from narratoria.store.sql_rows import Rows
from narratoria.store.sql_store import SqlStore
from narratoria.store.sql_versions import SCHEMA, standing_turns, upgrade
from narratoria.store.sqlite_database import (
    BUSY_MS,
    IN_MEMORY,
    SALVAGE,
    SqliteDatabase,
    StorageFailed,
    check_place,
    connect,
    damaged,
    default_driver,
    is_settled,
    reason,
)
from narratoria.store.store import SCHEMA_VERSION, Faults, Metas, unwritable
from narratoria.store.writer import Database

APPLICATION_ID: Final = 0x4E617272  # "Narr": `file` and a misdirected path can tell
CHECKED_BYTES: Final = 32 * 1024 * 1024  # at some 1.5 ms per MB
# Looking changes nothing: a file of an older version is brought up to date by the first write. Of two columns of one
# name the first is the one that counts.
_OLD_SESSIONS: Final = """CREATE TEMP VIEW sessions AS
    SELECT COALESCE(n.turns, s.turns) AS turns, s.*, NULL AS folder, NULL AS chained, NULL AS head, NULL AS seal
    FROM main.sessions s LEFT JOIN temp.standing n ON n.key = s.key"""
_OLD_TABLES: Final = (
    "CREATE TEMP VIEW batches AS SELECT *, NULL AS checksum FROM main.batches",
    "CREATE TEMP VIEW turns AS SELECT *, NULL AS seal FROM main.turns",
    "CREATE TEMP VIEW snapshots AS SELECT *, NULL AS checksum FROM main.snapshots",
)
_INDEXED: Final = "SELECT count(*) FROM main.sessions WHERE id >= ''"
_STORED: Final = "SELECT count(*) FROM main.sessions NOT INDEXED"
_WORDS: Final = {
    "key": "INTEGER PRIMARY KEY", "int": "INTEGER", "real": "REAL", "blob": "BLOB",
    "clustered": " WITHOUT ROWID",
}  # fmt: skip


class NewerVersion(JournalError):
    """The file was written by a newer version of Narratoria: it is neither changed nor read."""


class SqliteStore(SqlStore):
    """Sessions in one file. Locks are files beside it, held by the system: a dead process holds none."""

    remedy = SALVAGE

    def __init__(self, path: Path, *, assets: Path | None = None, driver: str | None = None) -> None:
        self.path = Path(path)
        self.driver = driver or default_driver()
        assets = assets or self.path.parent / "assets"
        self._imagined = False  # whether what is read is the store that is not made yet
        self._outdated = False  # whether it is a file of an older version, seen as one of this
        self._lived_in = _lived_in(self.path, assets)  # asked before this store leaves traces of its own
        super().__init__(AssetStore(assets, user=self.path), self.path.stem)

    @property
    def database_file(self) -> Path:
        return self.path

    def _connect(self) -> Database:
        check_place(self.path)
        try:
            make_folder(self.path.parent)
        except OSError as error:
            raise JournalError(unwritable(self.path.parent, error)) from None
        if not self.path.exists():
            self._make()
        else:
            self._look_for_damage()
        return _prepared(self._connection(readonly=False), self.path, self._lived_in)

    def _make(self) -> None:
        """Make a new file with its tables already in it, so that one without tables is known to be damaged."""
        draft = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        try:
            make_file(draft)
        except OSError as error:
            raise JournalError(unwritable(self.path.parent, error)) from None
        try:
            database = self._connection(readonly=False, path=draft)
            try:
                _migrate(database, 0)
            finally:
                database.close()
            os.link(draft, self.path)
        except FileExistsError:
            pass  # another process was first
        except OSError:
            draft.replace(self.path)  # a filesystem without links
        except JournalError as error:
            raise JournalError(str(error).replace(str(draft), str(self.path))) from None
        finally:
            for left in (draft, draft.with_name(f"{draft.name}-journal")):
                left.unlink(missing_ok=True)

    def _look_for_damage(self) -> None:
        """Look for damage before the first write, if that is fast: writing into damage makes it worse."""
        if not 0 < self.path.stat().st_size <= CHECKED_BYTES:
            return
        database = self._connection(readonly=True)  # its end, unlike a writer's, moves nothing from the log
        try:
            found = [str(row[0]) for row in database.execute("PRAGMA quick_check(1)")]
        finally:
            database.close()
        if found != ["ok"]:
            raise damaged(self.path, " ".join(found).replace("\n", " "), "; it was left as it is")

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        with self._reading:
            if self._imagined and self.path.exists() and self.path.stat().st_size:
                SqlReader.close(self)  # the connection to nothing
                self._imagined = False
            if self._outdated and self._reader is not None and _version(self._reader) == SCHEMA_VERSION:
                SqlReader.close(self)  # somebody has written to the file, so it is no old one any more
                self._outdated = False
            return super().query(sql, values)

    def _connect_reader(self) -> Database:
        check_place(self.path)
        try:
            known = self.path.exists() and (self.path.stat().st_size or self._lived_in)
        except OSError as error:
            raise JournalError(f"{self.path}: {reason(error)}") from None
        self._imagined = not known
        if self._imagined:  # a look at a store that is not there does not make one
            database = connect(IN_MEMORY, self.driver, readonly=False)
            _migrate(database, 0)
            return database
        try:
            database = _prepared(self._connection(readonly=True), self.path, self._lived_in)
        except StorageFailed:  # a full disk has no room for the index of the log, which readers share
            if not is_settled(self.path):
                raise
            database = _prepared(
                connect(self.path, self.driver, readonly=True, immutable=True), self.path, self._lived_in
            )
        version = _version(database)
        self._outdated = version < SCHEMA_VERSION
        if self._outdated:
            _view_as_present(database, version)
        return database

    def _connection(self, *, readonly: bool, path: Path | None = None) -> SqliteDatabase:
        if not readonly and self.path.exists() and not os.access(self.path, os.W_OK):
            raise JournalError(
                f"{self.path} is not writable; sessions in it can be read and exported, not played"
            )
        return connect(path or self.path, self.driver, readonly=readonly)

    def list(self) -> Metas:
        found = super().list()
        indexed, stored = (self.query(sql)[0][0] for sql in (_INDEXED, _STORED))
        if indexed != stored:
            raise damaged(self.path, f"{stored} sessions are found where there were {indexed}", "")
        return found

    def table_faults(self) -> Faults:
        found = [" ".join(str(row[0]).split()) for row in self.query("PRAGMA integrity_check(10)")]
        return [*(one for one in found if one != "ok"), *super().table_faults()]

    def lease(self, session_id: str) -> FileLease:
        check_place(self.path)
        return FileLease(self.path.with_name("locks"), session_id)

    def delete(self, session_id: str) -> None:
        super().delete(session_id)
        (self.path.with_name("locks") / lock_name(session_id)).unlink(missing_ok=True)

    def keep_asset(self, database: Database, stored: AssetStored, *, durable: bool) -> None:
        """Make an asset's content durable before its record is; the file is already in its place."""
        try:
            path = self.assets.path_of(stored.hash)
        except KeyError:
            raise JournalError(f"asset {stored.hash} has vanished from {self.assets.root}") from None
        for one in (path, path.parent):
            descriptor = os.open(one, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _lived_in(path: Path, assets: Path) -> bool:
    """Tell if sessions were kept here before: they leave locks and assets beside the database."""
    return any(path.with_name("locks").glob("*.lock")) or any(assets.glob("??/*"))


def _prepared(database: SqliteDatabase, path: Path, lived_in: bool) -> SqliteDatabase:
    """Check the kind and version of the file, and upgrade it to the present schema."""
    try:
        database.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        version = _version(database)
        application = int(database.execute("PRAGMA application_id")[0][0])
        if version > SCHEMA_VERSION and application == APPLICATION_ID:
            raise NewerVersion(
                f"{path} was written by a newer Narratoria (its version is {version}, this one reads up to "
                f"{SCHEMA_VERSION}); nothing was changed. Upgrade Narratoria to open it"
            )
        tables = int(database.execute("SELECT count(*) FROM sqlite_master")[0][0])
        if tables and application != APPLICATION_ID:
            raise JournalError(
                f"{path} is a database of another program; nothing was changed. Choose another path"
            )
        if not tables and lived_in:
            raise JournalError(
                f"{path} is damaged: it is empty, but sessions were played here; it was left as it is. Restore "
                f"a backup of it and of {path.name}-wal, or move it away to begin anew"
            )
        if not database.readonly:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA foreign_keys = OFF")
            _migrate(database, version)
    except BaseException:
        database.close()
        raise
    return database


def _view_as_present(database: Database, version: int) -> None:
    """Make a file of an older version look like one of this version, to this connection only."""
    database.execute("PRAGMA temp_store = MEMORY")
    database.execute("CREATE TEMP TABLE standing (key INTEGER PRIMARY KEY, turns INTEGER NOT NULL)")
    for view in (_OLD_SESSIONS, *_OLD_TABLES):
        database.execute(view)
    if version < 2:
        for row in standing_turns(database).items():
            database.execute("INSERT INTO temp.standing (key, turns) VALUES (?, ?)", row)


def _version(database: Database) -> int:
    return int(database.execute("PRAGMA user_version")[0][0])


def _migrate(database: SqliteDatabase, version: int) -> None:
    if version == SCHEMA_VERSION:
        return
    database.begin(durable=True)
    try:
        found = _version(database)  # another process may have been first
        if not found:
            for statement in SCHEMA:
                database.execute(statement.format(**_WORDS))
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        else:
            upgrade(database, found, _WORDS)
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        database.commit()
    except BaseException:
        database.rollback()
        raise
