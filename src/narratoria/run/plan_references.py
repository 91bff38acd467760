"""References in the input of a planned call: `{"$from": "light1", "path": "torch.lit"}` is a part of another call's
output, and `{"$literal": …}` is data that is taken as it stands, whatever keys it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias

from narratoria.bounds import MAX_DEPTH
from narratoria.events import JsonObject
from narratoria.run.not_json import NotJson
from narratoria.state import MISSING, lookup
from narratoria.strict_json import is_integer
from narratoria.tools.schema.excerpts import quoted, shorten, show_key, show_path

FROM: Final = "$from"
LITERAL: Final = "$literal"
MAX_CONTAINERS: Final = 1_000_000  # objects and arrays in one input
MAX_VALUES: Final = 250_000  # members and elements of an input, once its references are replaced
MAX_TEXT: Final = 16_000_000  # characters of its strings, keys and numbers, once its references are replaced
_BESIDE: Final = {FROM: frozenset({FROM, "path", "default"}), LITERAL: frozenset({LITERAL})}
_SCALARS: Final = (str, int, float, bool, type(None))
_SHOWN: Final = 8  # keys of an output that a message lists
_MAX_NOWHERE: Final = 20  # references that lead nowhere, which a message tells; an input may have 100,000
_MAX_PLACE: Final = 200  # characters of the path to a value, and of a list of keys

# Where a value stands: the trail of what holds it, and its key or index. Written out only in a message.
Trail: TypeAlias = tuple[Any, str | int] | None


class Survey(NamedTuple):
    """The references and literals of an input with their places, and what keeps it from being JSON data."""

    marks: list[tuple[Trail, JsonObject]]
    problems: list[tuple[Trail, str]]


def survey(value: Any) -> Survey:
    """Find the references and literals of an input. Iterative, so that a deep input does not overflow the stack."""
    found = Survey([], [])
    stack: list[tuple[Any, Trail, int, bool]] = [(value, None, 1, True)]
    seen = 0
    while stack:
        node, trail, depth, live = stack.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_CONTAINERS:
            limit = f"nested more than {MAX_DEPTH} deep" if depth > MAX_DEPTH else "too large"
            found.problems.append((None, limit))
            return found
        if isinstance(node, dict):
            if live and (FROM in node or LITERAL in node):
                found.marks.append((trail, node))
                live = False  # what stands in a literal or a default is data
            for key, child in node.items():
                if isinstance(child, dict | list | tuple):
                    stack.append((child, (trail, key), depth + 1, live))
                elif not isinstance(child, _SCALARS) or (type(child) is float and not isfinite(child)):
                    found.problems.append(((trail, key), _not_json(child)))
                if not isinstance(key, str):
                    found.problems.append((trail, f"the key {key!r:.60} is not a string"))
        else:
            for index, child in enumerate(node):
                if isinstance(child, dict | list | tuple):
                    stack.append((child, (trail, index), depth + 1, live))
                elif not isinstance(child, _SCALARS) or (type(child) is float and not isfinite(child)):
                    found.problems.append(((trail, index), _not_json(child)))
    return found


def _not_json(value: Any) -> str:
    kind = value if isinstance(value, float) else type(value).__name__
    return f"{kind} is not JSON data"


def shown(trail: Trail, root: str = "input") -> str:
    """Return a trail as a JSON path: `input.deep[0]`. It is short, whatever the keys are."""
    parts: list[str | int] = []
    while trail is not None:
        trail, key = trail
        parts.append(key if isinstance(key, int) else str(key))
    return shorten(show_path([root, *reversed(parts)]), _MAX_PLACE)


def sources(value: Any) -> Iterator[str]:
    """Yield the toolIds that an input refers to."""
    for _, mark in survey(value).marks:
        source = mark.get(FROM)
        if isinstance(source, str):
            yield source


def mark_problems(where: str, mark: JsonObject, known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a reference or a literal, before anything has run."""
    kind = FROM if FROM in mark else LITERAL
    for key in mark:
        if key not in _BESIDE[kind]:
            allowed = "`path` and `default`" if kind == FROM else "nothing"
            yield (
                f"{where}.{show_key(str(key))}: unknown key; beside `{kind}` may stand {allowed}. "
                f'Data with a `{kind}` key is written {{"$literal": …}}'
            )
    if kind == LITERAL:
        return
    source, path = mark[FROM], mark.get("path")
    if not isinstance(source, str):
        yield f"{where}.$from: expected string, got {_kind(source)}"
    elif source not in known:
        yield f"{where}.$from: no call has the toolId {quoted(source)}"
    if isinstance(path, list):
        for index, part in enumerate(path):
            if type(part) is not str and not is_integer(part):
                yield f"{where}.path[{index}]: expected string or integer, got {_kind(part)}"
    elif not isinstance(path, str | None):
        yield f"{where}.path: expected string or array, got {_kind(path)}"


