"""The memories that were recalled in a game, turn by turn: the part of a story's lore that a player has met."""

from __future__ import annotations

from collections.abc import Collection

from narratoria.events import MemoriesRecalled, RecalledMemory
from narratoria.session import Record


class Recalls:
    """A sink of records."""

    full = False

    def __init__(self) -> None:
        self._by_turn: dict[int, list[RecalledMemory]] = {}

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        if isinstance(record.event, MemoriesRecalled) and record.turn is not None:
            self._by_turn[record.turn] = record.event.memories

    def standing(self, turns: Collection[int]) -> dict[str, tuple[RecalledMemory, list[int]]]:
        """Return each memory recalled in `turns`, as it was recalled last, with those turns, the newest first."""
        found: dict[str, tuple[RecalledMemory, list[int]]] = {}
        for turn, memories in sorted(self._by_turn.items(), reverse=True):
            for one in memories if turn in turns else ():
                found.setdefault(one.id, (one, []))[1].append(turn)
        return found
