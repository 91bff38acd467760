"""The past turns of a session, in parts: a story of ten thousand turns opens as fast as one of ten.

Everything here reads the disk, so a feed calls it in a thread, never on the event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from narratoria.events import SessionStarted
from narratoria.session import Record
from narratoria.store.store import Store
from narratoria.store.timeline import Timeline


class Window(NamedTuple):
    """Records to begin from, and the number of turns that count before them."""

    records: list[Record]
    earlier: int = 0


class Past(Protocol):
    def read(self, after: int, before: int) -> Iterable[Record]:
        """Yield the records after the first number and before the second."""
        ...

    def newest(self, turns: int, until: int) -> Window:
        """Return the last `turns` turns that count, up to the record `until`."""
        ...


class JournalPast:
    """The past of one session, from its journal."""

    def __init__(self, store: Store, session_id: str, timeline: Timeline) -> None:
        self._store = store
        self._id = session_id
        self._timeline = timeline

    def read(self, after: int, before: int) -> Iterator[Record]:
        for record in self._store.read(self._id, after):
            if record.seq >= before:
                return
            yield record

    def newest(self, turns: int, until: int) -> Window:
        """Return the last turns, opened by a `session_started` that holds the state before the first of them.

        Turns are undone and redone last in, first out. So everything before the oldest shown turn counts now as it
        did then, and the rest is folded upon the state of that moment.
        """
        counting = list(self._timeline.turns)
        if len(counting) <= turns:
            return Window(list(self.read(0, until + 1)))
        oldest = counting[-turns]
        first = next(span.first for span in self._store.turns(self._id) if span.turn == oldest)
        before = self._store.restore(self._id, upto=first - 1)
        (begun,) = self._store.read(self._id, 0, 1)
        told = begun.event
        opening = SessionStarted(
            session=self._id,
            story=told.story if isinstance(told, SessionStarted) else None,
            title=told.title if isinstance(told, SessionStarted) else None,
            state=before.snapshot(),
            permissions=sorted(before.permissions),
        )
        records = [Record(first - 1, begun.ts, None, opening), *self.read(first - 1, until + 1)]
        return Window(records, len(counting) - turns)
