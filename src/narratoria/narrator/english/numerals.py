"""Numbers as people write and say them: 1,250; -50; 3k; two hundred and twenty; an hour and a half; 1h30.

A number that could be two things ("1.250") or that is not fully read is kept as unclear, never cut short.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from narratoria.narrator.english import words as en
from narratoria.narrator.english.lexicon import entry
from narratoria.narrator.english.tokens import Token

SECONDS: Final[dict[str, int]] = entry("numbers.seconds")  # by the stem of a unit of time
MEASURES: Final = en.stems_of("numbers.measures")
_SCALES: Final[dict[str, float]] = entry("numbers.scales")
_PARTS: Final = {"half": 0.5, "quarter": 0.25, "third": 1 / 3}
_DIGITS: Final = {word: value for word, value in en.NUMBERS.items() if value < 10} | {"oh": 0}
_LONGEST: Final = 18  # digits; what is longer is no amount
_VAGUE: Final = frozenset({"few", "several", "many"})


@dataclass(frozen=True, slots=True)
class Quantity:
    value: float
    start: int
    end: int
    unit: str  # stem of the word after it
    before: str  # the word before it
    clear: bool = True  # False where it can be read in two ways, or not to its end


@dataclass(frozen=True, slots=True)
class _Number:
    value: float
    end: int
    clear: bool = True


def quantities(tokens: Sequence[Token]) -> list[Quantity]:
    """The numbers of a clause, from left to right."""
    words = ["" if token.quoted else token.low for token in tokens]
    found: list[Quantity] = []
    index = 0
    while index < len(words):
        number = _number_at(words, index)
        if number is None:
            index += 1
            continue
        quantity = _compound(_measured(words, index, number), words)
        found.append(quantity)
        index = max(quantity.end, index + 1)
    return _with_shared_units(found, words)


def written(text: str) -> float | None:
    """The value of digits as written, None where it is not certain."""
    sign = -1.0 if text[:1] in "-−" else 1.0
    body = re.sub(r"[\u00a0\u202f]", " ", text.lstrip("-−"))
    if len(body) > _LONGEST:
        return None
    if re.fullmatch(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", body):
        return sign * float(body.replace(",", ""))
    if re.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+,\d+|[1-9]\d{0,2}(?:\.\d{3}){2,}", body):
        return sign * float(body.replace(".", "").replace(",", "."))
    if re.fullmatch(r"[1-9]\d{0,2}(?:[' ]\d{3})+(?:[.,]\d+)?", body):
        return sign * float(re.sub("[' ]", "", body).replace(",", "."))
    if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", body):
        return None  # 1.250 is 1250 to half of the world
    if re.fullmatch(r"\d+(?:\.\d+)?|\d+,\d{1,2}|0,\d+", body):
        return sign * float(body.replace(",", "."))
    return None


def _number_at(words: Sequence[str], index: int) -> _Number | None:
    word = words[index]
    if word in ("minus", "negative") and index + 1 < len(words):
        number = _number_at(words, index + 1)
        return _Number(-number.value, number.end, number.clear) if number else None
    if word[:1].isdecimal() or (word[:1] in ("-", "−") and word[1:2].isdecimal()):
        return _digits(words, index)
    return _fraction(words, index) or _spelled(words, index)


def _digits(words: Sequence[str], index: int) -> _Number:
    value = written(words[index])
    end = index + 1
    clear = value is not None
    following = words[end] if end < len(words) else ""
    if following in ("/", ":") and end + 1 < len(words) and words[end + 1][:1].isdecimal():
        return _Number(value or 0.0, end + 2, clear=False)
    if following in _SCALES:
        value, end = (value or 0.0) * _SCALES[following], end + 1
    elif following in ("hundred", "dozen"):
        value, end = (value or 0.0) * en.NUMBERS[following], end + 1
    extra, end = _and_a_part(words, end)
    return _Number((value or 0.0) + extra, end, clear)


def _fraction(words: Sequence[str], index: int) -> _Number | None:
    """ "half a million", "half an hour", "a quarter of an hour", "three quarters of an hour"."""
    at, count = index, 1.0
    if words[at] in ("a", "one"):
        at += 1
    elif words[at] in en.NUMBERS:
        count, at = float(en.NUMBERS[words[at]]), at + 1
    part = words[at] if at < len(words) else ""
    share = _PARTS.get(part) or _PARTS.get(part.removesuffix("s") if count > 1 else "")
    if share is None:
        return None
    at += 1
    if words[at : at + 1] == ["of"]:
        at += 1
    if words[at : at + 1] in (["a"], ["an"], ["the"]):
        at += 1
    what = words[at] if at < len(words) else ""
    scale = _SCALES.get(what) or en.NUMBERS.get(what if what in ("hundred", "dozen") else "")
    if scale:
        return _Number(count * share * scale, at + 1)
    return _Number(count * share, at) if en.stem(what) in SECONDS or en.stem(what) in MEASURES else None


def _spelled(words: Sequence[str], index: int) -> _Number | None:
    following = words[index + 1] if index + 1 < len(words) else ""
    if words[index] in ("a", "an"):
        if en.stem(following) in SECONDS and len(following) > 2:
            return _Number(1.0, index + 1)
        if following in _SCALES or following in ("hundred", "dozen", "couple"):
            return _spelled(words, index + 1)
        return _Number(0.0, index + 2, clear=False) if following in _VAGUE else None
    parts = [part for word in words[index : index + 12] for part in word.split("-")]
    value, used = _spoken_value(parts)
    if not used:
        return None
    end = index
    while used > 0:  # "twenty-five" is one token of two parts
        used -= words[end].count("-") + 1
        end += 1
    extra, end = _and_a_part(words, end)
    return _Number(value + extra, end)


def _spoken_value(parts: Sequence[str]) -> tuple[float, int]:
    """The value of the number words that `parts` begins with, and how many they are."""
    digits = [str(_DIGITS[part]) for part in takewhile(_DIGITS.__contains__, parts)]
    if len(digits) > 1:  # "three one five": read digit by digit
        return float("".join(digits)), len(digits)
    total = current = 0.0
    used = 0
    last = 0.0  # the word before, as a value
    for at, part in enumerate(parts):
        if part in ("hundred", "dozen"):
            current, last = (current or 1.0) * en.NUMBERS[part], 100.0
        elif part in _SCALES and (used or part not in ("k", "grand", "mn", "bn")):
            total, current, last = total + (current or 1.0) * _SCALES[part], 0.0, 1000.0
        elif part in en.NUMBERS:
            if 0 < last < 10 and en.NUMBERS[part] >= 10 and used == 1:
                current *= 100  # "two twenty"
            elif used and not _follows(last, en.NUMBERS[part]):
                break
            current, last = current + en.NUMBERS[part], float(en.NUMBERS[part])
        elif part == "and" and last >= 100 and not en.NUMBERS.keys().isdisjoint(parts[at + 1 : at + 2]):
            continue
        else:
            break
        used = at + 1
    return total + current, used


def _follows(last: float, value: float) -> bool:
    """Tell if a number word goes on with the one before: "hundred five", "twenty five"."""
    return last >= 100 or (20 <= last < 100 and value < 10)


def _and_a_part(words: Sequence[str], end: int) -> tuple[float, int]:
    """ "two *and a half* hours"."""
    if list(words[end : end + 2]) in (["and", "a"], ["and", "one"]) and words[end + 2 : end + 3]:
        share = _PARTS.get(words[end + 2])
        if share:
            return share, end + 3
    return 0.0, end


def _measured(words: Sequence[str], index: int, number: _Number) -> Quantity:
    unit = words[number.end] if number.end < len(words) else ""
    end = number.end
    if unit == "of" and end + 1 < len(words):  # "a couple of hours"
        end += 1
        unit = words[end]
    if unit == "%":
        unit = "percent"
    before = words[index - 1] if index else ""
    return Quantity(number.value, index, end, en.stem(unit) if unit else "", before, number.clear)


def _compound(quantity: Quantity, words: Sequence[str]) -> Quantity:
    """One duration of several parts: "an hour and a half", "1 hour 20 minutes", "1h30"."""
    large = SECONDS.get(quantity.unit)
    at = quantity.end + 1
    if large is None or at >= len(words):
        return quantity
    extra, end = _and_a_part(words, at)
    if extra:
        return replace(quantity, value=quantity.value + extra, end=end)
    joint = at
    while joint < len(words) and words[joint] in ("and", ",") and joint - at < 2:
        joint += 1
    number = _number_at(words, joint) if joint < len(words) else None
    if number is None:
        return quantity
    unit = en.stem(words[number.end]) if number.end < len(words) and words[number.end] else ""
    unit = "min" if unit == "m" else unit
    small = SECONDS.get(unit)
    if joint == at and small is None and quantity.unit == "h" and number.value < 60:
        return replace(quantity, value=quantity.value * 60 + number.value, end=number.end, unit="minut")
    if small is None or small >= large:
        return quantity
    whole = quantity.value * large / small + number.value
    clear = quantity.clear and number.clear
    return _compound(replace(quantity, value=whole, end=number.end, unit=unit, clear=clear), words)


def _with_shared_units(found: list[Quantity], words: Sequence[str]) -> list[Quantity]:
    """ "4 and 9 minutes" are both minutes."""
    for at in range(len(found) - 2, -1, -1):
        one, other = found[at], found[at + 1]
        between = words[one.end : other.start]
        if between and all(word in ("and", ",", "or", "&") for word in between):
            found[at] = replace(one, unit=other.unit)
    return found
