"""The pipeline: the only way any tool of any kind ever runs.

1 lookup · 2 arguments · 3 deadline and budget · 4 preconditions · 5 context · 6 attempts, each with a draft of its
own · 7 effects · 8 telemetry · 9 the result. Failures come back as data; only what ends or redirects a whole
evaluation is raised (002, "Exception Handling").
"""

from __future__ import annotations

import asyncio
import sys
import time
import types
from collections.abc import Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from narratoria import contract
from narratoria.errors import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    EFFECT_FAILED,
    EXECUTION_FAILED,
    INVALID_ARGUMENTS,
    PRECONDITION_FAILED,
    TIMEOUT,
    TOOL_NOT_FOUND,
    ArgumentsInvalid,
    BudgetExceededError,
    DeadlineExceededError,
    PromptEvaluationError,
    ToolFailure,
    ToolValidationError,
    VisibilityExpansionRequired,
)
from narratoria.events import CallFinished, CallRetrying, CallStarted, EffectApplied, JsonObject, ToolEvent
from narratoria.registry import ToolRegistry
from narratoria.retry import RetryPolicy, pause
from narratoria.schema import dump
from narratoria.session import Draft, Session, ToolInvoked
from narratoria.threads import run_in_thread
from narratoria.tool import CallScope, ResultMetadata, Tool, ToolContext, ToolError, ToolResult

MAX_DEPTH: Final = 16
_SCOPE: Final = CallScope()
_OPENTELEMETRY: Final = "opentelemetry.trace"
_BACKSTOP: Final = 10.0  # how much longer than its limit a handler that ends itself may take to clean up


@dataclass(slots=True)
class Call:
    """How a call is to be run, where it differs from the tool's own wishes, and what is learned from it."""

    call_id: str | None = None
    tool_id: str | None = None
    plan_id: str | None = None
    policy: RetryPolicy | None = None
    timeout: float | None = None
    dependencies: JsonObject | None = None
    first_attempt: int = 1
    events: list[ToolEvent] = field(default_factory=list)
    committed: list[ToolEvent] = field(default_factory=list)  # those of the attempt that succeeded
    attempts: int = 0


