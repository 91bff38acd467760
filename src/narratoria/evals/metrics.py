"""Shares and times of an evaluation. A share of nothing is no number: it is shown as a dash, and passes no test."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def ratio(part: int, whole: int) -> float:
    """From 0 to 1; of nothing, not a number."""
    return part / whole if whole else math.nan


def share(hits: Sequence[bool]) -> float:
    """The share of hits, from 0 to 1; of none, not a number."""
    return ratio(sum(hits), len(hits))


def percent(part: float) -> str:
    return "–" if math.isnan(part) else f"{part:.0%}"


def rounded(part: float) -> float | None:
    """For JSON, which has no way to say that a number is none."""
    return None if math.isnan(part) else round(part, 4)


def milliseconds(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    times = sorted(1000 * one for one in seconds)
    return (statistics.median(times), times[int(0.95 * (len(times) - 1))]) if times else (0.0, 0.0)
