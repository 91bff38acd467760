"""How well does a narrator understand? Prompts with expected calls, and a narrator's score on them."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from narratoria.errors import NarratoriaError, PlanRejected
from narratoria.narrator.protocol import Narrator, NarratorRequest, NoMatch, ToolCard
from narratoria.plan import PlanDocument

_ARTICLES: Final = re.compile(r"\b(the|a|an|my|some)\b")
_ABSENT: Final = object()


class EvaluationSetInvalid(NarratoriaError):
    """A set of prompts cannot be used; the message names the file, the line and the key."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    name: str
    tools: tuple[ToolCard, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    premise: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    tool: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    catalogue: Catalogue
    prompt: str
    calls: tuple[ExpectedCall, ...]
    order: tuple[tuple[int, int], ...] = ()
    alternatives: tuple[tuple[ExpectedCall, ...], ...] = ()
    tags: frozenset[str] = frozenset()


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

    @property
    def exact(self) -> bool:
        return (
            self.tools_exact
            and self.slots_right == self.slots_total
            and self.orders_right == self.orders_total
        )


@dataclass(frozen=True, slots=True)
class Report:
    narrator: str
    outcomes: tuple[Outcome, ...]

    @property
    def valid(self) -> float:
        return share([not outcome.problems for outcome in self.outcomes])

    @property
    def exact_tools(self) -> float:
        return share([outcome.tools_exact for outcome in self.outcomes])

    @property
    def slots(self) -> float:
        total = sum(outcome.slots_total for outcome in self.outcomes)
        return sum(outcome.slots_right for outcome in self.outcomes) / total if total else 1.0

    @property
    def order(self) -> float:
        total = sum(outcome.orders_total for outcome in self.outcomes)
        return sum(outcome.orders_right for outcome in self.outcomes) / total if total else 1.0

    @property
    def exact_plans(self) -> float:
        return share([outcome.exact for outcome in self.outcomes])

    @property
    def refusals(self) -> float:
        """Of the prompts nothing can serve, the share that led to no call."""
        return share([not outcome.got for outcome in self.outcomes if "nothing" in outcome.case.tags])

    @property
    def false_refusals(self) -> float:
        """Of the prompts that can be served, the share that led to no call."""
        served = [outcome for outcome in self.outcomes if outcome.case.calls]
        return share([not outcome.got for outcome in served]) if served else 0.0

    @property
    def cpu_ms(self) -> tuple[float, float]:
        """Median and 95th percentile of CPU milliseconds per prompt."""
        return milliseconds([outcome.cpu_seconds for outcome in self.outcomes])

    def only(self, *, catalogue: str | None = None, tag: str | None = None) -> Report:
        kept = [
            outcome
            for outcome in self.outcomes
            if (catalogue is None or outcome.case.catalogue.name == catalogue)
            and (tag is None or tag in outcome.case.tags)
        ]
        return Report(self.narrator, tuple(kept))

    def to_data(self) -> dict[str, Any]:
        median, late = self.cpu_ms
        return {
            "narrator": self.narrator,
            "prompts": len(self.outcomes),
            "valid": round(self.valid, 4),
            "exactTools": round(self.exact_tools, 4),
            "slots": round(self.slots, 4),
            "order": round(self.order, 4),
            "exactPlans": round(self.exact_plans, 4),
            "refusals": round(self.refusals, 4),
            "falseRefusals": round(self.false_refusals, 4),
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
                f"{share:>7.0%}"
                for share in (part.valid, part.exact_tools, part.slots, part.order, part.exact_plans)
            )
            lines.append(f"{label:<12}{len(part.outcomes):>8}{shares}{part.cpu_ms[0]:>8.1f}")
        lines.append(f"honest refusals {self.refusals:.0%}, false refusals {self.false_refusals:.0%}")
        return "\n".join(lines)


# --- reading sets --------------------------------------------------------------------------------------


def load_catalogue(path: Path) -> Catalogue:
    data = _json(path.read_text(encoding="utf-8"), str(path))
    cards = [
        ToolCard(
            name=tool["name"],
            description=tool["description"],
            parameters=tool.get("parameters", {}),
            examples=tuple(tool.get("examples", ())),
            skill=tool.get("skill"),
        )
        for tool in data["tools"]
    ]
    return Catalogue(data["name"], tuple(cards), data.get("state", {}), data.get("premise", ""))


def load_set(path: Path) -> list[Case]:
    """The cases of a JSON Lines file; their catalogues lie in `catalogues/` beside it."""
    catalogues: dict[str, Catalogue] = {}
    cases = []
    for where, data in read_lines(path):
        missing = {"catalogue", "prompt", "calls"} - data.keys()
        if missing:
            other = "; it is about a story's rules: narratoria.narrator.story_sets" if "story" in data else ""
            raise EvaluationSetInvalid(
                f"{where}: no {', '.join(sorted(missing))}{other}; see evals/README.md"
            )
        name = data["catalogue"]
        if name not in catalogues:
            file = path.parent / "catalogues" / f"{name}.json"
            if not file.is_file():
                raise EvaluationSetInvalid(f"{where}: no catalogue {name!r}; expected it at {file}")
            catalogues[name] = load_catalogue(file)
        cases.append(
            Case(
                catalogues[name],
                data["prompt"],
                _expected(data["calls"]),
                tuple((first, second) for first, second in data.get("order", ())),
                tuple(_expected(calls) for calls in data.get("alternatives", ())),
                frozenset(data.get("tags", ())),
            )
        )
    return cases


def read_lines(path: Path, most: int | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a JSON Lines file, at most so many, each with the words for where it stands."""
    found: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and (most is None or len(found) < most):
            found.append((f"{path}, line {number}", _json(line, f"{path}, line {number}")))
    if not found:
        raise EvaluationSetInvalid(
            f"{path}: no prompts; write one JSON object per line, as evals/README.md tells"
        )
    return found


def _json(text: str, where: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise EvaluationSetInvalid(f"{where}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise EvaluationSetInvalid(f"{where}: expected an object")
    return data


def _expected(calls: Sequence[Mapping[str, Any]]) -> tuple[ExpectedCall, ...]:
    return tuple(ExpectedCall(call["tool"], call.get("input", {})) for call in calls)


# --- scoring -------------------------------------------------------------------------------------------


async def evaluate(narrator: Narrator, cases: Sequence[Case]) -> Report:
    """Ask `narrator` every prompt, after one unmeasured prompt per catalogue to warm up."""
    for case in {case.catalogue.name: case for case in cases}.values():
        await _ask(narrator, case)
    return Report(narrator.name, tuple([await _outcome(narrator, case) for case in cases]))


async def _ask(narrator: Narrator, case: Case) -> PlanDocument | None:
    request = NarratorRequest(
        prompt=case.prompt,
        state=case.catalogue.state,
        tools=case.catalogue.tools,
        premise=case.catalogue.premise,
    )
    try:
        return await narrator.plan(request)
    except NoMatch:
        return None


async def _outcome(narrator: Narrator, case: Case) -> Outcome:
    wall, cpu = time.perf_counter(), time.process_time()
    plan = await _ask(narrator, case)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    cards = {card.path or card.name: card for card in case.catalogue.tools}
    calls = plan.tools if plan else []
    got = tuple(
        ExpectedCall(cards[call.tool_path].name if call.tool_path in cards else call.tool_path, call.input)
        for call in calls
    )
    problems = tuple(_problems(plan, cards)) if plan else ()
    scores = [_score(case, expected, got, plan, cards) for expected in (case.calls, *case.alternatives)]
    tools_exact, slots_right, slots_total, orders_right, orders_total = max(
        scores, key=lambda score: (score[0], score[1] - score[2], score[3])
    )
    return Outcome(
        case, got, problems, tools_exact, slots_right, slots_total, orders_right, orders_total, cpu, wall
    )


def _problems(plan: PlanDocument, cards: Mapping[str, ToolCard]) -> Iterator[str]:
    try:
        plan.check()
    except PlanRejected as rejected:
        yield from rejected.problems
    for call in plan.tools:
        card = cards.get(call.tool_path)
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


def share(hits: Sequence[bool]) -> float:
    """How many of them, from 0 to 1; of none, all."""
    return sum(hits) / len(hits) if hits else 1.0


def milliseconds(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    times = sorted(1000 * one for one in seconds)
    return (statistics.median(times), times[int(0.95 * (len(times) - 1))]) if times else (0.0, 0.0)
