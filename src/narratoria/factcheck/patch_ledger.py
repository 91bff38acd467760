"""The ledger of patches: the state's paths, each with the last commits to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from narratoria.events import (
    CallEmitted,
    Committed,
    PatchChange,
    StatePatch,
    TurnRedone,
    TurnStarted,
    TurnUndone,
)
from narratoria.session import Record

Path: TypeAlias = tuple[str, ...]
KEPT: Final = 8  # commits per path: enough to undo some turns


@dataclass(frozen=True, slots=True)
class Source:
    """The patch that made a fact: the call that emitted it, and its turn and record where they are known."""

    call: str
    turn: int | None = None
    seq: int | None = None


class Ledger:
    """A sink of records. Attach it to a session, or fold a journal's records with `Ledger.of`."""

    full = False

    def __init__(self) -> None:
        self._emitted: dict[int, tuple[str, Any]] = {}  # patches not yet committed, by record
        self._calls: dict[str, list[int]] = {}
        self._made: dict[Path, list[Source]] = {}
        self._undone: set[int] = set()
        self.began: int | None = None  # the record with which the last turn did

    @classmethod
    def of(cls, records: Iterable[Record]) -> Ledger:
        ledger = cls()
        for record in records:
            ledger.push(record)
        return ledger

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, CallEmitted):
            if isinstance(event.event, StatePatch):
                self._emitted[record.seq] = (event.call, event.event.patch)
                self._calls.setdefault(event.call, []).append(record.seq)
        elif isinstance(event, Committed):
            for change in event.changes:
                if isinstance(change, int):
                    call, patch = self._emitted.get(change, ("", None))
                    self._enter(patch, Source(call, record.turn, change))
                elif isinstance(change, PatchChange):
                    self._enter(change.patch, Source(event.call, record.turn, record.seq))
            for seq in self._calls.pop(event.call, ()):
                self._emitted.pop(seq, None)
        elif isinstance(event, TurnStarted):
            self.began = record.seq
        elif isinstance(event, TurnUndone):
            self._undone.add(event.turn)
        elif isinstance(event, TurnRedone):
            self._undone.discard(event.turn)

    def _enter(self, patch: Any, source: Source) -> None:
        stack: list[tuple[Path, Any]] = [((), patch)] if isinstance(patch, Mapping) else []
        while stack:
            path, node = stack.pop()
            if isinstance(node, Mapping) and node:
                stack.extend(((*path, str(key)), value) for key, value in node.items())
            else:
                history = self._made.setdefault(path, [])
                history.append(source)
                del history[:-KEPT]

    def source(self, path: Path, before: int | None = None) -> Source | None:
        """The newest commit, not undone, that set `path` or something it lies in; `before` that record, if given."""
        found: Source | None = None
        for length in range(len(path), 0, -1):
            for source in reversed(self._made.get(path[:length], ())):
                if before is not None and (source.seq or 0) >= before:
                    continue
                if source.turn is None or source.turn not in self._undone:
                    if found is None or (source.seq or 0) > (found.seq or 0):
                        found = source
                    break
        return found
