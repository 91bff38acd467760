"""Amounts that say how much more or less, and the slots that hold no such thing.

"Three degrees warmer" is no temperature: where a tool sets a level outright, the amount is asked about, for what it
would come to cannot be told from here. A tool that pours, waits or adds takes "three more" as it is.
"""

from __future__ import annotations

import re
from typing import Final

from narratoria.narrator.english import lexicon
from narratoria.narrator.english.numerals import SECONDS, Quantity
from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.english.words import PREPOSITIONS, split_name, stem, stem_set, stems_of, word_set
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_COMPARED: Final = lexicon.words("tools.compared")
_FURTHER: Final = word_set("another further additional extra")
_RAISES: Final = stems_of("tools.raises")
_UP_OR_DOWN: Final = word_set("up down")
_SETS: Final = stem_set("set adjust regulate tune dial program configure change control")
_LEVELS: Final = stems_of("tools.levels")
_OUTRIGHT: Final = stem_set("new target final desired absolute")
_CHANGE: Final = re.compile(
    r"\bby (?:how|what)\b|\bhow (?:much|many|far)\b.*\b(?:more|less|fewer|higher|lower|up|down|by|add\w*|raise\w*"
    r"|lower\w*|chang\w+|turn|move|shift|remove)\b|\b(?:change|difference|delta|offset|relative|increment|increase"
    r"|decrease|adjustment|steps?|notch(?:es)?|to add|added)\b",
    re.IGNORECASE,
)


def only_sets(tool: ToolProfile, slot: Slot, quantity: Quantity, reading: Reading) -> bool:
    """Tells if `quantity` is a change, and the slot takes only a level."""
    sign = _sign(quantity, reading)
    return bool(sign) and _is_level(tool, slot, plain=sign == 2)


def _sign(quantity: Quantity, reading: Reading) -> int:
    """2 where an amount plainly is a change, 1 where it may be one ("another two", "drop it two degrees"), else 0."""
    words = [token.low for token in reading.tokens]
    before = [word for word in words[max(0, quantity.start - 3) : quantity.start] if word != "about"]
    if "by" in before[-2:] or set(words[quantity.end : quantity.end + 2]) & _COMPARED:
        return 2
    if set(before[-1:]) & _FURTHER or (before[-2:-1] == ["a"] and before[-1:] == ["further"]):
        return 1
    raised = stem(reading.verb) in _RAISES or set(words[reading.body - 1 : quantity.start]) & _UP_OR_DOWN
    return int(bool(raised) and bool(reading.verb) and quantity.before not in PREPOSITIONS | {"=", ":", ","})


def _is_level(tool: ToolProfile, slot: Slot, *, plain: bool) -> bool:
    told = f"{' '.join(split_name(slot.name))} {slot.schema.get('description', '')}"
    words = slot.words | slot.described
    if _CHANGE.search(told) or (words & SECONDS.keys() and not plain):
        return False
    if stem(split_name(tool.card.name)[0]) in _RAISES and not words & _OUTRIGHT:
        return False
    return bool(tool.verbs & _SETS or words & (_LEVELS | _OUTRIGHT))
