"""The local narrator's memory from one prompt to the next: catalogues and vectors of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.embedding.minilm import CachedEmbedder, Embedder
from narratoria.narrator.embedding.vectors import Vectors, np
from narratoria.narrator.local.tool_matching import NONE, ToolIndex, fingerprint
from narratoria.narrator.protocol import ToolCard

_MAX_CATALOGUES: Final = 16
_MAX_NAMES: Final = 4_000


class Knowledge:
    """All of it can be had again from the embedder, so it is bounded by forgetting."""

    def __init__(self, embedder: Embedder, threshold: float) -> None:
        self._embedder = embedder
        self._tuned = embedder.tuned()
        self.bar = NONE + threshold  # what a tool must score to be meant
        self._indexes: dict[bytes, ToolIndex] = {}
        self._names: dict[str, Vectors] = {}

    def index(self, tools: Sequence[ToolCard]) -> ToolIndex:
        key = fingerprint(tools)
        if key not in self._indexes:
            if len(self._indexes) >= _MAX_CATALOGUES:
                self._indexes.pop(next(iter(self._indexes)))
            self._indexes[key] = ToolIndex.build(tools, self._embedder, self._tuned)
        return self._indexes[key]

    def embed(self, texts: Sequence[str], *, tuned: bool = False) -> Vectors:
        embedder = self._tuned if tuned else self._embedder
        if isinstance(embedder, CachedEmbedder):
            return embedder.embed(texts, keep=False)
        return embedder.embed(texts)

    def embed_names(self, texts: Sequence[str]) -> Vectors:
        """The same for names of things, which recur from turn to turn."""
        fresh = [text for text in texts if text not in self._names]
        if fresh:
            if len(self._names) > _MAX_NAMES:
                self._names.clear()
                fresh = list(texts)
            self._names.update(zip(fresh, self.embed(fresh), strict=True))
        return np.stack([self._names[text] for text in texts])

    def knows_word(self, word: str) -> bool:
        return self._embedder.knows_word(word)
