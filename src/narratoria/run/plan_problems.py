"""Problems that make a plan unusable: its shape, its graph, its references. Every problem names its JSON path."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from narratoria.bounds import MAX_DEPTH, OutOfBounds, check_depth
from narratoria.events import JsonObject
from narratoria.run.plan_references import Survey, mark_problems, shown, survey
from narratoria.strict_json import is_integer
from narratoria.tools.schema.excerpts import MAX_SHOWN, quoted, shorten, show, show_key

MAX_CALLS: Final = 10_000  # in one plan
LONGEST: Final = {"requestId": 256, "toolId": 256, "toolPath": 4_096, "narrative": 100_000}  # in characters
MAX_RETRIES: Final = 100
MAX_BACKOFF_MS: Final = 3_600_000
MAX_ATTEMPT: Final = 1_000_000
MAX_CYCLES: Final = 20  # that are told of one plan
MAX_PROBLEMS: Final = 200  # that are told of one plan
_SHOWN_CALLS: Final = 40  # of one cycle
_ALIKE: Final = 0.6  # from here on a key is taken for a misspelling

_PLAN_FIELDS: Final[Mapping[str, tuple[type, ...]]] = {
    "requestId": (str,),
    "narrative": (str, type(None)),
    "tools": (list,),
    "parallel": (bool,),
    "disabledSkills": (list,),
    "metadata": (dict,),
}
_CALL_FIELDS: Final[Mapping[str, tuple[type, ...]]] = {
    "toolId": (str,),
    "toolPath": (str,),
    "input": (dict,),
    "dependencies": (list,),
    "required": (bool,),
    "async": (bool,),
    "retryPolicy": (dict,),
    "approval": (bool,),
}
_RETRY_FIELDS: Final = dict.fromkeys(("maxRetries", "backoffMs"))
_METADATA_FIELDS: Final = dict.fromkeys(("generationAttempt", "parentPlanId"))
_NAMES: Final = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object", type(None): "null",
}  # fmt: skip


class Drafted(Protocol):
    """The fields of a call that its graph needs."""

    @property
    def tool_id(self) -> str: ...
    @property
    def input(self) -> JsonObject: ...
    @property
    def dependencies(self) -> list[str]: ...


# --- shape -----------------------------------------------------------------------------------------------


def shape_problems(document: Any) -> Iterator[str]:
    """Yield missing fields and wrong types."""
    if not isinstance(document, dict):
        yield f"$: a plan is a JSON object, got {_NAMES.get(type(document), '?')}"
        return
    yield from _field_problems(document, _PLAN_FIELDS, ("requestId", "tools"), "$")
    yield from _depth_problems(document, _PLAN_FIELDS, "$")
    if document.get("requestId") == "":
        yield "$.requestId: must not be empty"
    yield from _string_list_problems(document.get("disabledSkills"), "$.disabledSkills")
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        yield from _depth_problems(metadata, _METADATA_FIELDS, "$.metadata")
        yield from _integer_problems(metadata, "generationAttempt", "$.metadata", 1, MAX_ATTEMPT)
        if not isinstance(metadata.get("parentPlanId"), str | None):
            kind = _NAMES.get(type(metadata["parentPlanId"]), "?")
            yield f"$.metadata.parentPlanId: expected string or null, got {kind}"
    for index, call in enumerate(_listed(document)):
        yield from _call_problems(call, f"$.tools[{index}]")


def _listed(document: Any) -> list[Any]:
    calls = document.get("tools") if isinstance(document, dict) else None
    return calls if isinstance(calls, list) else []


def _call_problems(call: Any, path: str) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f"{path}: expected object, got {_NAMES.get(type(call), '?')}"
        return
    yield from _field_problems(call, _CALL_FIELDS, ("toolId", "toolPath"), path)
    yield from _depth_problems(call, _CALL_FIELDS, path)
    for field in ("toolId", "toolPath"):
        if isinstance(call.get(field), str) and not call[field].strip():
            yield f"{path}.{field}: must not be empty"
    yield from _string_list_problems(call.get("dependencies"), f"{path}.dependencies")
    retry = call.get("retryPolicy")
    if isinstance(retry, dict):
        yield from _depth_problems(retry, _RETRY_FIELDS, f"{path}.retryPolicy")
        yield from _integer_problems(retry, "maxRetries", f"{path}.retryPolicy", 0, MAX_RETRIES)
        yield from _integer_problems(retry, "backoffMs", f"{path}.retryPolicy", 0, MAX_BACKOFF_MS)


def _field_problems(
    data: JsonObject, fields: Mapping[str, tuple[type, ...]], required: tuple[str, ...], path: str
) -> Iterator[str]:
    for name, types in fields.items():
        if name not in data:
            if name in required:
                yield f"{path}.{name}: missing{_meant_by(name, data, fields)}"
        elif type(data[name]) not in types:
            expected = " or ".join(_NAMES[kind] for kind in types)
            yield f"{path}.{name}: expected {expected}, got {_NAMES.get(type(data[name]), '?')}"
        elif type(data[name]) is str and len(data[name]) > LONGEST[name]:
            yield f"{path}.{name}: {len(data[name]):,} characters; at most {LONGEST[name]:,}"


def all_strings(items: list[Any]) -> bool:
    """Tell if a list has nothing but strings. A plan may have millions of dependencies: they are not looped over."""
    return {*map(type, items)} <= {str}


def _string_list_problems(items: Any, path: str) -> Iterator[str]:
    if isinstance(items, list) and all_strings(items):
        return
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, str):
            yield f"{path}[{index}]: expected string, got {_NAMES.get(type(item), '?')}"


def _integer_problems(data: JsonObject, name: str, path: str, low: int, high: int) -> Iterator[str]:
    if name not in data:
        return
    value = data[name]
    if not is_integer(value):
        yield f"{path}.{name}: expected integer, got {_NAMES.get(type(value), '?')}"
    elif not low <= value <= high:
        yield f"{path}.{name}: {show(value)} is outside {low}..{high}"


def _depth_problems(data: JsonObject, known: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the unknown keys that hold what nests too deeply: they are ignored, but read and written again."""
    for key in data.keys() - known.keys():
        try:
            check_depth(data[key])
        except OutOfBounds:
            yield f"{path}.{show_key(str(key))}: nested more than {MAX_DEPTH} deep"


