"""`narratoria play`: a story in the browser, or in the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding

from narratoria.cli.output import console, print_json, printable, styled
from narratoria.errors import NarratoriaError
from narratoria.events import AssetStored, CallRetrying, CallStarted
from narratoria.game import Game, folder_of, story_of
from narratoria.session import Record, Session
from narratoria.session.store import Store, default_store
from narratoria.story import open_story
from narratoria.tools.custody import sweep
from narratoria.turn import TurnResult

DEFAULT_STORY = "lighthouse"


@click.command()
@click.argument("story", required=False)
@click.option("--story", "named", metavar="STORY", help="The same as the argument.")
@click.option("--terminal", is_flag=True, help="Play here instead of in a browser.")
@click.option("--session", "session_id", metavar="ID", help="Go on with a saved session.")
@click.option("--json", "as_json", is_flag=True, help="With --terminal: one JSON object per turn.")
@click.option("--narrator", "narrators", multiple=True, help="Which narrators to ask, in order.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0 picks a free one."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def play(
    story: str | None,
    named: str | None,
    terminal: bool,
    session_id: str | None,
    as_json: bool,
    narrators: tuple[str, ...],
    host: str,
    port: int,
    no_browser: bool,
) -> int:
    """Play STORY: a name from the library, or a folder."""
    if story is not None and named is not None:
        raise click.UsageError("the story is named twice, as an argument and with --story")
    story = story or named
    if terminal or as_json:
        return asyncio.run(_play(story, session_id, narrators, as_json))
    try:
        from narratoria.web.server import serve
    except ImportError as error:
        raise NarratoriaError(
            f"the story page needs the extra 'web' ({error}); or play with --terminal"
        ) from None
    return serve(
        story=story, session_id=session_id, narrators=narrators, host=host, port=port, browser=not no_browser
    )


@asynccontextmanager
async def open_game(
    store: Store, story: str | None, session_id: str | None, narrators: tuple[str, ...]
) -> AsyncIterator[tuple[Game, bool]]:
    """A game over the store, and whether it is new."""
    if session_id is not None:
        meta = await asyncio.to_thread(store.find, session_id)
        tale = await asyncio.to_thread(story_of, meta, story)
        journal = await asyncio.to_thread(store.open, meta.id)
        if story is not None and folder_of(tale) != meta.folder:
            await asyncio.to_thread(store.relocate, meta.id, folder_of(tale))
        new = False
    else:
        tale = open_story(story or DEFAULT_STORY)
        session = Session(state=tale.state, permissions=tale.permissions, assets=store.assets)
        journal = await asyncio.to_thread(
            store.create, session, story=tale.id, title=tale.title, folder=folder_of(tale)
        )
        new = True
    try:
        yield Game(tale, journal.session, narrators=narrators or None), new
    finally:
        await journal.close()


async def _play(story: str | None, session_id: str | None, narrators: tuple[str, ...], as_json: bool) -> int:
    store = await asyncio.to_thread(default_store)
    try:
        async with open_game(store, story, session_id, narrators) as (game, new):
            table = _Json(game) if as_json else _Table(game)
            opened = game.begin() if new else await game.resume()
            table.show(opened or _where_we_were(game))
            await _exchange(game, table)
    finally:
        store.close()
    await sweep()
    return 0


async def _exchange(game: Game, table: _Json | _Table) -> None:
    """Prompts in, turns out, until the story ends or the player does."""
    while game.ending is None:
        prompt = await asyncio.to_thread(table.ask)
        if prompt is None:
            return
        chosen = table.choice(prompt)
        table.show(await game.prompt(chosen or prompt, origin="choice" if chosen else "player"))


def _where_we_were(game: Game) -> TurnResult:
    session = game.session
    prompt, narrative = session.past[-1] if session.past else ("", game.story.opening.narrative)
    return TurnResult(session.turn_count, prompt, narrative, list(session.choices))


class _Json:
    """One object per turn on standard output; prompts line by line from standard input."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def ask(self) -> str | None:
        return _read_line()

    def choice(self, prompt: str) -> str | None:
        return prompt if prompt in self.game.session.choices else None

    def show(self, result: TurnResult) -> None:
        print_json(turn_document(self.game, result))


def _read_line() -> str | None:
    """A prompt. Bytes that are not UTF-8 become question marks: a slip of the terminal must not end a game."""
    line = sys.stdin.buffer.readline()
    return line.decode("utf-8", "replace").rstrip("\r\n") if line else None


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
        "unsaved": result.unsaved,  # why the turn is not on the disk, or null
        "ending": {"id": ending[0], "title": ending[1]} if ending else None,
    }


class _Table:
    """A person at a terminal, or a script with one prompt per line."""

    full = False

    def __init__(self, game: Game) -> None:
        self.game = game
        self.out: Console = console()
        self.width = min(88, self.out.width)
        self.page = Console(
            markup=False, highlight=False, width=self.width
        )  # wraps; the other one never cuts a line
        game.session.attach(self)
        self.out.print(styled((game.story.title, "bold magenta")))
        self.out.print(
            styled((f"session {game.session.id[:8]} · a number picks a choice · empty line to stop", "dim"))
        )

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        """Small signs of life while tools work."""
        event = record.event
        if isinstance(event, AssetStored):
            self.out.print(styled((f"  ◆ {event.kind} {event.name} ({event.media_type})", "dim magenta")))
        elif isinstance(event, CallRetrying):
            self.out.print(styled((f"  … {event.error}", "dim yellow")))
        elif isinstance(event, CallStarted) and self.out.is_terminal:
            self.out.print(styled((f"  · {event.tool}", "dim")))

    def ask(self) -> str | None:
        if sys.stdin.isatty():
            self.out.print(styled(("> ", "bold cyan")), end="")
        prompt = _read_line()
        if prompt is None or (sys.stdin.isatty() and not prompt.strip()):
            return None
        if not sys.stdin.isatty():
            self.out.print(styled(("> ", "bold cyan"), (prompt, "cyan")))
        return prompt

    def choice(self, prompt: str) -> str | None:
        choices = self.game.session.choices
        text = prompt.strip()
        if text.isdecimal() and 1 <= int(text) <= len(choices):
            return choices[int(text) - 1]
        return prompt if prompt in choices else None

    def show(self, result: TurnResult) -> None:
        self.out.print()
        self.page.print(Padding(Markdown(printable(result.narrative)), (0, 2)))
        if result.outcome == "cancelled":
            self.out.print(styled(("  the turn was stopped", "yellow")))
        ending = self.game.ending
        if ending is not None:
            self.out.print(styled((f"\n  ✦ {ending[1]}", "bold magenta")))
            return
        for number, choice in enumerate(result.choices, 1):
            self.out.print(styled((f"  {number} ", "cyan"), (choice, "")))
