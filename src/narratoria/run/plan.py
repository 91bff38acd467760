"""Plan JSON and the execution trace, and the rules a plan must keep.

`PlanDocument.from_json` is the only entry for a plan from outside. It lists every problem, with its JSON path, before
anything runs; the plan it returns can be trusted.
"""
# The documents are those of 000 §13.3 and §13.5.

from __future__ import annotations

import uuid
import weakref
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

import msgspec

from narratoria.bounds import MAX_DEPTH, MAX_FILE
from narratoria.errors import EXECUTION_FAILED, ErrorSource, PlanRejected, describe
from narratoria.events import JsonObject, ToolEvent
from narratoria.run.plan_problems import (
    MAX_CALLS,
    MAX_PROBLEMS,
    all_strings,
    graph_problems,
    shape_problems,
    waits_for,
)
from narratoria.run.plan_references import survey
from narratoria.spelling import StructSpelled, spelled
from narratoria.strict_json import DuplicateKey, decode, place_of_duplicate, why_unreadable, with_integers
from narratoria.tools.schema.excerpts import excerpt
from narratoria.typed_values import converter, decoder
from narratoria.unicode_text import encodes

CallState: TypeAlias = Literal["completed", "failed", "skipped", "timeout"]


# gc=False: documents hold JSON data, which has no cycles, and a long plan makes many thousands of results.
class _Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    pass


@spelled()
class PlanRetry(_Wire, metaclass=StructSpelled, frozen=True, kw_only=True):
    """The retries of a planned call: delay = backoffMs × 2^(attempt-1)."""

    # 000 §13.4 rule 5.

    max_retries: int = 3
    backoff_ms: int = 100


@spelled()
class PlannedCall(_Wire, metaclass=StructSpelled, frozen=True, kw_only=True):
    """One call of a plan: its tool, its input and its dependencies."""

    tool_id: str
    tool_path: str
    input: JsonObject = msgspec.field(default_factory=dict)
    dependencies: list[str] = msgspec.field(default_factory=list)
    required: bool = True
    async_: bool = msgspec.field(default=False, name="async")
    retry_policy: PlanRetry = PlanRetry()
    approval: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def all_dependencies(self) -> list[str]:
        """The calls that must end first: the listed dependencies, and every call whose output `input` refers to."""
        return waits_for(self.dependencies, survey(self.input)) if self.input else self.dependencies


@spelled()
class PlanMetadata(_Wire, metaclass=StructSpelled, frozen=True, kw_only=True):
    generation_attempt: int = 1
    parent_plan_id: str | None = None


