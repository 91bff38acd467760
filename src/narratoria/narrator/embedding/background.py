"""Vectors of many texts, made little by little: what is asked for now first, the rest while nobody waits.

To embed every phrase of a story takes a second or two, and a prompt needs but a part of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Event
from typing import Final

from narratoria.narrator.embedding.minilm import DIMENSIONS, Embedder
from narratoria.narrator.embedding.vectors import Vectors, np

_PORTION: Final = 128  # texts embedded, and kept on disk, at a time: what is asked for waits for one at most


class GradualVectors:
    """The unit vectors of these texts; each is made when it is first asked for, or behind by `make_all`.

    Two threads may make the same vector, never a different one: it is written before it is said to be known.
    """

    def __init__(self, texts: Iterable[str], embedder: Embedder) -> None:
        self._texts = list(dict.fromkeys(texts))
        self._places = {text: at for at, text in enumerate(self._texts)}
        self._vectors: Vectors = np.zeros((len(self._texts), DIMENSIONS), dtype=np.float32)
        self._known = np.zeros(len(self._texts), dtype=bool)
        self._embedder = embedder
        self._nobody_waits = Event()
        self._nobody_waits.set()

    def of(self, texts: Sequence[str]) -> Vectors:
        """One row for each of the texts, which must be some of those given at the beginning."""
        places = [self._places[text] for text in texts]
        missing = [at for at in dict.fromkeys(places) if not self._known[at]]
        if missing:
            self._nobody_waits.clear()
            try:
                self._make(missing)
            finally:
                self._nobody_waits.set()
        return self._vectors[places]

    def make_all(self, first: Iterable[str] = ()) -> None:
        """Make the missing vectors in portions, and pause while a prompt waits for one.

        Texts of like length go together, for little padding. What was made is kept if the program ends early.
        """
        early = {self._places[text] for text in first}
        order = sorted(range(len(self._texts)), key=lambda at: (at not in early, len(self._texts[at])))
        while missing := [at for at in order if not self._known[at]][:_PORTION]:
            self._nobody_waits.wait()
            self._make(missing)

    def _make(self, places: Sequence[int]) -> None:
        self._vectors[places] = self._embedder.embed([self._texts[at] for at in places])
        self._known[places] = True
