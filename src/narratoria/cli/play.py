"""`narratoria play`: a story in the browser, or in the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click
from rich.console import Console

from narratoria.cli.approval_options import TerminalApprover, approval_options
from narratoria.cli.completion import SESSION, STORY
from narratoria.cli.engine_option import engine_option
from narratoria.cli.env_option import env_option
from narratoria.cli.line_editor import LineInterrupted
from narratoria.cli.narrators_option import narrators_option, say_missing_words
from narratoria.cli.play_tables import JsonTable, TerminalTable
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.skills_option import skills_option
from narratoria.cli.source_options import source_options
from narratoria.cli.stdin_lines import in_daemon_thread
from narratoria.cli.terminal_commands import TerminalCommands
from narratoria.errors import NarratoriaError
from narratoria.extras import needed
from narratoria.kinds.foreign_sources import ToolSources
from narratoria.kinds.process.custody import custody, sweep
from narratoria.play.game import Game
from narratoria.play.session_story import folder_of, story_of
from narratoria.play.story_library import open_story
from narratoria.play.story_watch import WATCH_SECONDS
from narratoria.session import Session
from narratoria.session.record import Sink
from narratoria.store.default_store import default_store
from narratoria.store.journal import Journal
from narratoria.store.store import Store

DEFAULT_STORY = "lighthouse"


@click.command()
@click.argument("story", type=STORY, required=False)
@click.option("--story", "named", type=STORY, metavar="STORY", help="The same as the argument.")
@click.option("--terminal", is_flag=True, help="Play here instead of in a browser.")
@click.option("--session", "session_id", type=SESSION, metavar="ID", help="Go on with a saved session.")
@click.option("--json", "as_json", is_flag=True, help="With --terminal: one JSON object per turn.")
@narrators_option()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port to listen on: 8321, or the next that is free; 0 picks any.",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@approval_options
@engine_option
@env_option
@sandbox_option
@source_options
@skills_option
def play(
    story: str | None,
    named: str | None,
    terminal: bool,
    session_id: str | None,
    as_json: bool,
    narrators: tuple[str, ...],
    host: str,
    port: int | None,
    no_browser: bool,
    yes: bool,
    approve: tuple[str, ...],
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
) -> int:
    """Play STORY: a name from the library, or a folder."""
    if story is not None and named is not None:
        raise click.UsageError("the story is named twice, as an argument and with --story")
    story = story or named
    say_missing_words()
    if terminal or as_json:
        approver = TerminalApprover(yes=yes, approve=approve, says_refusals=True)
        return asyncio.run(
            play_in_terminal(
                story,
                session_id,
                narrators,
                approver,
                as_json=as_json,
                sources=sources,
                skills=skill_folders,
            )
        )
    if yes or approve:
        raise click.UsageError("--yes and --approve go with --terminal; the page asks the player")
    try:
        from narratoria.web.server import serve
    except ImportError:
        raise NarratoriaError(f"the story page {needed('web')}; or play with --terminal") from None
    return serve(
        story=story,
        session_id=session_id,
        narrators=narrators,
        host=host,
        port=port,
        browser=not no_browser,
        sources=sources,
        skills=skill_folders,
    )


@asynccontextmanager
async def open_game(
    store: Store,
    story: str | None,
    session_id: str | None,
    narrators: tuple[str, ...],
    sources: ToolSources | None = None,
    skills: Sequence[Path] = (),
    watched: bool = False,
    warns: bool = True,
) -> AsyncIterator[tuple[Game, Journal]]:
    """Open a game over the store: a saved one, or a new one, which has no turn yet, and whose warnings are told."""
    if session_id is not None:
        meta = await asyncio.to_thread(store.find, session_id)
        loaded = await asyncio.to_thread(story_of, meta, story)
        journal = await asyncio.to_thread(store.open, meta.id)
        if story is not None and folder_of(loaded) != meta.folder:
            await asyncio.to_thread(store.relocate, meta.id, folder_of(loaded))
        try:
            game = Game(
                loaded,
                journal.session,
                narrators=narrators or None,
                sources=sources,
                skills=skills,
                watched=watched,
            )
        except BaseException:
            await journal.close()
            raise
    else:
        loaded = open_story(story or DEFAULT_STORY)
        for line in loaded.warn() if warns else ():
            click.echo(line, err=True)
        session = Session(state=loaded.state, permissions=loaded.permissions, assets=store.assets)
        # First: what cannot be played is not kept.
        game = Game(
            loaded, session, narrators=narrators or None, sources=sources, skills=skills, watched=watched
        )
        journal = await asyncio.to_thread(
            store.create, session, story=loaded.id, title=loaded.title, folder=folder_of(loaded)
        )
    looking = asyncio.create_task(_watch(game)) if watched else None
    try:
        yield game, journal
    finally:
        if looking is not None:
            looking.cancel()
        await journal.close()
        await game.close()


async def play_in_terminal(
    story: str | None,
    session_id: str | None,
    narrators: tuple[str, ...],
    approver: TerminalApprover,
    *,
    as_json: bool = False,
    sources: ToolSources | None = None,
    skills: Sequence[Path] = (),
    watched: bool = False,
    heard: Callable[[Console], Sink] | None = None,
) -> int:
    """Play until the story or the input ends. `heard` makes what hears all records of the game, and prints them."""
    custody().adopt_orphans()
    store = await asyncio.to_thread(default_store)
    parent: str | None = None
    try:
        while True:
            opening = open_game(store, story, session_id, narrators, sources, skills, watched)
            async with opening as (game, journal):
                table = JsonTable(game) if as_json else TerminalTable(game)
                game.session.approvals.approver = approver
                approver.quiet = table.quiet
                if heard is not None:
                    game.session.attach(heard(table.aside))
                with table.seated():
                    if parent is not None:
                        message = f"a branch of {parent[:8]}"
                        table.moved("branch", message, game.where_we_are(), parent=parent)
                    else:
                        if (
                            isinstance(table, TerminalTable)
                            and journal.timeline.open is not None
                            and journal.timeline.last is not None
                        ):
                            table.show(game.where_we_are())
                            table.going_on(journal.open_records)  # perhaps with a question
                        table.show(await game.resume() or game.where_we_are())
                    parent, session_id = game.session.id, await _exchange(game, journal, table)
            if session_id is None:
                break
    finally:
        store.close()
    await sweep()
    return 0


async def _watch(game: Game) -> None:
    """Look at the files of the story now and then."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        await game.look_between_turns()


async def _exchange(game: Game, journal: Journal, table: JsonTable | TerminalTable) -> str | None:
    """Read prompts and take turns until the player or the input ends it. Return the session to go on with, if any.

    The story's rules answer after an ending too, and it can be taken back.
    """
    commands = TerminalCommands(game, journal, table)
    while commands.elsewhere is None and not commands.over:
        try:
            prompt = await in_daemon_thread(table.ask)
        except LineInterrupted as pressed:
            if table.interrupts is not None:
                table.interrupts.at_prompt(empty=pressed.empty)
            continue
        if prompt is None:
            return None
        if table.interrupts is not None:
            table.interrupts.answered()
        if await commands.run(prompt):
            continue
        chosen = choice_of(prompt, game.session.choices)
        table.show(await game.prompt(chosen or prompt, origin="choice" if chosen else "player"))
    return commands.elsewhere


def choice_of(prompt: str, choices: Sequence[str]) -> str | None:
    """Return the choice a player picks, by its number or its text."""
    text = prompt.strip()
    if text.isdecimal() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    return prompt if prompt in choices else None
