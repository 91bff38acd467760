"""Pronouns in a slot: the latest thing that may be meant, or several that were named together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.named_things import ANIMALS, PEOPLE, SHIPS, is_being
from narratoria.narrator.english.phrases import GIVES, Reading
from narratoria.narrator.english.words import stem, stems_of
from narratoria.narrator.local.filled_slots import Filling, Recent
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

ANYTHING: Final = stems_of("tools.anything")  # kinds of no kind
_SOMEBODY: Final = words("classes.somebody")
_SHE: Final = words("classes.she")


def is_of_its_kind(slot: Slot, value: str, recent: Recent) -> bool:
    """Tell if a slot may hold a value: one that is named for a kind of thing in the state takes only such a thing."""
    kind = recent.of_kind(slot.words - ANYTHING)
    return not kind or slot.quoted or value in kind


def meant_together(
    pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading
) -> tuple[str, ...]:
    """The last list that "them" can stand for in this slot; none where it stands for one or for nothing."""
    kind = recent.of_kind(slot.words - ANYTHING)
    elsewhere = _elsewhere(slot, filling, reading)
    for group in reversed(recent.groups if pronoun in words("classes.together") else ()):
        fits = tuple(one for one in group if one not in elsewhere and (not kind or one in kind))
        if len(fits) > 1:
            return fits
    return ()


def left_out_of_a_gift(reading: Reading, tool: ToolProfile, filling: Filling) -> str:
    """Somebody who is given something that a tool has no place for, or takes for a thing.

    "Give the candle to Mira" lights no candle, and "give the key to the guard" unlocks no guard.
    """
    if reading.verb not in GIVES or stem(reading.verb) in tool.verbs:
        return ""
    asked = [
        slot for slot in tool.slots if str(slot.schema.get("description")).casefold().startswith("what ")
    ]
    things = {at for slot in asked for at in filling.spans.get(slot.name, ())}
    first = reading.objects[0] if len(reading.objects) == 2 else None
    for phrase in reading.phrases:
        at, whom = phrase.end - 1, phrase.prep == "to" or phrase is first
        aside = at not in filling.used and reading.stems[at] not in tool.words
        if whom and phrase.mention and (aside or (at in things and is_being(phrase.mention.entity))):
            return phrase.text
    return ""


def _is_somebody(thing: str, recent: Recent) -> bool:
    """Tell people, animals, and whoever has a name that the state does not know."""
    animal = any(thing in values for kind, values in recent.kinds.items() if kind in ANIMALS)
    person = thing in recent.people or any(thing in recent.kinds.get(kind, ()) for kind in PEOPLE)
    return person or animal or thing[:1].isupper()


def _elsewhere(slot: Slot, filling: Filling, reading: Reading) -> set[str]:
    taken = {str(value) for name, value in filling.input.items() if name != slot.name}
    return taken | {phrase.mention.entity.value for phrase in reading.phrases if phrase.mention}


def meant_by(pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading) -> str | None:
    """The latest thing a pronoun can stand for in this slot: somebody for "him", for "it" rather something."""
    elsewhere = _elsewhere(slot, filling, reading)
    known = {value for values in recent.kinds.values() for value in values}
    made = set(recent.values) - known  # "schedule a party, then invite Ada to it"

    def fitting(spoken_of: Sequence[str]) -> list[str]:
        free = (thing for thing in reversed(spoken_of) if thing not in elsewhere)
        return [thing for thing in free if thing in made or is_of_its_kind(slot, thing, recent)]

    kind = {*recent.of_kind(slot.words - ANYTHING), *made}
    things = fitting(recent.things)
    things = [thing for thing in things if thing in kind] or things or fitting(recent.values)
    if pronoun in _SOMEBODY:
        ships = {one for kind in SHIPS if pronoun in _SHE for one in recent.kinds.get(kind, ())}
        things = [thing for thing in things if _is_somebody(thing, recent) or thing in ships]
    if pronoun in _SOMEBODY or slot.person:
        things.sort(key=lambda thing: thing not in recent.people)
    elif pronoun == "it":
        things.sort(key=lambda thing: thing in recent.people)
    return things[0] if things else None
