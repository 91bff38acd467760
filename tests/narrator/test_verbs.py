"""The families of verbs: loose for tools, narrow for rules."""

from __future__ import annotations

import pytest

from narratoria.narrator.english.verbs import akin, families, is_known, says_enough
from narratoria.narrator.english.words import stem


@pytest.mark.parametrize(("verb", "loosely"), [("buy", "get"), ("mend", "see"), ("stash", "keep")])
def test_a_verb_that_speaks_for_a_tool_does_not_stand_for_another_before_a_rule(
    verb: str, loosely: str
) -> None:
    assert families(verb) & families(loosely)
    assert not akin([stem(verb)], [stem(loosely)])


@pytest.mark.parametrize(("verb", "other"), [("nab", "take"), ("decant", "pour"), ("lash", "tie")])
def test_another_word_for_a_deed_stands_for_it_before_a_rule(verb: str, other: str) -> None:
    assert akin([stem(verb)], [stem(other)])


def test_a_verb_in_no_family_is_kin_to_itself_alone() -> None:
    assert not is_known("defenestrate")
    assert akin(["defenestrat"], ["defenestrat"])
    assert not akin(["defenestrat"], ["throw"])


def test_a_particle_makes_another_deed_of_a_verb_that_says_little() -> None:
    assert not says_enough("put") and says_enough("put", "out")
    assert families("put", "out") == families("extinguish") != families("put")


def test_to_do_a_thing_again_is_of_the_family_of_the_thing() -> None:
    assert families("reopen") == families("re-open") == families("open")
    assert families("remove") != families("move")
