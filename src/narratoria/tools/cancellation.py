"""Cancellations hold, whatever the code of an author makes of them."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

from narratoria.errors import NarratoriaError, describe

T = TypeVar("T")

GRACE: Final = 0.5  # seconds that cancelled code has to end
_left_behind: set[asyncio.Task[Any]] = set()  # a task nobody refers to could vanish in mid-flight


class TooSlow(Exception):
    """An author's code did not end in time; the text says within which."""


def requests() -> int:
    """Return how many cancellations of the current task are requested and not taken back."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def await_cancellable(awaited: Awaitable[T]) -> T:
    """Await an author's code. If it swallows a cancellation, its outcome is too late: the cancellation is raised."""
    before = requests()
    try:
        outcome = await awaited
    except Exception as error:
        if requests() > before:
            raise asyncio.CancelledError from error
        raise
    if requests() > before:
        raise asyncio.CancelledError
    return outcome


async def contained(running: Coroutine[Any, Any, T]) -> T:
    """Await an author's code as `await_cancellable` does. It ends nothing but itself: a `SystemExit`, a
    `GeneratorExit` or a cancellation of its own becomes a `NarratoriaError`.
    """
    try:
        return await await_cancellable(_closable(running))
    except asyncio.CancelledError as error:
        if requests():
            raise
        raise NarratoriaError(describe(error)) from error
    except SystemExit as error:
        raise NarratoriaError(describe(error)) from error


@types.coroutine
def _closable(running: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """`yield from running` (PEP 380), except that a `GeneratorExit` of its own is an error; one from outside closes
    it.
    """
    error: BaseException | None = None
    sent: Any = None
    while True:
        try:
            waiting = running.send(sent) if error is None else running.throw(error)
        except StopIteration as finished:
            outcome: T = finished.value
            return outcome
        except GeneratorExit as raised:
            raise NarratoriaError(describe(raised)) from raised
        error = None
        try:
            sent = yield waiting
        except GeneratorExit:
            running.close()
            raise
        except BaseException as thrown:
            error = thrown


async def outcome_within(
    seconds: float, question: Callable[[], Awaitable[Any]]
) -> tuple[Any, BaseException | None]:
    """Return what an author's code returned, or what it raised; raise `TooSlow` when time is up.

    It runs in a task of its own. When time is up the task is cancelled and given a moment; one that swallows its
    cancellation is left behind.
    """
    running = asyncio.create_task(_outcome(question))
    try:
        await asyncio.wait({running}, timeout=seconds)
    finally:
        if not running.done():
            running.cancel()
            await asyncio.wait({running}, timeout=GRACE)
        if not running.done():
            _left_behind.add(running)
            running.add_done_callback(_left_behind.discard)
    if not running.done():
        raise TooSlow(f"within {seconds:.3g} s, and it does not stop")
    if running.cancelled():
        raise TooSlow(f"within {seconds:.3g} s")
    return running.result()


async def _outcome(question: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    try:
        return await question(), None
    except asyncio.CancelledError as error:
        if requests():
            raise
        return None, error
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # also SystemExit: an author's code does not end the program
        return None, error
