"""Worker threads for plain handlers, so that timeouts hold and the event loop never blocks.

A thread cannot be stopped from outside. One that overruns its timeout is abandoned: it is a daemon, its context says
`cancelled`, and its later results are ignored. The number of threads at once is bounded.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, Final

from narratoria.errors import CallFailure

MAX_THREADS: Final = 256
_running = 0
_lock = threading.Lock()


async def run_in_thread(handler: Callable[..., Any], params: Any, context: Any) -> Any:
    """Call `handler(params, context=context)` in a thread of its own and wait for it."""
    _enter()
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    variables = contextvars.copy_context()

    def deliver(value: Any, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(value)
        elif isinstance(error, StopIteration):  # a future refuses it (PEP 479)
            outcome.set_exception(RuntimeError(f"the handler raised StopIteration: {error}"))
        else:
            outcome.set_exception(error)

    def work() -> None:
        value, failure = None, None
        try:
            value = variables.run(handler, params, context=context)
        except BaseException as error:
            failure = error
        finally:
            _leave()
        try:
            loop.call_soon_threadsafe(deliver, value, failure)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=work, name=f"narratoria {context.tool.name}", daemon=True).start()
    return await outcome


def _enter() -> None:
    global _running
    with _lock:
        if _running >= MAX_THREADS:
            raise CallFailure(
                "EXECUTION_FAILED",
                f"{MAX_THREADS} handlers run in threads already, some of them past their timeout; "
                "make long handlers async, or let them call context.beat()",
            )
        _running += 1


def _leave() -> None:
    global _running
    with _lock:
        _running -= 1
