"""Vectors made little by little: what somebody waits for goes before the rest, and nothing is made twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.background import GradualVectors
from narratoria.narrator.embedding.minilm import DIMENSIONS
from narratoria.narrator.embedding.vectors import Vectors, np

TEXTS = [f"text {number:04}" for number in range(1000)]


class Numbers:
    """The vector of a text begins with its number; the first call says that it has begun, and waits for a word."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        if len(self.calls) == 1:
            self.begun.set()
            self.go_on.wait(30)
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        vectors[:, 0] = [int(text.split()[1]) for text in texts]
        return vectors

    def knows_word(self, word: str) -> bool:
        return True


@pytest.fixture
def numbers() -> Numbers:
    made = Numbers()
    made.go_on.set()
    return made


def test_only_what_is_asked_for_is_made_and_only_once(numbers: Numbers) -> None:
    vectors = GradualVectors(TEXTS, numbers)
    assert vectors.of([TEXTS[7], TEXTS[3], TEXTS[7]])[:, 0].tolist() == [7, 3, 7]
    assert vectors.of([TEXTS[3], TEXTS[4]])[:, 0].tolist() == [3, 4]
    assert numbers.calls == [[TEXTS[7], TEXTS[3]], [TEXTS[4]]]


def test_the_rest_is_made_in_portions_the_early_ones_first(numbers: Numbers) -> None:
    vectors = GradualVectors(TEXTS, numbers)
    vectors.of(TEXTS[:10])
    vectors.make_all(TEXTS[990:])
    made = [text for call in numbers.calls[1:] for text in call]
    assert len(numbers.calls) > 5
    assert made[:10] == TEXTS[990:]
    assert sorted(made) == TEXTS[10:]
    assert vectors.of(TEXTS)[:, 0].tolist() == list(range(1000))


def test_whoever_waits_is_served_before_the_rest_goes_on() -> None:
    numbers = Numbers()
    vectors = GradualVectors(TEXTS, numbers)
    behind = threading.Thread(target=vectors.make_all)
    behind.start()
    assert numbers.begun.wait(30)
    assert vectors.of([TEXTS[999]])[0, 0] == 999
    numbers.go_on.set()
    behind.join(30)
    assert numbers.calls[1] == [TEXTS[999]]
    assert sum(TEXTS[999] in call for call in numbers.calls) == 1
