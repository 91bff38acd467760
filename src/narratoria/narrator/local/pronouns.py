"""Pronouns in a slot: the latest thing that may be meant, or several that were named together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english.dictation import TO_SOMEBODY, is_telling
from narratoria.narrator.english.named_things import ANIMALS, PEOPLE, SHIPS, is_being
from narratoria.narrator.english.noun_phrases import EVERYTHING, Phrase
from narratoria.narrator.english.phrases import GIVES, Reading
from narratoria.narrator.english.words import split_name, stem, stem_set, word_set
from narratoria.narrator.local.filled_slots import Filling, Recent
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

ANYTHING: Final = stem_set("object thing item target subject name")  # kinds of no kind
_SOMEBODY: Final = word_set("he him his she her")
_SHE: Final = word_set("she her")
_TOGETHER: Final = word_set("they them their these those both")


def is_of_its_kind(slot: Slot, value: str, recent: Recent) -> bool:
    """Tells if a slot may hold a value: one that is named for a kind of thing in the state takes only such a thing."""
    kind = recent.of_kind(slot.words - ANYTHING)
    return not kind or slot.quoted or value in kind


def meant_together(
    pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading
) -> tuple[str, ...]:
    """The last list that "them" can stand for in this slot; none where it stands for one or for nothing."""
    kind = recent.of_kind(slot.words - ANYTHING)
    elsewhere = _elsewhere(slot, filling, reading)
    for group in reversed(recent.groups if pronoun in _TOGETHER else ()):
        fits = tuple(one for one in group if one not in elsewhere and (not kind or one in kind))
        if len(fits) > 1:
            return fits
    return ()


def left_out_of_a_gift(reading: Reading, tool: ToolProfile, filling: Filling) -> str:
    """The one who is given or told something in words that a tool leaves aside, or takes for a thing.

    "Give the candle to Mira" lights no candle, and "give the key to the guard" unlocks no guard.
    """
    if reading.verb not in GIVES | TO_SOMEBODY or stem(reading.verb) in tool.verbs:
        return ""
    things = {at for slot in tool.slots if _asks_for_a_thing(slot) for at in filling.spans.get(slot.name, ())}
    told = is_telling(reading.verb)
    free = {at for at, word in enumerate(reading.stems) if at not in filling.used and word not in tool.words}
    for phrase in reading.phrases:
        at = phrase.end - 1
        whom = phrase.prep == "to" or phrase is _first_object(reading, alone=told)
        if whom and at in things and _is_being(phrase):
            return phrase.text
        named = bool(phrase.every) if phrase.text == EVERYTHING else whom and phrase.mention is not None
        if named and not told and at in free:
            return phrase.text
    return ""


def _is_being(phrase: Phrase) -> bool:
    return phrase.pronoun in _SOMEBODY or bool(phrase.mention and is_being(phrase.mention.entity))


def _first_object(reading: Reading, *, alone: bool) -> Phrase | None:
    """The first of two plain objects; with `alone`, of any number."""
    plain = [one for one in reading.phrases if not (one.prep or one.owner or one.joined or one.clausal)]
    return plain[0] if len(plain) == 2 or (alone and plain) else None


def _asks_for_a_thing(slot: Slot) -> bool:
    return not slot.person and split_name(str(slot.schema.get("description", "")))[:1] == ["what"]


def _is_somebody(thing: str, recent: Recent) -> bool:
    """Tells people, animals, and whoever has a name that the state does not know."""
    animal = any(thing in values for kind, values in recent.kinds.items() if kind in ANIMALS)
    person = thing in recent.people or any(thing in recent.kinds.get(kind, ()) for kind in PEOPLE)
    return person or animal or thing[:1].isupper()


def _is_ship(thing: str, recent: Recent) -> bool:
    return any(thing in recent.kinds.get(kind, ()) for kind in SHIPS)


def _elsewhere(slot: Slot, filling: Filling, reading: Reading) -> set[str]:
    taken = {str(value) for name, value in filling.input.items() if name != slot.name}
    return taken | {phrase.mention.entity.value for phrase in reading.phrases if phrase.mention}


def meant_by(pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading) -> str | None:
    """The latest thing a pronoun can stand for in this slot: somebody for "him", for "it" rather something."""
    elsewhere = {str(value) for value in filling.input.values()}
    elsewhere |= {phrase.mention.entity.value for phrase in reading.phrases if phrase.mention}
    known = {value for values in recent.kinds.values() for value in values}
    made = set(recent.values) - known  # "schedule a party, then invite Ada to it"

    def fitting(spoken_of: Sequence[str]) -> list[str]:
        free = (thing for thing in reversed(spoken_of) if thing not in elsewhere)
        return [thing for thing in free if thing in made or is_of_its_kind(slot, thing, recent)]

    kind = {*recent.of_kind(slot.words - ANYTHING), *made}
    things = fitting(recent.things)
    things = [thing for thing in things if thing in kind] or things or fitting(recent.values)
    if pronoun in _SOMEBODY:
        things = [t for t in things if _is_somebody(t, recent) or (pronoun in _SHE and _is_ship(t, recent))]
    if pronoun in _SOMEBODY or slot.person:
        things.sort(key=lambda thing: thing not in recent.people)
    elif pronoun == "it":
        things.sort(key=lambda thing: thing in recent.people)
    return things[0] if things else None
