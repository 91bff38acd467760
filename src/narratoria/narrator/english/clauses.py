"""The clause splitter: a prompt as clauses, each with its mood and its place in the order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal, TypeAlias

from narratoria.narrator.english import words as en
from narratoria.narrator.english.dictation import folded
from narratoria.narrator.english.lexicon import phrases, words
from narratoria.narrator.english.mood import Mood, mood, reports, tells_how_things_are
from narratoria.narrator.english.tokens import Token, join

IsVerb: TypeAlias = Callable[[str], bool]
Kind: TypeAlias = Literal["sequence", "preceding", "before", "after", "join"]

MAX_CLAUSES: Final = 24  # a prompt that asks for more is a text, not a request


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a prompt with one verb."""

    tokens: tuple[Token, ...]
    negated: bool = False
    after: tuple[int, ...] = ()  # indices of the clauses that order words put before this one
    mood: Mood = Mood.ORDER
    either: bool = False  # "… or ring the bell": this or the one before it is asked for, not both
    excepts: int = 0  # "all but the cellar": it names what the clause before (-1) or behind it (1) leaves out

    @property
    def text(self) -> str:
        return join(self.tokens)


_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(map(" ".join, phrases("clauses.sequence")), "sequence"),
    **dict.fromkeys(map(" ".join, phrases("clauses.preceding")), "preceding"),
    **dict.fromkeys(("after", "once", "when", "as soon as"), "after"),
    "before": "before",
}
_INSTEAD: Final = frozenset(map(" ".join, phrases("clauses.instead")))
_NOT_THESE: Final = _INSTEAD - {"instead of", "rather than", "without", "than"}
_JOIN: Final = words("clauses.joints")
_ENDS: Final = frozenset({".", "!", "?", ";", "\n"})
_EMPTY: Final = words("clauses.empty")
_NOT_LEFT_OUT: Final = en.FILLERS | en.PREPOSITIONS | en.AUXILIARIES | en.SUBJECTS | {"not", "no", "before"}
_LONGEST: Final = 4  # words of a connector


@dataclass(slots=True)
class Piece:
    """A clause as it is written, and the words that join it to the one before."""

    connector: str
    tokens: list[Token] = field(default_factory=list)
    opens_sentence: bool = False
    asks: bool = False  # its sentence ends with a question mark

    @property
    def kind(self) -> Kind:
        return _KINDS.get(self.connector, "join")

    @property
    def is_subordinate(self) -> bool:
        return self.kind in ("before", "after")


# The number of tokens that join a clause to the next at a place, and by what; (0, "") where none do.
JointAt: TypeAlias = Callable[[Sequence[Token], int, Piece], tuple[int, str]]


def split_clauses(
    tokens: Sequence[Token], is_verb: IsVerb = lambda word: False, *, dictates: bool = True
) -> list[Clause]:
    """Clauses in the order they are written; `is_verb` knows verbs beyond the common ones.

    Where nothing can be dictated, "note that Luna weighs 4 kilos" is read as if Luna were weighed.
    """
    splitter = _Splitter(is_verb)
    for piece in split(tokens, partial(_connector_at, is_verb))[:MAX_CLAUSES]:
        piece.tokens = folded(piece.tokens) if dictates else piece.tokens
        splitter.add(piece)
    return splitter.clauses


def has_more_clauses(tokens: Sequence[Token], is_verb: IsVerb) -> bool:
    """Tell if there are more clauses than are read."""
    return len(split(tokens, partial(_connector_at, is_verb))) > MAX_CLAUSES