# --- keys that are not ours ------------------------------------------------------------------------------


def unknown_keys(document: Any) -> list[str]:
    """Return the unknown keys of a plan, each with the key perhaps meant. They do not keep a plan from running: a
    later version may know them.
    """
    if not isinstance(document, dict):
        return []
    found = [
        *_unknown(document, _PLAN_FIELDS, "$"),
        *_unknown(document.get("metadata"), _METADATA_FIELDS, "$.metadata"),
    ]
    for index, call in enumerate(_listed(document)):
        if isinstance(call, dict):
            path = f"$.tools[{index}]"
            found.extend(_unknown(call, _CALL_FIELDS, path))
            found.extend(_unknown(call.get("retryPolicy"), _RETRY_FIELDS, f"{path}.retryPolicy"))
    return found[:MAX_PROBLEMS]


def _unknown(data: Any, known: Mapping[str, Any], path: str) -> Iterator[str]:
    for key in data if isinstance(data, dict) else ():
        if key not in known:
            near = _nearest(key, [name for name in known if name not in data])
            hint = f"did you mean {near!r}? As it stands it is ignored" if near else "it is ignored"
            yield f"{path}.{show_key(str(key))}: unknown key; {hint}"


def _meant_by(name: str, data: JsonObject, known: Mapping[str, Any]) -> str:
    """Return the unknown key that was perhaps meant to be the missing `name`, in words."""
    near = next((key for key in data if key not in known and _nearest(key, [name])), None)
    return f"; was it meant by {quoted(near)}?" if near else ""


