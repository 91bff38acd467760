"""The parts of a verdict: the tool and its runs, the rule and the finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from narratoria.conformance.observation import Observation
from narratoria.conformance.output_lines import Line
from narratoria.kinds.manifest import Manifest
from narratoria.kinds.process.launch import LaunchRefused

Verdict: TypeAlias = Literal["pass", "fail", "not exercised"]
PASS: Final = "pass"  # noqa: S105 (a verdict)
FAIL: Final = "fail"
NOT_EXERCISED: Final = "not exercised"


@dataclass
class Subject:
    """A tool under check, with all its runs."""

    path: Path
    name: str
    manifest: Manifest | None = None
    manifest_problem: str | None = None
    refusal: LaunchRefused | None = None
    other_kind: str | None = None
    """The kind of a tool that is no executable; only its manifest is checked."""
    runs: list[Observation] = field(default_factory=list)
    by_rule: dict[str, list[Observation]] = field(default_factory=dict)

    def add(self, rule: str | None, seen: Observation) -> None:
        self.runs.append(seen)
        if rule is not None:
            self.by_rule.setdefault(rule, []).append(seen)

    @property
    def lines(self) -> Iterator[tuple[Observation, Line]]:
        return ((run, line) for run in self.runs for line in run.lines)


@dataclass(frozen=True)
class Finding:
    """The finding of a rule: a fault with its place and its fix, or the reason it passed."""

    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Rule:
    name: str
    level: Literal["MUST", "SHOULD"]
    says: str
    judge: Callable[[Subject], Finding]


@dataclass(frozen=True)
class Judgement:
    """The verdict of one rule on a tool, and the reason."""

    rule: Rule
    verdict: Verdict
    detail: str


def judge(rule: Rule, subject: Subject) -> Judgement:
    if not subject.runs and rule.name not in ("launch", "manifest", "manifest-examples"):
        return Judgement(rule, NOT_EXERCISED, "the tool could not be started")
    found = rule.judge(subject)
    return Judgement(rule, found.verdict, found.detail)


def passed(detail: str) -> Finding:
    return Finding(PASS, detail)


def idle(why: str) -> Finding:
    return Finding(NOT_EXERCISED, why)


def failed(run: Observation | None, problem: str, fix: str, line: Line | None = None) -> Finding:
    where = f"{run.label}: " if run else ""
    if line is not None:
        return Finding(FAIL, f"{where}line {line.number}: {problem}: {line.excerpt} (fix: {fix})")
    return Finding(FAIL, f"{where}{problem} (fix: {fix})")
