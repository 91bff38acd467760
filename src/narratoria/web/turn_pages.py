"""The past turns of a session, in parts: a story of ten thousand turns opens as fast as one of ten.

Everything here reads the disk, so a feed calls it in a thread, never on the event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from narratoria.errors import JournalError
from narratoria.events import SessionStarted
from narratoria.session import Record, Session
from narratoria.store.store import Store
from narratoria.store.timeline import Timeline


class Window(NamedTuple):
    """Records to begin from, and the number of turns that count before them."""

    records: list[Record]
    earlier: int = 0


class PastRecords(Protocol):
    def read(self, after: int, before: int) -> Iterable[Record]:
        """Yield the records after the first number and before the second."""
        ...

    def newest(self, turns: int, until: int) -> Window:
        """Return the last `turns` turns that count, up to the record `until`."""
        ...


class JournalRecords:
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
        found = self._beginning(counting[-turns:]) if len(counting) > turns else None
        if found is None:
            return Window(list(self.read(0, until + 1)))
        oldest, first, before = found
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
        return Window(records, counting.index(oldest))

    def _beginning(self, shown: Sequence[int]) -> tuple[int, int, Session] | None:
        """Return the oldest of these turns that still has records, the first of them, and the session before it.

        None if that was lost to damage: then the page reads everything there is.
        """
        spans = {span.turn: span.first for span in reversed(self._store.turns(self._id))}
        for turn in shown:
            if turn in spans:
                try:
                    return turn, spans[turn], self._store.restore(self._id, upto=spans[turn] - 1)
                except JournalError:
                    return None
        return None
