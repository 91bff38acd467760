"""Failures as data: each way a call can end, as a `ToolResult`. `records` has what is written down of them."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from narratoria.errors import (
    CANCELLED,
    EFFECT_FAILED,
    EXECUTION_FAILED,
    INVALID_ARGUMENTS,
    PRECONDITION_FAILED,
    TIMEOUT,
    TOOL_NOT_FOUND,
    ArgumentsInvalid,
    DeadlineExceededError,
    PromptEvaluationError,
    ToolFailure,
    ToolValidationError,
    VisibilityExpansionRequired,
    describe,
)
from narratoria.run.handlers import TimeIsUp
from narratoria.state import StateMovedOn
from narratoria.tools import contract
from narratoria.tools.tool import Tool, ToolError, ToolResult
from narratoria.tools.value_types import mismatch
from narratoria.unicode_text import check_text, legible

if TYPE_CHECKING:
    from narratoria.session import Draft, Session

# --- failures as data --------------------------------------------------------------------------------------


def failure(
    code: str, message: str, *, recoverable: bool | None = None, suggestions: tuple[str, ...] = ()
) -> ToolResult[Any]:
    if recoverable is None:
        recoverable = code not in (TOOL_NOT_FOUND, INVALID_ARGUMENTS)
    message = legible(message)
    error = ToolError(
        code=code,
        message=message,
        recoverable=recoverable,
        suggestions=tuple(map(legible, suggestions)),
        source="runtime",
    )
    return ToolResult(message, None, False, False, error)


class Dropped(ToolResult[Any], frozen=True):
    """A failed attempt whose draft still has assets; they are kept if no other attempt follows."""

    draft: Draft | None = None


def dropped(result: ToolResult[Any], draft: Draft) -> ToolResult[Any]:
    if not draft.operations:
        return result
    return Dropped(result.message, result.value, False, False, result.failure, None, draft)


def keep_assets(result: ToolResult[Any], call_id: str) -> None:
    """Keep the assets of a call that has failed for good; only its patches are dropped."""
    if isinstance(result, Dropped) and result.draft is not None:
        result.draft.keep(call_id)


def note_failed_effect(result: ToolResult[Any], session: Session | Draft) -> None:
    """Note in the calls around a failed one that an effect of it failed."""
    error = result.failure
    if error is None or error.verdict != EFFECT_FAILED or session is session.root:
        return
    draft: Any = session
    for one in (draft, *draft.enclosing):
        one.effect_failed = error


def after_failed_effect(result: ToolResult[Any], draft: Draft) -> ToolResult[Any]:
    """Return a failure as that of an effect within the call, if there was one. That handler has done its work, also if
    the call went on: no general retry policy may run it again.
    """
    effect, error = draft.effect_failed, result.failure
    if effect is None or error is None or error.verdict == EFFECT_FAILED:
        return result
    return ToolResult.failed(
        f"{result.message}; before that {effect.message}",
        code=effect.code,
        recoverable=effect.recoverable,
        suggestions=(*error.suggestions, *effect.suggestions),
        details=error.details,
        value=result.value,
        source=effect.source,
    )


def tool_name(given: Any) -> str:
    """Return the name that `execute` was given; raise `ToolValidationError` if it is neither a name nor a tool."""
    if not isinstance(given, str):
        raise ToolValidationError(
            f"execute takes a tool or its name there, not {type(given).__name__}; "
            f"arguments come second: execute(name, args)"
        )
    return given


def unknown_tool(name: str, known: Iterable[str]) -> ToolResult[Any]:
    known = list(known)
    near = difflib.get_close_matches(name[:64], known, n=3)
    hint = tuple(f"did you mean {one!r}?" for one in near) or (f"{len(known)} tools are registered",)
    return failure(TOOL_NOT_FOUND, f"no tool is named {name[:100]!r}", suggestions=hint)


def bad_arguments(tool: Tool[Any, Any], error: ArgumentsInvalid) -> ToolResult[Any]:
    return failure(INVALID_ARGUMENTS, f"{tool.name}: {error}", suggestions=error.problems)


def unmet_preconditions(tool: Tool[Any, Any], report: contract.PreconditionResult) -> ToolResult[Any]:
    unmet = "; ".join(one.reason for one in report.failures)
    return failure(
        PRECONDITION_FAILED,
        f"{tool.name}: preconditions not met: {unmet}",
        suggestions=tuple(report.suggestions),
    )


def cut_short(tool: Tool[Any, Any], error: BaseException) -> ToolResult[Any]:
    """Return the result that is journalled for a call that an exception passes through; the exception goes on to the
    caller.
    """
    why = "the call was cancelled" if isinstance(error, asyncio.CancelledError) else describe(error)
    return failure(CANCELLED, f"{tool.name}: {why}")


def checked(tool: Tool[Any, Any], returned: Any) -> ToolResult[Any]:
    """Return the handler's result, or a failure that names what it returned instead of a `ToolResult`."""
    # 002, "Handler Validation".
    if type(returned) is not ToolResult:
        raise TypeError(
            f"the handler must return a ToolResult, got {type(returned).__name__}; write ToolResult.ok(value, message)"
        )
    result = well_typed(returned)
    if not result.success:
        if result.failure is None:
            return ToolResult.failed(result.message, value=result.value)
        return result if tool.kind.made_of_tools else _as_its_own(result)
    expected = tool.result_type
    if result.value is None or expected is Any:
        return result
    wrong = mismatch(result.value, expected)
    if wrong is None:
        return result
    raise TypeError(f"the result's value must be {wrong}")


