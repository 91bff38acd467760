"""Copies of JSON data, so that a handler owns the containers it is given and may change them."""

from __future__ import annotations

from typing import Any, Final

from narratoria.tools.schema.problems import Schema

_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_SCALAR_TYPES: Final = frozenset(("string", "integer", "number", "boolean", "null"))


def copied(value: Any) -> Any:
    """Return JSON data with objects and arrays of its own. What it holds twice, the copy holds twice, so that a small
    knot does not become large. The depth of the value was checked.
    """
    return value if type(value) in _SCALARS else _copied(value, {})


def _copied(value: Any, known: dict[int, Any]) -> Any:
    made = known.get(id(value))
    if made is not None:
        return made
    if isinstance(value, dict):
        made = {key: one if type(one) in _SCALARS else _copied(one, known) for key, one in value.items()}
    elif isinstance(value, list):
        made = [one if type(one) in _SCALARS else _copied(one, known) for one in value]
    elif type(value) is tuple:
        made = tuple(one if type(one) in _SCALARS else _copied(one, known) for one in value)
    else:
        return value
    known[id(value)] = made
    return made


def makes_all_anew(schema: Schema) -> bool:
    """Tell if the schema of a type names every part of a value, so that converting to the type copies all containers.
    What may be anything is handed on as it is.
    """
    return _is_named(schema) and all(map(_is_named, schema.get("$defs", {}).values()))


def _is_named(part: Any) -> bool:
    if not isinstance(part, dict):
        return part is False
    if "$ref" in part or "enum" in part or "const" in part:
        return True
    if "anyOf" in part:
        return all(map(_is_named, part["anyOf"]))
    kind = part.get("type")
    if kind == "object":
        named = all(map(_is_named, part.get("properties", {}).values()))
        return named and _is_named(part.get("additionalProperties"))
    if kind == "array":
        return all(map(_is_named, part.get("prefixItems", ()))) and _is_named(part.get("items"))
    return _SCALAR_TYPES.issuperset(kind if isinstance(kind, list) else [kind])


def has_scalars_alone(schema: Schema) -> bool:
    """Tell if an object that fits the schema holds neither objects nor arrays, so that a shallow copy is enough."""
    members = schema.get("properties", {}).values()
    return schema.get("additionalProperties") is False and all(
        isinstance(one, dict) and isinstance(kind := one.get("type"), str) and kind in _SCALAR_TYPES
        for one in members
    )
