"""The small form in which a model answers, and the whole plan we make of it.

The model gives a narrative, calls with tool and input, and their order. Ids, paths, dependencies, retry policies
and metadata are ours: what a model does not write it cannot get wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from narratoria.agent.adapters.answers import json_in
from narratoria.errors import ArgumentsInvalid, PlanRejected, ToolValidationError
from narratoria.events import JsonObject
from narratoria.narrator.llm.shortening import shortened
from narratoria.narrator.llm.skill_guidance import CONSULT
from narratoria.narrator.protocol import NarratorRequest, ToolCard
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.tools import schema
from narratoria.tools.schema.bounding import with_bounds

MAX_NARRATIVE: Final = 1_200
MAX_CALLS: Final = 8
MAX_CHOICES: Final = 4
_MAX_CHOICE: Final = 80
_MAX_STRING: Final = 200
_MAX_ITEMS: Final = 16
_MAX_TYPED: Final = 32  # tools whose inputs are spelled out in the schema; a grammar for more is slow to make
# A terminal shows nothing of it.
_MARKUP: Final = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_ORDERS: Final = ("one_by_one", "together")


# --- the form ----------------------------------------------------------------------------------------------


def reply_schema(
    cards: Sequence[ToolCard],
    *,
    typed: bool = True,
    longest: int = MAX_NARRATIVE,
    readable: Sequence[str] = (),
) -> JsonObject:
    """The schema of a reply. Every text and every list has an end, or a small model writes for ever.

    `readable` names the skills and pages that the model may ask to read first.
    """
    calls: JsonObject = {"type": "array", "maxItems": MAX_CALLS if cards else 0}
    if cards:
        spelled = typed and len(cards) <= _MAX_TYPED
        items = [_call_schema([card.name], _input_schema(card)) for card in cards] if spelled else []
        loose = _call_schema([card.name for card in cards], {"type": "object"})
        calls["items"] = loose if not items else items[0] if len(items) == 1 else {"anyOf": items}
    else:
        calls["items"] = {"type": "object"}
    properties: JsonObject = {
        "narrative": {"type": "string", "minLength": 1, "maxLength": longest},
        "calls": calls,
        "order": {"type": "string", "enum": list(_ORDERS)},
        "choices": {
            "type": "array",
            "maxItems": MAX_CHOICES,
            "items": {"type": "string", "maxLength": _MAX_CHOICE},
        },
    }
    if readable:
        names: JsonObject = {"type": "string", "enum": list(readable)}
        properties = {CONSULT: {"type": "array", "maxItems": 2, "items": names}, **properties}
    return {
        "type": "object",
        "properties": properties,
        "required": ["narrative", "calls", "order"],
        "additionalProperties": False,
    }


def narrative_schema(longest: int = MAX_NARRATIVE) -> JsonObject:
    """The form of a narration alone, for when the calls are made already."""
    return {
        "type": "object",
        "properties": {"narrative": {"type": "string", "minLength": 1, "maxLength": longest}},
        "required": ["narrative"],
        "additionalProperties": False,
    }


def _call_schema(names: Sequence[str], arguments: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {"tool": {"type": "string", "enum": list(names)}, "input": arguments},
        "required": ["tool", "input"],
        "additionalProperties": False,
    }


def _input_schema(card: ToolCard) -> JsonObject:
    """A tool's parameters with every text and list bounded; free-form where they refer to definitions."""
    if not card.parameters or b'"$ref"' in msgspec.json.encode(card.parameters):
        return {"type": "object"}
    parameters = with_bounds(card.parameters, longest_text=_MAX_STRING, most_items=_MAX_ITEMS)
    return {
        key: value for key, value in parameters.items() if key not in ("$schema", "$id", "title", "examples")
    }


# --- from the form to a plan -------------------------------------------------------------------------------


