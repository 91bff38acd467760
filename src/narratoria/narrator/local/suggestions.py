"""Suggestions: requests the catalogue serves, in the words of its examples and names, about things that are there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from narratoria.narrator.embedding.vectors import Vectors
from narratoria.narrator.english import words as en
from narratoria.narrator.english.named_things import Entity, is_person, names_animal, names_somebody
from narratoria.narrator.local.near_calls import of_kind
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_CONSIDERED: Final = 24  # things weighed for a slot; a refusal should not take longer than a plan
_WAYS: Final = 3  # to ask for one tool
_LIKE_ENOUGH: Final = 0.3
_FITTING: Final = 0.4
_SPOKEN: Final = 1.0  # how much rather a thing is chosen that the prompt names,
_RECALLED: Final = 0.5  # and one that a memory speaks of
_ENOUGH: Final = re.compile(r"\s*(?:[.;:(,]| so that | and )")  # a description goes on to say when or why

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


class Reminder:
    """The things that recalled memories speak of: a choice about one is offered before others."""

    def __init__(self, memories: Sequence[str]) -> None:
        self._spoken_of = [en.content_stems(memory) for memory in memories]

    def rank(self, *texts: str) -> int:
        """The place of the first memory that names a thing one of these requests names; of a request, its first word
        is the verb. A request that no memory speaks of comes last."""
        things = {word for text in texts for word in _things_in(text)}
        ranks = (at for at, words in enumerate(self._spoken_of) if things & words)
        return next(ranks, len(self._spoken_of))

    def speaks_of(self, thing: Entity) -> bool:
        return any(thing.stems[-1] in words for words in self._spoken_of)


@lru_cache(maxsize=4_096)
def _things_in(request: str) -> frozenset[str]:
    _, _, rest = request.strip().partition(" ")
    return frozenset(en.content_stems(rest) - en.PARTICLES)


# --- the ways to ask for a tool, with gaps for things ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap for the name of a thing."""

    slot: Slot
    said: str = ""  # what the tool's example says there
    written: str = ""  # the same as it stands there, "the rose bed" for `rose_bed`
    article: str = "the"  # before what has no name of its own

    @property
    def texts(self) -> list[str]:
        """The texts that things are compared with for it."""
        return [f"{self.said} {self.slot.text}".strip(), self.said or self.slot.text]


Way: TypeAlias = tuple[str | Gap, ...]


def ways(tool: ToolProfile, here: Collection[str] = ()) -> list[Way]:
    """The ways to ask for a tool, best first: as its examples do, as its description says, by its name.

    An example may go without naming what it is about only where that is `here`.
    """
    shown = [_of_example(tool, text, values, here) for text, values in tool.examples]
    found = [way for way in (*shown, _of_description(tool), _of_name(tool)) if way]
    return sorted(found, key=lambda way: sum(isinstance(p, Gap) and not p.slot.required for p in way))[:_WAYS]


def _of_example(tool: ToolProfile, text: str, values: Any, here: Collection[str]) -> Way | None:
    gaps: list[tuple[int, int, Gap]] = []
    for slot in tool.slots:
        value = values.get(slot.name)
        if slot.kind != "text" or not isinstance(value, str) or not value:
            continue
        spelled = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_]+", value)))
        match = re.search(rf"""(?<![\w"“'])(?:(the|an?|some|my)\s+)?{spelled}(?!\w)""", text, re.IGNORECASE)
        if match:
            article = "the" if match[1] or _is_name(value) else ""
            gaps.append((*match.span(), Gap(slot, value, match[0], article)))
        elif not slot.quoted and value.casefold() not in here:
            return None
    parts: list[str | Gap] = []
    at = 0
    for start, end, gap in sorted(gaps, key=lambda one: one[:2]):
        parts += [text[at:start], gap]
        at = end
    return (*parts, text[at:])


def _of_description(tool: ToolProfile) -> Way | None:
    """ "Light the lantern." as it stands, up to where it says when or why; None where more must be named."""
    text = _ENOUGH.split(tool.card.description)[0]
    words = text.casefold().split()
    return (text,) if len(words) > 1 and words[0] in en.VERBS | en.NOUNISH and not tool.required else None


