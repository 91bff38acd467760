"""Calls near to a prompt that was not understood for certain, filled with what it names, and a form they are asked in.

The form, "Set alarm (hour: 6, minute: 45)", is read to the letter: an offer in it always leads to its call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from narratoria.narrator.english import words as en
from narratoria.narrator.english.named_things import Entity
from narratoria.narrator.local.tool_matching import Candidate
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_LIKELIEST: Final = 4  # candidates of a clause that are looked at
_SHORT: Final = 3  # letters: what is shorter is no beginning of a name
_FORM: Final = re.compile(r"\s*([^()]+?)\s*(?:\((.*)\)\s*)?")
_ENOUGH: Final = re.compile(r"\s*(?:[.;:(,]| so that | and )")  # a description goes on to say when or why


@dataclass(frozen=True, slots=True)
class NearCall:
    """A call that a prompt may mean."""

    tool: ToolProfile
    input: Mapping[str, Any]
    likely: float = 0.0  # the score of the tool

    @property
    def wordings(self) -> list[str]:
        """The tool's examples with the things and numbers of this call in them; without an input, what it is for."""
        found = (_reworded(text, values, self.input) for text, values in self.tool.examples)
        purpose = _ENOUGH.split(self.tool.card.description)[0]
        return [text for text in (*found, "" if self.input else purpose) if text]

    @property
    def form(self) -> str:
        """The call as a form; without an input, the name of the tool."""
        name = " ".join(en.split_name(self.tool.card.name)).capitalize()
        given = ", ".join(f"{_label(slot)}: {_shown(value)}" for slot, value in self._given())
        return f"{name} ({given})" if given else name

    def _given(self) -> Iterator[tuple[Slot, Any]]:
        return ((slot, self.input[slot.name]) for slot in self.tool.slots if slot.name in self.input)