def _nearest(key: str, known: Sequence[str]) -> str | None:
    plain = {name.lower(): name for name in known}
    near = difflib.get_close_matches(
        str(key)[:40].lower().replace("_", "").replace("-", ""), plain, 1, _ALIKE
    )
    return plain[near[0]] if near else None


# --- graph -----------------------------------------------------------------------------------------------


def graph_problems(calls: Sequence[tuple[int, Drafted]], unwritable: list[int]) -> Iterator[str]:
    """Yield duplicate ids, unknown dependencies, unusable inputs, and cycles. `unwritable` gets the numbers of calls
    whose input is too deep, too large or no JSON data.
    """
    known: dict[str, int] = {}
    for index, call in calls:
        if not call.tool_id.strip():
            yield f"$.tools[{index}].toolId: must not be empty"
        elif call.tool_id in known:
            yield f"$.tools[{index}].toolId: {quoted(call.tool_id)} is already used by tools[{known[call.tool_id]}]"
        else:
            known[call.tool_id] = index
    graph: dict[str, list[str]] = {}
    names = set(known)
    for index, call in calls:
        known_all = names.issuperset(call.dependencies)
        for position, dependency in enumerate(() if known_all else call.dependencies):
            if dependency not in known:
                yield f"$.tools[{index}].dependencies[{position}]: no call has the toolId {quoted(dependency)}"
        graph[call.tool_id] = call.dependencies
        if call.input:
            found = survey(call.input)
            if found.problems:
                unwritable.append(index)
            yield from _input_problems(f"$.tools[{index}].input", found, known)
            graph[call.tool_id] = waits_for(call.dependencies, found)
    for _ in range(MAX_CYCLES):
        cycle = find_cycle(graph)
        if cycle is None:
            return
        yield f"$.tools: circular dependency: {_shown_cycle(cycle)}"
        graph[cycle[0]] = [one for one in graph[cycle[0]] if one != cycle[1]]


def _shown_cycle(cycle: list[str]) -> str:
    names = [shorten(one, MAX_SHOWN) for one in cycle]
    if len(names) > _SHOWN_CALLS:
        names[_SHOWN_CALLS // 2 : -_SHOWN_CALLS // 2] = [f"… ({len(cycle) - _SHOWN_CALLS} more)"]
    return " → ".join(names)


def _input_problems(root: str, found: Survey, known: Mapping[str, int]) -> Iterator[str]:
    for trail, problem in found.problems:
        yield f"{shown(trail, root)}: {problem}"
    for trail, mark in found.marks:
        yield from mark_problems(shown(trail, root), mark, known)


def waits_for(dependencies: list[str], found: Survey) -> list[str]:
    """Return the calls that must end first: the listed dependencies, and every call that the input refers to."""
    if not found.marks:
        return dependencies
    named = dict.fromkeys(dependencies)
    for _, mark in found.marks:
        source = mark.get("$from")
        if isinstance(source, str):
            named.setdefault(source)
    return list(named)


def find_cycle(graph: Mapping[str, list[str]]) -> list[str] | None:
    """Return the path of one cycle, first node repeated at the end, or None. Iterative: a plan may be 10,000 deep."""
    finished: set[str] = set()
    # Most plans name a call after those it waits for, and then there is no cycle to look for.
    for node, dependencies in graph.items():
        if not finished.issuperset(dependencies):
            break
        finished.add(node)
    for root in graph:
        if root in finished:
            continue
        trail: dict[str, None] = {root: None}
        stack = [iter(graph[root])]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                finished.add(trail.popitem()[0])
                stack.pop()
            elif child in trail:
                path = list(trail)
                return [*path[path.index(child) :], child]
            elif child in graph and child not in finished:
                trail[child] = None
                stack.append(iter(graph[child]))
    return None
