"""`narratoria call`: run one tool once."""

from __future__ import annotations

import asyncio
import difflib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from narratoria.cli import FAILED, TIMED_OUT
from narratoria.cli.approval_options import TerminalApprover, approval_options
from narratoria.cli.completion import TOOL
from narratoria.cli.engine_option import engine_option
from narratoria.cli.env_option import env_option
from narratoria.cli.output import Seconds, console, print_json, printable, read_object, styled, unsaid
from narratoria.cli.request_options import given_object, request_options
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.skills_option import known_skills, skills_option
from narratoria.cli.source_options import opened_sources, source_of, source_options
from narratoria.errors import NOT_EXECUTABLE, ToolValidationError
from narratoria.events import (
    AnyRuntimeEvent,
    AssetDenied,
    AssetStored,
    CallEmitted,
    Log,
    Notice,
    ToolErrorEvent,
    UiEvent,
)
from narratoria.kinds.load import load_tool
from narratoria.kinds.manifest import default_name
from narratoria.kinds.process.custody import custody, sweep
from narratoria.kinds.process.launch import LaunchRefused, ToolMissing
from narratoria.run.call_record import Call
from narratoria.run.plan import CallResult
from narratoria.run.records import call_result, not_run
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.session.assets import AssetStore
from narratoria.store.store import data_home
from narratoria.tools.retry import plan_policy
from narratoria.tools.tool import Tool

if TYPE_CHECKING:
    from narratoria.kinds.foreign_sources import OpenSources, ToolSources

STDERR_LINES: Final = 20
"""Lines of a failed tool's stderr that are shown; `--json` has all that is kept."""
STDERR_COLUMNS: Final = 1000


@click.command()
@click.argument("tool", type=TOOL)
@click.option("--input", "input_", default="{}", help="The input: JSON, a file, or - for standard input.")
@request_options
@click.option("--timeout", type=Seconds(), help="Seconds it may take.")
@click.option(
    "--retries", type=click.IntRange(0, 100), default=0, show_default=True, help="Attempts after a failure."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one `toolResults` entry.")
@click.option("--events", is_flag=True, help="Print the tool's events as NDJSON, as they arrive.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder that assets are kept in, by their hash; by default `assets` in NARRATORIA_HOME.",
)
@click.option("--grant", multiple=True, metavar="PERMISSION", help="Grant a permission the tool asks for.")
@approval_options
@engine_option
@env_option
@sandbox_option
@source_options
@skills_option
def call(
    tool: Path,
    input_: str,
    state: str | None,
    operation: str | None,
    dependencies: str | None,
    timeout: float | None,
    retries: int,
    as_json: bool,
    events: bool,
    keep: Path | None,
    grant: tuple[str, ...],
    yes: bool,
    approve: tuple[str, ...],
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
) -> int:
    """Run one TOOL through the whole pipeline and show what it did.

    TOOL is the path of an executable, the name of a script of a skill, skill.script, or with --mcp or --openapi that of
    a tool of a server, server.tool.
    """
    if as_json and events:
        raise click.UsageError("--json and --events exclude each other")
    custody().adopt_orphans()
    arguments = read_object("--input", input_)
    logging.getLogger("narratoria").addHandler(logging.NullHandler())  # notices are shown, once, by us
    begun = given_object("--state", state)
    session = Session(state=begun, permissions=grant, assets=AssetStore(keep or data_home() / "assets"))
    record = Call(
        timeout=timeout,
        policy=plan_policy(retries, 100, general=not retries),
        dependencies=given_object("--dependencies", dependencies),
    )
    approver = TerminalApprover(yes=yes, approve=approve)
    session.approvals.approver = approver
    result, stderr = asyncio.run(
        _find(tool, sources, skill_folders, operation, arguments, record, events, as_json, session)
    )
    if as_json:
        print_json(_entry(result, stderr))
    return 0 if result.ok else TIMED_OUT if result.state == "timeout" else FAILED


async def _find(
    path: Path, found: ToolSources | None, folders: tuple[Path, ...], operation: str | None, *settings: Any
) -> tuple[CallResult, str]:
    """Run the tool of a server or document, if the name is one of theirs, or of a skill, else the executable."""
    name = str(path)
    if found is None or source_of(name) not in found.names:
        return await _call(
            path, lambda: _of_skill(name, folders) or load_tool(path, operation=operation), *settings
        )
    async with opened_sources(found, only=[source_of(name)], quiet=True) as opened:
        return await _call(path, lambda: _of_source(name, opened), *settings)


def _of_skill(name: str, folders: tuple[Path, ...]) -> Tool[Any, Any] | None:
    """Return the script of a skill; None if the name is that of a file, or of no skill."""
    skill, dot, script = name.partition(".")
    if not skill or not dot or not script or "/" in name or Path(name).exists():
        return None
    library = known_skills(folders)
    tools = [tool for tool in library if source_of(tool.name) == skill]
    for tool in tools:
        if tool.name == name:
            return tool
    reasons = [line for line in (*library.problems, *library.notes) if f"{skill}:" in line or name in line]
    if tools or reasons:
        known = f"it has {', '.join(tool.name for tool in tools)}" if tools else "; ".join(reasons)
        raise ToolMissing(f"the skill {skill!r} has no script {name!r}; {known}")
    return None


def _of_source(name: str, opened: OpenSources) -> Tool[Any, Any]:
    for problem in opened.problems:
        raise ToolMissing(problem)
    known = {tool.name: tool for tool in opened}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3)
        raise ToolMissing(
            f"{source_of(name)} has no tool {name!r}; it has {', '.join(near or sorted(known)[:10])}"
        )
    return known[name]


