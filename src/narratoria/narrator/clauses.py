"""A prompt as a list of clauses: what is asked for, what is ruled out, and in which order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from narratoria.narrator.words import (
    AUXILIARIES,
    DETERMINERS,
    FILLERS,
    LEAD_INS,
    NOUNISH,
    NUMBERS,
    PARTICLES,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    STOPWORDS,
    SUBJECTS,
    VERBS,
    nearest,
    stem,
)

MAX_CLAUSES: Final = 12  # a prompt that asks for more is a text, not a request


@dataclass(frozen=True, slots=True)
class Token:
    text: str  # as written
    low: str  # lower case, typos mended
    quoted: bool = False  # a whole quotation is one token


@dataclass(frozen=True, slots=True)
class Clause:
    tokens: tuple[Token, ...]
    negated: bool = False
    after: tuple[int, ...] = ()  # indices of the clauses that order words put before this one

    @property
    def text(self) -> str:
        return join(self.tokens)


def join(tokens: Iterable[Token]) -> str:
    text = " ".join(token.text if token.quoted else token.low for token in tokens)
    return re.sub(r" (?=[,.!?;:])", "", text)


# --- tokens --------------------------------------------------------------------------------------------

_CONTRACTIONS: Final = (
    (r"\bwon't\b", "will not"),
    (r"\bcan't\b|\bcannot\b", "can not"),
    (r"\bshan't\b", "shall not"),
    (r"n't\b", " not"),
    (r"\blet's\b", "let us"),
    (r"\b(what|who|where|how|when|it|that|there|he|she)'s\b", r"\1 is"),
    (r"'m\b", " am"),
    (r"'re\b", " are"),
    (r"'ll\b", " will"),
    (r"'d\b", " would"),
    (r"'ve\b", " have"),
    (r"(\w)'s\b", r"\1"),  # a possessive adds nothing to "the lantern wick"
    (r"\b(turn|switch|shut|power) of (?=the\b|my\b|all\b)", r"\1 off "),
    (r"\b(gonna)\b", "going to"),
    (r"\b(wanna)\b", "want to"),
)
_QUOTES: Final = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|(?<!\w)\'([^\']+)\'(?!\w)')
_TOKEN: Final = re.compile(r"\x00\d+\x00|\d+(?:[.,]\d+)?|[^\W\d_]+(?:[-'_][^\W\d_]+)*|\d+|[^\w\s]")


def tokenize(prompt: str, mend: Callable[[str], str] = lambda word: word) -> list[Token]:
    """The tokens of a prompt; `mend` maps a lower-case word to what it was meant to be."""
    quotations: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quotations.append(next(group for group in match.groups() if group is not None))
        return f" \x00{len(quotations) - 1}\x00 "

    text = _QUOTES.sub(hide, prompt.replace("\x00", " ").replace("’", "'"))
    for pattern, plain in _CONTRACTIONS:
        text = re.sub(pattern, plain, text, flags=re.IGNORECASE)
    tokens: list[Token] = []
    for raw in _TOKEN.findall(text):
        if raw[0] == "\x00":
            tokens.append(Token(quotations[int(raw[1:-1])], "something", quoted=True))
        else:
            low = raw.casefold()
            tokens.append(Token(raw, mend(low) if len(low) > 2 and low.isalpha() else low))
    return tokens


def mender(story_words: Iterable[str], known: Callable[[str], bool]) -> Callable[[str], str]:
    """Mends typos: a word that is no English word and lies near one of the story's, or near a common verb."""
    story = frozenset(word for word in story_words if len(word) > 2)
    verbs = VERBS | NOUNISH
    small = frozenset(word for word in DETERMINERS | PREPOSITIONS | NUMBERS.keys() if len(word) > 2)

    def mend(word: str) -> str:
        if word in story or word in verbs or word in STOPWORDS or word in NUMBERS or known(word):
            return word
        return nearest(word, story) or nearest(word, small) or nearest(word, verbs) or word

    return mend


# --- clauses -------------------------------------------------------------------------------------------

