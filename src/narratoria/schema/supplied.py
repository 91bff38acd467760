"""Parameters declared by a JSON Schema (004 `Schema`): processes with a manifest, tools of other servers."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.schema.problems import (
    Schema,
    as_object,
    compile_schema,
    find_problems,
    fits,
    in_place,
    of_tool,
    show,
    show_path,
)

_DIALECT: Final = "json-schema.org/"
_PROBE: Final = "x-default"
_HOMES: Final = ("$defs", "definitions")


def parser_for_schema(
    schema: Mapping[str, Any], *, name: str = ""
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function that checks arguments against the schema and returns them with its defaults filled in."""
    strict = closed(schema, name=name)
    validator = compile_schema(strict, name)
    has_defaults = _mentions_default(strict)
    if has_defaults:
        _check_defaults(strict, strict, (), name)

    def parse(arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = as_object(arguments)
        if has_defaults:
            given = _fill(given, strict, strict, ())
        if not fits(validator, given):
            raise ArgumentsInvalid(find_problems(validator, strict, given))
        return given

    return parse


# --- unknown keys --------------------------------------------------------------------------------------


def closed(schema: Mapping[str, Any], *, name: str = "") -> Schema:
    """A copy of the schema that refuses undeclared keys wherever it declares any and does not say otherwise.

    An object that declares no keys at all (`{"type": "object"}`) is free-form and stays so.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        got = show(schema.get("type")) if isinstance(schema, Mapping) else show(schema)
        raise ToolValidationError(
            f'{of_tool(name)}parameters need "type": "object" at the top (004), got {got}'
        )
    strict: Schema = copy.deepcopy(dict(schema))
    if _DIALECT in str(strict.get("$schema", "")):
        del strict["$schema"]  # older drafts are read as 2020-12, the one dialect this runtime speaks
    compile_schema(strict, name)  # refuse a bad schema before walking it
    _close(strict, strict, set())
    return strict


def _close(place: Any, root: Schema, done: set[int]) -> None:
    if not isinstance(place, dict) or id(place) in done:
        return
    done.add(id(place))
    parts = in_place(place, root)
    declared = Counter(key for part in parts for key in part.get("properties", ()))
    if any("properties" in part or "patternProperties" in part for part in parts):
        if len(parts) == 1:
            if "unevaluatedProperties" not in place:
                place.setdefault("additionalProperties", False)
        else:
            # Only this keyword sees what $ref, allOf, anyOf … declare together. Alternatives that declare
            # nothing stay free-form, so they must say so.
            for part in parts:
                _open_alternatives(part)
            place.setdefault("unevaluatedProperties", False)
    for part in parts:
        for key, child in part.get("properties", {}).items():
            if declared[key] == 1:  # declared in pieces: closing one piece would refuse the other's keys
                _close(child, root, done)
        for child in _other_children(part):
            _close(child, root, done)


def _open_alternatives(part: Schema) -> None:
    for branch in (*part.get("anyOf", ()), *part.get("oneOf", ())):
        if isinstance(branch, dict) and branch.get("type") == "object" and "properties" not in branch:
            branch.setdefault("additionalProperties", True)


def _other_children(part: Schema) -> Iterator[Any]:
    yield from part.get("patternProperties", {}).values()
    yield from part.get("prefixItems", ())
    for keyword in ("additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems"):
        yield part.get(keyword)


# --- defaults ------------------------------------------------------------------------------------------


def _fill(value: Any, place: Any, root: Schema, through: tuple[int, ...]) -> Any:
    """A copy of the value with the defaults of missing keys, at every depth that is declared unconditionally.

    `through` holds the schemas whose default we are inside of: a default that contains itself is taken once.
    """
    for part in _unconditional(place, root):
        if isinstance(value, dict):
            value = _fill_object(value, part, root, through)
        elif isinstance(value, list):
            first = part.get("prefixItems", ())
            rest = part.get("items")
            value = [
                _fill(item, first[index] if index < len(first) else rest, root, through)
                for index, item in enumerate(value)
            ]
    return value


def _fill_object(
    value: dict[str, Any], part: Schema, root: Schema, through: tuple[int, ...]
) -> dict[str, Any]:
    filled = dict(value)
    declared = part.get("properties", {})
    for key, child in declared.items():
        if key in filled:
            if isinstance(filled[key], dict | list):
                filled[key] = _fill(filled[key], child, root, through)
        elif isinstance(child, dict) and "default" in child and id(child) not in through:
            default = copy.deepcopy(child["default"])
            filled[key] = _fill(default, child, root, (*through, id(child)))
    others = part.get("additionalProperties")
    if isinstance(others, dict):
        filled.update(
            (key, _fill(filled[key], others, root, through)) for key in value if key not in declared
        )
    return filled


def _unconditional(place: Any, root: Schema) -> list[Schema]:
    """The parts that always apply: the place itself, what it refers to, and its allOf."""
    if not isinstance(place, dict):
        return []
    always = {key: place[key] for key in ("$ref", "allOf") if key in place}
    if not always:
        return [place]
    optional = [one for part in in_place(place, root) for one in _alternatives(part)]
    return [part for part in in_place(place, root) if not any(part is one for one in optional)]


def _alternatives(part: Schema) -> list[Any]:
    chosen = [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("dependentSchemas", {}).values()]
    return [*chosen, part.get("then"), part.get("else")]


def _mentions_default(part: Any) -> bool:
    if isinstance(part, dict):
        return "default" in part or any(map(_mentions_default, part.values()))
    return isinstance(part, list) and any(map(_mentions_default, part))


def _check_defaults(place: Any, root: Schema, path: tuple[str, ...], name: str) -> None:
    """A default that its own schema refuses would be blamed on the caller."""
    if isinstance(place, list):
        for part in place:
            _check_defaults(part, root, path, name)
    if not isinstance(place, dict):
        return
    for keyword, part in place.items():
        if keyword == "properties":
            for key, child in part.items():
                if isinstance(child, dict) and "default" in child:
                    _check_default(child, root, (*path, key), name)
                _check_defaults(child, root, (*path, key), name)
        elif keyword in ("$defs", "definitions", "patternProperties", "dependentSchemas"):
            for key, child in part.items():
                _check_defaults(child, root, (*path, key), name)
        elif keyword not in ("default", "const", "enum", "examples"):
            _check_defaults(part, root, path, name)


def _check_default(child: Schema, root: Schema, path: tuple[str, ...], name: str) -> None:
    # The child under a key of the whole schema, so that whatever it refers to is where it was.
    probe = {"$ref": f"#/{_PROBE}", _PROBE: child, **{key: root[key] for key in root if key in _HOMES}}
    default = _fill(copy.deepcopy(child["default"]), child, root, (id(child),))
    problems = find_problems(compile_schema(probe, name), probe, default)
    if problems:
        raise ToolValidationError(
            f"{of_tool(name)}the default of {show_path(path)} does not fit: {'; '.join(problems)}"
        )