class ToolExecutor:
    """Runs the tools of a registry against sessions."""

    def __init__(
        self, registry: ToolRegistry, *, scope: CallScope = _SCOPE, max_depth: int = MAX_DEPTH
    ) -> None:
        self.registry = registry
        self._tools = registry.tools
        self.scope = scope
        self.max_depth = max_depth
        self._bounded = scope.deadline is not None or scope.budget_tracker is not None

    async def execute(
        self,
        name: str | Tool[Any, Any],
        args: Mapping[str, Any],
        *,
        session: Session | Draft | None = None,
        call: Call | None = None,
    ) -> ToolResult[Any]:
        """Run one tool, by name or itself. Inside a handler, pass `context.session`: the call becomes part of that transaction."""
        started = time.perf_counter()
        if session is None:
            session = Session()
        root = session.root
        root.calls += 1
        call_id = call.call_id if call is not None and call.call_id else f"{root.id}:{root.calls}"
        tool = name if type(name) is not str else self._tools.get(name) or self.registry.get(name)
        if not isinstance(tool, Tool):
            return self._refused(session, _unknown(self.registry, str(name)), str(name), call_id, call, started)
        try:
            params = tool.parse(args)
        except ArgumentsInvalid as error:
            refusal = _failure(INVALID_ARGUMENTS, f"{tool.name}: {error}", suggestions=error.problems)
            return self._refused(session, refusal, tool.name, call_id, call, started)
        if self._bounded or session.depth:
            stop = self._bounds(tool, session)
            if stop is not None:
                return self._refused(session, stop, tool.name, call_id, call, started)
        degraded: tuple[str, ...] = ()
        if tool.preconditions:
            root.has_tool = self.registry.has
            report = await contract.validate(
                tool, ToolContext(tool, Draft.of(session), call_id, self, self.scope)
            )
            if not report.can_proceed:
                refusal = _precondition_failure(tool, report)
                return self._refused(session, refusal, tool.name, call_id, call, started)
            degraded = report.suggestions
        span = _start_span(tool.name, call_id) if _OPENTELEMETRY in sys.modules else None
        attempt = call.first_attempt if call is not None else 1
        policy = tool.retry if call is None or call.policy is None else call.policy
        try:
            while True:
                if root.recording:
                    root.record(_call_started(tool, call_id, attempt, args, session, call))
                result = await self._attempt(tool, params, session, call_id, call)
                if result.success:
                    break
                failure = result.failure
                if failure is None or not policy.max_retries or not policy.allows(failure, attempt - 1):
                    break
                delay = policy.backoff.delay(attempt)
                if root.recording:
                    root.record(
                        CallRetrying(
                            call=call_id,
                            attempt=attempt,
                            delay=delay,
                            error_code=failure.code,
                            error=failure.message,
                        )
                    )
                await pause(delay)
                attempt += 1
        except BaseException as error:
            ended = _failure(
                CANCELLED, f"{tool.name}: {type(error).__name__}: {error or 'the call was cancelled'}"
            )
            self._conclude(session, ended, tool.name, call_id, call, started, attempt, (), params, span)
            raise
        return self._conclude(
            session, result, tool.name, call_id, call, started, attempt, degraded, params, span
        )

    def _bounds(self, tool: Tool[Any, Any], session: Session | Draft) -> ToolResult[Any] | None:
        """Step 3. Nesting counts as a bound too: a tool that calls itself must end somewhere."""
        scope = self.scope
        try:
            if scope.deadline is not None:
                scope.deadline.check(tool.name)
            if scope.budget_tracker is not None:
                scope.budget_tracker.admit()
        except (DeadlineExceededError, BudgetExceededError) as error:
            return _failure(DEADLINE_EXCEEDED, f"{tool.name}: {error}", recoverable=False)
        if session.depth >= self.max_depth:
            return _failure(
                EXECUTION_FAILED,
                f"{tool.name}: calls are nested {session.depth} deep; the limit is {self.max_depth}. "
                f"Does a tool or a cascade trigger itself?",
                recoverable=False,
            )
        return None

    async def _attempt(
        self, tool: Tool[Any, Any], params: Any, session: Session | Draft, call_id: str, call: Call | None
    ) -> ToolResult[Any]:
        """Steps 5 to 7 once: a draft, the handler under its timeout, effects, and commit or discard."""
        root = session.root
        draft = Draft(session, root, session.depth + 1)
        timeout = tool.timeout if call is None or call.timeout is None else call.timeout
        if self._bounded and self.scope.deadline is not None:
            timeout = self.scope.deadline.within(timeout)
        dependencies = None if call is None else call.dependencies
        context = ToolContext(tool, draft, call_id, self, self.scope, timeout, dependencies)
        if tool.ends_itself and timeout is not None:
            timeout += _BACKSTOP
        try:
            if tool.is_async:
                running = tool.handler(params, context=context)
                try:
                    waiting = running.send(None)  # type: ignore[union-attr]  # is_async: it is a coroutine
                except StopIteration as finished:
                    result = finished.value
                else:
                    result = await _finish(running, waiting, timeout)  # type: ignore[arg-type]
            elif tool.inline:
                result = tool.handler(params, context=context)
            else:
                draft.loop = asyncio.get_running_loop()
                async with asyncio.timeout(timeout):
                    result = await run_in_thread(tool.handler, params, context)
                draft.loop = None
            if (
                type(result) is not ToolResult
                or not result.success
                or type(result.value) is not tool.result_type
            ):
                result = _checked(tool, result)
            if result.success:
                if tool.effects:
                    await self._apply_effects(tool, params, context, result)
                draft.commit(call_id)
                root.completed_tools.add(tool.name)
                if call is not None:
                    call.committed = draft.events
            else:
                await self.drop(draft)
        except BaseException as error:
            context.cancelled = True
            draft.loop = None
            await self.drop(draft)
            result = _as_result(tool, error, timeout)
        if call is not None:
            call.events.extend(draft.events)
            call.attempts += 1
        return result

    async def drop(self, draft: Draft) -> None:
        """Leave nothing of a failed attempt: take back what reached outside, newest first, and discard the rest."""
        for applied, context in reversed(draft.applied):
            await asyncio.shield(contract.rollback_effects(applied, context))
        draft.discard()

    async def _apply_effects(
        self, tool: Tool[Any, Any], params: Any, context: ToolContext, result: ToolResult[Any]
    ) -> None:
        async def cascade(name: str, args: JsonObject) -> ToolResult[Any]:
            return await self.execute(name, args, session=context.session)

        applied = await contract.apply_effects(tool.effects, context, result, params, cascade)
        for one in applied:
            if one.effect.reaches_outside:
                context.session.effects.append(
                    EffectApplied(
                        tool=tool.name,
                        call=context.call_id,
                        effect=one.index,
                        description=one.effect.description,
                        reversible=one.effect.reversible,
                        receipt=dump(one.receipt),
                    )
                )
        context.session.applied.append((applied, context))

    def _refused(
        self,
        session: Session | Draft,
        result: ToolResult[Any],
        name: str,
        call_id: str,
        call: Call | None,
        started: float,
    ) -> ToolResult[Any]:
        """A call that never ran still leaves its trace."""
        return self._conclude(session, result, name, call_id, call, started, 1, (), None, None)

    def _conclude(
        self,
        session: Session | Draft,
        result: ToolResult[Any],
        name: str,
        call_id: str,
        call: Call | None,
        started: float,
        attempts: int,
        degraded: tuple[str, ...],
        params: Any,
        span: Any,
    ) -> ToolResult[Any]:
        """Steps 8 and 9."""
        root = session.root
        duration = time.perf_counter() - started
        message = result.message
        if degraded and result.success:
            message = f"{message} (degraded: {'; '.join(degraded)})"
        final: ToolResult[Any] = ToolResult(
            message,
            result.value,
            result.success,
            result.exclude_value_from_context,
            result.failure,
            ResultMetadata(duration, time.time(), name, attempts, call_id, degraded),
        )
        if root.recording:
            root.record(_call_finished(final, name, call_id, call, duration, attempts))
        if root.dispatcher.heard:
            root.dispatcher.publish(ToolInvoked(name, call_id, root.id, params, final, duration, attempts))
        if root.beats:
            root.beats.pop(call_id, None)
        if span is not None:
            _end_span(span, final)
        return final


