"""Cancellations hold, whatever the code of an author makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


def requests() -> int:
    """Return how many cancellations of the current task are requested and not taken back."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def heed(awaited: Awaitable[T]) -> T:
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