_SEQUENCE: Final = frozenset(
    {
        "then", "and then", "after that", "and after that", "afterwards", "afterward", "and afterwards",
        "followed by", "after which", "finally", "and finally", "later", "and later", "next", "and next",
        "lastly", "and lastly", "when done", "when that is done",
    }
)  # fmt: skip
_BEFORE: Final = frozenset({"before"})
_AFTER: Final = frozenset({"after", "once", "when", "as soon as"})
_INSTEAD: Final = frozenset({"instead of", "rather than", "without"})
_JOIN: Final = frozenset({"and", "but", ",", ";", ":", "&", "plus", "or", "while", "—", "-", "yet", "though"})
_ENDS: Final = frozenset({".", "!", "?", ";", "\n"})
_LONGEST: Final = 4

_REFUSALS: Final = tuple(
    tuple(line.split())
    for line in (
        "not", "never", "do not", "does not", "did not", "will not", "would not", "can not", "should not",
        "must not", "refuse to", "decline to", "avoid", "rather not", "no need to", "there is no need to",
        "forget about", "never mind", "ignore", "forget", "skip", "refrain from", "am not going to",
        "do not want to", "no longer", "resist", "stay away from", "keep away from",
    )
)  # fmt: skip
_SOFT: Final = SUBJECTS | FILLERS | frozenset({"please", "but", "and", "let", "us", "me"})


@dataclass(slots=True)
class _Piece:
    connector: str
    tokens: list[Token] = field(default_factory=list)
    opens_sentence: bool = False


def split_clauses(
    tokens: Sequence[Token], is_verb: Callable[[str], bool] = lambda word: False
) -> list[Clause]:
    """Clauses in the order they are written; `is_verb` knows verbs beyond the common ones."""
    pieces = _split(tokens, is_verb)
    clauses: list[Clause] = []
    pending: list[tuple[str, int]] = []  # subordinate clauses that stand before their main clause
    for piece in pieces[:MAX_CLAUSES]:
        stripped = _strip_lead_in(piece.tokens)
        if not stripped:
            continue
        index = len(clauses)
        negated = piece.connector in _INSTEAD or _is_refusal(piece.tokens)
        clauses.append(Clause(tuple(stripped), negated))
        kind = _kind(piece.connector)
        if kind in ("before", "after") and piece.opens_sentence:
            pending.append((kind, index))
        elif kind == "sequence":
            clauses[index] = replace(clauses[index], after=tuple(range(index)))
        elif kind in ("before", "after") and index:
            _relate(clauses, kind, index, index - 1)
        if kind not in ("before", "after"):
            for earlier, subordinate in pending:
                _relate(clauses, earlier, subordinate, index)
            pending.clear()
    return clauses


def _relate(clauses: list[Clause], kind: str, subordinate: int, main: int) -> None:
    first, second = (main, subordinate) if kind == "before" else (subordinate, main)
    clauses[second] = replace(clauses[second], after=(*clauses[second].after, first))


def _kind(connector: str) -> str:
    if connector in _SEQUENCE:
        return "sequence"
    if connector in _BEFORE:
        return "before"
    return "after" if connector in _AFTER else "join"


def _split(tokens: Sequence[Token], is_verb: Callable[[str], bool]) -> list[_Piece]:
    pieces = [_Piece("", opens_sentence=True)]
    index = 0
    while index < len(tokens):
        width, connector = _connector_at(tokens, index, pieces[-1], is_verb)
        if width:
            opens = not pieces[-1].tokens and pieces[-1].opens_sentence
            if not pieces[-1].tokens:
                connector = connector if connector not in _JOIN else pieces[-1].connector
                pieces.pop()
            pieces.append(_Piece(connector, opens_sentence=opens))
            index += width
        elif tokens[index].low in _ENDS and not tokens[index].quoted:
            if pieces[-1].tokens:
                pieces.append(_Piece("", opens_sentence=True))
            index += 1
        else:
            pieces[-1].tokens.append(tokens[index])
            index += 1
    return [piece for piece in pieces if piece.tokens]


