"""Phrase patterns: how a player's words are compared with what a story's author wrote.

    (light|kindle) torch [with {tool}]
    give {gift} to {who:keeper|child|old woman}
    <look> at <door> ...

`(a|b)` is a choice, `[a]` may be left out, `{name}` captures one to six words, `{name:a|b}` captures one of
these, `<name>` is a list from the story's `[words]`, `...` is anything. Case, punctuation and articles do not
count.

A pattern is a tree of parts. Each part is run once, over all places of the prompt that the part before it may end at:
the time is bounded by the product of the two, so no pattern and no prompt can hang a turn. That is why there are no
regular expressions here.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

from narratoria.narrator.english.clauses import Piece, split
from narratoria.narrator.english.lexicon import entry, rows
from narratoria.narrator.english.normalise import spelled_out
from narratoria.narrator.english.tokens import Token
from narratoria.narrator.english.words import LEAD_INS

MAX_PROMPT: Final = 2_000
MAX_CLAUSES: Final = 8
MAX_CAPTURED_WORDS: Final = 6
_LONGEST_JOINT: Final = 4  # words
MAX_PARTS: Final = 5_000


class PatternError(ValueError):
    """A phrase pattern cannot be read; the message says where."""


@dataclass(frozen=True, slots=True, eq=False)  # a key of a cache: compared by identity
class Language:
    """The small words that carry no meaning of their own."""

    articles: frozenset[str]
    lead: tuple[tuple[str, ...], ...]
    trail: tuple[tuple[str, ...], ...]
    joins: frozenset[tuple[str, ...]]  # words and marks between two clauses
    token: re.Pattern[str]  # a word, or a mark
    contracts: bool = False  # as English does: "what's" is "what is"


def language(articles: str, lead: Iterable[str], trail: Iterable[str], joins: Iterable[str]) -> Language:
    """A language by its small words; commas, colons and the marks among `joins` stand between clauses too."""

    def phrases(items: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        return tuple(sorted((tuple(plain_words(item)) for item in items), key=len, reverse=True))

    joints = frozenset(tuple(join.casefold().split()) for join in (",", ":", *joins))
    marks = re.escape("".join(word for joint in joints for word in joint if not word[0].isalnum()) + ".;!?")
    token = re.compile(rf"[{marks}\n]|[^\s{marks}]+")
    return Language(frozenset(plain_words(articles)), phrases(lead), phrases(trail), joints, token)


def plain_words(text: str) -> list[str]:
    """Case folded, apostrophes closed up, everything else that is not a letter or a digit a gap."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    return re.findall(r"[^\W_]+", folded)


def _english() -> Language:
    lead, trail, joins = (map(" ".join, rows(f"story_rules.{key}")) for key in ("lead", "trail", "joins"))
    general = (" ".join(one) for one in LEAD_INS if one[-1] != "have")  # "I have a look" is a request
    return replace(language(entry("story_rules.articles"), [*general, *lead], trail, joins), contracts=True)


ENGLISH: Final = _english()


# --- the player's side -----------------------------------------------------------------------------------


def meaningful(text: str, language: Language) -> tuple[str, ...]:
    """The words of a clause without articles; all of them when nothing else is left."""
    words = all_words(text, language)
    kept = tuple(word for word in words if word not in language.articles)
    return kept or words


@lru_cache(maxsize=8192)
def all_words(text: str, language: Language) -> tuple[str, ...]:
    """The words of a text, contractions spelled out."""
    return tuple(plain_words(spelled_out(text) if language.contracts else text))


def bare(words: tuple[str, ...], language: Language) -> tuple[str, ...]:
    """The clause without "I would like to" before it and "please" after it; never emptied."""
    changed = True
    while changed:
        changed = False
        for phrase in language.lead:
            if len(words) > len(phrase) and words[: len(phrase)] == phrase:
                words, changed = words[len(phrase) :], True
                break
        for phrase in language.trail:
            if len(words) > len(phrase) and words[-len(phrase) :] == phrase:
                words, changed = words[: -len(phrase)], True
                break
    return words


