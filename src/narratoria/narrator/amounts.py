"""Which number of a clause belongs into which slot, in which unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from narratoria.narrator.filling import KNOWN, WORDS, Filling
from narratoria.narrator.phrases import Quantity, Reading
from narratoria.narrator.profiles import Slot
from narratoria.narrator.words import split_name, stem, word_set

_SECONDS: Final = {"second": 1, "sec": 1, "minut": 60, "min": 60, "hour": 3600, "hr": 3600, "day": 86400}
_STARTS: Final = frozenset(map(stem, word_set("from start begin first minimum min earliest since")))
_STOPS: Final = frozenset(map(stem, word_set("to end stop until last maximum max latest")))
_NOT_BEFORE: Final = {1: ("to", "until", "till", "before"), -1: ("from", "since", "after")}  # by start or end


def fill_numbers(slots: Sequence[Slot], reading: Reading, filling: Filling) -> None:
    offers = []
    for slot in slots:
        for quantity in reading.quantities:
            value = _converted(slot, quantity)
            if not _fits(slot.schema, value):
                continue
            if filling.used & set(range(quantity.start, quantity.end)):
                continue
            score = _number_score(slot, quantity, reading) + 0.1 * slot.required
            offers.append((score, -quantity.start, slot, quantity, value))
    taken: set[int] = set()
    for score, _, slot, quantity, value in sorted(offers, key=lambda offer: offer[:2], reverse=True):
        if slot.name in filling.input or quantity.start in taken or score < 0:
            continue
        taken.add(quantity.start)
        whole = slot.schema.get("type") == "integer" or value == int(value)
        strength = KNOWN if score >= 1.0 else WORDS  # a number without its unit may count anything
        filling.put(slot, int(value) if whole else value, strength, range(quantity.start, quantity.end))
        unit = quantity.end
        if unit < len(reading.stems) and reading.stems[unit] in slot.words | slot.told | _SECONDS.keys():
            filling.used.add(unit)


def _number_score(slot: Slot, quantity: Quantity, reading: Reading) -> float:
    near = {quantity.unit, stem(quantity.before)}
    if quantity.start > 1:
        near.add(reading.stems[quantity.start - 2])
    score = 0.2
    words = slot.words | slot.told
    if near & words or (near & _SECONDS.keys() and words & _SECONDS.keys()):
        score += 1.0
    name = {stem(word) for word in split_name(slot.name)}
    ranged = any(q.before in ("from", "between") for q in reading.quantities) and len(reading.quantities) > 1
    if ranged:
        opens = quantity.before in ("from", "between")
        if name & _STARTS:
            score += 0.8 if opens else -0.8
        elif name & _STOPS:
            score += -0.8 if opens else 0.8
    elif quantity.before in _NOT_BEFORE.get(bool(name & _STARTS) - bool(name & _STOPS), ()):
        score -= 0.5
    return score


def _converted(slot: Slot, quantity: Quantity) -> float:
    """Half an hour is 30 in a slot that counts minutes; 3 pm is 15 in one that counts hours of the day."""
    spoken = _SECONDS.get(quantity.unit)
    meant = next((_SECONDS[word] for word in slot.words | slot.told if word in _SECONDS), None)
    if spoken and meant and spoken != meant and "day" not in slot.words:
        return quantity.value * spoken / meant
    if quantity.unit == "pm" and quantity.value < 12 and meant == 3600:
        return quantity.value + 12
    return quantity.value


def _fits(schema: Mapping[str, Any], value: float) -> bool:
    if schema.get("type") == "integer" and value != int(value):
        return False
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return (
        (low is None or value >= low)
        and (high is None or value <= high)
        and (above is None or value > above)
        and (below is None or value < below)
    )
