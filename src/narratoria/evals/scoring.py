"""The score of a narrator on prompts with expected calls."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final

import jsonschema_rs

from narratoria.errors import PlanRejected
from narratoria.evals.case_sets import Case, ExpectedCall
from narratoria.evals.case_sets import EvaluationSetInvalid as EvaluationSetInvalid
from narratoria.evals.case_sets import load_set as load_set
from narratoria.evals.metrics import milliseconds, percent, ratio, rounded, share
from narratoria.narrator.invocation import NarratorFailed
from narratoria.narrator.protocol import Narrator, NarratorRequest, NoMatch, ToolCard
from narratoria.run.plan import PlanDocument, tool_name

_ARTICLES: Final = re.compile(r"\b(the|a|an|my|some)\b")
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prompt's score against the alternative that fits best."""

    case: Case
    got: tuple[ExpectedCall, ...]
    problems: tuple[str, ...]  # why the plan is invalid
    tools_exact: bool
    slots_right: int
    slots_total: int  # slots of the calls whose tool was found, and slots that should not be there
    orders_right: int
    orders_total: int
    cpu_seconds: float
    wall_seconds: float
    failure: str = ""  # why there is no answer at all, neither a plan nor a refusal

    @property
    def refused(self) -> bool:
        return not self.got and not self.failure

    @property
    def exact(self) -> bool:
        return (
            self.tools_exact
            and self.slots_right == self.slots_total
            and self.orders_right == self.orders_total
        )


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    narrator: str
    outcomes: tuple[Outcome, ...]

    @property
    def valid(self) -> float:
        return share([not outcome.problems and not outcome.failure for outcome in self.outcomes])

    @property
    def exact_tools(self) -> float:
        return share([outcome.tools_exact for outcome in self.outcomes])

    @property
    def slots(self) -> float:
        total = sum(outcome.slots_total for outcome in self.outcomes)
        return ratio(sum(outcome.slots_right for outcome in self.outcomes), total)

    @property
    def order(self) -> float:
        total = sum(outcome.orders_total for outcome in self.outcomes)
        return ratio(sum(outcome.orders_right for outcome in self.outcomes), total)

    @property
    def exact_plans(self) -> float:
        return share([outcome.exact for outcome in self.outcomes])

    @property
    def refusals(self) -> float:
        """Of the prompts by which nothing is to be done, the share that led to no call."""
        return share([outcome.refused for outcome in self.outcomes if outcome.case.idle])

    @property
    def false_refusals(self) -> float:
        """Of the prompts that can be served, the share that led to no call."""
        return share([outcome.refused for outcome in self.outcomes if outcome.case.serviceable])

    @property
    def failures(self) -> list[Outcome]:
        """Those without an answer: the narrator raised, was too slow, or gave what is no plan."""
        return [outcome for outcome in self.outcomes if outcome.failure]

    @property
    def cpu_ms(self) -> tuple[float, float]:
        """Median and 95th percentile of CPU milliseconds per prompt."""
        return milliseconds([outcome.cpu_seconds for outcome in self.outcomes])

    def only(self, *, catalogue: str | None = None, tag: str | None = None) -> EvaluationReport:
        kept = [
            outcome
            for outcome in self.outcomes
            if (catalogue is None or outcome.case.catalogue.name == catalogue)
            and (tag is None or tag in outcome.case.tags)
        ]
        return EvaluationReport(self.narrator, tuple(kept))

    def to_data(self) -> dict[str, Any]:
        median, late = self.cpu_ms
        return {
            "narrator": self.narrator,
            "prompts": len(self.outcomes),
            "failures": len(self.failures),
            "valid": rounded(self.valid),
            "exactTools": rounded(self.exact_tools),
            "slots": rounded(self.slots),
            "order": rounded(self.order),
            "exactPlans": rounded(self.exact_plans),
            "refusals": rounded(self.refusals),
            "falseRefusals": rounded(self.false_refusals),
            "cpuMsMedian": round(median, 2),
            "cpuMs95": round(late, 2),
        }

    def render(self) -> str:
        """A table for people: the whole set, then by catalogue, then by tag."""
        rows = [("all", self)]
        names = sorted({outcome.case.catalogue.name for outcome in self.outcomes})
        tags = sorted({tag for outcome in self.outcomes for tag in outcome.case.tags})
        rows += [(name, self.only(catalogue=name)) for name in names]
        rows += [(f"#{tag}", self.only(tag=tag)) for tag in tags]
        lines = [
            f"{'':<12}{'prompts':>8}{'valid':>7}{'tools':>7}{'slots':>7}{'order':>7}{'plans':>7}{'cpu ms':>8}"
        ]
        for label, part in rows:
            shares = "".join(
                f"{percent(share):>7}"
                for share in (part.valid, part.exact_tools, part.slots, part.order, part.exact_plans)
            )
            lines.append(f"{label:<12}{len(part.outcomes):>8}{shares}{part.cpu_ms[0]:>8.1f}")
        lines.append(
            f"honest refusals {percent(self.refusals)}, false refusals {percent(self.false_refusals)}"
        )
        if self.failures:
            lines.append(f"no answer to {len(self.failures)} of {len(self.outcomes)} prompts")
        return "\n".join(lines)


# --- scoring -------------------------------------------------------------------------------------------


async def evaluate(narrator: Narrator, cases: Sequence[Case]) -> EvaluationReport:
    """Ask `narrator` every prompt, after one unmeasured prompt per catalogue to warm up."""
    for case in {case.catalogue.name: case for case in cases}.values():
        await _ask(narrator, case)
    return EvaluationReport(narrator.name, tuple([await _outcome(narrator, case) for case in cases]))


