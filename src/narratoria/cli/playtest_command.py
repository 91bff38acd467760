"""`narratoria playtest`: players made of chance play a story, and report what they ran into."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from narratoria.authoring.playtest import Fault, Report, Settings, playtest
from narratoria.cli import FAILED
from narratoria.cli.completion import STORY
from narratoria.cli.env_option import env_option
from narratoria.cli.output import console, print_json, printable, styled
from narratoria.cli.play import open_game
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.session_options import counted
from narratoria.errors import NarratoriaError
from narratoria.kinds.process.custody import custody, sweep
from narratoria.narrator.roster import USUAL
from narratoria.play.story_library import open_story
from narratoria.session.approvals import approving
from narratoria.store.default_store import default_store

_LISTED = 12  # of each kind, for people; --json has all
_KEPT = 5  # faults that are played again and saved


@click.command("playtest")
@click.argument("story", type=STORY)
@click.option("--players", type=click.IntRange(1, 1000), default=8, show_default=True, help="How many play.")
@click.option(
    "--turns", type=click.IntRange(1, 10_000), default=40, show_default=True, help="Turns of each player."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed types the same words.")
@click.option(
    "--save/--no-save", default=True, show_default=True, help="Save a session to open for each fault."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON document.")
@env_option
@sandbox_option
def playtest_command(story: str, players: int, turns: int, seed: int, save: bool, as_json: bool) -> int:
    """Let random players play STORY, and report what they ran into.

    Half of them choose at random, half try what was not tried yet. Failed calls, dead ends, choices that no rule
    answers, warnings and crashes are faults: the exit code is then 1. Rules that nobody reached, endings and
    refusals are reported too.
    """
    settings = Settings(players=players, turns=turns, seed=seed)
    report = asyncio.run(_run(story, settings, save))
    if as_json:
        print_json(report.to_json())
    else:
        _show(report)
    return FAILED if report.faults else 0


async def _run(name: str, settings: Settings, save: bool) -> Report:
    custody().adopt_orphans()
    story = await asyncio.to_thread(open_story, name)
    for line in story.warn():
        click.echo(line, err=True)
    err = console(stderr=True)
    try:
        with err.status("playing") as status:

            def told(done: int) -> None:
                status.update(f"playing: {done} of {settings.players} players are done")

            report = await playtest(story, settings, told=told)
        if save:
            for fault in report.faults[:_KEPT]:
                fault.session = await _saved(str(story.root), fault)
    finally:
        await sweep()
    return report


async def _saved(story: str, fault: Fault) -> str | None:
    """Play the way to a fault once more, in a session that is saved, and return its id."""
    store = await asyncio.to_thread(default_store)
    try:
        async with open_game(store, story, None, USUAL, warns=False) as (game, _):
            game.session.approvals.approver = approving("playtest")
            game.begin()
            for prompt in fault.prompts:
                await game.prompt(prompt)
            return game.session.id
    except NarratoriaError:
        return None if fault.kind != "crash" else game.session.id
    finally:
        store.close()


def _show(report: Report) -> None:
    out = console()

    def line(text: str, style: str = "") -> None:
        out.print(styled((text, style)))

    line(
        f"{counted(report.turns, 'turn')} of {counted(report.players, 'player')}, "
        f"{report.turns_per_second:.1f} turns a second, seed {report.seed}"
    )
    for fault in report.faults:
        again = f" ({fault.count} times)" if fault.count > 1 else ""
        line(f"✗ {fault.kind}{again}: {printable(fault.message)}", "red")
        way = " · ".join(fault.prompts[-4:]) or "the opening"
        line(f"    after: {'… ' if len(fault.prompts) > 4 else ''}{printable(way)}")
        if fault.session:
            line(f"    open it: narratoria play --session {fault.session}")
    for name, ending in report.endings.items():
        line(
            f"✓ ending {printable(name)}: {counted(ending.count, 'time')}, "
            f"in {counted(ending.shortest, 'turn')} at the least"
        )
    if not report.endings:
        line("– nobody came to an ending; try more --turns")
    _list(line, "rules that never answered", report.unreached_rules)
    _list(line, "cases that never answered (rule: number)", report.unreached_cases)
    _list(line, f"{counted(report.refusals, 'turn')} that no rule answered", report.refused)
    line("✗ faults were found" if report.faults else "✓ no fault was found", "bold")


def _list(line: Any, title: str, items: list[str]) -> None:
    if items:
        rest = f", and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
        line(f"– {title}: {', '.join(map(printable, items[:_LISTED]))}{rest}")