def _reworded(text: str, shown: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """An example's text with other values; None where one of them does not stand in it."""
    if shown.keys() != given.keys():
        return None
    for name, value in given.items():
        if value == shown[name]:
            continue
        spelled = re.escape(_shown(shown[name])).replace(r"\ ", r"[\s_-]+")
        found = re.search(rf"(?<!\w)((?:the|an?|some) )?({spelled})(?!\w)", text, re.IGNORECASE)
        if found is None or isinstance(value, bool):
            return None
        said = _shown(value).title() if found[2].istitle() and found.start() else _shown(value)
        text = text[: found.start()] + ("the " if found[1] else "") + said + text[found.end() :]
    return text


def call_in_form(text: str, tools: Sequence[ToolProfile], things: Sequence[Entity]) -> NearCall | None:
    """The call that a form asks for; None where the text is none, or the tool would not take it."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    named = en.split_name(match[1].casefold())
    tool = next((one for one in tools if en.split_name(one.card.name) == named), None)
    if tool is None:
        return None
    slots = {_label(slot): slot for slot in tool.slots}
    labels = "|".join(map(re.escape, sorted(slots, key=len, reverse=True)))
    parts = re.split(rf"(?:^|,\s*)({labels}):\s*", match[2] or "") if labels else [match[2] or ""]
    given = [(slots[label], said.strip()) for label, said in zip(parts[1::2], parts[2::2], strict=True)]
    call = NearCall(tool, {slot.name: _meant(slot, said, things) for slot, said in given})
    return call if not parts[0].strip() and tool.accepts(call.input) else None


def near_calls(
    ranked: Sequence[Candidate], things: Sequence[Entity], said: Sequence[str], words: Sequence[str]
) -> Iterator[NearCall]:
    """The likeliest calls of a clause, best first: what they lack is filled with the things `said` and the words of
    the prompt. A tool that lacks more than the prompt names is passed over."""
    for candidate in ranked[:_LIKELIEST]:
        if candidate.grounded:
            yield from _Completion(candidate, things, said, words).calls()


class _Completion:
    """A candidate's input, completed with what else the prompt names."""

    def __init__(
        self, candidate: Candidate, things: Sequence[Entity], said: Sequence[str], words: Sequence[str]
    ) -> None:
        self.candidate, self.tool = candidate, candidate.tool
        self.known = [one for one in things if one.firm]
        known = {one.value: one for one in self.known}
        hinted = [value for value, one in known.items() if _is_hinted(one, words)]
        self.things = [known[value] for value in dict.fromkeys((*said, *hinted)) if value in known]
        self.words = words

    def calls(self) -> Iterator[NearCall]:
        given = self._given()
        flag = next((slot for slot in self.tool.slots if slot.kind == "flag" and slot.name in given), None)
        several = self.candidate.filling.lists.items()
        ways = [{**given, name: value} for name, values in several for value in values] or [given]
        if flag is not None:  # "douse the light": which of the two was not clear
            turned = [{**way, flag.name: not way[flag.name]} for way in ways]
            ways = turned + ways if self.candidate.opposite else ways + turned
        elif self.candidate.opposite:
            return
        likely = self.candidate.score
        yield from (NearCall(self.tool, way, likely) for way in ways if self.tool.accepts(way))

    def _given(self) -> dict[str, Any]:
        """The input, with values for what it lacks as far as the prompt has them."""
        filled = self.candidate.filling.input
        given = {name: value for name, value in filled.items() if not self._is_the_tools(value)}
        numbers = [int(word) for text in self.words for word in re.findall(r"\d{1,9}", text)]
        numbers = [number for number in numbers if number not in given.values()]
        for slot in self.tool.required:
            if slot.name not in given:
                value = numbers.pop(0) if slot.kind == "number" and numbers else self._value(slot, given)
                if value is not None:
                    given[slot.name] = value
        return given

    def _is_the_tools(self, value: Any) -> bool:
        """Tell if a thing is spoken of by the tool itself, and the prompt names another: the rope that is tied."""
        stems = {en.stem(word) for word in en.split_name(value)} if isinstance(value, str) else set()
        own = bool(stems) and stems <= {en.stem(word) for word in en.split_name(self.tool.card.name)}
        return own and any(one.value != value for one in self.things)

    def _value(self, slot: Slot, given: Mapping[str, Any]) -> Any:
        if slot.kind == "flag":
            return True
        if slot.kind == "choice":
            return next((one for one in slot.choices if _is_said(str(one), self.words)), None)
        if slot.kind != "text" or slot.quoted:
            return None
        kind = of_kind(slot, self.known)
        free = [
            one
            for one in self.things
            if one.value not in given.values() and not self._is_the_tools(one.value)
        ]
        return next((one.value for one in free if one in kind or not kind), None)


def of_kind(slot: Slot, things: Sequence[Entity]) -> list[Entity]:
    """Those that are called or kept as what the slot takes: `rooms` for a room, `furniture` for a piece of it."""
    return (
        [thing for thing in things if thing.holder in slot.words or thing.stems[-1] in slot.words]
        or [thing for thing in things if thing.holders & slot.words]
        or [thing for thing in things if thing.holder in slot.described]
    )


def _is_hinted(thing: Entity, words: Sequence[str]) -> bool:
    """Tell if a word of the prompt is a part or the beginning of a name: "riso" for the risograph."""
    parts = en.split_name(thing.label)
    return any(len(word) > _SHORT and part.startswith(en.stem(word)) for word in words for part in parts)


def _is_said(choice: str, words: Sequence[str]) -> bool:
    stems = {en.stem(word) for word in words}
    return any(en.stem(part) in stems for part in en.split_name(choice))


def _label(slot: Slot) -> str:
    return " ".join(en.split_name(slot.name))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.replace("_", " ") if isinstance(value, str) else str(value)


def _meant(slot: Slot, said: str, things: Sequence[Entity]) -> Any:
    if slot.kind == "flag":
        return {"yes": True, "no": False}.get(said.casefold(), said)
    if slot.kind == "number":
        return (float(said) if "." in said else int(said)) if re.fullmatch(r"-?\d+(\.\d+)?", said) else said
    values = slot.choices if slot.kind == "choice" else [one.value for one in things]
    return next((one for one in values if _shown(one).casefold() == said.casefold()), said)