class _Splitter:
    """The clauses so far, and what their order words still wait for."""

    def __init__(self, is_verb: IsVerb) -> None:
        self.is_verb = is_verb
        self.clauses: list[Clause] = []
        self.pending: list[tuple[Kind, int]] = []  # subordinate clauses that stand before their main clause
        self.before: tuple[Kind, int] | None = None  # the relation of the last clause, for one joined to it
        self.sequenced = False  # the last clause waits for those before it: "…, then …"

    def add(self, piece: Piece) -> None:
        stripped = _without_lead_in(piece.tokens)
        if piece.is_subordinate and stripped:
            stripped = active(stripped, self.is_verb) or stripped
        if all(token.low in _EMPTY and not token.quoted for token in stripped):
            return
        joined = piece.kind == "join" and not piece.opens_sentence
        shared = self.before if joined and is_gerund(stripped[0]) else None
        self.clauses.append(_clause(piece, stripped, self.clauses, self.is_verb))
        self._order(piece, shared, joined)
        self.sequenced = piece.kind == "sequence" or (joined and self.sequenced)
        if not piece.is_subordinate:
            for kind, subordinate in self.pending:
                self._relate(kind, subordinate, len(self.clauses) - 1)
            self.pending.clear()
            self.before = shared

    def _order(self, piece: Piece, shared: tuple[Kind, int] | None, joined: bool) -> None:
        """Puts the last clause before or after the others, as its connector says."""
        last = len(self.clauses) - 1
        if piece.is_subordinate and piece.opens_sentence:
            self.pending.append((piece.kind, last))
        elif piece.kind == "sequence":
            self.clauses[last] = replace(self.clauses[last], after=tuple(range(last)))
        elif piece.is_subordinate and last:
            self.before = (piece.kind, last - 1)
            self._relate(piece.kind, last, last - 1)
        elif joined and self.sequenced:  # "…, then wash it and dry it"
            self.clauses[last] = replace(self.clauses[last], after=self.clauses[last - 1].after)
        elif shared:  # "serve after washing the pan and dicing the leek"
            self._relate(shared[0], last, shared[1])
        elif last and piece.kind == "preceding":
            self._relate("after", last, last - 1)

    def _relate(self, kind: Kind, subordinate: int, main: int) -> None:
        first, second = (main, subordinate) if kind == "before" else (subordinate, main)
        self.clauses[second] = replace(self.clauses[second], after=(*self.clauses[second].after, first))


# --- one clause ---------------------------------------------------------------------------------------------


def _clause(piece: Piece, stripped: Sequence[Token], earlier: Sequence[Clause], is_verb: IsVerb) -> Clause:
    last = earlier[-1] if earlier and not piece.opens_sentence else None
    said = _mood(piece, stripped, last, is_verb)
    if said is Mood.RULED_OUT and (left := _left_out(piece, stripped, is_verb)):
        return Clause(left, True, mood=said, excepts=-1 if last else 1)
    either = piece.connector == "or" and said is Mood.ORDER and bool(earlier) and not earlier[-1].negated
    return Clause(tuple(stripped), said is Mood.RULED_OUT, mood=said, either=either)


def _mood(piece: Piece, stripped: Sequence[Token], last: Clause | None, is_verb: IsVerb) -> Mood:
    """The mood of a clause by its own words, by its connector, or by the clause it is joined to."""
    if piece.connector in _INSTEAD:
        return Mood.RULED_OUT
    said = _own_mood(piece, stripped, is_verb)
    if last is None or said is not Mood.ORDER:
        return said
    if piece.connector in ("or", "nor") and last.mood is Mood.RULED_OUT:
        return last.mood
    asked = piece.connector in ("and", "or", "nor", ",") and piece.asks  # "should I go up and ring the bell?"
    return last.mood if asked and last.mood is not Mood.RULED_OUT else said


def _own_mood(piece: Piece, stripped: Sequence[Token], is_verb: IsVerb) -> Mood:
    spoken = [token.low for token in piece.tokens if not token.quoted]
    said = mood(spoken, asks=piece.asks)
    if said is not Mood.ORDER:
        return said
    if stripped[0].low == "how" and not stripped[0].quoted:
        return Mood.QUESTION  # "once you have checked how dry it is"
    if piece.is_subordinate:
        return said
    if reports(spoken):
        return Mood.MUSING
    return Mood.STATEMENT if tells_how_things_are(spoken, is_verb) else said


