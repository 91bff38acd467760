"""The event loop of programs that have none: one for the process, in a thread of its own.

`execute_sync` and `take_turn_sync` run there and wait. It is always the same loop, because a session, its journal and
the servers it uses belong to the loop that they were first used in.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, Final, TypeVar

from narratoria.errors import NarratoriaError

T = TypeVar("T")

GRACE: Final = 15.0  # how long a cancelled call may take to clean up, its processes included

# A signal that comes between Python's last look for one and the wait of the main thread does not end that wait.
_LOOK: Final = 0.2  # seconds between two looks


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop of the process and return its result. Ctrl+C cancels it, waits until it has cleaned
    up, and raises `KeyboardInterrupt` as always.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        name = getattr(coroutine, "__qualname__", "it")
        coroutine.close()
        raise NarratoriaError(
            f"an event loop runs in this thread, and waiting for {name} would stop it; await it here instead: the "
            f"names without _sync are coroutines"
        )
    return _loop_of_process().run(coroutine)


class _BackgroundLoop:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="narratoria loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        outcome: Future[T] = Future()
        variables = contextvars.copy_context()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            tasks.append(self._loop.create_task(coroutine, context=variables))
            tasks[0].add_done_callback(deliver)

        def deliver(task: asyncio.Task[T]) -> None:
            if task.cancelled():
                outcome.set_exception(asyncio.CancelledError())
            elif (error := task.exception()) is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(task.result())

        self._loop.call_soon_threadsafe(start)
        try:
            while True:
                try:
                    return outcome.result(_LOOK)
                except TimeoutError:
                    if outcome.done():  # the call's own, or it came just now
                        return outcome.result()
        except BaseException:
            if not outcome.done():  # the wait was interrupted, not the call
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                wait([outcome], GRACE)
            raise

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(GRACE)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


_current: _BackgroundLoop | None = None
_lock = threading.Lock()


def _loop_of_process() -> _BackgroundLoop:
    global _current
    with _lock:
        if _current is None:
            _current = _BackgroundLoop()
            atexit.register(_current.close)
        return _current


def _forget() -> None:
    """Forget the loop after a fork: the child has a copy of it, and no thread."""
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None:
        atexit.unregister(_current.close)
        _current = None


os.register_at_fork(after_in_child=_forget)
