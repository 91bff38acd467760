"""The entries of an execution trace (000 §13.5): what became of each call of a plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from narratoria.errors import TIMEOUT
from narratoria.events import JsonObject, StatePatch, ToolEvent
from narratoria.run.executor import Call
from narratoria.run.outcomes import writable
from narratoria.run.plan import CallResult, CallState
from narratoria.state import merge_into
from narratoria.tools.tool import ToolResult


def call_result(tool_id: str, result: ToolResult[Any], record: Call, elapsed: float) -> CallResult:
    """The entry of a call that the pipeline has concluded."""
    error = result.failure
    state: CallState = (
        "completed" if result.success else "timeout" if error and error.verdict == TIMEOUT else "failed"
    )
    return CallResult(
        tool_id=tool_id,
        ok=result.success,
        state=state,
        output=output_of(record.committed, result.value) if result.success else {},
        execution_time=round(elapsed * 1000, 3),
        retry_count=record.retries,
        error=error.message if error else None,
        error_code=error.code if error else None,
        error_source=error.source if error else None,
        suggestions=list(error.suggestions) if error else [],
        events=record.events,
    )


def output_of(events: Sequence[ToolEvent], value: Any) -> JsonObject:
    """A call's output: its patches merged; the returned value of a tool that only returned one."""
    output: JsonObject = {}
    for event in events:
        if type(event) is StatePatch:
            merge_into(output, event.patch)
    if output or value is None:
        return output
    dumped = writable(value)
    return dumped if isinstance(dumped, dict) else {"value": dumped}


def cut_short(
    tool_id: str, record: Call, started: float, state: CallState, code: str, reason: str
) -> CallResult:
    """The entry of a call that was running when its plan ended: what it had said by then is part of the trace."""
    return CallResult(
        tool_id=tool_id,
        ok=False,
        state=state,
        execution_time=round((time.perf_counter() - started) * 1000, 3),
        retry_count=record.retries,
        error=reason,
        error_code=code,
        error_source="runtime",
        events=record.events,
    )


def not_run(
    tool_id: str, state: CallState, code: str, reason: str, suggestions: list[str], before: CallResult | None
) -> CallResult:
    """The entry of a call that was not run, this time; `before` is what became of it in the plan's last execution."""
    return CallResult(
        tool_id=tool_id,
        ok=False,
        state=state,
        execution_time=before.execution_time if before else 0.0,
        retry_count=before.retry_count if before else 0,
        error=reason,
        error_code=code,
        error_source="runtime",
        suggestions=suggestions,
        events=before.events if before else [],
    )


def go_on(record: Call, before: CallResult, attempts: int, started: float) -> float:
    """Let a call that failed in the plan's last execution go on where it stopped: what it said, how often it was tried
    and how long that took count for the whole of it. Returns when it would have begun."""
    record.events = list(before.events)
    record.attempts = attempts
    record.first_attempt = attempts + 1
    return started - before.execution_time / 1000
