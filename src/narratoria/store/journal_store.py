"""The store as a journal sees it: leases, and batches of records."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

import msgspec

from narratoria.session.record import EmittedRecords, Record
from narratoria.session.session import Session
from narratoria.store.store import Records, Store
from narratoria.store.timeline import Timeline


class Lease(Protocol):
    """The right to write one session, held by one process at a time and freed when that process dies."""

    @property
    def held(self) -> bool:
        """False once it was released, or lost with the connection that held it."""

    def release(self, *, open_turn: bool = False) -> None:
        """Give it up, `open_turn` in the middle of a turn, which another process may finish."""


class Batch(msgspec.Struct, frozen=True):
    """Records that are written together, those behind record `after`."""

    after: int
    records: list[Record | EmittedRecords]
    durable: bool  # it survives the end of the machine
    snapshot: bytes | None  # of the session behind these records, if one is due


class JournalStore(Store, Protocol):
    """A store as its journals see it: beside `Store`, leases and batches of records."""

    patience: float
    """Seconds for which a journal tries to reach a database whose connection is lost."""

    def lease(self, session_id: str) -> Lease:
        """Take the right to write a session, or raise `SessionBusy` that says who has it."""

    def catch_up(self, session: Session, timeline: Timeline) -> Records:
        """Fold in what others recorded since; returns the records of a turn that is open."""

    def submit(self, key: int, lease: Lease, batch: Batch) -> Future[int]:
        """Write a batch; the future gives the bytes it takes."""

    def submit_sync(self, key: int) -> Future[int]:
        """Make everything that was written before last, also beyond the end of the machine."""