def _of_name(tool: ToolProfile) -> Way | None:
    """`move_drape` as "Move {drape}", `read_chart` as "Read the chart of {patient}"; None for a name of no action."""
    words = en.split_name(tool.card.name)
    told = [en.stem(word) for word in en.split_name(tool.card.description)[:1]]
    if len(tool.required) > 1 or not (words[0] in en.VERBS | en.NOUNISH or en.stem(words[0]) in told):
        return None
    if not tool.required:
        return (" ".join(words).capitalize(),) if len(words) > 1 else None
    slot = tool.required[0]
    while len(words) > 1 and en.stem(words[-1]) in slot.words:
        words = words[:-1]
    about = [word for word in words[1:] if word not in en.PARTICLES | en.PREPOSITIONS]
    if slot.name in en.PREPOSITIONS and words[-1] != slot.name:
        words = [*words, slot.name]
    elif slot.kind == "flag" or slot.quoted or (slot.kind != "text" and about):
        return None
    elif about and words[1:] == about:
        words = [words[0], "the", *about, "of"]
    return (" ".join(words).capitalize() + " ", Gap(slot, article="" if slot.kind == "choice" else "the"))


def _is_name(text: str) -> bool:
    """Tell if a text is spelled like a name, which is said without "the"."""
    return text[:1].isupper() or any(letter.isdigit() for letter in text)


def spoken(gap: Gap, value: str, *, named: bool = False) -> str:
    """A value as it is said in its gap: `rose_bed` as "the rose bed", `ada` as "Ada" where that is a name."""
    if value == gap.said:
        return gap.written
    label = " ".join(en.split_name(value)) if value.islower() else value.replace("_", " ")
    if named and label.islower():
        label = label.title()
    bare = _is_name(label) or not gap.article or label.split()[0] in en.DETERMINERS
    return label if bare else f"{gap.article} {label}"


# --- the things that fill the gaps ----------------------------------------------------------------------------


class Offer(NamedTuple):
    """Something that could be asked for, as a player would type it."""

    text: str
    tool: ToolProfile  # that it should reach
    values: tuple[str, ...]  # of its things, which the call should have
    sound: bool  # these are kept as what the tool takes; otherwise they are only like that


def suggest(
    tools: Sequence[ToolProfile],
    entities: Sequence[Entity],
    embed: Embed,
    named: Collection[str] = (),
    recalled: Sequence[str] = (),
) -> list[list[Offer]]:
    """Per tool the ways to ask for it, best first; the tools in the order they are to be offered.

    A tool given twice comes first, each time with other things. Things that the prompt `named` come before others of
    their kind, then those that `recalled` memories speak of; and so do the requests about these.
    """
    reminder = Reminder(recalled)
    favour = {one.value: _RECALLED for one in entities if one.firm and reminder.speaks_of(one)}
    favour.update(dict.fromkeys(named, _SPOKEN))
    stock = _Stock(entities, embed, favour)
    here = {one.value.casefold() for one in entities}
    asked = [(tool, ways(tool, here)) for tool in tools]
    gaps = [part for _, known in asked for way in known for part in way if isinstance(part, Gap)]
    stock.weigh([*(tool.card.description for tool in tools), *(text for gap in gaps for text in gap.texts)])
    offers = [stock.offers(tool, known) for tool, known in asked]
    times = Counter(tool.card.name for tool in tools)
    # Where most tools have examples, one that has none is often not meant for players: a helper of another.
    shown = 2 * sum(bool(tool.card.examples) for tool in tools) >= len(tools)

    def order(group: list[Offer]) -> tuple[bool, bool, bool, int]:
        first = group[0]
        helper = shown and not first.tool.card.examples
        return times[first.tool.card.name] < 2, helper, not first.sound, reminder.rank(first.text)

    return sorted((group for group in offers if group), key=order)


class _Pick(NamedTuple):
    value: str
    sound: bool


