"""The keeper of a process that uses a shared database: its heartbeat, its leases, and its announcements.

One thread with a connection of its own. The process has a row in `servers` whose `expires` it pushes on twice a second,
and holds an advisory lock on that connection, so that the end of the process is seen at once and a frozen one after
`LEASE_SECONDS`. A session belongs to the process that its row in `leases` names. Each taking of a lease gets a new
`epoch`, and every batch of records is written only under the epoch of its writer: see `PostgresStore.submit`.
All times are the database's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import socket
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from narratoria.errors import JournalError, SessionBusy, SessionElsewhere
from narratoria.store.writer import ConnectionLost, Database, Job

T = TypeVar("T")

LEASE_SECONDS: Final = 3.0
"""Seconds after its last heartbeat at which a process has lost its sessions to whoever wants them."""
BEAT_SECONDS: Final = 0.5
SILENT_SECONDS: Final = 1.5
"""The same for a process whose connection is gone: it may have lost only that, and makes another."""
GATHER_SECONDS: Final = 0.01  # announcements wait for company
CHANNEL: Final = "narratoria"
NOBODY: Final = ""  # holds the leases of sessions whose server ended in the middle of a turn

TABLES: Final = (
    "CREATE SEQUENCE IF NOT EXISTS epochs",
    """CREATE TABLE IF NOT EXISTS servers (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, lock BIGINT NOT NULL, serving BOOLEAN NOT NULL,
        expires TIMESTAMPTZ NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS leases (
        session TEXT PRIMARY KEY, server TEXT NOT NULL, epoch BIGINT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS leases_by_server ON leases (server)",
    # A command is short-lived: what a crash of the database takes, its sender asks again.
    """CREATE UNLOGGED TABLE IF NOT EXISTS commands (
        id TEXT PRIMARY KEY, server TEXT NOT NULL, sender TEXT NOT NULL,
        request BYTEA NOT NULL, made TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
        taken BOOLEAN NOT NULL DEFAULT FALSE, answer BYTEA)""",
    "CREATE INDEX IF NOT EXISTS commands_by_server ON commands (server) WHERE NOT taken",
)
_LOCKED: Final = """EXISTS (SELECT 1 FROM pg_locks k WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 1
    AND k.classid = ((v.lock >> 32) & 4294967295)::oid AND k.objid = (v.lock & 4294967295)::oid
    AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database()))"""
ALIVE: Final = f"""(v.expires > clock_timestamp() AND (v.expires > clock_timestamp()
    + make_interval(secs => {LEASE_SECONDS - SILENT_SECONDS}) OR {_LOCKED}))"""
_EXPIRES: Final = f"clock_timestamp() + make_interval(secs => {LEASE_SECONDS})"
_REGISTER: Final = f"""INSERT INTO servers (id, name, lock, serving, expires) VALUES (?, ?, ?, ?, {_EXPIRES})
    ON CONFLICT (id) DO UPDATE SET expires = excluded.expires, serving = excluded.serving"""  # noqa: S608 - our own words
_BEAT: Final = f"""WITH beat AS (UPDATE servers SET expires = {_EXPIRES} WHERE id = ? RETURNING 1)
    SELECT (SELECT count(*) FROM beat),
    (SELECT count(*) FROM servers WHERE serving AND id <> ? AND expires > clock_timestamp())"""  # noqa: S608 - our own words
_TAKE: Final = f"""INSERT INTO leases AS l (session, server, epoch) VALUES (?, ?, nextval('epochs'))
    ON CONFLICT (session) DO UPDATE SET server = excluded.server, epoch = excluded.epoch
    WHERE l.server = excluded.server OR (? AND NOT EXISTS (
        SELECT 1 FROM servers v WHERE v.id = l.server AND {ALIVE}))
    RETURNING epoch"""  # noqa: S608 - our own words
_HOLDER: Final = f"""SELECT v.id, v.name, v.serving, {_LOCKED} FROM leases l JOIN servers v ON v.id = l.server
    WHERE l.session = ? AND v.expires > clock_timestamp()"""  # noqa: S608 - our own words

_ELSEWHERE: Final = f"""SELECT v.id FROM leases l JOIN servers v ON v.id = l.server
    WHERE l.session = ? AND v.serving AND v.id <> ? AND {ALIVE}"""  # noqa: S608 - our own words
_PEER: Final = (
    f"SELECT v.id FROM servers v WHERE v.serving AND v.id <> ? AND {ALIVE} ORDER BY random() LIMIT 1"  # noqa: S608
)
_IS_ALIVE: Final = f"SELECT 1 FROM servers v WHERE v.id = ? AND {ALIVE}"  # noqa: S608
_DEAD: Final = f"SELECT v.id FROM servers v WHERE NOT {ALIVE}"  # noqa: S608
_LEFT_OPEN: Final = """SELECT l.session FROM leases l JOIN sessions s ON s.id = l.session WHERE l.server = ANY(?)
    AND EXISTS (SELECT 1 FROM turns t WHERE t.session = s.key AND t.last_seq IS NULL
        AND t.turn = (SELECT max(n.turn) FROM turns n WHERE n.session = s.key))"""
_FORGET: Final = f"DELETE FROM servers v WHERE v.id = ANY(?) AND NOT {ALIVE}"  # noqa: S608


@dataclass(slots=True, eq=False)
class TableLease:
    """The right to write one session, under an epoch. `connection` is the store's connection that wrote with it."""

    keeper: Keeper
    session_id: str
    epoch: int
    connection: int
    lost: bool = False
    released: bool = False

    @property
    def held(self) -> bool:
        return not (self.lost or self.released)

    def release(self, *, open_turn: bool = False) -> None:
        """Give the session up. In the middle of a turn another server takes it over."""
        held, self.released = self.held, True
        if held:
            self.keeper.give_back(self, to=NOBODY if open_turn else None)


@dataclass(slots=True)
class _Entry:
    job: Job[Any]
    future: Future[Any] = field(default_factory=Future)


class Keeper:
    """Takes and keeps leases for one process. `connect` is called in its thread."""

    def __init__(self, connect: Callable[[], Database]) -> None:
        self.id = uuid.uuid4().hex
        self.name = own_name()
        self.serving = False  # it answers requests for its sessions that other servers get
        self.peers = 0  # other servers that are alive
        self.on_lost: Callable[[str], None] | None = None
        self.leases: dict[str, TableLease] = {}
        self._lock = lock_number(self.id)
        self._connect = connect
        self._database: Database | None = None
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._news: dict[str, int] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._beaten = 0.0  # when the last heartbeat was written
        self._next_beat = 0.0
        self._judges_from = 0.0  # after a lost connection, others get time to make theirs again too

    # --- for every thread ----------------------------------------------------------------------------------

    def start(self) -> None:
        with self._guard:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="narratoria-keeper", daemon=True)
                self._thread.start()

    def run(self, job: Job[T]) -> T:
        return self.submit(job).result()

    def submit(self, job: Job[T]) -> Future[T]:
        """Do something on the keeper's connection, each statement a transaction of its own."""
        entry = _Entry(job)
        if self._closed:
            entry.future.set_exception(JournalError("the store is closed; open it again to write"))
        else:
            self.start()
            self._queue.put(entry)
        return entry.future

    @property
    def beating(self) -> bool:
        """False if the database has not taken a heartbeat for so long that others may take our sessions."""
        return time.monotonic() - self._beaten < LEASE_SECONDS

    @property
    def judges(self) -> bool:
        """False while others may not have come back yet after the database was away."""
        return self.beating and time.monotonic() >= self._judges_from

    def take(self, session_id: str, connection: int) -> TableLease:
        """Take the lease of a session. One whose holder has just lost its connection is waited for a moment."""
        until = time.monotonic() + 2 * SILENT_SECONDS
        while True:
            with self._guard:
                known = self.leases.get(session_id)
                if known is not None and known.held:
                    raise SessionBusy(f"session {session_id} is open in this process; close it there first")
            rows = self.run(lambda database: self._take(database, session_id))
            if rows:
                lease = TableLease(self, session_id, int(rows[0][0]), connection)
                with self._guard:
                    self.leases[session_id] = lease
                return lease
            holder = self.run(lambda database: database.execute(_HOLDER, (session_id,)))
            if holder and (holder[0][3] or time.monotonic() > until):
                raise _busy(session_id, *holder[0][:3])
            if time.monotonic() > until:
                raise SessionBusy(f"session {session_id} is just being taken over; try again in a moment")
            time.sleep(0.1)

    def _take(self, database: Database, session_id: str) -> list[tuple[Any, ...]]:
        return database.execute(_TAKE, (session_id, self.id, self.judges))

    def elsewhere(self, session_id: str) -> str | None:
        """Return the id of another server that has a session now."""
        rows = self.run(lambda database: database.execute(_ELSEWHERE, (session_id, self.id)))
        return str(rows[0][0]) if rows else None

    def peer(self) -> str | None:
        """Return the id of some other server that is alive."""
        rows = self.run(lambda database: database.execute(_PEER, (self.id,)))
        return str(rows[0][0]) if rows else None

    def is_alive(self, server: str) -> bool:
        return bool(self.run(lambda database: database.execute(_IS_ALIVE, (server,))))

    def abandoned(self) -> list[str]:
        """Return sessions whose servers are dead, in the middle of a turn; other traces of those are removed."""
        return self.run(self._abandoned) if self.judges else []

    def _abandoned(self, database: Database) -> list[str]:
        dead = [NOBODY, *(str(row[0]) for row in database.execute(_DEAD))]
        left = [str(row[0]) for row in database.execute(_LEFT_OPEN, (dead,))]
        if len(dead) > 1 and not left:
            database.execute("DELETE FROM leases WHERE server = ANY(?)", (dead[1:],))
            database.execute(_FORGET, (dead[1:],))
        return left

    def give_back(self, lease: TableLease, *, to: str | None = None) -> None:
        with self._guard:
            if self.leases.get(lease.session_id) is lease:
                del self.leases[lease.session_id]

        def free(database: Database) -> None:
            if to is None:
                sql = "DELETE FROM leases WHERE session = ? AND epoch = ?"
                database.execute(sql, (lease.session_id, lease.epoch))
            else:
                sql = (
                    "UPDATE leases SET server = ?, epoch = nextval('epochs') WHERE session = ? AND epoch = ?"
                )
                database.execute(sql, (to, lease.session_id, lease.epoch))

        with contextlib.suppress(JournalError):  # then it expires
            self.run(free)

    def lose(self, lease: TableLease) -> None:
        """Note that another process has taken a session, and tell whoever plays it."""
        with self._guard:
            if self.leases.get(lease.session_id) is lease:
                del self.leases[lease.session_id]
            lease.lost = True
        if not lease.released and self.on_lost is not None:
            self.on_lost(lease.session_id)

    def abandon(self, lease: TableLease) -> None:
        """Give up a session whose records are not what they were, for any server to restore it."""
        sql = "UPDATE leases SET server = ?, epoch = nextval('epochs') WHERE session = ? AND epoch = ?"
        self.submit(lambda database: database.execute(sql, (NOBODY, lease.session_id, lease.epoch)))
        self.lose(lease)

    def announce(self, session_id: str, seq: int) -> None:
        """Tell other servers, soon, that a session has records up to `seq`."""
        if not self.serving or not self.peers:
            return
        with self._guard:
            first = not self._news
            self._news[session_id] = seq
        if first:
            self._queue.put(_Entry(self._tell))

    def close(self) -> None:
        with self._guard:
            self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    # --- in the thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            if time.monotonic() >= self._next_beat:
                self._beat()
            try:
                entry = self._queue.get(timeout=max(0.0, self._next_beat - time.monotonic()))
            except queue.Empty:
                continue
            if entry is None:
                break
            self._do(entry)
        self._leave()

    def _do(self, entry: _Entry) -> None:
        if not entry.future.set_running_or_notify_cancel():
            return  # nobody waits for it any more
        try:
            entry.future.set_result(entry.job(self._connected()))
        except BaseException as error:
            if self._database is not None and self._database.broken:
                self._drop()
                error = ConnectionLost(str(error))
            entry.future.set_exception(error)

    def _connected(self) -> Database:
        if self._database is None:
            again = self._beaten > 0
            database = self._connect()
            try:
                database.execute("SET lock_timeout = 1000")
                database.execute("SET synchronous_commit = off")  # a lost heartbeat is no loss
                database.execute("SELECT pg_try_advisory_lock(?)", (self._lock,))
                database.execute(_REGISTER, (self.id, self.name, self._lock, self.serving))
            except BaseException:
                database.close()
                raise
            self._database = database
            if again:
                self._judges_from = time.monotonic() + LEASE_SECONDS
            self._beaten = time.monotonic()
            self._look_at_leases(database)
        return self._database

    def _beat(self) -> None:
        now = time.monotonic()
        self._next_beat = now + BEAT_SECONDS
        late = self._beaten > 0 and now - self._beaten > LEASE_SECONDS
        for _ in range(2):  # a connection that was lost meanwhile is made again at once
            try:
                self._beat_once(self._connected(), late)
                return
            except JournalError:
                self._drop()

    def _beat_once(self, database: Database, late: bool) -> None:
        known, peers = database.execute(_BEAT, (self.id, self.id))[0]
        if not known:
            database.execute(_REGISTER, (self.id, self.name, self._lock, self.serving))
        self.peers = int(peers)
        self._beaten = time.monotonic()
        if late or not known:  # we were frozen: somebody may have taken our sessions
            self._look_at_leases(database)

    def _look_at_leases(self, database: Database) -> None:
        with self._guard:
            ours = list(self.leases.values())
        if not ours:
            return
        rows = database.execute("SELECT epoch FROM leases WHERE server = ?", (self.id,))
        epochs = {int(row[0]) for row in rows}
        for lease in ours:
            if lease.epoch not in epochs:
                self.lose(lease)

    def _tell(self, database: Database) -> None:
        time.sleep(GATHER_SECONDS)
        with self._guard:
            news, self._news = self._news, {}
        notify(database, [f"records {seq} {session}" for session, seq in news.items()])

    def _drop(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _leave(self) -> None:
        if self._database is not None:
            with contextlib.suppress(JournalError):
                self._database.execute("DELETE FROM leases WHERE server = ?", (self.id,))
                self._database.execute("DELETE FROM servers WHERE id = ?", (self.id,))
            self._drop()


def notify(database: Database, messages: Sequence[str]) -> None:
    """Send messages to every process that listens."""
    if messages:
        database.execute("SELECT pg_notify(?, one) FROM unnest(?) one", (CHANNEL, list(messages)))


def own_name() -> str:
    """Return our name for other users of the database."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def lock_number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


def _busy(session_id: str, server: str, name: str, serving: bool) -> SessionBusy:
    said = f"session {session_id} is open in {name}; close it there first"
    return SessionElsewhere(said, server) if serving else SessionBusy(said)
