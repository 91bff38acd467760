"""Phrase patterns: how a player's words are compared with what a story's author wrote.

    (light|kindle) torch [with {tool}]
    give {gift} to {who:keeper|child|old woman}
    <look> at <door> ...

`(a|b)` is a choice, `[a]` may be left out, `{name}` captures one to six words, `{name:a|b}` captures one of
these, `<name>` is a list from the story's `[words]`, `...` is anything. Case, punctuation and articles do not
count.

A pattern becomes a small program, run over words with a set of visited (instruction, word) pairs: the time is
bounded by the product of the two, so no pattern and no prompt can hang a turn. That is why there are no
regular expressions here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

from narratoria.narrator.english.lexicon import entry
from narratoria.narrator.english.normalise import spelled_out
from narratoria.narrator.english.words import LEAD_INS

MAX_PROMPT: Final = 2_000
MAX_CLAUSES: Final = 8
MAX_CAPTURED_WORDS: Final = 6
MAX_PROGRAM: Final = 5_000
NOWHERE: Final = "\0"  # the word no player can say: a pattern's dead end


class PatternError(ValueError):
    """A phrase pattern cannot be read; the message says where."""


@dataclass(frozen=True, slots=True, eq=False)  # a key of a cache: compared by identity
class Language:
    """The small words that carry no meaning of their own."""

    articles: frozenset[str]
    lead: tuple[tuple[str, ...], ...]
    trail: tuple[tuple[str, ...], ...]
    joins: tuple[str, ...]
    contracts: bool = False  # as English does: "what's" is "what is"


def language(articles: str, lead: Iterable[str], trail: Iterable[str], joins: Iterable[str]) -> Language:
    def phrases(items: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        return tuple(sorted((tuple(plain_words(item)) for item in items), key=len, reverse=True))

    return Language(frozenset(plain_words(articles)), phrases(lead), phrases(trail), tuple(joins))


def plain_words(text: str) -> list[str]:
    """Case folded, apostrophes closed up, everything else that is not a letter or a digit a gap."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    return re.findall(r"[^\W_]+", folded)


def _english() -> Language:
    listed = {
        key: [" ".join(one.split()) for one in entry(f"story_rules.{key}").split("/")] for key in _LISTS
    }
    general = [" ".join(one) for one in LEAD_INS if one[-1] != "have"]  # "I have a look" is a request
    lead = [*general, *listed["lead"]]
    found = language(entry("story_rules.articles"), lead, listed["trail"], listed["joins"])
    return replace(found, contracts=True)


_LISTS: Final = ("lead", "trail", "joins")
ENGLISH: Final = _english()


# --- the player's side -----------------------------------------------------------------------------------


def meaningful(text: str, tongue: Language) -> tuple[str, ...]:
    """The words of a clause without articles; all of them when nothing else is left."""
    words = all_words(text, tongue)
    kept = tuple(word for word in words if word not in tongue.articles)
    return kept or words


@lru_cache(maxsize=8192)
def all_words(text: str, tongue: Language) -> tuple[str, ...]:
    """The words of a text, contractions spelled out."""
    return tuple(plain_words(spelled_out(text) if tongue.contracts else text))


def bare(words: tuple[str, ...], tongue: Language) -> tuple[str, ...]:
    """The clause without "I would like to" before it and "please" after it; never emptied."""
    changed = True
    while changed:
        changed = False
        for phrase in tongue.lead:
            if len(words) > len(phrase) and words[: len(phrase)] == phrase:
                words, changed = words[len(phrase) :], True
                break
        for phrase in tongue.trail:
            if len(words) > len(phrase) and words[-len(phrase) :] == phrase:
                words, changed = words[: -len(phrase)], True
                break
    return words


def clauses(prompt: str, tongue: Language) -> list[str]:
    """The parts of a prompt between full stops, commas and words such as "and", at most `MAX_CLAUSES`."""
    joins = "|".join(
        rf"\b{re.escape(join)}\b" if join[:1].isalnum() else re.escape(join) for join in tongue.joins
    )
    breaks = rf"[.,;:!?\n]+|{joins}" if joins else r"[.,;:!?\n]+"
    pieces = re.split(breaks, prompt[:MAX_PROMPT], flags=re.IGNORECASE)
    return [piece for piece in pieces if plain_words(piece)][:MAX_CLAUSES]


