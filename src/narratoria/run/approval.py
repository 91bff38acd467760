"""Approval before a call: which calls need it, and what comes of the answer.

A tool (`approval`), a planned call (`approval: true`) or a policy of the program asks for it. The question itself is
the session's: `session.approvals`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from narratoria.errors import INVALID_ARGUMENTS, REFUSED, ArgumentsInvalid, ToolValidationError
from narratoria.run import outcomes
from narratoria.run.middleware import ToolCall, own_arguments
from narratoria.session import Draft, Session
from narratoria.session.approvals import NOBODY
from narratoria.tools.cancellation import await_cancellable
from narratoria.tools.schema import dump
from narratoria.tools.tool import Tool, ToolResult

if TYPE_CHECKING:
    from narratoria.run.call_record import Call
    from narratoria.run.executor import ToolExecutor

Verdict = bool | str | None


class ApprovalPolicy(Protocol):
    """A function of the call, plain or async. True or a reason: a person must approve it; False: nobody is asked; None:
    the tool itself decides.
    """

    def __call__(self, call: ToolCall, /) -> Verdict | Awaitable[Verdict]: ...


def checked_policy(policy: ApprovalPolicy | None) -> ApprovalPolicy | None:
    """Refuse what is not callable when the registry is made, not at the first call."""
    if policy is not None and not callable(policy):
        raise ToolValidationError(
            f"approval is {type(policy).__name__}; it must be a function (call: ToolCall) -> bool | str | None"
        )
    return policy


@dataclass(slots=True)
class Asked:
    """The outcome of a question: the arguments to run with, or the refusal."""

    refusal: ToolResult[Any] | None = None
    args: Any = None
    params: Any = None


async def approved(
    executor: ToolExecutor,
    tool: Tool[Any, Any],
    args: Any,
    session: Session | Draft,
    call_id: str,
    call: Call | None,
) -> Asked | None:
    """Ask a person if the call needs that; None if it does not."""
    try:
        reason = await _reason(executor, tool, args, session, call_id, call)
        if reason is None:
            return None
        return await _ask(executor, tool, args, session, call_id, reason)
    except BaseException as error:  # of the policy, or of the approver
        return Asked(outcomes.as_result(tool, error, None))


async def _reason(
    executor: ToolExecutor,
    tool: Tool[Any, Any],
    args: Any,
    session: Session | Draft,
    call_id: str,
    call: Call | None,
) -> str | None:
    if call is not None and call.approval is False:
        return None
    if call is not None and call.approval:
        return "the plan asks for approval"
    verdict: Verdict = None
    if executor.approval is not None:
        draft = Draft.of(session)
        try:
            given = executor.approval(ToolCall(tool, own_arguments(args), draft, call_id))
            verdict = await await_cancellable(given) if inspect.isawaitable(given) else given
        finally:
            draft.discard()  # deciding changes nothing
        if verdict is not None and not isinstance(verdict, bool | str):
            raise TypeError(f"the approval policy must return True, False, a reason or None, got {verdict!r}")
    if verdict is None:
        return tool.asks(tool.approval)
    return (verdict if isinstance(verdict, str) else "the program asks for approval") if verdict else None


async def _ask(
    executor: ToolExecutor,
    tool: Tool[Any, Any],
    args: Any,
    session: Session | Draft,
    call_id: str,
    reason: str,
) -> Asked:
    approvals, scope = session.root.approvals, executor.scope
    if not approvals.available:
        return Asked(
            outcomes.failure(
                REFUSED,
                f"{tool.name}: a person must approve this call ({reason}), and there is nobody to ask; "
                f"set session.approvals.approver",
                recoverable=False,
            )
        )
    given: dict[str, Any] = own_arguments(args) if isinstance(args, Mapping) else dump(args)
    limits = [one for one in (scope.deadline, scope.budget_tracker) if one is not None]
    try:
        answer = await approvals.ask(tool, given, reason, call_id, session, limits, tool.parse)
        if answer.decision == "refused":
            why = f": {answer.reason}" if answer.reason else ""
            said = "not approved" if answer.by == NOBODY else "refused by a person"
            return Asked(outcomes.failure(REFUSED, f"{tool.name}: {said}{why}", recoverable=False))
        final = answer.input if answer.decision == "edited" and answer.input is not None else args
        return Asked(None, final, tool.parse(final))
    except ArgumentsInvalid as error:
        told = f"{tool.name}: the edited input: {error}"
        return Asked(outcomes.failure(INVALID_ARGUMENTS, told, suggestions=error.problems))
