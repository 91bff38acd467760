"""Defaults of a JSON Schema: filled in where they always apply."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema.excerpts import show_path
from narratoria.tools.schema.problems import of_tool
from narratoria.tools.schema.references import MAPS, Place, References, children


class Defaults:
    """The defaults of one schema, each of which fits it."""

    def __init__(
        self, references: References, problems: Callable[[Place, Any], list[str]], name: str = ""
    ) -> None:
        self._references = references
        self.exist = _mention(references.root)
        if self.exist:
            self._check(problems, name)

    def fill(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the arguments with the defaults of missing keys, at every depth that is surely described."""
        filled: dict[str, Any] = self._fill(arguments, self._references.top, ())
        return filled

    def _fill(self, value: Any, place: Place, through: tuple[int, ...]) -> Any:
        """Fill in defaults; `through` holds the schemas whose default we are inside of: one that contains itself is
        taken once.
        """
        for part in self._unconditional(place):
            if isinstance(value, dict):
                value = self._fill_object(value, part, through)
            elif isinstance(value, list):
                first, rest = part.node.get("prefixItems", ()), part.node.get("items")
                value = [
                    self._fill_inside(item, part, first[index] if index < len(first) else rest, through)
                    for index, item in enumerate(value)
                ]
        return value

    def _fill_inside(self, value: Any, part: Place, child: Any, through: tuple[int, ...]) -> Any:
        if not isinstance(value, dict | list) or not isinstance(child, dict):
            return value
        return self._fill(value, self._references.enter(part, child), through)

    def _fill_object(self, value: dict[str, Any], part: Place, through: tuple[int, ...]) -> dict[str, Any]:
        filled = dict(value)
        declared = part.node.get("properties", {})
        for key, child in declared.items():
            if key in filled:
                filled[key] = self._fill_inside(filled[key], part, child, through)
            elif isinstance(child, dict) and "default" in child and id(child) not in through:
                default = copy.deepcopy(child["default"])
                filled[key] = self._fill_inside(default, part, child, (*through, id(child)))
        others = part.node.get("additionalProperties")
        if isinstance(others, dict) and "patternProperties" not in part.node:
            for key in value.keys() - declared.keys():
                filled[key] = self._fill_inside(filled[key], part, others, through)
        return filled

    def _unconditional(self, place: Place) -> list[Place]:
        """Return the parts that always apply: the place itself, its references, and its allOf."""
        found: dict[int, Place] = {}
        waiting = [place]
        for part in waiting:  # grows while it is walked
            if not isinstance(part.node, dict) or id(part.node) in found:
                continue
            found[id(part.node)] = part
            waiting += self._references.referred(part)
            waiting += [self._references.enter(part, one) for one in part.node.get("allOf", ())]
        return list(found.values())

    def _check(self, problems: Callable[[Place, Any], list[str]], name: str) -> None:
        """Refuse a default that its own schema refuses: the caller would be blamed for it."""
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
                default = self._fill_inside(copy.deepcopy(node["default"]), place, node, (id(node),))
                try:
                    wrong = problems(child, default)
                except ArgumentsInvalid as error:
                    wrong = list(error.problems)
                if wrong:
                    raise ToolValidationError(
                        f"{of_tool(name)}the default of {show_path(below)} does not fit: {'; '.join(wrong)}"
                    )


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
