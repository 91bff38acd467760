"""How a value is compared with what is expected of it, in Python and in a manifest.

An expectation is a plain JSON value (equal as JSON: `true` is not 1), an object of operators that must all
hold (`{"$gt": 0, "$lt": 10}`), or, in Python only, a predicate. What is not there is null, as in RFC 7396.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from narratoria.contract.regex import compile_regex
from narratoria.errors import ToolValidationError
from narratoria.state import MISSING, lookup


def matches(value: Any, expected: Any) -> bool:
    """Whether `value` is as expected; `MISSING` stands for a value that is not there."""
    if callable(expected):
        return bool(expected(None if value is MISSING else value))
    if is_operators(expected):
        return all(OPERATORS[name](value, operand) for name, operand in expected.items())
    return same(value, expected)


def matches_all(data: Any, expectations: Mapping[str, Any]) -> bool:
    """Whether what stands at each path of `data` is as expected there."""
    return all(matches(find(data, path), expected) for path, expected in expectations.items())


def find(data: Any, path: str) -> Any:
    """What stands at `path`, all of `data` at the empty path, or `MISSING`."""
    return data if path == "" else lookup(data, path, MISSING)


def is_operators(expected: Any) -> bool:
    return (
        isinstance(expected, Mapping) and bool(expected) and all(str(key).startswith("$") for key in expected)
    )


def check_expectation(expected: Any, where: str) -> None:
    """Refuse, when a tool is defined, what could only fail when it is called."""
    if not isinstance(expected, Mapping):
        return
    marked = [key for key in expected if str(key).startswith("$")]
    if marked and len(marked) < len(expected):
        raise ToolValidationError(
            f"{where}: operators and plain keys are mixed; give either, or nest with $eq"
        )
    for name in marked:
        operand = expected[name]
        if name not in OPERATORS:
            raise ToolValidationError(f"{where}.{name}: unknown operator; known: {', '.join(OPERATORS)}")
        if name in ("$in", "$notIn") and not _is_array(operand):
            raise ToolValidationError(f"{where}.{name}: expected an array, got {operand!r}")
        if name == "$exists" and not isinstance(operand, bool):
            raise ToolValidationError(f"{where}.{name}: expected true or false, got {operand!r}")
        if name == "$matches":
            _check_pattern(operand, f"{where}.{name}")
        if name == "$not":
            check_expectation(operand, f"{where}.{name}")


def _check_pattern(pattern: Any, where: str) -> None:
    try:
        compile_regex(pattern)
    except ToolValidationError as error:
        raise ToolValidationError(f"{where}: {error}") from None


def same(one: Any, other: Any) -> bool:
    """Equal as JSON. 1 and 1.0 are one number, `true` is none, and what is missing is null."""
    one, other = (None if side is MISSING else side for side in (one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if _is_array(one) and _is_array(other):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _is_array(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """An order exists between two numbers and between two texts; anything else does not hold."""

    def holds(value: Any, operand: Any) -> bool:
        both_numbers = _is_number(value) and _is_number(operand)
        both_texts = isinstance(value, str) and isinstance(operand, str)
        return (both_numbers or both_texts) and compare(value, operand)

    return holds


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _contains(value: Any, operand: Any) -> bool:
    if isinstance(value, str):
        return isinstance(operand, str) and operand in value
    if isinstance(value, Mapping):
        return operand in value
    return _is_array(value) and any(same(item, operand) for item in value)


OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$eq": same,
    "$ne": lambda value, operand: not same(value, operand),
    "$gt": _ordered(lambda value, operand: value > operand),
    "$gte": _ordered(lambda value, operand: value >= operand),
    "$lt": _ordered(lambda value, operand: value < operand),
    "$lte": _ordered(lambda value, operand: value <= operand),
    "$in": lambda value, operand: any(same(value, item) for item in operand),
    "$notIn": lambda value, operand: not any(same(value, item) for item in operand),
    "$exists": lambda value, operand: (value is not MISSING and value is not None) is operand,
    "$contains": _contains,
    "$matches": lambda value, operand: isinstance(value, str) and compile_regex(operand).search(value),
    "$not": lambda value, operand: not matches(value, operand),
}