# --- running a coroutine that has already begun -----------------------------------------------------------


async def _finish(running: Coroutine[Any, Any, Any], waiting: Any, timeout: float | None) -> Any:
    """Await the rest of a handler that did not finish in its first step.

    Most handlers never wait, and those pay nothing for their timeout: a timer is armed only here.
    """
    if timeout is None:
        return await _resume(running, waiting)
    async with asyncio.timeout(timeout):
        return await _resume(running, waiting)


@types.coroutine
def _resume(running: Coroutine[Any, Any, Any], waiting: Any) -> Generator[Any, Any, Any]:
    """`yield from running`, for a coroutine whose first awaitable was already taken out of it (PEP 380)."""
    while True:
        try:
            sent = yield waiting
        except GeneratorExit:
            running.close()
            raise
        except BaseException as error:
            try:
                waiting = running.throw(error)
            except StopIteration as finished:
                return finished.value
        else:
            try:
                waiting = running.send(sent)
            except StopIteration as finished:
                return finished.value


# --- failures as data -------------------------------------------------------------------------------------


def _failure(
    code: str, message: str, *, recoverable: bool | None = None, suggestions: tuple[str, ...] = ()
) -> ToolResult[Any]:
    if recoverable is None:
        recoverable = code not in (TOOL_NOT_FOUND, INVALID_ARGUMENTS)
    error = ToolError(code=code, message=message, recoverable=recoverable, suggestions=suggestions)
    return ToolResult(message, None, False, False, error)


def _unknown(registry: ToolRegistry, name: str) -> ToolResult[Any]:
    import difflib

    known = [one.name for one in registry.list()]
    near = difflib.get_close_matches(str(name)[:64], known, n=3)
    hint = tuple(f"did you mean {one!r}?" for one in near) or (f"{len(known)} tools are registered",)
    return _failure(TOOL_NOT_FOUND, f"no tool is named {str(name)[:100]!r}", suggestions=hint)


