"""Commands of a player at the terminal: `/undo`, `/restore NAME`, `/help` …"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from narratoria.cli.state_view import part_of, state_lines
from narratoria.cli.turn_account import account
from narratoria.errors import NarratoriaError
from narratoria.play import history
from narratoria.play.game import Game
from narratoria.play.history import UndoPreview
from narratoria.play.narration_edits import edit_narration
from narratoria.play.turn_types import TurnResult
from narratoria.store.journal import Journal

HELP: Final = {
    "/continue": "let the story go on without words of yours",
    "/undo": "take the newest turn back",
    "/redo": "bring back the turn that was undone last",
    "/retry": "take the newest turn again; what it told before is kept",
    "/variant N": "show the Nth telling of a turn that was taken again; without a number, the next one",
    "/edit TEXT": "change what the newest turn tells; without a text, the narrator's own is back",
    "/branch": "go on in a new session that shares this past; /branch 3, the past up to turn 3",
    "/checkpoint NAME": "give this moment a name; without one, list the names",
    "/restore NAME": "come back to a named moment",
    "/state PATH": "show the state of the story; without a path all of it",
    "/why": "who told the newest turn and why, with the tools it used",
    "/help": "this list",
    "/quit": "stop; the game is saved",
}
COMMAND_NAMES: Final = tuple(usage[1:].split()[0] for usage in HELP)
EVEN_SO: Final = "!"  # `/undo!` undoes although something outside stays as it is


class Refused(NarratoriaError):
    """A command that was not carried out, and why."""


class Irreversible(Refused):
    """A command was not carried out because of effects that cannot be taken back; the message lists them."""

    def __init__(self, lines: list[str], even_so: str) -> None:
        super().__init__("\n".join([*_stays(lines), f"{even_so} does it anyway"]))
        self.lines = lines


class Table(Protocol):
    """The output for the results of commands."""

    def answer(self, command: str, message: str, **details: Any) -> None:
        """Print a message that is not a turn."""

    def moved(self, command: str, message: str, result: TurnResult, **details: Any) -> None:
        """Show the present turn of the game."""


@dataclass(slots=True)
class TerminalCommands:
    """The commands of one game. `elsewhere` is the session to go on with, once a command asks for another."""

    game: Game
    journal: Journal
    table: Table
    elsewhere: str | None = None
    over: bool = False

    async def run(self, line: str) -> bool:
        """Carry out `line` if it is a command, or refuse it with a reason; tell if it was one."""
        if not line.startswith("/"):
            return False
        word, _, rest = line[1:].strip().partition(" ")
        name = word.removesuffix(EVEN_SO)
        known = self._known().get(name)
        try:
            if known is None:
                raise Refused(f"there is no command /{name}; /help lists those there are")
            if rest.strip() and name not in _WITH_WORDS:
                raise Refused(f"/{name} takes no words: {HELP['/' + name]}")
            if name in ("undo", "retry", "variant", "restore"):
                await self.game.equipped()  # what takes effects back may be a tool of a server
            await known(rest.strip(), word.endswith(EVEN_SO))
        except Irreversible as error:
            self.table.answer(name, str(error), error=str(error), irreversible=error.lines)
        except NarratoriaError as error:
            self.table.answer(name, str(error), error=str(error))
        return True

    def _known(self) -> dict[str, Callable[[str, bool], Awaitable[None]]]:
        return {
            "continue": self._continue,
            "undo": self._undo,
            "redo": self._redo,
            "retry": self._retry,
            "variant": self._variant,
            "edit": self._edit,
            "branch": self._branch,
            "checkpoint": self._checkpoint,
            "restore": self._restore,
            "state": self._state,
            "why": self._why,
            "help": self._help,
            "quit": self._quit,
        }

    async def _continue(self, _: str, __: bool) -> None:
        self.table.moved("continue", "the story goes on", await self.game.go_on())

    async def _undo(self, _: str, even_so: bool) -> None:
        preview = await history.preview_undo(self.journal, self.game.registry)
        _agree("/undo!", [preview], even_so)
        done = await history.undo(self.journal, self.game.registry)
        self._moved("undo", f"turn {done.turn} is undone: {done.prompt}", [done])

    async def _redo(self, _: str, even_so: bool) -> None:
        turn = await history.redo(self.journal, force=even_so)
        self._moved("redo", f"turn {turn} is back")

    async def _retry(self, _: str, even_so: bool) -> None:
        preview = await history.preview_undo(self.journal, self.game.registry)
        _agree("/retry!", [preview], even_so)
        prompt = await history.retry(self.journal, self.game.registry)
        result = await self.game.prompt(prompt, origin="retry")
        told = "\n".join([f"again: {prompt}", *_stays(preview.irreversible)])
        self.table.moved("retry", told, result, irreversible=preview.irreversible)

    async def _variant(self, rest: str, even_so: bool) -> None:
        timeline = self.journal.timeline
        newest = timeline.last if timeline.last is not None else 0
        turns = timeline.variants_of(newest)
        if len(turns) < 2:
            raise Refused("the newest turn was told once; /retry takes it again")
        known = {str(at): turn for at, turn in enumerate(turns, 1)}
        asked = rest or str((turns.index(newest) + 1) % len(turns) + 1)
        if known.get(asked, newest) == newest:
            raise Refused(
                f"/variant {rest}: name one of the others: 1 to {len(turns)} without {turns.index(newest) + 1}"
            )
        preview = await history.preview_undo(self.journal, self.game.registry)
        _agree(f"/variant! {asked}", [preview], even_so)
        done = await history.show_variant(self.journal, known[asked], self.game.registry)
        self._moved("variant", f"{asked} of {len(turns)}", [done])

    async def _edit(self, text: str, _: bool) -> None:
        turn = self.journal.timeline.last
        if turn is None:
            raise Refused("there is no turn yet")
        await edit_narration(self.journal, turn, text or None)
        self._moved("edit", f"turn {turn} is changed" if text else f"turn {turn} has the narrator's text")

    async def _branch(self, rest: str, _: bool) -> None:
        if rest and (not rest.isdecimal() or len(rest) > 15):
            raise Refused(f"/branch {rest[:40]}: a branch begins at the number of a turn")
        await self.journal.flush()
        turn = int(rest) if rest else self.journal.timeline.last
        if turn is None:
            raise Refused("there is no turn to branch from yet")
        made = await asyncio.to_thread(self.journal.store.branch, self.game.session.id, turn)
        self.elsewhere = made.id

    async def _checkpoint(self, name: str, _: bool) -> None:
        if name:
            turn = await history.checkpoint(self.journal, name)
            self.table.answer("checkpoint", f"turn {turn} is {name!r}", name=name, turn=turn)
            return
        names = dict(self.journal.timeline.checkpoints)
        told = [f"{turn}  {name}" for name, turn in names.items()] or ["no checkpoints; /checkpoint NAME"]
        self.table.answer("checkpoint", "\n".join(told), checkpoints=names)

    async def _restore(self, name: str, even_so: bool) -> None:
        previews = await history.preview_return(self.journal, name, self.game.registry)
        _agree(f"/restore! {name}", previews, even_so)
        undone = await history.return_to(self.journal, name, self.game.registry)
        self._moved("restore", f"back at {name!r}", undone)

    async def _state(self, path: str, _: bool) -> None:
        part = part_of(self.game.session.snapshot(), path)
        self.table.answer("state", "\n".join(state_lines(part)), path=path, state=part)

    async def _why(self, _: str, __: bool) -> None:
        await self.journal.flush()
        turn = self.journal.timeline.last
        if turn is None:
            raise Refused("there is no turn yet")
        store, session = self.journal.store, self.game.session.id
        records = await asyncio.to_thread(lambda: list(store.read_turn(session, turn)))
        lines, data = account(records)
        self.table.answer("why", "\n".join(lines), **data)

    async def _help(self, _: str, __: bool) -> None:
        width = max(map(len, HELP))
        lines = [f"{usage:<{width}}  {what}" for usage, what in HELP.items()]
        self.table.answer("help", "\n".join(lines), commands=HELP)

    async def _quit(self, _: str, __: bool) -> None:
        self.over = True

    def _moved(self, command: str, message: str, undone: Sequence[history.Undone] = ()) -> None:
        failed = [line for one in undone for line in one.failed]
        stays = [line for one in undone for line in one.irreversible]
        details = {"undone": [one.turn for one in undone], "failed": failed, "irreversible": stays}
        told = "\n".join([message, *_stays(stays), *failed])
        self.table.moved(command, told, self.game.where_we_are(), **(details if undone else {}))


_WITH_WORDS: Final = frozenset({"branch", "checkpoint", "edit", "restore", "state", "variant"})


def _agree(even_so: str, previews: Sequence[UndoPreview], agreed: bool) -> None:
    """Raise `Irreversible` if something cannot be taken back and the player has not agreed."""
    lines = [line for one in previews for line in one.irreversible]
    if lines and not agreed:
        raise Irreversible(lines, even_so)


def _stays(lines: Sequence[str]) -> list[str]:
    return [f"stays as it is: {line}" for line in lines]