def _connector_at(
    tokens: Sequence[Token], index: int, piece: _Piece, is_verb: Callable[[str], bool]
) -> tuple[int, str]:
    """How many tokens join the clause before `index` to the one after it, and by what; (0, "") if none."""
    start = index
    while index < len(tokens) and tokens[index].low in (",", "and") and index - start < 2:
        index += 1
    for width in range(_LONGEST, 0, -1):
        words = " ".join(token.low for token in tokens[index : index + width])
        rest = tokens[index + width :]
        if words in _SEQUENCE and rest:
            return index + width - start, words
        if words in _INSTEAD and rest and (_gerund(rest[0]) or words != "without"):
            return index + width - start, words
        if words in _BEFORE | _AFTER and rest and (_gerund(rest[0]) or rest[0].low in SUBJECTS):
            return index + width - start, words
    index = start
    if _kind(piece.connector) in ("before", "after") and piece.opens_sentence and len(piece.tokens) > 1:
        # "Before opening the chest I ask …": the main clause starts at its subject.
        if tokens[index].low in ("i", "we", "you") and piece.tokens[-1].low not in AUXILIARIES:
            return 1, ""
        if tokens[index].low == ",":
            return 1, ""
    width = 0
    while index + width < len(tokens) and tokens[index + width].low in _JOIN:
        width += 1
    if width and piece.tokens and _starts_clause(tokens[index + width :], tokens[index].low, is_verb):
        return width, tokens[index].low
    return 0, ""


def _gerund(token: Token) -> bool:
    return token.low.endswith("ing") and len(token.low) > 4


def _starts_clause(rest: Sequence[Token], connector: str, is_verb: Callable[[str], bool]) -> bool:
    words = [token.low for token in rest if token.low not in FILLERS or token.quoted]
    if not words:
        return False
    head, following = words[0], words[1] if len(words) > 1 else ""
    if rest[0].quoted or head in DETERMINERS or head in NUMBERS or not head[0].isalpha():
        return head == "no" and following == "need"
    if head in ("not", "never", "do", "let", "i", "we", "you", "please") or head in QUESTION_WORDS:
        return True
    if head in AUXILIARIES:
        return True
    if head in ("it", "they", "he", "she", "there") and following in AUXILIARIES:
        return True
    if connector == ":":
        return True
    takes_object = following in DETERMINERS or following in PRONOUNS or following in ("me", "us", "something")
    if head in NOUNISH:
        return (
            takes_object
            or not following
            or following in PREPOSITIONS
            or following in PARTICLES
            or following in _JOIN
            or (is_verb(head) and following not in ("to", "and"))
        )
    if head in VERBS or stem(head) in _VERB_STEMS or is_verb(head):
        return True
    return takes_object and head not in PREPOSITIONS and head not in PRONOUNS


_VERB_STEMS: Final = frozenset(stem(verb) for verb in VERBS - NOUNISH)


def _is_refusal(tokens: Sequence[Token]) -> bool:
    words = [token.low for token in tokens if not token.quoted]
    while words and words[0] in _SOFT | {"am", "would", "will", "should"} and words[0] not in ("never",):
        if tuple(words[:2]) in _REFUSALS or tuple(words[:3]) in _REFUSALS:
            break
        words = words[1:]
    if any(tuple(words[: len(phrase)]) == phrase for phrase in _REFUSALS):
        return True
    # "leave the hound alone", "let it be"
    return len(words) > 2 and words[0] in ("leave", "let") and words[-1] in ("alone", "be")


def _strip_lead_in(tokens: Sequence[Token]) -> list[Token]:
    rest = [token for token in tokens if token.quoted or token.low not in _ENDS]
    while rest and not rest[0].quoted and rest[0].low in _JOIN:
        rest = rest[1:]
    changed = True
    while changed:
        changed = False
        for phrase in LEAD_INS:
            if len(rest) > len(phrase) and tuple(token.low for token in rest[: len(phrase)]) == phrase:
                rest = rest[len(phrase) :]
                changed = True
                break
    while rest and not rest[-1].quoted and (rest[-1].low in _JOIN or rest[-1].low == "please"):
        rest = rest[:-1]
    return rest
