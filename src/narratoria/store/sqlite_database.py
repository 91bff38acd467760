"""A connection to a SQLite file, with `apsw` or the standard library, and errors that say what to do."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from narratoria.errors import JournalError, unwritten
from narratoria.store.store import unwritable

try:
    import apsw
except ImportError:  # a platform without a wheel: slower, otherwise the same
    apsw = None  # type: ignore[assignment]

IN_MEMORY: Final = Path(":memory:")
BUSY_MS: Final = 10_000
SALVAGE: Final = "`narratoria sessions salvage` copies what can be read into a new file, and keeps this one"
_INDEX_BYTES: Final = 64 * 1024  # the index of a log takes half of that


def default_driver() -> str:
    return "apsw" if apsw is not None else "sqlite3"


class StorageFailed(JournalError):
    """The disk is full, or fails."""


def connect(path: Path, driver: str, *, readonly: bool, immutable: bool = False) -> SqliteDatabase:
    """Open a file. One that is `immutable` is read without its log and without locks."""
    kind = ApswDatabase if driver == "apsw" else StandardDatabase
    return kind(path, readonly=readonly, immutable=immutable)


def check_place(path: Path) -> None:
    """Raise `JournalError` if there can be no database at that path."""
    try:
        if path.is_dir():
            raise JournalError(
                f"{path} is a folder, and sessions are kept in a file; name one, such as {path / 'sessions.db'}"
            )
        if path.exists() and not path.is_file():
            raise JournalError(f"{path} is a device, a pipe or a socket; name a file to keep sessions in")
        above = next(one for one in path.absolute().parents if one.exists())
        if not above.is_dir():
            raise JournalError(
                f"{above} is a file, so {path} cannot be in it; set NARRATORIA_STORE to a file in a folder, or "
                f"NARRATORIA_HOME to a folder"
            )
    except OSError as error:
        raise JournalError(f"{path}: {reason(error)}") from None


def is_settled(path: Path) -> bool:
    """Tell if the log of a database is empty, so that the file alone has everything."""
    log = path.with_name(f"{path.name}-wal")
    return not log.exists() or not log.stat().st_size


class SqliteDatabase:
    """The base of the two drivers."""

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path = path
        self.readonly = readonly
        self._synchronous = ""
        self._damage: JournalError | None = None

    def _failed(self, error: Exception) -> JournalError:
        """Return the error in words. Once damage is found, nothing is written any more."""
        if not _is_damage(error):
            return _explained(self.path, error)
        damage = damaged(self.path, str(error), "" if self.readonly else "; nothing more is written to it")
        if not self.readonly:
            self._damage = damage
        return damage

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        raise unwritten(self, "_run")

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
        if self._damage is not None:  # met, and passed over, on the way
            raise self._damage
        self.execute("COMMIT")

    @property
    def broken(self) -> bool:
        return False

    @property
    def in_transaction(self) -> bool:
        raise unwritten(self, "in_transaction")

    def rollback(self) -> None:
        if self.in_transaction:  # a full disk has rolled back already
            self.execute("ROLLBACK")

    def close(self) -> None:
        raise unwritten(self, "close")


class ApswDatabase(SqliteDatabase):
    def __init__(self, path: Path, *, readonly: bool, immutable: bool = False) -> None:
        super().__init__(path, readonly=readonly)
        flags = (
            apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        )
        try:
            self._connection = apsw.Connection(_uri(path, readonly, immutable), flags | apsw.SQLITE_OPEN_URI)
        except (apsw.Error, OSError) as error:
            raise self._failed(error) from None

    def _run(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return list(self._connection.execute(sql, tuple(values)))
        except (
            apsw.Error,
            OSError,
            UnicodeDecodeError,
            OverflowError,
        ) as error:  # the third: text that damage changed
            raise self._failed(error) from None

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


class StandardDatabase(SqliteDatabase):
    def __init__(self, path: Path, *, readonly: bool, immutable: bool = False) -> None:
        import sqlite3

        super().__init__(path, readonly=readonly)
        self._errors = (sqlite3.Error, OSError, UnicodeDecodeError, OverflowError)
        try:
            self._connection = sqlite3.connect(
                _uri(path, readonly, immutable), uri=True, isolation_level=None, check_same_thread=False
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


def _uri(path: Path, readonly: bool, immutable: bool) -> str:
    """Return the URI of a file; one in a read-only folder is opened as immutable, since SQLite cannot make its log
    there.
    """
    if path == IN_MEMORY:
        return "file::memory:"
    uri = path.absolute().as_uri()
    if not readonly:
        return uri + "?mode=rwc"
    immutable = immutable or not os.access(path.parent, os.W_OK)
    return uri + ("?mode=ro&immutable=1" if immutable else "?mode=ro")


# --- errors ---------------------------------------------------------------------------------------------


def _is_damage(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in ("malformed", "not a database", "corrupt", "decode"))


def damaged(path: Path, what: str, then: str) -> JournalError:
    return JournalError(f"{path} is damaged ({what}){then}. {SALVAGE}")


def _explained(path: Path, error: Exception) -> JournalError:
    """Return an error that says what to do. The file is not touched to find out."""
    text = str(error).lower()
    failed = "disk i/o error" in text
    if "full" in text or (failed and _is_full(path)):
        return StorageFailed(
            f"{path}: the disk is full; make room, then go on: what was saved before is safe"
        )
    if failed:
        return StorageFailed(f"{path}: the disk fails ({error}); look at the system's log, and make a copy")
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return JournalError(unwritable(path.parent, f"{path.name}: {error}"))
    if "locked" in text or "busy" in text:
        return JournalError(
            f"{path} is locked by another program for more than {BUSY_MS // 1000} s ({error})"
        )
    return JournalError(f"{path}: {type(error).__name__}: {error}")


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _INDEX_BYTES
    except OSError:
        return False


def reason(error: OSError) -> str:
    return "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
