"""Dictation: text to be said or written, where no quotation marks say so ("note that the pump is broken")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english import lexicon
from narratoria.narrator.english import words as en
from narratoria.narrator.english.tokens import Token, as_typed, closed_up

# Verbs that take a whole clause: to somebody, or to nobody in particular.
TO_SOMEBODY: Final = lexicon.words("dictation.to_somebody")
_TELLING: Final = frozenset(map(en.stem, TO_SOMEBODY | lexicon.words("dictation.plainly")))
_TELLING_SOMEBODY: Final = frozenset(map(en.stem, TO_SOMEBODY))
_FINITE: Final = en.AUXILIARIES - lexicon.words("dictation.not_finite")
_BEFORE_THE_VERB: Final = lexicon.words("dictation.before_the_verb").union(
    en.FILLERS, en.SUBJECTS, en.AUXILIARIES
)
_NOT_A_SUBJECT: Final = en.QUESTION_WORDS | lexicon.words("dictation.not_a_subject")


def folded(tokens: Sequence[Token]) -> list[Token]:
    """The clause with the dictated text as one quotation: "tell Mira the Cub is ready" is two words and a text."""
    start, width = _statement(tokens)
    if not start:
        return list(tokens)
    told = list(tokens[start + width :])
    if len(told) < 2 or any(token.quoted for token in told):
        return list(tokens)
    return [*tokens[:start], Token(closed_up(as_typed(told)), "something", quoted=True)]


def is_telling(verb: str) -> bool:
    return en.stem(verb) in _TELLING


def _statement(tokens: Sequence[Token]) -> tuple[int, int]:
    """The start of a statement and the number of words that introduce it; (0, 0) where nothing is dictated."""
    head = _head(tokens)
    for at in range(1, len(tokens) - 2):
        word, before = tokens[at].low, tokens[at - 1]
        if tokens[at].quoted or before.quoted:
            continue
        telling = (head is not None and at > head) or before.low in lexicon.words("dictation.written")
        opens = word == "saying" or (word == "that" and _opens_a_clause(tokens, at))
        if telling and opens and before.low not in lexicon.words("dictation.no_statement"):
            return at, 1
        if head is not None and at > head + 1 and word == "not" and tokens[at + 1].low == "to":
            return at, 0  # "tell Mira not to land" tells her something
    return (_bare(tokens, head), 0) if head is not None else (0, 0)


def _head(tokens: Sequence[Token]) -> int | None:
    for at, token in enumerate(tokens[:6]):
        if not token.quoted and en.stem(token.low) in _TELLING:
            return at
        if token.quoted or token.low not in _BEFORE_THE_VERB:
            return None
    return None


def _opens_a_clause(tokens: Sequence[Token], at: int) -> bool:
    """Tell if "that" is followed by a subject and its verb: not "that door", not "the man that is here"."""
    following = tokens[at + 1]
    if following.quoted or following.low in _FINITE:
        return False
    if (
        following.low in en.DETERMINERS | en.SUBJECTS | en.NUMBERS.keys() | {"there"}
        or following.text[:1].isupper()
    ):
        return True
    plural = following.low.endswith("s") and not following.low.endswith("ss")
    return plural or any(_is_finite(tokens, verb) for verb in range(at + 2, min(at + 7, len(tokens))))


def _bare(tokens: Sequence[Token], head: int) -> int:
    """The start of a statement without "that": its subject, behind whoever is addressed; 0 where there is none."""
    first = head + 1
    if first < len(tokens) and tokens[first].low in en.PARTICLES:
        first += 1
    for at in range(first + 1, len(tokens)):
        word = tokens[at].low
        if tokens[at].quoted or word in _NOT_A_SUBJECT or tokens[at - 1].low in _NOT_A_SUBJECT:
            return 0
        if _is_finite(tokens, at):
            start = _subject(tokens, first, at)
            told_whom = start > first or en.stem(tokens[head].low) not in _TELLING_SOMEBODY
            return start if told_whom else 0
    return 0


def _is_finite(tokens: Sequence[Token], at: int) -> bool:
    word, before = tokens[at].low, tokens[at - 1]
    if before.low in en.DETERMINERS - {"this", "that"} or before.low in en.PREPOSITIONS | {"and", ",", "or"}:
        return False  # "the agreed price"
    if word in _FINITE or en.is_past(word):
        return True
    inflected = word.endswith("s") and word not in en.NOUNISH and en.stem(word) in en.VERB_STEMS
    return inflected and at + 1 < len(tokens) and tokens[at + 1].low not in ("and", ",")


def _subject(tokens: Sequence[Token], first: int, verb: int) -> int:
    """The start of the subject of the verb at `verb`: its article or pronoun, else the word before the verb."""
    opens = en.DETERMINERS | en.SUBJECTS | {"there"}
    return next((at for at in range(verb - 1, first - 1, -1) if tokens[at].low in opens), verb - 1)
