"""Reports of how things are: they name actions and order none."""

from __future__ import annotations

import pytest

from narratoria.narrator.english.mood import tells_how_things_are
from narratoria.narrator.english.tokens import tokenize


def is_verb(word: str) -> bool:
    return word in ("remember", "answer", "feed", "feeding")


def words(prompt: str) -> list[str]:
    return [token.low for token in tokenize(prompt)]


@pytest.mark.parametrize(
    "prompt",
    [
        "the bell is broken",
        "it is too dark in here",
        "there is fog over the bridge",
        "Rex is hungry",
        "the water in the tub is murky",
        "the old gate is shut",
        "Rex is being moved to the shed",
    ],
)
def test_how_things_are_is_told_from_an_order(prompt: str) -> None:
    assert tells_how_things_are(words(prompt), is_verb)


@pytest.mark.parametrize(
    "prompt",
    [
        "the lights should be on",
        "Rex is to be fed",
        "Rex is due for a bath",
        "the answer is a shadow",
        "my name is Ada",
        "Rex is 12 kilos now",
        "the tub is too cold, please",
        "tell Ada the gate is shut",
        "Ada is returning the atlas",
        "I am going up",
        "Ada looks at the clock",
        "Rex is ready to go up",
    ],
)
def test_what_gives_something_or_asks_for_it_is_no_mere_statement(prompt: str) -> None:
    assert not tells_how_things_are(words(prompt), is_verb)
