"""Cancellations hold, whatever the code of an author makes of them."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

from narratoria.errors import NarratoriaError, describe

T = TypeVar("T")


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
