"""What a player takes back in the same breath is not done."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.shipped_stories import shipped_story

from narratoria.narrator.english.normalise import with_apostrophes
from narratoria.narrator.english.second_thoughts import corrected
from narratoria.narrator.protocol import NarratorRequest

STORIES = Path(__file__).parents[2] / "stories"


@pytest.mark.parametrize(
    ("prompt", "meant"),
    [
        ("go downstairs, no wait, up", "go up"),
        ("down. no, I mean up", "up"),
        ("take the oil, no wait, the rope", "take the rope"),
        ("go to the kitchen... wait, no, to the store", "go to the store"),
        ("light the torch and open the door, or rather examine it", "light the torch and examine it"),
        ("open the door, scratch that, knock. no, make that listen", "listen"),
        ("light the lamp, no wait", "wait"),
        ("wait", "wait"),
        ("no wait, up", "no wait, up"),
        ("I know what I mean", "I know what I mean"),
        ("say “stop, no wait, go on”", "say “stop, no wait, go on”"),
        ("", ""),
    ],
)
def test_only_what_was_meant_in_the_end_is_asked_for(prompt: str, meant: str) -> None:
    assert corrected(prompt) == meant


@pytest.mark.parametrize("apostrophe", "'’‘`´ʼ′＇")
def test_every_apostrophe_a_keyboard_has_rules_a_deed_out(apostrophe: str) -> None:
    story = shipped_story("torch")
    asked = NarratorRequest(prompt=f"don{apostrophe}t light the torch", state=story.state)
    assert corrected(asked.prompt) == "don't light the torch"
    assert story.scripted_narrator().understand(asked)[0] == []


@pytest.mark.parametrize("text", [", no wait, up" * 70, "," * 1000, " " * 999, ", " * 10_000])
def test_no_prompt_costs_much_time(text: str) -> None:
    start = time.process_time()
    corrected(text)
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("dont open it", "don't open it"),
        ("I Wont go", "I Won't go"),
        ("you cant, it isnt lit", "you can't, it isn't lit"),
        ("im sure theyre in and whats that", "i'm sure they're in and what's that"),
        ("I want a tent; we were in its id", "I want a tent; we were in its id"),
    ],
)
def test_an_apostrophe_that_was_left_out_is_put_in(typed: str, meant: str) -> None:
    assert with_apostrophes(typed) == meant
