"""A call's ending in its three forms, mapped here and nowhere else.

The pipeline ends a call with a `ToolResult`; the journal keeps a `CallFinished` (seconds); a plan's trace and the wire
have a `CallResult` (milliseconds). `recorded_result` reads the record of an earlier process back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import CANCELLED, TIMEOUT, ToolValidationError
from narratoria.events import (
    CallFinished,
    CallRetrying,
    CallStarted,
    Done,
    EffectApplied,
    JsonObject,
    Notice,
    StatePatch,
    ToolEvent,
)
from narratoria.run.not_json import NotJson
from narratoria.run.plan import CallResult, CallState, ExecutionResult
from narratoria.session import Draft, Session
from narratoria.session.attempt_note import MOST_STDERR, AttemptNote
from narratoria.state import merge_into
from narratoria.tools import contract
from narratoria.tools.schema import dump
from narratoria.tools.schema.copying import copied
from narratoria.tools.tool import Tool, ToolContext, ToolError, ToolResult

if TYPE_CHECKING:
    from narratoria.run.call_record import Call


def state_of(result: ToolResult[Any]) -> CallState:
    """The state of a call that has ended, by the runtime's own verdict."""
    if result.success:
        return "completed"
    error = result.failure
    return "timeout" if error is not None and error.verdict == TIMEOUT else "failed"


# --- for the trace -------------------------------------------------------------------------------------------


