"""The memory of a story by meaning: lore, characters and past turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from narratoria.lore.lore_files import CountTokens, Kind, Memory, read_lore, split_lore
from narratoria.narrator.embedding.minilm import DIMENSIONS, Embedder
from narratoria.narrator.embedding.vectors import Vectors, np


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


@dataclass(slots=True)
class StoryMemory:
    """The lore files, characters and past turns of a story, to be found by meaning."""

    embedder: Embedder
    count_tokens: CountTokens
    index: Recall = field(init=False)

    def __post_init__(self) -> None:
        self.index = Recall(self.embedder)

    def add_lore(self, files: Mapping[str, str]) -> None:
        """Lore files by name, as a story holds them; of those that fire nothing is added."""
        for name, text in files.items():
            self.index.add(read_lore(name, text, self.count_tokens)[0])

    def add(self, kind: Kind, source: str, text: str, *, named: str = "") -> None:
        """A character's sheet, a turn's summary or a piece of lore, in paragraphs."""
        parts = split_lore(text, self.count_tokens)
        self.index.add(Memory(f"{named}: {part}" if named else part, kind, source) for part in parts)

    def near(self, text: str, count: int, standing: Callable[[Memory], bool]) -> list[Memory]:
        """The memories near in meaning, nearest first; of those that do not stand, such as a turn undone, none."""
        return [hit.memory for hit in self.index.search(text, 4 * count) if standing(hit.memory)][:count]
