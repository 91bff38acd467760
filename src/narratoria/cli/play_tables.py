"""The two ways to play at a command line: a table for a person, and JSON for a program."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Final

from rich.console import Console

from narratoria.cli.asset_lines import print_asset
from narratoria.cli.interrupts import Interrupts
from narratoria.cli.line_editor import History, LineEditor, can_edit, restored
from narratoria.cli.narration_view import LiveNarration, prose, silence
from narratoria.cli.output import console, page, print_json, printable, styled
from narratoria.cli.signals import on_interrupt
from narratoria.cli.stdin_lines import read_line
from narratoria.cli.terminal_commands import COMMAND_NAMES
from narratoria.events import AssetStored, Committed, Notice, TurnStarted
from narratoria.play.game import STORY_SAVED, Game
from narratoria.play.turn_types import TurnResult
from narratoria.session import Record
from narratoria.store.store import data_home

_HINTS: Final = "a number picks a choice · Tab completes · /help · /quit or Ctrl+D stops"
_OVER: Final = "the story is over · /undo takes the last turn back · /quit"


class JsonTable:
    """Prints one object per turn on standard output; reads prompts line by line from standard input."""

    interrupts = None

    def __init__(self, game: Game) -> None:
        self.game = game
        self.aside: Console = console(stderr=True)

    def ask(self) -> str | None:
        return read_line()

    def seated(self) -> AbstractContextManager[None]:
        return nullcontext()

    def quiet(self) -> AbstractContextManager[None]:
        return nullcontext()

    def show(self, result: TurnResult) -> None:
        print_json(turn_document(self.game, result))

    def answer(self, command: str, message: str, **details: Any) -> None:
        print_json({"command": command, "session": self.game.session.id, **details})

    def moved(self, command: str, message: str, result: TurnResult, **details: Any) -> None:
        print_json({"command": command, **turn_document(self.game, result), **details})


def turn_document(game: Game, result: TurnResult) -> dict[str, Any]:
    ending = game.ending
    return {
        "session": game.session.id,
        "turn": result.turn,
        "prompt": result.prompt,
        "narrative": result.narrative,
        "choices": result.choices,
        "state": game.session.snapshot(),
        "outcome": result.outcome,
        "narrator": result.narrator,
        "problems": result.problems,  # what went wrong on the way, a silent narrator's reason included
        "receipts": [receipt.to_data() for receipt in result.receipts],
        "unsaved": result.unsaved,  # why the turn is not on the disk, or null
        "ending": {"id": ending[0], "title": ending[1]} if ending else None,
    }


def is_no_notice(record: logging.LogRecord) -> bool:
    """Tell if a log record is not a notice: the table shows notices itself, and the log goes to the same terminal."""
    return record.funcName != "notice"


class TerminalTable:
    """A person at a terminal, or a script with one prompt per line. Only the story is told: no tool and no narrator by
    name, which `/why` has.
    """

    full = False

    def __init__(self, game: Game) -> None:
        self.game = game
        self.out: Console = console()
        err = console(stderr=True)
        # For what is not of the story: on one terminal with it the same console, which keeps the live part below.
        self.aside = self.out if self.out.is_terminal and err.is_terminal else err
        self.telling = LiveNarration(self.out)
        self._stored: dict[int, AssetStored] = {}  # by sequence number, until they are committed
        self._assets: list[AssetStored] = []  # of this turn, not shown yet
        self._over = False  # the ending was told
        self.interrupts: Interrupts | None = None
        self.editor = LineEditor(History(data_home() / "history"), self._completions) if can_edit() else None
        game.session.attach(self)
        logging.getLogger("narratoria").addFilter(is_no_notice)
        self.out.print(styled((game.story.title, "bold magenta")))
        self.out.print(styled((f"session {game.session.id[:8]} · {_HINTS}", "dim")))

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        """Show the narration as it is written, and signs of progress while tools work."""
        self.telling.push(record)
        event = record.event
        if isinstance(event, TurnStarted):
            self._stored.clear()
            self._assets.clear()
        elif isinstance(event, AssetStored):
            self._stored[record.seq] = event
        elif isinstance(event, Committed):
            kept = [self._stored.pop(one, None) for one in event.changes if isinstance(one, int)]
            self._assets += [one for one in kept if one is not None]
        elif isinstance(event, Notice) and (event.level != "info" or event.code == STORY_SAVED):
            sign, style = ("!", "dim yellow") if event.level != "info" else ("·", "dim green")
            with self.editor.aside() if self.editor is not None else nullcontext():
                self.out.print(styled((f"  {sign} {event.message}", style)))

    def going_on(self, records: Sequence[Record]) -> None:
        """Repeat the words of a turn that was left open, of which these are the records."""
        prompt = next((one.event.prompt for one in records if isinstance(one.event, TurnStarted)), "")
        if prompt:
            self.out.print(styled(("> ", "bold cyan"), (printable(prompt), ""), ("  (it goes on)", "dim")))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Draw nothing while the player is asked; the narration comes again when it goes on."""
        self.telling.stop()
        yield

    def ask(self) -> str | None:
        """Return the next line that is not empty, None at the end of the input; Ctrl+C raises `LineInterrupted`."""
        while self.editor is not None:
            line = self.editor.read()
            if line is None or line.strip():
                return line
        while True:
            if sys.stdin.isatty():
                self.out.print(styled(("> ", "bold cyan")), end="")
            prompt = read_line()
            if prompt is None:
                return None
            if prompt.strip():
                break
        if not sys.stdin.isatty():
            self.out.print(styled(("> ", "bold cyan"), (prompt, "cyan")))
        return prompt

    def _completions(self, begun: str) -> list[str]:
        """Return the choices and commands that begin like this. Commands are not offered to an empty line."""
        choices = [] if self.game.ending is not None else self.game.session.choices
        found = [one for one in choices if one.casefold().startswith(begun.casefold())]
        if begun.startswith("/"):
            found += [f"/{name}" for name in COMMAND_NAMES if f"/{name}".startswith(begun)]
        return found

    @contextmanager
    def seated(self) -> Iterator[None]:
        """Hold the terminal while the game is played: Ctrl+C stops a turn first, and the terminal is put back."""
        with ExitStack() as stack:
            if self.editor is not None:
                stack.enter_context(restored())
            if sys.stdin is not None and sys.stdin.isatty():
                self.interrupts = Interrupts(self.game, self._hint)
                stack.enter_context(on_interrupt(self.interrupts.heard))
            stack.callback(self.telling.stop)
            yield

    def _hint(self, text: str) -> None:
        self.out.print(styled((f"  {text}", "dim")))

    def show(self, result: TurnResult) -> None:
        assets, self._assets = self._assets, []
        was_over, self._over = self._over, self.game.ending is not None
        tell(self.game, result, assets, ended=self._over and not was_over)
        if result.outcome == "fallback":
            self.out.print(styled(("  — /why tells what went wrong", "dim")))
        if self._over and not was_over and sys.stdin.isatty():
            self.out.print(styled((f"  {_OVER}", "dim")))

    def answer(self, command: str, message: str, **details: Any) -> None:
        self.out.print(styled((message, "yellow" if "error" in details else "dim")))

    def moved(self, command: str, message: str, result: TurnResult, **details: Any) -> None:
        self.out.print(styled((message, "dim")))
        self._over = False
        self.show(result)


def tell(
    game: Game, result: TurnResult, assets: Sequence[AssetStored] = (), *, ended: bool | None = None
) -> None:
    """Print a turn for people to read, wrapped. `ended` says if the story came to its ending just now; by default it
    did if it is over.
    """
    out = console()
    out.print()
    page().print(prose(result.narrative))
    for asset in assets:
        print_asset(out, asset, game.session.assets)
    if why := silence(game.narrator, result):
        out.print(styled((f"  — {why}", "dim")))
    if result.outcome == "cancelled":
        out.print(styled(("  the turn was stopped", "yellow")))
    ending = game.ending
    if ending is not None and (ended or ended is None):
        out.print(styled((f"\n  ✦ {ending[1]}", "bold magenta")))
    for number, choice in enumerate(result.choices if ending is None else (), 1):
        out.print(styled((f"  {number} ", "cyan"), (choice, "")))
