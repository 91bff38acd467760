"""Several things in one clause: all of them but one, each with its own place, one or the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from narratoria.narrator.english import words as en
from narratoria.narrator.english.clauses import Clause
from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.noun_phrases import Phrase
from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.local.filled_slots import Filling
from narratoria.narrator.local.tool_profiles import Slot

_JOINTS: Final = words("tools.joints")


def spread(slots: Sequence[Slot], filling: Filling) -> list[dict[str, Any]]:
    """One input per member where a clause lists several values for a slot that holds one."""
    for slot in slots:
        values = filling.lists.get(slot.name)
        if values and slot.kind != "texts":
            others = [v for name, v in filling.input.items() if name != slot.name]
            values = [value for value in values if value not in others]
            return [{**filling.input, slot.name: value} for value in values]
    return [dict(filling.input)]


def named_together(reading: Reading) -> list[tuple[str, ...]]:
    """The things of each list in a clause, "the cup and the rope", for a "them" that follows."""
    groups: list[list[str]] = [[]]
    for phrase in reading.phrases:
        groups += [] if phrase.joined else [[]]
        groups[-1] += [phrase.mention.entity.value] if phrase.mention else []
    return [tuple(group) for group in groups if len(group) > 1]


# --- all but one ---------------------------------------------------------------------------------------


def left_out(exception: Reading) -> list[Phrase]:
    """The things an exception names: its first phrase, and those listed with it."""
    named = exception.phrases[:1]
    for phrase in exception.phrases[1:]:
        if not phrase.joined:
            break
        named.append(phrase)
    return named


def without(
    inputs: Sequence[Mapping[str, Any]], exceptions: Iterable[Phrase], filling: Filling, reading: Reading
) -> list[dict[str, Any]] | None:
    """The inputs that none of the exceptions names; None where it is not plain which are to be left out."""
    whole = any(phrase.every for phrase in reading.phrases)
    kept = [dict(values) for values in inputs]
    for phrase in exceptions:
        if whole and not filling.lists:
            return None  # "take everything but the bell", and what everything is cannot be told
        rest = [values for values in kept if not any(_names(phrase, value) for value in values.values())]
        if len(rest) == len(kept) and not phrase.mention and whole:
            return None
        kept = rest
    return kept


def _names(phrase: Phrase, value: Any) -> bool:
    if phrase.mention and phrase.mention.entity.value == value:
        return True
    words = en.content_stems(str(value)) or set(en.split_name(str(value)))
    if words <= set(en.split_name(phrase.text)) and isinstance(value, str) and words:
        return True  # "R-7", whose words are too short to mean anything by themselves
    return isinstance(value, str) and bool(words) and words <= en.content_stems(phrase.text)


# --- each with its own place ---------------------------------------------------------------------------


def pairs(reading: Reading) -> list[Clause]:
    """ "send Pip to the pond and Bolt to the shed" as a clause each; empty where it is no such list."""
    if not reading.verb:
        return _bare(reading)
    if not 0 < reading.body < 4:
        return []
    segments = _segments(reading)
    if len(segments) < 2:
        return []
    head = reading.tokens[: reading.body]
    return [Clause((*head, *reading.tokens[part.start : part.stop])) for part in segments]


def _bare(reading: Reading) -> list[Clause]:
    """ "kitchen lights off, hall lights on": each part names a thing and says more."""
    end = max((phrase.end for phrase in reading.phrases), default=0)
    joints = [-1, *(at for at in _joints(reading) if at < end), len(reading.tokens)]
    parts = [range(one + 1, other) for one, other in pairwise(joints)]
    mentions = [(phrase.start, phrase.mention) for phrase in reading.phrases if phrase.mention]
    for part in parts:
        if not any(at in part and len(part) > named.end - named.start for at, named in mentions):
            return []
    return [Clause(reading.tokens[part.start : part.stop]) for part in parts if len(parts) > 1]


def _segments(reading: Reading) -> list[range]:
    """The members of the list, each an object with something more: a place, a number."""
    parts: list[range] = []
    start = reading.body
    for at in _joints(reading):
        if _is_whole(reading, range(start, at)):
            parts.append(range(start, at))
            start = at + 1
    parts.append(range(start, len(reading.tokens)))
    return parts if all(_is_whole(reading, part) for part in parts) else []


def _joints(reading: Reading) -> list[int]:
    numbers = {at for quantity in reading.quantities for at in range(quantity.start, quantity.end)}
    return [
        at
        for at, token in enumerate(reading.tokens)
        if at >= reading.body and token.low in _JOINTS and not token.quoted and at not in numbers
    ]


def _is_whole(reading: Reading, span: range) -> bool:
    """Tell if a member of a list has an object and something more, or is counted."""
    inside = [phrase for phrase in reading.phrases if phrase.start in span]
    if not inside or any(phrase.clausal or phrase.pronoun for phrase in inside):
        return False
    opening = [token.low for token in reading.tokens[span.start : inside[0].start]]
    if any(word in en.PREPOSITIONS for word in opening):
        return False
    if _says_more(*inside):
        return True
    numbers = [quantity for quantity in reading.quantities if quantity.start in span]
    counted = bool(numbers) or opening[-1:] in (["a"], ["an"])  # "two scones and a loaf"
    apart = bool(numbers) and numbers[-1].start > inside[0].start
    return apart or (counted and bool(reading.quantities))


def _says_more(first: Phrase, *rest: Phrase) -> bool:
    """ "Pip to the pond", "Otto some squid": an object, and its place or what it gets."""
    given = len(rest) == 1 and first.mention and not first.prep
    return any(not phrase.joined and (given or phrase.prep not in ("", "of")) for phrase in rest)