async def _call(
    path: Path,
    load: Callable[[], Tool[Any, Any]],
    arguments: dict[str, Any],
    record: Call,
    events: bool,
    as_json: bool,
    session: Session,
) -> tuple[CallResult, str]:
    """Return the entry of the call, and the stderr of a tool that failed."""
    try:
        tool = load()
    except (LaunchRefused, ToolValidationError) as error:
        # A manifest that cannot be read leaves open what the tool may be given: it is not run.
        code = error.code if isinstance(error, LaunchRefused) else NOT_EXECUTABLE
        if not as_json:
            console(stderr=True).print(styled(("✗ ", "red"), (f"{code}: ", "bold red"), (str(error), "")))
        return not_run(default_name(path), "failed", code, str(error), [], None), ""
    started = time.perf_counter()
    view = (
        _Quiet(tool.name, session)
        if as_json
        else _Events(tool.name, session)
        if events
        else _Live(tool.name, session)
    )
    session.attach(view)
    if isinstance(session.approvals.approver, TerminalApprover):
        session.approvals.approver.quiet = view.quiet
    with view:
        try:
            result = await ToolRegistry().executor.execute(tool, arguments, session=session, call=record)
            await sweep()
        except asyncio.CancelledError:
            if view.lost is None:
                raise
    if view.lost is not None:  # nobody hears us any more; the tool has been ended
        raise view.lost
    outcome = call_result(tool.name, result, record, time.perf_counter() - started)
    stderr = str((result.failure.details or {}).get("stderr", "")) if result.failure else ""
    if not as_json:
        shows_value = not result.exclude_value_from_context  # else the message says it all
        _conclude(outcome, result.message, session, quiet=events, shows_value=shows_value)
        _show_stderr(outcome, stderr)
    return outcome, stderr


def _entry(result: CallResult, stderr: str) -> dict[str, Any]:
    """Return an entry of `toolResults`, with `errorCode` and `errorSource` beside `error`, and a failure's `stderr`."""
    # 000 §13.5.
    entry: dict[str, Any] = msgspec.to_builtins(result)
    del entry["suggestions"]
    if stderr:
        entry["stderr"] = stderr
    return entry


class _Quiet:
    """Shows no event; notes on assets and other notices go to standard error."""

    full = False

    def __init__(self, name: str, session: Session) -> None:
        self.name = name
        self.session = session
        self.err = console(stderr=True)
        self.lost: OSError | None = None
        self._task = asyncio.current_task()
        self._refused = ""

    async def wait(self) -> None:
        return None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *details: object) -> None:
        return None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Draw nothing while a person is asked."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def push(self, record: Record) -> None:
        if self.lost is not None:
            return
        try:
            self.show(record.event)
        except OSError as error:
            # Our output is gone, which is not the tool's fault: the call is cancelled, not failed.
            self.lost = error
            if self._task is not None:
                self._task.cancel()

    def show(self, event: AnyRuntimeEvent) -> None:
        if isinstance(event, AssetStored):
            self.stored(event, self.session.assets.path_of(event.hash))
        elif isinstance(event, AssetDenied):
            self._refused = event.reason
            self.err.print(styled((f"{self.name}: asset refused: ", "yellow"), (event.reason, "")))
        elif isinstance(event, Notice) and event.message != self._refused:
            self.err.print(styled((event.message, "yellow")))

    def stored(self, event: AssetStored, path: Path) -> None:
        self.err.print(styled((f"asset {event.asset_id}  ", "magenta"), (f"stored at {path}", "")))


