"""Suggestions: calls that can be made here, for a prompt that none of them serves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from narratoria.narrator.embedding.vectors import Vectors
from narratoria.narrator.english import words as en
from narratoria.narrator.english.named_things import Entity, is_person
from narratoria.narrator.local.near_calls import NearCall, of_kind
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_CONSIDERED: Final = 24  # things weighed for a slot; a refusal should not take longer than a plan
_LIKE_ENOUGH: Final = 0.3
_FITTING: Final = 0.4
_SPOKEN: Final = 1.0  # how much rather a thing is chosen that the prompt names,
_RECALLED: Final = 0.5  # and one that a memory speaks of
SOUND: Final = (
    1.0  # how likely a call is whose things are kept as what its tool takes, and not only like that
)

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


def suggest(
    tools: Sequence[ToolProfile],
    entities: Sequence[Entity],
    embed: Embed,
    named: Collection[str] = (),
    recalled: Sequence[str] = (),
) -> list[NearCall]:
    """A call of each tool, in the order they are to be offered.

    A tool given twice comes first, each time with other things. Things that the prompt `named` come before others of
    their kind, then those that `recalled` memories speak of; and so do the calls about these.
    """
    reminder = Reminder(recalled)
    favour = {one.value: _RECALLED for one in entities if one.firm and reminder.speaks_of(one)}
    favour.update(dict.fromkeys(named, _SPOKEN))
    stock = _Stock(entities, embed, favour)
    stock.weigh([text for tool in tools for slot in tool.slots for text in _texts(tool, slot)])
    calls = [call for tool in tools if (call := stock.call(tool)) is not None]
    # Where most tools have examples, one that has none is often not meant for players: a helper of another.
    shown = 2 * sum(bool(tool.card.examples) for tool in tools) >= len(tools)

    def order(call: NearCall) -> tuple[bool, bool, bool, int]:
        helper = shown and not call.tool.card.examples
        return tools.count(call.tool) < 2, helper, call.likely < SOUND, reminder.rank(call.form)

    return sorted(calls, key=order)


def _texts(tool: ToolProfile, slot: Slot) -> list[str]:
    """The texts that things are compared with for a slot of names."""
    shown = [str(values[slot.name]) for _, values in tool.examples if slot.name in values]
    return [slot.text, *shown, tool.card.description] if slot.kind == "text" else []


class _Stock:
    """The things of this world, for the slots of calls."""

    def __init__(self, entities: Sequence[Entity], embed: Embed, favour: Mapping[str, float]) -> None:
        firm = sorted((one for one in entities if one.firm), key=lambda one: -favour.get(one.value, 0.0))
        self.things, self.embed, self.favour = firm[:_CONSIDERED], embed, favour
        self.taken: set[tuple[str, Any]] = set()  # by a tool's name: its next call is about something else

    def weigh(self, texts: Sequence[str]) -> None:
        """Embeds at once what will be compared one by one: many texts cost little more than one."""
        if self.things:
            self.embed(list(dict.fromkeys([*(thing.label for thing in self.things), *texts])))

    def call(self, tool: ToolProfile) -> NearCall | None:
        """A call like one of the tool's examples, with things that are here; None where nothing fits."""
        calls = (self._filled(tool, values) for values in (*(shown for _, shown in tool.examples), {}))
        fitting = [call for call in calls if call is not None and tool.accepts(call.input)]
        best = max(fitting, key=lambda call: call.likely, default=None)
        if best is not None:
            self.taken |= {(tool.card.name, one) for one in best.input.values() if isinstance(one, str)}
        return best

    def _filled(self, tool: ToolProfile, shown: Mapping[str, Any]) -> NearCall | None:
        given = dict(shown)
        sound = True
        for slot in tool.slots:
            if slot.kind in ("text", "choice") and (slot.required or slot.name in shown):
                value, sure = self._pick(tool, slot, shown.get(slot.name), given.values())
                if value is None:
                    return None
                given[slot.name] = value
                sound &= sure
        return NearCall(tool, given, SOUND * sound)

    def _pick(self, tool: ToolProfile, slot: Slot, shown: Any, besides: Collection[Any]) -> tuple[Any, bool]:
        """A thing or a choice for a slot, and True where it surely fits; None where nothing here does."""
        name = tool.card.name
        if slot.kind == "choice":
            choices = [choice for choice in slot.choices if (name, choice) not in self.taken]
            return max(choices, key=lambda choice: self.favour.get(str(choice), 0.0), default=None), True
        if slot.quoted or not self.things:
            return shown, False
        free = [one for one in self.things if (name, one.value) not in self.taken]
        free = [one for one in free if one.value == shown or one.value not in besides]
        kind = of_kind(slot, free)
        fitting = kind or [thing for thing in free if slot.person == is_person(thing)] or free
        scored = list(self._scored(tool, slot, fitting, bool(kind)))
        score, best = max(scored, key=lambda one: one[0], default=(0.0, None))
        if best is None or (not kind and score <= _LIKE_ENOUGH):
            return None, False
        return best.value, bool(kind) or (best.value in self.favour and score > _FITTING)

    def _scored(
        self, tool: ToolProfile, slot: Slot, things: Sequence[Entity], fit: bool
    ) -> Iterator[tuple[float, Entity]]:
        if not things:
            return
        likes = self.embed([thing.label for thing in things]) @ self.embed(_texts(tool, slot)).T
        for thing, like in zip(things, likes.max(axis=1), strict=True):
            score = float(like) + bool(thing.holders & slot.words)
            # A memory of the tower makes nobody eat it: only what fits by itself is favoured.
            yield score + self.favour.get(thing.value, 0.0) * (fit or score > _FITTING), thing
