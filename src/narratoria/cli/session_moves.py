"""`narratoria sessions undo | redo | retry | branch | checkpoint`: move between the turns of a saved session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from narratoria.cli.approval_options import TerminalApprover, approve_option
from narratoria.cli.completion import SESSION
from narratoria.cli.env_option import env_option
from narratoria.cli.narrators_option import narrators_option
from narratoria.cli.output import console, print_json, styled
from narratoria.cli.play import open_game
from narratoria.cli.play_tables import tell, turn_document
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.session_options import (
    as_json_option,
    ask,
    counted,
    opened_store,
    story_option,
    yes_option,
)
from narratoria.errors import JournalError, StoryInvalid
from narratoria.kinds.process.custody import sweep
from narratoria.play import history
from narratoria.play.game import story_registry
from narratoria.play.game_sources import GameSources
from narratoria.play.history import UndoPreview
from narratoria.play.session_story import story_of
from narratoria.run.registry import ToolRegistry
from narratoria.store.fold import fold
from narratoria.store.journal import Journal
from narratoria.store.store import LARGEST, SessionMeta, Store

T = TypeVar("T")


@asynccontextmanager
async def _opened(store: Store, meta: SessionMeta) -> AsyncIterator[Journal]:
    journal = await asyncio.to_thread(store.open, meta.id)
    try:
        yield journal
    finally:
        await journal.close()


def _within(session: str, act: Callable[[Journal, SessionMeta], Awaitable[T]]) -> tuple[SessionMeta, T]:
    """Open SESSION for writing, do one thing with it, and close it."""

    async def run(store: Store, meta: SessionMeta) -> T:
        async with _opened(store, meta) as journal:
            return await act(journal, meta)

    with opened_store() as store:
        meta = store.find(session)
        return meta, asyncio.run(run(store, meta))


async def _registry(
    journal: Journal, meta: SessionMeta, given: str | None
) -> tuple[ToolRegistry | None, str | None]:
    """Return the story's tools, for their compensations, or the reason there are none; not every undo needs them."""
    try:
        story = story_of(meta, given)
        journal.session.grants.trust(story.permissions)
        registry = story_registry(story)
        if story.sources.declares_effects:  # else they have nothing to take back with, and need not be opened
            await GameSources(story.sources, registry).wait(lambda line: click.echo(line, err=True))
        return registry, None
    except StoryInvalid as error:
        if given is not None:
            raise
        return None, str(error)


def _agree(previews: Sequence[UndoPreview], lack: str | None, yes: bool, question: str) -> None:
    """List what cannot be taken back, and ask before anything is undone."""
    if lack is not None and any(one.tools_missing for one in previews):
        click.echo(f"nothing outside can be taken back without the story's tools: {lack}", err=True)
    lines = [line for one in previews for line in one.irreversible]
    for line in lines:
        click.echo(f"stays as it is: {line}", err=True)
    if any(one.imported for one in previews):
        click.echo("--imported takes back those that the imported file names a rollback for", err=True)
    if lines and not yes:
        ask(question, "nothing was undone")


def _agree_to_imported(previews: Sequence[UndoPreview], yes: bool) -> None:
    """List the rollbacks that an imported file asks for, and ask before they run."""
    asked = [line for one in previews for line in one.asked_by_a_file]
    for line in asked:
        click.echo(f"taken back by what the imported file says: {line}", err=True)
    if asked and not yes:
        ask("Run that?", "nothing was undone")


def _say(text: str, failed: Sequence[str] = ()) -> None:
    console().print(styled(("✓ ", "green"), (text, "")))
    for line in failed:
        console(stderr=True).print(styled((line, "yellow")))


def _document(undone: history.Undone) -> dict[str, Any]:
    return {
        "turn": undone.turn,
        "prompt": undone.prompt,
        "irreversible": undone.irreversible,
        "compensated": undone.compensated,
        "failed": undone.failed,
    }


# --- backwards and forwards ------------------------------------------------------------------------------


imported_option = click.option(
    "--imported", is_flag=True, help="Run the rollbacks that an imported file brought, too."
)


@click.command(name="undo")
@click.argument("session", type=SESSION)
@story_option
@env_option
@sandbox_option
@imported_option
@yes_option
@as_json_option
def undo_(session: str, story: str | None, imported: bool, yes: bool, as_json: bool) -> None:
    """Take back the newest turn of SESSION. What cannot be taken back is listed first."""

    async def act(journal: Journal, meta: SessionMeta) -> history.Undone:
        registry, lack = await _registry(journal, meta, story)
        await history.abandon(journal)
        preview = await history.preview_undo(journal, registry, imported=imported)
        _agree([preview], lack, yes, f"Undo turn {preview.turn} anyway?")
        _agree_to_imported([preview], yes)
        return await history.undo(journal, registry, imported=imported)

    meta, outcome = _within(session, act)
    if as_json:
        print_json({"session": meta.id, **_document(outcome)})
    else:
        _say(f"turn {outcome.turn} is undone: {outcome.prompt}", outcome.failed)


