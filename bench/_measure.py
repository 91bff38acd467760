"""Measuring fairly: contenders take turns, medians are compared, and the verdict stands beside the target."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Spread: TypeAlias = tuple[float, float]
Samples: TypeAlias = dict[str, list[float]]
NOTES = "NARRATORIA_BENCH_NOTES"  # names the file to which a whole run has every table and curve added


@dataclass(frozen=True)
class Cost:
    """What a run took: seconds on the clock; seconds of CPU of this process and the children it reaped."""

    wall: float
    cpu: float
    rounds: tuple[Cost, ...] = ()  # those whose medians these are


@dataclass(frozen=True)
class Row:
    """One target. `measured` has to be at most `target`, or at least, if `at_least` is set.

    `spread` is the middle half of what the rounds gave; `peer` is the release that was measured beside ours.
    """

    name: str
    measured: float
    target: float | None
    at_least: bool = False
    unit: str = "x"
    note: str = ""
    spread: Spread | None = None
    peer: str = ""

    @property
    def met(self) -> bool:
        if self.target is None:
            return True
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    @property
    def bound(self) -> str:
        return "" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:g}{self.unit}"

    @property
    def verdict(self) -> str:
        return "" if self.target is None else "met" if self.met else "MISSED"

    @property
    def shown(self) -> str:
        """The measured value with its unit, and the middle half of the rounds where it is known."""
        rounds = "" if self.spread is None else f" [{self.spread[0]:.4g}, {self.spread[1]:.4g}]"
        return f"{self.measured:.4g}{self.unit}{rounds}"


@dataclass(frozen=True)
class Curve:
    """What something costs as something grows: points of (size, cost)."""

    name: str
    size: str
    unit: str
    points: tuple[tuple[float, float], ...]


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
        name: Cost(
            statistics.median(c.wall for c in costs), statistics.median(c.cpu for c in costs), tuple(costs)
        )
        for name, costs in samples.items()
    }


def against(
    name: str, ours: Cost, reference: Cost, target: float | None, *, by: Literal["cpu", "wall"], **more: Any
) -> Row:
    """A row of `ours` against `reference`, round by round."""
    costs: Samples = {
        "ours": [getattr(c, by) for c in ours.rounds],
        "other": [getattr(c, by) for c in reference.rounds],
    }
    measured, spread = ratio(costs, "ours", "other")
    return Row(name, measured, target, spread=spread, **more)


async def turns(
    contenders: Mapping[str, Callable[[], Awaitable[object]]], count: int, rounds: int
) -> Samples:
    """Microseconds for each of the `count` calls of a run, round by round; the first round does not count."""
    samples: Samples = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            begun = time.perf_counter()
            await run()
            if number:
                samples[name].append((time.perf_counter() - begun) / count * 1e6)
    return samples


def plain_turns(contenders: Mapping[str, Callable[[], object]], count: int, rounds: int) -> Samples:
    """The same of plain functions, each called `count` times in its turn."""

    def repeated(run: Callable[[], object]) -> Callable[[], Awaitable[object]]:
        async def many() -> None:
            for _ in range(count):
                run()

        return many

    return asyncio.run(turns({name: repeated(run) for name, run in contenders.items()}, count, rounds))


def ratio(samples: Samples, ours: str, reference: str) -> tuple[float, Spread]:
    """The median of `ours` against `reference`, round by round, and its middle half.

    Both took their turn in the same round, so a machine that is busy for a while is busy for both.
    """
    return middle([one / other for one, other in zip(samples[ours], samples[reference], strict=True)])


def middle(values: Sequence[float]) -> tuple[float, Spread]:
    """The median and the quartiles around it."""
    if len(values) < 2:
        return values[0], (values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, (low, high)


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of a table: measured with its spread, target, verdict, peer."""
    cells = [("", "measured [middle half]", "target", "verdict", "peer")]
    cells += [(row.name, row.shown, row.bound, row.verdict, row.peer) for row in rows]
    widths = [max(len(cell[column]) for cell in cells) for column in range(5)]
    lines = []
    for number, (name, shown, bound, verdict, peer) in enumerate(cells):
        note = f"  ({rows[number - 1].note})" if number and rows[number - 1].note else ""
        line = f"  {name:{widths[0]}}  {shown:>{widths[1]}}  {bound:>{widths[2]}}  {verdict:{widths[3]}}  "
        lines.append((line + f"{peer:{widths[4]}}{note}").rstrip())
    return lines


def report(title: str, rows: Sequence[Row], curves: Sequence[Curve] = ()) -> None:
    """Print the table, and add it to the notes of a whole run. A target that is missed is said, and ends nothing."""
    print(f"\n{title}")
    print("\n".join(table(rows)))
    for curve in curves:
        print(
            f"  {curve.name}: "
            + ", ".join(f"{size:,.0f}: {cost:,.3g}{curve.unit}" for size, cost in curve.points)
        )
    if notes := os.environ.get(NOTES):
        section = {
            "title": title,
            "rows": [asdict(row) for row in rows],
            "curves": [asdict(c) for c in curves],
        }
        with Path(notes).open("a") as file:
            file.write(json.dumps(section) + "\n")
