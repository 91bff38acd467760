"""The deadline and the budget of an evaluation.

Both are checked before a call is entered. The clock is a parameter: a test moves it.
"""
# 002, "Runtime Dispatch", step 3.

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from narratoria.errors import BudgetExceededError, DeadlineExceededError, ToolValidationError

Clock: TypeAlias = Callable[[], float]

LONGEST_TIMEOUT: Final = 7200.0  # of one tool, in seconds; None is no limit
LONGEST_EVALUATION: Final = 14400.0  # of many calls, in seconds
LONGEST_WAIT: Final = 300.0  # before the first retry, and a step
LONGEST_DELAY: Final = 3600.0  # between any two attempts


def check_seconds(what: str, seconds: Any, longest: float) -> None:
    """Refuse a time that can only be meant in milliseconds. A value that is not a number is not checked."""
    # 004 writes times in milliseconds.
    if isinstance(seconds, int | float) and seconds > longest:
        if math.isinf(seconds):
            raise ToolValidationError(f"{what}: infinite; give at most {longest:g} seconds")
        much = f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
        raise ToolValidationError(
            f"{what}: {seconds:g} is {much}, and more than {longest:g} is refused: times are in seconds, not in "
            f"milliseconds; for {seconds:g} ms write {seconds / 1000:g}"
        )


def check_positive(what: str, seconds: Any) -> None:
    """Refuse a time limit that is no number, or not above 0."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ToolValidationError(f"{what} must be a number of seconds, more than 0, got {seconds!r}")


class Deadline:
    """A moment on a monotonic clock after which no call starts."""

    __slots__ = ("at", "clock")

    def __init__(self, at: float, clock: Clock = time.monotonic) -> None:
        if math.isnan(at):
            raise ValueError("deadline: NaN is not a moment; pass seconds on the monotonic clock")
        self.at = at
        self.clock = clock

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> Deadline:
        """Return the deadline that many seconds from now."""
        check_seconds("deadline", seconds, LONGEST_EVALUATION)
        return cls(clock() + seconds, clock)

    def remaining(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.at - self.clock())

    @property
    def expired(self) -> bool:
        """True once the time is over."""
        return self.clock() >= self.at

    def check(self, what: str = "the call") -> None:
        """Raise `DeadlineExceededError` when the moment has passed."""
        late = self.clock() - self.at
        if late >= 0:
            raise DeadlineExceededError(
                f"{what} was not begun: the deadline passed {late:.3f} s ago; allow the evaluation more time"
            )

    def within(self, seconds: float | None) -> float:
        """Return the shorter of `seconds` and the time left: the timeout of a step under this deadline."""
        left = self.remaining()
        return left if seconds is None else min(seconds, left)

    def earlier(self, seconds: float) -> Deadline:
        """Return the deadline of a part: at most `seconds` from now, and never later than this one."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)

    def __repr__(self) -> str:
        return f"<Deadline in {self.at - self.clock():.3f} s>"


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the use of one evaluation; `None` is no limit. `max_tokens` counts input and output together."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            bound = getattr(self, name)
            if bound is not None and not bound >= 0:
                raise ValueError(f"budget: {name} must be 0 or more, got {bound!r}")
        check_seconds("budget: max_seconds", self.max_seconds, LONGEST_EVALUATION)


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The calls, tokens, cost and seconds used so far."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class BudgetTracker:
    """Counts use against a budget. Shared by concurrent calls and by worker threads, hence the lock."""

    __slots__ = ("_calls", "_clock", "_cost", "_input", "_lock", "_output", "_started", "budget")

    def __init__(self, budget: Budget, clock: Clock = time.monotonic) -> None:
        self.budget = budget
        self._clock = clock
        self._started = clock()
        self._lock = threading.RLock()  # admit() checks while it holds it
        self._calls = 0
        self._input = 0
        self._output = 0
        self._cost = 0.0

    @property
    def seconds(self) -> float:
        """The seconds used so far."""
        return self._clock() - self._started

    @seconds.setter
    def seconds(self, used: float) -> None:
        self._started = self._clock() - used

    def spend(
        self,
        *,
        calls: int = 0,
        tokens: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float = 0.0,
    ) -> None:
        """Record use, then raise `BudgetExceededError` if it exceeds the budget.

        The use is recorded even then: it has happened. `tokens` is for providers that report only the sum; it counts
        as output, the dearer kind.
        """
        for name, amount in (("calls", calls), ("tokens", tokens), ("input_tokens", input_tokens),
                             ("output_tokens", output_tokens), ("cost", cost)):  # fmt: skip
            if not amount >= 0:
                raise ValueError(f"budget: {name} must be 0 or more, got {amount!r}")
        with self._lock:
            self._calls += calls
            self._input += input_tokens
            self._output += output_tokens + tokens
            self._cost += cost
        over = [line for line, used, bound in self._lines() if used > bound]
        if over:
            raise BudgetExceededError(
                f"budget overspent: {'; '.join(over)}; raise the budget or ask for less"
            )

    def admit(self) -> None:
        """Check and count one call in a single step: two calls at once cannot share the last place."""
        with self._lock:
            self.check()
            self._calls += 1

    def check(self) -> None:
        """Raise `BudgetExceededError` when a limit is reached: nothing is left for another call."""
        spent = [line for line, used, bound in self._lines() if used >= bound]
        if spent:
            raise BudgetExceededError(f"budget used up: {'; '.join(spent)}; raise the budget or ask for less")

    @property
    def used(self) -> Usage:
        """The part that is spent."""
        with self._lock:
            return Usage(
                calls=self._calls,
                input_tokens=self._input,
                output_tokens=self._output,
                cost=self._cost,
                seconds=self.seconds,
            )

    @property
    def remaining(self) -> Budget:
        """Return what is left of each limit, never below 0; `None` where there is no limit."""
        used = self.used
        left = {
            f"max_{name}": None if bound is None else max(type(bound)(0), bound - getattr(used, name))
            for name in ("calls", "tokens", "input_tokens", "output_tokens", "cost", "seconds")
            for bound in (getattr(self.budget, f"max_{name}"),)
        }
        return Budget(**left)

    def _lines(self) -> list[tuple[str, float, float]]:
        used = self.used
        return [
            (f"{name} {amount:g} of {bound:g}", amount, bound)
            for name in ("calls", "tokens", "input_tokens", "output_tokens", "cost", "seconds")
            for bound, amount in ((getattr(self.budget, f"max_{name}"), getattr(used, name)),)
            if bound is not None
        ]
