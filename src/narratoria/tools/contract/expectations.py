"""Expectations: what a value must be, in a manifest, a story's rule, a lore entry or Python.

An expectation is a plain value, which must be equal, a table of operators that must all hold (`{"$gt": 0, "$lt": 9}`),
or, in Python only, a predicate. Each operator has two names, `$gte` for JSON and `at_least` for TOML; both are read
everywhere. What is missing is null, as in RFC 7396, and `false` expects a flag that is not set: one that is false, or
was never there.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from narratoria.errors import NarratoriaError, ToolValidationError
from narratoria.state import MISSING
from narratoria.tools.contract.regex import compile_regex


class ConditionError(NarratoriaError):
    """A condition or an expectation cannot be read; the message names the key."""


def matches(value: Any, expected: Any) -> bool:
    """Tell if `value` is as expected; `MISSING` stands for a value that is not there."""
    if callable(expected):
        return bool(expected(None if value is MISSING else value))
    if is_operators(expected):
        return all(OPERATORS[_canonical(name)](value, operand) for name, operand in expected.items())
    return equals(value, expected)


def is_operators(expected: Any) -> bool:
    """Tell if an expectation is a table of operators and not a value to be equal to."""
    return isinstance(expected, Mapping) and bool(expected) and all(map(_is_operator, expected))


def check_expectation(expected: Any, where: str) -> None:
    """Refuse, when it is read, an expectation that could only fail when it is used."""
    if not isinstance(expected, Mapping):
        return
    marked = [str(name) for name in expected if _is_operator(name)]
    if not marked:
        return
    for name in expected:
        if not _is_operator(name):
            near = difflib.get_close_matches(f"{name}", [*OPERATORS, *WORDS], 1)
            hint = f"did you mean {near[0]!r}?" if near else "compare a whole object with $eq"
            raise ConditionError(f"{where}: {name!r} is not an operator, and stands among operators; {hint}")
    for name in marked:
        operator, operand, here = _canonical(name), expected[name], f"{where}.{name}"
        if operator not in OPERATORS:
            known = [*OPERATORS, *WORDS]
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise ConditionError(f"{here}: unknown operator; {hint}")
        kind = _NUMBER if name != operator and operator in _ORDER else _OPERANDS.get(operator)
        if kind is not None and not kind[0](operand):
            raise ConditionError(f"{here}: expected {kind[1]}, got {operand!r}")
        if operator == "$not":
            check_expectation(operand, here)
        elif operator == "$matches":
            try:
                compile_regex(operand)
            except ToolValidationError as error:
                raise ConditionError(f"{here}: {error}") from None


def equals(value: Any, expected: Any) -> bool:
    """Tell if two values are equal as JSON, where `false` also matches a missing value."""
    if expected is False and (value is MISSING or value is None):
        return True
    return same(value, expected)


def same(one: Any, other: Any) -> bool:
    """Tell if two values are equal as JSON. 1 and 1.0 are one number, `true` is none, and a missing value is null."""
    one, other = (None if side is MISSING else side for side in (one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if _is_array(one) and _is_array(other):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _is_operator(name: Any) -> bool:
    return str(name).startswith("$") or name in WORDS


def _canonical(name: str) -> str:
    return WORDS.get(name, name)


def _is_array(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a comparison that holds only between two numbers or two texts."""

    def holds(value: Any, operand: Any) -> bool:
        both_numbers = _is_number(value) and _is_number(operand)
        both_texts = isinstance(value, str) and isinstance(operand, str)
        return (both_numbers or both_texts) and compare(value, operand)

    return holds


def _contains(value: Any, operand: Any) -> bool:
    if isinstance(value, str):
        return isinstance(operand, str) and operand in value
    if isinstance(value, Mapping):
        return operand in value
    return _is_array(value) and any(same(item, operand) for item in value)


def _exists(value: Any, operand: Any) -> bool:
    return (value is not MISSING and value is not None) is operand


OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$eq": equals,
    "$ne": lambda value, operand: not equals(value, operand),
    "$gt": _ordered(lambda value, operand: value > operand),
    "$gte": _ordered(lambda value, operand: value >= operand),
    "$lt": _ordered(lambda value, operand: value < operand),
    "$lte": _ordered(lambda value, operand: value <= operand),
    "$in": lambda value, operand: any(equals(value, item) for item in operand),
    "$notIn": lambda value, operand: not any(equals(value, item) for item in operand),
    "$exists": _exists,
    "$missing": lambda value, operand: not _exists(value, operand),
    "$contains": _contains,
    "$matches": lambda value, operand: isinstance(value, str) and compile_regex(operand).search(value),
    "$not": lambda value, operand: not matches(value, operand),
}
WORDS: Final[Mapping[str, str]] = {
    "equals": "$eq",
    "not": "$not",
    "more_than": "$gt",
    "at_least": "$gte",
    "less_than": "$lt",
    "at_most": "$lte",
    "in": "$in",
    "not_in": "$notIn",
    "exists": "$exists",
    "missing": "$missing",
    "contains": "$contains",
}
"""The operators as words, for TOML, where a key with `$` needs quotation marks; those of order take numbers only."""

_Fits = Callable[[Any], bool]
_NUMBER: Final[tuple[_Fits, str]] = (_is_number, "a number")
_ORDERED: Final[tuple[_Fits, str]] = (
    lambda operand: _is_number(operand) or isinstance(operand, str),
    "a number or a text",
)
_ORDER: Final = frozenset({"$gt", "$gte", "$lt", "$lte"})
_FLAG: Final[tuple[_Fits, str]] = (lambda operand: isinstance(operand, bool), "true or false")
_LIST: Final[tuple[_Fits, str]] = (_is_array, "a list")
_OPERANDS: Final[Mapping[str, tuple[_Fits, str]]] = {
    **dict.fromkeys(_ORDER, _ORDERED),
    "$in": _LIST,
    "$notIn": _LIST,
    "$exists": _FLAG,
    "$missing": _FLAG,
}
