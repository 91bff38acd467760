"""A sink for tests: it keeps all records of a session."""

from __future__ import annotations

from typing import Any

from narratoria.session import Record, Session


class Recorder:
    """Keeps everything that a session records."""

    full = False

    def __init__(self, session: Session | None = None) -> None:
        self.records: list[Record] = []
        if session is not None:
            session.attach(self)

    def push(self, record: Record) -> None:
        self.records.append(record)

    async def wait(self) -> None:
        return None

    def of(self, kind: type) -> list[Any]:
        """Return the events of a kind, in order."""
        return [record.event for record in self.records if isinstance(record.event, kind)]
