"""`narratoria dev`: a story or a tool, read anew whenever its files are saved."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.console import Console

from narratoria.cli.check import show_report
from narratoria.cli.completion import SESSION
from narratoria.cli.env_option import env_option
from narratoria.cli.narrators_option import narrators_option
from narratoria.cli.output import console, printable, styled
from narratoria.cli.play_tables import is_no_notice
from narratoria.cli.request_options import given_object, request_options
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.conformance import check_tool
from narratoria.errors import NarratoriaError, StoryInvalid, ToolValidationError
from narratoria.events import (
    AssetStored,
    CallEmitted,
    CallFinished,
    CallRetrying,
    CallStarted,
    JsonObject,
    Log,
    Notice,
    StatePatch,
    TurnStarted,
    UiEvent,
)
from narratoria.extras import needed
from narratoria.kinds.load import manifest_of
from narratoria.kinds.manifest import has_manifest
from narratoria.play.given_state import unknown_keys
from narratoria.play.session_story import folder_of, story_of
from narratoria.play.story import Story
from narratoria.play.story_library import is_story_folder, open_story
from narratoria.play.story_watch import FileWatch
from narratoria.session import Record, Session
from narratoria.state import merge
from narratoria.store.default_store import default_store

_LOOK: Final = 0.3  # seconds between two looks at a tool
_LONGEST: Final = 300  # characters of a line


@click.command("dev")
@click.argument("target", metavar="STORY|TOOL")
@click.option("--at", help="Start a story with this state: JSON, a file, or - for standard input.")
@click.option("--session", "session_id", type=SESSION, metavar="ID", help="Go on with a saved session.")
@click.option("--turn", type=click.IntRange(0), help="With --session: go on after this turn, in a branch.")
@click.option("--input", "input_", help="For a tool: the input of each run; else its first example.")
@request_options
@click.option("--terminal", is_flag=True, help="Play here instead of in a browser.")
@narrators_option()
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@env_option
@sandbox_option
def dev(
    target: str,
    at: str | None,
    session_id: str | None,
    turn: int | None,
    input_: str | None,
    state: str | None,
    operation: str | None,
    dependencies: str | None,
    terminal: bool,
    narrators: tuple[str, ...],
    port: int | None,
    no_browser: bool,
) -> int:
    """Play STORY, or run TOOL, and read it anew whenever a file of it is saved.

    An open session of a story goes on with the new rules and tools, and events are shown here as they come. A tool is
    called and checked again after each save; of the check only what fails is shown.
    """
    if turn is not None and session_id is None:
        raise click.UsageError("--turn needs the --session it is a turn of")
    if at is not None and session_id is not None:
        raise click.UsageError("a session brings its own state; give --at or --session")
    story = _story(target)
    if story is None:
        if at is not None or session_id is not None or terminal:
            raise click.UsageError(f"{target} is a tool; --at, --session and --terminal are for stories")
        given = {"--input": input_, "--state": state, "--dependencies": dependencies}
        return _dev_tool(Path(target), given, operation)
    for option, value in {
        "input": input_,
        "state": state,
        "operation": operation,
        "dependencies": dependencies,
    }.items():
        if value is not None:
            hint = "; --at gives a story its state" if option == "state" else ""
            raise click.UsageError(f"{target} is a story; --{option} is for tools{hint}")
    given_state = given_object("--at", at)
    for line in unknown_keys(story, given_state or {}):
        click.echo(f"warning: --at: {line}", err=True)
    started = _begin(story, given_state, session_id, turn)
    if terminal:
        return _dev_in_terminal(story, started, narrators)
    try:
        from narratoria.web.server import serve
    except ImportError:
        raise NarratoriaError(f"the story page {needed('web')}; or use --terminal") from None
    return serve(
        story=str(story.root),
        session_id=started,
        narrators=narrators,
        port=port,
        browser=not no_browser,
        watched=True,
        heard=EventLines(console(stderr=True)),
    )


def _dev_in_terminal(story: Story, session_id: str | None, narrators: tuple[str, ...]) -> int:
    from narratoria.cli.approval_options import TerminalApprover
    from narratoria.cli.play import play_in_terminal

    def lines(out: Console) -> EventLines:
        return EventLines(out, notices=False)  # the game shows them

    playing = play_in_terminal(
        str(story.root), session_id, narrators, TerminalApprover(), watched=True, heard=lines
    )
    return asyncio.run(playing)


def _story(target: str) -> Story | None:
    """Return the story of this name or folder; None for a tool."""
    path = Path(target)
    if path.is_file() or (path.is_dir() and not is_story_folder(path)):
        return None
    return open_story(target)


def _begin(story: Story, state: Any, session_id: str | None, turn: int | None) -> str | None:
    """Return the session to open: a new one with this state, a branch after this turn, or the one given."""
    if state is None and session_id is None:
        return None
    store = default_store()
    try:
        if session_id is None:
            session = Session(
                state=merge(story.state, state), permissions=story.permissions, assets=store.assets
            )
            journal = store.create(session, story=story.id, title=story.title, folder=folder_of(story))
            asyncio.run(journal.close())
            return session.id
        meta = store.find(session_id)
        story_of(meta, story)  # a session of another story is refused here
        return (
            meta.id
            if turn is None
            else store.branch(meta.id, turn, title=f"{meta.title}, from turn {turn}").id
        )
    finally:
        store.close()


class EventLines:
    """Prints the events of games, a line each, as they come."""

    full = False

    def __init__(self, out: Console, *, notices: bool = True) -> None:
        self.out = out
        self._notices = notices
        if notices:  # shown here, and not by the log too
            logging.getLogger("narratoria").addFilter(is_no_notice)
        self._tools: dict[str, str] = {}  # by call

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, TurnStarted):
            self._line(f"turn {event.turn}", event.prompt or "the opening", "bold")
        elif isinstance(event, CallStarted):
            self._tools[event.call] = event.tool
            again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            self._line(f"call {event.tool}{again}", _json(event.input), "cyan")
        elif isinstance(event, CallEmitted):
            self._emitted(self._tools.get(event.call, event.call), event.event)
        elif isinstance(event, AssetStored):
            self._line("asset", f"{event.name} ({event.media_type}, {event.size:,} bytes)", "magenta")
        elif isinstance(event, CallRetrying):
            self._line("again", f"in {event.delay:g} s: {event.error}", "yellow")
        elif isinstance(event, CallFinished):
            self._finished(event)
        elif isinstance(event, Notice) and self._notices:
            self._line(event.level, event.message, "yellow" if event.level != "info" else "green")

    def _emitted(self, tool: str, event: Any) -> None:
        if isinstance(event, Log):
            fields = f" {_json(event.fields)}" if event.fields else ""
            self._line(f"{tool} {event.level}", f"{event.message}{fields}", "dim")
        elif isinstance(event, StatePatch):
            self._line(f"{tool} patch", _json(event.patch), "dim")
        elif isinstance(event, UiEvent):
            self._line(f"{tool} {event.event}", _json(event.payload), "dim")

    def _finished(self, event: CallFinished) -> None:
        self._tools.pop(event.call, None)
        took = f"{event.duration * 1000:.0f} ms"
        if event.ok:
            self._line(f"✓ {event.tool}", took, "green")
            return
        self._line(f"✗ {event.tool}", f"{event.error_code}: {event.error} ({took})", "red")
        for line in (event.stderr or "").splitlines()[-8:]:
            self.out.print(styled(("    stderr ", "red"), (line.rstrip()[:_LONGEST], "")))

    def _line(self, head: str, text: str, style: str) -> None:
        short = printable(" ".join(text.split()))
        short = short if len(short) <= _LONGEST else f"{short[:_LONGEST]}…"
        self.out.print(styled((f"  {head} ", style), (short, "dim" if style == "dim" else "")))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value is not None else ""


# --- tools -------------------------------------------------------------------------------------------------


def _dev_tool(path: Path, objects: Mapping[str, str | None], operation: str | None) -> int:
    """Call and check a tool after each save, until interrupted; `objects` has its options with JSON."""
    if not path.is_file():
        raise StoryInvalid(f"{path}: neither a story (a folder with a story.toml) nor a file that is a tool")
    # Read once: it may be standard input.
    given = {option: given_object(option, text) for option, text in objects.items()}
    watch = FileWatch(path.resolve())
    while True:
        _try_tool(path, given, operation)
        click.echo(f"watching {path}; Ctrl+C ends it", err=True)
        while not (news := watch.news()):
            time.sleep(_LOOK)
        click.echo(f"\n{news}", err=True)


def _try_tool(path: Path, given: Mapping[str, JsonObject | None], operation: str | None) -> None:
    """Call the tool, and tell which rules of the protocol it breaks."""
    from narratoria.cli import cli

    arguments = ["--operation", operation] if operation is not None else []
    for option, value in {**given, "--input": given["--input"] or _example(path)}.items():
        if value is not None:
            arguments += [option, json.dumps(value)]
    cli.main(["call", str(path), *arguments], prog_name="narratoria", standalone_mode=False)
    report = check_tool(
        path,
        input=given["--input"],
        state=given["--state"],
        operation=operation,
        dependencies=given["--dependencies"],
    )
    show_report(report, console(), brief=True)


def _example(path: Path) -> JsonObject | None:
    """Return the input of the first example in a tool's manifest."""
    try:
        examples = manifest_of(path).examples if has_manifest(path) else ()
    except ToolValidationError:  # the call says it
        return None
    return examples[0].input if examples else None
