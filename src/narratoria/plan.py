"""Plan JSON and the execution trace: the documents of 000 §13.3 and §13.5, and the rules a plan must keep.

`PlanDocument.from_json` is the only door for a plan from outside. It lists every problem, with its JSON path,
before anything runs; what it returns can be trusted.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from narratoria.errors import EXECUTION_FAILED, ErrorSource, PlanRejected
from narratoria.events import JsonObject, ToolEvent

MAX_RETRIES: Final = 100
MAX_BACKOFF_MS: Final = 3_600_000
MAX_CYCLES: Final = 20  # that are told of one plan

CallState: TypeAlias = Literal["completed", "failed", "skipped", "timeout"]


# gc=False: documents hold JSON data, which has no cycles, and a long plan makes many thousands of results.
class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    pass


class PlanRetry(_Wire, frozen=True, kw_only=True):
    """000 §13.4 rule 5: delay = backoffMs × 2^(attempt-1)."""

    max_retries: int = 3
    backoff_ms: int = 100


class PlannedCall(_Wire, frozen=True, kw_only=True):
    """One call of a plan: which tool, with what, after which others."""

    tool_id: str
    tool_path: str
    input: JsonObject = msgspec.field(default_factory=dict)
    dependencies: list[str] = msgspec.field(default_factory=list)
    required: bool = True
    async_: bool = msgspec.field(default=False, name="async")
    retry_policy: PlanRetry = PlanRetry()

    @property
    def all_dependencies(self) -> list[str]:
        """What must end first: the listed dependencies, and every call whose output `input` refers to."""
        if not self.input:
            return self.dependencies
        found = dict.fromkeys(self.dependencies)
        for _, reference in references(self.input):
            if isinstance(reference["$from"], str):
                found.setdefault(reference["$from"])
        return list(found)


class PlanMetadata(_Wire, frozen=True, kw_only=True):
    generation_attempt: int = 1
    parent_plan_id: str | None = None


class PlanDocument(_Wire, frozen=True, kw_only=True):
    """A plan as the narrator gives it (000 §13.3)."""

    request_id: str = msgspec.field(default_factory=lambda: str(uuid.uuid4()))
    narrative: str | None = None
    tools: list[PlannedCall] = msgspec.field(default_factory=list)
    parallel: bool = False
    disabled_skills: list[str] = msgspec.field(default_factory=list)
    metadata: PlanMetadata = PlanMetadata()

    @classmethod
    def from_json(cls, text: str | bytes) -> PlanDocument:
        """Parse and check a plan; raise `PlanRejected` with every problem."""
        try:
            document = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PlanRejected([f"$: not JSON: {error}"]) from None
        return cls.from_data(document)

    @classmethod
    def from_data(cls, document: Any) -> PlanDocument:
        """The same for a document that is already decoded."""
        problems = [*_shape_problems(document), *_graph_problems(_drafted(document))]
        if problems:
            raise PlanRejected(problems)
        plan: PlanDocument = msgspec.convert(document, cls)
        return plan

    def check(self) -> None:
        """Raise `PlanRejected` unless the calls form a graph that can be run (000 §13.4 rule 1)."""
        problems = list(_graph_problems([*enumerate(self.tools)]))
        if problems:
            raise PlanRejected(problems)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    def to_data(self) -> JsonObject:
        data: JsonObject = msgspec.to_builtins(self)
        return data


class CallResult(_Wire, frozen=True, kw_only=True):
    """One entry of `toolResults` (000 §13.5), with the code of the failure beside its text."""

    tool_id: str
    ok: bool
    state: CallState
    output: JsonObject = msgspec.field(default_factory=dict)
    execution_time: float = 0.0
    retry_count: int = 0
    error: str | None = None
    error_code: str | None = None
    error_source: ErrorSource | None = None
    suggestions: list[str] = msgspec.field(default_factory=list)
    events: list[ToolEvent] = msgspec.field(default_factory=list)

    @property
    def verdict(self) -> str | None:
        """The runtime's own code for the failure: `EXECUTION_FAILED` where the tool itself said that it failed."""
        return EXECUTION_FAILED if self.error_source == "tool" else self.error_code