class _Events(_Quiet):
    """Prints events as the tool wrote them, one a line, flushed."""

    def show(self, event: AnyRuntimeEvent) -> None:
        if isinstance(event, CallEmitted):
            sys.stdout.buffer.write(msgspec.json.encode(event.event) + b"\n")
            sys.stdout.buffer.flush()
        else:
            super().show(event)


class _Live(_Quiet):
    """Shows progress and logs on a terminal; plain lines elsewhere."""

    def __init__(self, name: str, session: Session) -> None:
        super().__init__(name, session)
        self.out = console()
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=self.out,
            transient=True,
            disable=not self.out.is_terminal,
        )
        self.task = self.progress.add_task(name, total=None)

    def __enter__(self) -> None:
        self.progress.start()

    def __exit__(self, *details: object) -> None:
        self.progress.stop()

    def show(self, event: AnyRuntimeEvent) -> None:
        if not isinstance(event, CallEmitted):
            super().show(event)
            return
        inner = event.event
        if isinstance(inner, Log):
            self._log(inner)
        elif isinstance(inner, ToolErrorEvent):
            self.out.print(styled((f"{inner.error_code} ", "red"), (inner.error_message, "")))
        elif isinstance(inner, UiEvent):
            shown = msgspec.json.encode(inner.payload or {}).decode()
            self.out.print(styled((f"ui {inner.event} ", "cyan"), (shown, "")))

    def stored(self, event: AssetStored, path: Path) -> None:
        what = f"{event.media_type}, {event.size:,} bytes, stored at {path}"
        self.out.print(styled((f"asset {event.asset_id} ", "magenta"), (what, "dim")))

    def _log(self, event: Log) -> None:
        progress = (event.fields or {}).get("progress")
        if isinstance(progress, int | float) and not isinstance(progress, bool) and 0 <= progress <= 1:
            self.progress.update(
                self.task, total=1.0, completed=progress, description=printable(event.message)[:60]
            )
        style = {"debug": "dim", "info": "", "warn": "yellow", "error": "red"}[event.level]
        self.out.print(styled((f"{event.level:5} ", style or "blue"), (event.message, "")))


def _conclude(result: CallResult, message: str, session: Session, *, quiet: bool, shows_value: bool) -> None:
    if result.ok:
        if not quiet:
            out = console()
            out.print(
                styled(
                    ("✓ ", "green"), (message or "done", "bold"), (f"  {result.execution_time:.0f} ms", "dim")
                )
            )
            if shows_value and result.output and not session.state:
                out.print(styled(("value ", "cyan"), (msgspec.json.encode(result.output).decode(), "")))
            if session.state:
                out.print(styled(("state ", "cyan"), (msgspec.json.encode(session.snapshot()).decode(), "")))
        return
    err = console(stderr=True)
    tries = f" after {result.retry_count + 1} attempts" if result.retry_count else ""
    err.print(styled(("✗ ", "red"), (f"{result.error_code}{tries}: ", "bold red"), (result.error or "", "")))
    for suggestion in unsaid(result):
        err.print(styled(("  → ", "dim"), (suggestion, "")))


def _show_stderr(result: CallResult, stderr: str) -> None:
    """Show the end of a failed tool's stderr, unless the failure has said it."""
    lines = stderr.strip("\n").splitlines()
    if not lines or (len(lines) == 1 and lines[0].strip() in (result.error or "")):
        return
    err = console(stderr=True)
    left = len(lines) - STDERR_LINES
    err.print(styled(("stderr" + (f", after {left:,} lines more" if left > 0 else "") + ":", "dim")))
    for line in lines[-STDERR_LINES:]:
        err.print(styled(("  ", ""), (line[:STDERR_COLUMNS], "")))
