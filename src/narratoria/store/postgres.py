"""The shared store: PostgreSQL, for several servers that play the same sessions (extra `postgres`).

The writer of a session holds an advisory lock of the very connection that writes. A server that loses its connection
loses its locks with it and cannot write either, so two writers never interleave, whatever the network does. Assets
are kept in the database too, and are copied to each server's folder when they are asked for.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from narratoria.errors import JournalError, SessionBusy
from narratoria.events import AssetStored
from narratoria.extras import needed
from narratoria.session.assets import AssetStore
from narratoria.session.private_files import make_file
from narratoria.store.sql_store import SqlStore
from narratoria.store.sql_versions import SCHEMA, upgrade
from narratoria.store.store import SCHEMA_VERSION
from narratoria.store.writer import Database

try:
    import psycopg
except ImportError:  # pragma: no cover - depends on what is installed
    raise JournalError(f"a store in PostgreSQL {needed('postgres')}") from None

SCHEMA_NAME: Final = "narratoria"
_WORDS: Final = {
    "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "int": "BIGINT", "real": "DOUBLE PRECISION",
    "blob": "BYTEA", "clustered": "",
}  # fmt: skip
_CONTENT: Final = "CREATE TABLE contents (hash TEXT PRIMARY KEY, data BYTEA NOT NULL)"
_CONNECT_SECONDS: Final = 10
# So that a server which vanished without a word frees its locks within half a minute.
_KEEPALIVE: Final = ("tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3")
_APPLICATION: Final = "narratoria, "
_HALF: Final = 0xFFFFFFFF
_HOLDER: Final = """SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = ? AND l.objid = ? AND l.objsubid = 1"""
_GATE: Final = 0x4E617272  # the lock under which the schema is made


def open_address(address: str, home: Path) -> PostgresStore:
    """Open the database at an address, with the assets of this machine in the home."""
    return PostgresStore(address, assets=home / "assets")


class PostgresStore(SqlStore):
    """Sessions in the schema `narratoria` of a database; `assets` is this server's folder of copies."""

    row_lock = " FOR UPDATE OF s"

    def __init__(self, url: str, *, assets: Path | None = None) -> None:
        self.url = url
        self.connections = 0
        self._held: set[str] = set()
        self._holding = threading.Lock()
        super().__init__(SharedAssets(assets, self), "postgres")

    def _connect(self) -> Database:
        database = PostgresDatabase(self.url)
        try:
            _prepare(database)
        except BaseException:
            database.close()
            raise
        with self._holding:
            self.connections += 1
            self._held.clear()  # the locks of the connection before this one went with it
        return database

    def _connect_reader(self) -> Database:
        self.writer.run(lambda database: database.execute("SELECT 1"))  # makes the schema
        return PostgresDatabase(self.url)

    def lease(self, session_id: str) -> AdvisoryLease:
        return self.writer.run(lambda database: self._take(database, session_id))

    def _take(self, database: Database, session_id: str) -> AdvisoryLease:
        with self._holding:  # a lock may be taken twice by one connection, so we count ourselves
            if session_id in self._held:
                raise SessionBusy(f"session {session_id} is open in this process; close it there first")
            number = _lock_number(session_id)
            if not database.execute("SELECT pg_try_advisory_lock(?)", (number,))[0][0]:
                holder = _holder_of(database, number)
                raise SessionBusy(f"session {session_id} is open in {holder}; close it there first")
            self._held.add(session_id)
            return AdvisoryLease(self, session_id, self.connections)

    def give_back(self, session_id: str) -> None:
        def unlock(database: Database) -> None:
            database.execute("SELECT pg_advisory_unlock(?)", (_lock_number(session_id),))
            with self._holding:
                self._held.discard(session_id)

        self.writer.run(unlock)

    def keep_asset(self, database: Database, stored: AssetStored, *, durable: bool) -> None:
        if not database.execute("SELECT 1 FROM contents WHERE hash = ?", (stored.hash,)):
            content = self.assets.path_of(stored.hash).read_bytes()
            database.execute(
                "INSERT INTO contents (hash, data) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (stored.hash, content),
            )


class AdvisoryLease:
    """A lock that one connection holds. `connection` counts the store's connections: a later one holds no lock."""

    def __init__(self, store: PostgresStore, session_id: str, connection: int) -> None:
        self._store: PostgresStore | None = store
        self._session_id = session_id
        self._connection = connection

    @property
    def held(self) -> bool:
        return self._store is not None and self._store.connections == self._connection

    def release(self) -> None:
        held, store = self.held, self._store
        self._store = None
        if held and store is not None:
            store.give_back(self._session_id)


