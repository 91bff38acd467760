"""The pipeline: every call of every kind of tool runs through it.

1 lookup · 2 arguments · 3 deadline and budget · 4 preconditions · 5 context · 6 attempts, each with a draft of its
own · 7 effects · 8 telemetry · 9 the result. Failures come back as data; only an exception that ends or redirects a
whole evaluation is raised.

Most handlers never wait, and a call of such a handler is a single coroutine: `_attempt` carries it out in place, and
returns an awaitable only for the others.
"""
# 002, "Exception Handling".

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from sys import modules
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from narratoria.errors import ArgumentsInvalid
from narratoria.kinds.shares.exemption import exempted
from narratoria.run import handlers, outcomes, records
from narratoria.run.admission import admit
from narratoria.run.approval import ApprovalPolicy
from narratoria.run.attempt_rollback import drop
from narratoria.run.background_loop import run_sync
from narratoria.run.call_record import Call
from narratoria.run.call_span import execute_in_span
from narratoria.run.effect_application import apply_effects
from narratoria.run.middleware import Around, checked_around, execute_around
from narratoria.run.retry_decision import may_retry
from narratoria.session import Draft, Session, ToolInvoked
from narratoria.telemetry.provider import SDK, live
from narratoria.tools.tool import CallScope, ResultMetadata, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from narratoria.run.registry import ToolRegistry

P = TypeVar("P")
R = TypeVar("R")
AnyTool = Tool[Any, Any]
AnyResult = ToolResult[Any]

MAX_DEPTH: Final = 16  # of calls within calls
_SCOPE: Final = CallScope()