def well_typed(result: ToolResult[Any]) -> ToolResult[Any]:
    """Return the result with legible texts; raise TypeError for a field of a wrong type, which the struct lets pass
    and a journal could not be read with.
    """
    if type(result.success) is not bool:
        raise TypeError(f"the result's success must be True or False, got {type(result.success).__name__}")
    if not isinstance(result.message, str):
        raise TypeError(f"the result's message must be text, got {type(result.message).__name__}")
    message, error = legible(result.message), result.failure
    if error is None:
        return result if message is result.message else msgspec.structs.replace(result, message=message)
    if not isinstance(error, ToolError):
        raise TypeError(f"the result's failure must be a ToolError, got {type(error).__name__}")
    code = check_text(error.code, "the failure's code")
    if not isinstance(error.message, str):
        raise TypeError(f"the failure's message must be text, got {type(error.message).__name__}")
    if type(error.recoverable) is not bool:
        raise TypeError(
            f"the failure's recoverable must be True or False, got {type(error.recoverable).__name__}"
        )
    for one in error.suggestions:
        if not isinstance(one, str):
            raise TypeError(f"the failure's suggestions must be texts, got {type(one).__name__}")
    if error.source not in ("tool", "runtime"):
        raise TypeError(f"the failure's source must be 'tool' or 'runtime', got {error.source!r}")
    details = error.details
    if details is not None and not isinstance(details, dict):
        raise TypeError(f"the failure's details must be a dict, got {type(details).__name__}")
    if details and "stderr" in details:
        details = details | {"stderr": check_text(details["stderr"], "the failure's details['stderr']")}
    told = tuple(map(legible, error.suggestions))
    failed = msgspec.structs.replace(
        error, code=code, message=legible(error.message), suggestions=told, details=details
    )
    return msgspec.structs.replace(result, message=message, failure=failed)


def _as_its_own(result: ToolResult[Any]) -> ToolResult[Any]:
    """Return a failure as the handler's own, also if it passes on the failure of an inner call.

    A failed effect stays one: the inner handler has done its work, and must not be run again with the outer one.
    """
    error = result.failure
    if error is None or error.source == "tool" or error.code == EFFECT_FAILED:
        return result
    return msgspec.structs.replace(result, failure=msgspec.structs.replace(error, source="tool"))


def as_result(tool: Tool[Any, Any], error: BaseException, timeout: float | None) -> ToolResult[Any]:
    """Return an exception as a failed result; raise it again if it ends the evaluation."""
    # 002, "Exception Handling": the failure table.
    name = tool.name
    if isinstance(error, VisibilityExpansionRequired | PromptEvaluationError):
        raise error
    if isinstance(error, DeadlineExceededError):
        raise PromptEvaluationError(f"{name}: {error}") from error
    if isinstance(error, ToolFailure):
        failed: ToolResult[Any] = ToolResult.failed(
            error.message,
            code=error.code,
            recoverable=error.recoverable,
            suggestions=error.suggestions,
            details=error.details,
            source=error.source,
        )
        try:
            return well_typed(failed)
        except (TypeError, ValueError) as wrong:
            return failure(EXECUTION_FAILED, f"{name}: {wrong}; it was raised with {describe(error)}")
    if isinstance(error, ToolValidationError):
        return failure(INVALID_ARGUMENTS, f"{name}: {error}", recoverable=True)
    if isinstance(error, contract.EffectFailed | StateMovedOn):
        return failure(EFFECT_FAILED, f"{name}: {error}")
    if isinstance(error, TimeIsUp) and timeout is not None:
        return failure(TIMEOUT, f"{name}: no result within {timeout:g} s", suggestions=("allow more time",))
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise error
        return ToolResult.failed(f"{name}: the handler cancelled itself", code=CANCELLED)
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, TypeError):
        return failure(
            EXECUTION_FAILED, f"{name}: {describe(error)}; check the handler's signature and what it returns"
        )
    return failure(EXECUTION_FAILED, f"{name}: {describe(error)}")
