"""The embedding model, loaded once for all narrators, where the extra `local` is installed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from narratoria.errors import NarratorUnavailable
from narratoria.extras import absent, needed
from narratoria.store.store import data_home

if TYPE_CHECKING:
    from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM


def missing_packages() -> str:
    """The packages that are not installed, in a sentence, or "". Nothing is loaded to find out."""
    return needed("local") if absent("local") else ""


@cache
def load_embedder() -> tuple[MiniLM, CachedEmbedder]:
    """The model and its cache; raise `NarratorUnavailable` where a part of it is missing."""
    if reason := missing_packages():
        raise NarratorUnavailable(f"the embedding model {reason}")
    from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM

    model = MiniLM()
    return model, CachedEmbedder(model, data_home() / "cache" / "embeddings")
