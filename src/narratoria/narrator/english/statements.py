"""What a clause only tells: a thought, a fear, a rumour, an opinion of a deed. It names deeds and asks for none.

"I am afraid the tank will leak" is no order, nor is "Ada dreams of being paid" one to pay her. What tells how things
are ("the bell is broken") may be meant for a tool that takes such things down, and is no order to any other. Words come
in lower case with contractions spelled out. Nothing here is about any story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from narratoria.narrator.english.prohibitions import phrases, starts
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
    VERB_STEMS,
    VERBS,
    is_past,
    stem,
    stem_set,
    word_set,
)

IsVerb = Callable[[str], bool]


def only_tells(words: Sequence[str], is_verb: IsVerb) -> bool:
    """Whether a clause tells and asks for nothing; `is_verb` knows the catalogue's own verbs, which are orders."""
    rest = [word for word in words if word[:1].isalnum()]
    while rest and (rest[0] in FILLERS or rest[0] in _JOINTS):
        rest = rest[1:]
    if len(rest) < 2 or (is_verb(rest[0]) and not rest[0].endswith("ing")):
        return False
    thought = _thought(rest, is_verb)
    if thought is not None and tells_how_things_are(thought, is_verb):
        return False
    if thought is not None:
        own = rest[0] in ("i", "we") and any(stem(word) in _OPINION for word in rest[1:4])
        return not _asks(thought, own)
    return _judges(rest, is_verb) or _keeps_from(rest, is_verb) or _merely_happens(rest)


def tells_how_things_are(words: Sequence[str], is_verb: IsVerb) -> bool:
    """ "the bell is broken", "there is fog", "I think it is too dark in here"."""
    rest = [word for word in words if word[:1].isalnum()]
    if "please" in rest:
        return False
    while rest and (rest[0] in FILLERS or rest[0] in _JOINTS or rest[0] == "that"):
        rest = rest[1:]
    thought = _thought(rest, is_verb) if len(rest) > 2 else None
    if thought is not None:
        return tells_how_things_are(thought, is_verb)
    at = next((at for at in range(len(rest)) if rest[at] in ("is", "are") or _seems(rest[at:])), 0)
    subject, said = rest[:at], rest[at + 1 :]
    if not subject or not said or len(subject) > _LONGEST_THING or not _is_thing(subject, is_verb):
        return False
    active = said[0].endswith("ing") and said[0] != "being" and any(word not in _FALLING for word in said[1:])
    number = any(word[0].isdecimal() or word in NUMBERS for word in said[:3])
    return not (
        active or number or said[0] in _DUE or "to" in said[:2] or any(word in _NEEDS for word in said)
    )


def _seems(words: Sequence[str]) -> bool:
    """ "looks tired", "lives in the attic"; not "looks at the clock", "sounds the horn"."""
    follows = words[1] if len(words) > 1 else ""
    plain = follows not in PREPOSITIONS and follows not in DETERMINERS and follows not in PARTICLES
    return words[0] == "lives" or (words[0] in _SEEMS and plain)


_SEEMS: Final = word_set("looks seems appears sounds feels smells tastes")


def _is_thing(subject: Sequence[str], is_verb: IsVerb) -> bool:
    """Whether the words before "is" name a thing: "the water in the tub", and not "tell Ada the tub"."""
    if subject[0] in ("i", "you", "we", "my", "our", "all", "what") or subject[0] in QUESTION_WORDS:
        return False
    for at, word in enumerate(subject):
        acts = is_verb(word) or (word in VERBS and word not in NOUNISH) or (word in NOUNISH and not at)
        if (acts and len(subject) > 1 and subject[0] not in DETERMINERS) or is_verb(word) or word in _NEEDS:
            return False
    return subject[0] not in PREPOSITIONS


_LONGEST_THING: Final = 7
_DUE: Final = word_set("to going due wanted needed required supposed welcome allowed free ready off")
_JOINTS: Final = word_set("and but or so because since as yes no oh ah alas apparently obviously honestly")

# --- thoughts and rumours -----------------------------------------------------------------------------------

_OPINION: Final = stem_set("think believe suppose guess assume presume suspect reckon figure")
_FEELING: Final = stem_set(
    "fear dread worry doubt hope dream imagine fantasise fantasize remember recall know hate loathe detest "
    "dislike despise love adore like enjoy miss regret envy pretend"
)
_FELT: Final = word_set("thought heard")
_MOODS: Final = word_set(
    "afraid scared frightened terrified worried concerned anxious nervous sorry sad ashamed proud aware convinced "
    "surprised shocked angry annoyed upset tired sick bored jealous sure certain glad happy pleased relieved amazed "
    "fond weary"
)
_WILLING: Final = word_set("sure certain glad happy pleased")
_RUMOURS: Final = phrases(
    "they say/people say/some say/rumour has it/rumor has it/word has it/legend has it/word is/it seems/it appears/"
    "it looks like/it looks as if/it looks as though/it sounds like/it sounds as if/it is said/it is rumoured/"
    "everything knows/everything says/everything thinks/they think/they believe/somebody said/someone said/"
    "the rumour is/the rumor is/the story goes/"
    "i hear that/i heard that/i see that/i read that/i was told/i am told/i notice that/i gather"
)
_HOW: Final = word_set(
    "really truly always often never still already also just only sometimes rather quite so very all both do does did "
    "am is are was were have has had been be secretly much"
)
_LONGEST_SUBJECT: Final = 4


