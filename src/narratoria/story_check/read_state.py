"""State that rules read: paths that something writes, operators that there are, texts that can be there."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from narratoria.errors import StoryProblem
from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.patterns import Choice, Group, Parts
from narratoria.narrator.rules.rule_file import Rule
from narratoria.state import split_path
from narratoria.story_check.rule_book import Place, RuleBook, did_you_mean
from narratoria.story_check.written_state import StatePath, WrittenState
from narratoria.tools.contract.conditions import SAID, Comparison, Condition
from narratoria.tools.contract.expectations import OPERATORS, WORDS, is_operators

_SURE: Final = 0.8  # of a name that it is an operator misspelt
_TEXTS: Final = ("narrative", "then", "instead", "unavailable", "patch", "choices", "calls")


def state_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield what conditions and texts read and nothing writes; of a rule's own `when`, once."""
    written = WrittenState(book)
    told: set[tuple[int, StatePath]] = set()
    for place in book.places:
        for test in tests_of(place.case.when):
            if (place.at, test.path) not in told:
                problem = _of_test(book, place, test, written)
                if problem is not None:
                    told.add((place.at, test.path))
                    yield problem
        for name in _TEXTS:
            yield from _of_slots(book, place, name, written, told)


def tests_of(when: Condition) -> Iterator[Comparison]:
    yield from when.tests
    for options in (*when.any_of, when.none_of):
        for option in options:
            yield from tests_of(option)


def _of_test(book: RuleBook, place: Place, test: Comparison, written: WrittenState) -> StoryProblem | None:
    if test.path[:1] == (SAID,):
        return _of_said(book, place, test)
    key, below = where_read(book, place, test.path)
    shown = ".".join(map(str, test.path))
    operator = _operator_problem(test, written)
    if operator:
        return book.problem(key, f"{shown}: {operator}", below=below)
    if not written.has(test.path):
        hint = _known_path(shown, written)
        return book.problem(key, f"no tool and no rule ever writes {shown}{hint}", "warning", below)
    texts = written.texts_at(test.path)
    for text in _texts(test.expected):
        if text in texts or written.mentions(text):
            continue
        near = difflib.get_close_matches(text, texts, 1, 0.75)
        if near:
            message = f"nothing ever makes {shown} {text!r}; did you mean {near[0]!r}?"
            return book.problem(key, message, "warning", below)
    return None


def _of_said(book: RuleBook, place: Place, test: Comparison) -> StoryProblem | None:
    groups = set[str]().union(*(pattern.groups for pattern in place.rule.patterns))
    name = str(test.path[1]) if len(test.path) > 1 else ""
    if not place.rule.patterns:  # these could not be read
        return None
    if name in groups:
        return _of_captured(book, place, test, name)
    key, below = where_read(book, place, test.path)
    hint = did_you_mean(name, groups)
    return book.problem(
        key, f"{SAID}.{name}: no pattern of the rule has a group {name!r}; {hint}", below=below
    )


def _of_captured(book: RuleBook, place: Place, test: Comparison, name: str) -> StoryProblem | None:
    """Return the problem of a text that a group with a list of words never captures."""
    heard = captured(place.rule, name)
    for text in _texts(test.expected) if heard else ():
        if text.casefold() not in heard:
            key, below = where_read(book, place, test.path)
            message = f"{SAID}.{name} is never {text!r}; {did_you_mean(text, heard)}"
            return book.problem(key, message, "warning", below)
    return None


def captured(rule: Rule, name: str) -> set[str]:
    """Return what a group can capture; nothing if that is not a list of plain words."""
    found: set[str] = set()
    for pattern in rule.patterns:
        for group in _groups(pattern.parts):
            if group.name == name:
                if not group.ways or not all(isinstance(one, str) for way in group.ways for one in way):
                    return set()
                found.update(" ".join(map(str, way)) for way in group.ways)
    return found


def _groups(parts: Parts) -> Iterator[Group]:
    for part in parts:
        if isinstance(part, Group):
            yield part
        for way in part.ways if isinstance(part, Choice | Group) else ():
            yield from _groups(way)


