"""What a story remembers: lore, characters and past turns, recalled by meaning, by keyword and by state.

A lore file is Markdown. Plain paragraphs are recalled when they are near in meaning to what is going on. With
TOML between `+++` lines at its top, a file fires on keywords and on conditions over state instead:

    +++
    keywords = ["lighthouse", "lamp room"]
    when = { lamp.lit = false }
    +++
    The lamp has been dark since the keeper's daughter drowned.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from narratoria.errors import NarratoriaError
from narratoria.narrator.conditions import Condition, ConditionError, condition
from narratoria.narrator.embedding import DIMENSIONS, MAX_TOKENS, Embedder
from narratoria.narrator.vectors import Vectors, np

Kind: TypeAlias = Literal["turn", "lore", "character"]
Logic: TypeAlias = Literal["any", "all", "not_any", "not_all"]
CountTokens: TypeAlias = Callable[[str], int]

ANY_STATE: Final = Condition()
_FRONT_MATTER: Final = re.compile(r"\A\+\+\+[ \t]*\r?\n(.*?)\r?\n\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。！？])\s+")


class LoreInvalid(NarratoriaError):
    """A lore file cannot be used; the message names the file and the key."""


# --- recall by meaning ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    text: str
    kind: Kind = "lore"
    source: str = ""  # the file, the character or the turn it comes from


@dataclass(frozen=True, slots=True)
class Recalled:
    memory: Memory
    likeness: float


class Recall:
    """An index of memories by meaning. One thread at a time may add to it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._memories: list[Memory] = []
        self._vectors: Vectors = np.zeros((256, DIMENSIONS), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._memories)

    def add(self, memories: Iterable[Memory]) -> None:
        fresh = list(memories)
        if not fresh:
            return
        vectors = self._embedder.embed([memory.text for memory in fresh])
        start, end = len(self._memories), len(self._memories) + len(fresh)
        if end > len(self._vectors):
            grown = np.zeros((max(end, 2 * len(self._vectors)), DIMENSIONS), dtype=np.float32)
            grown[:start] = self._vectors[:start]
            self._vectors = grown
        self._vectors[start:end] = vectors
        self._memories.extend(fresh)

    def search(
        self, query: str, count: int = 5, *, least: float = 0.25, kind: Kind | None = None
    ) -> list[Recalled]:
        """The memories nearest to `query`, nearest first; none below the likeness `least`."""
        if not self._memories or not query.strip() or count < 1:
            return []
        return self.nearest(self._embedder.embed([query])[0], count, least=least, kind=kind)

    def nearest(
        self, vector: Vectors, count: int, *, least: float = -1.0, kind: Kind | None = None
    ) -> list[Recalled]:
        """The same for a query that is already a unit vector."""
        likes = self._vectors[: len(self._memories)] @ vector
        if kind is not None:
            likes = np.where([memory.kind == kind for memory in self._memories], likes, -2.0)
        count = min(count, len(likes))
        top = np.argpartition(likes, -count)[-count:]
        ordered = sorted(top.tolist(), key=lambda index: (-float(likes[index]), index))
        return [Recalled(self._memories[i], float(likes[i])) for i in ordered if likes[i] >= max(least, -1.0)]


# --- recall by keyword and state -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoreEntry:
    """A piece of lore that fires on words and on conditions over state; where both are given, on both."""

    text: str
    keywords: tuple[str, ...] = ()  # one of them must occur
    also: tuple[str, ...] = ()  # a second test, read by `logic`
    logic: Logic = "any"
    when: Condition = ANY_STATE
    always: bool = False  # needs no keyword
    case_sensitive: bool = False
    order: int = 100  # lower comes first
    name: str = ""

    def fires(self, text: str, state: Mapping[str, Any]) -> bool:
        if not self.text or not self.when.holds(state):
            return False
        if self.always or not self.keywords:
            return self.always or self.when != ANY_STATE
        return self._any_in(self.keywords, text) and self._second_test(text)

    def _second_test(self, text: str) -> bool:
        if not self.also:
            return True
        found = [self._any_in((word,), text) for word in self.also]
        return {
            "any": any(found),
            "all": all(found),
            "not_any": not any(found),
            "not_all": not all(found),
        }[self.logic]

    def _any_in(self, keywords: tuple[str, ...], text: str) -> bool:
        pattern = _pattern(keywords, self.case_sensitive)
        return pattern is not None and pattern.search(text) is not None


@lru_cache(maxsize=16_384)
def _pattern(keywords: tuple[str, ...], case_sensitive: bool) -> re.Pattern[str] | None:
    """Whole words where a script has spaces; every key is escaped, so no key can be a slow expression."""
    parts = [_bounded(word.strip()) for word in keywords if word.strip()]
    if not parts:
        return None
    return re.compile("|".join(parts), 0 if case_sensitive else re.IGNORECASE)


def _bounded(word: str) -> str:
    before = r"(?<!\w)" if _spaced(word[0]) else ""
    after = r"(?!\w)" if _spaced(word[-1]) else ""
    return before + re.escape(word) + after


def _spaced(character: str) -> bool:
    """Whether words of the character's script are set apart by spaces: not so in Chinese or Japanese."""
    return character.isalnum() and ord(character) < 0x2E80


def active(entries: Iterable[LoreEntry], text: str, state: Mapping[str, Any]) -> list[LoreEntry]:
    """The entries that fire, in their order."""
    return sorted((entry for entry in entries if entry.fires(text, state)), key=lambda entry: entry.order)