def _thought(words: Sequence[str], is_verb: IsVerb) -> Sequence[str] | None:
    """What is thought, feared or said by rumour; None where the clause is not of that kind."""
    for phrase in _RUMOURS:
        if tuple(words[: len(phrase)]) == phrase:
            return words[len(phrase) :]
    at = _end_of_subject(words, is_verb)
    while 0 < at < len(words) and words[at] in _HOW:
        at += 1
    if not 0 < at < len(words) or is_verb(words[at]):
        return None
    verb, rest = stem(words[at]), words[at + 1 :]
    if words[at] in _MOODS and words[at - 1] in _HOW:
        willing = words[at] in _WILLING and rest[:1] == ["to"]  # "I am happy to light it"
        return rest if rest and not willing else None
    if verb in _OPINION and any(word in AUXILIARIES or is_past(word) for word in rest):
        return rest  # "I think two croissants" orders two
    return rest if (verb in _FEELING or words[at] in _FELT) and words[at].isalpha() else None


def _end_of_subject(words: Sequence[str], is_verb: IsVerb) -> int:
    """Where the words end that may name who thinks: "I", "Ada", "the old miller"; 0 where a deed comes first."""
    if words[0] in SUBJECTS - {"it"}:
        return 1
    for at, word in enumerate(words[: _LONGEST_SUBJECT + 1]):
        last = words[at - 1] if at else ""
        if at and (word in _HOW or (stem(word) in _FEELING | _OPINION and _agrees(last, word, words[0]))):
            return at
        acts = word in VERBS or word in NOUNISH or is_verb(word)
        if (
            acts and (not at or last not in DETERMINERS)
        ) or word in PREPOSITIONS | AUXILIARIES | NUMBERS.keys():
            return 0
    return 0


def _agrees(noun: str, verb: str, first: str) -> bool:
    """ "Ada loves", "the children love"; not "the love letter"."""
    several = noun.endswith("s") or noun in ("children", "people", "men", "women")
    return verb.endswith("s") or is_past(verb) or (several and first in DETERMINERS)


def _asks(thought: Sequence[str], own: bool) -> bool:
    """Whether what is thought is a request after all: "I think we should go", "I guess I take the lamp"."""
    rest = thought[1:] if thought[:1] == ["that"] else thought
    needs = any(word in _NEEDS for word in rest) or any(
        tuple(rest[at : at + 2]) in _HAS_TO for at in range(len(rest) - 1)
    )
    if "not" in rest or "never" in rest:
        return False
    mine = own and bool(rest) and rest[0] in ("i", "we", "let")
    return needs or (mine and not any(is_past(word) or word in _HOW for word in rest[1:3]))


_NEEDS: Final = word_set("should must need needs ought better wants want")
_HAS_TO: Final = phrases("has to/have to/is to/are to/time to/could use/would like/would love")

# --- opinions of a deed -------------------------------------------------------------------------------------

_WELCOME: Final = word_set(
    "nice good great lovely wonderful helpful best time wise better kind fine necessary important essential vital "
    "crucial urgent excellent splendid ideal useful perfect fantastic awesome brilliant advisable prudent turn job duty"
)
_UNWELCOME: Final = word_set("not too never hardly no bad")
_FINITE: Final = word_set("is was would will might may could seems sounds looks")


def _judges(words: Sequence[str], is_verb: IsVerb) -> bool:
    """ "it would be folly to open it", "opening it is a mistake", "only a fool would open it"."""
    said = set(words)
    welcome = bool(said & _WELCOME) and not said & _UNWELCOME
    if words[0] in ("it", "that", "you", "we", "i") and "to" in words[3:] and _is_judgement(words):
        return not welcome
    if (
        words[0].endswith("ing")
        and len(words[0]) > 5
        and words[1] not in NUMBERS
        and not words[1][0].isdecimal()
    ):
        joint = next((at for at, word in enumerate(words) if at > 1 and word in _FINITE), None)
        known = stem(words[0]) in VERB_STEMS or is_verb(words[0])
        return joint is not None and known and not welcome
    if words[0] in ("only", "whoever", "anyone", "anybody", "no-one") or starts(words, _FOOLS):
        return any(word in ("would", "will", "who", "whoever") or word.endswith("s") for word in words[1:5])
    return starts(words, _AGAINST)


def _is_judgement(words: Sequence[str]) -> bool:
    """ "it is …", "it would be …", "you would be …" in front of the deed."""
    if words[0] == "it" and words[1] in ("is", "was"):
        return True
    return words[1] in ("would", "might", "could", "will", "must") and words[2] == "be"