def _left_out(piece: Piece, stripped: Sequence[Token], is_verb: IsVerb) -> tuple[Token, ...] | None:
    """The things of an exception, "except Bolt", "just not Bolt"; None where an action is ruled out."""
    negated = bool(stripped) and stripped[0].low == "not" and not piece.opens_sentence
    if piece.connector not in _NOT_THESE and not negated:
        return None
    rest = tuple(stripped[1:] if negated else stripped)
    return rest if rest and not is_gerund(rest[0]) and not starts_clause(rest, "", is_verb) else None


def _without_lead_in(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without what opens and ends a request and says nothing about it."""
    rest = [token for token in tokens if token.quoted or token.low not in _ENDS]
    while rest and not rest[0].quoted and rest[0].low in _JOIN:
        rest = rest[1:]
    low = tuple(token.low for token in rest)
    while led := next((one for one in en.LEAD_INS if len(one) < len(low) and low[: len(one)] == one), ()):
        low, rest = low[len(led) :], rest[len(led) :]
    while (
        rest and not rest[-1].quoted and (rest[-1].low in _JOIN or rest[-1].low in words("clauses.trailing"))
    ):
        rest = rest[:-1]
    return rest


# --- where one clause ends and the next begins --------------------------------------------------------------


def split(tokens: Sequence[Token], joint_at: JointAt) -> list[Piece]:
    """The tokens between the ends of sentences and the joints that `joint_at` finds."""
    pieces = [Piece("", opens_sentence=True)]
    sentence = 0  # the first piece of this sentence
    index = 0
    while index < len(tokens):
        width, connector = joint_at(tokens, index, pieces[-1])
        if width:
            opens = not pieces[-1].tokens and pieces[-1].opens_sentence
            if not pieces[-1].tokens:
                connector = connector if connector not in _JOIN else pieces[-1].connector
                pieces.pop()
            pieces.append(Piece(connector, opens_sentence=opens))
        elif tokens[index].low in _ENDS and not tokens[index].quoted:
            if tokens[index].low == "?":
                for piece in pieces[sentence:]:
                    piece.asks = True
            if pieces[-1].tokens:
                pieces.append(Piece("", opens_sentence=True))
                sentence = len(pieces) - 1
        else:
            pieces[-1].tokens.append(tokens[index])
        index += width or 1
    return [piece for piece in pieces if piece.tokens]


def _connector_at(is_verb: IsVerb, tokens: Sequence[Token], start: int, piece: Piece) -> tuple[int, str]:
    """A joint of English: an order word, an exception, or "and" and a comma where a clause of its own follows."""
    index = start
    while index < len(tokens) and tokens[index].low in (",", "and") and index - start < 2:
        index += 1
    for width in range(_LONGEST, 0, -1):
        said = " ".join(token.low for token in tokens[index : index + width])
        rest = tokens[index + width :]
        if rest and _opens_relation(said, rest, piece, is_verb):
            return index + width - start, "except" if said in ("but", "but no") else said
    first = tokens[start].low
    if piece.is_subordinate and piece.opens_sentence and len(piece.tokens) > 1:
        # "Before opening the chest I ask …": the main clause starts at its subject.
        subject = first in ("i", "we", "you") and piece.tokens[-1].low not in en.AUXILIARIES
        if subject or first == ",":
            return 1, ""
    width = 0
    while start + width < len(tokens) and tokens[start + width].low in _JOIN:
        width += 1
    if width and piece.tokens and starts_clause(tokens[start + width :], first, is_verb):
        return width, first
    return 0, ""


def _opens_relation(said: str, rest: Sequence[Token], piece: Piece, is_verb: IsVerb) -> bool:
    """Tell if words join what comes before them to `rest` by more than "and"."""
    kind = _KINDS.get(said)
    if kind in ("sequence", "preceding"):
        return bool(piece.tokens) or said != "beforehand"
    if kind in ("before", "after"):
        # "once *the kettle is scrubbed*", and not a mere time, "after the storm"
        end = next((at for at, token in enumerate(rest) if token.low in _JOIN | _ENDS), len(rest))
        passive = active(rest[:end], is_verb) is not None
        return is_gerund(rest[0]) or rest[0].low in en.SUBJECTS or passive
    if said == "than":
        return any(token.low in ("rather", "sooner") for token in piece.tokens)
    if said == "but":
        return _opens_exception(rest, piece, is_verb)
    if said in ("but not", "but no"):
        return rest[0].low not in ("only", "just", "longer", "one") and not rest[0].quoted
    return said in _INSTEAD and (said != "without" or is_gerund(rest[0]))


def _opens_exception(rest: Sequence[Token], piece: Piece, is_verb: IsVerb) -> bool:
    """ "everything but the bell", "ring every bell but the last"."""
    whole = any(token.low in words("clauses.every") and not token.quoted for token in piece.tokens)
    plain = not starts_clause(rest, "but", is_verb) and rest[0].low not in _NOT_LEFT_OUT
    return whole and (plain or all(token.low in _EMPTY for token in piece.tokens))


_VERB_STEMS: Final = frozenset(en.stem(verb) for verb in en.VERBS - en.NOUNISH)
_OPENERS: Final = en.QUESTION_WORDS | en.AUXILIARIES | words("clauses.openers")
_OBJECTS: Final = en.DETERMINERS | en.PRONOUNS | {"me", "us", "something"}
_BEHIND_A_VERB: Final = _OBJECTS | en.PREPOSITIONS | en.PARTICLES | _JOIN | {""}


def starts_clause(rest: Sequence[Token], connector: str, is_verb: IsVerb) -> bool:
    """Tell if a clause of its own follows, and no other member of a list."""
    said = [token.low for token in rest if token.low not in en.FILLERS or token.quoted]
    if not said:
        return False
    head, following = said[0], said[1] if len(said) > 1 else ""
    if rest[0].quoted or head in en.DETERMINERS or head in en.NUMBERS or not head[0].isalpha():
        return head == "no" and following == "need"
    if head in _OPENERS or connector == ":":
        return True
    if head in ("it", "they", "he", "she", "there") and following in en.AUXILIARIES:
        return True
    return _acts(head, following, is_verb)


def _acts(head: str, following: str, is_verb: IsVerb) -> bool:
    """Tell if a word is a verb here, by itself or by the word behind it."""
    if head in en.NOUNISH:
        return following in _BEHIND_A_VERB or (is_verb(head) and following not in ("to", "and"))
    if head in en.VERBS or en.stem(head) in _VERB_STEMS or is_verb(head):
        return True
    return following in _OBJECTS and head not in en.PREPOSITIONS and head not in en.PRONOUNS


# --- passives as the plain order: "the kettle is scrubbed" is "scrubbed the kettle" ---------------------------

_BE: Final = words("clauses.be")
_PARTICIPLES: Final = words("irregular.not_past") | words("irregular.participles")
_BASES: Final = {en.stem(verb) for verb in (en.VERBS | en.NOUNISH) - words("irregular.no_base")}


def active(tokens: Sequence[Token], is_verb: IsVerb) -> list[Token] | None:
    """ "the kettle is scrubbed" as "scrubbed the kettle"; None where the clause is not passive."""
    be = next((at for at in range(1, len(tokens) - 1) if tokens[at].low in _BE and not tokens[at].quoted), 0)
    if not be:
        return None
    done = be + 1
    while done < len(tokens) - 1 and tokens[done].low in _BE | en.FILLERS:
        done += 1
    if not _is_participle(tokens[done], is_verb):
        return None
    end = be - 1 if be > 1 and tokens[be - 1].low in ("has", "have", "had", "will") else be
    return [tokens[done], *tokens[:end], *tokens[done + 1 :]]


def _is_participle(token: Token, is_verb: IsVerb) -> bool:
    shaped = en.is_past(token.low) or token.low in _PARTICIPLES
    return shaped and not token.quoted and (en.stem(token.low) in _BASES or is_verb(token.low))


def is_gerund(token: Token) -> bool:
    """Tell if a token has the form of "scanning"."""
    return token.low.endswith("ing") and len(token.low) > 4
