"""Fills slots that offer values: choices with the one or several that a clause names, flags with yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple

from narratoria.narrator.english import words as en
from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.english.tokens import tokenize
from narratoria.narrator.english.verbs import families, families_of
from narratoria.narrator.local.filled_slots import KNOWN, Filling
from narratoria.narrator.local.tool_profiles import WAYS, Slot

_IN_FORCE: Final = en.stems_of("tools.in_force") | {"on"}
_ENDINGS: Final = families("stop") | families("extinguish")
_LIST_WORDS: Final = words("tools.list_words") | en.PREPOSITIONS


class _Found(NamedTuple):
    """A choice that a clause names."""

    strength: float
    width: int  # words of the choice
    value: Any
    span: range  # its tokens


def fill_choice(slot: Slot, reading: Reading, filling: Filling) -> None:
    """Fills a slot with the choice that the clause names, or with several that it lists."""
    shared = _shared_stems(slot.choices)
    found = [_named(slot, value, reading, filling.used, shared) for value in slot.choices]
    found = [one for one in found if one.strength]
    best = max(found, key=lambda one: one[:2], default=None)
    best = best or _choice_behind_a_name(slot, reading) or _choice_by_verb(slot, reading)
    if best is None:
        return
    filling.put(slot, best.value, min(best.strength, KNOWN), best.span)
    listed = _listed([one for one in found if one.strength >= KNOWN], reading)
    if len(listed) > 1:
        filling.lists[slot.name] = [one.value for one in listed]
        filling.used.update(at for one in listed for at in one.span)


def _named(slot: Slot, value: Any, reading: Reading, used: set[int], shared: set[str]) -> _Found:
    """A choice with how firmly the clause names it."""
    words = [en.stem(word) for word in en.split_name(str(value))]
    strength, span = _find_choice(words, reading, used, shared)
    if strength < KNOWN and any(letter.isdecimal() for letter in str(value)):
        # "4k" is written as a number is, and is found before numbers are read
        spelled = [en.stem(token.low) for token in tokenize(str(value))]
        strength, span = max(
            (strength, span), _find_choice(spelled, reading, used, shared), key=itemgetter(0)
        )
    if reading.verb and span and reading.tokens[span[0]].low == reading.verb:
        strength *= 0.6  # "shut the blinds halfway" says half
    if strength and span[0] and reading.tokens[span[0] - 1].low in slot.preps | slot.hinted | {slot.name}:
        strength += 0.05  # "from savings to checking"
    return _Found(strength, len(words), value, span)


def _listed(found: list[_Found], reading: Reading) -> list[_Found]:
    """The choices that stand in one list: "thyme and mint", "for March and for April"."""
    ordered = sorted(found, key=lambda one: one.span.start)
    for one, other in pairwise(ordered):
        between = [token.low for token in reading.tokens[one.span.stop : other.span.start]]
        if not {"and", ",", "&", "plus"} & set(between) or any(word not in _LIST_WORDS for word in between):
            return []
    return ordered


def _find_choice(words: list[str], reading: Reading, used: set[int], shared: set[str]) -> tuple[float, range]:
    stems = reading.stems
    for at in range(len(stems) - len(words) + 1):
        span = range(at, at + len(words))
        free = not used & set(span) and not any(reading.tokens[index].quoted for index in span)
        if words and stems[at : at + len(words)] == words and free:
            return KNOWN, span
    for word in words:  # a part that no other choice has: "vacuum" for "robot vacuum"
        if len(words) > 1 and word not in shared and word in stems and len(word) > 2:
            return 0.8, range(stems.index(word), stems.index(word) + 1)
    for word in words:  # one grown from the other: "halfway" for "half", "dish" for "dishwasher"
        for at, other in enumerate(stems):
            short, long = sorted((word, other), key=len)
            if len(short) >= 4 and long.startswith(short) and short not in en.STOPWORDS:
                return 0.7, range(at, at + 1)
            if len(root := _root(word)) >= 4 and root == _root(other):
                return 0.7, range(at, at + 1)  # "brighten it" for "brightness"
    return 0.0, range(0)


def _root(word: str) -> str:
    return next(
        (word.removesuffix(end) for end in ("nes", "ness", "en", "er", "est") if word.endswith(end)), word
    )


def _shared_stems(choices: Sequence[Any]) -> set[str]:
    seen: set[str] = set()
    shared: set[str] = set()
    for value in choices:
        words = {en.stem(word) for word in en.split_name(str(value))}
        shared |= seen & words
        seen |= words
    return shared


def _choice_behind_a_name(slot: Slot, reading: Reading) -> _Found | None:
    """State may say `exits.east = bone_gallery`: then the gallery's name means east."""
    for phrase in reading.phrases:
        for value in slot.choices if phrase.mention else ():
            if phrase.mention and en.stem(str(value)) in phrase.mention.entity.holders:
                return _Found(0.8, 1, value, range(phrase.start, phrase.end))
    return None


def _choice_by_verb(slot: Slot, reading: Reading) -> _Found | None:
    """ "boost it" where a slot has "increase" and "decrease", "kill the lights" where it has "on" and "off"."""
    if {"on", "off"} <= {str(value).casefold() for value in slot.choices} and _cuts(reading):
        return _Found(0.8, 1, next(v for v in slot.choices if str(v).casefold() == "off"), range(0))
    done = families(reading.verb, reading.particle) if reading.verb else frozenset()
    akin = [value for value in slot.choices if done & families_of(en.split_name(str(value)))]
    return _Found(0.8, 1, akin[0], range(0)) if len(akin) == 1 else None


def _cuts(reading: Reading) -> bool:
    return reading.verb in words("tools.cuts") or bool(families(reading.verb) & _ENDINGS)


def fill_flag(slot: Slot, reading: Reading, filling: Filling) -> None:
    """Fills a flag by the words that mean true or false, or by an opposite of them."""
    way = _way(reading)
    if slot.yes & _IN_FORCE and not way & {"on", "off"} and _cuts(reading):
        filling.put(slot, False, KNOWN)  # "kill the power"
        return
    stems = way if len(way & (slot.yes | slot.no)) == 1 else set(reading.stems) - WAYS.keys()
    yes, no = bool(stems & slot.yes), bool(stems & slot.no)
    if yes != no:
        filling.put(slot, yes, KNOWN, [i for i, s in enumerate(reading.stems) if s in slot.yes | slot.no])
        return
    against = frozenset() if yes else en.OPPOSITES.get(en.stem(reading.verb), frozenset())
    if bool(against & slot.yes) != bool(against & slot.no):
        filling.put(slot, bool(against & slot.no), KNOWN)  # to unseal is not to shut


def _way(reading: Reading) -> set[str]:
    """ "on" or "off" where it says how something is to be: with the verb, or last."""
    last = [token.low for token in reading.tokens[-1:]]
    inside = [t.low for t in reading.tokens[reading.body :] if t.low == "off"]
    return {word for word in [reading.particle, *last, *inside] if word in WAYS}
