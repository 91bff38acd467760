"""Thoughts, rumours, opinions and reports of how things are: they name deeds and order none."""

from __future__ import annotations

import pytest

from narratoria.narrator.english.statements import only_tells, tells_how_things_are
from narratoria.narrator.english.tokens import tokenize


def is_verb(word: str) -> bool:
    return word in ("remember", "answer", "feed", "feeding")


def words(prompt: str) -> list[str]:
    return [token.low for token in tokenize(prompt)]


@pytest.mark.parametrize(
    "prompt",
    [
        "I am afraid the tank will leak",
        "Sheldon dreams of being fed",
        "the children love soup",
        "the old miller really hates ringing the bell",
        "I hate lighting lamps",
        "we hope that the gate opens",
        "I think the gate will be opened",
        "I think we should not open the gate",
        "I'm tired of sweeping the hall",
        "rumour has it that the gate will be opened",
    ],
)
def test_what_is_thought_or_feared_is_only_told(prompt: str) -> None:
    assert only_tells(words(prompt), is_verb)


@pytest.mark.parametrize(
    "prompt",
    [
        "light the lamp",
        "I light the lamp",
        "hide the love letter",
        "note that Rex loves soup",
        "I'd love to light the lamp",
        "Rex would like some soup",
        "I think we should light the lamp",
        "I guess I'll light the lamp",
        "I think two croissants",
        "I'm afraid you must open the gate",
        "I'm happy to light the lamp",
        "it seems Rex needs feeding",
        "I remember the code",
        "it would be great to go up",
        "it is time to go up",
        "keep Rex in the shed from Monday",
        "Rex goes to the shed",
        "Ada is returning the atlas",
        "could you keep the lamp burning",
        "Rex may go up",
    ],
)
def test_a_request_is_not_taken_for_a_thought(prompt: str) -> None:
    assert not only_tells(words(prompt), is_verb)


@pytest.mark.parametrize(
    "prompt",
    [
        "the bell is broken",
        "it is too dark in here",
        "there is fog over the bridge",
        "Rex is hungry",
        "the water in the tub is murky",
        "I think the bell is broken",
        "the old gate is shut",
        "Rex looks hungry",
        "Ada lives in the mill",
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
