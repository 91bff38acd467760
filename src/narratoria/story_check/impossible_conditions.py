"""Conditions that no state can meet: a range without a number, a value that is excluded beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from narratoria.errors import StoryProblem
from narratoria.narrator.rules.fillable import slots
from narratoria.story_check.read_state import where_read
from narratoria.story_check.rule_book import Place, RuleBook
from narratoria.story_check.written_state import StatePath
from narratoria.tools.contract.conditions import Comparison, Condition
from narratoria.tools.contract.expectations import WORDS, is_operators, matches

_LOWER: Final = ("$gte", "$gt")
_UPPER: Final = ("$lte", "$lt")


def impossible_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield the comparisons of rules and cases that exclude each other; of a rule's own `when`, once."""
    told: set[tuple[int, StatePath]] = set()
    for place in book.places:
        for path, reason in _contradictions(place.case.when):
            if (place.at, path) not in told:
                told.add((place.at, path))
                yield _problem(book, place, path, reason)


def _problem(book: RuleBook, place: Place, path: StatePath, reason: str) -> StoryProblem:
    key, below = where_read(book, place, path)
    shown = ".".join(map(str, path))
    return book.problem(key, f"{shown}: {reason}, so this can never hold", "warning", below)


def is_impossible(when: Condition) -> bool:
    """Tell if the comparisons that must all hold exclude each other."""
    return any(_contradiction(tests) for tests in _by_path(when).values())


def _contradictions(when: Condition) -> Iterator[tuple[StatePath, str]]:
    for path, tests in _by_path(when).items():
        reason = _contradiction(tests)
        if reason:
            yield path, reason
    for option in (*when.none_of, *(one for group in when.any_of for one in group)):
        yield from _contradictions(option)


def _by_path(when: Condition) -> dict[StatePath, list[Comparison]]:
    found: dict[StatePath, list[Comparison]] = {}
    for test in when.tests:
        found.setdefault(test.path, []).append(test)
    return found


def _contradiction(tests: Sequence[Comparison]) -> str:
    """Return why no value meets all comparisons of one path; empty if one may."""
    parts = [part for test in tests for part in _parts(test.expected)]
    if len(parts) < 2 and not any(map(_is_in_nothing, parts)):
        return ""
    asked = [test.expected for test in tests]
    for operator, operand in parts:
        options = [operand] if operator == "$eq" else operand if operator == "$in" else None
        if options is None or any(isinstance(one, str) and slots(one) for one in options):
            continue
        if operator == "$eq" and operand is False:
            options = [False, None]  # a flag that is not set may be missing
        if not any(all(matches(one, expected) for expected in asked) for one in options):
            return f"{_listed(asked)} exclude each other" if options else "nothing is in an empty list"
    return _empty_range(parts)


def _is_in_nothing(part: tuple[str, Any]) -> bool:
    return part[0] == "$in" and not part[1]


def _empty_range(parts: Sequence[tuple[str, Any]]) -> str:
    lower = [(operand, name) for name, operand in parts if name in _LOWER and _is_number(operand)]
    upper = [(operand, name) for name, operand in parts if name in _UPPER and _is_number(operand)]
    if not lower or not upper:
        return ""
    (least, above), (most, below) = max(lower), min(upper)
    if least < most or (least == most and (above, below) == ("$gte", "$lte")):
        return ""
    return f"no number is {_WORDS[above]} {least} and {_WORDS[below]} {most}"


_WORDS: Final = {"$gte": "at least", "$gt": "more than", "$lte": "at most", "$lt": "less than"}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parts(expected: Any) -> Iterator[tuple[str, Any]]:
    """Yield the comparisons of an expectation, each with the operator's name for JSON."""
    if not is_operators(expected):
        yield "$eq", expected
        return
    for name, operand in expected.items():
        yield WORDS.get(name, name), operand


def _listed(asked: Sequence[Any]) -> str:
    return " and ".join(as_written(one) for one in asked)


def as_written(value: Any) -> str:
    """Return a value as an author writes it in TOML."""
    if isinstance(value, Mapping):
        return (
            f"{{ {', '.join(f'{key} = {as_written(one)}' for key, one in value.items())} }}"
            if value
            else "{}"
        )
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_written, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
