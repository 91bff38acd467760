"""What a prompt takes back in the same breath: "set it to 80, no wait, make that 50" asks for 50.

`correction` does so for the rules of a story, among letters. A catalogue needs a way of its own: only its verbs tell
whether a second thought is a new deed or a new object, number or place in the old one; and what is taken back with
nothing in its place asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from narratoria.narrator.english.tokens import Token
from narratoria.narrator.english.words import (
    DETERMINERS,
    NOUNISH,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    VERBS,
    word_set,
)

_TAKES_BACK: Final = frozenset(
    tuple(phrase.split())
    for phrase in (
        "no wait", "wait no", "no sorry", "sorry no", "sorry i mean", "i mean", "i meant", "no make that",
        "make that", "scratch that", "strike that", "belay that", "no rather", "or rather", "actually no",
        "no actually", "on second thought", "on second thoughts", "correction", "no hang on", "no hold on",
        "sorry make that", "sorry make it", "no make it", "wait make that", "wait make it", "hang on no", "no not that",
    )
)  # fmt: skip
_SMALL: Final = word_set("no wait sorry actually oops er um oh that it make")
_MARKS: Final = frozenset(",.!;:-—–…?")
_CLAUSE_ENDS: Final = frozenset({".", "!", "?", ";", "then"})
_LONGEST: Final = 3
_MOST: Final = 4  # corrections in one prompt

IsVerb = Callable[[str], bool]


def amended(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token]:
    """The tokens as if what was taken back had never been said."""
    rest = _without_what_is_denied(tokens, is_verb)
    for _ in range(_MOST):
        at, end = _second_thought(rest)
        if not at:
            break
        before, after = rest[:at], rest[end:]
        start = _clause_start(before, is_verb)
        wrong, stop = before[start:], _fragment_end(after, is_verb)
        fragment = after[:stop]
        if not fragment:
            rest = before[:start] + after[stop:]
        elif _is_verb(fragment, is_verb):
            rest = before[:start] + after
        else:
            rest = before[:start] + _replaced(wrong, fragment, is_verb) + after[stop:]
    return _without_what_is_let_be(rest)


def _without_what_is_denied(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token]:
    """ "Light the lamp? No way." asks and answers: nothing of the question is left."""
    start = 0
    for at, token in enumerate(tokens):
        if token.low in (".", "!", "?") and not token.quoted:
            end = _next_mark(tokens, at + 1)
            words = _plain_words(tokens[at + 1 : end])
            if token.low == "?" and words and (tuple(words) in _LET_BE or _denies(words, is_verb)):
                return _without_what_is_denied([*tokens[:start], *tokens[end:]], is_verb)
            start = at + 1
    return list(tokens)


def _without_what_is_let_be(tokens: Sequence[Token]) -> list[Token]:
    """ "Light the lamp. Oh, never mind." and "Light the lamp - just kidding" ask for nothing."""
    start = 0  # of the last sentence that says anything
    for at, token in enumerate(tokens):
        turns = token.low in _TURNS and bool(at)
        if token.quoted or (token.low not in _MARKS and not turns) or token.low == ":":
            continue
        end = _next_mark(tokens, at + 1)
        words = tuple(_plain_words(tokens[at + 1 : end]))
        if turns and not _declines(words):
            continue
        if at and (words in _JESTS or words in _LET_BE or _declines(words)):
            return _without_what_is_let_be([*tokens[: 0 if words in _JESTS else start], *tokens[end:]])
        if token.low in (".", "!", "?") and not all(word in _SMALL for word in words):
            start = at + 1
    return list(tokens)


def _declines(words: Sequence[str]) -> bool:
    """ "but I'm not going to", "no I don't", "then I changed my mind": of a deed that was spoken of before."""
    at = 0
    while at < len(words) and words[at] in _BEFORE_DECLINING:
        at += 1
    own = bool({"i", "we"} & set(words[:at])) or bool(_BY_ITSELF & set(words[at : at + 1]))
    return own and tuple(words[at:]) in _DECLINED


_TURNS: Final = word_set("but though yet then and")
_BY_ITSELF: Final = word_set("changed change thought think decided decide refused declined")
_BEFORE_DECLINING: Final = word_set(
    "but though yet and then no nope well actually oh i we have had just really simply honestly so now"
)


def _plain_words(tokens: Sequence[Token]) -> list[str]:
    return [] if any(token.quoted for token in tokens) else [token.low for token in tokens]


def _next_mark(tokens: Sequence[Token], at: int) -> int:
    return next((end for end in range(at, len(tokens)) if tokens[end].low in _MARKS), len(tokens))


def _denies(words: Sequence[str], is_verb: IsVerb) -> bool:
    """ "no way", "not a chance", "absolutely not": an answer, and no order of its own."""
    if len(words) < _LONG_ANSWER and (words[-1] in _DENIALS or any(word in _SCORN for word in words)):
        return True
    acts = any(is_verb(word) or (word in VERBS and word not in NOUNISH) for word in words[1:])
    return words[0] in _DENIALS and not acts


_LONG_ANSWER: Final = 6  # words
_SCORN: Final = word_set(
    "mad crazy insane joking kidding stupid ridiculous nonsense absurd silly foolish rubbish"
)
_DENIALS: Final = word_set("no nope nah never not")


def _phrases(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(part.split()) for part in text.split("/"))


# Said by themselves, these take back the sentence before them, a jest all that was said.
_LET_BE: Final = _phrases(
    "no/nope/nah/not/no no/no do not/do not/please do not/actually do not/actually not/better not/rather not/"
    "i would rather not/never mind/nevermind/oh never mind/actually never mind/forget it/forget that/oh forget it/"
    "actually forget it/forget about it/i take it back/i take that back/not really/on second thought do not/"
    "no thanks/no thank you/no way/not a chance/no chance/fat chance/as if/over my dead body/out of the question/"
    "that is out of the question/i do not think so/i think not/dream on/i changed my mind/i have changed my mind/"
    "he said/she said/they said/he says/she says/they say"
)
_DECLINED: Final = _phrases(
    "do not/did not/will not/would not/shall not/am not/are not/can not/could not/am not going to/are not going to/"
    "will not do it/will not do that/will not do so/am not doing that/am not doing it/do not do it/do not want to/"
    "did not want to/do not dare/do not dare to/can not be bothered/could not be bothered/do not feel like it/refuse/"
    "refused/refuse to/decline/declined/changed my mind/changed our minds/change my mind/thought better of it/"
    "think better of it/decided against it/decide against it/decided not to/decide not to/would rather not/"
    "better not/am not so sure/am not sure/will not be doing that/am not about to/never did/did not do it"
)
_JESTS: Final = _phrases(
    "kidding/just kidding/only kidding/i am kidding/i am just kidding/i am only kidding/i was kidding/"
    "i was just kidding/i was only kidding/joking/just joking/only joking/i am joking/i am just joking/"
    "i am only joking/i was joking/i was only joking/i was just joking/jk/lol jk/just a joke/only a joke/"
    "that was a joke/it was a joke/that is a joke/not seriously/just messing with you/forget i said that/"
    "forget i said anything/forget what i said/forget all that/forget everything/forget all of that"
)


def _second_thought(tokens: Sequence[Token]) -> tuple[int, int]:
    """Where the words that take something back begin and end, marks included; (0, 0) where there are none."""
    for at in range(1, len(tokens)):
        opens = tokens[at - 1].low in _MARKS or tokens[at].low == "or"
        if not opens or tokens[at].quoted:
            continue
        end, found = at, False
        while end < len(tokens) and not tokens[end].quoted:
            width = _takes_back(tokens, end)
            if width:
                found, end = True, end + width
            elif tokens[end].low in _SMALL or (tokens[end].low in _MARKS and end > at):
                end += 1
            else:
                break
        if found:
            while at > 1 and tokens[at - 1].low in _MARKS:
                at -= 1
            return at, end
    return 0, 0


def _takes_back(tokens: Sequence[Token], at: int) -> int:
    """How many tokens one of the phrases takes up at `at`, commas within it included; 0 where none stands there."""
    words: list[str] = []
    for width, token in enumerate(tokens[at : at + 2 * _LONGEST], 1):
        if token.quoted:
            return 0
        if token.low in _MARKS:
            continue
        words.append(token.low)
        if tuple(words) in _TAKES_BACK:
            return width
    return 0


def _clause_start(tokens: Sequence[Token], is_verb: IsVerb) -> int:
    for at in range(len(tokens) - 1, 0, -1):
        if tokens[at].quoted:
            continue
        joins = tokens[at].low in ("and", ",") and at + 1 < len(tokens)
        if tokens[at].low in _CLAUSE_ENDS or (joins and _is_verb(tokens[at + 1 :], is_verb)):
            return at + 1
    return 0


def _fragment_end(tokens: Sequence[Token], is_verb: IsVerb) -> int:
    for at, token in enumerate(tokens):
        joins = token.low in ("and", ",") and at + 1 < len(tokens) and _is_verb(tokens[at + 1 :], is_verb)
        if not token.quoted and (token.low in _CLAUSE_ENDS or joins):
            return at
    return len(tokens)


def _is_verb(tokens: Sequence[Token], is_verb: IsVerb) -> bool:
    word = tokens[0].low
    if tokens[0].quoted or word in NUMBERS or word in PREPOSITIONS:
        return False
    follows = tokens[1].low if len(tokens) > 1 else ""
    if word in NOUNISH or is_verb(word):
        return follows in DETERMINERS | PRONOUNS | PREPOSITIONS or (word in VERBS and bool(follows))
    return word in VERBS or word in ("do", "let", "please", "i", "we", "just")


def _replaced(wrong: list[Token], fragment: list[Token], is_verb: IsVerb) -> list[Token]:
    """The clause with `fragment` in the place of what it corrects: the same preposition, the number, the last thing."""
    first = fragment[0].low
    places = range(len(wrong) - 1, 0, -1)
    if first in PREPOSITIONS:
        at = next((at for at in places if wrong[at].low == first), len(wrong))
        return [*wrong[:at], *fragment]
    if first[:1].isdecimal() or first in NUMBERS:
        at = next(
            (at for at in places if wrong[at].low[:1].isdecimal() or wrong[at].low in NUMBERS), len(wrong)
        )
        return [*wrong[:at], *fragment, *(wrong[at + 1 :] if len(fragment) == 1 else [])]
    at = len(wrong)
    while at > 1 and wrong[at - 1].low not in PREPOSITIONS | PRONOUNS and not _opens(wrong, at - 1, is_verb):
        at -= 1
        if wrong[at].low in DETERMINERS:
            break
    thing = wrong[-1:] if fragment[-1].low in ("one", "ones") and len(fragment) > 1 else []
    return [*wrong[:at], *(fragment[:-1] if thing else fragment), *thing]


def _opens(tokens: Sequence[Token], at: int, is_verb: IsVerb) -> bool:
    return at == 0 or (tokens[at].low in VERBS and at < 2)
