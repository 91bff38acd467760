"""Quotas: limits on the processes of a player, a session or a tool, and the meters that count against them."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

MINUTE: Final = 60.0
HOUR: Final = 3600.0
REGAINED: Final = 0.05
"""Part of a quota of CPU time that has to be regained before one that is used up lets anything through again."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Rate: TypeAlias = Annotated[float, msgspec.Meta(ge=1)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]


class Quota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one player, one session or one tool. None sets no limit."""

    processes: Count | None = None
    """Processes at once; more wait."""
    calls_per_minute: Rate | None = None
    """Processes started, evenly over time but for as many at once; more wait."""
    cpu_seconds_per_hour: Amount | None = None
    """CPU time of the processes. Once it is used up, calls fail and turns are refused until some is regained."""


class Meter:
    """An amount that can be used at once and is regained evenly. It may be overdrawn by what was not known before."""

    __slots__ = ("_at", "_level", "_spent", "amount", "rate")

    def __init__(self, amount: float, seconds: float, now: float) -> None:
        self.amount = amount
        self.rate = amount / seconds
        self._level = amount
        self._at = now
        self._spent = False

    def left(self, now: float) -> float:
        """Return what is left; less than 0 if it is overdrawn."""
        self._level = min(self.amount, self._level + (now - self._at) * self.rate)
        self._at = now
        return self._level

    def is_full(self, now: float) -> bool:
        """Tell if nothing of it is used."""
        return self.left(now) >= self.amount

    def take(self, amount: float, now: float) -> None:
        """Use some of it; a negative amount gives it back."""
        self._level = min(self.amount, self.left(now) - amount)
        if self._level <= 0:
            self._spent = True

    def until(self, wanted: float, now: float) -> float:
        """Return the seconds until so much is left."""
        return max(0.0, (wanted - self.left(now)) / self.rate)

    def used_up(self, now: float) -> float:
        """Return for how many seconds it counts as used up; 0 if it does not."""
        if not self._spent:
            return 0.0
        wait = self.until(self.amount * REGAINED, now)
        self._spent = wait > 0
        return wait


class Meters:
    """The meters of one player, session or tool."""

    __slots__ = ("calls", "cpu")

    def __init__(self, quota: Quota, now: float) -> None:
        self.calls = None if quota.calls_per_minute is None else Meter(quota.calls_per_minute, MINUTE, now)
        self.cpu = (
            None if quota.cpu_seconds_per_hour is None else Meter(quota.cpu_seconds_per_hour, HOUR, now)
        )

    def out_of_cpu(self, now: float) -> float:
        """Return for how many seconds there is no CPU time left; 0 if there is some."""
        return 0.0 if self.cpu is None else self.cpu.used_up(now)

    def before_call(self, now: float) -> float:
        """Return the seconds before which no other call may begin."""
        return 0.0 if self.calls is None else self.calls.until(1.0, now)

    def unused(self, now: float) -> bool:
        """Tell if they could as well be new."""
        return all(one is None or one.is_full(now) for one in (self.calls, self.cpu))
