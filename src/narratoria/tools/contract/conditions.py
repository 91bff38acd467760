"""Conditions: what must hold of a whole state, or of a result, path by path.

    when = { place = "cellar", lamp.oil = { at_least = 1 }, door = { missing = true } }

A condition maps paths to expectations, all of which must hold; `any` is a list of conditions one of which must hold,
`none` a list none of which may. A nested table leads to a path below it, unless its keys are operators. Rules, lore and
the `triggerCondition` of an effect are all read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from narratoria.state import MISSING, lookup, split_path
from narratoria.tools.contract.expectations import ConditionError, check_expectation, is_operators, matches

SAID: Final = "said"
"""The first part of a path to the groups of the pattern that fitted a player's words."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison: what is at `path`, against what is expected there."""

    path: tuple[str | int, ...]
    expected: Any

    def holds(self, data: Any) -> bool:
        return matches(lookup(data, self.path, MISSING) if self.path else data, self.expected)


@dataclass(frozen=True, slots=True)
class Condition:
    """All tests hold, at least one condition of each group of `any_of` holds, and none of `none_of`."""

    tests: tuple[Comparison, ...] = ()
    any_of: tuple[tuple[Condition, ...], ...] = ()
    none_of: tuple[Condition, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.tests + other.tests, self.any_of + other.any_of, self.none_of + other.none_of)

    def holds(self, data: Any) -> bool:
        return (
            all(test.holds(data) for test in self.tests)
            and all(any(option.holds(data) for option in group) for group in self.any_of)
            and not any(option.holds(data) for option in self.none_of)
        )

    def may_hold(self, state: Mapping[str, Any]) -> bool:
        """Tell if it holds for some prompt: what is asked of the player's words (`said`) is not known yet."""
        return (
            all(test.path[:1] == (SAID,) or test.holds(state) for test in self.tests)
            and all(any(option.may_hold(state) for option in group) for group in self.any_of)
            and not any(option.holds(state) for option in self.none_of if not option.reads_words)
        )

    @property
    def reads_words(self) -> bool:
        options = (*self.none_of, *(option for group in self.any_of for option in group))
        return any(test.path[:1] == (SAID,) for test in self.tests) or any(one.reads_words for one in options)


def condition(table: Any, where: str = "") -> Condition:
    """Read a condition; raise `ConditionError` naming the key that is wrong."""
    if not isinstance(table, Mapping):
        raise ConditionError(
            f'{where or "a condition"}: expected a table such as {{ place = "cellar" }}, got {table!r}'
        )
    plain = {key: value for key, value in table.items() if key not in ("any", "none")}
    either = _options(table, "any", where)
    return Condition(
        tests=tuple(_tests(plain, (), where)),
        any_of=(either,) if "any" in table and either else (),
        none_of=_options(table, "none", where),
    )


def _options(table: Mapping[str, Any], key: str, where: str) -> tuple[Condition, ...]:
    items = table.get(key, [])
    here = f"{where}.{key}" if where else key
    if not isinstance(items, list | tuple):
        raise ConditionError(f"{here}: expected a list of tables, got {items!r}")
    return tuple(condition(item, f"{here}[{index}]") for index, item in enumerate(items))


def _tests(table: Mapping[str, Any], path: tuple[str | int, ...], where: str) -> Iterator[Comparison]:
    for key, value in table.items():
        below = (*path, *(split_path(key) if key else ()))
        here = ".".join([*([where] if where else []), *map(str, below)])
        check_expectation(value, here)
        if isinstance(value, Mapping) and value and not is_operators(value):
            yield from _tests(value, below, where)
        else:
            yield Comparison(below, value)


def find(data: Any, path: str) -> Any:
    """Return the value at `path`, all of `data` at the empty path, or `MISSING`."""
    return data if path == "" else lookup(data, path, MISSING)
