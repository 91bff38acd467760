"""`narratoria sessions call`: one call of a saved session taken apart, and run again without touching the story."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import click
import msgspec

from narratoria.cli import FAILED, TIMED_OUT
from narratoria.cli.completion import SESSION
from narratoria.cli.env_option import env_option
from narratoria.cli.output import console, print_json, read_object, styled
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.session_options import (
    as_json_option,
    ask,
    opened_store,
    story_option,
    yes_option,
)
from narratoria.errors import NarratoriaError, StoryInvalid
from narratoria.kinds.process.custody import custody, sweep
from narratoria.play.call_again import NotAgreed, RepeatedCall, run_again, tool_of
from narratoria.play.call_command import CallCommand, call_command
from narratoria.play.game import story_registry
from narratoria.play.game_sources import GameSources
from narratoria.play.session_story import story_of
from narratoria.play.story import Story
from narratoria.run.plan_executor import PlanExecutor
from narratoria.session import Session
from narratoria.store.recorded_call import (
    CallRecords,
    EventView,
    RecordedCall,
    StateChangeView,
    all_calls,
    events_of,
    find_call,
    named_call,
    recorded_call,
    state_before,
)
from narratoria.store.session_views import AttemptView
from narratoria.store.store import SessionMeta, Store

FIRST_EVENTS: Final = 40
"""Events that are shown without --events; the others are counted."""
LONGEST_LINE: Final = 200
MARKS: Final = {"completed": "✓", "failed": "✗", "timeout": "⧖", "skipped": "→", "running": "…"}


@click.command(name="call")
@click.argument("session", type=SESSION)
@click.argument("call", required=False)
@click.option(
    "--run", "again", is_flag=True, help="Run it again, on the state it had then; the story stays as it is."
)
@click.option(
    "--input",
    "input_",
    metavar="JSON",
    help="Run it again with this input: JSON, a file, or - for standard input.",
)
@click.option("--events", "every", is_flag=True, help="Show every event, not only the first ones.")
@click.option(
    "--command", "only_command", is_flag=True, help="Print only the `narratoria call …` that repeats it."
)
@click.option("--print-state", is_flag=True, help="Print only the state it had, as JSON.")
@story_option
@yes_option
@as_json_option
@env_option
@sandbox_option
def call_(
    session: str,
    call: str | None,
    again: bool,
    input_: str | None,
    every: bool,
    only_command: bool,
    print_state: bool,
    story: str | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Take one CALL of SESSION apart: every attempt, the request, the changes, the events; without CALL, list them.

    CALL is its id, the beginning of one, its toolId in the plan, or the name of its tool (the newest such call).
    """
    given = None if input_ is None else read_object("--input", input_)
    with opened_store() as store:
        meta = store.find(session)
        if call is None:
            _list(store, meta, as_json)
            return 0
        records = find_call(store, meta.id, named_call(store, meta.id, call))
        world = state_before(store, meta.id, records)
        if print_state:
            print_json(world.snapshot() if world is not None else {})
            return 0
        told = recorded_call(records, world)
        if again or given is not None:
            custody().adopt_orphans()
            outcome = asyncio.run(_again(store, meta, records, told, story, given, yes))
            _show_again(outcome, every, as_json)
            return _status(outcome.call)
        command = asyncio.run(_command(meta, told, world, story))
        if only_command:
            if not command.command:
                raise NarratoriaError("; ".join(command.notes))
            sys.stdout.write(command.command + "\n")
            for note in command.notes:
                click.echo(note, err=True)
            return 0
        events = events_of(records, most=None if every or as_json else FIRST_EVENTS)
        if as_json:
            document = msgspec.to_builtins(told)
            print_json({**document, "events": events, "command": command.command, "notes": command.notes})
        else:
            _show(told, events)
            _show_command(command)
    return 0


def _status(call: RecordedCall) -> int:
    return 0 if call.ok else TIMED_OUT if call.state == "timeout" else FAILED


