"""Steps 3 and 4 of the pipeline: the deadline, the budget and the nesting of a call, its preconditions, and a
person's approval.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from narratoria.errors import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    EXECUTION_FAILED,
    BudgetExceededError,
    DeadlineExceededError,
)
from narratoria.run import outcomes
from narratoria.run.approval import approved
from narratoria.session import Draft
from narratoria.tools import contract
from narratoria.tools.tool import Tool, ToolResult

if TYPE_CHECKING:
    from narratoria.run.call_record import Call
    from narratoria.run.executor import ToolExecutor
    from narratoria.session import Session


async def admit(
    executor: ToolExecutor,
    tool: Tool[Any, Any],
    args: Mapping[str, Any],
    params: Any,
    session: Session | Draft,
    call_id: str,
    call: Call | None,
    started: float,
) -> tuple[ToolResult[Any] | None, Mapping[str, Any], Any, tuple[str, ...], float]:
    """Check the bounds and the preconditions of a call, and ask a person if somebody wants that.

    Return the failure that stops the call, or None; its arguments, which a person may have edited; the unmet optional
    preconditions; and when it started, as the wait for a person does not count.
    """
    degraded: tuple[str, ...] = ()
    refusal = _bounds(executor, tool, session) if executor.bounded or session.depth else None
    if refusal is None:
        refusal, degraded = await _meet(executor, tool, session, call_id)
    if refusal is None:
        asked = await approved(executor, tool, args, session, call_id, call)
        if asked is not None:
            started, refusal = perf_counter(), asked.refusal
            if refusal is None:
                args, params = asked.args, asked.params
                refusal, degraded = await _meet(executor, tool, session, call_id)
    return refusal, args, params, degraded, started


async def _meet(
    executor: ToolExecutor, tool: Tool[Any, Any], session: Session | Draft, call_id: str
) -> tuple[ToolResult[Any] | None, tuple[str, ...]]:
    """Check the preconditions. After a person was asked that is done again: much may have happened meanwhile."""
    if not tool.preconditions:
        return None, ()
    context = executor.context(tool, session, call_id)
    try:
        report = await contract.validate(tool, context)
    except BaseException as error:
        return outcomes.as_result(tool, error, None), ()
    finally:
        context.session.discard()  # checking changes nothing, and closes what it opened
    if not report.can_proceed:
        return outcomes.unmet_preconditions(tool, report), ()
    return None, report.suggestions


def _bounds(executor: ToolExecutor, tool: Tool[Any, Any], session: Session | Draft) -> ToolResult[Any] | None:
    """Check the bounds. Nesting is bounded too: a tool that calls itself must end somewhere. Nothing becomes part of a
    call that is over.
    """
    scope = executor.scope
    if isinstance(session, Draft) and session.over:
        return outcomes.failure(
            CANCELLED,
            f"{tool.name}: the call that asks for it is over, and would keep nothing of it; let the handler "
            f"await the tasks it starts",
            recoverable=False,
        )
    try:
        if scope.deadline is not None:
            scope.deadline.check(tool.name)
        if scope.budget_tracker is not None:
            scope.budget_tracker.admit()
    except (DeadlineExceededError, BudgetExceededError) as error:
        return outcomes.failure(DEADLINE_EXCEEDED, f"{tool.name}: {error}", recoverable=False)
    if session.depth >= executor.max_depth:
        return outcomes.failure(
            EXECUTION_FAILED,
            f"{tool.name}: calls are nested {session.depth} deep; the limit is {executor.max_depth}. "
            f"Does a tool or a cascade trigger itself?",
            recoverable=False,
        )
    return None
