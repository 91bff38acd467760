"""What is wrong with arguments, in words that name the path first: `inner.count: expected int, got "x"`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import jsonschema_rs
import msgspec

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.schema.dumping import dump
from narratoria.state import lookup

Schema: TypeAlias = dict[str, Any]
Validator: TypeAlias = jsonschema_rs.Draft202012Validator
Path: TypeAlias = Sequence[str | int]

MAX_PROBLEMS: Final = 20  # as many as a person reads; arguments may have a hundred thousand keys
MAX_SHOWN: Final = 60
# Native code below us recurses: a bottomless value would end the process, not the call.
MAX_DEPTH: Final = 100

_CONTAINERS: Final = (dict, list, tuple)
_NAMES: Final = {"integer": "int"}
_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "{} or more",
    "maximum": "{} or less",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
}


def compile_schema(schema: Schema, name: str) -> Validator:
    """A validator that never looks outside the schema, not for a `$ref` either."""
    try:
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, retriever=_refuse)
    except ValueError as error:
        raise ToolValidationError(
            f"{of_tool(name)}parameters are not a JSON Schema: {_fault(error)}"
        ) from None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is outside the schema; copy what it refers to into $defs")


def _fault(error: ValueError) -> str:
    message = getattr(error, "message", str(error))
    return f"{show_path(getattr(error, 'instance_path', ())) or 'at the top'}: {message}"


def of_tool(name: str) -> str:
    return f"tool {name!r}: " if name else ""


def as_object(arguments: Any) -> dict[str, Any]:
    """A copy of the arguments, if they are an object of bearable depth."""
    if type(arguments) is not dict and not isinstance(arguments, Mapping):
        raise ArgumentsInvalid([f"arguments: expected an object, got {show(arguments)}"])
    copied = dict(arguments)
    level: Any = [child for child in copied.values() if isinstance(child, _CONTAINERS)]
    depth = 1
    while level:
        if depth == MAX_DEPTH:
            raise ArgumentsInvalid([f"arguments: nested more than {MAX_DEPTH} deep"])
        level = {
            id(child): child  # a part that is shared counts once, else a small knot could take for ever
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, _CONTAINERS)
        }.values()
        depth += 1
    return copied


def fits(validator: Validator, arguments: dict[str, Any]) -> bool:
    try:
        return validator.is_valid(arguments)
    except ValueError:  # a date or a UUID from a Python caller: judge what it is as JSON
        return validator.is_valid(_as_json(arguments))


def find_problems(
    validator: Validator, schema: Schema, arguments: dict[str, Any], error: Exception | None = None
) -> list[str]:
    """Every way in which the arguments do not fit, up to a readable number.

    `error` is msgspec's, for what a schema cannot say: 1.0 for an int, the refusal of a `__post_init__`.
    """
    try:
        errors = validator.iter_errors(arguments)
    except ValueError:
        if isinstance(error, msgspec.ValidationError):
            return [_from_msgspec(error, arguments)]
        errors = validator.iter_errors(_as_json(arguments))
    lines = (line for one in errors for line in _explain(one, schema))
    found = list(dict.fromkeys(itertools.islice(lines, MAX_PROBLEMS + 1)))
    if len(found) > MAX_PROBLEMS:
        found[MAX_PROBLEMS:] = ["and more"]
    return found if found or error is None else [_from_msgspec(error, arguments)]


def _as_json(arguments: dict[str, Any]) -> Any:
    """The arguments of a Python caller as JSON, or why they cannot be."""
    try:
        plain = dump(arguments)
    except ToolValidationError as error:
        raise ArgumentsInvalid([f"arguments: not JSON: {error}"]) from None
    return plain


def _from_msgspec(error: Exception, arguments: dict[str, Any]) -> str:
    """msgspec's one error, "Expected `int`, got `float` - at `$.a[0]`", in our words."""
    if " - at `key` in " in str(error):
        return "arguments: every key must be text"
    text, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").removeprefix(".")
    expected, of_wrong_type, _ = text.partition(", got `")
    if of_wrong_type and "..." not in place:
        path = [int(index) if index else key for index, key in re.findall(r"\[(\d+)\]|([^.\[\]]+)", place)]
        text = f"{expected}, got {show(lookup(arguments, path))}"
    return f"{place or 'arguments'}: {(text[:1].lower() + text[1:]).replace('`', '')}"


