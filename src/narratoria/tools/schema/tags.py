"""Tags: the values of a key that tell the alternatives of an `anyOf` or a `oneOf` apart, as their errors show them."""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from narratoria.tools.schema.excerpts import Path, show_path


def tag_paths(branches: list[list[jsonschema_rs.ValidationError]], path: Path) -> set[str]:
    """Return where the alternatives are told apart: by one value, or by the options of several."""
    found: dict[str, int] = {}
    for branch in branches:
        for one in branch:
            if options := len(tag_options(one, path)):
                here = show_path(one.instance_path)
                found[here] = found.get(here, 0) + (2 if options == 1 else 1)
    return {here for here, times in found.items() if times > 1}


def is_of_other_kind(error: jsonschema_rs.ValidationError, path: Path, tags: set[str]) -> bool:
    """Tell if the value is of another type than the alternative, or has another tag."""
    if error.kind.name == "type":
        return error.instance_path == path
    return bool(tag_options(error, path)) and show_path(error.instance_path) in tags


def tag_options(error: jsonschema_rs.ValidationError, path: Path) -> list[Any]:
    """Return the values that a key of the value may have, if it has another one."""
    if len(error.instance_path) != len(path) + 1:
        return []
    if error.kind.name == "const":
        return [error.kind.expected_value]  # type: ignore[attr-defined]
    return list(getattr(error.kind, "options", ()))


def by_path(errors: list[jsonschema_rs.ValidationError]) -> list[list[jsonschema_rs.ValidationError]]:
    grouped: dict[str, list[jsonschema_rs.ValidationError]] = {}
    for one in errors:
        grouped.setdefault(show_path(one.instance_path), []).append(one)
    return list(grouped.values())
