"""The one thread that writes to a store: jobs of all its sessions; waiting jobs share one commit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from narratoria.errors import JournalError

T = TypeVar("T")
_GROUP: Final = 64


class ConnectionLost(JournalError):
    """The connection to the database is lost, and with it the right to write. The next attempt connects again."""


class Database(Protocol):
    """The interface of a store to its database. Placeholders are `?`. Every failure is raised as `JournalError`."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def begin(self, *, durable: bool) -> None:
        """Open a transaction; a `durable` one is on the disk when its commit returns."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    @property
    def broken(self) -> bool:
        """Tell if the connection is lost for good; another one is made then."""

    def close(self) -> None: ...


Job = Callable[[Database], T]


@dataclass(slots=True)
class _Entry:
    job: Job[Any]
    durable: bool
    future: Future[Any] = field(default_factory=Future)


class Writer:
    """Runs jobs in the order given. `connect` is called in the thread; the connection never leaves it."""

    def __init__(self, connect: Callable[[], Database], name: str) -> None:
        self._connect = connect
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._database: Database | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job[T], *, durable: bool = False) -> Future[T]:
        entry = _Entry(job, durable)
        if self._closed:
            entry.future.set_exception(JournalError("the store is closed; open it again to write"))
        else:
            self._queue.put(entry)
        return entry.future

    def run(self, job: Job[T], *, durable: bool = True) -> T:
        """Run a job and wait for it."""
        return self.submit(job, durable=durable).result()

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    # --- in the thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        ended = False
        while not ended:
            group: list[_Entry] = []
            entry = self._queue.get()
            while entry is not None:
                group.append(entry)
                if len(group) == _GROUP:
                    break
                try:
                    entry = self._queue.get_nowait()
                except queue.Empty:
                    break
            ended = entry is None
            if group:
                self._write(group)
        if self._database is not None:
            self._database.close()

    def _write(self, group: list[_Entry]) -> None:
        """Write all in one transaction. If that fails, each by itself, so that one bad job fails alone."""
        try:
            results = self._transact(group)
        except BaseException as error:
            if len(group) > 1:
                for entry in group:
                    self._write([entry])
                return
            group[0].future.set_exception(error)
            return
        for entry, result in zip(group, results, strict=True):
            entry.future.set_result(result)

    def _transact(self, group: list[_Entry]) -> list[Any]:
        if self._database is None:
            self._database = self._connect()
        database = self._database
        try:
            database.begin(durable=any(entry.durable for entry in group))
            results = [entry.job(database) for entry in group]
            database.commit()
        except BaseException as error:
            if database.broken:
                self._database = None
                database.close()
                raise ConnectionLost(f"{error}; the connection is made again for the next attempt") from error
            database.rollback()
            raise
        return results
