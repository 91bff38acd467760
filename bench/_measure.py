"""Measuring fairly: contenders take turns, medians are compared, and the verdict stands beside the target."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a run took: seconds on the clock; seconds of CPU of this process and the children it reaped."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Row:
    """One target. `measured` has to be at most `target`, or at least, if `at_least` is set."""

    name: str
    measured: float
    target: float | None
    at_least: bool = False
    unit: str = "x"
    note: str = ""

    @property
    def met(self) -> bool:
        if self.target is None:
            return True
        return self.measured >= self.target if self.at_least else self.measured <= self.target


def cpu_seconds() -> float:
    """User and system time of this process and of every child it has waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(run: Callable[[], object]) -> Cost:
    cpu, wall = cpu_seconds(), time.perf_counter()
    run()
    return Cost(time.perf_counter() - wall, cpu_seconds() - cpu)


def interleaved(contenders: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, Cost]:
    """The median cost of each contender; all take a turn in every round, and the first does not count."""
    samples: dict[str, list[Cost]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            cost = measure(run)
            if number:
                samples[name].append(cost)
    return {
        name: Cost(statistics.median(c.wall for c in costs), statistics.median(c.cpu for c in costs))
        for name, costs in samples.items()
    }


def report(title: str, rows: Sequence[Row]) -> None:
    """Print measured | target | verdict. A target that is missed is said; only a broken benchmark is an error."""
    print(f"\n{title}")
    width = max(len(row.name) for row in rows)
    print(f"  {'':{width}}  {'measured':>12}  {'target':>12}  verdict")
    for row in rows:
        bound = "" if row.target is None else f"{'≥' if row.at_least else '≤'} {row.target:g}{row.unit}"
        verdict = "" if row.target is None else "met" if row.met else "MISSED"
        note = f"  ({row.note})" if row.note else ""
        measured = f"{row.measured:.4g}{row.unit}"
        print(f"  {row.name:{width}}  {measured:>12}  {bound:>12}  {verdict}{note}".rstrip())
