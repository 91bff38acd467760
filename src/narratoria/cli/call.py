"""`narratoria call`: one tool, once."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from narratoria.cli import FAILED, TIMED_OUT
from narratoria.cli.output import console, print_json, printable, read_object, styled
from narratoria.errors import NOT_EXECUTABLE, TIMEOUT, ToolValidationError
from narratoria.events import AssetDenied, AssetStored, CallEmitted, Log, ToolErrorEvent, UiEvent
from narratoria.executor import Call
from narratoria.plan import CallResult
from narratoria.plan_executor import call_result
from narratoria.registry import ToolRegistry
from narratoria.retry import plan_policy
from narratoria.session import Record, Session
from narratoria.tools.custody import sweep
from narratoria.tools.launch import LaunchRefused
from narratoria.tools.process import process_tool


@click.command()
@click.argument("tool", type=click.Path(path_type=Path))
@click.option("--input", "input_", default="{}", help="The input: JSON, @file, or - for standard input.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds it may take.")
@click.option(
    "--retries", type=click.IntRange(0, 100), default=0, show_default=True, help="Attempts after a failure."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one `toolResults` entry.")
@click.option("--events", is_flag=True, help="Print the tool's events as NDJSON, as they arrive.")
@click.option("--grant", multiple=True, metavar="PERMISSION", help="Grant a permission the tool asks for.")
def call(
    tool: Path,
    input_: str,
    timeout: float | None,
    retries: int,
    as_json: bool,
    events: bool,
    grant: tuple[str, ...],
) -> int:
    """Run one TOOL through the whole pipeline and show what it did."""
    if as_json and events:
        raise click.UsageError("--json and --events exclude each other")
    arguments = read_object("--input", input_)
    result = asyncio.run(_call(tool, arguments, timeout, retries, events, as_json, grant))
    if as_json:
        print_json(_entry(result))
    return 0 if result.ok else TIMED_OUT if result.error_code == TIMEOUT else FAILED


async def _call(
    path: Path,
    arguments: dict[str, Any],
    timeout: float | None,
    retries: int,
    events: bool,
    as_json: bool,
    grant: tuple[str, ...],
) -> CallResult:
    try:
        tool = process_tool(path)
    except (LaunchRefused, ToolValidationError) as error:
        # A manifest that cannot be read leaves open what the tool may be given: it is not run.
        code = error.code if isinstance(error, LaunchRefused) else NOT_EXECUTABLE
        if not as_json:
            console(stderr=True).print(styled(("✗ ", "red"), (f"{code}: ", "bold red"), (str(error), "")))
        return CallResult(tool_id=path.name, ok=False, state="failed", error=str(error), error_code=code)
    session = Session(permissions=grant)
    record = Call(timeout=timeout, policy=plan_policy(retries, 100))
    started = time.perf_counter()
    if events:
        session.attach(_Events())
        result = await ToolRegistry().executor.execute(tool, arguments, session=session, call=record)
    elif as_json:
        result = await ToolRegistry().executor.execute(tool, arguments, session=session, call=record)
    else:
        with _Live(tool.name) as live:
            session.attach(live)
            result = await ToolRegistry().executor.execute(tool, arguments, session=session, call=record)
    await sweep()
    outcome = call_result(tool.name, result, record, time.perf_counter() - started)
    if not as_json:
        _conclude(outcome, result.message, session, quiet=events)
    return outcome


def _entry(result: CallResult) -> dict[str, Any]:
    """000 §13.5, an entry of `toolResults`, with `errorCode` beside `error` and nothing else."""
    entry: dict[str, Any] = msgspec.to_builtins(result)
    del entry["suggestions"]
    return entry


class _Events:
    """Events as the tool wrote them, one a line, flushed."""

    full = False

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        if isinstance(record.event, CallEmitted):
            sys.stdout.buffer.write(msgspec.json.encode(record.event.event) + b"\n")
            sys.stdout.buffer.flush()


class _Live:
    """Progress and logs on a terminal; plain lines elsewhere."""

    full = False

    def __init__(self, name: str) -> None:
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

    async def wait(self) -> None:
        return None

    def __enter__(self) -> _Live:
        self.progress.start()
        return self

    def __exit__(self, *details: object) -> None:
        self.progress.stop()

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, CallEmitted):
            inner = event.event
            if isinstance(inner, Log):
                self._log(inner)
            elif isinstance(inner, ToolErrorEvent):
                self.out.print(styled((f"{inner.error_code} ", "red"), (inner.error_message, "")))
            elif isinstance(inner, UiEvent):
                shown = msgspec.json.encode(inner.payload or {}).decode()
                self.out.print(styled((f"ui {inner.event} ", "cyan"), (shown, "")))
        elif isinstance(event, AssetStored):
            where = f"{event.media_type}, {event.size:,} bytes, sha256 {event.hash[:12]}…"
            self.out.print(styled((f"asset {event.asset_id} ", "magenta"), (where, "dim")))
        elif isinstance(event, AssetDenied):
            self.out.print(styled(("asset refused: ", "yellow"), (event.reason, "")))

    def _log(self, event: Log) -> None:
        progress = (event.fields or {}).get("progress")
        if isinstance(progress, int | float) and not isinstance(progress, bool) and 0 <= progress <= 1:
            self.progress.update(
                self.task, total=1.0, completed=progress, description=printable(event.message)[:60]
            )
        style = {"debug": "dim", "info": "", "warn": "yellow", "error": "red"}[event.level]
        self.out.print(styled((f"{event.level:5} ", style or "blue"), (event.message, "")))


def _conclude(result: CallResult, message: str, session: Session, *, quiet: bool) -> None:
    if result.ok:
        if not quiet:
            out = console()
            out.print(
                styled(
                    ("✓ ", "green"), (message or "done", "bold"), (f"  {result.execution_time:.0f} ms", "dim")
                )
            )
            if session.state:
                out.print(styled(("state ", "cyan"), (msgspec.json.encode(session.snapshot()).decode(), "")))
        return
    err = console(stderr=True)
    tries = f" after {result.retry_count + 1} attempts" if result.retry_count else ""
    err.print(styled(("✗ ", "red"), (f"{result.error_code}{tries}: ", "bold red"), (result.error or "", "")))
    for suggestion in result.suggestions:
        err.print(styled(("  → ", "dim"), (suggestion, "")))
