"""Running a handler: in a thread if it is a plain function, and to its end, in time, if it is a coroutine.

The pipeline takes the first step of a coroutine itself; what is left of one that waits is finished here.
"""

from __future__ import annotations

import asyncio
import logging
import types
import typing
from collections.abc import Callable, Coroutine, Generator, Mapping
from functools import partial
from typing import Any, Final

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.run.threads import run_in_thread
from narratoria.tools import schema
from narratoria.tools.cancellation import await_cancellable, requests
from narratoria.tools.tool import Tool, ToolContext, ToolResult

if typing.TYPE_CHECKING:
    from narratoria.session import Draft

logger = logging.getLogger("narratoria")

STUBBORN: Final = 2.0  # how long after its timeout a handler may still tidy up
BACKSTOP: Final = 10.0  # the same for a handler that ends itself, such as that of a process


class TimeIsUp(TimeoutError):
    """The timer of the pipeline went off. Any other `TimeoutError` is one of the handler's."""


def arguments_of(tool: Tool[Any, Any], given: Any) -> Any:
    """Return the JSON data of an instance of the tool's params type; anything else as it is."""
    class_ = typing.get_origin(tool.params_type) or tool.params_type
    if isinstance(given, Mapping) or not isinstance(class_, type) or not isinstance(given, class_):
        return given
    try:
        return schema.dump(given) if given is not None else {}
    except ToolValidationError:
        return given  # the parser refuses it, as no object


def with_backstop(timeout: float | None) -> float | None:
    """Return the time after which a handler is ended that ends itself, at its `timeout`, and then cleans up."""
    return None if timeout is None else timeout + BACKSTOP


def parsed_instance(tool: Tool[Any, Any], given: Any, refused: ArgumentsInvalid) -> tuple[Any, Any]:
    """Return the data of an instance of the tool's params type, and the arguments. Anything else stays `refused`."""
    args = arguments_of(tool, given)
    if args is given:
        raise refused
    return args, tool.parse(args)


def parsed_again(tool: Tool[Any, Any], args: Any, params: Any) -> Any:
    """Return the arguments for another attempt: the last one may have changed those it got."""
    try:
        return tool.parse(args)
    except ArgumentsInvalid:  # they are no longer what was accepted; middleware has changed them
        return params


async def plainly(tool: Tool[Any, Any], params: Any, context: ToolContext) -> Any:
    """Run a handler that is no coroutine function: here if it asked for that, otherwise in a thread."""
    if tool.inline:
        return tool.handler(params, context=context)
    draft = context.session
    draft.loop = asyncio.get_running_loop()
    bound = asyncio.timeout(context.time_limit)
    draft.limits = (bound,)
    try:
        async with bound:
            return await run_in_thread(tool.handler, params, context)
    except BaseException as error:
        context.cancelled = True  # before the loop is let go of: a thread left behind must not speak any more
        if isinstance(error, TimeoutError) and bound.expired():
            raise TimeIsUp from None
        raise
    finally:
        draft.loop = None


async def at_once(result: ToolResult[Any]) -> ToolResult[Any]:
    return result


async def raising(error: BaseException) -> Any:
    raise error


async def finish(running: Coroutine[Any, Any, Any], waiting: Any, timeout: float | None, draft: Draft) -> Any:
    """Await the rest of a handler that did not finish in its first step. Only now is a timer armed for it."""
    if timeout is None:
        return await await_cancellable(_resume(running, waiting))
    bound = asyncio.timeout(timeout)
    before = requests()
    try:
        async with asyncio.timeout(timeout + STUBBORN) as last, bound:
            draft.limits += (last, bound)
            if draft.root.approvals.waiting:
                draft.root.approvals.hold(draft)
            result = await _resume(running, waiting)
    except Exception as error:
        if requests() > before:
            raise asyncio.CancelledError from error
        if isinstance(error, TimeoutError) and bound.expired():
            raise TimeIsUp from None
        raise  # the handler's own
    if requests() > before:  # it swallowed a cancellation from outside: what it says now is too late
        raise asyncio.CancelledError
    if bound.expired():  # it swallowed that of its time limit
        raise TimeIsUp
    return result


@types.coroutine
def _resume(running: Coroutine[Any, Any, Any], waiting: Any) -> Generator[Any, Any, Any]:
    """`yield from running`, for a coroutine whose first awaitable was already taken out of it (PEP 380).

    One difference: a coroutine that still waits after its second cancellation is closed. Cleaning up may take a
    while; refusing to stop must not. Cancellations of its own do not count: those that are over, as when a timeout
    within it has passed (`Task.uncancel`), and those of a scope of anyio, which come again at each step.
    """
    cancellations, before = 0, requests()
    while True:
        try:
            sent = yield waiting
        except GeneratorExit:
            running.close()
            raise
        except BaseException as error:
            cancellations += isinstance(error, asyncio.CancelledError) and not _is_of_a_scope(error)
            step: Callable[[], Any] = partial(running.throw, error)
        else:
            step = partial(running.send, sent)
        try:
            waiting = step()
        except StopIteration as finished:
            return finished.value
        except GeneratorExit as error:
            raise RuntimeError("the handler raised GeneratorExit") from error
        if cancellations:
            cancellations = min(cancellations, requests() - before)
            if cancellations > 1:
                _close(running)
                raise asyncio.CancelledError


def _is_of_a_scope(error: BaseException) -> bool:
    """Tell if a cancellation is of a cancel scope of anyio, by the words anyio itself goes by."""
    return bool(error.args) and str(error.args[0]).startswith(
        ("Cancelled via cancel scope", "Cancelled by cancel scope")
    )


def _close(running: Coroutine[Any, Any, Any]) -> None:
    try:
        running.close()
    except RuntimeError:  # "coroutine ignored GeneratorExit": nothing more can be done from outside
        logger.warning("a handler ignored its cancellation and its closing: %r", running)
