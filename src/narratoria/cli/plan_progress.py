"""A plan while it runs: a tree of calls with bars and logs on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from narratoria.cli.output import console, styled, unsaid
from narratoria.events import CallEmitted, CallFinished, CallRetrying, CallStarted, Log
from narratoria.run.plan import ExecutionResult, PlanDocument, tool_name
from narratoria.session import Record, Session

_MARKS = {
    "waiting": ("·", "dim"),
    "running": ("▸", "cyan"),
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "skipped": ("–", "yellow"),
    "timeout": ("⏱", "red"),
}
_NAMED: Final = 4  # calls that are named in a line about many


@dataclass
class _Row:
    tool_id: str
    tool: str
    after: list[str]
    state: str = "waiting"
    attempt: int = 1
    progress: float | None = None
    note: str = ""
    started: float = 0.0
    elapsed: float = 0.0
    logs: list[str] = field(default_factory=list)


class PlanProgress:
    """A sink that draws a running plan. Drawing happens a few times a second, so it never slows the plan."""

    full = False

    def __init__(self, plan: PlanDocument) -> None:
        self.out = console()
        self.rows = {
            call.tool_id: _Row(call.tool_id, tool_name(call.tool_path), call.all_dependencies)
            for call in plan.tools
        }
        self.by_call: dict[str, _Row] = {}
        self.skipped: list[_Row] = []  # those not printed yet, which share one reason
        self.live = Live(get_renderable=self._draw, console=self.out, refresh_per_second=8, transient=True)
        if plan.narrative:
            self.out.print(styled((plan.narrative, "italic")))

    async def wait(self) -> None:
        return None

    def __enter__(self) -> PlanProgress:
        if self.out.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self.out.is_terminal:
            self.live.stop()
        self._print_skipped()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Draw nothing while a person is asked."""
        if self.out.is_terminal:
            self.live.stop()
        try:
            yield
        finally:
            if self.out.is_terminal:
                self.live.start()

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, CallStarted) and event.tool_id in self.rows:
            row = self.by_call[event.call] = self.rows[event.tool_id]
            row.state, row.attempt, row.started = "running", event.attempt, time.monotonic()
        elif isinstance(event, CallEmitted) and event.call in self.by_call and isinstance(event.event, Log):
            self._log(self.by_call[event.call], event.event)
        elif isinstance(event, CallRetrying) and event.call in self.by_call:
            self.by_call[event.call].note = f"{event.error_code}, again in {event.delay:g} s"
        elif isinstance(event, CallFinished) and event.tool_id in self.rows:
            row = self.rows[event.tool_id]
            row.state, row.elapsed = event.state, event.duration
            row.note = event.message if event.ok else event.error or ""
            if not self.out.is_terminal:
                self._print(row)

    def _print(self, row: _Row) -> None:
        """Print the line of a call that has ended. Calls skipped for one reason share a line."""
        if self.skipped and (row.state != "skipped" or row.note != self.skipped[0].note):
            self._print_skipped()
        if row.state == "skipped":
            self.skipped.append(row)
        else:
            self.out.print(self._line(row))

    def _print_skipped(self) -> None:
        rows, self.skipped = self.skipped, []
        if len(rows) == 1:
            self.out.print(self._line(rows[0]))
        elif rows:
            mark, style = _MARKS["skipped"]
            named = _named([row.tool_id for row in rows])
            self.out.print(styled((f"{mark} ", style), (named, "bold"), (f"  {rows[0].note}", "")))

    def _log(self, row: _Row, event: Log) -> None:
        progress = (event.fields or {}).get("progress")
        if isinstance(progress, int | float) and not isinstance(progress, bool):
            row.progress = min(1.0, max(0.0, float(progress)))
        row.note = event.message

    def _line(self, row: _Row) -> RenderableType:
        mark, style = _MARKS[row.state]
        tries = f" ×{row.attempt}" if row.attempt > 1 else ""
        time_text = f"  {row.elapsed * 1000:.0f} ms" if row.elapsed else ""
        return styled(
            (f"{mark} ", style),
            (row.tool_id, "bold"),
            (f"  {row.tool}{tries}{time_text}  ", "dim"),
            (row.note, ""),
        )

    def _draw(self) -> RenderableType:
        table = Table.grid(padding=(0, 1))
        for row in self._in_view():
            bar: RenderableType = ""
            if row.state == "running":
                row.elapsed = time.monotonic() - row.started
                total = None if row.progress is None else 1.0
                bar = ProgressBar(total=total, completed=row.progress or 0.0, width=20, pulse=total is None)
            table.add_row(self._line(row), bar)
        if len(self.rows) <= self._room:
            return Group(table)
        counts = Counter(row.state for row in self.rows.values())
        told = ", ".join(f"{count:,} {state}" for state, count in counts.items())
        return Group(table, styled((f"{len(self.rows):,} calls: {told}", "dim")))

    @property
    def _room(self) -> int:
        return max(1, self.out.height - 2)

    def _in_view(self) -> Sequence[_Row]:
        """The rows that fit the terminal: of a long plan those that run."""
        rows = list(self.rows.values())
        if len(rows) <= self._room:
            return rows
        return [row for row in rows if row.state == "running"][: self._room - 1]

    def conclude(self, result: ExecutionResult, session: Session) -> None:
        if self.out.is_terminal:
            for row in self.rows.values():
                self._print(row)
            self._print_skipped()
        verdict = (
            ("✓ the plan succeeded", "bold green") if result.success else ("✗ the plan failed", "bold red")
        )
        self.out.print(styled(verdict, (f"  {result.execution_time:.0f} ms", "dim")))
        self._explain(result)
        for one in result.tool_results:
            for suggestion in unsaid(one):
                self.out.print(styled((f"  {one.tool_id} → ", "dim"), (suggestion, "")))
        if session.state:
            self.out.print(styled(("state ", "cyan"), (msgspec.json.encode(session.snapshot()).decode(), "")))

    def _explain(self, result: ExecutionResult) -> None:
        """Print why calls ended, where their lines could not say it: a call cut short knows only that it was."""
        reasons: dict[str, list[str]] = {}
        for one in result.tool_results:
            if one.error and one.error != self.rows[one.tool_id].note:
                reasons.setdefault(one.error, []).append(one.tool_id)
        for reason, calls in reasons.items():
            self.out.print(styled((f"  {_named(calls)} → ", "dim"), (reason, "")))


def _named(calls: Sequence[str]) -> str:
    more = f" and {len(calls) - _NAMED:,} more" if len(calls) > _NAMED else ""
    return ", ".join(calls[:_NAMED]) + more
