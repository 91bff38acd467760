"""What a clause does with its deed: it asks for it, asks about it, rules it out, or takes it back.

Words come in lower case with contractions spelled out ("do not"), as `clauses.tokenize` gives them, and with
what opens the clause still there: "should I light the lamp" without "should I" is an order. Nothing here is
about any story.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

from narratoria.narrator.english.opposites import (
    ends_it,
    harms,
    is_reverse,
    lets_perish,
    moves_the_other_way,
    without_again,
)
from narratoria.narrator.english.prohibitions import is_ruled_out, phrases, starts
from narratoria.narrator.english.words import (
    AUXILIARIES,
    DETERMINERS,
    FILLERS,
    NOUNISH,
    OPPOSITES,
    PREPOSITIONS,
    QUESTION_WORDS,
    SUBJECTS,
    VERBS,
    is_past,
    stem,
    stem_set,
    word_set,
)


class Mood(Enum):
    ORDER = "order"
    QUESTION = "question"  # how things are: only what tells may answer, nothing that changes the world
    MUSING = "musing"  # about the deed itself: was it done, should it be, what would come of it
    RULED_OUT = "ruled out"
    STATEMENT = "statement"  # how things are, told: only what takes such things down is meant, if anything


def mood(words: Sequence[str], *, asks: bool = False) -> Mood:
    """The mood of a clause; `asks` where its sentence ends with a question mark."""
    words = _without_opening(words)
    if not words:
        return Mood.ORDER
    if _is_polite(words):
        return Mood.ORDER
    if words[0] in AUXILIARIES and words[1:2] != ["not"] and words[2:3] == ["not"]:
        return Mood.RULED_OUT  # "can you not light it"
    if (about := _asked(words, asks)) is not None:
        return about
    return Mood.RULED_OUT if is_ruled_out(words) else Mood.ORDER


def _without_opening(words: Sequence[str]) -> list[str]:
    """Without the courtesies, joints and exclamations that change nothing: "well, and please …"."""
    rest = [word for word in words if word[:1].isalnum()]
    while rest and (rest[0] in _OPENINGS or (rest[0] in ("no", "yes") and _stands_apart(words, rest[0]))):
        rest = rest[1:]
    return rest


def _stands_apart(words: Sequence[str], word: str) -> bool:
    at = list(words).index(word)
    return at + 1 < len(words) and words[at + 1] in (",", ".", "!", ";", "-", "—")


_OPENINGS: Final = (FILLERS - {"only", "once", "all", "more"}) | word_set(
    "and but or plus sir madam captain dear yes whatever"
)
_PEOPLE: Final = word_set("i we he she they you it")

# --- orders in the shape of questions, and of negations ---------------------------------------------------

_POLITE: Final = phrases(
    "can you/could you/will you/would you/can i/could i/may i/might i/can we/could we/may we/shall we/"
    "can someone/could someone/can somebody/could somebody/would someone/will someone/"
    "can not you/could not you/will not you/would not you/can not we/could not we/"
    "do you mind/would you mind/how about/what about/why not/why do not you/why do not we/"
    "any chance you could/any chance you can/is there any chance you could/are you able to/"
    "i wonder if you could/i wonder if you can/i was wondering if you could/i wonder whether you could/"
    "do not forget to/do not fail to/do not hesitate to/do not neglect to/do not be afraid to/do not omit to/"
    "never forget to/never fail to/do not just/do not only/do not merely/not only/not just/not merely"
)
_NOT_POLITE: Final = phrases(
    "can you tell me if/can you tell me whether/can you tell me why/can you tell me how/can you explain/"
    "could you tell me if/could you tell me whether/could you tell me why/could you tell me how/"
    "could you explain/would you like/would you say/would you rather/will you be/would you be/can you not/"
    "could you not/would you not/will you not/can we not/could we not/can i not"
)


def _is_polite(words: Sequence[str]) -> bool:
    if starts(words, _NOT_POLITE):
        return False
    if starts(words, _POLITE):
        return True
    # "could Ruiz fix the antenna": somebody by name is asked to, a thing is asked about.
    named = len(words) > 2 and words[0] in ("can", "could", "would", "will")
    return named and words[1] not in SUBJECTS | DETERMINERS | AUXILIARIES | {"there", "not"}


# --- questions --------------------------------------------------------------------------------------------

_MUSING: Final = phrases(
    "what if/what happens/what would happen/what will happen/what might happen/what could happen/"
    "what should/what must/what do i do/what can i do/what could i do/"
    "suppose/supposing/if only/imagine/i wonder/i am wondering/i was wondering/we wonder/wondering/"
    "i am not sure/i am unsure/not sure/i do not know/no idea/i forget whether/i forget if/"
    "do you want/do you suggest/do i have to/do we have to/"
    "is it wise/is it safe/is it possible/is it worth/is it better/is it allowed/is it ok/is it okay/"
    "is it a good/is it time/is there any way/is there a way/would we/would i/"
    "how come/how to/what is the point/who should/which should/where should/when should/how should"
)
_OPEN: Final = word_set("what who whom whose where which")
_EMBEDDED: Final = phrases(
    "tell me/let me know/let us know/show me/explain/explain to me/check/see/find out/make sure/"
    "can you tell me/could you tell me/can you explain/could you explain/do you know/remind me"
)
_ABOUT_THE_DEED: Final = word_set("did has had should must shall ought")
_ABOUT_THINGS: Final = word_set("is are was were am does")


def _asked(words: Sequence[str], asks: bool) -> Mood | None:
    head, following = words[0], words[1] if len(words) > 1 else ""
    if starts(words, _MUSING):
        # "I wonder what is in there" asks about a thing, "I wonder whether to open it" about a deed.
        opened = next((word for word in words[1:6] if word in _OPEN or word in ("if", "whether", "how")), "")
        return Mood.QUESTION if head in ("i", "we", "wondering", "not") and opened in _OPEN else Mood.MUSING
    for phrase in _EMBEDDED:
        if tuple(words[: len(phrase)]) == phrase and len(words) > len(phrase):
            joint = words[len(phrase)]
            if joint in ("if", "whether", "why") or (joint == "how" and "to" in words[len(phrase) + 1 :][:1]):
                return Mood.QUESTION
    about_us = words[2:3] and words[2] in ("i", "we", "you")
    if head in ("how", "when") and following in AUXILIARIES - _ABOUT_THINGS and about_us:
        return Mood.MUSING
    if head == "why":
        return Mood.MUSING
    if head in QUESTION_WORDS and not _is_subordinate(words, asks):
        return Mood.MUSING if "should" in words[1:4] else Mood.QUESTION
    if head in _ABOUT_THE_DEED and following:
        return Mood.MUSING
    if head == "have" and (
        following in _PEOPLE - {"it"} or (asks and following in DETERMINERS - {"a", "an"})
    ):
        return Mood.MUSING
    if head in ("will", "would", "can", "could", "may", "might") and following == "not":
        return None
    if head in _ABOUT_THINGS or (head in ("will", "would", "can", "could", "may", "might") and following):
        return Mood.QUESTION
    if head == "do" and (following in _PEOPLE or (asks and following in DETERMINERS)):
        about_me = following in ("i", "we") and words[2:3] not in (["have"], ["need"], ["know"], ["see"])
        return Mood.MUSING if about_me else Mood.QUESTION
    if asks and any(word in _ABOUT_THINGS for word in words[1:5]):
        return Mood.QUESTION  # "the lamp is lit?"
    return None


def _is_subordinate(words: Sequence[str], asks: bool) -> bool:
    """ "when the bell rings, open the door" sets a time and asks nothing."""
    return words[0] == "when" and not asks and len(words) > 1 and words[1] not in AUXILIARIES


# --- conditions -------------------------------------------------------------------------------------------


def is_conditional(words: Sequence[str]) -> bool:
    """Whether a prompt makes a deed depend on how things are: "if he is hungry, feed him"."""
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        opens = word == "unless" or (word in ("if", "provided", "assuming") and before not in _BEFORE_IF)
        if opens and not starts(words[at:], _COURTEOUS):
            return True
    return False


_BEFORE_IF: Final = word_set("see check know ask wonder me out sure tell as even what")
_COURTEOUS: Final = phrases(
    "if you please/if you like/if you would/if you could/if you can/if you may/if you do not mind/if you will/"
    "if you want/if you wish/if that is/if it is ok/if it is okay/if it is all right/if it is alright/"
    "if it is not too/if possible/if necessary/if need be/if i may/if i could/if i can/if so/if not/if only/"
    "if you have/if you get"
)


# --- what has been done -------------------------------------------------------------------------------------


def reports(words: Sequence[str]) -> bool:
    """Whether a clause tells what has been done, and asks for nothing: "I already fed Rex", "Ada fed Rex"."""
    rest = _without_opening(words)
    dated = any(tuple(rest[at : at + len(date)]) == date for at in range(len(rest)) for date in _DATES)
    while rest and rest[0] in _TIMES:
        rest = rest[1:]
    for date in _DATES:
        rest = rest[len(date) :] if tuple(rest[: len(date)]) == date else rest
    if any(is_past(after) and word in ("was", "were", "been") for word, after in pairwise(rest)):
        return True
    at = 1 if rest[:1] and rest[0] not in VERBS and rest[0] not in NOUNISH else 0
    while rest[at : at + 1] and rest[at] in _REPORTING:
        at += 1
    if not at or at >= len(rest) or not is_past(rest[at]):
        return False
    subject, perfect = rest[0], bool({"have", "has", "had"} & set(rest[:at]))
    if subject in DETERMINERS | PREPOSITIONS | QUESTION_WORDS | AUXILIARIES or not subject[0].isalpha():
        return dated and subject == "already"
    return dated or perfect or subject not in ("i", "we", "you", "it")


_DATES: Final = phrases(
    "already/yesterday/earlier/ago/last night/last week/last month/last year/last time/this morning/"
    "this afternoon/an hour ago/before lunch/just now/the other day/long since/on monday last"
)
_TIMES: Final = word_set("yesterday earlier already today")
_REPORTING: Final = word_set("already just have has had also both all never finally once")


# --- deeds taken back ---------------------------------------------------------------------------------------

_CANCELS: Final = stem_set(
    "cancel undo abort revoke reverse revert rescind retract annul withdraw scrap uncancel recall"
)
_CALLS_BACK: Final = phrases("call off/take back/stand down/roll back/back out/give back/calls off")
_OFF: Final = word_set("off out")
_TURNS: Final = stem_set("turn switch shut power put blow kill cut toggle take log sign")
_ENDS: Final = stem_set(
    "off out stop end extinguish douse quench snuff smother close shut deactivate disable cancel undo kill cut "
    "abort halt cease revoke remove delete clear dismiss lower false"
)
_QUENCHED: Final = word_set("put blow stamp snuff pinch")
_KINDLES: Final = stem_set("light ignite kindle burn fire start activate heat preheat lit")
_NONE: Final[frozenset[str]] = frozenset()


def undoes(words: Sequence[str], deeds: Collection[str]) -> bool:
    """Whether a clause takes back the deed that `deeds` names, its verbs and their particles, or is its opposite.

    "put the lamp out" undoes {"light"}, "cancel the alarm" undoes {"sound"}, and neither undoes a deed that is
    itself named for stopping: {"turn", "off"}, {"cancel"}. To blow the lamp up undoes whatever is done with it.
    """
    rest = _without_opening(words)
    if rest and lets_perish(rest, deeds):
        return True
    known = {stem(deed) for deed in deeds} | set(deeds)  # stems may be given, and are not their own stems
    at, particle = _head(rest)
    if at is None:
        return False
    rest = rest[at:]
    verb = without_again(stem(rest[0]))
    if harms(rest, particle, known) or moves_the_other_way(rest, known):
        return True
    if is_reverse(verb, known) or ends_it(rest, known):
        return True
    if starts((verb, particle), _CALLS_BACK):
        return not known & _CANCELS
    if verb in _CANCELS:
        return verb not in known and not known & _CANCELS
    if particle in _OFF and (verb in _TURNS or rest[0] in _QUENCHED):
        return _takes_off(rest[0], verb, particle, known)
    if particle == "on" and verb in _TURNS:
        return "off" in known and "on" not in known
    if verb in ("stop", "quit", "ceas") and len(rest) > 1 and rest[1].endswith("ing"):
        return stem(rest[1]) in known and verb not in known
    if verb in known:
        return False
    against = OPPOSITES.get(verb, _NONE)
    if any(against & OPPOSITES.get(word, _NONE) for word in known):
        return False  # what opens and shuts a hatch also unseals it
    return bool(against & known)


def _takes_off(written: str, verb: str, particle: str, known: set[str]) -> bool:
    """Off or out: what is named so or ends things may be meant, what kindles or starts them may not."""
    if known & _ENDS:
        return False
    if verb in ("turn", "switch", "shut", "power", "toggle", "kill", "cut"):
        return True
    if written in _QUENCHED and particle == "out":
        return bool(known & _KINDLES) or verb not in known
    return bool(known & {"on", "in", "wear", "don"})


def _head(words: Sequence[str]) -> tuple[int | None, str]:
    """Where the verb stands that opens a clause, and its particle, beside it or behind its object."""
    at = 0
    while at < len(words) - 1 and (words[at] in _BEFORE_VERB or words[at] in FILLERS):
        at += 1
    if at >= len(words) or words[at] in DETERMINERS or words[at] in QUESTION_WORDS:
        return None, ""
    rest = words[at + 1 :]
    beside = [word for word in rest[:1] if word in _PARTICLES]
    last = [word for word in rest[-1:] if word in _PARTICLES]
    inside = [word for word in rest[1:] if word in _OFF | {"on"}]  # "turn the lamp off at once"
    return at, next(iter([*beside, *last, *inside]), "")


_BEFORE_VERB: Final = (
    SUBJECTS | (AUXILIARIES - {"do", "have"}) | word_set("mind want to like let us need try going")
)
_PARTICLES: Final = word_set("off out on up down back in away")
