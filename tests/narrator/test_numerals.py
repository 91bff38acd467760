"""Numbers as people write and say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria.narrator.english.numerals import quantities, written
from narratoria.narrator.english.tokens import tokenize


@pytest.mark.parametrize(
    ("prompt", "value", "unit"),
    [
        ("1,250", 1250, ""),
        ("2.500,00 euros", 2500, "euro"),
        ("1 000 euros", 1000, "euro"),
        ("1'250'000", 1_250_000, ""),
        ("12,345.67 dollars", 12345.67, "dollar"),
        ("3,5", 3.5, ""),
        ("0.125", 0.125, ""),
        ("3k", 3000, ""),
        ("2.5 million", 2_500_000, ""),
        ("half a million", 500_000, ""),
        ("half a dozen eggs", 6, "egg"),
        ("-50", -50, ""),
        ("minus ten degrees", -10, "degr"),
        ("twenty-five minutes", 25, "minut"),
        ("two hundred and twenty degrees", 220, "degr"),
        ("one thousand two hundred and six", 1206, ""),
        ("two twenty", 220, ""),
        ("three one five", 315, ""),
        ("zero four five", 45, ""),
        ("an hour and a half", 1.5, "hour"),
        ("two and a half hours", 2.5, "hour"),
        ("three quarters of an hour", 0.75, "hour"),
        ("a quarter of an hour", 0.25, "hour"),
        ("half an hour", 0.5, "hour"),
        ("1h30", 90, "minut"),
        ("1 hour 20 minutes", 80, "minut"),
        ("2 hours, 5 minutes and 10 seconds", 7510, "second"),
        ("a couple of days", 2, "day"),
    ],
)
def test_a_number_is_read_to_its_end(prompt: str, value: float, unit: str) -> None:
    (quantity,) = quantities(tokenize(prompt))
    assert (quantity.value, quantity.unit, quantity.clear) == (value, unit, True)


@pytest.mark.parametrize("prompt", ["1.250", "1/2", "10:30", "a few minutes", "1,2345", "9" * 400])
def test_what_can_be_read_in_two_ways_or_not_at_all_is_unclear(prompt: str) -> None:
    (quantity,) = quantities(tokenize(prompt))
    assert not quantity.clear


@pytest.mark.parametrize("prompt", ["INV-204", "half the soup", "B12"])
def test_what_only_looks_like_a_number_is_none(prompt: str) -> None:
    assert quantities(tokenize(prompt)) == []


def test_a_unit_said_once_is_meant_for_the_whole_list() -> None:
    assert [(q.value, q.unit) for q in quantities(tokenize("4 and 9 minutes"))] == [
        (4, "minut"),
        (9, "minut"),
    ]


@given(st.integers(-999_999_999, 999_999_999))
def test_an_integer_reads_the_same_with_separators_and_without(value: int) -> None:
    assert written(str(value)) == value
    assert written(f"{value:,}") == value
    if abs(value) >= 1_000_000:
        assert written(f"{value:,}".replace(",", ".")) == value