# --- wording -------------------------------------------------------------------------------------------


def _explain(error: jsonschema_rs.ValidationError, schema: Schema) -> Iterator[str]:
    kind, path = error.kind, error.instance_path
    keyword = kind.name
    if keyword in ("additionalProperties", "unevaluatedProperties"):
        yield from _unknown_keys(kind.unexpected, path, _known_keys(schema, error.schema_path))  # type: ignore[attr-defined]
    elif keyword == "required":
        yield f"{show_path([*path, kind.property])}: missing; it is required"  # type: ignore[attr-defined]
    elif keyword in ("anyOf", "oneOf") and (branches := getattr(kind, "context", None)):
        yield from _explain_branches(error, branches, schema)
    else:
        yield f"{show_path(path) or 'arguments'}: {_wording(error)}"


def _wording(error: jsonschema_rs.ValidationError) -> str:
    kind: Any = error.kind
    keyword = kind.name
    got = f", got {show(error.instance)}"
    if keyword == "type":
        return f"expected {_either(_NAMES.get(name, name) for name in sorted(kind.types))}{got}"
    if keyword == "enum":
        options = [show(option) for option in kind.options[:MAX_PROBLEMS]]
        return f"expected one of {', '.join(options)}{', …' if len(kind.options) > MAX_PROBLEMS else ''}{got}"
    if keyword == "const":
        return f"expected {show(kind.expected_value)}{got}"
    if keyword in _LIMITS:
        return f"expected {_LIMITS[keyword].format(kind.limit)}{got}"
    if keyword == "multipleOf":
        return f"expected a multiple of {kind.multiple_of}{got}"
    if keyword == "pattern":
        return f"expected text matching {kind.pattern}{got}"
    if keyword == "format":
        return f"expected a {kind.format}{got}"
    if keyword == "uniqueItems":
        return "expected no item twice"
    return shorten(error.message, 200)


def _explain_branches(
    error: jsonschema_rs.ValidationError,
    branches: list[list[jsonschema_rs.ValidationError]],
    schema: Schema,
) -> Iterator[str]:
    """Of several alternatives, speak of the one whose shape the value has; else of the shapes it may have."""
    path, got = error.instance_path, show(error.instance)
    near = [
        branch for branch in branches if branch and not any(_is_of_other_kind(one, path) for one in branch)
    ]
    if len(near) == 1:
        for one in near[0]:
            yield from _explain(one, schema)
        return
    here = show_path(path) or "arguments"
    told = [[line for one in branch for line in _explain(one, schema)] for branch in near]
    wrong = [one for branch in branches for one in branch if _is_of_other_kind(one, path)]
    shared = [line for line in told[0] if all(line in lines for lines in told)] if told else []
    tags = [one for one in wrong if one.kind.name != "type"]
    if shared:
        yield from shared
    elif near:
        reasons = " / ".join(", ".join(lines[:3]) for lines in told[:3])
        yield f"{here}: fits none of {len(branches)} alternatives: {reasons}"
    elif tags:
        known = ", ".join(dict.fromkeys(show(option) for one in tags for option in _tag_options(one)))
        tag = tags[0]
        yield f"{show_path(tag.instance_path)}: expected one of {known}, got {show(tag.instance)}"
    else:
        names = {name for one in wrong for name in getattr(one.kind, "types", ())}
        expected = _either(sorted(_NAMES.get(name, name) for name in names))
        yield f"{here}: expected {expected}, got {got}" if names else f"{here}: {_wording(error)}"