# --- lore files ----------------------------------------------------------------------------------------


def read_lore(name: str, text: str, count_tokens: CountTokens) -> tuple[list[Memory], list[LoreEntry]]:
    """The paragraphs of one lore file: memories, or entries where its front matter says when they fire."""
    header = _FRONT_MATTER.match(text)
    if header is None:
        return [Memory(part, "lore", name) for part in split_lore(text, count_tokens)], []
    model = _entry(name, header[1])
    parts = split_lore(text[header.end() :], count_tokens)
    return [], [replace(model, text=part) for part in parts]


def _entry(name: str, header: str) -> LoreEntry:
    try:
        table = tomllib.loads(header)
        when = condition(table.pop("when", {}))
    except tomllib.TOMLDecodeError as error:
        raise LoreInvalid(f"lore {name!r}: the lines between +++ are not TOML: {error}") from None
    except ConditionError as error:
        raise LoreInvalid(f"lore {name!r}: key 'when': {error}") from None
    kinds: dict[str, type] = {"keywords": list, "also": list, "logic": str, "always": bool, "order": int}
    for key, value in table.items():
        if key not in kinds:
            raise LoreInvalid(f"lore {name!r}: unknown key {key!r}; known: when, {', '.join(kinds)}")
        if not isinstance(value, kinds[key]) or (kinds[key] is int and isinstance(value, bool)):
            raise LoreInvalid(f"lore {name!r}: key {key!r}: expected {kinds[key].__name__}, got {value!r}")
    logic = table.get("logic", "any")
    if logic not in ("any", "all", "not_any", "not_all"):
        raise LoreInvalid(f"lore {name!r}: key 'logic': {logic!r} is none of any, all, not_any, not_all")
    return LoreEntry(
        "",
        tuple(map(str, table.get("keywords", ()))),
        tuple(map(str, table.get("also", ()))),
        logic,
        when,
        table.get("always", False),
        order=table.get("order", 100),
        name=name,
    )


def split_lore(text: str, count_tokens: CountTokens, limit: int = MAX_TOKENS - 2) -> list[str]:
    """Paragraphs of at most `limit` tokens; a heading goes with the paragraph under it."""
    parts: list[str] = []
    heading = ""
    for paragraph in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        paragraph = paragraph.strip()
        if not paragraph:
            continue
        if paragraph.startswith("#") and "\n" not in paragraph:
            heading = paragraph.lstrip("# ").strip()
            continue
        if paragraph.startswith("#"):
            first, _, paragraph = paragraph.partition("\n")
            heading = first.lstrip("# ").strip()
        parts.extend(_fit(f"{heading}: {paragraph}" if heading else paragraph, count_tokens, limit))
    return parts


def _fit(paragraph: str, count_tokens: CountTokens, limit: int) -> Iterator[str]:
    if count_tokens(paragraph) <= limit:
        yield paragraph
        return
    piece = ""
    for sentence in _short_sentences(paragraph, count_tokens, limit):
        longer = f"{piece} {sentence}".strip()
        if piece and count_tokens(longer) > limit:
            yield piece
            longer = sentence
        piece = longer
    if piece:
        yield piece


def _short_sentences(paragraph: str, count_tokens: CountTokens, limit: int) -> Iterator[str]:
    """Sentences; one that is too long itself is halved until its parts fit."""
    waiting = list(reversed(_SENTENCE_END.split(paragraph)))
    while waiting:
        sentence = waiting.pop()
        if len(sentence) > 1 and count_tokens(sentence) > limit:
            middle = sentence.rfind(" ", 0, len(sentence) // 2 + 1)
            middle = middle if middle > 0 else len(sentence) // 2
            waiting += [sentence[middle:].strip(), sentence[:middle].strip()]
        elif sentence:
            yield sentence


# --- a story's memory ----------------------------------------------------------------------------------


@dataclass(slots=True)
class StoryMemory:
    """Everything a story remembers; `recall` gives a narrator what matters now."""

    embedder: Embedder
    count_tokens: CountTokens
    entries: list[LoreEntry] = field(default_factory=list)
    index: Recall = field(init=False)

    def __post_init__(self) -> None:
        self.index = Recall(self.embedder)

    def add_lore(self, files: Mapping[str, str]) -> None:
        """Lore files by name, as a story holds them."""
        memories: list[Memory] = []
        for name, text in files.items():
            plain, entries = read_lore(name, text, self.count_tokens)
            memories += plain
            self.entries += entries
        self.index.add(memories)

    def add_entries(self, entries: Iterable[LoreEntry]) -> None:
        self.entries += entries

    def add_character(self, name: str, sheet: str) -> None:
        parts = split_lore(sheet, self.count_tokens)
        self.index.add(Memory(f"{name}: {part}", "character", name) for part in parts)

    def add_turn(self, number: int, summary: str) -> None:
        self.index.add(Memory(part, "turn", str(number)) for part in split_lore(summary, self.count_tokens))

    def recall(self, text: str, state: Mapping[str, Any], count: int = 6) -> list[str]:
        """What fires comes first, then what is near in meaning; at most `count`, nothing twice."""
        found = [entry.text for entry in active(self.entries, text, state)]
        found += [hit.memory.text for hit in self.index.search(text, count)]
        return list(dict.fromkeys(found))[:count]


def summaries(turns: Sequence[tuple[str, str]]) -> list[str]:
    """One line per turn, from its prompt and its narration."""
    return [f"{prompt.strip()} → {narration.strip()}" for prompt, narration in turns]