def _operator_problem(test: Comparison, written: WrittenState) -> str:
    """Return the problem of a name that is meant as an operator and is none. It would be read as a key."""
    for at, name in enumerate(test.path[1:], 1):
        above = test.path[:at]
        if isinstance(name, int) or test.path[: at + 1] in written.values:
            continue
        near = _near_operator(name)
        plain = written.values.get(above)
        of_plain_value = plain is not None and not any(isinstance(one, Mapping | list) for one in plain)
        if near and not written.writes_key(name):
            return f"{name!r} is no operator; did you mean {near!r}?"
        if of_plain_value and not written.mentions(name):
            return f"{name!r} is no operator; there are: {', '.join(WORDS)}"
    return ""


# What other languages call them.
_SYNONYMS: Final = {
    word: operator
    for operator, words in {
        "at_least": "min minimum gte ge atleast",
        "at_most": "max maximum lte le atmost",
        "more_than": "gt greater greater_than larger larger_than above over",
        "less_than": "lt lower smaller smaller_than below under",
        "equals": "eq is equal_to",
        "not": "ne isnt is_not unequal",
        "contains": "has includes include",
        "exists": "present defined set",
        "missing": "absent undefined unset not_exists",
        "in": "one_of any_of",
    }.items()
    for word in words.split()
}


@cache
def _near_operator(name: str) -> str:
    meant = _SYNONYMS.get(name.lower())
    if meant or len(name) < 4:
        return meant or ""
    return next(iter(difflib.get_close_matches(name.lower(), [*WORDS, *OPERATORS], 1, _SURE)), "")


def _texts(expected: Any) -> Iterator[str]:
    """Yield the texts that a comparison needs one of, if it does."""
    if isinstance(expected, str):
        yield expected
    elif isinstance(expected, Mapping) and is_operators(expected):
        for name, operand in expected.items():
            if name in ("equals", "$eq") and isinstance(operand, str):
                yield operand
            elif name in ("in", "$in") and isinstance(operand, list):
                yield from (one for one in operand if isinstance(one, str))


def _known_path(shown: str, written: WrittenState) -> str:
    near = difflib.get_close_matches(shown, written.paths(), 1, 0.75)
    return (
        f"; did you mean {near[0]!r}?"
        if near
        else "; check its spelling, or set it at the beginning in [state]"
    )


def where_read(book: RuleBook, place: Place, path: StatePath) -> tuple[str, str]:
    """Return the key of the condition that has this path, the case's or its rule's, and the rest of the way."""
    table = book.rules.tables[place.at] if place.at < len(book.rules.tables) else {}
    own = table["cases"][place.number].get("when", {}) if place.own is not None else table.get("when", {})
    for key, when in ((f"{place.table}.when", own), (f"rule[{place.at}].when", table.get("when", {}))):
        way = _way(when, path)
        if way is not None:
            return key, way
    return f"{place.table}.when", ""


def _way(when: Any, path: StatePath) -> str | None:
    """Return how a table of conditions leads to a path: `.any[0].place.id`."""
    if not isinstance(when, Mapping):
        return None
    for key, value in when.items():
        if key in ("any", "none") and isinstance(value, list):
            for number, option in enumerate(value):
                way = _way(option, path)
                if way is not None:
                    return f".{key}[{number}]{way}"
            continue
        parts = tuple(split_path(key)) if key else ()
        if path[: len(parts)] != parts:
            continue
        rest = path[len(parts) :]
        inner = "" if not rest else _way(value, rest)
        if inner is not None:
            return f".{key}{inner}"
    return None


def _of_slots(
    book: RuleBook, place: Place, name: str, written: WrittenState, told: set[tuple[int, StatePath]]
) -> Iterator[StoryProblem]:
    value = getattr(place.case, name)
    used = slots([call.input for call in value] if name == "calls" else value)
    for slot in sorted(used):
        path = tuple(split_path(slot.removesuffix(".*"))[1:]) if slot.startswith("state.") else ()
        if path and not written.has(path) and (place.at, path) not in told:
            told.add((place.at, path))
            shown = ".".join(map(str, path))
            key = place.key("set" if name == "patch" else name)
            hint = _known_path(shown, written)
            yield book.problem(key, f"{{{slot}}}: no tool and no rule ever writes {shown}{hint}", "warning")
