"""Inclusion of patterns: sure where it says yes."""

from __future__ import annotations

import pytest

from narratoria.narrator.rules.patterns import Pattern
from narratoria.story_check.pattern_inclusion import included, sample

WORDS = {"see": ["look at", "examine"]}


@pytest.mark.parametrize(
    ("one", "others", "whole"),
    [
        ("open door", ["open door"], True),
        ("open door", ["open (door|window)"], True),
        ("open (door|window)", ["open door"], False),
        ("open (door|window)", ["open door", "open window"], True),
        ("open [big] door", ["open door", "open big door"], True),
        ("open door", ["{first} ..."], True),
        ("open door", ["open {thing}"], True),
        ("open {thing}", ["open door"], False),
        ("open {thing}", ["open ..."], True),
        ("open ...", ["open {thing}"], False),
        ("open ... now", ["... now"], True),
        ("{a} {b}", ["{a} ..."], True),
        ("{a} ...", ["{a} {b}"], False),
        ("<see> door", ["examine ...", "look [at] {thing}"], True),
        ("go {where:north|south}", ["go (north|south|east)"], True),
        ("go {where}", ["go north", "go {where:south}"], False),
    ],
)
def test_a_pattern_is_included_in_others(one: str, others: list[str], whole: bool) -> None:
    assert included(Pattern(one, WORDS), [Pattern(other, WORDS) for other in others]) is whole


def test_a_pattern_that_takes_too_long_is_not_included() -> None:
    many = " ".join(f"[{{a{number}}}] (x|y) ..." for number in range(12))
    assert included(Pattern(many), [Pattern(many.replace("x|y", "y|x"))]) in (True, False)


@pytest.mark.parametrize("source", ["open [big] door", "<see> {thing} ...", "(a|b) {c:d|e}"])
def test_a_sample_fits_its_pattern(source: str) -> None:
    pattern = Pattern(source, WORDS)
    assert pattern.match(sample(pattern)) is not None