class _Stock:
    """The things of this world, for the gaps in requests."""

    def __init__(self, entities: Sequence[Entity], embed: Embed, favour: Mapping[str, float]) -> None:
        firm = sorted((one for one in entities if one.firm), key=lambda one: -favour.get(one.value, 0.0))
        self.things, self.embed, self.favour = firm[:_CONSIDERED], embed, favour
        # Called by name: people, and what the state says the kind of.
        self.named = {one.value for one in firm if is_person(one) or (one.kind and one.value.isalpha())}
        # By a tool's name: a second offer of it is about something else.
        self.taken: set[tuple[str, str]] = set()

    def weigh(self, texts: Sequence[str]) -> None:
        """Embeds at once what will be compared one by one: many texts cost little more than one."""
        if self.things:
            self.embed(list(dict.fromkeys([*(thing.label for thing in self.things), *texts])))

    def offers(self, tool: ToolProfile, known: Sequence[Way]) -> list[Offer]:
        """The requests for a tool, with a thing in each gap that no earlier offer of it has."""
        found: dict[str, Offer] = {}
        again = (tool.card.name, "") in self.taken
        for way in known:
            picks = self._fill(tool, way)
            if picks is None or (again and not picks):
                continue
            left = iter(picks)
            text = "".join(p if isinstance(p, str) else self._spoken(p, next(left).value) for p in way)
            values = tuple(pick.value for pick in picks)
            found.setdefault(text, Offer(text, tool, values, all(pick.sound for pick in picks)))
        things = {value for offer in found.values() for value in offer.values}
        self.taken |= {(tool.card.name, value) for value in things | {""}}
        return list(found.values())

    def _fill(self, tool: ToolProfile, way: Way) -> list[_Pick] | None:
        picks: list[_Pick] = []
        for gap in (part for part in way if isinstance(part, Gap)):
            pick = self._pick(tool, gap, {one.value for one in picks})
            if pick is None:
                return None
            picks.append(pick)
        return picks

    def _spoken(self, gap: Gap, value: str) -> str:
        stems = [en.stem(word) for word in en.split_name(value)]
        called = not (names_somebody(stems) or names_animal(stems))  # "the guard" is no name
        if gap.slot.kind == "choice" and any(value == thing.value for thing in self.things):
            gap = Gap(gap.slot)  # one of the things here, not a way to do it
        return spoken(gap, value, named=called and value in self.named)

    def _pick(self, tool: ToolProfile, gap: Gap, besides: Collection[str]) -> _Pick | None:
        """A thing or a choice for a gap; None where nothing here fits."""
        slot, name = gap.slot, tool.card.name
        if slot.kind == "choice":
            choices = [str(choice) for choice in slot.choices if (name, str(choice)) not in self.taken]
            best = max(choices, key=lambda choice: self.favour.get(choice, 0.0), default=None)
            return None if best is None else _Pick(best, True)
        as_shown = _Pick(gap.said, False) if gap.said and (slot.quoted or not self.things) else None
        free = [
            one for one in self.things if (name, one.value) not in self.taken and one.value not in besides
        ]
        kind = of_kind(slot, free)
        fitting = kind or [thing for thing in free if slot.person == is_person(thing)] or free
        if not fitting:
            return as_shown
        scores = self._scores(tool, gap, fitting, bool(kind))
        best_score = max(scores)
        thing = fitting[scores.index(best_score)]
        if not kind and best_score <= _LIKE_ENOUGH:
            return as_shown
        return _Pick(thing.value, bool(kind) or (thing.value in self.favour and best_score > _FITTING))

    def _scores(self, tool: ToolProfile, gap: Gap, things: Sequence[Entity], fit: bool) -> list[float]:
        wanted = gap.slot.words | {en.stem(word) for word in en.split_name(gap.said)}
        elsewhere = {word for other in tool.slots if other is not gap.slot for word in other.words}
        asked = self.embed([*gap.texts, tool.card.description])
        likes = self.embed([thing.label for thing in things]) @ asked.T
        scores = []
        for thing, like in zip(things, likes.max(axis=1), strict=True):
            score = float(like) + bool(thing.holders & wanted) - bool(set(thing.stems) & elsewhere)
            # A memory of the tower makes nobody eat it: only what fits by itself is favoured.
            scores.append(score + self.favour.get(thing.value, 0.0) * (fit or score > _FITTING))
        return scores