@spelled()
class PlanDocument(_Wire, metaclass=StructSpelled, frozen=True, kw_only=True, gc=True, weakref=True):
    """A plan as the narrator gives it. One that is made in Python is checked when it is executed."""

    # 000 §13.3.

    request_id: str = msgspec.field(default_factory=lambda: str(uuid.uuid4()))
    narrative: str | None = None
    tools: list[PlannedCall] = msgspec.field(default_factory=list)
    parallel: bool = False
    disabled_skills: list[str] = msgspec.field(default_factory=list)
    metadata: PlanMetadata = PlanMetadata()

    @classmethod
    def from_json(cls, text: str | bytes) -> PlanDocument:
        """Parse and check a plan; raise `PlanRejected` with every problem."""
        if problems := _too_long(len(text)):
            raise PlanRejected(problems)
        try:
            document = decode(text)
        except DuplicateKey as error:
            line, column = place_of_duplicate(text if isinstance(text, str) else text.decode())
            raise PlanRejected([f"$: {error} (line {line}, column {column}); keep one of the two"]) from None
        except RecursionError:
            raise PlanRejected([f"$: nested too deeply; an input has at most {MAX_DEPTH} levels"]) from None
        except ValueError as error:
            raise PlanRejected([f"$: not JSON: {excerpt(why_unreadable(text, error))}"]) from None
        return cls.from_data(document)

    @classmethod
    def from_data(cls, document: Any) -> PlanDocument:
        """Parse and check a plan that is already decoded."""
        calls = document.get("tools") if isinstance(document, dict) else None
        named = document.get("requestId") if isinstance(document, dict) else None
        plan_id = named if isinstance(named, str) and named and encodes(named) else None
        if isinstance(calls, list) and (problems := _too_many(calls)):
            raise PlanRejected(problems, plan_id=plan_id)
        problems = [*islice(shape_problems(document), MAX_PROBLEMS)]
        unwritable = [0] if problems else []
        problems += islice(graph_problems(_drafted(calls), unwritable), MAX_PROBLEMS - len(problems))
        if problems:
            raise PlanRejected(
                problems,
                plan_id=plan_id,
                plan=None if unwritable or len(problems) == MAX_PROBLEMS else _legible(document),
            )
        plan = _converted(document)
        size = _sound.add(plan)
        if problems := _too_long(size) if size else _unwritable(plan):
            raise PlanRejected(problems, plan_id=plan_id)
        return plan

    def checked(self) -> PlanDocument:
        """This plan, as sound as one that was read: one made in Python, or changed since it was read, may hold anything
        and is checked whole.

        Raises `PlanRejected`.
        """
        if _sound.has(self):
            return self
        named = self.request_id if isinstance(self.request_id, str) and self.request_id else None
        problems = _too_many(self.tools) if isinstance(self.tools, list) else []
        if problems := problems or [*islice(shape_problems(_outline(self)), MAX_PROBLEMS)]:
            raise PlanRejected(problems, plan_id=named if named is not None and encodes(named) else None)
        try:
            self.check()  # first, since what is nested too deeply cannot be written
            plan = PlanDocument.from_data(self.to_data())
        except PlanRejected:
            raise
        except Exception as error:  # foreign code: an input may be a mapping of somebody's own
            raise PlanRejected([f"$: not JSON data: {excerpt(describe(error))}"], plan_id=named) from None
        if plan != self:
            return plan
        _sound.add(self)
        return self

    def check(self) -> None:
        """Raise `PlanRejected` unless the calls form a graph that can be run."""
        # 000 §13.4 rule 1.
        if problems := _too_many(self.tools):
            raise PlanRejected(problems, plan_id=self.request_id)
        unwritable: list[int] = []
        if problems := [*islice(graph_problems([*enumerate(self.tools)], unwritable), MAX_PROBLEMS)]:
            legible = None if unwritable or len(problems) == MAX_PROBLEMS else _legible(self)
            raise PlanRejected(problems, plan_id=self.request_id, plan=legible)

    def to_json(self) -> bytes:
        """Return the plan as JSON text, in the form of the contract."""
        return msgspec.json.encode(self)

    def to_data(self) -> JsonObject:
        """Return the plan as plain JSON data, in the form of the contract."""
        data: JsonObject = msgspec.to_builtins(self)
        return data


