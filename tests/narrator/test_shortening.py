"""A narration that is too long ends where a reader can stop, and is heard as it stands."""

from __future__ import annotations

import pytest

from narratoria.narrator.llm.plan_reply import Shortening, shortened

SENTENCE = "The sea goes on below the rock, and the lamp goes round above it."
LONG = " ".join([SENTENCE] * 40)


def heard(text: str, limit: int, piece: int) -> list[str]:
    shortening = Shortening(limit)
    pieces = [shortening.feed(text[at : at + piece]) for at in range(0, len(text), piece)]
    return [*pieces, shortening.end()]


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("It burns.", 9, "It burns."),
        ("  It burns.\n", 9, "It burns."),
        ("It burns. It burns low. It goes out for ever.", 36, "It burns. It burns low."),
        ("“It burns!” she says. Nobody answers her at all.", 24, "“It burns!” she says."),
        ("You walk and walk, and nobody comes to meet you", 21, "You walk and walk…"),
        ("You walk on and meet Mr. Aune at the very top.", 30, "You walk on and meet Mr. Aune…"),
        ("It is 3.5 miles to the next lighthouse there", 30, "It is 3.5 miles to the next…"),
        ("x" * 50, 10, "x" * 9 + "…"),
        ("灯が消えた。海は暗い。風が強くなってきた。", 12, "灯が消えた。海は暗い。"),
    ],
    ids=range(9),
)
def test_what_is_too_long_ends_with_a_sentence_else_with_a_word(text: str, limit: int, expected: str) -> None:
    assert shortened(text, limit) == expected


def test_a_sentence_that_ended_long_before_the_bound_is_not_gone_back_to() -> None:
    text = "It burns. " + "and on " * 400
    assert 1_190 < len(shortened(text, 1_200)) <= 1_200


@pytest.mark.parametrize("piece", [1, 7, 5_000])
@pytest.mark.parametrize("limit", [30, 250, 1_200, 5_000])
@pytest.mark.parametrize(
    "text",
    [
        LONG,
        f"  {LONG}  ",
        SENTENCE[:-1].replace(" ", ", ") * 30,
        "wordswithoutanyspace" * 100,
        "“Hark!” (So she says.) *Never!* … " * 60,
        "灯が消えた。「海は暗い。」風が強い！" * 80,
        "Mr. Aune. " * 200,
        "",
    ],
    ids=range(8),
)
def test_what_is_heard_in_pieces_is_what_stands(text: str, limit: int, piece: int) -> None:
    pieces = heard(text, limit, piece)
    assert "".join(pieces).strip() == shortened(text, limit)
    assert len(shortened(text, limit)) <= limit


def test_most_of_a_long_text_is_heard_as_it_is_written() -> None:
    pieces = heard(LONG, 1_200, 10)
    assert all(pieces[:60])


def test_no_stream_of_spaces_is_slow() -> None:
    shortening = Shortening(1_200)
    assert "".join(shortening.feed(" " if at else "So") for at in range(10_000)).strip() == "So"
