"""The prompts and narrations of a game, turn by turn, without those undone: the past a narrator may remember."""

from __future__ import annotations

from collections.abc import Set

from narratoria.events import Narration, NarrationEdited, TurnRedone, TurnStarted, TurnUndone
from narratoria.session import Record


class Chronicle:
    """A sink of records, like `Ledger`. What is undone is not remembered, until it is redone."""

    full = False

    def __init__(self) -> None:
        self._asked: dict[int, str] = {}
        self._told: dict[int, str] = {}
        self._edited: dict[int, str | None] = {}
        self._undone: set[int] = set()

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, TurnStarted):
            self._asked[event.turn] = event.prompt.strip()
        elif isinstance(event, Narration) and record.turn and event.text.strip():  # turn 0 is the opening
            self._told[record.turn] = event.text.strip()
        elif isinstance(event, NarrationEdited):
            self._edited[event.turn] = event.text
        elif isinstance(event, TurnUndone):
            self._undone.add(event.turn)
        elif isinstance(event, TurnRedone):
            self._undone.discard(event.turn)

    def stands(self, turn: int) -> bool:
        """Tell if a turn was told and is not undone."""
        return turn in self._told and turn not in self._undone

    def standing(self, known: Set[int] = frozenset()) -> dict[int, str]:
        """A summary of each turn that stands and is not `known`, by its number. Any thread may ask."""
        turns = [turn for turn in list(self._told) if self.stands(turn) and turn not in known]
        return {
            turn: f"{self._asked.get(turn, '')} → {self._edited.get(turn) or self._told[turn]}"
            for turn in turns
        }
