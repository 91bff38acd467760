"""The score of a narrator on prompts with expected calls."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, Final, NamedTuple

import jsonschema_rs

from narratoria.errors import PlanRejected
from narratoria.evals.case_sets import Case, ExpectedCall
from narratoria.evals.case_sets import EvaluationSetInvalid as EvaluationSetInvalid
from narratoria.evals.case_sets import load_set as load_set
from narratoria.evals.report import Counts, Outcome
from narratoria.evals.report import EvaluationReport as EvaluationReport
from narratoria.narrator.invocation import NarratorFailed
from narratoria.narrator.protocol import (
    Narrator,
    NarratorRequest,
    NoMatch,
    Refusal,
    ToolCard,
    declaration_of,
)
from narratoria.run.plan import PlanDocument, tool_name

_ARTICLES: Final = re.compile(r"\b(the|a|an|my|some)\b")
_ABSENT: Final = object()
COLUMNS: Final = {
    "exactTools": "tools",
    "done": "done",
    "offered": "offered",
    "wrong": "wrong",
    "missed": "missed",
    "valid": "valid",
    "slots": "slots",
    "order": "order",
    "refusals": "honest refusals",
    "falseRefusals": "false refusals",
}


async def evaluate(narrator: Narrator, cases: Sequence[Case]) -> EvaluationReport:
    """Ask `narrator` every prompt, after one unmeasured prompt per catalogue to warm up."""
    for case in {case.catalogue.name: case for case in cases}.values():
        await _ask(narrator, case)
    return EvaluationReport(narrator.name, tuple([await _outcome(narrator, case) for case in cases]), COLUMNS)


class _Answer(NamedTuple):
    plan: PlanDocument | None  # None for a refusal or a failure
    offers: Sequence[str] = ()  # requests to choose from
    failure: str = ""

    @property
    def calls(self) -> tuple[ExpectedCall, ...]:
        made = self.plan.tools if self.plan else ()
        return tuple(ExpectedCall(tool_name(call.tool_path), call.input) for call in made)


async def _ask(narrator: Narrator, case: Case, prompt: str | None = None) -> _Answer:
    request = NarratorRequest(
        prompt=case.prompt if prompt is None else prompt,
        state=case.catalogue.state,
        tools=case.catalogue.tools,
        premise=case.catalogue.premise,
    )
    try:
        plan = await narrator.plan(request)
        return _Answer(plan, declaration_of(narrator).choices)
    except NoMatch as refusal:
        return _Answer(None, refusal.choices if isinstance(refusal, Refusal) else ())
    except (NarratorFailed, PlanRejected) as error:
        return _Answer(None, failure=str(error) or type(error).__name__)


async def _outcome(narrator: Narrator, case: Case) -> Outcome:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = await _ask(narrator, case)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    cards = {card.name: card for card in case.catalogue.tools}
    plan, got, failure = answer.plan, answer.calls, answer.failure
    valid = not failure and (plan is None or _is_valid(plan, cards))
    fitting = (case.calls, *case.alternatives)
    scores = [_score(case, expected, got, plan, cards) for expected in fitting]
    best = max(scores, key=lambda one: (one["exactTools"], one["slots"][0] - one["slots"][1], one["order"]))
    exact = not failure and all(right == total for right, total in best.values())
    refused = not got and not failure
    offers = [(await _ask(narrator, case, offer)).calls for offer in answer.offers if not exact]
    offered = any(_is_offered(expected, got, offers, cards) for expected in fitting)
    wrong = not exact and not any(_is_part(got, expected, cards) for expected in fitting)
    counts: Counts = {
        **best,
        "done": (exact, 1),
        "offered": (offered and not exact, 1),
        "wrong": (wrong, 1),
        "missed": (not any((exact, offered, wrong)), 1),
        "valid": (valid, 1),
        "exactTools": (best["exactTools"][0] and not failure, 1),  # to fail is not to do nothing
        "refusals": (refused and case.idle, case.idle),
        "falseRefusals": (refused and not offered and case.serviceable, case.serviceable),
    }
    parts = (case.catalogue.name, *(f"#{tag}" for tag in case.tags))
    return Outcome(case.prompt, parts, counts, cpu, wall, failure)


def _is_offered(
    expected: tuple[ExpectedCall, ...],
    got: tuple[ExpectedCall, ...],
    offers: Sequence[tuple[ExpectedCall, ...]],
    cards: Mapping[str, ToolCard],
) -> bool:
    """Tell if what was done is right as far as it goes, and an offer leads to each call that is left."""
    left = _left_over(expected, got, cards)
    held_out = [offer[0] for offer in offers if len(offer) == 1]
    return bool(left) and all(
        any(_is_part((call,), (one,), cards) for call in held_out) for one in left or ()
    )


def _is_part(
    got: tuple[ExpectedCall, ...], expected: tuple[ExpectedCall, ...], cards: Mapping[str, ToolCard]
) -> bool:
    """Tell if every call that was made is an expected one, with its slots."""
    return _left_over(expected, got, cards) is not None


def _left_over(
    expected: tuple[ExpectedCall, ...], got: tuple[ExpectedCall, ...], cards: Mapping[str, ToolCard]
) -> list[ExpectedCall] | None:
    """The expected calls that were not made; None where another was made."""
    schemas = {card.name: card.parameters.get("properties", {}) for card in cards.values()}
    left = list(expected)
    for call in got:
        right = (one for one in left if one.tool == call.tool and _has_slots(one, call, schemas))
        fitting = next(right, None)
        if fitting is None:
            return None
        left.remove(fitting)
    return left


def _has_slots(want: ExpectedCall, have: ExpectedCall, schemas: Mapping[str, Any]) -> bool:
    hits, count = _slot_score(want, have, schemas)
    return hits == count


def _is_valid(plan: PlanDocument, cards: Mapping[str, ToolCard]) -> bool:
    """Tell if the plan is sound, and each call one of a tool there is with an input that its schema allows."""
    try:
        plan.check()
    except PlanRejected:
        return False
    known = [(cards.get(tool_name(call.tool_path)), call.input) for call in plan.tools]
    return all(card and jsonschema_rs.is_valid(dict(card.parameters), given) for card, given in known)


def _score(
    case: Case,
    expected: tuple[ExpectedCall, ...],
    got: tuple[ExpectedCall, ...],
    plan: PlanDocument | None,
    cards: Mapping[str, ToolCard],
) -> Counts:
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
    return {"exactTools": (tools_exact, 1), "slots": (right, total), "order": (kept, len(order))}


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
        options = wanted["$any"] if isinstance(wanted, Mapping) and "$any" in wanted else [wanted]
        right += any(_same(option, had) for option in options)
    return right, total


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
