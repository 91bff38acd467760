"""The mood of a clause: it asks for an action, asks about it or about things, rules it out, or reports it.

Words come in lower case with contractions spelled out ("do not"), as `tokens.tokenize` gives them, and with the opening
of the clause: "should I light the lamp" without "should I" is an order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final, TypeAlias

from narratoria.narrator.english import words as en
from narratoria.narrator.english.lexicon import phrases, starts, words

IsVerb: TypeAlias = Callable[[str], bool]


class Mood(Enum):
    """The moods of a clause."""

    ORDER = "order"
    QUESTION = "question"  # about things: a tool that tells may answer it, none that changes the world
    MUSING = "musing"  # about the action: was it done, should it be, what would come of it
    RULED_OUT = "ruled out"
    STATEMENT = "statement"  # about things: meant for a tool that takes such things down, if any


_OPENINGS: Final = (en.FILLERS - {"only", "once", "all", "more"}) | words("mood.openings")
_NOT_POLITE: Final = phrases("mood.not_polite")
_PEOPLE: Final = en.SUBJECTS - {"it"}
_OPEN: Final = words("mood.open_questions")
_ABOUT_THINGS: Final = words("mood.about_things")


def mood(clause: Sequence[str], *, asks: bool = False) -> Mood:
    """The mood of a clause; `asks` where its sentence ends with a question mark."""
    said = without_opening(clause)
    if not said or _is_polite(said):
        return Mood.ORDER
    if said[0] in en.AUXILIARIES and said[1:2] != ["not"] and said[2:3] == ["not"]:
        return Mood.RULED_OUT  # "can you not light it"
    asked = _mused(said) or _opened(said, asks) or _inverted(said, asks)
    return asked or (Mood.RULED_OUT if is_ruled_out(said) else Mood.ORDER)


def without_opening(clause: Sequence[str], openings: Collection[str] = _OPENINGS) -> list[str]:
    """The words without courtesies, joints and exclamations in front: "well, and please …"."""
    marked = clause[:1] == ["no"] and len(clause) > 1 and not clause[1][:1].isalnum()  # "no, light it"
    rest = [word for word in clause[marked:] if word[:1].isalnum()]
    while rest and rest[0] in openings:
        rest = rest[1:]
    return rest


def _is_polite(said: Sequence[str]) -> bool:
    """Tell an order in the shape of a question or a negation: "could you …", "don't forget to …"."""
    if starts(said, _NOT_POLITE) or starts(said, phrases("mood.polite")):
        return not starts(said, _NOT_POLITE)
    # "could Ruiz fix the antenna": somebody by name is asked to, a thing is asked about.
    named = len(said) > 2 and said[0] in ("can", "could", "would", "will")
    return named and said[1] not in en.SUBJECTS | en.DETERMINERS | en.AUXILIARIES | {"there", "not"}


def _mused(said: Sequence[str]) -> Mood | None:
    """ "I wonder what is in there" asks about a thing, "I wonder whether to open it" about an action."""
    if not starts(said, phrases("mood.musing")):
        return None
    opened = next((word for word in said[1:6] if word in _OPEN or word in ("if", "whether", "how")), "")
    about_things = said[0] in ("i", "we", "wondering", "not") and opened in _OPEN
    return Mood.QUESTION if about_things else Mood.MUSING


def _opened(said: Sequence[str], asks: bool) -> Mood | None:
    """The mood of a question that begins with what, how, why …"""
    head, following = said[0], said[1] if len(said) > 1 else ""
    if head not in en.QUESTION_WORDS:
        return None
    about_us = following in en.AUXILIARIES - _ABOUT_THINGS and said[2:3] in (["i"], ["we"], ["you"])
    if head == "why" or (head in ("how", "when") and about_us):
        return Mood.MUSING
    if head == "when" and not asks and following and following not in en.AUXILIARIES:
        return None  # "when the bell rings, open the door" sets a time
    return Mood.MUSING if "should" in said[1:4] else Mood.QUESTION


def _inverted(said: Sequence[str], asks: bool) -> Mood | None:
    """The mood of a question that begins with its auxiliary, or ends with a question mark."""
    head, following = said[0], said[1] if len(said) > 1 else ""
    if head in words("mood.about_the_action") and following:
        return Mood.MUSING
    if head == "have" and (following in _PEOPLE or (asks and following in en.DETERMINERS - {"a", "an"})):
        return Mood.MUSING
    if head in words("mood.modals"):
        return Mood.QUESTION if following not in ("not", "") else None
    if head in _ABOUT_THINGS:
        return Mood.QUESTION
    if head == "do" and (following in en.SUBJECTS or (asks and following in en.DETERMINERS)):
        about_me = following in ("i", "we") and words("mood.states").isdisjoint(said[2:3])
        return Mood.MUSING if about_me else Mood.QUESTION
    stated = asks and not _ABOUT_THINGS.isdisjoint(said[1:5])  # "the lamp is lit?"
    return Mood.QUESTION if stated else None


# --- conditions -------------------------------------------------------------------------------------------

_BEFORE_IF: Final = words("mood.before_if")


def is_conditional(prompt: Sequence[str]) -> bool:
    """Tell if a prompt makes an action depend on how things are: "if he is hungry, feed him"."""
    for at, word in enumerate(prompt):
        before = prompt[at - 1] if at else ""
        opens = word == "unless" or (word in ("if", "provided", "assuming") and before not in _BEFORE_IF)
        if opens and not starts(prompt[at:], phrases("mood.courteous")):
            return True
    return False


# --- reports ----------------------------------------------------------------------------------------------

_DATES: Final = phrases("mood.dates")
# Forms that are past only behind "have" or "already": "I have read it", but "I read it" asks for it.
_PARTICIPLES: Final = (words("irregular.not_past") | words("irregular.participles")) - {"got"}
_NO_SUBJECT: Final = en.DETERMINERS | en.PREPOSITIONS | en.QUESTION_WORDS | en.AUXILIARIES


def reports(clause: Sequence[str]) -> bool:
    """Tell if a clause says what has been done, and asks for nothing: "I already fed Rex", "Ada fed Rex"."""
    said = without_opening(clause)
    dated = any(starts(said[at:], _DATES) for at in range(len(said)))
    if any(en.is_past(after) and word in ("was", "were", "been") for word, after in pairwise(said)):
        return True
    at = 1 if said and said[0] not in en.VERBS and said[0] not in en.NOUNISH else 0
    while at < len(said) and said[at] in words("mood.reporting"):
        at += 1
    if not at or at >= len(said):
        return False
    subject = said[0]
    if subject in _NO_SUBJECT or not subject[0].isalpha():
        return False
    perfect = not {"have", "has", "had"}.isdisjoint(said[:at])
    told = perfect or "already" in said[:at]
    if not (en.is_past(said[at]) or (told and said[at] in _PARTICIPLES)):
        return False
    return dated or perfect or subject not in ("i", "we", "you", "it")


# --- prohibitions: "don't light it", "leave it as it is" -----------------------------------------------------

_REFUSALS: Final = phrases("prohibitions.refusals")
_BEFORE_NOT: Final = en.SUBJECTS | en.AUXILIARIES | en.FILLERS | words("prohibitions.before_not")
_AFTER_NO: Final = words("prohibitions.after_no")  # "no matter what"
_AS_IT_STANDS: Final = words("prohibitions.as_it_stands")
_AS_IT_IS: Final = phrases("prohibitions.as_it_is")


def is_ruled_out(clause: Sequence[str]) -> bool:
    """Tell if a clause says that something is not to be done."""
    if starts(clause, _REFUSALS) or _is_negated(clause):
        return True
    return _has_empty_object(clause) or _is_left_as_it_is(clause)


def _is_negated(clause: Sequence[str]) -> bool:
    """Tell if "not" or a refusal comes before any verb that acts: "make sure that the lamp is not lit"."""
    opening = True  # nothing but words that may stand before "not" so far
    for at, word in enumerate(clause):
        following = clause[at + 1 : at + 2]
        if word in ("not", "never"):
            return not (following and following[0] in words("prohibitions.merely"))
        if opening and at and word not in words("prohibitions.opening") and starts(clause[at:], _REFUSALS):
            return True
        opening &= word in _BEFORE_NOT or tuple(clause[at : at + 2]) in _REFUSALS
        if not opening and word in en.VERBS - en.AUXILIARIES and (word not in en.NOUNISH or not at):
            return False  # "check that it is not too salty"
    return False


def _has_empty_object(clause: Sequence[str]) -> bool:
    """ "no salt", "open no door", "touch nothing", "pay neither bill"."""
    said = clause[1:] if clause[0] in ("i", "we") else clause
    for at, word in enumerate(said):
        following = said[at + 1] if at + 1 < len(said) else ""
        if word == "neither" or (word in words("prohibitions.nothing") and at <= 2 and following != "to"):
            return True
        if word == "no" and at <= 1 and following and following not in en.STOPWORDS | _AFTER_NO:
            return True
    return False


def _is_left_as_it_is(clause: Sequence[str]) -> bool:
    """ "leave it", "leave the hound alone", "let it be", "leave it on", "the vents stay as they are"."""
    if len(clause) == 2 and clause[0] == "leave" and clause[1] in en.PRONOUNS:
        return True
    kept = len(clause) > 2 and clause[0] in ("leave", "let", "keep")
    if kept and (clause[-1] in words("prohibitions.untouched") or tuple(clause[-2:]) == ("as", "is")):
        return True
    if kept and clause[0] == "leave" and (clause[-1] in _AS_IT_STANDS or clause[-1].endswith("ing")):
        return True
    stays = kept or any(word in words("prohibitions.stays") for word in clause[:6])
    return stays and any(tuple(clause[at : at + 3]) in _AS_IT_IS for at in range(1, len(clause) - 2))


# --- how things are: "the bell is broken" may be meant for a tool that takes such things down ----------------

_JOINTS: Final = en.FILLERS | words("statements.joints")
_NEEDS: Final = words("statements.needs")


_FALLING: Final = en.FILLERS | words("statements.falling")
_NO_THING: Final = en.PREPOSITIONS | en.QUESTION_WORDS | words("statements.no_thing")
_LONGEST_THING: Final = 7


def tells_how_things_are(clause: Sequence[str], is_verb: IsVerb) -> bool:
    """ "the bell is broken", "there is fog", "I think it is too dark in here"."""
    said = without_opening(clause, _JOINTS)
    if "please" in said:
        return False
    while said[:1] == ["that"]:
        said = without_opening(said[1:], _JOINTS)
    at = next((at for at, word in enumerate(said) if word in ("is", "are")), 0)
    return _is_thing(said[:at], is_verb) and _is_state(said[at + 1 :])


def _is_thing(subject: Sequence[str], is_verb: IsVerb) -> bool:
    """Tell if the words before "is" name a thing: "the water in the tub", and not "tell Ada the tub"."""
    if not subject or len(subject) > _LONGEST_THING or subject[0] in _NO_THING:
        return False
    if any(is_verb(word) or word in _NEEDS for word in subject):
        return False
    alone = len(subject) == 1 or subject[0] in en.DETERMINERS
    return alone or not (subject[0] in en.NOUNISH or any(word in en.VERBS - en.NOUNISH for word in subject))


def _is_state(said: Sequence[str]) -> bool:
    """Tell if the words after "is" say how a thing is, and not what is due or how much it shall be."""
    if not said or said[0] in words("statements.due") or "to" in said[:2] or not _NEEDS.isdisjoint(said):
        return False
    if any(word[0].isdecimal() or word in en.NUMBERS for word in said[:3]):
        return False
    acting = said[0].endswith("ing") and said[0] != "being"
    return not acting or all(word in _FALLING for word in said[1:])


# --- small talk -----------------------------------------------------------------------------------------------

_SMALL_TALK: Final = phrases("statements.small_talk")


def is_small_talk(clause: Sequence[str]) -> bool:
    """Tell if a whole clause is an answer, a greeting or an oath, and asks for nothing."""
    rest = tuple(word for word in clause if word not in en.FILLERS)
    return not rest or rest in _SMALL_TALK or tuple(clause) in _SMALL_TALK
