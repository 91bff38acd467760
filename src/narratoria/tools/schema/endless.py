"""References of a schema that come back to themselves for the same value: judging one by them would never end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from narratoria.tools.schema.problems import Schema

# The keywords whose schemas judge the value itself, and not a part of it (JSON Schema 2020-12, 10.2).
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("not", "if", "then", "else")
_MAPS: Final = ("dependentSchemas", "dependencies")


def endless_references(schema: Schema) -> list[str] | None:
    """Return the references of the first circle that comes back to the same value, the first one again at its end, or
    None.
    """
    finished: set[int] = set()
    for start in _parts(schema):
        if id(start) in finished:
            continue
        trail: dict[int, str] = {id(start): ""}  # the parts under way, each with the reference that led to it
        stack = [_next(schema, start)]
        while stack:
            reference, part = next(stack[-1], ("", None))
            if part is None:
                stack.pop()
                finished.add(trail.popitem()[0])
            elif id(part) in trail:
                circle = [*trail.values()][[*trail].index(id(part)) + 1 :]
                named = [one for one in (*circle, reference) if one]
                return [named[-1], *named]
            elif id(part) not in finished:
                trail[id(part)] = reference
                stack.append(_next(schema, part))
    return None


def _parts(schema: Any) -> Iterator[Schema]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _next(schema: Schema, node: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the parts that judge the same value as `node`, each with the reference that leads to it, if one does."""
    if isinstance(reference := node.get("$ref"), str) and isinstance(
        target := _target(schema, reference), dict
    ):
        yield reference, target
    for keyword in _LISTS:
        parts = node.get(keyword)
        yield from (("", one) for one in (parts if isinstance(parts, list) else ()) if isinstance(one, dict))
    for keyword in _SINGLES:
        if isinstance(part := node.get(keyword), dict):
            yield "", part
    for keyword in _MAPS:
        named = node.get(keyword)
        yield from (
            ("", one) for one in (named.values() if isinstance(named, dict) else ()) if isinstance(one, dict)
        )


def _target(schema: Schema, reference: str) -> Any:
    """Return the part that a pointer within the schema leads to; None for any other reference."""
    if reference == "#":
        return schema
    if not reference.startswith("#/"):
        return None
    node: Any = schema
    for step in unquote(reference[2:]).split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, dict):
            node = node.get(step)
        else:
            return None
    return node