def _precondition_failure(tool: Tool[Any, Any], report: contract.PreconditionResult) -> ToolResult[Any]:
    unmet = [one.reason for one in report.failures]
    return _failure(
        PRECONDITION_FAILED,
        f"{tool.name}: preconditions not met: {'; '.join(unmet)}",
        suggestions=tuple(report.suggestions),
    )


def _checked(tool: Tool[Any, Any], result: Any) -> ToolResult[Any]:
    """002: a handler that returns something else fails with a message that says so."""
    if type(result) is not ToolResult:
        raise TypeError(f"the handler must return a ToolResult, got {type(result).__name__}")
    if not result.success:
        if result.failure is None:
            return ToolResult.failed(result.message, value=result.value)
        return result
    expected = tool.result_type
    if expected is not Any and isinstance(expected, type) and result.value is not None:
        if not isinstance(result.value, expected):
            raise TypeError(
                f"the result's value must be {expected.__name__}, got {type(result.value).__name__}"
            )
    return result


def _as_result(tool: Tool[Any, Any], error: BaseException, timeout: float | None) -> ToolResult[Any]:
    """The failure table of 002. What it wraps becomes a result; what ends an evaluation is raised."""
    name = tool.name
    if isinstance(error, VisibilityExpansionRequired | PromptEvaluationError):
        raise error
    if isinstance(error, DeadlineExceededError):
        raise PromptEvaluationError(f"{name}: {error}") from error
    if isinstance(error, ToolFailure):
        return ToolResult.failed(
            error.message,
            code=error.code,
            recoverable=error.recoverable,
            suggestions=error.suggestions,
            details=error.details,
        )
    if isinstance(error, ToolValidationError):
        return _failure(INVALID_ARGUMENTS, f"{name}: {error}", recoverable=True)
    if isinstance(error, contract.EffectFailed):
        return _failure(EFFECT_FAILED, f"{name}: {error}")
    if isinstance(error, TimeoutError):
        if timeout is not None:
            return _failure(
                TIMEOUT, f"{name}: no result within {timeout:g} s", suggestions=("allow more time",)
            )
        return _failure(EXECUTION_FAILED, f"{name}: TimeoutError: {error}")
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise error
        return _failure(CANCELLED, f"{name}: the handler cancelled itself")
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, TypeError):
        return _failure(
            EXECUTION_FAILED, f"{name}: TypeError: {error}; check the handler's signature and what it returns"
        )
    return _failure(EXECUTION_FAILED, f"{name}: {type(error).__name__}: {error}")


# --- records and telemetry --------------------------------------------------------------------------------


def _call_started(
    tool: Tool[Any, Any],
    call_id: str,
    attempt: int,
    args: Mapping[str, Any],
    session: Session | Draft,
    call: Call | None,
) -> CallStarted:
    return CallStarted(
        call=call_id,
        tool=tool.name,
        attempt=attempt,
        tool_id=call.tool_id if call else None,
        plan=call.plan_id if call else None,
        input=dict(args),
    )


def _call_finished(
    result: ToolResult[Any], name: str, call_id: str, call: Call | None, duration: float, attempts: int
) -> CallFinished:
    error = result.failure
    return CallFinished(
        call=call_id,
        tool=name,
        ok=result.success,
        state="completed" if result.success else "timeout" if error and error.code == TIMEOUT else "failed",
        attempts=attempts,
        duration=round(duration, 6),
        tool_id=call.tool_id if call else None,
        message=result.message,
        value=dump(result.value),
        error_code=error.code if error else None,
        error=error.message if error else None,
        recoverable=error.recoverable if error else True,
        suggestions=list(error.suggestions) if error else [],
        stderr=(error.details or {}).get("stderr") if error else None,
    )


def _start_span(name: str, call_id: str) -> Any:
    """An OpenTelemetry span; only where the host program has brought OpenTelemetry in."""
    trace = sys.modules[_OPENTELEMETRY]
    attributes = {"narratoria.tool": name, "narratoria.call": call_id}
    return trace.get_tracer("narratoria").start_span(f"tool {name}", attributes=attributes)


def _end_span(span: Any, result: ToolResult[Any]) -> None:
    span.set_attribute("narratoria.success", result.success)
    if result.failure is not None:
        span.set_attribute("narratoria.error", result.failure.code)
    span.end()


ToolRegistry.pipeline = ToolExecutor