class ExecutionResult(_Wire, frozen=True, kw_only=True):
    """The full trace of a plan (000 §13.5)."""

    plan_id: str
    success: bool
    narrative: str = ""
    execution_time: float = 0.0
    tool_results: list[CallResult] = msgspec.field(default_factory=list)
    failed_tools: list[str] = msgspec.field(default_factory=list)
    generation_attempt: int = 1
    can_replan: bool = False

    def result_of(self, tool_id: str) -> CallResult:
        for result in self.tool_results:
            if result.tool_id == tool_id:
                return result
        raise KeyError(tool_id)


# --- references ------------------------------------------------------------------------------------------


def references(value: Any, path: str = "input") -> Iterator[tuple[str, JsonObject]]:
    """Every `{"$from": "light1", "path": "inventory.torch.lit"}` inside `value`, with its JSON path: the output of
    another call, or a part of it."""
    stack = [(path, value)]
    while stack:
        where, node = stack.pop()
        if isinstance(node, dict):
            if "$from" in node:
                yield where, node
            else:
                stack.extend((f"{where}.{key}", child) for key, child in node.items())
        elif isinstance(node, list):
            stack.extend((f"{where}[{index}]", child) for index, child in enumerate(node))


# --- what makes a plan unusable ---------------------------------------------------------------------------

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
}
_NAMES: Final = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object", type(None): "null",
}  # fmt: skip


def _shape_problems(document: Any) -> Iterator[str]:
    if not isinstance(document, dict):
        yield f"$: a plan is a JSON object, got {_NAMES.get(type(document), '?')}"
        return
    yield from _field_problems(document, _PLAN_FIELDS, ("requestId", "tools"), "$")
    if document.get("requestId") == "":
        yield "$.requestId: must not be empty"
    yield from _string_list_problems(document.get("disabledSkills"), "$.disabledSkills")
    metadata = document.get("metadata")
    if isinstance(metadata, dict):
        yield from _integer_problems(metadata, "generationAttempt", "$.metadata", 1, 1_000_000)
        if not isinstance(metadata.get("parentPlanId"), str | None):
            kind = _NAMES.get(type(metadata["parentPlanId"]), "?")
            yield f"$.metadata.parentPlanId: expected string or null, got {kind}"
    calls = document.get("tools")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        yield from _call_problems(call, f"$.tools[{index}]")


def _call_problems(call: Any, path: str) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f"{path}: expected object, got {_NAMES.get(type(call), '?')}"
        return
    yield from _field_problems(call, _CALL_FIELDS, ("toolId", "toolPath"), path)
    for field in ("toolId", "toolPath"):
        if isinstance(call.get(field), str) and not call[field].strip():
            yield f"{path}.{field}: must not be empty"
    yield from _string_list_problems(call.get("dependencies"), f"{path}.dependencies")
    retry = call.get("retryPolicy")
    if isinstance(retry, dict):
        yield from _integer_problems(retry, "maxRetries", f"{path}.retryPolicy", 0, MAX_RETRIES)
        yield from _integer_problems(retry, "backoffMs", f"{path}.retryPolicy", 0, MAX_BACKOFF_MS)


def _field_problems(
    data: JsonObject, fields: Mapping[str, tuple[type, ...]], required: tuple[str, ...], path: str
) -> Iterator[str]:
    for name, types in fields.items():
        if name not in data:
            if name in required:
                yield f"{path}.{name}: missing"
        elif type(data[name]) not in types:
            expected = " or ".join(_NAMES[kind] for kind in types)
            yield f"{path}.{name}: expected {expected}, got {_NAMES.get(type(data[name]), '?')}"