def clauses(prompt: str, language: Language) -> list[str]:
    """The parts of a prompt between full stops, commas and words such as "and", at most `MAX_CLAUSES`."""

    def joint_at(tokens: Sequence[Token], at: int, before: Piece) -> tuple[int, str]:
        said = tuple(token.low for token in tokens[at : at + _LONGEST_JOINT])
        widths = (width for width in range(len(said), 0, -1) if said[:width] in language.joins)
        return next(((width, "") for width in widths), (0, ""))

    tokens = [Token(word, word.casefold()) for word in language.token.findall(prompt[:MAX_PROMPT])]
    pieces = (" ".join(token.text for token in piece.tokens) for piece in split(tokens, joint_at))
    return [piece for piece in pieces if plain_words(piece)][:MAX_CLAUSES]


def readings(clause: str, language: Language) -> list[tuple[str, ...]]:
    """The ways to read a clause: as it stands, and without its fillers."""
    words = meaningful(clause, language)
    return list(dict.fromkeys((words, bare(words, language))))


def same_request(one: str, other: str, language: Language = ENGLISH) -> bool:
    """Tell if two texts ask for the same: "please open the gate!" and "Open gate"."""
    return not set(readings(one, language)).isdisjoint(readings(other, language))


def with_verb(verb: Sequence[str], clause: str, language: Language) -> list[tuple[str, ...]]:
    """The clause behind the first one or two words of the clause before it."""
    words = bare(meaningful(clause, language), language)
    return [(*verb[:length], *words) for length in range(1, min(len(verb), 3))]


# --- the author's side -----------------------------------------------------------------------------------

