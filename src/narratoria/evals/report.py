"""The report of an evaluation: by measure, the share of hits in a set of prompts and in its parts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Counts: TypeAlias = Mapping[str, tuple[int, int]]  # by measure, the hits and what could have been one


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prompt's score."""

    prompt: str
    parts: tuple[str, ...]  # of the set that it counts in: its catalogue or story, and kinds, "#" before each
    counts: Counts
    cpu_seconds: float
    wall_seconds: float = 0.0
    failure: str = ""  # why there is no answer at all, neither a plan nor a refusal


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The score of a narrator on a set. A share of nothing is no number: it is shown as a dash, and passes no test."""

    narrator: str
    outcomes: tuple[Outcome, ...]
    columns: Mapping[str, str]  # the measures of the table with their titles, the one that tells most first
    counted: frozenset[str] = frozenset()  # measures of which the hits are told, not the share

    def hits(self, measure: str) -> int:
        return sum(outcome.counts.get(measure, (0, 0))[0] for outcome in self.outcomes)

    def share(self, measure: str) -> float:
        """From 0 to 1; of nothing, not a number."""
        whole = sum(outcome.counts.get(measure, (0, 0))[1] for outcome in self.outcomes)
        return self.hits(measure) / whole if whole else math.nan

    @property
    def failures(self) -> list[Outcome]:
        """Those without an answer: the narrator raised, was too slow, or gave what is no plan."""
        return [outcome for outcome in self.outcomes if outcome.failure]

    @property
    def cpu_ms(self) -> tuple[float, float]:
        """Median and 95th percentile of CPU milliseconds per prompt."""
        return milliseconds([outcome.cpu_seconds for outcome in self.outcomes])

    def parts(self) -> dict[str, EvaluationReport]:
        """The whole, then the parts: catalogues or stories first."""
        parts: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            for name in ("all", *outcome.parts):
                parts.setdefault(name, []).append(outcome)
        order = sorted(parts, key=lambda name: (name.startswith("#"), name != "all", name))
        return {
            name: EvaluationReport(self.narrator, tuple(parts[name]), self.columns, self.counted)
            for name in order
        }

    def to_data(self) -> dict[str, Any]:
        main, (median, late) = next(iter(self.columns)), self.cpu_ms
        return {
            "narrator": self.narrator,
            "prompts": len(self.outcomes),
            "failures": len(self.failures),
            **{
                name: self.hits(name) if name in self.counted else self._rounded(name)
                for name in self.columns
            },
            "parts": {name: part._rounded(main) for name, part in self.parts().items()},
            "cpuMsMedian": round(median, 2),
            "cpuMs95": round(late, 2),
        }

    def render(self) -> str:
        """A table for people."""
        titles = "".join(f"{title:>{len(title) + 2}}" for title in self.columns.values())
        lines = [f"{'':<12}{'prompts':>8}{titles}{'cpu ms':>8}"]
        for name, part in self.parts().items():
            cells = "".join(f"{part.shown(one):>{len(title) + 2}}" for one, title in self.columns.items())
            lines.append(f"{name:<12}{len(part.outcomes):>8}{cells}{part.cpu_ms[0]:>8.1f}")
        if self.failures:
            lines.append(f"no answer to {len(self.failures)} of {len(self.outcomes)} prompts")
        return "\n".join(lines)

    def shown(self, measure: str) -> str:
        """A measure in words: the hits, or the share in percent."""
        if measure in self.counted:
            return str(self.hits(measure))
        share = self.share(measure)
        return "–" if math.isnan(share) else f"{share:.0%}"

    def _rounded(self, measure: str) -> float | None:
        """For JSON, which has no way to say that a number is none."""
        share = self.share(measure)
        return None if math.isnan(share) else round(share, 4)


def milliseconds(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    times = sorted(1000 * one for one in seconds)
    return (statistics.median(times), times[int(0.95 * (len(times) - 1))]) if times else (0.0, 0.0)
