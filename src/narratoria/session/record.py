"""The records of a session, and the sinks that receive them: a journal, a viewer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from narratoria.events import AnyRuntimeEvent, CallEmitted, ToolEvent


class Record(msgspec.Struct, frozen=True, gc=False):
    """One entry of the journal: an event, its time and its turn."""

    seq: int
    ts: float
    turn: int | None
    event: AnyRuntimeEvent

    @property
    def last(self) -> int:
        """The number of the last event in it."""
        return self.seq


class EmittedRecords(msgspec.Struct, frozen=True, gc=False):
    """Records of one moment, numbered from `seq` on: events that `call` emitted, with the common fields stored once."""

    seq: int
    ts: float
    turn: int | None
    call: str
    emitted: Sequence[ToolEvent]

    @property
    def last(self) -> int:
        return self.seq + len(self.emitted) - 1

    def records(self) -> list[Record]:
        ts, turn, call = self.ts, self.turn, self.call
        return [
            Record(seq, ts, turn, CallEmitted(call=call, event=event))
            for seq, event in enumerate(self.emitted, self.seq)
        ]


class Sink(Protocol):
    """A receiver of records: a journal, a viewer. A sink that is `full` slows the tools until it has room.

    A sink may have `push_emitted(emitted: EmittedRecords)` too: it then gets the events of one moment at once.
    """

    def push(self, record: Record) -> None: ...

    @property
    def full(self) -> bool: ...

    async def wait(self) -> None: ...


@runtime_checkable
class TakesEmitted(Protocol):
    """A sink that takes the events a call emitted at one moment at once, not as a record for each."""

    def push_emitted(self, emitted: EmittedRecords) -> None: ...


def emitted_taker(sink: Sink) -> Callable[[EmittedRecords], None]:
    """Return the function that hands emitted events to a sink, at once or record by record."""
    if isinstance(sink, TakesEmitted):
        return sink.push_emitted

    def push_each(emitted: EmittedRecords) -> None:
        for record in emitted.records():
            sink.push(record)

    return push_each


class TurnLog(Protocol):
    """A sink that makes records durable: those recorded up to now survive a crash."""

    async def commit_turn(self) -> None: ...

    async def flush(self) -> None:
        """Make records survive the end of this process, but not of the machine."""

    def resumes(self, turn: int | None) -> bool:
        """Tell if a crash left this turn open: a call of it may have acted already without a record."""
