"""Endings that rules set: whether each is one, and whether play can come to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from narratoria.errors import StoryProblem
from narratoria.narrator.rules.fillable import slots
from narratoria.state import MISSING
from narratoria.story_check.impossible_conditions import as_written, is_impossible
from narratoria.story_check.rule_book import Place, RuleBook
from narratoria.story_check.written_state import StatePath, WrittenState
from narratoria.tools.contract.conditions import SAID, Comparison, Condition
from narratoria.tools.contract.expectations import matches


def shape_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield what rules set as an ending and is none: a story is over when `ending` has an id."""
    seen: set[str] = set()
    for place in book.places:
        key = place.key("set")
        if key in seen:
            continue
        seen.add(key)
        if "ending" in place.case.patch:
            yield from _of_shape(book, key, place.case.patch["ending"])
        for name, value in place.case.patch.items():
            if _is_misspelt_ending(book, name, value):
                message = f"{name}: nothing reads it, and a story ends by 'ending'; did you mean 'ending'?"
                yield book.problem(key, message, "warning", f".{name}")


def _of_shape(book: RuleBook, key: str, ending: Any) -> Iterator[StoryProblem]:
    if isinstance(ending, str) and slots(ending):
        return  # what is there is known in play
    if not isinstance(ending, Mapping) or not isinstance(ending.get("id"), str):
        meant = ending if isinstance(ending, str) else "…"
        message = (
            f'ending: it needs an id, or the story does not end: ending = {{ id = "{meant}", title = "…" }}'
        )
        yield book.problem(key, message, below=".ending")
    for name in ending if isinstance(ending, Mapping) else ():
        near = difflib.get_close_matches(str(name), ["id", "title"], 1, 0.7)
        if near and name not in ("id", "title"):
            message = f"ending.{name}: did you mean {near[0]!r}?"
            yield book.problem(key, message, "warning", f".ending.{name}")


def _is_misspelt_ending(book: RuleBook, name: str, value: Any) -> bool:
    if name == "ending" or not isinstance(value, Mapping) or not value or value.keys() - {"id", "title"}:
        return False
    read = any(
        name in repr(table.get("when")) or f"state.{name}" in repr(table) for table in book.rules.tables
    )
    return not read and name not in book.state and bool(difflib.get_close_matches(name, ["ending"], 1, 0.75))


def ending_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield the endings of rules that no play can reach, each with what is missing for it."""
    if not book.rules.end_the_story:
        return
    reached = _reached(book)
    state = WrittenState(book, [(one.rule, one.case) for one in reached])
    got = {_ending(one) for one in reached if "ending" in one.case.patch}
    for place in book.places:
        if "ending" in place.case.patch and place not in reached and _ending(place) not in got:
            want = _missing(place.case.when, state)
            message = f"the ending {_ending(place)!r} cannot be reached: {want}"
            yield book.problem(place.key("set"), message, "warning", ".ending")


def _ending(place: Place) -> str:
    ending = place.case.patch["ending"]
    return str(ending.get("id", ending)) if isinstance(ending, dict) else str(ending)


def _reached(book: RuleBook) -> list[Place]:
    """Return the cases that may be used, found by adding what each that may be used writes, until nothing is new."""
    reached: list[Place] = []
    while True:
        state = WrittenState(book, [(one.rule, one.case) for one in reached])
        now = [one for one in book.places if may_hold(one.case.when, state)]
        if len(now) == len(reached):
            return now
        reached = now


def may_hold(when: Condition, state: WrittenState) -> bool:
    """Tell if a condition may hold in some state that can be; when in doubt, it may."""
    return (
        not is_impossible(when)
        and all(_may(test, state) for test in when.tests)
        and all(any(may_hold(option, state) for option in group) for group in when.any_of)
    )


def _may(test: Comparison, state: WrittenState) -> bool:
    if test.path[:1] == (SAID,) or matches(MISSING, test.expected) or _any_by_tools(test.path, state):
        return True
    return any(_is_open(value) or matches(value, test.expected) for value in state.values.get(test.path, ()))


def _any_by_tools(path: StatePath, state: WrittenState) -> bool:
    return state.by_tools(path) and state.has(path)


def _is_open(value: Any) -> bool:
    return isinstance(value, str) and bool(slots(value))


def _missing(when: Condition, state: WrittenState) -> str:
    """Return the first part of a condition that cannot hold, as it is written."""
    for test in when.tests:
        if not _may(test, state):
            return f"nothing ever makes {'.'.join(map(str, test.path))} = {as_written(test.expected)}"
    for group in when.any_of:
        if not any(may_hold(option, state) for option in group):
            return "none of its alternatives can ever hold"
    return "its condition can never hold"
