"""Suggestions: requests the catalogue serves, about things that are really there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from narratoria.narrator.embedding.vectors import Vectors
from narratoria.narrator.english.named_things import Entity, is_person, names_animal, names_somebody
from narratoria.narrator.english.words import PARTICLES, content_stems, split_name, stem
from narratoria.narrator.local.request_wording import Place, Sentence, sentences, spoken
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_CONSIDERED: Final = 24  # things weighed for a slot; a refusal should not take longer than a plan
_WAYS: Final = 3  # to ask for one tool
_LIKE_ENOUGH: Final = 0.3
_FITTING: Final = 0.4
_SPOKEN: Final = 1.0  # how much rather a thing is chosen that the prompt names,
_RECALLED: Final = 0.5  # and one that a memory speaks of

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]


class Reminder:
    """The things that recalled memories speak of: a choice about one is offered before others."""

    def __init__(self, memories: Sequence[str]) -> None:
        self._spoken_of = [content_stems(memory) for memory in memories]

    def rank(self, *texts: str) -> int:
        """The place of the first memory that names a thing one of these requests names; of a request, its first word
        is the verb. A request that no memory speaks of comes last."""
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
    firm = [entity for entity in entities if entity.firm]
    favour = {entity.value: _RECALLED for entity in firm if reminder.speaks_of(entity)}
    favour.update(dict.fromkeys(named, _SPOKEN))
    things = sorted(firm, key=lambda entity: -favour.get(entity.value, 0.0))[:_CONSIDERED]
    ways = {tool.card.name: sentences(tool)[:_WAYS] for tool in tools}
    stock = _Stock(things, embed, favour, entities)
    stock.weigh((tool, place) for tool in tools for way in ways[tool.card.name] for place in way.places)
    offers = [_offers(tool, ways[tool.card.name], stock) for tool in tools]
    times = Counter(tool.card.name for tool in tools)
    # Where most tools have examples, one that has none is often not meant for players: a helper of another.
    shown = 2 * sum(bool(tool.card.examples) for tool in tools) >= len(tools)

    def order(group: list[Offer]) -> tuple[bool, bool, bool, int]:
        first = group[0]
        helper = shown and not first.tool.card.examples
        return times[first.tool.card.name] < 2, helper, not first.sound, reminder.rank(first.text)

    return sorted((group for group in offers if group), key=order)


def _offers(tool: ToolProfile, ways: Sequence[Sentence], stock: _Stock) -> list[Offer]:
    found: dict[str, Offer] = {}
    taken: set[str] = set()
    again = any(name == tool.card.name for name, _ in stock.taken)
    for way in ways:
        chosen = stock.fill(tool, way)
        if chosen is not None and (chosen or not again):
            values = iter(chosen)
            text = "".join(p if isinstance(p, str) else stock.spoken(p, next(values)) for p in way.parts)
            things = tuple(one.value for one in chosen)
            found.setdefault(text, Offer(text, tool, things, all(one.sound for one in chosen)))
            taken.update(things)
    stock.taken |= {(tool.card.name, value) for value in taken | {""}}
    return list(found.values())


class _Pick(NamedTuple):
    value: str
    sound: bool


class _Stock:
    """The things of this world, for the places in sentences."""

    def __init__(
        self,
        things: Sequence[Entity],
        embed: Embed,
        favour: Mapping[str, float],
        entities: Sequence[Entity],
    ) -> None:
        self.things, self.embed, self.favour = things, embed, favour
        self.people = {one.value for one in entities if one.firm and is_person(one)}
        self.kinds = {
            one.value for one in entities if one.kind
        }  # the state says what kind of thing each is: it has a name
        self.values = {one.value.casefold() for one in entities}
        self.taken: set[tuple[str, str]] = (
            set()
        )  # by a tool's name: a second offer of it is about something else

    def weigh(self, places: Iterable[tuple[ToolProfile, Place]]) -> None:
        """Embeds at once what will be compared one by one: many texts cost little more than one."""
        texts = [text for tool, place in places for text in _asked_for(tool, place)]
        if self.things and texts:
            self.embed(list(dict.fromkeys([*(thing.label for thing in self.things), *texts])))

    def fill(self, tool: ToolProfile, way: Sentence) -> list[_Pick] | None:
        """A thing for each place; None where there is none for one of them."""
        if not {value.casefold() for value in way.known} <= self.values:
            return None
        chosen: list[_Pick] = []
        for place in way.places:
            pick = self._pick(tool, place, {one.value for one in chosen})
            if pick is None:
                return None
            chosen.append(pick)
        return chosen

    def spoken(self, place: Place, pick: _Pick) -> str:
        if place.slot.kind == "choice" and pick.value.casefold() in self.values:
            place = replace(place, article="the")  # one of the things here, not a way to do it
        stems = [stem(word) for word in split_name(pick.value)]
        kept = pick.value in self.people or (pick.value in self.kinds and pick.value.isalpha())
        called = not (names_somebody(stems) or names_animal(stems))  # "the guard" is no name
        return spoken(place, pick.value, named=called and kept)

    def _pick(self, tool: ToolProfile, place: Place, besides: Collection[str]) -> _Pick | None:
        """A thing or a choice for a place that no other offer of the tool has."""
        slot, name = place.slot, tool.card.name
        if slot.kind == "choice":
            return self._pick_choice(name, slot)
        if not self.things:
            return _Pick(place.said, False) if place.said else None
        free = [
            one for one in self.things if (name, one.value) not in self.taken and one.value not in besides
        ]
        kind = _of_kind(slot, free)
        fitting = kind or [thing for thing in free if slot.person == is_person(thing)] or free
        likest = self._likest(tool, place, fitting, bool(kind))
        if likest is None or not (kind or likest[1] > _LIKE_ENOUGH):
            return _Pick(place.said, False) if place.free and place.said else None
        thing, like = likest
        return _Pick(thing.value, bool(kind) or (thing.value in self.favour and like > _FITTING))

    def _pick_choice(self, name: str, slot: Slot) -> _Pick | None:
        choices = [str(choice) for choice in slot.choices if (name, str(choice)) not in self.taken]
        best = max(choices, key=lambda choice: self.favour.get(choice, 0.0), default=None)
        return None if best is None else _Pick(best, True)

    def _likest(
        self, tool: ToolProfile, place: Place, things: Sequence[Entity], fit: bool
    ) -> tuple[Entity, float] | None:
        if not things:
            return None
        wanted = place.slot.words | {stem(word) for word in split_name(place.said)}
        elsewhere = {word for other in tool.slots if other is not place.slot for word in other.words}
        likes = self.embed([thing.label for thing in things]) @ self.embed(_asked_for(tool, place)).T
        scores = []
        for thing, like in zip(things, likes.max(axis=1), strict=True):
            score = float(like) + bool(thing.holders & wanted) - bool(set(thing.stems) & elsewhere)
            # A memory of the tower makes nobody eat it: only what fits by itself is favoured.
            scores.append(score + self.favour.get(thing.value, 0.0) * (fit or score > _FITTING))
        best = max(scores)
        return things[scores.index(best)], best


def _of_kind(slot: Slot, things: Sequence[Entity]) -> list[Entity]:
    """Those that are called or kept as what the slot takes: `rooms` for a room, `furniture` for a piece of it."""
    return (
        [thing for thing in things if thing.holder in slot.words or thing.stems[-1] in slot.words]
        or [thing for thing in things if thing.holders & slot.words]
        or [thing for thing in things if thing.holder in slot.described]
    )


def _asked_for(tool: ToolProfile, place: Place) -> list[str]:
    said, slot = place.said, place.slot
    return [said or slot.text, f"{said} {slot.text}".strip(), tool.card.description]