class ToolExecutor:
    """Runs the tools of a registry against sessions."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        scope: CallScope = _SCOPE,
        max_depth: int = MAX_DEPTH,
        around: Sequence[Around] | None = None,
        approval: ApprovalPolicy | None = None,
    ) -> None:
        self.registry = registry
        self.approval = approval or registry.approval
        self.around = registry.around if around is None else checked_around(around)
        self._tools = registry.tools
        self.scope = scope
        self.max_depth = max_depth
        self.bounded = scope.deadline is not None or scope.budget_tracker is not None
        self._guarded = self.bounded or self.approval is not None

    def has_tool(self, name: str) -> bool:
        """Tell if the registry has a tool of that name."""
        return self.registry.has(name)

    def context(
        self, tool: AnyTool, session: Session | Draft | None = None, call_id: str = ""
    ) -> ToolContext:
        """Return a context over a draft; without a `call_id`, one outside any call."""
        if session is None:
            session = Session()
        return ToolContext(tool, Draft.of(session), call_id, self, self.scope)

    @overload
    async def execute(
        self,
        name: Tool[P, R],
        args: P | Mapping[str, Any],
        *,
        session: Session | Draft | None = None,
        call: Call | None = None,
        in_span: bool = False,
    ) -> ToolResult[R]: ...
    @overload
    async def execute(
        self,
        name: str,
        args: Mapping[str, Any],
        *,
        session: Session | Draft | None = None,
        call: Call | None = None,
        in_span: bool = False,
    ) -> AnyResult: ...
    async def execute(
        self,
        name: str | AnyTool,
        args: Any,
        *,
        session: Session | Draft | None = None,
        call: Call | None = None,
        in_span: bool = False,
    ) -> AnyResult:
        """Run one tool, by name or itself, with an object of JSON data or an instance of its params type. Inside a
        handler, pass `context.session`: the call becomes part of that transaction.
        """
        # One long function on purpose, as is `_attempt`: what the common call does not need is elsewhere.
        started = perf_counter()
        if session is None:
            session = Session()
        if self.around or SDK in modules:
            wrapped = self._wrapped(name, args, session, call, in_span)
            if wrapped is not None:
                return await wrapped
        root = session.root
        root.calls = number = root.calls + 1
        if call is None:
            call_id, attempt, asking = f"{root.id}:{number}", 1, None
        else:
            call_id, attempt = call.call_id or f"{root.id}:{number}", call.first_attempt
            asking = call.approval
        tool = self._tools.get(name) if type(name) is str else None
        if tool is None:
            tool = self._found(name)
            if tool is None:
                result = outcomes.unknown_tool(str(name), self._tools)
                return self._conclude(session, result, None, str(name), call_id, call, started)
        try:
            params = tool.parse(args)
        except ArgumentsInvalid as error:
            try:
                args, params = handlers.parsed_instance(tool, args, error)
            except ArgumentsInvalid as refused:
                result = outcomes.bad_arguments(tool, refused)
                return self._conclude(session, result, tool, tool.name, call_id, call, started)
        degraded: tuple[str, ...] = ()
        try:
            if tool.guarded or self._guarded or session.depth or asking:
                admitted = await admit(self, tool, args, params, session, call_id, call, started)
                refusal, args, params, degraded, started = admitted
                if refusal is not None:
                    return self._conclude(session, refusal, tool, tool.name, call_id, call, started)
            ran = self._attempt(tool, args, params, session, call_id, call, attempt)
            result = ran if type(ran) is ToolResult else await ran  # type: ignore[misc]  # else it is awaitable
        except BaseException as error:
            ended = outcomes.cut_short(tool, error)
            self._conclude(session, ended, tool, tool.name, call_id, call, started, params, attempt)
            raise
        if not result.success:
            again = self._try_again(tool, args, params, session, call_id, call, attempt, started, result)
            result, params, attempt = await again
        return self._conclude(
            session, result, tool, tool.name, call_id, call, started, params, attempt, degraded
        )

    async def _try_again(
        self,
        tool: AnyTool,
        args: Mapping[str, Any],
        params: Any,
        session: Session | Draft,
        call_id: str,
        call: Call | None,
        attempt: int,
        started: float,
        result: AnyResult,
    ) -> tuple[AnyResult, Any, int]:
        """Make more attempts at a failed call as its policy allows; return the last result, its params and number."""
        try:
            while await may_retry(tool, result, session.root, call_id, call, attempt, started):
                attempt += 1
                params = handlers.parsed_again(tool, args, params)
                ran = self._attempt(tool, args, params, session, call_id, call, attempt)
                result = ran if type(ran) is ToolResult else await ran  # type: ignore[misc]
                if result.success:
                    return result, params, attempt
            outcomes.keep_assets(result, call_id)
            outcomes.note_failed_effect(result, session)
        except BaseException as error:
            ended = outcomes.cut_short(tool, error)
            self._conclude(session, ended, tool, tool.name, call_id, call, started, params, attempt)
            raise
        return result, params, attempt

    def _found(self, name: Any) -> AnyTool | None:
        return name if isinstance(name, Tool) else self.registry.get(outcomes.tool_name(name))

    @overload
    def execute_sync(
        self, name: Tool[P, R], args: P | Mapping[str, Any], *, session: Session | Draft | None = None
    ) -> ToolResult[R]: ...
    @overload
    def execute_sync(
        self, name: str, args: Mapping[str, Any], *, session: Session | Draft | None = None
    ) -> AnyResult: ...
    def execute_sync(self, name: Any, args: Any, *, session: Session | Draft | None = None) -> AnyResult:
        """Run one tool and wait for it: `execute` for programs without an event loop."""
        return run_sync(self.execute(name, args, session=session))

    def _wrapped(
        self, name: str | AnyTool, args: Any, session: Session | Draft, call: Call | None, in_span: bool
    ) -> Coroutine[Any, Any, AnyResult] | None:
        """Return the call inside a span or inside the middleware; None if it is in both, or needs neither."""
        if not in_span and live():
            return execute_in_span(self, name, args, session, call)
        if self.around and (call is None or not call.inside):
            return self._execute_around(name, args, session, call)
        return None

    async def _execute_around(
        self, name: str | AnyTool, args: Mapping[str, Any], session: Session | Draft, call: Call | None
    ) -> AnyResult:
        """Run one tool inside the middleware, and record what that returns."""
        started = perf_counter()
        call = call or Call()
        root = session.root
        if not call.call_id:
            call.call_id = f"{root.id}:{root.calls + 1}"
        tool = self._found(name)
        if tool is None:
            result = outcomes.unknown_tool(str(name), self._tools)
            return self._conclude(session, result, None, str(name), call.call_id, call, started)
        call.inside, call.cascade = True, isinstance(session, Draft) and session.cascading
        before = call.attempts
        try:
            result = await execute_around(self, tool, handlers.arguments_of(tool, args), session, call)
        except BaseException as error:
            result = outcomes.cut_short(tool, error)
            raise
        finally:
            call.inside = False
            params, degraded = call.ended or (None, ())
            attempts = call.first_attempt + max(0, call.attempts - before - 1)
            final = self._conclude(
                session, result, tool, tool.name, call.call_id, call, started, params, attempts, degraded
            )
        return final

    def _attempt(
        self,
        tool: AnyTool,
        args: Mapping[str, Any],
        params: Any,
        session: Session | Draft,
        call_id: str,
        call: Call | None,
        attempt: int,
    ) -> AnyResult | Coroutine[Any, Any, AnyResult]:
        """Run steps 5 to 7 once: a draft, the handler under its timeout, effects, and commit or discard."""
        root = session.root
        draft = Draft(session, root, session.depth + 1)
        if root.recording:
            draft.call_id = call_id
            root.record(records.call_started(tool, call_id, attempt, args, call, session))
        if call is None:
            timeout, dependencies = tool.timeout, None
        else:
            timeout, dependencies = call.time_limit(tool.timeout), call.dependencies
        if self.bounded:
            timeout = self.scope.time_limit(timeout)
        context = ToolContext(tool, draft, call_id, self, self.scope, timeout, dependencies)
        if not tool.is_async:
            return self._rest(tool, params, context, call, timeout, handlers.plainly(tool, params, context))
        if tool.ends_itself:
            timeout = handlers.with_backstop(timeout)
        try:
            running: Any = tool.handler(params, context=context)
            try:
                waiting = running.send(None)
            except GeneratorExit as error:
                raise RuntimeError("the handler raised GeneratorExit") from error
            except StopIteration as finished:
                result: AnyResult = finished.value
                if (
                    type(result) is not ToolResult
                    or result.success is not True
                    or type(result.value) is not tool.plain_result
                    or ((said := result.message) != "" and not (type(said) is str and said.isascii()))
                ):
                    result = outcomes.checked(tool, result)
                if tool.effects or not result.success:
                    return self._rest(tool, params, context, call, timeout, handlers.at_once(result))
                draft.commit(call_id)
            else:
                return self._rest(
                    tool, params, context, call, timeout, handlers.finish(running, waiting, timeout, draft)
                )
        except BaseException as error:
            return self._rest(tool, params, context, call, timeout, handlers.raising(error))
        if session is root:
            root.completed_tools.add(tool.name)
        else:
            session.complete(tool.name)
            session.hear(draft, kept=True)  # type: ignore[union-attr]  # what is not its own root is a draft
        if call is not None:
            call.note(draft)
            call.committed = draft.given
        return result

    async def _rest(
        self,
        tool: AnyTool,
        params: Any,
        context: ToolContext,
        call: Call | None,
        timeout: float | None,
        handled: Awaitable[Any],
    ) -> AnyResult:
        """Finish an attempt that waits, has effects, or fails."""
        draft = context.session
        kept = False
        try:
            result = outcomes.checked(tool, await handled)
            if result.success:
                if tool.effects:
                    await apply_effects(self, tool, params, context, result)
                draft.commit(context.call_id)
                draft.parent.complete(tool.name)
                kept = True
            else:
                await drop(draft)
                result = outcomes.dropped(outcomes.after_failed_effect(result, draft), draft)
        except BaseException as error:
            context.cancelled = True
            try:
                await drop(draft)
                failed = outcomes.as_result(tool, error, timeout)
                result = outcomes.dropped(outcomes.after_failed_effect(failed, draft), draft)
            except BaseException:
                if draft not in draft.root.dropping:  # else it was closed, and drops itself
                    draft.keep(context.call_id)  # the error passes through: no other attempt follows
                raise
        finally:  # also when the error passes through: a trace tells what was said by then
            if call is not None:
                call.note(draft)
            if isinstance(draft.parent, Draft):
                draft.parent.hear(draft, kept=kept)
        if call is not None and kept:
            call.committed = draft.given
        return result

    async def compensate(
        self, tool: str | AnyTool, args: Mapping[str, Any], *, session: Draft, call_id: str | None = None
    ) -> AnyResult:
        """Run the call that takes an effect back. It ignores deadline, budget and quotas, and asks nobody."""
        free = ToolExecutor(self.registry, around=self.around, approval=self.approval)
        unbounded = free if self.bounded else self
        call = Call(call_id=call_id, approval=False)
        with exempted():
            return await unbounded.execute(tool, args, session=session, call=call)

    async def drop(self, draft: Draft) -> None:
        """Discard a failed attempt: take back its outside effects, newest first, and drop the rest."""
        await drop(draft)

    def _conclude(
        self,
        session: Session | Draft,
        result: AnyResult,
        tool: AnyTool | None,
        name: str,
        call_id: str,
        call: Call | None,
        started: float,
        params: Any = None,
        attempts: int = 1,
        degraded: tuple[str, ...] = (),
    ) -> AnyResult:
        """Run steps 8 and 9. A call that never ran is recorded too."""
        root = session.root
        if call is not None and call.inside:
            call.ended = params, degraded
            return result
        message = result.message
        if degraded and result.success:
            message = f"{message} (degraded: {'; '.join(degraded)})"
        duration = perf_counter() - started
        final: AnyResult = ToolResult(
            message,
            result.value,
            result.success,
            result.exclude_value_from_context,
            result.failure,
            ResultMetadata(duration, time(), name, attempts, call_id, degraded),
        )
        if root.recording:
            root.record(records.call_finished(session, tool, final, call.tool_id if call else None))
        if root.dispatcher.heard:
            root.dispatcher.publish(ToolInvoked(name, call_id, root.id, params, final, duration, attempts))
        if root.attempt_notes:
            root.attempt_notes.pop(call_id, None)
        if root.beats:
            root.beats.pop(call_id, None)
        return final
