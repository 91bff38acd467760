"""Middleware: async callables around every call.

Each gets the call and `proceed`, which runs what lies inside: the next of them, and at last the pipeline with its
validation, preconditions, attempts and effects. What it returns is the call's result. The whole is one transaction: if
the result is a failure, the changes of everything inside are dropped, and its effects are taken back.

    async def timed(call: ToolCall, proceed: Proceed) -> ToolResult[Any]:
        started = perf_counter()
        try:
            return await proceed(call)
        finally:
            print(call.tool.name, perf_counter() - started)

    registry = ToolRegistry(tools, around=[timed])
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from narratoria.errors import ToolValidationError
from narratoria.run import outcomes
from narratoria.run.attempt_rollback import drop
from narratoria.session import Draft, Session
from narratoria.tools.cancellation import await_cancellable
from narratoria.tools.schema.copying import copied
from narratoria.tools.tool import Tool, ToolResult

if TYPE_CHECKING:
    from narratoria.run.call_record import Call
    from narratoria.run.executor import ToolExecutor


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call on its way to the tool."""

    tool: Tool[Any, Any]
    args: Mapping[str, Any]
    """The arguments: a copy, which may be changed."""
    session: Draft
    """The session as the call sees it. A change made through it is kept if the call succeeds."""
    call_id: str

    def changed(self, **args: Any) -> ToolCall:
        """Return the call with some arguments changed."""
        return replace(self, args={**self.args, **args})


def own_arguments(args: Any) -> Any:
    """Return arguments that are nobody else's: who sees a call before its tool may change them, and the caller keeps
    those it gave. What nests too deeply is left to the tool's own check.
    """
    try:
        return copied(dict(args)) if isinstance(args, Mapping) else args
    except RecursionError:
        return args


class Proceed(Protocol):
    """The rest of the way to the tool, and back with its result."""

    def __call__(self, call: ToolCall, /) -> Awaitable[ToolResult[Any]]: ...


class Around(Protocol):
    """Middleware: an async function of the call and `proceed`, which returns the result of the call."""

    def __call__(self, call: ToolCall, proceed: Proceed, /) -> Awaitable[ToolResult[Any]]: ...


def checked_around(around: Sequence[Around]) -> tuple[Around, ...]:
    """Refuse what is not callable when the pipeline is made, not at the first call."""
    for index, one in enumerate(around):
        if not callable(one):
            raise ToolValidationError(
                f"around[{index}] is {type(one).__name__}; it must be an async function (call, proceed) -> ToolResult"
            )
    return tuple(around)


async def execute_around(
    executor: ToolExecutor,
    tool: Tool[Any, Any],
    args: Mapping[str, Any],
    session: Session | Draft,
    call: Call,
) -> ToolResult[Any]:
    """Run a call inside its middleware, and return its result before it is recorded."""
    call_id = call.call_id or ""
    draft = Draft(session, session.root, session.depth)  # no call of its own: it does not count as nested
    waiting = executor.around
    first, before = call.first_attempt, call.attempts
    last: list[ToolResult[Any]] = []  # the newest result of the pipeline itself

    async def innermost(given: ToolCall) -> ToolResult[Any]:
        call.first_attempt = first + call.attempts - before
        result = await executor.execute(given.tool, given.args, session=draft, call=call)
        last[:] = [result]
        return result

    def inside(depth: int) -> Proceed:
        async def proceed(given: ToolCall) -> ToolResult[Any]:
            if not isinstance(given, ToolCall):
                raise TypeError(f"proceed takes the call, got {type(given).__name__}; write proceed(call)")
            if depth == len(waiting):
                return await innermost(given)
            return await waiting[depth](given, inside(depth + 1))

        return proceed

    kept = False
    try:
        result = await await_cancellable(inside(0)(ToolCall(tool, own_arguments(args), draft, call_id)))
        if not last or result is not last[0]:
            result = _checked(tool, result, waiting[0])
        if result.success:
            draft.commit(call_id)
            kept = True
        else:
            await drop(draft)
            result = outcomes.dropped(result, draft)
            outcomes.keep_assets(result, call_id)
    except BaseException as error:
        await drop(draft)
        draft.keep(call_id)
        result = outcomes.as_result(tool, error, None)
    finally:
        call.first_attempt = first
        if not kept:
            call.committed = []
        if isinstance(session, Draft):
            session.hear(draft, kept=kept)
    return result


def _checked(tool: Tool[Any, Any], result: Any, outermost: Around) -> ToolResult[Any]:
    """Return a result that middleware made, held to the same rules as a handler's."""
    if not isinstance(result, ToolResult):
        name = getattr(outermost, "__qualname__", type(outermost).__qualname__)
        raise TypeError(f"{name} around the call must return a ToolResult, got {type(result).__name__}")
    return outcomes.checked(tool, result) if result.success is True else outcomes.well_typed(result)
