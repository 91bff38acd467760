"""The backoffs of our own: none, fixed, linear, exponential, and jittered around another."""
# 004.

from __future__ import annotations

import math
import random
from typing import Annotated

import msgspec

from narratoria.errors import ToolValidationError
from narratoria.tools import backoff
from narratoria.tools.backoff import Backoff, LongSeconds, Seconds


class NoBackoff(Backoff, tag="none", frozen=True):
    """Try again at once."""

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        return 0.0


class FixedBackoff(Backoff, tag="fixed", frozen=True):
    """The same wait before every retry."""

    seconds: Seconds = msgspec.field(name="delay")

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        return self.seconds


class LinearBackoff(Backoff, tag="linear", frozen=True):
    """A wait that grows by the same step."""

    base_delay: Seconds
    increment: Seconds

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        return self.base_delay + self.increment * (attempt - 1)


class ExponentialBackoff(Backoff, tag="exponential", frozen=True):
    """A wait that is multiplied each time, up to `max_delay`."""

    base_delay: Seconds
    max_delay: LongSeconds = 30.0
    multiplier: Annotated[float, msgspec.Meta(ge=0)] = 2.0

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        try:
            grown = self.base_delay * self.multiplier ** (attempt - 1)
        except OverflowError:
            grown = math.inf if self.base_delay else 0.0
        return min(grown, self.max_delay)


class JitteredBackoff(Backoff, tag="jittered", frozen=True):
    """Another strategy's wait, spread evenly around it.

    By ±`jitter` of it, so that many callers do not return at once.
    """

    base: backoff.AnyBackoff
    jitter: Annotated[float, msgspec.Meta(ge=0, le=1, description="A share of the wait.")]

    def __post_init__(self) -> None:
        if not 0 <= self.jitter <= 1:  # beyond 1 the wait could come out negative
            raise ToolValidationError(f"backoff jitter: expected a share from 0 to 1, got {self.jitter!r}")

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        base = self.base.delay(attempt, rng)
        share = (rng or random).uniform(-self.jitter, self.jitter)
        return max(0.0, base + base * share)

    def longest(self, attempt: int) -> float:
        """Return the longest delay there may be before an attempt."""
        return self.base.longest(attempt) * (1 + self.jitter)