_FOOLS: Final = phrases("a fool/an idiot/only a fool/only an idiot/just a fool")
_AGAINST: Final = phrases(
    "i am against/we are against/i am opposed/i object to/i oppose/i protest/i am not in favour/i would hate/"
    "we would hate/i can not stand/i can not bear/heaven forbid/god forbid/what a pity/what a shame/too bad"
)

# --- deeds that are to be hindered --------------------------------------------------------------------------

_HINDERS: Final = word_set(
    "prevent keep stop block hinder discourage dissuade ban prohibit deter restrain hold forbid"
)
_SAVES: Final = word_set("save protect guard rescue shield spare defend")


def _keeps_from(words: Sequence[str], is_verb: IsVerb) -> bool:
    """ "prevent the gate from being opened": no deed of a catalogue that has no such verb."""
    if words[0] not in _HINDERS | _SAVES:
        return False
    for at, word in enumerate(words[2:], 2):
        if word == "being" and (words[at - 1] == "from" or words[0] in ("prevent", "stop", "keep")):
            return True
        hindered = words[at - 1] == "from" and (words[0] in _HINDERS or is_verb(word))
        if hindered and word.endswith("ing") and len(word) > 4:
            return True
        if words[0] == "prevent" and word.endswith("ing") and stem(word) in VERB_STEMS:
            return True
    return False


# --- what comes about by itself -----------------------------------------------------------------------------

_MODALS: Final = word_set("could would should might must may")
_ONCE_MEANT: Final = phrases(
    "/".join(
        f"{who} {meant}"
        for who in ("i", "we", "i had", "we had")
        for meant in ("intended to", "planned to", "had meant to")
    )
    + "/"
    + "/".join(
        f"{who} {meant}"
        for who in ("i was", "we were", "he was", "she was", "they were")
        for meant in ("going to", "about to", "planning to", "tempted to", "supposed to", "meant to", "ready to",
                      "thinking of", "thinking about", "just going to", "just about to", "on the point of")
    )
)  # fmt: skip
_FALLING: Final = FILLERS | word_set("fast away out slowly badly steadily today tonight up down")


def _merely_happens(words: Sequence[str]) -> bool:
    """ "the tank is draining", "the tank might drain": nobody is asked to."""
    if starts(words, _ONCE_MEANT) and "you" not in words[4:6]:
        return True
    modal = len(words) > 3 and words[0] in SUBJECTS and words[1] in _MODALS
    if modal and words[2] == "have" and is_past(words[3]):
        return True  # "you could have fallen"
    if words[0] in ("i", "we") and (words[1] in ("almost", "nearly") or words[1:2] in (["might"], ["may"])):
        return True
    if words[0] in SUBJECTS - {"it", "they"} or words[0] in VERBS:
        return False
    for at, word in enumerate(words[:5]):
        if at and word == "might" and words[at + 1 : at + 2] != ["not"]:
            return words[0] in DETERMINERS or words[0] in ("it", "they")
        if at and word == "will" and words[at + 1 : at + 2] != ["be"]:
            return words[0] in DETERMINERS and all(rest in _FALLING for rest in words[at + 2 :])
        if at and word in ("is", "are", "keeps") and words[at + 1 :] and words[at + 1].endswith("ing"):
            return all(rest in _FALLING for rest in words[at + 2 :])
    return False


# --- small talk -----------------------------------------------------------------------------------------------

# Said by themselves, these answer or fill a silence, and ask for nothing.
_SMALL_TALK: Final = phrases(
    "help/continue/proceed/go on/go ahead/carry on/keep going/come on/do it/do that/do so/"
    "do something/i see/see/got it/understood/agreed/good/great/fine/nice/cool/thanks/"
    "thank you/thank you very much/many thanks/you are welcome/cheers/hello/hi/hello there/"
    "hey there/good morning/good evening/good day/good night/goodbye/bye/sorry/oops/ouch/"
    "alright/later/soon/i am sorry/my bad/excuse me/pardon/wow/damn/damn it/shut up/oh dear/"
    "oh my/my god/oh my god/what the hell/who cares/i do not care/do not care/that is it/"
    "that is all/that is fine/that is nice/that is great/that is funny/sounds good/looks good/"
    "makes sense/never mind/you know/as you wish/as you like/if you like/no problem/how are you/"
    "how are you doing/who are you/up to you/it is up to you/you decide/what is up/what now/"
    "now what/so what/and now/very good/very well/well done/good job/good work/nice one/"
    "nice work/of course/us go/let us go/here we go/go for it/same again/once more/one more time/"
    "try again/undo"
)


def is_small_talk(words: Sequence[str]) -> bool:
    """Whether a whole clause is an answer, a greeting or an oath."""
    rest = tuple(word for word in words if word not in FILLERS)
    return not rest or rest in _SMALL_TALK or tuple(words) in _SMALL_TALK