def readings(clause: str, tongue: Language) -> list[tuple[str, ...]]:
    """The ways to read a clause: as it stands, and without its fillers."""
    words = meaningful(clause, tongue)
    return list(dict.fromkeys((words, bare(words, tongue))))


def same_request(one: str, other: str, tongue: Language = ENGLISH) -> bool:
    """Tells if two texts ask for the same: "please open the gate!" and "Open gate"."""
    return not set(readings(one, tongue)).isdisjoint(readings(other, tongue))


def with_verb(verb: Sequence[str], clause: str, tongue: Language) -> list[tuple[str, ...]]:
    """The clause behind the first one or two words of the clause before it."""
    words = bare(meaningful(clause, tongue), tongue)
    return [(*verb[:length], *words) for length in range(1, min(len(verb), 3))]


# --- the author's side -----------------------------------------------------------------------------------

Op: TypeAlias = tuple[str, str, int, int]  # kind, text, jump, other jump
_SYMBOL: Final = re.compile(r"\.\.\.|…|[()\[\]{}|<>:]|[^\s()\[\]{}|<>:…]+")


class Pattern:
    """One phrase pattern, ready to be compared."""

    __slots__ = ("_begins_anyhow", "groups", "openings", "program", "source")

    def __init__(
        self, source: str, vocabulary: Mapping[str, Sequence[str]] | None = None, tongue: Language = ENGLISH
    ) -> None:
        self.source = source
        self.groups: set[str] = set()
        self.program = _Compiler(source, vocabulary or {}, tongue, self.groups).program()
        # The words it may begin with: of a request, its verbs. And whether it may begin with any other.
        self.openings, self._begins_anyhow = self._beginnings()

    def _beginnings(self) -> tuple[frozenset[str], bool]:
        found: set[str] = set()
        anyhow = False
        seen: set[int] = set()
        ways = [0]
        while ways:
            pc = ways.pop()
            if pc in seen:
                continue
            seen.add(pc)
            kind, text, jump, other = self.program[pc]
            if kind == "word":
                found |= {text} - {NOWHERE}
            elif kind == "mark":
                ways.append(pc + 1)
            elif kind == "jump":
                ways.append(jump)
            elif kind == "split":
                ways += [jump, other]
            else:
                anyhow = True
        return frozenset(found), anyhow

    def match(self, words: Sequence[str]) -> dict[str, str] | None:
        """The captures of the groups when the pattern fits all of `words`, else None."""
        if not self._begins_anyhow and (not words or words[0] not in self.openings):
            return (
                None  # as nearly all do; a prompt is held against each pattern of a story, in many readings
            )
        seen: set[tuple[int, int]] = set()
        stack: list[tuple[int, int, tuple[tuple[str, int], ...]]] = [(0, 0, ())]
        while stack:
            pc, position, marks = stack.pop()
            if (pc, position) in seen:
                continue
            seen.add((pc, position))
            kind, text, jump, other = self.program[pc]
            if kind == "match":
                if position == len(words):
                    return _captures(words, marks)
            elif kind == "word":
                if position < len(words) and words[position] == text:
                    stack.append((pc + 1, position + 1, marks))
            elif kind == "any":
                if position < len(words):
                    stack.append((pc + 1, position + 1, marks))
            elif kind == "mark":
                stack.append((pc + 1, position, (*marks, (text, position))))
            elif kind == "jump":
                stack.append((jump, position, marks))
            else:
                stack.append((other, position, marks))
                stack.append((jump, position, marks))
        return None