def call_result(tool_id: str, result: ToolResult[Any], record: Call, elapsed: float) -> CallResult:
    """Return the entry of a call that the pipeline has concluded."""
    error = result.failure
    return CallResult(
        tool_id=tool_id,
        ok=result.success,
        state=state_of(result),
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
    """Return a call's output: its patches merged; the returned value of a tool that only returned one."""
    output: JsonObject = {}
    for event in events:
        if type(event) is StatePatch:
            merge_into(output, event.patch)
    if output or value is None:
        return copied(output)  # type: ignore[no-any-return]  # lists of a patch are in the state too
    dumped = writable(value)
    return dumped if isinstance(dumped, dict) else {"value": dumped}


def cut_short(
    tool_id: str, record: Call, started: float, state: CallState, code: str, reason: str
) -> CallResult:
    """Return the entry of a call that was running when its plan ended, with its events so far."""
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
    """Return the entry of a call that was not run this time; `before` is its result in the plan's last execution."""
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


def committed_result(tool_id: str, events: list[ToolEvent], committed: Sequence[ToolEvent]) -> CallResult:
    """Return the entry of a call whose process was killed between its commit and the record of its end."""
    return CallResult(
        tool_id=tool_id, ok=True, state="completed", output=output_of(committed, None), events=events
    )


def interrupted_result(tool_id: str, events: list[ToolEvent], attempts: int, elapsed: float) -> CallResult:
    """Return the entry of a call that was running when its process was killed, after so many attempts had failed. It
    goes on with the next one.
    """
    return CallResult(
        tool_id=tool_id,
        ok=False,
        state="failed",
        execution_time=round(elapsed * 1000, 3),
        retry_count=max(0, attempts - 1),
        error="it was interrupted",
        error_code=CANCELLED,
        error_source="runtime",
        events=events,
    )


def go_on(record: Call, before: CallResult, attempts: int, started: float) -> float:
    """Let a call that failed in the plan's last execution, or was interrupted in it, go on where it stopped: its
    events, attempts and duration count for the whole. Return the time at which it would have begun.
    """
    record.events = list(before.events)
    record.attempts = attempts
    record.first_attempt = attempts + 1
    return started - before.execution_time / 1000


def recorded_result(
    tool_id: str, end: CallFinished, events: list[ToolEvent], committed: Sequence[ToolEvent]
) -> CallResult:
    """Return the entry of a call that an earlier process concluded, from its record."""
    return CallResult(
        tool_id=tool_id,
        ok=end.ok,
        state=end.state,
        output=output_of(committed, end.value) if end.ok else {},
        execution_time=round(end.duration * 1000, 3),
        retry_count=max(0, end.attempts - 1),
        error=end.error,
        error_code=end.error_code,
        error_source=None if end.ok else end.error_source,
        suggestions=end.suggestions,
        events=events,
    )


# --- for the journal -----------------------------------------------------------------------------------------


def writable(value: Any) -> Any:
    """The value as JSON data, or a `NotJson` in its place."""
    try:
        return dump(value)
    except ToolValidationError:
        return NotJson(value)


def effect_applied(tool: Tool[Any, Any], context: ToolContext, one: contract.AppliedEffect) -> EffectApplied:
    """Return the record that a later undo needs to take an outside effect back."""
    return EffectApplied(
        tool=tool.name,
        call=context.call_id,
        effect=one.index,
        description=one.effect.description,
        reversible=one.effect.reversible,
        receipt=dump(one.receipt),
    )


_NOTHING: Final = AttemptNote()


def call_retrying(
    root: Session, call_id: str, attempt: int, delay: float, error: ToolError, started: float
) -> CallRetrying:
    """Return the record of an attempt that another follows. `started` is when the first of them began."""
    note = root.attempt_notes.pop(call_id, _NOTHING)
    began = started if note.began is None else note.began
    return CallRetrying(
        call=call_id,
        attempt=attempt,
        delay=delay,
        error_code=error.code,
        error=error.message,
        duration=round(time.perf_counter() - began, 6),
        exit_code=note.exit_code,
        signal=note.signal,
        stderr=note.stderr[-MOST_STDERR:] or None,
    )


def call_started(
    tool: Tool[Any, Any],
    call_id: str,
    attempt: int,
    args: Mapping[str, Any],
    call: Call | None,
    within: Session | Draft,
) -> CallStarted:
    """Return the record of an attempt that begins."""
    return CallStarted(
        call=call_id,
        tool=tool.name,
        attempt=attempt,
        tool_id=call.tool_id if call else None,
        plan=call.plan_id if call else None,
        parent=within.caller if isinstance(within, Draft) else None,
        cascade=(isinstance(within, Draft) and within.cascading)
        or bool(call and call.inside and call.cascade),
        input=dict(args),
    )


def call_finished(
    session: Session | Draft, tool: Tool[Any, Any] | None, result: ToolResult[Any], tool_id: str | None
) -> CallFinished:
    """Return the journal's last record of a call; a value it cannot keep is also reported as a notice."""
    meta, error = result.metadata, result.failure
    assert meta is not None  # noqa: S101 - the pipeline has just made it
    value = None
    if tool is None or not tool.kind.returns_its_patches:
        value = writable(result.value)
        if type(value) is NotJson:
            session.root.notice(Notice(level="warn", message=f"{meta.tool_name}: {value.explanation}"))
    notes = session.root.attempt_notes
    note = notes.get(meta.call_id, _NOTHING) if notes else _NOTHING
    return CallFinished(
        call=meta.call_id,
        tool=meta.tool_name,
        ok=result.success,
        state=state_of(result),
        attempts=meta.attempts,
        duration=round(meta.duration, 6),
        tool_id=tool_id,
        message=result.message,
        value=value,
        error_code=error.code if error else None,
        error=error.message if error else None,
        error_source=error.source if error else "runtime",
        recoverable=error.recoverable if error else True,
        suggestions=list(error.suggestions) if error else [],
        stderr=(error.details or {}).get("stderr") if error else note.stderr[-MOST_STDERR:] or None,
        part=session.depth > 0,
        last_duration=0.0 if note.began is None else round(time.perf_counter() - note.began, 6),
        exit_code=note.exit_code,
        signal=note.signal,
        operation=note.operation,
        sent=note.sent,
        sent_state=note.sent_state,
        sandbox=note.sandbox,
    )


def failure_summary(trace: ExecutionResult | None) -> str:
    """The summary of a call that failed: a `done` with `ok: false` is written for the player."""
    for result in trace.tool_results if trace is not None else ():
        for event in () if result.ok else result.events:
            if isinstance(event, Done) and not event.ok and event.summary:
                return " ".join(event.summary.split())
    return ""