def _kind(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null" if value is None else type(value).__name__)


def substitute(
    value: Any, outputs: Mapping[str, JsonObject | None], problems: list[str], trail: Trail = None
) -> Any:
    """Return `value` with its references replaced by outputs, null for a call that failed, and its literals by their
    data.

    A reference that leads nowhere is added to `problems`. `value` was surveyed, so it is not nested too deeply.
    """
    if isinstance(value, dict):
        if FROM in value:
            return _resolved(value, outputs, problems, trail)
        if LITERAL in value:
            return value[LITERAL]
        return {key: substitute(item, outputs, problems, (trail, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(item, outputs, problems, (trail, index)) for index, item in enumerate(value)]
    return value


def too_large(value: Any, told: Callable[[str], str] | None = None) -> str | None:
    """Return the problem of an input that has become too large by its references, or None. `told` words another one.

    Each reference may double what the last one doubled, and one long string may be referred to a thousand times: a
    plan of 2 kB can ask for gigabytes. Nothing is copied before this: a reference is replaced by the output itself.
    """
    stack, values, text = [value], 0, 0
    while stack:
        node = stack.pop()
        values += len(node)
        if values > MAX_VALUES:
            return (told or _excess)(f"{MAX_VALUES:,} values")
        if isinstance(node, dict):
            text += sum(map(len, node))
            node = node.values()
        for one in node:
            if type(one) is str:
                text += len(one)
            elif type(one) is int:
                text += one.bit_length() >> 2  # about its digits
            elif isinstance(one, dict | list | tuple):
                stack.append(one)
        if text > MAX_TEXT:
            return (told or _excess)(f"{MAX_TEXT:,} characters")
    return None


def _excess(limit: str) -> str:
    return (
        f"input: with its references replaced it has more than {limit}; "
        f"take the part that is needed with `path`"
    )


def dependencies_excess(limit: str) -> str:
    return (
        f"dependencies: their outputs together have more than {limit}; depend on fewer calls, "
        f"or take the parts that are needed with `$from` and `path`"
    )


def _resolved(
    mark: JsonObject, outputs: Mapping[str, JsonObject | None], problems: list[str], trail: Trail
) -> Any:
    source, path = mark[FROM], mark.get("path")
    output = outputs.get(source)
    if output is None:
        return mark.get("default")
    if type(output) is NotJson:
        if len(problems) <= _MAX_NOWHERE:
            problems.append(
                f"{shown(trail)}: the output of {quoted(source)} cannot be handed on: {output.explanation}"
            )
        return None
    if not path:
        return output
    found = lookup(output, path, MISSING)
    if found is not MISSING:
        return found
    if "default" in mark:
        return mark["default"]
    if len(problems) < _MAX_NOWHERE:
        there = shorten(", ".join(map(quoted, islice(output, _SHOWN))), _MAX_PLACE) or "nothing"
        problems.append(
            f"{shown(trail)}: there is no {quoted(path)} in the output of {quoted(source)}, which has {there}; "
            f"correct `path`, or give a `default`"
        )
    elif len(problems) == _MAX_NOWHERE:
        problems.append("and more")
    return None