async def _ask(narrator: Narrator, case: Case) -> tuple[PlanDocument | None, str]:
    """Its plan, None for a refusal; and why it failed, where it did."""
    request = NarratorRequest(
        prompt=case.prompt,
        state=case.catalogue.state,
        tools=case.catalogue.tools,
        premise=case.catalogue.premise,
    )
    try:
        return await narrator.plan(request), ""
    except NoMatch:
        return None, ""
    except (NarratorFailed, PlanRejected) as error:
        return None, str(error) or type(error).__name__


async def _outcome(narrator: Narrator, case: Case) -> Outcome:
    wall, cpu = time.perf_counter(), time.process_time()
    plan, failure = await _ask(narrator, case)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    cards = {card.name: card for card in case.catalogue.tools}
    calls = plan.tools if plan else []
    got = tuple(ExpectedCall(tool_name(call.tool_path), call.input) for call in calls)
    problems = tuple(_problems(plan, cards)) if plan else ()
    scores = [_score(case, expected, got, plan, cards) for expected in (case.calls, *case.alternatives)]
    tools_exact, slots_right, slots_total, orders_right, orders_total = max(
        scores, key=lambda score: (score[0], score[1] - score[2], score[3])
    )
    return Outcome(
        case,
        got,
        problems,
        tools_exact and not failure,  # to have done nothing is right only for one that answered
        slots_right,
        slots_total,
        orders_right,
        orders_total,
        cpu,
        wall,
        failure,
    )


def _problems(plan: PlanDocument, cards: Mapping[str, ToolCard]) -> Iterator[str]:
    try:
        plan.check()
    except PlanRejected as rejected:
        yield from rejected.problems
    for call in plan.tools:
        card = cards.get(tool_name(call.tool_path))
        if card is None:
            yield f"{call.tool_id}: no tool {call.tool_path!r} in the catalogue"
            continue
        validator = jsonschema_rs.validator_for(dict(card.parameters))
        for error in validator.iter_errors(call.input):
            yield f"{call.tool_id}: {error.message}"


def _score(
    case: Case,
    expected: tuple[ExpectedCall, ...],
    got: tuple[ExpectedCall, ...],
    plan: PlanDocument | None,
    cards: Mapping[str, ToolCard],
) -> tuple[bool, int, int, int, int]:
    tools_exact = sorted(call.tool for call in expected) == sorted(call.tool for call in got)
    schemas = {card.name: card.parameters.get("properties", {}) for card in cards.values()}
    pairs = _pair(expected, got, schemas)
    right = total = 0
    for want, have in pairs.items():
        hits, count = _slot_score(expected[want], got[have], schemas)
        right, total = right + hits, total + count
    order = case.order if expected is case.calls else ()
    kept = sum(
        first in pairs
        and second in pairs
        and plan is not None
        and _precedes(plan, pairs[first], pairs[second])
        for first, second in order
    )
    return tools_exact, right, total, kept, len(order)


def _pair(
    expected: tuple[ExpectedCall, ...], got: tuple[ExpectedCall, ...], schemas: Mapping[str, Any]
) -> dict[int, int]:
    """Expected calls to made calls of the same tool, so that most slots agree."""
    pairs: dict[int, int] = {}
    for tool in {call.tool for call in expected}:
        wants = [index for index, call in enumerate(expected) if call.tool == tool]
        haves = [index for index, call in enumerate(got) if call.tool == tool][:6]
        swap = len(wants) > len(haves)
        short, long = (haves, wants) if swap else (wants, haves)
        best: tuple[float, list[tuple[int, int]]] = (-1.0, [])
        for chosen in permutations(long[:6], len(short)):
            match = [(w, h) if not swap else (h, w) for w, h in zip(short, chosen, strict=True)]
            hits = float(sum(_slot_score(expected[w], got[h], schemas)[0] for w, h in match))
            best = max(best, (hits, match), key=lambda option: option[0])
        pairs.update(best[1])
    return pairs


def _slot_score(want: ExpectedCall, have: ExpectedCall, schemas: Mapping[str, Any]) -> tuple[int, int]:
    properties = schemas.get(want.tool, {})
    right = total = 0
    for name in want.input.keys() | have.input.keys():
        default = properties.get(name, {}).get("default", _ABSENT)
        wanted, had = want.input.get(name, default), have.input.get(name, default)
        if name not in want.input and had is default:
            continue
        total += 1
        right += any(_same(option, had) for option in _options(wanted))
    return right, total


def _options(wanted: Any) -> list[Any]:
    if isinstance(wanted, Mapping) and "$any" in wanted:
        return list(wanted["$any"])
    return [wanted]


def _same(wanted: Any, had: Any) -> bool:
    if isinstance(wanted, str) and isinstance(had, str):
        return _plain(wanted) == _plain(had)
    if isinstance(wanted, bool) or isinstance(had, bool):
        return wanted is had
    return bool(wanted == had)


def _plain(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", re.sub(r"[^\w\s]", " ", text.casefold())).split())


def _precedes(plan: PlanDocument, first: int, second: int) -> bool:
    needs = {call.tool_id: call.all_dependencies for call in plan.tools}
    goal, waiting, seen = plan.tools[first].tool_id, [plan.tools[second].tool_id], set[str]()
    while waiting:
        for dependency in needs.get(waiting.pop(), ()):
            if dependency == goal:
                return True
            if dependency not in seen:
                seen.add(dependency)
                waiting.append(dependency)
    return False
