"""The reader of second thoughts: "set it to 80, no wait, make that 50" asks for 50.

`amended` reads tokens, for the tools of a catalogue: its verbs tell if a second thought is a new action, or another
object, number or place in the old one. `corrected` does the same to the text as typed, for the rules of a story; what
is taken back with nothing in its place is a wish to wait, which a story may answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from narratoria.narrator.english import words as en
from narratoria.narrator.english.clauses import starts_clause
from narratoria.narrator.english.lexicon import pattern, phrases, words
from narratoria.narrator.english.normalise import visible, with_apostrophes
from narratoria.narrator.english.tokens import Token, join, tokenize

IsVerb: TypeAlias = Callable[[str], bool]

_CORRECTS: Final = phrases("second_thoughts.corrects")
_DECLINES: Final = phrases("second_thoughts.declines")
_BETWEEN: Final = words("second_thoughts.between")
_MARKS: Final = frozenset(",.!;:-—–…?")
_SENTENCE_ENDS: Final = frozenset(".!?")
_CLAUSE_ENDS: Final = frozenset({".", "!", "?", ";", "then"})
_LONGEST: Final = max(map(len, _CORRECTS))
_MOST: Final = 4  # corrections in one prompt


def takes_back(clause: Sequence[str]) -> bool:
    """Tell if a clause by itself takes back the one before it: "never mind", "no way"."""
    return tuple(clause) in phrases("second_thoughts.cancels")


# --- among tokens -------------------------------------------------------------------------------------------


def amended(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token]:
    """The tokens as if what was taken back had never been said; `is_verb` knows the catalogue's verbs."""
    rest = list(tokens)
    for _ in range(_MOST):
        at, end = _correction(rest)
        if not at:
            break
        before, after = rest[:at], rest[end:]
        ends = (at + 1 for at in range(len(before) - 1, 0, -1) if _ends_clause(before, at, is_verb))
        start = next(ends, 0)
        stop = next((at for at in range(len(after)) if _ends_clause(after, at, is_verb)), len(after))
        wrong, right = before[start:], after[:stop]
        if right and not starts_clause(right, "", is_verb):
            right = _replaced(wrong, right)
        rest = [*before[:start], *right, *after[stop:]]
    return _without_cancelled(rest)


def _without_cancelled(tokens: Sequence[Token]) -> list[Token]:
    """Leaves out a sentence that is called off: "Light the lamp. Oh, never mind."; all of it where it was a jest."""
    start = 0  # of the last sentence that says anything
    for at, token in enumerate(tokens):
        turns = token.low in ("but", "then")
        if not at or token.quoted or token.low == ":" or not (turns or token.low in _MARKS):
            continue
        end = next((end for end in range(at + 1, len(tokens)) if tokens[end].low in _MARKS), len(tokens))
        clause = ["" if token.quoted else token.low for token in tokens[at + 1 : end]]
        jests = not turns and tuple(clause) in phrases("second_thoughts.jests")
        if jests or tuple(clause) in _DECLINES or (not turns and takes_back(clause)):
            return _without_cancelled([*tokens[: 0 if jests else start], *tokens[end:]])
        if token.low in _SENTENCE_ENDS and not _BETWEEN.issuperset(clause):
            start = at + 1
    return list(tokens)


def _correction(tokens: Sequence[Token]) -> tuple[int, int]:
    """The place of the words that take something back, marks included; (0, 0) where there are none."""
    for at in range(1, len(tokens)):
        if tokens[at].quoted or (tokens[at - 1].low not in _MARKS and tokens[at].low != "or"):
            continue
        end, found = at, False
        while end < len(tokens) and not tokens[end].quoted:
            width = _correcting_width(tokens, end)
            if not width and tokens[end].low not in _BETWEEN and (end == at or tokens[end].low not in _MARKS):
                break
            found |= bool(width)
            end += width or 1
        if found:
            while at > 1 and tokens[at - 1].low in _MARKS:
                at -= 1
            return at, end
    return 0, 0


def _correcting_width(tokens: Sequence[Token], at: int) -> int:
    """The number of tokens that a correcting phrase takes up at `at`, commas within it included; 0 for none."""
    said: list[str] = []
    for width, token in enumerate(tokens[at : at + 2 * _LONGEST], 1):
        if token.quoted:
            return 0
        if token.low in _MARKS:
            continue
        said.append(token.low)
        if tuple(said) in _CORRECTS:
            return width
    return 0


def _ends_clause(tokens: Sequence[Token], at: int, is_verb: IsVerb) -> bool:
    if tokens[at].quoted:
        return False
    joins = tokens[at].low in ("and", ",") and at + 1 < len(tokens)
    return tokens[at].low in _CLAUSE_ENDS or (joins and starts_clause(tokens[at + 1 :], "", is_verb))


def _replaced(wrong: list[Token], right: list[Token]) -> list[Token]:
    """The wrong clause with `right` in its place: of the same preposition, of the number, of the last thing."""
    first = right[0].low
    if len(wrong) == 1 and len(right) == 1:
        return right  # "down, no, up"
    places = range(len(wrong) - 1, 0, -1)
    if first in en.PREPOSITIONS and len(right) > 1:
        at = next((at for at in places if wrong[at].low == first), len(wrong))
        return [*wrong[:at], *right]
    if _is_number(first):
        at = next((at for at in places if _is_number(wrong[at].low)), len(wrong))
        return [*wrong[:at], *right, *(wrong[at + 1 :] if len(right) == 1 else [])]
    at = len(wrong)
    while (
        at > 1
        and wrong[at - 1].low not in en.PREPOSITIONS | en.PRONOUNS
        and (at > 2 or wrong[1].low not in en.VERBS)
    ):
        at -= 1
        if wrong[at].low in en.DETERMINERS:
            break
    thing = wrong[-1:] if right[-1].low in ("one", "ones") and len(right) > 1 else []
    return [*wrong[:at], *(right[:-1] if thing else right), *thing]


def _is_number(word: str) -> bool:
    return word[:1].isdecimal() or word in en.NUMBERS


# --- in the text as typed -----------------------------------------------------------------------------------

_DOUBTING: Final = pattern("second_thoughts.doubting")
_WAIT: Final = "wait"  # "take the oil, no wait": nothing is to be done yet
_LONGEST_REQUEST: Final = 1_000  # characters; what is longer is a text


def corrected(prompt: str) -> str:
    """The prompt without what the player took back; a thing in its place gets the verb that stood before."""
    prompt = _DOUBTING.sub(_undoubted, with_apostrophes(visible(prompt)))
    tokens = tokenize(prompt) if len(prompt) <= _LONGEST_REQUEST else []
    if not _correction(tokens)[0]:
        return prompt
    return join(amended(tokens, lambda word: False)) or _WAIT


def _undoubted(match: re.Match[str]) -> str:
    return f"{match[1]}{'will' if match[2].lower() == 'wo' else match[2]} "
