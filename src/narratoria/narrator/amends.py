"""What a prompt takes back in the same breath: "set it to 80, no wait, make that 50" asks for 50.

`correction` does so for the rules of a story, among letters. A catalogue needs a way of its own: only its verbs tell
whether a second thought is a new deed or a new object, number or place in the old one; and what is taken back with
nothing in its place asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from narratoria.narrator.tokens import Token
from narratoria.narrator.words import (
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
    rest = _without_what_is_denied(tokens)
    for _ in range(_MOST):
        at, end = _second_thought(rest)
        if not at:
            return rest
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
    return rest


def _without_what_is_denied(tokens: Sequence[Token]) -> list[Token]:
    """ "Light the lamp? No." asks and answers: nothing of the question is left."""
    kept: list[Token] = []
    start = 0
    for at, token in enumerate(tokens):
        if token.low == "?" and not token.quoted:
            follows = tokens[at + 1].low if at + 1 < len(tokens) else ""
            alone = at + 2 >= len(tokens) or tokens[at + 2].low in _MARKS
            if follows in _DENIALS and alone:
                rest = [*kept, *tokens[at + 2 :]]
                return _without_what_is_denied(rest)
        if token.low in (".", "!", "?") and not token.quoted:
            kept += tokens[start : at + 1]
            start = at + 1
    return list(tokens)


_DENIALS: Final = word_set("no nope nah never not")


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
