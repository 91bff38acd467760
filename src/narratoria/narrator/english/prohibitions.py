"""What a clause rules out: "don't light it", "leave it as it is", "make sure it isn't lit".

Words come as `mood` gets them: in lower case, contractions spelled out, without courtesies in front.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final

from narratoria.narrator.english.words import (
    AUXILIARIES,
    FILLERS,
    NOUNISH,
    PREPOSITIONS,
    STOPWORDS,
    SUBJECTS,
    VERBS,
    word_set,
)


def starts(words: Sequence[str], phrases: Collection[tuple[str, ...]]) -> bool:
    return any(tuple(words[: len(phrase)]) == phrase for phrase in phrases)


def phrases(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(part.split()) for part in text.split("/"))


_REFUSALS: Final = phrases(
    "never/not/under no circumstances/on no account/by no means/at no point/in no case/no way/"
    "refuse to/decline to/avoid/rather not/no need to/no need for/there is no need to/there is no need for/"
    "no reason to/no reason for/there is no reason to/there is no reason for/no point in/there is no point in/"
    "no sense in/there is no sense in/no use in/there is no use in/no cause to/there is no cause to/"
    "forget about/never mind/nevermind/ignore/forget/skip/omit/leave out/refrain from/abstain from/"
    "hold off on/hold off with/hold off/hold back on/hold back from/hold back/put off/"
    "no longer/no more/resist/stay away from/keep away from/steer clear of/keep off/keep out of/"
    "stop short of/i stop short of/we stop short of/"
    "hands off/neither/none of/nobody/no one/nothing/far from/anything but/except/except for/"
    "everything except/everything but/all except/all but/apart from/other than/rather than/instead of/without/"
    "do nothing/do nothing to/do nothing with/"
    "i forbid/forbid/it is forbidden to/it is not necessary to/do not/does not/did not/will not/would not/"
    "can not/should not/must not/shall not/may not/need not/could not"
)
_BEFORE_NOT: Final = (
    SUBJECTS
    | AUXILIARIES
    | FILLERS
    | word_set(
        "let us me to make sure that careful want choose decide prefer better best rather whatever ensure "
        "mind see anyone anybody someone somebody please promise agree try care certain take"
    )
)
_NO_IS_A_WORD: Final = word_set("matter doubt problem longer wonder idea one mistake less")


def is_ruled_out(words: Sequence[str]) -> bool:
    if starts(words, _REFUSALS):
        return True
    for at, word in enumerate(words):
        if word in ("not", "never") and words[at + 1 : at + 2] not in (["only"], ["just"], ["merely"]):
            return True
        if word not in _BEFORE_NOT and tuple(words[at : at + 2]) not in _REFUSALS:
            break
        if at and starts(words[at:], _REFUSALS) and word not in ("without", "except", "nothing"):
            return True
    if _has_empty_object(words) or _is_forbidden(words) or _shall_not_come_about(words):
        return True
    if tuple(words[-2:]) == ("can", "wait") or _may_be_kept(words):
        return True
    wished = _wished(words)
    if wished and (is_ruled_out(wished) or _is_denied(wished)):
        return True
    # "leave the hound alone", "let it be", "leave it for now"
    kept = len(words) > 2 and words[0] in ("leave", "let", "keep")
    if kept and (words[-1] in _UNTOUCHED or tuple(words[-2:]) == ("as", "is")):
        return True
    stands = words[-1] in _AS_IT_STANDS or words[-1].endswith("ing")
    if words[0] == "leave" and len(words) > 2 and stands:
        return True
    # "the vents stay as they are", "leave it where it is for now"
    stays = kept or any(word in _STAYS for word in words[:6])
    return stays and any(tuple(words[at : at + 3]) in _AS_IT_IS for at in range(1, len(words) - 2))


def _may_be_kept(words: Sequence[str]) -> bool:
    """ "let Tom keep the book", "Tom can keep it": whose it is, it stays with."""
    if words[0] not in SUBJECTS | AUXILIARIES and any(pair in _MAY_STAY for pair in pairwise(words[1:9])):
        return True  # "the lights in the hall can stay on"
    at = next((at for at, word in enumerate(words[:6]) if word == "keep"), 0)
    kept = words[at + 1] if at + 1 < len(words) else ""
    if not at or not kept or kept.endswith("ing") or kept in VERBS | NOUNISH | PREPOSITIONS | _HOW_KEPT:
        return False
    let = words[0] == "let" and at > 1 and words[1] not in ("me", "us")
    return let or (words[at - 1] in ("can", "may", "could", "might") and words[0] not in AUXILIARIES)


_MAY_STAY: Final = frozenset((may, stay) for may in ("can", "may") for stay in ("stay", "remain"))
_HOW_KEPT: Final = word_set(
    "quiet still calm silent warm cool safe dry clean busy awake track pace time order"
)
_AS_IT_STANDS: Final = word_set("on off open closed shut lit unlit locked unlocked")
_UNTOUCHED: Final = word_set("alone be untouched unchanged unopened undisturbed unharmed")
_STAYS: Final = word_set("stay stays remain remains leave keep")
_AS_IT_IS: Final = frozenset(
    (how, who, be)
    for how in ("as", "where", "how", "like")
    for who, be in (("it", "is"), ("they", "are"), ("he", "is"), ("she", "is"), ("that", "is"))
)


def _is_forbidden(words: Sequence[str]) -> bool:
    """ "the lamp must not be lit", "the door is not to be opened": the subject is no deed."""
    for at, (word, following) in enumerate(pairwise(words)):
        if (word in VERBS and word not in NOUNISH) or (not at and following in ("that", "whether", "if")):
            return False  # "check that it is not too salty"
        if at and word in AUXILIARIES and following == "not":
            return words[at + 2 : at + 3] not in (["only"], ["just"], ["merely"])
    return False


def _shall_not_come_about(words: Sequence[str]) -> bool:
    """ "make sure the lamp is not lit", "see that he gets no salt": what is to be so is that it is not done."""
    return _is_denied(after_outcome(words))


def _is_denied(rest: Sequence[str]) -> bool:
    for at, word in enumerate(rest):
        if word in VERBS and word not in NOUNISH and word not in AUXILIARIES:
            return False  # "make sure to write that it is not lit"
        if word in _NOT_AT_ALL:
            return at + 1 == len(rest) or rest[at + 1] not in _NOT_A_DENIAL
    return False


def _wished(words: Sequence[str]) -> Sequence[str]:
    """What is wished for, of "I want the lamp not lit", "I insist that you do not light it"."""
    rest = words[1:] if words[0] in ("i", "we") else []
    while rest and rest[0] in ("would", "do", "really", "just", "only", "strongly"):
        rest = rest[1:]
    if not rest or rest[0] not in _WISHES:
        return []
    rest = rest[1:]
    for opening in (("that", "you"), ("you", "to"), ("that",), ("to",), ("you",)):
        if tuple(rest[: len(opening)]) == opening:
            return rest[len(opening) :]
    return rest


_WISHES: Final = word_set("want need like prefer wish insist demand expect order ask urge request")


def after_outcome(words: Sequence[str]) -> Sequence[str]:
    """What is to be so, of "see to it that the lamp is lit"; nothing where no such words open the clause."""
    for phrase in OUTCOMES:
        if tuple(words[: len(phrase)]) == phrase:
            rest = words[len(phrase) :]
            return rest[1:] if rest[:1] == ["that"] else rest
    return []


OUTCOMES: Final = phrases(
    "make sure/make certain/be sure/be certain/see to it/see that/ensure/be careful that/take care that/"
    "mind that/watch that/guarantee/make it so/arrange that/arrange it so/take care"
)
_NOT_AT_ALL: Final = word_set("not never no nobody nothing none neither")
_NOT_A_DENIAL: Final = word_set("only just merely on off later more less fewer longer matter doubt")


def _has_empty_object(words: Sequence[str]) -> bool:
    """ "pay neither bill", "no salt", "open no door", "touch nothing"."""
    words = words[1:] if words[0] in ("i", "we") else words  # "I feed no goat"
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word == "neither" or (word in ("nothing", "none", "nobody") and at <= 2 and following != "to"):
            return True
        plain = following and following not in PREPOSITIONS and following not in _NO_IS_A_WORD
        if word == "no" and at <= 1 and plain and following not in STOPWORDS:
            return True
    return False