class SharedAssets(AssetStore):
    """A folder of copies in front of the database's table of contents."""

    def __init__(self, root: Path | None, store: PostgresStore) -> None:
        super().__init__(root)
        self._store = store

    def path_of(self, digest: str) -> Path:
        try:
            return super().path_of(digest)
        except KeyError:
            rows = self._store.query("SELECT data FROM contents WHERE hash = ?", (digest,))
            if not rows:
                raise
        self.add_content(bytes(rows[0][0]))
        return super().path_of(digest)

    def add_content(self, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        copy = self._incoming() / digest
        make_file(copy)
        copy.write_bytes(content)
        self._settle(copy, digest)

    def discard(self, digest: str) -> int:
        size = super().discard(digest)
        self._store.writer.run(
            lambda database: database.execute("DELETE FROM contents WHERE hash = ?", (digest,))
        )
        return size


class PostgresDatabase:
    """One connection. All our tables lie in a schema of their own."""

    def __init__(self, url: str) -> None:
        try:
            self._connection = psycopg.connect(
                url, connect_timeout=_CONNECT_SECONDS, autocommit=True, application_name=_own_name()
            )
            self._cursor = self._connection.cursor()
            for setting in (f"search_path = {SCHEMA_NAME}", *_KEEPALIVE):
                self._cursor.execute(f"SET {setting}".encode())
        except psycopg.Error as error:
            raise _explained(error) from None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            self._cursor.execute(sql.replace("?", "%s").encode(), values or None)
            return self._cursor.fetchall() if self._cursor.description else []
        except psycopg.Error as error:
            raise _explained(error) from None

    def begin(self, *, durable: bool) -> None:
        self.execute("BEGIN")
        if not durable:  # as SQLite's NORMAL: ours may die, only the server itself must not
            self.execute("SET LOCAL synchronous_commit = off")

    def commit(self) -> None:
        self.execute("COMMIT")

    @property
    def broken(self) -> bool:
        return self._connection.closed or self._connection.broken

    def rollback(self) -> None:
        self.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def _own_name() -> str:
    """Return our name for other users of the database, which keeps 63 bytes of it."""
    return f"{_APPLICATION}process {os.getpid()} on {socket.gethostname()}"[:63]


def _prepare(database: PostgresDatabase) -> None:
    database.begin(durable=True)
    try:
        database.execute("SELECT pg_advisory_xact_lock(?)", (_GATE,))  # two servers that start at once
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA_NAME}")
        database.execute("CREATE TABLE IF NOT EXISTS version (number BIGINT NOT NULL)")
        rows = database.execute("SELECT number FROM version")
        if rows and rows[0][0] > SCHEMA_VERSION:
            raise JournalError(
                f"the database was written by a newer Narratoria (its version is {rows[0][0]}, this one "
                f"reads up to {SCHEMA_VERSION}); nothing was changed. Upgrade Narratoria to use it"
            )
        if not rows:
            for statement in (*SCHEMA, _CONTENT):
                database.execute(statement.format(**_WORDS))
            database.execute("INSERT INTO version (number) VALUES (?)", (SCHEMA_VERSION,))
        elif rows[0][0] < SCHEMA_VERSION:
            upgrade(database, rows[0][0], _WORDS)
            database.execute("UPDATE version SET number = ?", (SCHEMA_VERSION,))
        database.commit()
    except BaseException:
        database.rollback()
        raise


def _holder_of(database: Database, number: int) -> str:
    """Return the holder of a lock, in words. It may be free again by now, or belong to a user whose name is hidden."""
    rows = database.execute(_HOLDER, (number >> 32 & _HALF, number & _HALF))
    name = str(rows[0][0] or "") if rows else ""
    return name.removeprefix(_APPLICATION) if name.startswith(_APPLICATION) else "a process on another server"


def _lock_number(session_id: str) -> int:
    return int.from_bytes(hashlib.sha256(session_id.encode()).digest()[:8], "big", signed=True)


def _explained(error: Exception) -> JournalError:
    text = " ".join(str(error).split()) or type(error).__name__
    return JournalError(f"PostgreSQL: {text}")
