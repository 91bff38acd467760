"""A prompt as a list of clauses: what is asked for, asked about or ruled out, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from narratoria.narrator.english.dictation import folded, tells
from narratoria.narrator.english.indirect_orders import active, in_base_form, plain_order
from narratoria.narrator.english.mood import Mood, mood, reports
from narratoria.narrator.english.statements import only_tells, tells_how_things_are
from narratoria.narrator.english.tokens import Token, join, mender, tokenize
from narratoria.narrator.english.words import (
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
    SUBJECTS,
    VERBS,
    stem,
    word_set,
)

__all__ = [
    "MAX_CLAUSES",
    "Clause",
    "Token",
    "has_more_clauses",
    "join",
    "mender",
    "split_clauses",
    "tokenize",
]

MAX_CLAUSES: Final = 24  # a prompt that asks for more is a text, not a request


@dataclass(frozen=True, slots=True)
class Clause:
    tokens: tuple[Token, ...]
    negated: bool = False
    after: tuple[int, ...] = ()  # indices of the clauses that order words put before this one
    mood: Mood = Mood.ORDER
    continues: bool = False  # "…; also the cellar": it may go on with the verb before it
    either: bool = False  # "… or ring the bell": this or the one before it is asked for, not both
    excepts: int = 0  # "all but the cellar": it names what the clause before (-1) or behind it (1) leaves out

    @property
    def text(self) -> str:
        return join(self.tokens)


_SEQUENCE: Final = frozenset(
    {
        "then", "and then", "after that", "and after that", "afterwards", "afterward", "and afterwards",
        "followed by", "after which", "finally", "and finally", "later", "and later", "next", "and next",
        "lastly", "and lastly", "when done", "when that is done", "only then", "and only then", "but only then",
        "thereafter", "subsequently", "thereupon",
    }
)  # fmt: skip
_PRECEDING: Final = frozenset(
    {
        "but first", "and first", "though first", "but before that", "and before that", "before that",
        "but beforehand", "beforehand", "but first of all", "but before you do", "before you do",
    }
)  # fmt: skip
_BEFORE: Final = frozenset({"before"})
_AFTER: Final = frozenset({"after", "once", "when", "as soon as"})
_INSTEAD: Final = frozenset(
    {
        "instead of", "rather than", "without", "except", "except for", "apart from", "other than", "but not",
        "than", "excluding", "save for", "with the exception of", "leaving out", "but leave out",
    }
)  # fmt: skip
_NOT_THESE: Final = _INSTEAD - {"instead of", "rather than", "without", "than"}
_EVERY: Final = word_set("all every each everything everyone everybody anything")
_JOIN: Final = frozenset(
    {"and", "but", ",", ";", ":", "&", "plus", "or", "nor", "while", "—", "-", "yet", "though"}
)
_ENDS: Final = frozenset({".", "!", "?", ";", "\n"})
_LONGEST: Final = 4
_EMPTY: Final = word_set("anything everything all whatever something no yes")
_MORE: Final = word_set("also plus likewise and same")
_TOO: Final = word_set("too also")


@dataclass(slots=True)
class _Piece:
    connector: str
    tokens: list[Token] = field(default_factory=list)
    opens_sentence: bool = False
    asks: bool = False  # its sentence ends with a question mark


def split_clauses(
    tokens: Sequence[Token], is_verb: Callable[[str], bool] = lambda word: False, *, dictates: bool = True
) -> list[Clause]:
    """Clauses in the order they are written; `is_verb` knows verbs beyond the common ones.

    Where nothing can be dictated, "note that Luna weighs 4 kilos" is read as if Luna were weighed.
    """
    clauses: list[Clause] = []
    pending: list[tuple[str, int]] = []  # subordinate clauses that stand before their main clause
    before: tuple[str, int] | None = None  # the relation of the last clause, for one that is joined to it
    sequenced = False  # the last clause waits for those before it: "…, then …"
    for piece in _split(tokens, is_verb)[:MAX_CLAUSES]:
        piece.tokens = folded(piece.tokens) if dictates else piece.tokens
        kind = _kind(piece.connector)
        stripped = _tokens(piece, kind, is_verb)
        if not stripped or all(token.low in _EMPTY and not token.quoted for token in stripped):
            continue
        index = len(clauses)
        shared = before if kind == "join" and _gerund(stripped[0]) and not piece.opens_sentence else None
        clauses.append(_clause(piece, stripped, clauses, is_verb))
        if kind in ("before", "after") and piece.opens_sentence:
            pending.append((kind, index))
        elif kind == "sequence":
            clauses[index] = replace(clauses[index], after=tuple(range(index)))
        elif kind in ("before", "after") and index:
            before = (kind, index - 1)
            _relate(clauses, kind, index, index - 1)
        elif kind == "join" and sequenced and not piece.opens_sentence:  # "…, then wash it and dry it"
            clauses[index] = replace(clauses[index], after=clauses[index - 1].after)
        elif shared:  # "serve after washing the pan and dicing the leek"
            _relate(clauses, shared[0], index, shared[1])
        elif index and (kind == "preceding" or (_said_first(piece) and not piece.opens_sentence)):
            _relate(clauses, "after", index, index - 1)
        sequenced = kind == "sequence" or (kind == "join" and sequenced and not piece.opens_sentence)
        if kind not in ("before", "after"):
            for earlier, subordinate in pending:
                _relate(clauses, earlier, subordinate, index)
            pending.clear()
            before = shared
    return clauses


def has_more_clauses(tokens: Sequence[Token], is_verb: Callable[[str], bool]) -> bool:
    """Whether there are more clauses than are read."""
    return len(tokens) > MAX_CLAUSES and len(_split(tokens, is_verb)) > MAX_CLAUSES


def _clause(
    piece: _Piece, stripped: Sequence[Token], earlier: Sequence[Clause], is_verb: Callable[[str], bool]
) -> Clause:
    spoken = [token.low for token in piece.tokens if not token.quoted]
    said = mood(spoken, asks=piece.asks)
    if said is Mood.ORDER and stripped[0].low == "how" and not stripped[0].quoted:
        said = Mood.QUESTION  # "once you have checked how dry it is"
    if said is Mood.ORDER and _kind(piece.connector) not in ("before", "after"):
        if reports(spoken) or only_tells(spoken, is_verb):
            said = Mood.MUSING
        elif tells_how_things_are(spoken, is_verb):
            said = Mood.STATEMENT
    if piece.connector in _INSTEAD:
        said = Mood.RULED_OUT
    elif earlier and not piece.opens_sentence and said is Mood.ORDER:
        last = earlier[-1].mood
        if piece.connector in ("or", "nor") and last is Mood.RULED_OUT:
            said = last
        elif piece.connector in ("and", "or", "nor", ",") and piece.asks and last is not Mood.RULED_OUT:
            said = last  # "should I go up and ring the bell?"
    words = [token.low for token in piece.tokens]
    more = words[0] in _MORE or words[-1] in _TOO or words[-2:] == ["as", "well"]
    if said is Mood.RULED_OUT and (left := _left_out(piece, stripped, is_verb)):
        return Clause(left, True, mood=said, excepts=-1 if earlier and not piece.opens_sentence else 1)
    either = piece.connector == "or" and said is Mood.ORDER and bool(earlier) and not earlier[-1].negated
    return Clause(
        tuple(stripped), said is Mood.RULED_OUT, mood=said, continues=bool(earlier) and more, either=either
    )


def _left_out(
    piece: _Piece, stripped: Sequence[Token], is_verb: Callable[[str], bool]
) -> tuple[Token, ...] | None:
    """The things of an exception, "except Bolt", "just not Bolt"; None where a deed is ruled out."""
    negated = bool(stripped) and stripped[0].low == "not" and not piece.opens_sentence
    if piece.connector not in _NOT_THESE and not negated:
        return None
    rest = tuple(stripped[1:] if negated else stripped)
    return rest if rest and not _gerund(rest[0]) and not _starts_clause(rest, "", is_verb) else None


def _tokens(piece: _Piece, kind: str, is_verb: Callable[[str], bool]) -> list[Token]:
    stripped = _strip_lead_in(piece.tokens)
    if kind in ("before", "after") and (turned := active(stripped, is_verb)):
        return turned
    if kind in ("before", "after") and stripped:
        stripped = [in_base_form(stripped[0], is_verb), *stripped[1:]]
    if (question := _looked_up(stripped)) is not None:
        return question
    asked = _strip_courtesy(piece.tokens)
    return plain_order(
        asked if asked and asked[0].low in ("can", "could", "would", "will") else stripped, is_verb
    )


def _looked_up(tokens: Sequence[Token]) -> list[Token] | None:
    """ "check how dry it is" as the question that is put: "how dry it is"."""
    words = [token.low for token in tokens[:4]]
    width = 2 if words[:2] == ["find", "out"] else 1 if words[:1] in (["check"], ["see"]) else 0
    if not width or words[width : width + 1] != ["how"] or words[width + 1 : width + 2] in ([], ["to"]):
        return None
    return list(tokens[width:])


def _strip_courtesy(tokens: Sequence[Token]) -> list[Token]:
    rest = [token for token in tokens if token.quoted or token.low not in _ENDS]
    while rest and not rest[0].quoted and rest[0].low in _JOIN | FILLERS:
        rest = rest[1:]
    return rest if len(rest) > 1 and rest[1].low not in SUBJECTS | {"someone", "somebody"} else []


def _said_first(piece: _Piece) -> bool:
    words = [token.low for token in piece.tokens if token.low not in _ENDS]
    return len(words) > 2 and words[-1] in ("first", "beforehand")


def _relate(clauses: list[Clause], kind: str, subordinate: int, main: int) -> None:
    first, second = (main, subordinate) if kind == "before" else (subordinate, main)
    clauses[second] = replace(clauses[second], after=(*clauses[second].after, first))


def _kind(connector: str) -> str:
    if connector in _SEQUENCE:
        return "sequence"
    if connector in _PRECEDING:
        return "preceding"
    if connector in _BEFORE:
        return "before"
    return "after" if connector in _AFTER else "join"


def _split(tokens: Sequence[Token], is_verb: Callable[[str], bool]) -> list[_Piece]:
    pieces = [_Piece("", opens_sentence=True)]
    sentence = 0  # the first piece of this sentence
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
            if tokens[index].low == "?":
                for piece in pieces[sentence:]:
                    piece.asks = True
            if pieces[-1].tokens:
                pieces.append(_Piece("", opens_sentence=True))
                sentence = len(pieces) - 1
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
        if rest and _opens_relation(words, rest, piece, is_verb):
            return index + width - start, "except" if words in ("but", "but no") else words
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


def _opens_relation(words: str, rest: Sequence[Token], piece: _Piece, is_verb: Callable[[str], bool]) -> bool:
    if words in _SEQUENCE:
        return True
    if words in _PRECEDING:
        return bool(piece.tokens) or words != "beforehand"
    if words == "than":
        return any(token.low in ("rather", "sooner") for token in piece.tokens)
    if words == "but":  # "everything but the bell", "ring every bell but the last"
        whole = any(token.low in _EVERY and not token.quoted for token in piece.tokens)
        plain = not _starts_clause(rest, words, is_verb) and rest[0].low not in _NOT_LEFT_OUT
        return whole and (plain or all(token.low in _EMPTY for token in piece.tokens))
    if words in ("but not", "but no"):
        return not (rest[0].low in ("only", "just", "longer", "one") or rest[0].quoted)
    if words in _INSTEAD:
        return _gerund(rest[0]) or words != "without"
    if words in _BEFORE | _AFTER:
        if rest[0].low in _OTHERS and tells(piece.tokens):
            return False  # "note that Rex was fed before he left"
        return _gerund(rest[0]) or rest[0].low in SUBJECTS or _is_passive(rest, is_verb)
    return False


_OTHERS: Final = word_set("he she it they")
_NOT_LEFT_OUT: Final = FILLERS | PREPOSITIONS | AUXILIARIES | SUBJECTS | {"not", "no", "before"}


def _is_passive(rest: Sequence[Token], is_verb: Callable[[str], bool]) -> bool:
    """ "once *the kettle is scrubbed*": a deed, and no mere time ("after the storm")."""
    end = next((at for at, token in enumerate(rest) if token.low in _JOIN | _ENDS), len(rest))
    return active(rest[:end], is_verb) is not None


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


def _strip_lead_in(tokens: Sequence[Token]) -> list[Token]:
    rest = [token for token in tokens if token.quoted or token.low not in _ENDS]
    while rest and not rest[0].quoted and rest[0].low in _JOIN:
        rest = rest[1:]
    changed = True
    while changed:
        changed = False
        for phrase in LEAD_INS:
            if len(rest) > len(phrase) and tuple(token.low for token in rest[: len(phrase)]) == phrase:
                if phrase == ("let", "me") and rest[2].low == "know":
                    continue
                rest = rest[len(phrase) :]
                changed = True
                break
    while rest and not rest[-1].quoted and (rest[-1].low in _JOIN or rest[-1].low in _TRAILING):
        rest = rest[:-1]
    return rest


_TRAILING: Final = word_set("please too also first beforehand")