def _captures(words: Sequence[str], marks: tuple[tuple[str, int], ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    opened: dict[str, int] = {}
    for name, position in marks:
        if name in opened:
            found[name] = " ".join(words[opened.pop(name) : position])
        else:
            opened[name] = position
    return found


class _Compiler:
    """Recursive descent over the pattern's text, straight into the program."""

    def __init__(
        self, source: str, vocabulary: Mapping[str, Sequence[str]], tongue: Language, groups: set[str]
    ) -> None:
        self.source = source
        self.vocabulary = vocabulary
        self.tongue = tongue
        self.groups = groups
        self.symbols: list[str] = _SYMBOL.findall(source)
        self.at = 0
        self.code: list[Op] = []

    def program(self) -> list[Op]:
        if not any(plain_words(symbol) for symbol in self.symbols):
            raise PatternError(f"{self.source!r} has no words")
        self.sequence()
        if self.at < len(self.symbols):
            raise PatternError(f"{self.source!r}: {self.symbols[self.at]!r} is not opened")
        self.emit("match")
        return self.code

    def emit(self, kind: str, text: str = "", jump: int = 0, other: int = 0) -> int:
        if len(self.code) >= MAX_PROGRAM:
            raise PatternError(f"{self.source!r} is too large; split it into several patterns")
        self.code.append((kind, text, jump, other))
        return len(self.code) - 1

    def split(self) -> int:
        """A fork: on with the next instruction, or to a place that is filled in later."""
        return self.emit("split", jump=len(self.code) + 1)

    def land(self, at: int, *, jump: bool = False) -> None:
        """Let the fork or the jump at `at` lead to where the program is now."""
        kind, text, old, other = self.code[at]
        here = len(self.code)
        self.code[at] = (kind, text, here, other) if jump else (kind, text, old, here)

    def sequence(self) -> None:
        while self.at < len(self.symbols) and self.symbols[self.at] not in (")", "]", "}", ">", "|"):
            symbol = self.symbols[self.at]
            self.at += 1
            if symbol == "(":
                self.alternatives(")")
            elif symbol == "[":
                around = self.split()
                self.alternatives("]")
                self.land(around)
            elif symbol == "{":
                self.capture()
            elif symbol == "<":
                self.words_of(self.name(">", "words"))
            elif symbol in ("...", "…"):
                loop = self.split()
                self.emit("any")
                self.emit("jump", jump=loop)
                self.land(loop)
            else:
                self.literal(symbol)

    def literal(self, text: str) -> None:
        for word in all_words(text, self.tongue):
            if word not in self.tongue.articles:
                self.emit("word", word)

    def alternatives(self, closer: str) -> None:
        ends: list[int] = []
        while True:
            fork = self.split()
            self.sequence()
            symbol = self.symbols[self.at] if self.at < len(self.symbols) else ""
            if symbol not in (closer, "|"):
                raise PatternError(f"{self.source!r}: a {closer!r} is missing")
            self.at += 1
            ends.append(self.emit("jump"))
            self.land(fork)
            if symbol == closer:
                break
        self.emit("word", NOWHERE)  # none of them fitted
        for end in ends:
            self.land(end, jump=True)

    def words_of(self, name: str) -> None:
        if name not in self.vocabulary:
            known = ", ".join(sorted(self.vocabulary)) or "none"
            raise PatternError(f"{self.source!r}: <{name}> is not in [words] (there: {known})")
        ends: list[int] = []
        for phrase in self.vocabulary[name]:
            fork = self.split()
            self.literal(phrase)
            ends.append(self.emit("jump"))
            self.land(fork)
        self.emit("word", NOWHERE)
        for end in ends:
            self.land(end, jump=True)

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

    def capture(self) -> None:
        name = self.name("}", "a group")
        self.groups.add(name)
        self.emit("mark", name)
        if self.symbols[self.at - 1] == "}":
            self.emit("any")
            forks = []
            for _ in range(MAX_CAPTURED_WORDS - 1):
                # The short capture first: `jump` leads out, `other` takes one more word.
                forks.append(self.emit("split", other=len(self.code) + 1))
                self.emit("any")
            for fork in forks:
                self.land(fork, jump=True)
        else:
            self.alternatives("}")
        self.emit("mark", name)
