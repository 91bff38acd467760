"""What the player could do instead: requests the catalogue serves, about things that are really there."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from narratoria.narrator.entities import Entity, is_person
from narratoria.narrator.profiles import Slot, ToolProfile
from narratoria.narrator.vectors import Vectors
from narratoria.narrator.words import PARTICLES, content_stems, split_name, stem

_CONSIDERED: Final = 24  # things weighed for a slot; a refusal should not take longer than a plan

_LIKE_ENOUGH: Final = 0.3
_FITTING: Final = 0.4
_SPOKEN: Final = 1.0  # how much rather a thing is chosen that the prompt names,
_RECALLED: Final = 0.5  # and one that a memory speaks of

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


class Reminder:
    """What the memories recalled for a turn speak of: a choice about such a thing is offered before others."""

    def __init__(self, memories: Sequence[str]) -> None:
        self._spoken_of = [content_stems(memory) for memory in memories]

    def rank(self, *texts: str) -> int:
        """The place of the first memory that names a thing one of these requests names; of a request, its first word
        is the deed. What no memory speaks of comes last."""
        things = {word for text in texts for word in _things_in(text)}
        ranks = (at for at, words in enumerate(self._spoken_of) if things & words)
        return next(ranks, len(self._spoken_of))

    def speaks_of(self, thing: Entity) -> bool:
        return any(thing.stems[-1] in words for words in self._spoken_of)

    def sorted(self, choices: Sequence[str]) -> list[str]:
        return sorted(choices, key=self.rank)


@lru_cache(maxsize=4_096)
def _things_in(request: str) -> frozenset[str]:
    _, _, rest = request.strip().partition(" ")
    return frozenset(content_stems(rest) - PARTICLES)


def suggest(
    tools: Sequence[ToolProfile],
    entities: Sequence[Entity],
    embed: Embed,
    spoken: Collection[str] = (),
    recalled: Sequence[str] = (),
) -> list[tuple[str, ToolProfile]]:
    """Requests as a player would type them, with the tool each should reach. A tool given twice gets two things, first.

    Things that were `spoken` of come before others of their kind, then those that `recalled` memories speak of; and so
    do the requests about these.
    """
    reminder = Reminder(recalled)
    firm = [entity for entity in entities if entity.firm]
    favour = {entity.value: _RECALLED for entity in firm if reminder.speaks_of(entity)}
    favour.update(dict.fromkeys(spoken, _SPOKEN))
    things = sorted(firm, key=lambda entity: -favour.get(entity.value, 0.0))[:_CONSIDERED]
    taken: set[tuple[str, str]] = set()
    # What has no example is often not meant for players: a rule's own tool, a helper of another.
    tools = [tool for tool in tools if tool.card.examples] or tools
    wording = [(_wording(tool, things, embed, taken, favour), tool) for tool in tools]
    found = [(text, tool) for text, tool in wording if text]
    names = [tool.card.name for tool in tools]
    return sorted(found, key=lambda one: (names.count(one[1].card.name) < 2, reminder.rank(one[0])))


def _wording(
    tool: ToolProfile,
    things: Sequence[Entity],
    embed: Embed,
    taken: set[tuple[str, str]],
    favour: Mapping[str, float],
) -> str:
    """ "" where an example speaks of things this world has not, and none that it has would do."""
    example, value, slot = _example(tool)
    if slot is None:
        named = any(s.kind == "text" and not s.quoted for s in tool.required)
        here = example if _is_all_here(tool, things) else ""
        return here if named and things else example or tool.card.description.rstrip(".")
    thing = _fitting(tool, slot, value, things, embed, taken, favour)
    if thing is None:
        return "" if things else example or tool.card.description.rstrip(".")
    taken.add((tool.card.name, thing.value))
    label = " ".join(split_name(thing.value)) if thing.value.islower() else thing.value.replace("_", " ")
    name = label[:1].isupper()
    if example and value:
        article = r"(?:(?P<article>the|an?|some|my)\s+)?"
        replaced, count = re.subn(
            rf"(?<!\w){article}{_as_said(value)}(?!\w)",
            lambda match: (
                label if name or not match["article"] else f"{_same_case('the', match['article'])} {label}"
            ),
            example,
            flags=re.IGNORECASE,
        )
        if count:
            return replaced
    return f"{' '.join(split_name(tool.card.name)).capitalize()} {'' if name else 'the '}{label}"


def _as_said(value: str) -> str:
    """A pattern for a value as an example may write it: `rose_bed` as "rose bed"."""
    return r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_]+", value) if word)


def _is_all_here(tool: ToolProfile, things: Sequence[Entity]) -> bool:
    """Whether every thing that the first example names is one of `things`."""
    known = {thing.value.casefold() for thing in things}
    values: Mapping[str, Any] = next(
        (e.get("input", {}) for e in tool.card.examples if e.get("description")), {}
    )
    named = [values.get(slot.name) for slot in tool.required if slot.kind == "text" and not slot.quoted]
    return bool(named) and all(isinstance(value, str) and value.casefold() in known for value in named)


def _same_case(word: str, like: str) -> str:
    return word.capitalize() if like[:1].isupper() else word


def _example(tool: ToolProfile) -> tuple[str, str, Slot | None]:
    """An example that names one thing at most, that thing, and the slot it is in."""
    named = [slot for slot in tool.required if slot.kind == "text" and not slot.quoted]
    if len(named) > 1:
        return next((str(e["description"]) for e in tool.card.examples if e.get("description")), ""), "", None
    slot = named[0] if named else None
    others = {s.name for s in tool.slots if s.kind == "text" and s is not slot and not s.quoted}
    for example in tool.card.examples:
        text, values = str(example.get("description", "")), example.get("input", {})
        if text and not others & values.keys():
            value = values.get(slot.name) if slot else ""
            return text, value if isinstance(value, str) else "", slot
    return "", "", slot


def _fitting(
    tool: ToolProfile,
    slot: Slot,
    value: str,
    things: Sequence[Entity],
    embed: Embed,
    taken: set[tuple[str, str]],
    favour: Mapping[str, float],
) -> Entity | None:
    """The thing most like what the slot is for: one of its kind by name, else by meaning."""
    free = [thing for thing in things if (tool.card.name, thing.value) not in taken]
    if not free:
        return None
    wanted = set(slot.words) | {stem(word) for word in split_name(value)}
    kind = [thing for thing in free if thing.holder in slot.words or thing.stems[-1] in slot.words]
    free = kind or [thing for thing in free if slot.person == is_person(thing)] or free
    elsewhere = {word for other in tool.slots if other is not slot for word in other.words}
    names = embed([thing.label for thing in free])
    likes = (
        names @ embed([value or slot.text, f"{value} {slot.text}".strip(), tool.card.description]).T
    ).max(axis=1)
    scores = [
        _favoured(
            float(like) + bool(thing.holders & wanted) - bool(set(thing.stems) & elsewhere),
            favour.get(thing.value, 0.0),
        )
        for like, thing in zip(likes, free, strict=True)
    ]
    return free[scores.index(max(scores))] if max(scores) > _LIKE_ENOUGH else None


def _favoured(score: float, favour: float) -> float:
    """A memory of the tower makes nobody eat it: only what fits by itself is chosen rather for being remembered."""
    return score + favour if favour >= _SPOKEN or score > _FITTING else score
