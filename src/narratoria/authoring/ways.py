"""Ways through a story: which cases to go through, one after the other, until a condition holds.

The search goes forward from a state, by the changes that cases were seen to make. An estimate leads it: how many cases
are needed at least, if nothing that was reached were ever lost again.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from narratoria.events import JsonObject
from narratoria.narrator.rules.rule_file import Rule
from narratoria.state import MISSING, diff, lookup, merge
from narratoria.tools.contract.conditions import SAID, Comparison, Condition

_GOALS: Final = 3  # tried, the nearest first
_STATES: Final = 200  # looked at in one search
_ROUNDS: Final = 20  # of the estimate
_Step = TypeVar("_Step")


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a state by a case, as it was seen: numbers as a difference, all else as it was left."""

    patch: JsonObject
    added: JsonObject

    @classmethod
    def between(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
        patch: JsonObject = diff(before, after)
        return cls(patch, _take_numbers(patch, before))

    def applied(self, state: JsonObject) -> JsonObject:
        changed: JsonObject = merge(state, self.patch)
        return _with_added(changed, self.added) if self.added else changed


@dataclass(frozen=True, slots=True)
class _Need:
    """A condition as numbers of comparisons: all of `tests`, and of each group one."""

    tests: tuple[int, ...]
    groups: tuple[tuple[_Need, ...], ...]

    def cost(self, costs: list[float]) -> float:
        total = sum(costs[test] for test in self.tests)
        for group in self.groups:
            total += min((one.cost(costs) for one in group), default=math.inf)
        return total


@dataclass(frozen=True, slots=True)
class _Move(Generic[_Step]):
    """A case that can be gone through: where it answers, and what it changes."""

    step: _Step
    when: Condition
    need: _Need
    change: Change
    makes: tuple[int, ...]
    """The comparisons that may hold after it."""


def reached_when(rule: Rule, number: int) -> Condition:
    """The condition of a case, and that those before it do not hold, as far as one can tell without the words."""
    when = rule.cases[number].when
    for case in rule.cases[:number]:
        earlier = case.when
        if not (earlier.reads_words or earlier.any_of or earlier.none_of):
            options = (Comparison(test.path, {"$not": test.expected}) for test in earlier.tests)
            when &= Condition(any_of=(tuple(Condition((option,)) for option in options),))
    return when


class Ways(Generic[_Step]):
    """Finds ways between states; the comparisons of all conditions are known to it."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._tests: list[Comparison] = []
        self._known: dict[tuple[Any, bytes], int] = {}
        for condition in conditions:
            self._need(condition)
        self._of_numbers = [test for test in self._tests if _names_number(test.expected)]

    def _need(self, when: Condition) -> _Need:
        asked = [self._number(test) for test in when.tests if test.path[:1] != (SAID,)]
        groups = tuple(tuple(self._need(option) for option in group) for group in when.any_of)
        return _Need(tuple(asked), groups)

    def _number(self, test: Comparison) -> int:
        key = (test.path, msgspec.json.encode(test.expected))
        if key not in self._known:
            self._known[key] = len(self._tests)
            self._tests.append(test)
        return self._known[key]

    def find(
        self,
        state: JsonObject,
        moves: Iterable[tuple[_Step, Condition, Change]],
        goals: Iterable[tuple[_Step, Condition]],
        avoided: Container[_Step],
        failed: Callable[[_Step], object],
    ) -> list[_Step]:
        """Return the steps to the nearest goal, and the goal; empty if no way was found.

        The first is none of those to be avoided; `failed` hears of goals to which there is no way.
        """
        known = [
            _Move(step, when, self._need(when), change, self._makes(change, state))
            for step, when, change in moves
        ]
        costs = self._costs(state, known)
        open_goals = [goal for goal in goals if not goal[1].may_hold(state)]
        near = sorted((self._need(goal[1]).cost(costs), at) for at, goal in enumerate(open_goals))
        for cost, at in near[:_GOALS]:
            goal, when = open_goals[at]
            way = self._search(state, known, when, avoided) if cost < math.inf else None
            if way is not None:
                return [*way, goal]
            failed(goal)
        return []

    def _makes(self, change: Change, state: JsonObject) -> tuple[int, ...]:
        after = change.applied(state)
        touched = [*_paths(change.patch)] if change.patch else []
        return tuple(
            at
            for at, test in enumerate(self._tests)
            if (any(_meet(test.path, path) for path in touched) and test.holds(after))
            or _is_number(lookup(change.added, test.path, MISSING))
        )

    def _costs(self, state: JsonObject, moves: list[_Move[_Step]]) -> list[float]:
        """Estimate, for each comparison, the number of moves until it holds."""
        costs = [0.0 if test.holds(state) else math.inf for test in self._tests]
        for _ in range(_ROUNDS):
            is_settled = True
            for move in moves:
                cost = move.need.cost(costs) + 1
                for test in move.makes:
                    if cost < costs[test]:
                        costs[test], is_settled = cost, False
            if is_settled:
                break
        return costs

    def _search(
        self, state: JsonObject, moves: list[_Move[_Step]], goal: Condition, avoided: Container[_Step]
    ) -> list[_Step] | None:
        need = self._need(goal)
        known = {self.signature(state)}
        queue: list[tuple[float, int, JsonObject, tuple[_Step, ...]]] = [(0.0, 0, state, ())]
        while queue and len(known) < _STATES:
            _, _, here, way = heapq.heappop(queue)
            for move in moves:
                if not move.when.may_hold(here) or (not way and move.step in avoided):
                    continue
                there = move.change.applied(here)
                signature = self.signature(there)
                if signature in known:
                    continue
                known.add(signature)
                path = (*way, move.step)
                if goal.may_hold(there):
                    return [*path]
                left = need.cost(self._costs(there, moves))
                if left < math.inf:
                    heapq.heappush(queue, (left + len(path) / 4, len(known), there, path))
        return None

    def signature(self, state: JsonObject) -> bytes:
        """The state as conditions tell it apart: of a number, only what they ask of it. A counter alone is nothing."""
        return msgspec.json.encode(([*_leaves(state)], [test.holds(state) for test in self._of_numbers]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _names_number(expected: Any) -> bool:
    if isinstance(expected, Mapping):
        return any(map(_is_number, expected.values()))
    return _is_number(expected)


def _take_numbers(patch: JsonObject, before: Any) -> JsonObject:
    """Take the changed numbers out of a patch; return by how much they changed."""
    taken: JsonObject = {}
    for key, value in [*patch.items()]:
        old = before.get(key) if isinstance(before, Mapping) else None
        if isinstance(value, dict):
            below = _take_numbers(value, old)
            if below:
                taken[key] = below
        elif _is_number(value) and _is_number(old):
            taken[key] = value - old
            del patch[key]
    return taken


def _with_added(state: Any, added: JsonObject) -> JsonObject:
    changed = {**state} if isinstance(state, Mapping) else {}
    for key, value in added.items():
        old = changed.get(key)
        if isinstance(value, dict):
            changed[key] = _with_added(old, value)
        else:
            changed[key] = (old if _is_number(old) else 0) + value
    return changed


def _paths(patch: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the leaves of a patch."""
    if isinstance(patch, Mapping) and patch:
        for key, value in patch.items():
            yield from _paths(value, (*above, key))
    else:
        yield above


def _meet(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Tell if one path leads to the other, or on from it."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}.{key}")
    elif not _is_number(value):
        yield path, value
