"""The memory of a story: lore, characters and past turns, recalled by meaning, by keyword and by state.

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
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from narratoria.lore.entries import Logic as Logic
from narratoria.lore.entries import LoreEntry as LoreEntry
from narratoria.lore.entries import LoreInvalid as LoreInvalid
from narratoria.lore.entries import active as active
from narratoria.lore.entries import front_matter
from narratoria.narrator.embedding.minilm import DIMENSIONS, MAX_TOKENS, Embedder
from narratoria.narrator.embedding.vectors import Vectors, np

Kind: TypeAlias = Literal["turn", "lore", "character"]
CountTokens: TypeAlias = Callable[[str], int]

_SENTENCE_END: Final = re.compile(r"(?<=[.!?…。！？])\s+")


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

    def search(self, query: str, count: int = 5, *, least: float = 0.25) -> list[Recalled]:
        """The memories nearest to `query`, nearest first; none below the likeness `least`."""
        if not self._memories or not query.strip() or count < 1:
            return []
        likes = self._vectors[: len(self._memories)] @ self._embedder.embed([query])[0]
        count = min(count, len(likes))
        top = np.argpartition(likes, -count)[-count:]
        ordered = sorted(top.tolist(), key=lambda index: (-float(likes[index]), index))
        return [Recalled(self._memories[i], float(likes[i])) for i in ordered if likes[i] >= least]


# --- lore files ----------------------------------------------------------------------------------------


def read_lore(name: str, text: str, count_tokens: CountTokens) -> tuple[list[Memory], list[LoreEntry]]:
    """The paragraphs of one lore file: memories, or entries where its front matter says when they fire."""
    model, rest = front_matter(name, text)
    parts = split_lore(rest, count_tokens)
    if model is None:
        return [Memory(part, "lore", name) for part in parts], []
    return [], [replace(model, text=part) for part in parts]


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

    def add_character(self, name: str, sheet: str) -> None:
        parts = split_lore(sheet, self.count_tokens)
        self.index.add(Memory(f"{name}: {part}", "character", name) for part in parts)

    def add_turn(self, number: int, summary: str) -> None:
        self.index.add(Memory(part, "turn", str(number)) for part in split_lore(summary, self.count_tokens))

    def recall(
        self, text: str, state: Mapping[str, Any], count: int = 6, *, turns: Container[int] | None = None
    ) -> list[str]:
        """Entries that fire, then memories near in meaning; at most `count`, nothing twice.

        Of past turns only those in `turns`, where it is given: one that was undone is not remembered.
        """
        found = [entry.text for entry in active(self.entries, text, state)]
        for hit in self.index.search(text, count if turns is None else 4 * count):
            memory = hit.memory
            if turns is None or memory.kind != "turn" or int(memory.source) in turns:
                found.append(memory.text)
        return list(dict.fromkeys(found))[:count]
