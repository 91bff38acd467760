"""Bounds on the texts and lists of a JSON Schema that has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from narratoria.events import JsonObject

_VALUES: Final = ("enum", "const", "default", "required")  # keywords that hold values, not schemas
_BOUNDED: Final = frozenset({"enum", "const", "pattern", "format"})  # texts that need no `maxLength`


def with_bounds(schema: Mapping[str, Any], *, longest_text: int, most_items: int) -> JsonObject:
    """The schema with a `maxLength` for every free text and a `maxItems` for every list, at any depth."""

    def inside(part: Any, *, is_schema: bool = True) -> Any:
        if isinstance(part, list):
            return [inside(one) for one in part]
        if not isinstance(part, Mapping):
            return part
        kept = _VALUES if is_schema else ()
        copy = {
            key: value if key in kept else inside(value, is_schema=not is_schema or key != "properties")
            for key, value in part.items()
        }
        if is_schema and copy.get("type") == "string" and _BOUNDED.isdisjoint(copy):
            copy.setdefault("maxLength", longest_text)
        if is_schema and copy.get("type") == "array":
            copy.setdefault("maxItems", most_items)
        return copy

    bounded: JsonObject = inside(schema)
    return bounded
