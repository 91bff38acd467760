"""Defaults of a JSON Schema: filled in where they always apply."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema.excerpts import show_path
from narratoria.tools.schema.problems import of_tool
from narratoria.tools.schema.references import MAPS, Place, References, Scope, children

MAX_FILLED: Final = 200_000
"""Cap on the values that defaults add to the arguments of one call: about half a second."""
MAX_NESTED: Final = 5_000
"""Cap on the values that the defaults of one schema bring into each other."""
MAX_LEVELS: Final = 100
"""Cap on defaults inside of defaults."""


_Known: TypeAlias = dict[tuple[int, Scope] | None, list[Place]]  # the parts that always apply at one place


class _TooMany(Exception):
    """Defaults add more values than they may, or nest too deeply."""


class _Filling:
    """One filling: counts the values that defaults add, and stops at a limit."""

    def __init__(self, references: References, known: _Known, limit: int) -> None:
        self._references = references
        self._known = known
        self._left = limit

    def inside(self, value: Any, places: Sequence[Place], through: tuple[int, ...] = ()) -> Any:
        """Fill in the defaults of all the places that describe a value, as one: a part that two of them refer to is
        visited once. `through` holds the schemas whose default we are inside of: one that contains itself is taken
        once.
        """
        if not isinstance(value, dict | list) or not places:
            return value
        key = (id(places[0].node), places[0].scope) if len(places) == 1 else None
        parts = self._known.get(key)
        if parts is None:
            parts = self._unconditional(places)
            if key is not None:
                self._known[key] = parts
        if isinstance(value, dict):
            return self._fill_object(value, parts, through)
        tuples = max((len(part.node.get("prefixItems", ())) for part in parts), default=0)
        rest = self._of_item(parts, tuples)
        return [
            self.inside(item, self._of_item(parts, index) if index < tuples else rest, through)
            for index, item in enumerate(value)
        ]

    def _fill_object(
        self, value: dict[str, Any], parts: list[Place], through: tuple[int, ...]
    ) -> dict[str, Any]:
        filled, entered = dict(value), dict[str, int]()
        for part in parts:
            for key, child in part.node.get("properties", {}).items():
                if key in filled or not isinstance(child, dict) or "default" not in child:
                    continue
                if id(child) not in through:
                    filled[key] = self._copied(child["default"], through)
                    entered[key] = id(child)
        for key, inner in filled.items():
            if isinstance(inner, dict | list):
                way = (*through, entered[key]) if key in entered else through
                filled[key] = self.inside(inner, self._of_member(parts, key), way)
        return filled

    def _copied(self, default: Any, through: tuple[int, ...]) -> Any:
        is_scalar = not isinstance(default, dict | list)
        self._left -= 1 if is_scalar else _count(default)
        if self._left < 0 or len(through) > MAX_LEVELS:
            raise _TooMany
        return default if is_scalar else copy.deepcopy(default)

    def _of_member(self, parts: list[Place], key: str) -> list[Place]:
        found = []
        for part in parts:
            declared = part.node.get("properties", {})
            child = declared.get(key)
            if key not in declared and "patternProperties" not in part.node:
                child = part.node.get("additionalProperties")
            if isinstance(child, dict):
                found.append(self._references.enter(part, child))
        return found

    def _of_item(self, parts: list[Place], index: int) -> list[Place]:
        found = []
        for part in parts:
            first = part.node.get("prefixItems", ())
            child = first[index] if index < len(first) else part.node.get("items")
            if isinstance(child, dict):
                found.append(self._references.enter(part, child))
        return found

    def _unconditional(self, places: Sequence[Place]) -> list[Place]:
        """Return the parts that always apply: the places themselves, their references, and their allOf."""
        found: dict[int, Place] = {}
        waiting = list(places)
        for part in waiting:  # grows while it is walked
            if not isinstance(part.node, dict) or id(part.node) in found:
                continue
            found[id(part.node)] = part
            waiting += self._references.referred(part)
            waiting += [self._references.enter(part, one) for one in part.node.get("allOf", ())]
        return list(found.values())


class Defaults:
    """The defaults of one schema, each of which fits it."""

    def __init__(
        self, references: References, problems: Callable[[Place, Any], list[str]], name: str = ""
    ) -> None:
        self._references = references
        self._known: _Known = {}
        self.exist = _mention(references.root)
        if self.exist:
            self._check(problems, name)

    def fill(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the arguments with the defaults of missing keys, at every depth that is surely described."""
        filling = _Filling(self._references, self._known, MAX_FILLED)
        try:
            filled: dict[str, Any] = filling.inside(arguments, (self._references.top,))
        except (_TooMany, RecursionError):
            raise ArgumentsInvalid(
                [f"arguments: defaults would add more than {MAX_FILLED:,} values; give fewer objects at once"]
            ) from None
        return filled

    def _check(self, problems: Callable[[Place, Any], list[str]], name: str) -> None:
        """Refuse a default that its own schema refuses: the caller would be blamed for it."""
        filling = _Filling(self._references, self._known, MAX_NESTED)
        waiting: list[tuple[Place, tuple[str, ...]]] = [(self._references.top, ())]
        for place, path in waiting:  # grows while it is walked
            for keyword, key, node in children(place.node):
                if not isinstance(node, dict):
                    continue
                child = self._references.enter(place, node)
                below = (*path, str(key)) if keyword in MAPS else path
                waiting.append((child, below))
                if keyword != "properties" or "default" not in node:
                    continue
                try:
                    default = filling.inside(copy.deepcopy(node["default"]), (child,), (id(node),))
                except (_TooMany, RecursionError):
                    raise ToolValidationError(
                        f"{of_tool(name)}the default of {show_path(below)} brings in other defaults, more than "
                        f"{MAX_NESTED:,} values in all or more than {MAX_LEVELS} deep; leave out the default "
                        f"where a part refers to another"
                    ) from None
                try:
                    wrong = problems(child, default)
                except ArgumentsInvalid as error:
                    wrong = list(error.problems)
                if wrong:
                    raise ToolValidationError(
                        f"{of_tool(name)}the default of {show_path(below)} does not fit: {'; '.join(wrong)}"
                    )


def _count(value: Any) -> int:
    """Return the number of values in a value, itself included."""
    waiting = [value]
    for one in waiting:  # grows while it is walked
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return len(waiting)


def _mention(root: Any) -> bool:
    waiting = [root]
    for node in waiting:  # grows while it is walked
        if isinstance(node, dict):
            if "default" in node:
                return True
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return False
