"""What a prompt takes back in the same breath, before it is split into clauses."""

from __future__ import annotations

import pytest

from narratoria.narrator.english.second_thoughts import amended
from narratoria.narrator.english.tokens import join, tokenize


def is_verb(word: str) -> bool:
    return word in ("board", "book", "set", "feed", "reserve")


@pytest.mark.parametrize(
    ("prompt", "meant"),
    [
        ("Book Kiwi for Tuesday. No, sorry, make that Thursday.", "book kiwi for thursday."),
        ("Set the mail to 80... no wait, make that 50", "set the mail to 50"),
        ("Pour two, no wait, three glasses", "pour three glasses"),
        ("Reserve the atlas for Priya, sorry, I mean for Walter", "reserve the atlas for walter"),
        ("Take the red key, no wait, the blue one", "take the blue key"),
        ("Put the cup on the table - no, I mean the shelf", "put the cup on the shelf"),
        ("Feed Rex, or rather Juno, then lock the gate", "feed juno, then lock the gate"),
        ("Light the lamp and take the rope, no wait, the lantern", "light the lamp and take the lantern"),
        ("Board the frigate! No, scratch that, board the sloop instead", "board the sloop instead"),
        ("Play jazz. Actually no, stop the music.", "stop the music."),
        ("take the oil, no wait", ""),
        ("Set the sails? No way.", "."),
        ("Set the sails? Not a chance", ""),
        ("Set the sails? Absolutely not! Feed Rex", "! feed rex"),
        ("Set the sails? Forget it.", "."),
        ("Set the sails - just kidding", ""),
        ("Feed Rex. Set the sails. I was joking!", "!"),
        ("Feed Rex. Set the sails, never mind.", "feed rex.."),
        ("Set the sails. Actually, don't.", "."),
        ("Set the sails... not!", "!"),
    ],
)
def test_the_second_thought_takes_the_place_of_the_first(prompt: str, meant: str) -> None:
    assert join(amended(tokenize(prompt), is_verb)) == meant


@pytest.mark.parametrize(
    "prompt",
    [
        "take the key",
        "i mean it: open the door",
        'say "stop, no wait, go on" to him',
        "wait",
        "",
        "never mind the key, take the rope",
        "never mind. take the rope",
        "no kidding, feed rex",
        "say no",
        "feed rex? yes please",
        "feed rex? good idea",
        "why not feed rex?",
        "feed rex, not juno",
        "tell ada: never mind",
        "feed rex, no matter what",
    ],
)
def test_what_takes_nothing_back_stays_as_it_is(prompt: str) -> None:
    assert amended(tokenize(prompt), is_verb) == tokenize(prompt)
