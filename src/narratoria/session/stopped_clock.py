"""Time limits that stand still while a person is asked."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from narratoria.tools.deadline import BudgetTracker, Deadline

TimeLimit: TypeAlias = asyncio.Timeout | Deadline | BudgetTracker


class StoppedClock:
    """Stops time limits. One that is stopped twice at a time, by two questions, goes on after the second answer."""

    def __init__(self) -> None:
        self._stopped: dict[TimeLimit, tuple[int, float]] = {}  # how often, and what each needs to go on

    @contextlib.contextmanager
    def standstill(self) -> Iterator[Callable[[Iterable[TimeLimit]], None]]:
        """Yield a function that stops limits until the end of the block."""
        held: list[TimeLimit] = []

        def hold(limits: Iterable[TimeLimit]) -> None:
            for one in limits:
                if one not in held:
                    held.append(one)
                    times, left = self._stopped.get(one) or (0, _stop(one))
                    self._stopped[one] = times + 1, left

        try:
            yield hold
        finally:
            for one in held:
                times, left = self._stopped.pop(one)
                if times > 1:
                    self._stopped[one] = times - 1, left
                else:
                    _go_on(one, left)


def _stop(limit: TimeLimit) -> float:
    if isinstance(limit, BudgetTracker):
        return limit.seconds
    if isinstance(limit, Deadline):
        left = limit.at - limit.clock()
        limit.at = math.inf
        return left
    when = limit.when()
    if when is None or limit.expired():
        return math.inf
    limit.reschedule(None)
    return when - asyncio.get_running_loop().time()


def _go_on(limit: TimeLimit, left: float) -> None:
    if isinstance(limit, BudgetTracker):
        limit.seconds = left
    elif isinstance(limit, Deadline):
        limit.at = limit.clock() + left
    elif left != math.inf and not limit.expired():
        with contextlib.suppress(RuntimeError):  # it has ended meanwhile, with the plan that it was of
            limit.reschedule(asyncio.get_running_loop().time() + left)
