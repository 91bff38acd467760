"""What a pronoun stands for in a slot: the latest thing that may be meant, or several that were named together."""

from __future__ import annotations

from typing import Final

from narratoria.narrator.english.beings import ANIMALS, PEOPLE, SHIPS
from narratoria.narrator.english.dictation import TO_SOMEBODY, is_telling
from narratoria.narrator.english.named_things import is_being
from narratoria.narrator.english.phrases import EVERYTHING, GIVES, Reading
from narratoria.narrator.english.words import split_name, stem, stem_set, word_set
from narratoria.narrator.local.filled_slots import Filling, Recent
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

ANYTHING: Final = stem_set("object thing item target subject name")  # kinds of no kind
_SOMEBODY: Final = word_set("he him his she her")
_SHE: Final = word_set("she her")
_TOGETHER: Final = word_set("they them their these those both")
_COLLECTIVE: Final = word_set(
    "pair couple twins trio herd flock crew team gang pack set group band swarm school staff"
)


def is_of_its_kind(slot: Slot, value: str, recent: Recent) -> bool:
    """Where the state has things of the kind a slot is named for, it takes one of those and nothing else."""
    kind = recent.of_kind(slot.words - ANYTHING)
    return not kind or slot.quoted or value in kind


def meant_together(
    pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading
) -> tuple[str, ...]:
    """The things that "them" stands for in this slot; none where it stands for one ("the matches") or for nothing."""
    if pronoun not in _TOGETHER:
        return ()
    said, kind = _said_of_kind(slot, recent, filling, reading)
    for group in reversed(recent.groups or (() if said else recent.past_groups)):
        fits = tuple(one for one in group if one not in _elsewhere(slot, filling, reading))
        fits = tuple(one for one in fits if not kind or one in kind)
        if len(fits) > 1:
            one_of_many = bool(said) and said[-1] not in group and _is_plural(said[-1])
            return () if one_of_many else fits
    return said if kind and len(said) > 1 else ()


def doubt_about(pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading) -> str:
    """What to ask where "them" may be the last thing alone: "feed Rex. Feed the cats. Brush them." """
    if pronoun in _SOMEBODY and meant_by(pronoun, slot, recent, filling, reading) is None:
        return nobody_meant(pronoun)
    several = meant_together(pronoun, slot, recent, filling, reading)
    one_by_one = bool(several) and not recent.groups and several[-1] in recent.said
    if not one_by_one or not _is_plural(several[-1]):
        return ""
    names = [" ".join(split_name(one)) for one in several]
    return f"I am not sure what “{pronoun}” stands for: {' and '.join(names)}, or {names[-1]} alone?"


def nobody_meant(pronoun: str) -> str:
    return f"I am not sure who “{pronoun}” is."


def stray_somebody(reading: Reading, recent: Recent, used: set[int]) -> str:
    """The "him" or "her" of a clause that no slot took, where it is given something or there is nobody it could be."""
    for phrase in reading.phrases:
        if phrase.pronoun in _SOMEBODY and not phrase.owner and phrase.start not in used:
            known = any(_is_somebody(thing, recent) or _is_ship(thing, recent) for thing in recent.things)
            if reading.verb in GIVES or not known:
                return phrase.pronoun
    return ""


def left_out_of_a_gift(reading: Reading, tool: ToolProfile, filling: Filling) -> str:
    """Who is given or told something in words that a tool leaves aside, or takes for a thing: "give the candle to Mira"
    lights no candle, and "give the key to the guard" unlocks no guard."""
    if reading.verb not in GIVES | TO_SOMEBODY or stem(reading.verb) in tool.verbs:
        return ""
    things = {at for slot in tool.slots if _asks_for_a_thing(slot) for at in filling.spans.get(slot.name, ())}
    plain = [one for one in reading.phrases if not (one.prep or one.owner or one.joined or one.clausal)]
    told = is_telling(reading.verb)
    first = plain[0] if len(plain) == 2 or (told and plain) else None
    for phrase in reading.phrases:
        at = phrase.end - 1
        named = phrase.mention is not None and (phrase.prep == "to" or phrase is first)
        being = phrase.pronoun in _SOMEBODY or bool(phrase.mention and is_being(phrase.mention.entity))
        if being and at in things and (phrase.prep == "to" or phrase is first):
            return phrase.text
        whom = bool(phrase.every) if phrase.text == EVERYTHING else named
        if whom and not told and at not in filling.used and reading.stems[at] not in tool.words:
            return phrase.text
    return ""


def _asks_for_a_thing(slot: Slot) -> bool:
    return not slot.person and split_name(str(slot.schema.get("description", "")))[:1] == ["what"]


def _is_somebody(thing: str, recent: Recent) -> bool:
    """People, animals, and whoever has a name that the state does not know."""
    animal = any(thing in values for kind, values in recent.kinds.items() if kind in ANIMALS)
    person = thing in recent.people or any(thing in recent.kinds.get(kind, ()) for kind in PEOPLE)
    return person or animal or thing[:1].isupper()


def _is_ship(thing: str, recent: Recent) -> bool:
    return any(thing in recent.kinds.get(kind, ()) for kind in SHIPS)


def _said_of_kind(
    slot: Slot, recent: Recent, filling: Filling, reading: Reading
) -> tuple[tuple[str, ...], set[str]]:
    """What was spoken of in this prompt and may stand in the slot, and all there is of the slot's kind."""
    kind = set(recent.of_kind(slot.words - ANYTHING))
    elsewhere = _elsewhere(slot, filling, reading)
    said = (thing for thing in recent.said if thing not in elsewhere and (not kind or thing in kind))
    return tuple(dict.fromkeys(said)), kind


def _elsewhere(slot: Slot, filling: Filling, reading: Reading) -> set[str]:
    taken = {str(value) for name, value in filling.input.items() if name != slot.name}
    return taken | {phrase.mention.entity.value for phrase in reading.phrases if phrase.mention}


def _is_plural(thing: str) -> bool:
    """ "the matches", "the penguin pair": one thing that is spoken of as several."""
    last = (split_name(thing) or [""])[-1]
    return last in _COLLECTIVE or (last.endswith("s") and not last.endswith("ss"))


def meant_by(pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading) -> str | None:
    """The latest thing a pronoun can stand for in this slot: somebody for "him", for "it" rather something."""
    elsewhere = {str(value) for value in filling.input.values()}
    elsewhere |= {p.mention.entity.value for p in reading.phrases if p.mention}
    known = {value for values in recent.kinds.values() for value in values}
    made = {
        value for value in recent.values if value not in known
    }  # "schedule a party, then invite Ada to it"
    free = [thing for thing in reversed(recent.things) if thing not in elsewhere]
    things = [thing for thing in free if thing in made or is_of_its_kind(slot, thing, recent)]
    kind = {*recent.of_kind(slot.words - ANYTHING), *made}
    things = [thing for thing in things if thing in kind] or things
    values = [v for v in reversed(recent.values) if v in made or is_of_its_kind(slot, v, recent)]
    things = things or [value for value in values if value not in elsewhere]
    if pronoun in _SOMEBODY:
        things = [t for t in things if _is_somebody(t, recent) or (pronoun in _SHE and _is_ship(t, recent))]
    if pronoun in _SOMEBODY or slot.person:
        things.sort(key=lambda thing: thing not in recent.people)
    elif pronoun == "it":
        things.sort(key=lambda thing: thing in recent.people)
    return things[0] if things else None
