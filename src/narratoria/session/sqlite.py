"""The embedded store: one SQLite file beside a folder of assets, with `apsw` or the standard library."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from narratoria.errors import JournalError, SessionBusy
from narratoria.events import AssetStored
from narratoria.session.assets import AssetStore
from narratoria.session.reading import Rows, SqlReader
from narratoria.session.store import SCHEMA_VERSION, is_plain_id
from narratoria.session.tables import MIGRATIONS, SCHEMA, SqlStore
from narratoria.session.writer import Database

try:
    import apsw
except ImportError:  # a platform without a wheel: slower, otherwise the same
    apsw = None  # type: ignore[assignment]

APPLICATION_ID: Final = 0x4E617272  # "Narr": `file` and a misdirected path can tell
_IN_MEMORY: Final = Path(":memory:")
_BUSY_MS: Final = 10_000
CHECKED_BYTES: Final = 32 * 1024 * 1024  # at some 1.5 ms per MB
# Looking changes nothing: a file of version 1 is brought up to date by the first write. Then the column of the table,
# which comes first, is the one that counts here too.
_OLD_SESSIONS: Final = "CREATE TEMP VIEW sessions AS SELECT *, NULL AS folder FROM main.sessions"
_WORDS: Final = {
    "key": "INTEGER PRIMARY KEY", "int": "INTEGER", "real": "REAL", "blob": "BLOB",
    "clustered": " WITHOUT ROWID",
}  # fmt: skip


class NewerVersion(JournalError):
    """The file is of a Narratoria that this one does not know: nothing is done to it, nor made of it."""


class SqliteStore(SqlStore):
    """Sessions in one file. Locks are files beside it, held by the system: a dead process holds none."""

    def __init__(self, path: Path, *, assets: Path | None = None, driver: str | None = None) -> None:
        self.path = Path(path)
        self.driver = driver or ("apsw" if apsw is not None else "sqlite3")
        assets = assets or self.path.parent / "assets"
        self._imagined = False  # whether what is read is the store that is not made yet
        self._lived_in = _lived_in(self.path, assets)  # asked before this store leaves traces of its own
        super().__init__(AssetStore(assets), self.path.stem)

    def _connect(self) -> Database:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(
                f"{self.path.parent}: {_reason(error)}; set NARRATORIA_HOME to another folder"
            ) from None
        if not self.path.exists():
            self._make()
        else:
            self._look_for_damage()
        return _prepared(self._connection(readonly=False), self.path, self._lived_in)

    def _make(self) -> None:
        """A new file appears with its tables in it, so that one without tables has lost them."""
        draft = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
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
        """Before the first write, where that takes no time worth mentioning: writing into damage makes it worse."""
        if not 0 < self.path.stat().st_size <= CHECKED_BYTES:
            return
        database = self._connection(readonly=True)  # its end, unlike a writer's, moves nothing from the log
        try:
            found = [str(row[0]) for row in database.execute("PRAGMA quick_check(1)")]
        finally:
            database.close()
        if found != ["ok"]:
            raise _damaged(self.path, " ".join(found).replace("\n", " "), "; it was left as it is")

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        if self._imagined and self.path.exists():
            SqlReader.close(self)  # the connection to nothing
            self._imagined = False
        return super().query(sql, values)

    def _connect_reader(self) -> Database:
        try:
            self._imagined = not self.path.exists() and not self._lived_in and _may_be_made(self.path)
            empty = not self._imagined and (not self.path.exists() or not self.path.stat().st_size)
        except OSError as error:
            raise JournalError(f"{self.path}: {_reason(error)}") from None
        if self._imagined:  # a look at a home that is not there does not make one
            database = self._connection(readonly=False, path=_IN_MEMORY)
            _migrate(database, 0)
            return database
        if empty:
            self.writer.run(lambda database: database.execute("SELECT 1"))  # makes the file
        database = _prepared(self._connection(readonly=True), self.path, self._lived_in)
        if _version(database) < SCHEMA_VERSION:
            database.execute(_OLD_SESSIONS)
        return database

    def _connection(self, *, readonly: bool, path: Path | None = None) -> SqliteDatabase:
        if not readonly and self.path.exists() and not os.access(self.path, os.W_OK):
            raise JournalError(
                f"{self.path} is not writable; sessions in it can be read and exported, not played"
            )
        if self.driver == "apsw":
            return ApswDatabase(path or self.path, readonly=readonly)
        return StandardDatabase(path or self.path, readonly=readonly)

    def lease(self, session_id: str) -> FileLease:
        return FileLease(self.path.with_name("locks"), session_id)

    def delete(self, session_id: str) -> None:
        super().delete(session_id)
        (self.path.with_name("locks") / _lock_name(session_id)).unlink(missing_ok=True)

    def keep_asset(self, database: Database, stored: AssetStored, *, durable: bool) -> None:
        """The file is in its place already; before the record of it is durable, so must be its content."""
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
    """Whether sessions were kept here before: they leave locks and assets beside the database."""
    return any(path.with_name("locks").glob("*.lock")) or any(assets.glob("??/*"))


def _may_be_made(path: Path) -> bool:
    """Whether what there is of the way to a path are folders."""
    return next(one for one in path.absolute().parents if one.exists()).is_dir()


@contextmanager
def nobody_playing(path: Path) -> Iterator[None]:
    """Hold every session of a database at once, or raise `SessionBusy` that says which is being played."""
    with ExitStack() as held:
        for lock in sorted(path.with_name("locks").glob("*.lock")):
            held.callback(FileLease(lock.parent, lock.stem).release)
        yield


def _lock_name(session_id: str) -> str:
    """Ids are whatever a caller chose; file names are not."""
    name = session_id if is_plain_id(session_id) else hashlib.sha256(session_id.encode()).hexdigest()
    return f"{name}.lock"


class FileLease:
    """An exclusive `flock` on a small file that says who holds it. The kernel drops it with the process."""

    def __init__(self, folder: Path, session_id: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / _lock_name(session_id)
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(
                f"{folder}: {_reason(error)}; set NARRATORIA_HOME to a folder that is writable"
            ) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 200).decode(errors="replace").strip() or "another process"
            os.close(self._descriptor)
            raise SessionBusy(f"session {session_id} is open in {holder}; close it there first") from None
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        except OSError as error:
            self.release()
            raise JournalError(f"{path}: {_reason(error)}; make room, then open the session again") from None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


# --- connections ----------------------------------------------------------------------------------------


class SqliteDatabase:
    """What the two drivers share."""

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path = path
        self.readonly = readonly
        self._synchronous = ""
        self._damage: JournalError | None = None

    def _failed(self, error: Exception) -> JournalError:
        """The error in words. Once damage is found, nothing is written any more."""
        if not _is_damage(error):
            return _explained(self.path, error)
        damage = _damaged(self.path, str(error), "" if self.readonly else "; nothing more is written to it")
        if not self.readonly:
            self._damage = damage
        return damage

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._run(sql, values)

    def begin(self, *, durable: bool) -> None:
        if self._damage is not None:
            raise self._damage
        # In WAL mode NORMAL survives the end of the process, FULL (an fsync of the log) that of the machine.
        synchronous = "FULL" if durable else "NORMAL"
        if synchronous != self._synchronous:
            self.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.execute("COMMIT")

    @property
    def broken(self) -> bool:
        return False

    @property
    def in_transaction(self) -> bool:
        raise NotImplementedError

    def rollback(self) -> None:
        if self.in_transaction:  # a full disk has rolled back already
            self.execute("ROLLBACK")

    def close(self) -> None:
        raise NotImplementedError


class ApswDatabase(SqliteDatabase):
    def __init__(self, path: Path, *, readonly: bool) -> None:
        super().__init__(path, readonly=readonly)
        flags = (
            apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        )
        try:
            self._connection = apsw.Connection(_uri(path, readonly), flags | apsw.SQLITE_OPEN_URI)
        except (apsw.Error, OSError) as error:
            raise self._failed(error) from None

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(sql, tuple(values)))
        except (apsw.Error, OSError) as error:
            raise self._failed(error) from None

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


class StandardDatabase(SqliteDatabase):
    def __init__(self, path: Path, *, readonly: bool) -> None:
        import sqlite3

        super().__init__(path, readonly=readonly)
        self._errors = (sqlite3.Error, OSError)
        try:
            self._connection = sqlite3.connect(
                _uri(path, readonly), uri=True, isolation_level=None, check_same_thread=False
            )
        except self._errors as error:
            raise self._failed(error) from None

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, tuple(values)).fetchall()
        except self._errors as error:
            raise self._failed(error) from None

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


def _uri(path: Path, readonly: bool) -> str:
    """A file in a folder that cannot be written is read as it is: SQLite could not make its log beside it."""
    if path == _IN_MEMORY:
        return "file::memory:"
    uri = path.absolute().as_uri()
    if not readonly:
        return uri + "?mode=rwc"
    return uri + ("?mode=ro" if os.access(path.parent, os.W_OK) else "?mode=ro&immutable=1")


def _prepared(database: SqliteDatabase, path: Path, lived_in: bool) -> SqliteDatabase:
    """Check what the file is, and bring it to the present schema."""
    try:
        database.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
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
            for number in range(found + 1, SCHEMA_VERSION + 1):
                for statement in MIGRATIONS[number]:
                    database.execute(statement.format(**_WORDS))
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        database.commit()
    except BaseException:
        database.rollback()
        raise


# --- errors ---------------------------------------------------------------------------------------------


def _is_damage(error: Exception) -> bool:
    text = str(error).lower()
    return "malformed" in text or "not a database" in text or "corrupt" in text


def _damaged(path: Path, what: str, then: str) -> JournalError:
    return JournalError(
        f"{path} is damaged ({what}){then}. `narratoria sessions salvage` copies what can be read into a new "
        f"file, and keeps this one"
    )


def _explained(path: Path, error: Exception) -> JournalError:
    """What went wrong, in words that say what to do. The file is never touched to find out."""
    text = str(error).lower()
    if "full" in text:
        return JournalError(f"{path}: the disk is full; make room, then go on: what was saved before is safe")
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return JournalError(f"{path} cannot be written or opened ({error}); check the folder's permissions")
    if "locked" in text or "busy" in text:
        return JournalError(
            f"{path} is locked by another program for more than {_BUSY_MS // 1000} s ({error})"
        )
    return JournalError(f"{path}: {type(error).__name__}: {error}")


def _reason(error: OSError) -> str:
    return "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
