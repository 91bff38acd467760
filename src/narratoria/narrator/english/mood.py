"""The mood of a clause: it asks for an action, asks about it or about things, rules it out, or reports it.

Words come in lower case with contractions spelled out ("do not"), as `tokens.tokenize` gives them, and with the opening
of the clause: "should I light the lamp" without "should I" is an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

from narratoria.narrator.english.lexicon import phrases, starts, words
from narratoria.narrator.english.prohibitions import is_ruled_out
from narratoria.narrator.english.words import (
    AUXILIARIES,
    DETERMINERS,
    FILLERS,
    NOUNISH,
    PREPOSITIONS,
    QUESTION_WORDS,
    SUBJECTS,
    VERBS,
    is_past,
    word_set,
)


class Mood(Enum):
    """The moods of a clause."""

    ORDER = "order"
    QUESTION = "question"  # about things: a tool that tells may answer it, none that changes the world
    MUSING = "musing"  # about the action: was it done, should it be, what would come of it
    RULED_OUT = "ruled out"
    STATEMENT = "statement"  # about things: meant for a tool that takes such things down, if any


_OPENINGS: Final = (FILLERS - {"only", "once", "all", "more"}) | word_set(
    "and but or plus sir madam captain dear yes whatever"
)
_POLITE: Final = phrases("mood.polite")
_NOT_POLITE: Final = phrases("mood.not_polite")
_MUSING: Final = phrases("mood.musing")
_EMBEDDED: Final = phrases("mood.embedded")
_PEOPLE: Final = SUBJECTS - {"it"}
_OPEN: Final = word_set("what who whom whose where which")
_ABOUT_THE_ACTION: Final = word_set("did has had should must shall ought")
_ABOUT_THINGS: Final = word_set("is are was were am does")
_MODALS: Final = word_set("will would can could may might")
_STATES: Final = word_set("have need know see")


def mood(clause: Sequence[str], *, asks: bool = False) -> Mood:
    """The mood of a clause; `asks` where its sentence ends with a question mark."""
    said = without_opening(clause)
    if not said or _is_polite(said):
        return Mood.ORDER
    if said[0] in AUXILIARIES and said[1:2] != ["not"] and said[2:3] == ["not"]:
        return Mood.RULED_OUT  # "can you not light it"
    asked = _mused(said) or _embedded(said) or _opened(said, asks) or _inverted(said, asks)
    return asked or (Mood.RULED_OUT if is_ruled_out(said) else Mood.ORDER)


def without_opening(clause: Sequence[str]) -> list[str]:
    """The words without courtesies, joints and exclamations in front: "well, and please …"."""
    rest = [word for word in clause if word[:1].isalnum()]
    while rest and (rest[0] in _OPENINGS or (rest[0] in ("no", "yes") and _stands_apart(clause, rest[0]))):
        rest = rest[1:]
    return rest


def _stands_apart(clause: Sequence[str], word: str) -> bool:
    at = list(clause).index(word)
    return at + 1 < len(clause) and clause[at + 1] in (",", ".", "!", ";", "-", "—")


def _is_polite(said: Sequence[str]) -> bool:
    """Tells an order in the shape of a question or a negation: "could you …", "don't forget to …"."""
    if starts(said, _NOT_POLITE) or starts(said, _POLITE):
        return not starts(said, _NOT_POLITE)
    # "could Ruiz fix the antenna": somebody by name is asked to, a thing is asked about.
    named = len(said) > 2 and said[0] in ("can", "could", "would", "will")
    return named and said[1] not in SUBJECTS | DETERMINERS | AUXILIARIES | {"there", "not"}


def _mused(said: Sequence[str]) -> Mood | None:
    """ "I wonder what is in there" asks about a thing, "I wonder whether to open it" about an action."""
    if not starts(said, _MUSING):
        return None
    opened = next((word for word in said[1:6] if word in _OPEN or word in ("if", "whether", "how")), "")
    about_things = said[0] in ("i", "we", "wondering", "not") and opened in _OPEN
    return Mood.QUESTION if about_things else Mood.MUSING


def _embedded(said: Sequence[str]) -> Mood | None:
    """ "tell me whether it is lit" and "show me how to light it" ask."""
    for phrase in _EMBEDDED:
        if tuple(said[: len(phrase)]) == phrase and len(said) > len(phrase):
            joint, follows = said[len(phrase)], said[len(phrase) + 1 : len(phrase) + 2]
            if joint in ("if", "whether", "why") or (joint == "how" and follows == ["to"]):
                return Mood.QUESTION
    return None


def _opened(said: Sequence[str], asks: bool) -> Mood | None:
    """The mood of a question that begins with what, how, why …"""
    head, following = said[0], said[1] if len(said) > 1 else ""
    if head not in QUESTION_WORDS:
        return None
    about_us = bool(said[2:3]) and said[2] in ("i", "we", "you")
    if head == "why" or (head in ("how", "when") and following in AUXILIARIES - _ABOUT_THINGS and about_us):
        return Mood.MUSING
    if head == "when" and not asks and following and following not in AUXILIARIES:
        return None  # "when the bell rings, open the door" sets a time
    return Mood.MUSING if "should" in said[1:4] else Mood.QUESTION


def _inverted(said: Sequence[str], asks: bool) -> Mood | None:
    """The mood of a question that begins with its auxiliary, or ends with a question mark."""
    head, following = said[0], said[1] if len(said) > 1 else ""
    if head in _ABOUT_THE_ACTION and following:
        return Mood.MUSING
    if head == "have" and (following in _PEOPLE or (asks and following in DETERMINERS - {"a", "an"})):
        return Mood.MUSING
    if head in _MODALS:
        return Mood.QUESTION if following not in ("not", "") else None
    if head in _ABOUT_THINGS:
        return Mood.QUESTION
    if head == "do" and (following in SUBJECTS or (asks and following in DETERMINERS)):
        about_me = following in ("i", "we") and _STATES.isdisjoint(said[2:3])
        return Mood.MUSING if about_me else Mood.QUESTION
    stated = asks and not _ABOUT_THINGS.isdisjoint(said[1:5])  # "the lamp is lit?"
    return Mood.QUESTION if stated else None


# --- conditions -------------------------------------------------------------------------------------------

_BEFORE_IF: Final = words("mood.before_if")
_COURTEOUS: Final = phrases("mood.courteous")


def is_conditional(prompt: Sequence[str]) -> bool:
    """Tells if a prompt makes an action depend on how things are: "if he is hungry, feed him"."""
    for at, word in enumerate(prompt):
        before = prompt[at - 1] if at else ""
        opens = word == "unless" or (word in ("if", "provided", "assuming") and before not in _BEFORE_IF)
        if opens and not starts(prompt[at:], _COURTEOUS):
            return True
    return False


# --- reports ----------------------------------------------------------------------------------------------

_DATES: Final = phrases("mood.dates")
_TIMES: Final = word_set("yesterday earlier already today")
_REPORTING: Final = words("mood.reporting")
_NO_SUBJECT: Final = DETERMINERS | PREPOSITIONS | QUESTION_WORDS | AUXILIARIES


def reports(clause: Sequence[str]) -> bool:
    """Tells if a clause says what has been done, and asks for nothing: "I already fed Rex", "Ada fed Rex"."""
    said = without_opening(clause)
    dated = any(starts(said[at:], _DATES) for at in range(len(said)))
    said = _without_date(said)
    if any(is_past(after) and word in ("was", "were", "been") for word, after in pairwise(said)):
        return True
    at = 1 if said and said[0] not in VERBS and said[0] not in NOUNISH else 0
    while at < len(said) and said[at] in _REPORTING:
        at += 1
    if not at or at >= len(said) or not is_past(said[at]):
        return False
    subject = said[0]
    if subject in _NO_SUBJECT or not subject[0].isalpha():
        return False
    perfect = not {"have", "has", "had"}.isdisjoint(said[:at])
    return dated or perfect or subject not in ("i", "we", "you", "it")


def _without_date(said: list[str]) -> list[str]:
    while said and said[0] in _TIMES:
        said = said[1:]
    for date in _DATES:
        said = said[len(date) :] if tuple(said[: len(date)]) == date else said
    return said
