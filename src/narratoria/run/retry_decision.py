"""The decision whether a failed attempt is followed by another, and the wait before it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from narratoria import telemetry
from narratoria.errors import NODE_LOST
from narratoria.run import records
from narratoria.session.attempt_note import AttemptNote
from narratoria.telemetry.provider import live
from narratoria.tools.retry import ExponentialBackoff, RetryPolicy, may_have_acted, pause

if TYPE_CHECKING:
    from narratoria.run.call_record import Call
    from narratoria.session import Session
    from narratoria.tools.tool import Tool, ToolResult


ELSEWHERE: Final = RetryPolicy(2, ExponentialBackoff(0.2, max_delay=5.0, multiplier=2.0), general=True)
"""The retries of a call whose node was lost: it failed by no fault of the tool, and another node may run it."""


def _nobody_forbids(call: Call | None, policy: RetryPolicy) -> bool:
    """Tell if nobody has said for this very call how often it may be tried."""
    return call is None or call.policy is None or policy.general


async def may_retry(
    tool: Tool[Any, Any],
    result: ToolResult[Any],
    root: Session,
    call_id: str,
    call: Call | None,
    attempt: int,
    started: float,
) -> bool:
    """Tell if the failed call is tried again; if so, record that and wait as long as its policy says."""
    policy = tool.retry if call is None or call.policy is None else call.policy
    error = result.failure
    retries = attempt - (1 if call is None else call.first_attempt)
    if error is not None and error.verdict == NODE_LOST and _nobody_forbids(call, policy):
        policy = policy if policy.allows(error, retries) else ELSEWHERE
    if error is None or not policy.max_retries or not policy.allows(error, retries):
        return False
    if policy.general and may_have_acted(error) and not tool.repeatable:
        return False
    delay = policy.backoff.delay(retries + 1)
    if root.recording:
        root.record(records.call_retrying(root, call_id, attempt, delay, error, started))
    if live():
        telemetry.retried(tool.name, attempt, delay, error.code)
    await pause(delay)
    if root.recording:
        root.attempt_notes[call_id] = AttemptNote(began=perf_counter())
    return True
