"""Fills slots with the numbers of a clause, in their units, and with times of day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import jsonschema_rs

from narratoria.narrator.english.numerals import MEASURES, SECONDS, Quantity
from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.english.words import split_name, stem, stems_of
from narratoria.narrator.local.filled_slots import KNOWN, WORDS, Filling
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_TIMES_OVER: Final = stem("times")
_TIMES: Final = stems_of("tools.times")
_LIMITS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def fill_numbers(tool: ToolProfile, reading: Reading, filling: Filling) -> None:
    slots = [slot for slot in tool.slots if slot.kind == "number"]
    offers = []
    for slot in slots:
        for quantity in reading.quantities:
            if filling.used & set(range(quantity.start, quantity.end)):
                continue
            value = _converted(slot, quantity)
            score = _number_score(slot, quantity, reading) + 0.1 * slot.required
            offers.append((score, -quantity.start, slot, quantity, value))
    taken: set[int] = set()
    refused: list[tuple[Slot, Quantity, str]] = []
    for score, _, slot, quantity, value in sorted(offers, key=lambda offer: offer[:2], reverse=True):
        if slot.name in filling.input or quantity.start in taken or score < 0:
            continue
        if not quantity.clear or not jsonschema_rs.is_valid(dict(slot.schema), _plain(value)):
            refused.append((slot, quantity, _complaint(slot, quantity, reading)))
            continue
        taken.add(quantity.start)
        strength = KNOWN if score >= 1.0 else WORDS  # a number without its unit may count anything
        filling.put(slot, _plain(value), strength, range(quantity.start, quantity.end))
        unit = reading.stems[quantity.end : quantity.end + 1]
        filling.used.update({quantity.end} if {*unit} & {*slot.words, *slot.described, *SECONDS} else ())
    for slot, quantity, complaint in refused:
        if slot.name not in filling.input and quantity.start not in taken:
            filling.unfit.append(complaint)


def account_for_numbers(reading: Reading, filling: Filling) -> None:
    """A number that fills no slot and belongs to no name was meant for something: it is not passed over."""
    for quantity in reading.quantities:
        span = range(quantity.start, quantity.end)
        in_a_name = any(
            phrase.mention and set(span) & set(range(phrase.mention.start, phrase.mention.end))
            for phrase in reading.phrases
        )
        small = quantity.clear and quantity.value in (1, 2) and not _written(span, reading)[:1].isdecimal()
        small = small and quantity.unit != _TIMES_OVER  # "twice" asks for more than one call
        if not filling.used & set(span) and not in_a_name and not small and not filling.unfit:
            filling.unfit.append(f"I don't know what to do with “{_written(span, reading)}” there.")


def _written(span: range, reading: Reading) -> str:
    return " ".join(token.text for token in reading.tokens[span.start : span.stop])


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _complaint(slot: Slot, quantity: Quantity, reading: Reading) -> str:
    what = str(slot.schema.get("description") or " ".join(split_name(slot.name))).rstrip(".?")
    said = _written(range(quantity.start, quantity.end), reading)
    if not quantity.clear:
        return f"I am not sure which number “{said}” is: {what}?"
    limits = [f", {bound} {slot.schema[key]}" for key, bound in _LIMITS.items() if key in slot.schema]
    return f"“{said}” does not fit: {what}{''.join(limits)}."


def _number_score(slot: Slot, quantity: Quantity, reading: Reading) -> float:
    near = {quantity.unit, stem(quantity.before)}
    if quantity.start > 1:
        near.add(reading.stems[quantity.start - 2])
    score = 0.2
    words = slot.words | slot.described
    counted = quantity.unit and quantity.unit not in words | MEASURES and quantity.end < len(reading.tokens)
    if counted and slot.words & MEASURES and reading.tokens[quantity.end].low.endswith("s"):
        return -1.0  # "two tablets" are no milligrams
    if quantity.before == "by" and "by" not in slot.preps | slot.hinted:
        return -1.0  # "raise it by three degrees": three is not what it is set to
    if near & words or (near & SECONDS.keys() and words & SECONDS.keys()):
        score += 1.0
    return score


def _converted(slot: Slot, quantity: Quantity) -> float:
    """Half an hour is 30 in a slot that counts minutes; 3 pm is 15 in one that counts hours of the day."""
    spoken = SECONDS.get(quantity.unit)
    units = (SECONDS.get(word) for word in (*sorted(slot.words), *sorted(slot.described)))
    meant = next((unit for unit in units if unit), None)
    if spoken and meant and spoken != meant and "day" not in slot.words:
        return round(quantity.value * spoken / meant, 9)
    if quantity.unit == "pm" and quantity.value < 12 and meant == 3600:
        return quantity.value + 12
    return quantity.value


def fill_times(slots: Sequence[Slot], reading: Reading, filling: Filling) -> None:
    """A time of day, "4pm", "10:30", goes as it is written into a slot of words that asks for one."""
    slot = next((slot for slot in slots if slot.kind == "text" and slot.words & _TIMES), None)
    if slot is None:
        return
    for at, token in enumerate(reading.tokens):
        width = _clock(reading, at)
        if width and not token.quoted:
            said = "".join(t.text for t in reading.tokens[at : at + width])
            filling.put(slot, said, KNOWN, range(at, at + width))
            return


def _clock(reading: Reading, at: int) -> int:
    """The number of tokens of a time of day that begins at `at`; 0 for none."""
    words = [token.low for token in reading.tokens[at : at + 4]]
    if words[0] in ("noon", "midnight"):
        return 1
    if not words[0].isdecimal() or len(words[0]) > 2:
        return 0
    colon = words[1:2] == [":"] and words[2:3] and words[2].isdecimal()
    width = 3 if colon else 1
    half = words[width : width + 1] in (["am"], ["pm"])
    return width + half if colon or half else 0
