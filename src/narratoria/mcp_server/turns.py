"""Calls as turns of the session's journal, and undo.

Calls that overlap in time are one turn: a turn begins with the first and ends with the last of them. So calls run side
by side, and what was done together is undone together.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from narratoria.errors import JournalError
from narratoria.events import (
    CallStarted,
    Choices,
    Committed,
    JsonObject,
    Narration,
    Notice,
    TurnCommitted,
    TurnStarted,
)
from narratoria.play import history
from narratoria.play.undo_outcomes import Undone
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.journal import Journal
from narratoria.tools.schema import dump_json

PROMPT_LENGTH: Final = 500
SPEAKER: Final = "mcp"


class Turns:
    """The turns of one session. Without a journal there are none, and nothing to undo."""

    def __init__(self, session: Session, registry: ToolRegistry) -> None:
        self.session = session
        self._registry = registry
        self._door = asyncio.Lock()  # whoever undoes keeps new calls out
        self._running = 0
        self._told: list[str] = []
        self.choices: list[str] = []
        self.changed = False  # by a call of the open turn

    @property
    def journal(self) -> Journal | None:
        journal = self.session.journal
        return journal if isinstance(journal, Journal) else None

    async def recover(self) -> None:
        """End a turn, or finish an undo, that a crash left open."""
        if (journal := self.journal) is not None:
            journal.patient = True  # `end` waits for what must not be lost
            await history.abandon(journal)
            await history.finish_undo(journal, self._registry)

    async def begin(self, tool: str, arguments: JsonObject) -> None:
        """A call begins, and with it a turn if none is open."""
        if self.journal is None:
            return
        async with self._door:
            if self._running == 0:
                session = self.session
                await session.turn_lock.acquire()
                self._told, self.choices, self.changed = [], [], False
                session.turn = session.turn_count = session.turn_count + 1
                session.record(TurnStarted(turn=session.turn, prompt=prompt_of(tool, arguments)))
            self._running += 1

    async def end(self, told: str, *, cancelled: bool = False) -> None:
        """A call has ended, and with the last one the turn. What it changed is saved when this returns."""
        journal = self.journal
        if journal is None:
            return
        self._running -= 1
        if told:
            self._told.append(told)
        if self._running == 0:
            self._close(cancelled)
        if not self.changed:
            return  # nothing to lose: it is written while the client reads the answer
        try:
            await (journal.flush() if self._running else journal.commit_turn())
        except JournalError as error:
            self.session.notice(Notice(level="error", message=f"this call could not be saved: {error}"))

    def _close(self, cancelled: bool) -> None:
        session = self.session
        turn = session.turn
        assert turn is not None  # noqa: S101 - set by `begin`
        session.approvals.end_turn()
        text = "\n\n".join(self._told)
        session.record(Narration(text=text, narrator=SPEAKER))
        if self.choices:
            session.record(Choices(choices=list(self.choices)))
            session.choices = list(self.choices)
        session.record(TurnCommitted(turn=turn, outcome="cancelled" if cancelled else "completed"))
        session.turn = None
        session.turn_lock.release()

    async def undo(self) -> tuple[list[str], list[Undone]]:
        """Take back the newest turn that changed something, and those after it, which changed nothing. Return their
        calls, the newest first, and what became of each turn.
        """
        journal = self.journal
        if journal is None:
            raise JournalError("there is nothing to undo: this session is not kept in a journal")
        async with self._door:
            await journal.flush()
            target = _newest_change(journal)
            if target is None:
                raise JournalError("there is nothing to undo: no call has changed anything")
            turns = [turn for turn in journal.timeline.turns if turn >= target]
            calls = {turn: _calls_of(journal, turn) for turn in turns}
            undone = await history.undo_to(journal, target, self._registry)
            return [call for one in undone for call in calls.get(one.turn) or [one.prompt]], undone


def _newest_change(journal: Journal) -> int | None:
    """The newest turn that changed something, but for the opening of a story."""
    for turn in reversed([turn for turn in journal.timeline.turns if turn > 0]):
        records = journal.store.read_turn(journal.session.id, turn)
        if any(isinstance(record.event, Committed) for record in records):
            return turn
    return None


def _calls_of(journal: Journal, turn: int) -> list[str]:
    """The calls that a turn of ours was made of, the newest first; none for a turn of a player."""
    events = [record.event for record in journal.store.read_turn(journal.session.id, turn)]
    if not any(isinstance(event, Narration) and event.narrator == SPEAKER for event in events):
        return []
    begun = [
        one for one in events if isinstance(one, CallStarted) and one.attempt == 1 and one.parent is None
    ]
    return [prompt_of(one.tool, one.input) for one in reversed(begun)]


def prompt_of(tool: str, arguments: Any) -> str:
    """The prompt of a call's turn, as a transcript shows it."""
    text = f"{tool} {dump_json(arguments)}" if arguments else tool
    return text if len(text) <= PROMPT_LENGTH else f"{text[: PROMPT_LENGTH - 1]}…"
