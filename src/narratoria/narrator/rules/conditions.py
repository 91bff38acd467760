"""Conditions on state, as story authors write them in TOML.

    when = { place = "cellar", lamp.oil = { at_least = 1 }, door = { missing = true } }

A plain value means equality. `false` also holds where nothing is there yet: a lamp nobody has lit is not lit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from narratoria.errors import NarratoriaError
from narratoria.state import MISSING, lookup

SAID: Final = "said"  # where a condition finds the groups of the pattern that fitted


class ConditionError(NarratoriaError):
    """A condition cannot be read; the message names the key."""


def _same(value: Any, operand: Any) -> bool:
    if operand is False and value is MISSING:
        return True
    # JSON's true is not 1, though Python's is.
    return value == operand and isinstance(value, bool) == isinstance(operand, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "exists": lambda value, operand: (value is not MISSING) is operand,
    "missing": lambda value, operand: (value is MISSING) is operand,
    "equals": _same,
    "not": lambda value, operand: not _same(value, operand),
    "at_least": lambda value, operand: _number(value) and value >= operand,
    "at_most": lambda value, operand: _number(value) and value <= operand,
    "in": lambda value, operand: any(_same(value, item) for item in operand),
    "not_in": lambda value, operand: not any(_same(value, item) for item in operand),
    "contains": lambda value, operand: isinstance(value, list | str | Mapping) and operand in value,
}
_OPERANDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "exists": ((bool,), "true or false"),
    "missing": ((bool,), "true or false"),
    "at_least": ((int, float), "a number"),
    "at_most": ((int, float), "a number"),
    "in": ((list,), "a list"),
    "not_in": ((list,), "a list"),
    "contains": ((str,), "a string"),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison: what is at `path`, against `operand`."""

    path: tuple[str, ...]
    operator: str
    operand: Any

    def holds(self, state: Mapping[str, Any]) -> bool:
        return OPERATORS[self.operator](lookup(state, self.path, MISSING), self.operand)


@dataclass(frozen=True, slots=True)
class Condition:
    """Every test holds, one of each `any` group holds, and none of `none`."""

    tests: tuple[Comparison, ...] = ()
    any_of: tuple[Condition, ...] = ()
    none_of: tuple[Condition, ...] = ()

    def holds(self, state: Mapping[str, Any]) -> bool:
        return (
            all(test.holds(state) for test in self.tests)
            and (not self.any_of or any(option.holds(state) for option in self.any_of))
            and not any(option.holds(state) for option in self.none_of)
        )

    def may_hold(self, state: Mapping[str, Any]) -> bool:
        """Whether it holds for some prompt: what is asked of the player's words (`said`) is not known yet."""
        return (
            all(test.path[0] == SAID or test.holds(state) for test in self.tests)
            and (not self.any_of or any(option.may_hold(state) for option in self.any_of))
            and not any(option.holds(state) for option in self.none_of if not option.reads_words)
        )

    @property
    def reads_words(self) -> bool:
        return any(test.path[0] == SAID for test in self.tests) or any(
            option.reads_words for option in (*self.any_of, *self.none_of)
        )


def condition(table: Any) -> Condition:
    """Read a `when` table; raise `ConditionError` naming the key that is wrong."""
    if not isinstance(table, Mapping):
        raise ConditionError(f'expected a table such as {{ place = "cellar" }}, got {table!r}')
    plain = {key: value for key, value in table.items() if key not in ("any", "none")}
    return Condition(
        tests=tuple(_tests(plain, ())),
        any_of=_options(table.get("any", []), "any"),
        none_of=_options(table.get("none", []), "none"),
    )


def _options(items: Any, key: str) -> tuple[Condition, ...]:
    if not isinstance(items, list):
        raise ConditionError(f"{key}: expected a list of tables, got {items!r}")
    return tuple(condition(item) for item in items)


def _tests(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Comparison]:
    for key, value in table.items():
        here = (*path, *key.split("."))
        if not isinstance(value, Mapping):
            yield Comparison(here, "equals", value)
        elif value and all(name in OPERATORS for name in value):
            for name, operand in value.items():
                kinds, expected = _OPERANDS.get(name, ((object,), ""))
                if not isinstance(operand, kinds) or (
                    kinds != (bool,) and operand is True and name in _OPERANDS
                ):
                    raise ConditionError(f"{'.'.join(here)}.{name}: expected {expected}, got {operand!r}")
                yield Comparison(here, name, operand)
        elif any(name in OPERATORS for name in value):
            strange = sorted(name for name in value if name not in OPERATORS)
            known = ", ".join(sorted(OPERATORS))
            raise ConditionError(f"{'.'.join(here)}: {strange[0]!r} is not an operator (known: {known})")
        else:
            yield from _tests(value, here)