def narrative_of(
    text: str, longest: int = MAX_NARRATIVE, note: Callable[[str], None] = lambda text: None
) -> str:
    """The narrative of a reply, `longest` characters at most; raise `PlanRejected` where there is none."""
    try:
        reply = json_in(text)
    except ArgumentsInvalid as error:
        raise PlanRejected([f"$: {problem}" for problem in error.problems]) from None
    narrative = reply.get("narrative")
    if not isinstance(narrative, str) or not narrative.strip():
        raise PlanRejected(["$.narrative: a text is needed"])
    told = shortened(narrative, longest)
    if not _MARKUP.sub("", told).strip():
        raise PlanRejected(["$.narrative: a text is needed; this is nothing but HTML"])
    if len(told) < len(narrative.strip()):
        note(f"the narration was shortened from {len(narrative.strip()):,} to {len(told):,} characters")
    return told


def plan_of(
    text: str, request: NarratorRequest, longest: int = MAX_NARRATIVE
) -> tuple[PlanDocument, tuple[str, ...]]:
    """The plan and the choices in a reply; raise `PlanRejected` with every problem, for the model to read."""
    narrative = narrative_of(text, longest, request.note)
    reply: JsonObject = json_in(text)
    cards = {card.name: card for card in request.tools}
    problems: list[str] = []
    calls = reply.get("calls", [])
    if not isinstance(calls, list):
        problems.append("$.calls: a list is needed")
        calls = []
    if len(calls) > MAX_CALLS:
        problems.append(f"$.calls: {len(calls)} calls; at most {MAX_CALLS}")
    order = reply.get("order", _ORDERS[0])
    if order not in _ORDERS:
        problems.append(f"$.order: one of {', '.join(_ORDERS)}, not {order!r}")
    planned = [
        one for index, call in enumerate(calls[:MAX_CALLS]) if (one := _call(call, index, cards, problems))
    ]
    if problems:
        raise PlanRejected(problems)
    together = order == "together" and len(planned) > 1
    tools = [one if together else _after(one, planned[:index]) for index, one in enumerate(planned)]
    plan = request.answer(narrative, tools, parallel=together)
    plan.check()
    return plan, _choices(reply.get("choices"))


def _call(call: Any, index: int, cards: Mapping[str, ToolCard], problems: list[str]) -> PlannedCall | None:
    where = f"$.calls[{index}]"
    if not isinstance(call, dict):
        problems.append(f"{where}: an object with tool and input is needed")
        return None
    card = cards.get(call.get("tool", "")) if isinstance(call.get("tool"), str) else None
    if card is None:
        known = ", ".join(list(cards)[:20]) or "none: answer without calls"
        problems.append(f"{where}.tool: {str(call.get('tool'))[:60]!r} is not among the tools: {known}")
        return None
    given = call.get("input", {})
    try:
        _parser(msgspec.json.encode(card.parameters or {"type": "object"}), card.name)(given)
    except ArgumentsInvalid as error:
        problems.extend(f"{where}.input: {problem}" for problem in error.problems[:5])
        return None
    return PlannedCall(tool_id=f"{card.name}-{index + 1}", tool_path=card.name, input=given, async_=True)


def _after(call: PlannedCall, earlier: Sequence[PlannedCall]) -> PlannedCall:
    dependencies = [earlier[-1].tool_id] if earlier else []
    return msgspec.structs.replace(call, dependencies=dependencies, async_=False)


@lru_cache(maxsize=256)
def _parser(parameters: bytes, name: str) -> Callable[[Any], Any]:
    try:
        return schema.parser_for_schema(msgspec.json.decode(parameters), name=name)
    except ToolValidationError:
        return lambda given: given  # a card that is no schema: the pipeline will judge the call


def _choices(offered: Any) -> tuple[str, ...]:
    kept = (
        [one.strip()[:_MAX_CHOICE] for one in offered if isinstance(one, str)]
        if isinstance(offered, list)
        else []
    )
    return tuple(dict.fromkeys(one for one in kept if one))[:MAX_CHOICES]
