"""How a prompt falls into clauses: their words, their moods, their order."""

from __future__ import annotations

import pytest

from narratoria.narrator.english.clauses import Clause, split_clauses
from narratoria.narrator.english.mood import Mood
from narratoria.narrator.english.tokens import tokenize


def split(prompt: str) -> list[Clause]:
    return split_clauses(tokenize(prompt))


def texts(prompt: str) -> list[str]:
    return [clause.text for clause in split(prompt) if not clause.negated]


@pytest.mark.parametrize(
    "prompt",
    [
        "open the gate, but first feed the hound",
        "open the gate, but before that feed the hound",
        "open the gate once the hound is fed",
        "open the gate as soon as you have fed the hound",
        "open the gate after feeding the hound",
    ],
)
def test_words_that_put_the_second_deed_first_are_heard(prompt: str) -> None:
    gate, hound = split(prompt)
    assert gate.after == (1,) and hound.after == ()


def test_what_opens_with_a_condition_comes_first_when_its_deed_does() -> None:
    fed, gate = split("once the hound is fed, open the gate")
    assert gate.after == (0,) and fed.after == ()
    assert fed.text == "fed the hound"


def test_two_deeds_after_one_after_both_come_first() -> None:
    serve, wash, dice = split("serve the soup after washing the pan and dicing the leek")
    assert serve.after == (1, 2) and wash.after == () and dice.after == ()


def test_only_then_is_then() -> None:
    assert split("wash the pan and only then dice the leek")[1].after == (0,)


@pytest.mark.parametrize(
    ("prompt", "left"),
    [
        ("open the gate rather than climb the wall", ["open the gate"]),
        ("I'd rather open the gate than climb the wall", ["open the gate"]),
        ("anything except ringing the bell: open the gate", ["open the gate"]),
        ("don't open the gate or ring the bell", []),
        ("neither open the gate nor ring the bell", []),
        ("don't just open the gate, ring the bell", ["open the gate", "ring the bell"]),
        ("take the cup but not the rope", ["take the cup"]),
    ],
)
def test_what_is_ruled_out_ends_where_it_ends(prompt: str, left: list[str]) -> None:
    assert texts(prompt) == left


def test_a_question_covers_all_its_deeds() -> None:
    assert [clause.mood for clause in split("should I open the gate and ring the bell?")] == [Mood.MUSING] * 2
    assert [clause.mood for clause in split("is it late? open the gate")] == [Mood.QUESTION, Mood.ORDER]


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [
        ("pay INV-204", ["pay", "inv-204"]),
        ("move 1,250.75", ["move", "1,250.75"]),
        ("move 1 000 euros", ["move", "1 000", "euros"]),
        ("move -50", ["move", "-50"]),
        ("5-10", ["5", "-", "10"]),
        ("1h30", ["1", "h", "30"]),
        ("$3k", ["$", "3", "k"]),
    ],
)
def test_numbers_and_identifiers_stay_whole(prompt: str, tokens: list[str]) -> None:
    assert [token.low for token in tokenize(prompt)] == tokens
