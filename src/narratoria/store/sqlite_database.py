"""A connection to a SQLite file, with `apsw` or the standard library, and errors that say what to do."""

from __future__ import annotations

import errno
import os
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


def default_driver() -> str:
    return "apsw" if apsw is not None else "sqlite3"


def connect(path: Path, driver: str, *, readonly: bool) -> SqliteDatabase:
    if driver == "apsw":
        return ApswDatabase(path, readonly=readonly)
    return StandardDatabase(path, readonly=readonly)


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
        except (apsw.Error, OSError, UnicodeDecodeError) as error:  # the last: a text that damage has changed
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
        self._errors = (sqlite3.Error, OSError, UnicodeDecodeError)
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
    """Return the URI of a file; one in a read-only folder is opened as immutable, since SQLite cannot make its log
    there.
    """
    if path == IN_MEMORY:
        return "file::memory:"
    uri = path.absolute().as_uri()
    if not readonly:
        return uri + "?mode=rwc"
    return uri + ("?mode=ro" if os.access(path.parent, os.W_OK) else "?mode=ro&immutable=1")


# --- errors ---------------------------------------------------------------------------------------------


def _is_damage(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in ("malformed", "not a database", "corrupt", "decode"))


def damaged(path: Path, what: str, then: str) -> JournalError:
    return JournalError(
        f"{path} is damaged ({what}){then}. `narratoria sessions salvage` copies what can be read into a new "
        f"file, and keeps this one"
    )


def _explained(path: Path, error: Exception) -> JournalError:
    """Return an error that says what to do. The file is not touched to find out."""
    text = str(error).lower()
    if "full" in text:
        return JournalError(f"{path}: the disk is full; make room, then go on: what was saved before is safe")
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return JournalError(unwritable(path.parent, f"{path.name}: {error}"))
    if "locked" in text or "busy" in text:
        return JournalError(
            f"{path} is locked by another program for more than {BUSY_MS // 1000} s ({error})"
        )
    return JournalError(f"{path}: {type(error).__name__}: {error}")


def reason(error: OSError) -> str:
    return "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
