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
from narratoria.narrator.llm.skill_guidance import CONSULT
from narratoria.narrator.protocol import NarratorRequest, ToolCard
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.tools import schema
from narratoria.tools.schema.schema_bounds import with_bounds

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
    return _object(properties, "narrative", "calls", "order")


def narrative_schema(longest: int = MAX_NARRATIVE) -> JsonObject:
    """The form of a narration alone, for when the calls are made already."""
    return _object({"narrative": {"type": "string", "minLength": 1, "maxLength": longest}}, "narrative")


def _object(properties: JsonObject, *required: str) -> JsonObject:
    closed = {"required": list(required), "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def _call_schema(names: Sequence[str], arguments: JsonObject) -> JsonObject:
    return _object({"tool": {"type": "string", "enum": list(names)}, "input": arguments}, "tool", "input")


def _input_schema(card: ToolCard) -> JsonObject:
    """A tool's parameters with every text and list bounded; free-form where they refer to definitions."""
    if not card.parameters or b'"$ref"' in msgspec.json.encode(card.parameters):
        return {"type": "object"}
    parameters = with_bounds(card.parameters, longest_text=_MAX_STRING, most_items=_MAX_ITEMS)
    aside = ("$schema", "$id", "title", "examples")
    return {key: value for key, value in parameters.items() if key not in aside}


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
    listed = offered if isinstance(offered, list) else []
    kept = [one.strip()[:_MAX_CHOICE] for one in listed if isinstance(one, str)]
    return tuple(dict.fromkeys(one for one in kept if one))[:MAX_CHOICES]


# --- a narration that is too long ends with a sentence, else with a word ------------------------------------------

_TAIL: Final = 400  # characters below the bound in which the last sentence is looked for
_ELLIPSIS: Final = "…"
# Each end is seen only with what follows it: a piece of a text has no ends that the whole has not.
_SENTENCE_END: Final = re.compile(
    r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？]+[」』”]*(?=[^。！？」』”])"
)


def shortened(text: str, limit: int) -> str:
    """`text` without the space around it, in at most `limit` characters; what is cut ends where a reader can stop."""
    text = text.strip()
    if len(text) <= limit:
        return text
    free, end = _free(limit), _last_end(text, limit)
    if end > free:
        return text[:end]
    tail = text[free : limit - len(_ELLIPSIS)]
    if not text[free + len(tail)].isspace() and (word := re.search(r"\s\S*$", tail)):
        tail = tail[: word.start()]
    return text[:free] + tail.rstrip(" \t\n,;:—–-") + _ELLIPSIS


class Shortening:
    """`shortened` for a text that comes in pieces: what `feed` and `end` give back makes up the same."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text = ""
        self._shown = 0

    def feed(self, piece: str) -> str:
        if len(self._text) <= 2 * self._limit:  # the rest is not shown in any case
            self._text = (self._text + piece).lstrip()
        free = min(len(self._text), _free(self._limit))
        return self._up_to(self._text, max(free, _last_end(self._text, self._limit)))

    def end(self) -> str:
        """The text that was held back and stands after all."""
        whole = shortened(self._text, self._limit)
        return self._up_to(whole, len(whole))

    def _up_to(self, text: str, end: int) -> str:
        fresh, self._shown = text[self._shown : end], max(self._shown, end)
        return fresh


def _free(limit: int) -> int:
    """Characters that are shown at once, before the end is known."""
    return limit - min(_TAIL, limit // 2)


def _last_end(text: str, limit: int) -> int:
    ends = [found.end() for found in _SENTENCE_END.finditer(text, _free(limit), limit + 8)]
    return max((end for end in ends if end <= limit), default=0)
