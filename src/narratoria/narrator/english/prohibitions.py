"""Prohibitions: "don't light it", "the lamp must not be lit", "leave it as it is".

Words come as `mood` gets them: in lower case, contractions spelled out, without courtesies in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english.lexicon import phrases, phrases_in, starts, words
from narratoria.narrator.english.words import (
    AUXILIARIES,
    FILLERS,
    NOUNISH,
    STOPWORDS,
    SUBJECTS,
    VERBS,
    word_set,
)

_REFUSALS: Final = phrases("prohibitions.refusals")
_BEFORE_NOT: Final = SUBJECTS | AUXILIARIES | FILLERS | words("prohibitions.before_not")
_MERELY: Final = word_set("only just merely off")
_INSIDE: Final = word_set("without except nothing")  # they rule out only where they open a clause
_NOTHING: Final = word_set("nothing none nobody")
_AFTER_NO: Final = word_set("matter doubt problem longer wonder idea one mistake less")  # "no matter what"
_UNTOUCHED: Final = words("prohibitions.untouched")
_AS_IT_STANDS: Final = words("prohibitions.as_it_stands")
_STAYS: Final = word_set("stay stays remain remains leave keep")
_AS_IT_IS: Final = phrases_in("(as|where|how|like) (it|he|she|that) is / (as|where|how|like) they are")


def is_ruled_out(clause: Sequence[str]) -> bool:
    """Tells if a clause says that something is not to be done."""
    if starts(clause, _REFUSALS) or _is_negated(clause):
        return True
    return _has_empty_object(clause) or _is_left_as_it_is(clause)


def _is_negated(clause: Sequence[str]) -> bool:
    """Tells if "not" or a refusal comes before any verb that acts: "make sure that the lamp is not lit"."""
    opening = True  # nothing but words that may stand before "not" so far
    for at, word in enumerate(clause):
        following = clause[at + 1 : at + 2]
        if word in ("not", "never"):
            return not (following and following[0] in _MERELY)
        if opening and at and word not in _INSIDE and starts(clause[at:], _REFUSALS):
            return True
        opening &= word in _BEFORE_NOT or tuple(clause[at : at + 2]) in _REFUSALS
        if not opening and word in VERBS - AUXILIARIES and (word not in NOUNISH or not at):
            return False  # "check that it is not too salty"
    return False


def _has_empty_object(clause: Sequence[str]) -> bool:
    """ "no salt", "open no door", "touch nothing", "pay neither bill"."""
    said = clause[1:] if clause[0] in ("i", "we") else clause
    for at, word in enumerate(said):
        following = said[at + 1] if at + 1 < len(said) else ""
        if word == "neither" or (word in _NOTHING and at <= 2 and following != "to"):
            return True
        if word == "no" and at <= 1 and following and following not in STOPWORDS | _AFTER_NO:
            return True
    return False


def _is_left_as_it_is(clause: Sequence[str]) -> bool:
    """ "leave the hound alone", "let it be", "leave it on", "the vents stay as they are", "that can wait"."""
    if tuple(clause[-2:]) == ("can", "wait"):
        return True
    kept = len(clause) > 2 and clause[0] in ("leave", "let", "keep")
    if kept and (clause[-1] in _UNTOUCHED or tuple(clause[-2:]) == ("as", "is")):
        return True
    if kept and clause[0] == "leave" and (clause[-1] in _AS_IT_STANDS or clause[-1].endswith("ing")):
        return True
    stays = kept or any(word in _STAYS for word in clause[:6])
    return stays and any(tuple(clause[at : at + 3]) in _AS_IT_IS for at in range(1, len(clause) - 2))
