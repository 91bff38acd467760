"""Clauses that only tell: a thought, a fear, a rumour, or how things are.

"I am afraid the tank will leak" is no order, nor is "Ada dreams of being paid" one to pay her. "The bell is broken" may
be meant for a tool that takes such things down, and is no order to any other. Words come in lower case, contractions
spelled out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from narratoria.narrator.english.lexicon import phrases, phrases_in, starts, words
from narratoria.narrator.english.words import (
    AUXILIARIES,
    DETERMINERS,
    FILLERS,
    NOUNISH,
    NUMBERS,
    PARTICLES,
    PREPOSITIONS,
    QUESTION_WORDS,
    SUBJECTS,
    VERBS,
    is_past,
    stem,
    stems_of,
    word_set,
)

IsVerb: TypeAlias = Callable[[str], bool]

_JOINTS: Final = words("statements.joints")
_NEEDS: Final = word_set("should must need needs ought better wants want")


def only_tells(clause: Sequence[str], is_verb: IsVerb) -> bool:
    """Tells if a clause asks for nothing; `is_verb` knows the catalogue's own verbs, which are orders."""
    said = _without_joints(clause)
    if len(said) < 2 or (is_verb(said[0]) and not said[0].endswith("ing")):
        return False
    thought = _thought(said, is_verb)
    if thought is None:
        return False
    own = said[0] in ("i", "we") and any(stem(word) in _OPINIONS for word in said[1:4])
    return not tells_how_things_are(thought, is_verb) and not _asks(thought, own)


def _without_joints(clause: Sequence[str]) -> list[str]:
    said = [word for word in clause if word[:1].isalnum()]
    while said and (said[0] in FILLERS or said[0] in _JOINTS):
        said = said[1:]
    return said


# --- how things are -----------------------------------------------------------------------------------------

_SEEMS: Final = word_set("looks seems appears sounds feels smells tastes")
_DUE: Final = words("statements.due")
_FALLING: Final = FILLERS | words("statements.falling")
_NO_THING: Final = PREPOSITIONS | QUESTION_WORDS | word_set("i you we my our all what")
_LONGEST_THING: Final = 7


def tells_how_things_are(clause: Sequence[str], is_verb: IsVerb) -> bool:
    """ "the bell is broken", "there is fog", "I think it is too dark in here"."""
    said = _without_joints(clause)
    if "please" in said:
        return False
    while said[:1] == ["that"]:
        said = _without_joints(said[1:])
    thought = _thought(said, is_verb) if len(said) > 2 else None
    if thought is not None:
        return tells_how_things_are(thought, is_verb)
    at = next((at for at in range(len(said)) if said[at] in ("is", "are") or _seems(said[at:])), 0)
    return _is_thing(said[:at], is_verb) and _is_state(said[at + 1 :])


def _is_thing(subject: Sequence[str], is_verb: IsVerb) -> bool:
    """Tells if the words before "is" name a thing: "the water in the tub", and not "tell Ada the tub"."""
    if not subject or len(subject) > _LONGEST_THING or subject[0] in _NO_THING:
        return False
    if any(is_verb(word) or word in _NEEDS for word in subject):
        return False
    alone = len(subject) == 1 or subject[0] in DETERMINERS
    return alone or not (subject[0] in NOUNISH or any(word in VERBS - NOUNISH for word in subject))


def _is_state(said: Sequence[str]) -> bool:
    """Tells if the words after "is" say how a thing is, and not what is due or how much it shall be."""
    if not said or said[0] in _DUE or "to" in said[:2] or not _NEEDS.isdisjoint(said):
        return False
    if any(word[0].isdecimal() or word in NUMBERS for word in said[:3]):
        return False
    acting = said[0].endswith("ing") and said[0] != "being"
    return not acting or all(word in _FALLING for word in said[1:])


def _seems(said: Sequence[str]) -> bool:
    """ "looks tired", "lives in the attic"; not "looks at the clock", "sounds the horn"."""
    follows = said[1] if len(said) > 1 else ""
    return said[0] == "lives" or (said[0] in _SEEMS and follows not in PREPOSITIONS | DETERMINERS | PARTICLES)


# --- thoughts and rumours -----------------------------------------------------------------------------------

_OPINIONS: Final = stems_of("statements.opinions")
_FEELINGS: Final = stems_of("statements.feelings")
_FELT: Final = word_set("thought heard")
_MOODS: Final = words("statements.moods")
_WILLING: Final = word_set("sure certain glad happy pleased")
_RUMOURS: Final = phrases("statements.rumours")
_HOW: Final = words("statements.how")
_HAS_TO: Final = phrases_in("(has|have|is|are|time) to / could use / would (like|love)")
_LONGEST_SUBJECT: Final = 4


def _thought(said: Sequence[str], is_verb: IsVerb) -> Sequence[str] | None:
    """The words that are thought, feared or said by rumour; None where the clause is not of that kind."""
    for phrase in _RUMOURS:
        if tuple(said[: len(phrase)]) == phrase:
            return said[len(phrase) :]
    at = _end_of_subject(said, is_verb)
    while 0 < at < len(said) and said[at] in _HOW:
        at += 1
    if not 0 < at < len(said) or is_verb(said[at]):
        return None
    word, rest = said[at], said[at + 1 :]
    if word in _MOODS and said[at - 1] in _HOW:
        willing = word in _WILLING and rest[:1] == ["to"]  # "I am happy to light it"
        return rest if rest and not willing else None
    if stem(word) in _OPINIONS and any(one in AUXILIARIES or is_past(one) for one in rest):
        return rest  # "I think two croissants" orders two
    return rest if stem(word) in _FEELINGS or word in _FELT else None


def _end_of_subject(said: Sequence[str], is_verb: IsVerb) -> int:
    """The end of the words that name who thinks: "I", "Ada", "the old miller"; 0 where an action comes first."""
    if said[0] in SUBJECTS - {"it"}:
        return 1
    for at, word in enumerate(said[: _LONGEST_SUBJECT + 1]):
        last = said[at - 1] if at else ""
        if at and (word in _HOW or (stem(word) in _FEELINGS | _OPINIONS and _agrees(last, word, said[0]))):
            return at
        acts = (word in VERBS or word in NOUNISH or is_verb(word)) and last not in DETERMINERS
        if acts or word in PREPOSITIONS or word in AUXILIARIES or word in NUMBERS:
            return 0
    return 0


def _agrees(noun: str, verb: str, first: str) -> bool:
    """ "Ada loves", "the children love"; not "the love letter"."""
    several = noun.endswith("s") or noun in ("children", "people", "men", "women")
    return verb.endswith("s") or is_past(verb) or (several and first in DETERMINERS)


def _asks(thought: Sequence[str], own: bool) -> bool:
    """Tells if a thought is a request after all: "I think we should go", "I guess I take the lamp"."""
    if "not" in thought or "never" in thought:
        return False
    said = thought[1:] if thought[:1] == ["that"] else thought
    if not _NEEDS.isdisjoint(said) or any(starts(said[at:], _HAS_TO) for at in range(len(said))):
        return True
    mine = own and bool(said) and said[0] in ("i", "we", "let")
    return mine and not any(is_past(word) or word in _HOW for word in said[1:3])


# --- small talk -----------------------------------------------------------------------------------------------

_SMALL_TALK: Final = phrases("statements.small_talk")


def is_small_talk(clause: Sequence[str]) -> bool:
    """Tells if a whole clause is an answer, a greeting or an oath, and asks for nothing."""
    rest = tuple(word for word in clause if word not in FILLERS)
    return not rest or rest in _SMALL_TALK or tuple(clause) in _SMALL_TALK
