"""References of a schema that lead to each other and to nothing else: no value can be judged by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from narratoria.tools.schema.problems import Schema


def endless_references(schema: Schema) -> list[str] | None:
    """Return the references of the first chain that comes back to itself, the first one again at its end, or None."""
    for reference in dict.fromkeys(_references(schema)):
        trail = [reference]
        node = _target(schema, reference)
        while isinstance(node, dict) and isinstance(following := node.get("$ref"), str):
            if following in trail:
                return [*trail[trail.index(following) :], following]
            trail.append(following)
            node = _target(schema, following)
    return None


def _references(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(reference := node.get("$ref"), str):
                yield reference
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _target(schema: Schema, reference: str) -> Any:
    """Return the part that a pointer within the schema leads to; None for any other reference."""
    if not reference.startswith("#/"):
        return None
    node: Any = schema
    for step in unquote(reference[2:]).split("/"):
        if not isinstance(node, dict):
            return None
        node = node.get(step.replace("~1", "/").replace("~0", "~"))
    return node