def _string_list_problems(items: Any, path: str) -> Iterator[str]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, str):
            yield f"{path}[{index}]: expected string, got {_NAMES.get(type(item), '?')}"


def _integer_problems(data: JsonObject, name: str, path: str, low: int, high: int) -> Iterator[str]:
    if name not in data:
        return
    value = data[name]
    if type(value) is not int:
        yield f"{path}.{name}: expected integer, got {_NAMES.get(type(value), '?')}"
    elif not low <= value <= high:
        yield f"{path}.{name}: {value} is outside {low}..{high}"


def _drafted(document: Any) -> list[tuple[int, PlannedCall]]:
    """The calls that are sound enough to look at their graph, also where others are not, so that one reading of a
    plan tells all that is wrong with it."""
    calls = document.get("tools") if isinstance(document, dict) else None
    found = []
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict) and isinstance(call.get("toolId"), str) and call["toolId"].strip():
            listed = call.get("dependencies")
            dependencies = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
            given = call.get("input")
            given = given if isinstance(given, dict) else {}
            one = PlannedCall(tool_id=call["toolId"], tool_path="", input=given, dependencies=dependencies)
            found.append((index, one))
    return found


def _graph_problems(calls: list[tuple[int, PlannedCall]]) -> Iterator[str]:
    known: dict[str, int] = {}
    for index, call in calls:
        if not call.tool_id.strip():
            yield f"$.tools[{index}].toolId: must not be empty"
        elif call.tool_id in known:
            yield f"$.tools[{index}].toolId: {call.tool_id!r} is already used by tools[{known[call.tool_id]}]"
        else:
            known[call.tool_id] = index
    for index, call in calls:
        for position, dependency in enumerate(call.dependencies):
            if dependency not in known:
                yield f"$.tools[{index}].dependencies[{position}]: no call has the toolId {dependency!r}"
        for path, reference in references(call.input) if call.input else ():
            yield from _reference_problems(f"$.tools[{index}].{path}", reference, known)
    graph = {call.tool_id: call.all_dependencies for _, call in calls}
    for _ in range(MAX_CYCLES):
        cycle = find_cycle(graph)
        if cycle is None:
            return
        yield f"$.tools: circular dependency: {' → '.join(cycle)}"
        graph[cycle[0]] = [one for one in graph[cycle[0]] if one != cycle[1]]


def _reference_problems(where: str, reference: JsonObject, known: Mapping[str, int]) -> Iterator[str]:
    source, path = reference["$from"], reference.get("path")
    if not isinstance(source, str):
        yield f"{where}.$from: expected string, got {_NAMES.get(type(source), '?')}"
    elif source not in known:
        yield f"{where}.$from: no call has the toolId {source!r}"
    if not isinstance(path, str | None):
        yield f"{where}.path: expected string, got {_NAMES.get(type(path), '?')}"


def find_cycle(graph: Mapping[str, list[str]]) -> list[str] | None:
    """The path of one cycle, first node repeated at the end, or None. Iterative: a plan may be 10,000 deep."""
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


def levels(plan: PlanDocument) -> list[list[str]]:
    """The calls by depth: those of one level could run at the same time."""
    depth: dict[str, int] = {}
    waiting = {call.tool_id: call.all_dependencies for call in plan.tools}
    remaining = {tool_id: len(dependencies) for tool_id, dependencies in waiting.items()}
    dependants: dict[str, list[str]] = {}
    for tool_id, dependencies in waiting.items():
        for dependency in dependencies:
            dependants.setdefault(dependency, []).append(tool_id)
    ready = [tool_id for tool_id, count in remaining.items() if count == 0]
    for tool_id in ready:
        depth[tool_id] = max((depth[d] + 1 for d in waiting[tool_id]), default=0)
        for dependant in dependants.get(tool_id, ()):
            remaining[dependant] -= 1
            if remaining[dependant] == 0:
                ready.append(dependant)
    result: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for tool_id, level in depth.items():
        result[level].append(tool_id)
    return result