def _list(store: Store, meta: SessionMeta, as_json: bool) -> None:
    calls = list(all_calls(store.read(meta.id)))
    if as_json:
        print_json(
            [
                {
                    "turn": turn,
                    "call": one.call,
                    "tool": one.tool,
                    "toolId": one.tool_id,
                    "state": one.state,
                    "attempts": len(one.attempts),
                    "duration": one.duration,
                }
                for turn, one in calls
            ]
        )
        return
    out = console()
    if not calls:
        out.print("no tool has run in this session")
    for turn, one in calls:
        tries = f" after {len(one.attempts)} attempts" if len(one.attempts) > 1 else ""
        out.print(
            styled(
                (f"turn {turn or 0}  ", "dim"),
                (f"{MARKS.get(one.state, ' ')} {one.tool} ", ""),
                (f"{one.state}{tries}  {_seconds(one.duration)}  ", "dim"),
                (one.call, "cyan"),
            )
        )


# --- the tools of the session's story ------------------------------------------------------------------------


@asynccontextmanager
async def _tools(meta: SessionMeta, story: str | None) -> AsyncIterator[tuple[Story, PlanExecutor]]:
    loaded = story_of(meta, story)
    registry = story_registry(loaded)
    sources = GameSources(loaded.sources, registry)
    await sources.wait(lambda line: click.echo(line, err=True))
    try:
        yield loaded, PlanExecutor(registry, Session(), roots=[loaded.root])
    finally:
        await sources.close()
        await sweep()


async def _command(
    meta: SessionMeta, told: RecordedCall, world: Session | None, story: str | None
) -> CallCommand:
    try:
        loaded = story_of(meta, story)
        executor = PlanExecutor(story_registry(loaded), Session(), roots=[loaded.root])
        tool = tool_of(told, executor)
    except NarratoriaError as error:  # the story moved, or its tool is of a server that is not open here
        return CallCommand(notes=[str(error)])
    return call_command(told, tool, world, meta.id, permissions=world.permissions if world else ())


async def _again(
    store: Store,
    meta: SessionMeta,
    records: CallRecords,
    told: RecordedCall,
    story: str | None,
    given: dict[str, Any] | None,
    agreed: bool,
) -> RepeatedCall:
    try:
        async with _tools(meta, story) as (loaded, executor):
            for may in (agreed, True):
                try:
                    return await run_again(
                        store,
                        meta.id,
                        records,
                        executor,
                        given=given,
                        permissions=loaded.permissions,
                        agreed=may,
                    )
                except NotAgreed as refusal:
                    for reason in refusal.reasons:
                        click.echo(f"outside the story: {reason}", err=True)
                    ask(f"Run {told.tool} again even so?", "nothing was run")
    except StoryInvalid as error:
        raise NarratoriaError(f"{told.tool} cannot be run again: {error}") from error
    raise AssertionError("the second round runs it or raises")


# --- for people ----------------------------------------------------------------------------------------------


def _show_again(outcome: RepeatedCall, every: bool, as_json: bool) -> None:
    if as_json:
        print_json(outcome)
        return
    out = console()
    out.print(
        styled(("run again on the state it had then; nothing of the story was touched", "bold magenta"))
    )
    _show(outcome.call, outcome.events if every else outcome.events[:FIRST_EVENTS])
    if outcome.differs:
        out.print(styled(("≠ ", "yellow"), (f"differs from the record: {', '.join(outcome.differs)}", "")))
    else:
        out.print(styled(("= ", "green"), ("came out as recorded", "")))


