"""What a clause says of several things at once: all of them but one, each with its own place, one or the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from narratoria.narrator.clauses import Clause
from narratoria.narrator.filling import Filling
from narratoria.narrator.phrases import Phrase, Reading
from narratoria.narrator.words import content_stems

# --- all but one ---------------------------------------------------------------------------------------


def with_tail(clause: Clause, exception: Reading) -> Clause:
    """ "water every bed except the roses with 5 litres": the litres belong to what is done."""
    for phrase in exception.phrases[1:]:
        if phrase.prep not in ("", "of") and not phrase.joined:
            start = next(at for at in range(phrase.start, -1, -1) if exception.tokens[at].low == phrase.prep)
            return replace(clause, tokens=(*clause.tokens, *exception.tokens[start:]))
    return clause


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
    words = content_stems(str(value))
    return isinstance(value, str) and bool(words) and words <= content_stems(phrase.text)
