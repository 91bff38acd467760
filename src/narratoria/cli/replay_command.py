"""`narratoria replay`: show a recorded session from its journal alone, or run its tools again to compare."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.markdown import Markdown
from rich.padding import Padding

from narratoria.cli import FAILED
from narratoria.cli.completion import SESSION, STORY
from narratoria.cli.env_option import env_option
from narratoria.cli.output import console, page, print_json, printable, styled
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.session_options import ask, counted, opened_store, yes_option
from narratoria.events import SessionStarted
from narratoria.kinds.process.custody import sweep
from narratoria.play.game import story_registry
from narratoria.play.game_sources import GameSources
from narratoria.play.session_story import story_of
from narratoria.run.plan import PlanDocument
from narratoria.store.fold import fold
from narratoria.store.replay import Verification
from narratoria.store.replay import verify as verify_session
from narratoria.store.session_views import SessionView, TurnView
from narratoria.store.store import SessionMeta, Store

MOST_SHOWN: Final = 100


@click.command()
@click.argument("session", type=SESSION)
@click.option(
    "--verify", is_flag=True, help="Run the tools again, which act again, and show where the outcome differs."
)
@click.option(
    "--story",
    "story",
    type=STORY,
    metavar="STORY",
    help="With --verify: where the session's story is, if it moved.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0),
    default=0,
    help="1 is as it was played; 0 (the default) does not wait.",
)
@yes_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per turn; with --verify, one in all.")
@env_option
@sandbox_option
def replay(session: str, verify: bool, story: str | None, speed: float, yes: bool, as_json: bool) -> int:
    """Show SESSION again as it was played. No process is started and no model is asked."""
    with opened_store() as store:
        meta = store.find(session)
        if verify:
            if not yes:
                _ask_if_imported(store, meta)
            outcome = asyncio.run(_verify(store, meta, story))
            _report(outcome, as_json)
            return 0 if outcome.same else FAILED
        _show(meta, fold(store.read(meta.id)), speed, as_json)
    return 0


def _show(meta: SessionMeta, view: SessionView, speed: float, as_json: bool) -> None:
    out = console()
    if not as_json:
        out.print(styled((meta.title or meta.story or meta.id, "bold magenta")))
    before: float | None = None
    for turn in view.told:
        if speed and before is not None:
            time.sleep(min(10.0, max(0.0, turn.started - before)) / speed)  # nobody waits for a coffee break
        before = turn.ended
        if as_json:
            print_json(turn)
            continue
        if turn.prompt:
            out.print(styled(("\n> ", "bold cyan"), (turn.prompt, "cyan")))
        _tell(turn)
    left = next((turn for turn in view.turns if turn.outcome == "open"), None)
    if left is not None:
        click.echo(f"turn {left.turn} is not finished and was left out: {left.prompt}", err=True)


def _tell(turn: TurnView) -> None:
    out = console()
    for asset in turn.assets:
        out.print(styled((f"  ◆ {asset.kind} {asset.name} ({asset.media_type})", "dim magenta")))
    out.print()
    page().print(Padding(Markdown(printable(turn.narrative)), (0, 2)))
    for number, choice in enumerate(turn.choices, 1):
        out.print(styled((f"  {number} ", "cyan"), (choice, "")))


def _ask_if_imported(store: Store, meta: SessionMeta) -> None:
    """List the calls of an imported session and ask before they are made: they come from a file."""
    first = next(store.read(meta.id, limit=1), None)
    if first is None or not isinstance(first.event, SessionStarted) or not first.event.imported:
        return
    plans = [one.plan for turn in fold(store.read(meta.id)).told for one in turn.plans]
    calls = [call for plan in plans for call in PlanDocument.from_data(plan).tools]
    for call in calls[:MOST_SHOWN]:
        arguments = msgspec.json.encode(call.input).decode()[:MOST_SHOWN]
        click.echo(printable(f"asked for by the imported file: {call.tool_path} {arguments}"), err=True)
    if len(calls) > MOST_SHOWN:
        click.echo(f"… and {len(calls) - MOST_SHOWN} more", err=True)
    ask(f"Run {counted(len(calls), 'call')} that an imported file asks for?", "nothing was run")


async def _verify(store: Store, meta: SessionMeta, story: str | None) -> Verification:
    loaded = story_of(meta, story)
    click.echo(
        f"the tools of {loaded.title!r} run again, under new ids: what they do outside is done again",
        err=True,
    )
    registry = story_registry(loaded)
    sources = GameSources(loaded.sources, registry)
    await sources.wait(lambda line: click.echo(line, err=True))
    try:
        return await verify_session(
            store, meta.id, registry, roots=[Path(loaded.root)], permissions=loaded.permissions
        )
    finally:
        await sources.close()
        await sweep()


def _report(outcome: Verification, as_json: bool) -> None:
    if as_json:
        print_json({**msgspec.to_builtins(outcome), "same": outcome.same})
        return
    out = console()
    for one in outcome.differences:
        recorded, now = msgspec.json.encode(one.recorded).decode(), msgspec.json.encode(one.now).decode()
        out.print(styled((f"turn {one.turn} {one.where}: ", "bold yellow"), (one.what, "")))
        out.print(styled(("  recorded ", "dim"), (recorded, ""), ("\n  now      ", "dim"), (now, "")))
    ran = f"{counted(outcome.calls, 'call')} of {counted(outcome.turns, 'turn')}"
    if outcome.same:
        out.print(styled(("✓ ", "green"), (f"{ran} came out as recorded", "")))
    else:
        out.print(styled(("✗ ", "red"), (f"{counted(len(outcome.differences), 'difference')} in {ran}", "")))