def _show(told: RecordedCall, events: list[EventView]) -> None:
    out = console()
    name = told.tool if told.tool_id in (None, told.tool) else f"{told.tool} ({told.tool_id})"
    out.print(
        styled(
            (f"{MARKS.get(told.state, ' ')} {name} ", "bold"),
            (f"{told.state}  {_seconds(told.duration)}  ", "green" if told.ok else "red"),
            (told.call, "dim"),
        )
    )
    if told.message and told.ok:
        out.print(styled((f"  {told.message}", "")))
    if told.error:
        out.print(styled((f"  {told.error_code}: ", "bold red"), (told.error, "")))
    for suggestion in told.suggestions:
        out.print(styled(("  → ", "dim"), (suggestion, "")))
    _heading("attempts", len(told.attempts))
    for attempt in told.attempts:
        _show_attempt(attempt)
    if told.request is not None:
        _heading("sent to its standard input")
        out.print(styled((f"  {_json(told.request)}", "")))
    else:
        _heading("input")
        out.print(styled((f"  {_json(told.input)}", "")))
        if told.dependencies:
            out.print(styled(("  dependencies ", "dim"), (_json(told.dependencies), "")))
    _show_changes(told)
    _heading("events", told.event_count)
    for event in events:
        out.print(styled((f"  {event.at:8.3f} s  {event.attempt}  ", "dim"), (_event_line(event), "")))
    if told.event_count > len(events):
        out.print(styled((f"  … {told.event_count - len(events):,} more; --events shows every one", "dim")))


def _show_attempt(attempt: AttemptView) -> None:
    out = console()
    how = "running" if attempt.ok is None else "ok" if attempt.ok else attempt.error_code or "failed"
    parts = [how]
    if attempt.duration is not None:
        parts.append(_seconds(attempt.duration))
    if attempt.signal is not None:
        parts.append(f"ended by signal {attempt.signal}")
    elif attempt.exit_code is not None:
        parts.append(f"exit code {attempt.exit_code}")
    if attempt.delay is not None:
        parts.append(f"then waited {_seconds(attempt.delay)}")
    out.print(
        styled(
            (f"  {attempt.attempt}  ", "cyan"), (" · ".join(parts), "" if attempt.ok is not False else "red")
        )
    )
    if attempt.error and attempt.delay is not None:
        out.print(styled((f"     {attempt.error}", "dim")))
    for line in (attempt.stderr or "").strip("\n").splitlines()[-10:]:
        out.print(styled(("     stderr  ", "dim"), (line[:LONGEST_LINE], "")))


def _show_changes(told: RecordedCall) -> None:
    out = console()
    _heading("changed in the state", told.change_count)
    for change in told.changes:
        out.print(styled(*_change_line(change)))
    if told.patches and not told.committed:
        out.print(styled(("  nothing: the call failed, and its patches were dropped: ", "yellow")))
        out.print(styled((f"  {_json(told.patches)}", "dim")))
    for other in told.other_changes:
        out.print(styled((f"  {other}", "")))
    for effect in told.effects:
        stays = "" if effect.reversible else " (cannot be taken back)"
        out.print(styled(("  outside: ", "yellow"), (f"{effect.description}{stays}", "")))
    for asset in told.assets:
        out.print(
            styled(
                ("  asset ", "magenta"), (f"{asset.asset_id} {asset.media_type}, {asset.size:,} bytes", "")
            )
        )
    for reason in told.refused_assets:
        out.print(styled(("  asset refused: ", "yellow"), (reason, "")))


def _change_line(change: StateChangeView) -> list[tuple[str, str]]:
    path = ".".join(change.path)
    if change.kind == "added":
        return [(f"  + {path} ", "green"), (_json(change.after), "")]
    if change.kind == "removed":
        return [(f"  - {path} ", "red"), (_json(change.before), "dim")]
    return [(f"  ~ {path} ", "yellow"), (_json(change.before), "dim"), (" → ", ""), (_json(change.after), "")]


def _show_command(command: CallCommand) -> None:
    _heading("as a command")
    out = console()
    if command.command:
        out.print(styled((f"  {command.command}", "")))
    for note in command.notes:
        out.print(styled((f"  {note}", "dim")))


def _heading(text: str, count: int | None = None) -> None:
    shown = text if count is None else f"{text} ({count:,})"
    console().print(styled((shown, "bold cyan")))


def _event_line(event: EventView) -> str:
    data: dict[str, Any] = msgspec.to_builtins(event.event)
    kind = str(data.pop("type", ""))
    data.pop("version", None)
    data.pop("call", None)
    line = f"{kind} {_json(data)}"
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
