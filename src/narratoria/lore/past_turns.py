"""The prompts and narrations of a game, turn by turn, without those undone: the past a narrator may remember."""

from __future__ import annotations

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

    def standing(self) -> dict[int, str]:
        """A summary of each turn, by its number. Any thread may ask."""
        undone, told = set(self._undone), dict(self._told)
        told |= {turn: text for turn, text in dict(self._edited).items() if text and turn in told}
        return {turn: f"{self._asked.get(turn, '')} → {told[turn]}" for turn in told if turn not in undone}