_SYMBOL: Final = re.compile(r"\.\.\.|…|[()\[\]{}|<>:]|[^\s()\[\]{}|<>:…]+")
_CLOSERS: Final = (")", "]", "}", ">", "|")
_Ends: TypeAlias = dict[int, tuple[tuple[str, int], ...]]  # places in a prompt, each with the groups' marks


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """`(a|b)`, `[a|b]` or `<name>`."""

    ways: tuple[Parts, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """`{name:a|b}`, or `{name}`, which has no ways and captures one to six words."""

    name: str
    ways: tuple[Parts, ...] = ()


REST: Final = "..."  # any words, or none
Part: TypeAlias = str | Choice | Group  # a word, or REST; a choice; a group
Parts: TypeAlias = tuple[Part, ...]


class Pattern:
    """One phrase pattern, ready to be compared."""

    __slots__ = ("_begins_anyhow", "groups", "openings", "parts", "source", "words")

    def __init__(
        self, source: str, vocabulary: Mapping[str, Sequence[str]] | None = None, language: Language = ENGLISH
    ) -> None:
        parser = _Parser(source, vocabulary or {}, language)
        self.source = source
        self.parts = parser.pattern()
        self.groups, self.words = parser.groups, parser.words
        # The words it may begin with: of a request, its verbs. And whether it may begin with any other.
        found: set[str] = set()
        self._begins_anyhow = _beginnings(self.parts, found) or REST in found
        self.openings = frozenset(found - {REST})

    def match(self, words: Sequence[str]) -> dict[str, str] | None:
        """The captures of the groups when the pattern fits all of `words`, else None."""
        # Nearly all end here: a prompt is held against each pattern of a story, in many readings.
        if not self._begins_anyhow and (not words or words[0] not in self.openings):
            return None
        marks = _run(self.parts, words, {0: ()}).get(len(words))
        if marks is None:
            return None
        found: dict[str, str] = {}
        opened: dict[str, int] = {}
        for name, position in marks:
            if name in opened:
                found[name] = " ".join(words[opened.pop(name) : position])
            else:
                opened[name] = position
        return found


def _beginnings(parts: Parts, found: set[str]) -> bool:
    """Adds the words that parts may begin with, REST for any; tells if they may be empty."""
    for part in parts:
        if isinstance(part, str):
            found.add(part)
            empty = part == REST
        elif isinstance(part, Group) and not part.ways:
            found.add(REST)
            empty = False
        else:
            empty = sum(_beginnings(way, found) for way in part.ways) > 0  # of each: all are to be found
        if not empty and not (isinstance(part, Choice) and part.optional):
            return False
    return True


def _run(parts: Parts, words: Sequence[str], at: _Ends) -> _Ends:
    """The places where parts may end that begin at some of `at`; what is preferred stands first, and is kept."""
    for part in parts:
        found: _Ends = {}
        if part == REST:
            reached = len(words) + 1
            for place, marks in at.items():
                found.update(dict.fromkeys(range(reached - 1, place - 1, -1), marks))
                reached = min(reached, place)
        elif isinstance(part, str):
            for place, marks in at.items():
                if place < len(words) and words[place] == part:
                    found[place + 1] = marks
        elif isinstance(part, Choice):
            for ends in [*(_run(way, words, at) for way in part.ways), *([at] if part.optional else [])]:
                for end, marks in ends.items():
                    found.setdefault(end, marks)
        else:
            found = _captured(part, words, at)
        at = found
    return at


def _captured(group: Group, words: Sequence[str], at: _Ends) -> _Ends:
    begun = {place: (*marks, (group.name, place)) for place, marks in at.items()}
    found: _Ends = {}
    for way in group.ways:
        for end, marks in _run(way, words, begun).items():
            found.setdefault(end, marks)
    for place, marks in begun.items() if not group.ways else ():
        for end in range(place + 1, min(place + MAX_CAPTURED_WORDS, len(words)) + 1):
            found.setdefault(end, marks)
    return {end: (*marks, (group.name, end)) for end, marks in found.items()}


class _Parser:
    """Recursive descent over the pattern's text."""

    def __init__(self, source: str, vocabulary: Mapping[str, Sequence[str]], language: Language) -> None:
        self.source = source
        self.vocabulary = vocabulary
        self.language = language
        self.groups: set[str] = set()
        self.words: set[str] = set()
        self.symbols: list[str] = _SYMBOL.findall(source)
        self.at = 0
        self.size = 0

    def pattern(self) -> Parts:
        if not any(plain_words(symbol) for symbol in self.symbols):
            raise PatternError(f"{self.source!r} has no words")
        parts = self.sequence()
        if self.at < len(self.symbols):
            raise PatternError(f"{self.source!r}: {self.symbols[self.at]!r} is not opened")
        return parts

    def sequence(self) -> Parts:
        parts: list[Part] = []
        while self.at < len(self.symbols) and self.symbols[self.at] not in _CLOSERS:
            symbol = self.symbols[self.at]
            self.at += 1
            if symbol == "(":
                parts.append(Choice(self.ways(")")))
            elif symbol == "[":
                parts.append(Choice(self.ways("]"), optional=True))
            elif symbol == "{":
                parts.append(self.group())
            elif symbol == "<":
                parts.append(self.listed(self.name(">", "words")))
            elif symbol in ("...", "…"):
                parts.append(REST)
            else:
                parts += self.literal(symbol)
        return tuple(parts)

    def literal(self, text: str) -> Parts:
        found = [word for word in all_words(text, self.language) if word not in self.language.articles]
        self.words.update(found)
        self.size += 1 + len(found)
        if self.size > MAX_PARTS:
            raise PatternError(f"{self.source!r} is too large; split it into several patterns")
        return tuple(found)

    def ways(self, closer: str) -> tuple[Parts, ...]:
        found: list[Parts] = []
        symbol = "|"
        while symbol == "|":
            found.append(self.sequence())
            symbol = self.symbols[self.at] if self.at < len(self.symbols) else ""
            if symbol not in (closer, "|"):
                raise PatternError(f"{self.source!r}: a {closer!r} is missing")
            self.at += 1
        return tuple(found)

    def listed(self, name: str) -> Choice:
        if name not in self.vocabulary:
            near = difflib.get_close_matches(name, self.vocabulary, 1)
            known = ", ".join(sorted(self.vocabulary)) or "none"
            hint = f"; did you mean <{near[0]}>?" if near else f" (there: {known})"
            raise PatternError(f"{self.source!r}: <{name}> is not in [words]{hint}")
        return Choice(tuple(self.literal(phrase) for phrase in self.vocabulary[name]))

    def name(self, closer: str, what: str) -> str:
        start = self.at
        while self.at < len(self.symbols) and self.symbols[self.at] not in (closer, ":"):
            self.at += 1
        if self.at >= len(self.symbols):
            raise PatternError(f"{self.source!r}: a {closer!r} is missing")
        name = "".join(self.symbols[start : self.at])
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
            raise PatternError(
                f"{self.source!r}: {name!r} is not a name for {what}; use letters, digits and _"
            )
        self.at += 1
        return name

    def group(self) -> Group:
        name = self.name("}", "a group")
        self.groups.add(name)
        return Group(name, self.ways("}") if self.symbols[self.at - 1] == ":" else ())
