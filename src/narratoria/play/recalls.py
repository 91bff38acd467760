"""The memories that were recalled in a game, turn by turn, and the player's edits of its lore."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final

from narratoria.events import MemoriesRecalled, MemoryChange, RecalledMemory
from narratoria.play.game_lore import edits
from narratoria.session import Record

_MOST_EDITS: Final = 50  # that can be taken back one after the other


class Recalls:
    """A sink of records."""

    full = False

    def __init__(self) -> None:
        self._by_turn: dict[int, list[RecalledMemory]] = {}
        self._edits: deque[tuple[int, list[MemoryChange]]] = deque(maxlen=_MOST_EDITS)

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        if isinstance(record.event, MemoriesRecalled) and record.turn is not None:
            self._by_turn[record.turn] = record.event.memories
        elif record.turn is None and (made := edits(record.event)) is not None:
            if self._edits and made[0] == self._edits[-1][1]:
                self._edits.pop()  # it takes the newest back
            else:
                self._edits.append((record.seq, made[1]))

    @property
    def last_edit(self) -> int | None:
        """The newest edit of the player's lore that was not taken back, by its record."""
        return self._edits[-1][0] if self._edits else None

    def standing(self, turns: Collection[int]) -> dict[str, tuple[RecalledMemory, list[int]]]:
        """Return each memory recalled in `turns`, as it was recalled last, with those turns, the newest first."""
        found: dict[str, tuple[RecalledMemory, list[int]]] = {}
        for turn, memories in sorted(self._by_turn.items(), reverse=True):
            for one in memories if turn in turns else ():
                found.setdefault(one.id, (one, []))[1].append(turn)
        return found
