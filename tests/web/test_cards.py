"""The words on the cards of the library."""

from __future__ import annotations

import pytest

from narratoria.web.cards import EXCERPT, LONGEST_TITLE, branch_title, excerpt


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("And **that** was _it_. [link](http://x.example)", "And that was it. link"),
        ("The *Corvina* passes.\n\nAll are asleep.", "The Corvina passes. All are asleep."),
        ("You find:\n\n- a nail\n- a *torch*\n- 2 < 3", "You find: a nail · a torch · 2 < 3"),
        ("# At sea\n\n> Who is there?\n\n`code` & more", "At sea Who is there? code & more"),
        ("<b>not bold</b>", "<b>not bold</b>"),
    ],
)
def test_an_excerpt_is_the_narration_as_it_is_read(told: str, read: str) -> None:
    assert excerpt(told) == read


def test_an_excerpt_is_the_end_and_begins_with_a_sentence() -> None:
    told = "It was long ago. " * 300 + "Half of it is *told*, and the rest is not. " + "The lamp is lit. " * 8
    assert excerpt(told).startswith("The lamp is lit.")
    assert excerpt(told).endswith("The lamp is lit.")
    assert excerpt("word " * 300).startswith("…word ")
    assert len(excerpt("word " * 300)) <= EXCERPT + 1


@pytest.mark.parametrize(
    ("title", "turn", "branch"),
    [
        ("The Light", 0, "The Light (from the beginning)"),
        ("The Light", 3, "The Light (from turn 3)"),
        ("The Light (from turn 16) (from turn 1)", 2, "The Light (from turn 2)"),
        ("The Light (from the beginning)", 1, "The Light (from turn 1)"),
        ("Letters (from home)", 1, "Letters (from home) (from turn 1)"),
    ],
)
def test_a_branch_of_a_branch_says_once_where_it_began(title: str, turn: int, branch: str) -> None:
    assert branch_title(title, turn) == branch


def test_the_title_of_a_branch_can_be_kept_when_it_is_renamed() -> None:
    made = branch_title("x" * LONGEST_TITLE, 7)
    assert len(made) == LONGEST_TITLE
    assert made.endswith("x… (from turn 7)")