def _is_of_other_kind(error: jsonschema_rs.ValidationError, path: Path) -> bool:
    """The value is of another type than the alternative, or carries another tag."""
    if error.kind.name == "type":
        return error.instance_path == path
    return len(_tag_options(error)) == 1 and len(error.instance_path) == len(path) + 1


def _tag_options(error: jsonschema_rs.ValidationError) -> list[Any]:
    if error.kind.name == "const":
        return [error.kind.expected_value]  # type: ignore[attr-defined]
    return list(getattr(error.kind, "options", ()))


def _unknown_keys(unexpected: list[str], path: Path, known: list[str]) -> Iterator[str]:
    if len(known) > MAX_PROBLEMS:
        known = [*known[:MAX_PROBLEMS], "…"]
    listed = f"known: {', '.join(known)}" if known else "none is expected here"
    for key in unexpected[: MAX_PROBLEMS // 2]:
        yield f"{show_path([*path, shorten(key, MAX_SHOWN)])}: unknown key; {listed}"
    if len(unexpected) > MAX_PROBLEMS // 2:
        rest = len(unexpected) - MAX_PROBLEMS // 2
        yield f"{show_path(path) or 'arguments'}: and {rest} more unknown keys"


def _known_keys(schema: Schema, keyword_path: Path) -> list[str]:
    """The keys declared where the keyword that refused one stands, in allOf, anyOf, … beside it too."""
    place: Any = schema
    for part in keyword_path[:-1]:
        try:
            place = place[part]
        except (LookupError, TypeError):
            return []
    return list(dict.fromkeys(key for part in in_place(place, schema) for key in part.get("properties", ())))


def in_place(place: Any, root: Schema) -> list[Schema]:
    """The schema at a place and those that judge the same value with it: `$ref`, `allOf`, `anyOf`, …"""
    parts: dict[int, Schema] = {}
    waiting = [place]
    for part in waiting:  # grows while it is walked
        if not isinstance(part, dict) or id(part) in parts:
            continue
        parts[id(part)] = part
        waiting += [one for keyword in ("allOf", "anyOf", "oneOf") for one in part.get(keyword, ())]
        waiting += [part[keyword] for keyword in ("then", "else") if keyword in part]
        waiting += list(part.get("dependentSchemas", {}).values())
        waiting.append(_referred(part.get("$ref"), root))
    return list(parts.values())


def _referred(reference: Any, root: Schema) -> Any:
    """What a `$ref` inside the same schema points at; None for any other."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if not reference.startswith("#/"):
        return _anchored(reference[1:], root)
    place: Any = root
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and part.isdecimal() and int(part) < len(place):
            place = place[int(part)]
        elif isinstance(place, dict) and part in place:
            place = place[part]
        else:
            return None
    return place


def _anchored(anchor: str, part: Any) -> Any:
    if isinstance(part, dict) and part.get("$anchor") == anchor:
        return part
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return next((found for one in inside if (found := _anchored(anchor, one)) is not None), None)


def _either(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names)) or "something else"


def show_path(path: Path) -> str:
    """['inner', 'counts', 0] as `inner.counts[0]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def show(value: Any) -> str:
    """The value as JSON when it is short, else what it is; never the whole of something large."""
    if isinstance(value, str):
        return msgspec.json.encode(shorten(value, MAX_SHOWN)).decode()
    if isinstance(value, Mapping | list | tuple) and len(value) > 3:
        return (
            f"an object of {len(value)} keys"
            if isinstance(value, Mapping)
            else f"an array of {len(value)} items"
        )
    if isinstance(value, Mapping | list | tuple | int | float | bool | None):
        try:
            return shorten(msgspec.json.encode(value, enc_hook=repr).decode(), MAX_SHOWN)
        except (RecursionError, TypeError, ValueError, OverflowError):
            return "an object" if isinstance(value, Mapping) else shorten(type(value).__name__, MAX_SHOWN)
    return type(value).__name__


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