@click.command(name="redo")
@click.argument("session", type=SESSION)
@click.option("--force", is_flag=True, help="Although what the turn did outside is not done again.")
@as_json_option
def redo_(session: str, force: bool, as_json: bool) -> None:
    """Bring back the turn of SESSION that was undone last, from its records: no tool runs."""

    async def act(journal: Journal, meta: SessionMeta) -> tuple[int, str]:
        turn = await history.redo(journal, force=force)
        return turn, journal.session.past[-1][0]

    meta, (turn, prompt) = _within(session, act)
    if as_json:
        print_json({"session": meta.id, "turn": turn, "prompt": prompt})
    else:
        _say(f"turn {turn} is back: {prompt}")


@click.command(name="retry")
@click.argument("session", type=SESSION)
@click.argument("prompt", required=False)
@narrators_option()
@story_option
@env_option
@sandbox_option
@approve_option
@yes_option
@as_json_option
def retry_(
    session: str,
    prompt: str | None,
    narrators: tuple[str, ...],
    story: str | None,
    approve: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> None:
    """Undo the newest turn of SESSION and take it again, with the same words or with PROMPT."""

    async def run(store: Store) -> None:
        async with open_game(store, story, session, narrators) as (game, journal):
            await game.equipped()
            await history.abandon(journal)
            preview = await history.preview_undo(journal, game.registry)
            _agree([preview], None, yes, f"Undo turn {preview.turn} and take it again?")
            said = await history.retry(journal, game.registry)
            game.session.approvals.approver = TerminalApprover(yes=yes, approve=approve)
            result = await game.prompt(prompt or said, origin="retry")
            if as_json:
                print_json(turn_document(game, result))
            else:
                tell(game, result)
        await sweep()

    with opened_store() as store:
        asyncio.run(run(store))


# --- other ways ------------------------------------------------------------------------------------------


@click.command()
@click.argument("session", type=SESSION)
@click.option(
    "--turn",
    type=click.IntRange(0, LARGEST - 1),
    help="Share the past up to the end of this turn; the newest if not given.",
)
@click.option("--title", help="What to call the branch.")
@as_json_option
def branch(session: str, turn: int | None, title: str | None, as_json: bool) -> None:
    """Make a new session that shares SESSION's past."""
    with opened_store() as store:
        meta = store.find(session)
        if turn is None:
            told = fold(store.read(meta.id)).told
            if not told:
                raise JournalError(f"session {meta.id} has no finished turn to branch from")
            turn = told[-1].turn
        made = store.branch(meta.id, turn, title=title)
    if as_json:
        print_json(made)
    else:
        console().print(
            styled(("✓ ", "green"), (f"{made.id}", "cyan"), (f"  from turn {turn} of {meta.id[:12]}", ""))
        )


# --- places to come back to --------------------------------------------------------------------------------


@click.group(name="checkpoint")
def checkpoint_() -> None:
    """Name the present turn of a session, and come back to it."""


@checkpoint_.command(name="list")
@click.argument("session", type=SESSION)
@as_json_option
def list_(session: str, as_json: bool) -> None:
    """List the checkpoint names of SESSION, and their turns."""
    with opened_store() as store:
        view = fold(store.read(store.find(session).id))
    prompts = {turn.turn: turn.prompt for turn in view.turns}
    found: list[dict[str, Any]] = [
        {"name": name, "turn": turn, "prompt": prompts.get(turn, "")}
        for name, turn in sorted(view.checkpoints.items(), key=lambda one: one[1])
    ]
    if as_json:
        print_json(found)
        return
    if not found:
        console().print("no checkpoints; `narratoria sessions checkpoint add` makes one")
    for one in found:
        console().print(
            styled((f"{one['turn']:>5}  ", "dim"), (one["name"], "cyan"), (f"  {one['prompt']}", ""))
        )


@checkpoint_.command(name="add")
@click.argument("session", type=SESSION)
@click.argument("name")
@as_json_option
def add(session: str, name: str, as_json: bool) -> None:
    """Give the present turn of SESSION a NAME; one that is used already moves here."""
    meta, turn = _within(session, lambda journal, _: history.checkpoint(journal, name))
    if as_json:
        print_json({"session": meta.id, "name": name.strip(), "turn": turn})
    else:
        _say(f"turn {turn} is {name.strip()!r}")


@checkpoint_.command(name="restore")
@click.argument("session", type=SESSION)
@click.argument("name")
@story_option
@env_option
@sandbox_option
@imported_option
@yes_option
@as_json_option
def restore(session: str, name: str, story: str | None, imported: bool, yes: bool, as_json: bool) -> None:
    """Undo every turn of SESSION after the checkpoint NAME. What cannot be taken back is listed first."""

    async def act(journal: Journal, meta: SessionMeta) -> tuple[int, list[history.Undone]]:
        registry, lack = await _registry(journal, meta, story)
        await history.abandon(journal)
        previews = await history.preview_return(journal, name, registry, imported=imported)
        _agree(previews, lack, yes, f"Undo {counted(len(previews), 'turn')} anyway?")
        _agree_to_imported(previews, yes)
        undone = await history.return_to(journal, name, registry, imported=imported)
        return journal.timeline.checkpoints[name.strip()], undone

    meta, (turn, undone) = _within(session, act)
    if as_json:
        print_json(
            {"session": meta.id, "name": name.strip(), "turn": turn, "undone": [*map(_document, undone)]}
        )
    else:
        failed = [line for one in undone for line in one.failed]
        many = "1 turn is" if len(undone) == 1 else f"{len(undone)} turns are"
        _say(f"back at {name.strip()!r}, turn {turn}; {many} undone", failed)