class _Checked:
    """The plans that were checked whole and are as they were then: lists and objects in a plan can be changed."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[PlanDocument], int]] = {}

    def add(self, plan: PlanDocument) -> int:
        """Remember a plan; return the bytes of its JSON, 0 if it has none."""
        key, text = id(plan), _json_of(plan)
        if text is None:
            return 0
        self._known[key] = (weakref.ref(plan, lambda _: self._known.pop(key, None)), hash(text))
        return len(text)

    def has(self, plan: PlanDocument) -> bool:
        known = self._known.get(id(plan))
        return known is not None and known[0]() is plan and known[1] == hash(_json_of(plan))


def _json_of(plan: PlanDocument) -> bytes | None:
    """Return what a plan says; None for one that cannot be written."""
    try:
        return plan.to_json()
    except Exception:  # foreign code: it may hold objects of somebody's own
        return None


_sound: Final = _Checked()


@spelled()
class CallResult(_Wire, frozen=True, kw_only=True):
    """One entry of `toolResults`, with the code of the failure beside its text."""

    # 000 §13.5.

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


@spelled()
class ExecutionResult(_Wire, frozen=True, kw_only=True):
    """The full trace of a plan."""

    # 000 §13.5.

    plan_id: str
    success: bool
    narrative: str = ""
    execution_time: float = 0.0
    tool_results: list[CallResult] = msgspec.field(default_factory=list)
    failed_tools: list[str] = msgspec.field(default_factory=list)
    generation_attempt: int = 1
    can_replan: bool = False

    def result_of(self, tool_id: str) -> CallResult:
        """Return the result of a call by its toolId; raise `KeyError` if the plan has none."""
        for result in self.tool_results:
            if result.tool_id == tool_id:
                return result
        raise KeyError(tool_id)


def tool_name(tool_path: str) -> str:
    """Return the name of the tool that a `toolPath` means, by its words alone: `walk` for `walk` and `tools/walk`.

    `ToolResolver.name_of` knows a tool whose manifest gives it another name than its file has.
    """
    return tool_path.rstrip("/").rpartition("/")[2]


def _too_long(size: int) -> list[str]:
    if size <= MAX_FILE:
        return []
    return [
        f"$: the plan has {size:,} bytes as JSON, at most {MAX_FILE:,}; make several plans of it, or let a tool give "
        f"the data and refer to it with `$from`"
    ]


def _unwritable(plan: PlanDocument) -> list[str]:
    """Return why a plan made in Python has no form as JSON."""
    parts: list[tuple[str, Any]] = [(f"$.tools[{index}]", call) for index, call in enumerate(plan.tools)]
    for path, part in [*parts, ("$", plan)]:
        try:
            msgspec.json.encode(part)
        except UnicodeEncodeError:
            return [rf"{path}: not JSON: it holds half a character, such as \ud800 alone; write whole ones"]
        except Exception as error:  # foreign code: it may hold objects of somebody's own
            return [f"{path}: not JSON: {excerpt(describe(error))}"]
    return []


def _outline(part: Any) -> Any:
    """Return a plan made in Python as data without its inputs, to check the types of its fields."""
    if isinstance(part, msgspec.Struct):
        fields = zip(part.__struct_encode_fields__, msgspec.structs.astuple(part), strict=True)
        return {name: _outline(value) for name, value in fields if value is not msgspec.UNSET}
    if isinstance(part, list | tuple):
        return [_outline(one) for one in part]
    return {} if isinstance(part, Mapping) else part


def _too_many(calls: list[Any]) -> list[str]:
    if len(calls) <= MAX_CALLS:
        return []
    return [f"$.tools: {len(calls):,} calls; a plan has at most {MAX_CALLS:,}. Make several plans of it"]


_decode_plan: Final = decoder(PlanDocument).decode
_convert_plan: Final = converter(PlanDocument)


def _legible(rejected: JsonObject | PlanDocument) -> PlanDocument | None:
    """Return a rejected plan that can be read and written, such as one with a cycle, or None."""
    try:
        plan = rejected if isinstance(rejected, PlanDocument) else _converted(rejected)
        if any(
            survey(call.input).problems for call in plan.tools
        ):  # it may be too deep or too large to write
            return None
        return _decode_plan(plan.to_json())
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        return None


def _converted(document: JsonObject) -> PlanDocument:
    try:
        return _convert_plan(document)
    except msgspec.ValidationError:  # the shape is right: a number is written 1.0
        return _convert_plan(_with_integers(document))


def _drafted(calls: Any) -> list[tuple[int, PlannedCall]]:
    """Return the calls that are valid enough to check their graph, also if others are not, so that one reading of a
    plan finds all its problems.
    """
    found = []
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict) and isinstance(call.get("toolId"), str) and call["toolId"].strip():
            listed = call.get("dependencies")
            dependencies = listed if isinstance(listed, list) else []
            if not all_strings(dependencies):
                dependencies = [one for one in dependencies if isinstance(one, str)]
            given = call.get("input")
            given = given if isinstance(given, dict) else {}
            one = PlannedCall(tool_id=call["toolId"], tool_path="", input=given, dependencies=dependencies)
            found.append((index, one))
    return found


def _with_integers(document: JsonObject) -> JsonObject:
    """Return the document with its integers as `int`, also those that were written 1.0."""

    calls = [
        {**call, "retryPolicy": with_integers(call["retryPolicy"])} if "retryPolicy" in call else call
        for call in document["tools"]
    ]
    metadata = {"metadata": with_integers(document["metadata"])} if "metadata" in document else {}
    return {**document, "tools": calls, **metadata}


def levels(plan: PlanDocument) -> list[list[str]]:
    """Return the calls by depth: those of one level could run at the same time."""
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
