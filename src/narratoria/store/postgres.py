"""The shared store: PostgreSQL, for several servers that play the same sessions (extra `postgres`).

The writer of a session holds a lease (`postgres_keeper.py`), and every batch is written in a transaction that locks the
row of that lease: whoever lost it cannot write, whatever the network does. Assets are kept in the database too, or in a
bucket (`shared_assets.py`), and are copied to each server's folder when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Final

from narratoria.errors import JournalError, LeaseLost
from narratoria.events import AssetStored
from narratoria.extras import needed
from narratoria.session.record import EmittedRecords, Record
from narratoria.store.bucket import Bucket, bucket_of_environment
from narratoria.store.journal_store import Batch, Lease
from narratoria.store.postgres_keeper import TABLES as KEEPER_TABLES
from narratoria.store.postgres_keeper import Keeper, TableLease, own_name
from narratoria.store.postgres_listener import Listener
from narratoria.store.postgres_players import TABLES as PLAYER_TABLES
from narratoria.store.postgres_players import Players
from narratoria.store.shared_assets import CONTENTS, OBJECTS, SharedAssets
from narratoria.store.sql_store import SqlStore
from narratoria.store.sql_versions import SCHEMA, upgrade
from narratoria.store.store import SCHEMA_VERSION, SessionMeta
from narratoria.store.writer import ConnectionLost, Database

try:
    import psycopg
except ImportError:  # pragma: no cover - depends on what is installed
    raise JournalError(f"a store in PostgreSQL {needed('postgres')}") from None

SCHEMA_NAME: Final = "narratoria"
_WORDS: Final = {
    "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "int": "BIGINT", "real": "DOUBLE PRECISION",
    "blob": "BYTEA", "clustered": "",
}  # fmt: skip
_MORE_TABLES: Final = {"commands": KEEPER_TABLES, "object_folder": OBJECTS, "owners": PLAYER_TABLES}
"""Tables that came later, in groups, by one of each: a group is made where that one is missing."""
_CONNECT_SECONDS: Final = 5
# A server that vanished without a word, and a database that did, are noticed within some ten seconds ...
_KEEPALIVE: Final = ("tcp_keepalives_idle = 5", "tcp_keepalives_interval = 2", "tcp_keepalives_count = 3")
_OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": _CONNECT_SECONDS, "keepalives_idle": 5,
    "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000,
}  # fmt: skip
_IDLE_MILLISECONDS: Final = (
    3000  # ... and a frozen one that is in a transaction does not hold its locks for longer
)
_APPLICATION: Final = "narratoria, "
_FENCE: Final = "SELECT 1 FROM leases WHERE session = ? AND epoch = ? FOR SHARE"
_GATE: Final = 0x4E617272  # the lock under which the schema is made


def open_address(address: str, home: Path) -> PostgresStore:
    """Open the database at an address, with its assets in the bucket of the environment, if that names one. Copies of
    them are in the home.
    """
    return PostgresStore(address, assets=home / "assets", bucket=bucket_of_environment())


class PostgresStore(SqlStore):
    """Sessions in the schema `narratoria` of a database; `assets` is this server's folder of copies, and `bucket` keeps
    their contents in place of the database.
    """

    row_lock = " FOR UPDATE OF s"
    patience = 30.0

    def __init__(self, url: str, *, assets: Path | None = None, bucket: Bucket | None = None) -> None:
        self.url = url
        self.connections = 0
        self._in_bucket = bucket is not None
        self.contents = SharedAssets(assets, self, bucket)
        super().__init__(self.contents, "postgres")
        self.keeper = Keeper(self._connect_reader)
        self.players = Players(self)

    def _connect(self) -> Database:
        database = PostgresDatabase(self.url)
        try:
            _prepare(database)
            database.execute(f"SET idle_in_transaction_session_timeout = {_IDLE_MILLISECONDS}")
        except BaseException:
            database.close()
            raise
        self.connections += 1
        return database

    def _connect_reader(self) -> Database:
        self.writer.run(lambda database: database.execute("SELECT 1"))  # makes the schema
        return PostgresDatabase(self.url)

    def lease(self, session_id: str) -> TableLease:
        return self.keeper.take(session_id, self.connections)

    def submit(self, key: int, lease: Lease, batch: Batch) -> Future[int]:
        """Write a batch if the lease is still ours when it is written; a commit that got no answer is not repeated."""
        assert isinstance(lease, TableLease)  # noqa: S101 - our own

        def append(database: Database) -> int:
            if lease.lost or not database.execute(_FENCE, (lease.session_id, lease.epoch)):
                self.keeper.lose(lease)
                raise LeaseLost(
                    f"session {lease.session_id} was taken over by another process while this one did not answer; "
                    f"nothing is written here after record {batch.after}. Open the session again"
                )
            if lease.connection == self.connections:
                return self.append(database, key, batch.after, batch.records, batch.durable, batch.snapshot)
            size = self._append_rest(database, key, lease, batch)
            lease.connection = self.connections
            return size

        def submit() -> Future[int]:
            return self.writer.submit(append, durable=batch.durable)

        brought = _assets_of(batch.records) if self._in_bucket else []
        writing = self.contents.first_bringing(brought, submit) if brought else submit()
        if self.keeper.serving:
            writing.add_done_callback(partial(self._announce, lease.session_id, batch.records[-1].last))
        return writing

    def _announce(self, session_id: str, last: int, written: Future[int]) -> None:
        if written.exception() is None:
            self.keeper.announce(session_id, last)

    def _append_rest(self, database: Database, key: int, lease: TableLease, batch: Batch) -> int:
        """Write the part of a batch that is not there. The lease is ours since before the connection was lost, so what
        is there is ours too. A database that crashed may have lost the last moments of a turn: then the session begins
        anew from what it has, as after a crash of our own.
        """
        row = self._row_to_write(database, key)
        written = batch.after if row is None else row.last_seq
        if written < batch.after:
            self.keeper.abandon(lease)
            raise LeaseLost(
                f"the database crashed and lost records {written + 1} to {batch.after} of session {lease.session_id}; "
                "the turn goes on from what it has. Open the session again"
            )
        if written == batch.after:
            return self.append(database, key, batch.after, batch.records, batch.durable, batch.snapshot)
        rest = [one for one in batch.records if one.last > written]
        if rest:
            return self.append(database, key, written, rest, batch.durable, batch.snapshot)
        if batch.snapshot is not None and not database.execute(
            "SELECT 1 FROM snapshots WHERE session = ? AND seq = ?", (key, written)
        ):
            self._keep_snapshot(database, key, written, batch.snapshot)
        return 0

    def give(self, database: Database, session_id: str, owner: str | None) -> None:
        self.players.give(database, session_id, owner)

    def delete(self, session_id: str) -> None:
        super().delete(session_id)
        self.writer.run(lambda database: self.players.give(database, session_id, None))

    def metas(self, session_ids: Sequence[str]) -> list[SessionMeta]:
        """Return those of some sessions that there are, the one changed last first."""
        return self.listed(" WHERE s.id = ANY(?)", (list(session_ids),))

    def holds_content(self, digest: str) -> bool:
        return self.contents.holds_content(digest)

    def brought(self, digests: Iterable[str]) -> AbstractContextManager[None]:
        return self.contents.brought(digests)

    def listener(self, heard: Callable[[str], None]) -> Listener:
        """Return a thread that hears the messages of other servers."""
        return Listener(lambda: psycopg.connect(self.url, autocommit=True, **_OPTIONS), heard)

    def close(self) -> None:
        self.keeper.close()
        super().close()
        self.contents.close()

    def keep_asset(self, database: Database, stored: AssetStored, *, durable: bool) -> None:
        self.contents.keep(database, stored.hash)


def _assets_of(entries: Sequence[Record | EmittedRecords]) -> list[str]:
    """Return the hashes of the assets that records refer to."""
    return [one.event.hash for one in entries if type(one) is Record and isinstance(one.event, AssetStored)]


class PostgresDatabase:
    """One connection. All our tables lie in a schema of their own."""

    def __init__(self, url: str) -> None:
        try:
            self._connection = psycopg.connect(
                url, autocommit=True, **_OPTIONS, application_name=f"{_APPLICATION}{own_name()}"[:63]
            )
            self._cursor = self._connection.cursor()
            for setting in (f"search_path = {SCHEMA_NAME}", *_KEEPALIVE):
                self._cursor.execute(f"SET {setting}".encode())
        except psycopg.Error as error:
            raise ConnectionLost(str(_explained(error))) from None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            self._cursor.execute(sql.replace("?", "%s").encode(), values or None)
            return self._cursor.fetchall() if self._cursor.description else []
        except psycopg.Error as error:
            raise _explained(error) from None

    def begin(self, *, durable: bool) -> None:
        if durable:
            self.execute("BEGIN")
            return
        try:  # as SQLite's NORMAL: ours may die, only the server itself must not
            self._cursor.execute(b"BEGIN; SET LOCAL synchronous_commit = off", prepare=False)
        except psycopg.Error as error:
            raise _explained(error) from None

    def commit(self) -> None:
        self.execute("COMMIT")

    @property
    def broken(self) -> bool:
        return self._connection.closed or self._connection.broken

    def rollback(self) -> None:
        self.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def _prepare(database: PostgresDatabase) -> None:
    database.begin(durable=True)
    try:
        encoding = database.execute("SELECT getdatabaseencoding()::name")[0][0]
        if encoding not in ("UTF8", b"UTF8"):
            raise JournalError(
                "the database is not in UTF-8; make one with CREATE DATABASE … ENCODING 'UTF8'"
            )
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
            for statement in (*SCHEMA, CONTENTS):
                database.execute(statement.format(**_WORDS))
            database.execute("INSERT INTO version (number) VALUES (?)", (SCHEMA_VERSION,))
        elif rows[0][0] < SCHEMA_VERSION:
            upgrade(database, rows[0][0], _WORDS)
            database.execute("UPDATE version SET number = ?", (SCHEMA_VERSION,))
        for table, statements in _MORE_TABLES.items():
            if database.execute("SELECT to_regclass(?) IS NULL", (table,))[0][0]:
                for statement in statements:
                    database.execute(statement)
        database.commit()
    except BaseException:
        database.rollback()
        raise


def _explained(error: Exception) -> JournalError:
    text = " ".join(str(error).split()) or type(error).__name__
    return JournalError(f"PostgreSQL: {text}")
