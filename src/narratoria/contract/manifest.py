"""Preconditions and effects as data, the way a manifest beside an executable holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from narratoria import schema
from narratoria.contract import effects as e
from narratoria.contract import preconditions as p
from narratoria.errors import ArgumentsInvalid, ToolValidationError

Schema: TypeAlias = dict[str, Any]
Checks: TypeAlias = Mapping[str, p.Check]

_TEXT: Final[Schema] = {"type": "string", "minLength": 1}
_FLAG: Final[Schema] = {"type": "boolean"}


def _kind(kind: str, required: tuple[str, ...], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {"type": {"const": kind}, "description": {"type": "string"}, **properties},
        "required": ["type", *required],
        "additionalProperties": False,
    }


_PRECONDITIONS: Final[Mapping[str, tuple[type[Any], Schema]]] = {
    "resource": (
        p.ResourcePrecondition,
        _kind("resource", ("resource",), critical=_FLAG, resource=_TEXT,
              availability={"enum": ["required", "preferred"]}),
    ),
    "state": (
        p.StatePrecondition,
        _kind("state", ("state",), critical=_FLAG, state=_TEXT, expectedValue={}),
    ),
    "permission": (
        p.PermissionPrecondition,
        _kind("permission", ("permission",), critical=_FLAG, permission=_TEXT),
    ),
    "dependency": (
        p.DependencyPrecondition,
        _kind("dependency", ("tool",), critical=_FLAG, tool=_TEXT,
              status={"enum": ["completed", "available"]}),
    ),
    "custom": (
        p.CustomPrecondition,
        _kind("custom", ("id",), critical=_FLAG, id=_TEXT),
    ),
}  # fmt: skip

_ROLLBACK: Final[Schema] = {
    "description": "What takes back what the tool did outside: a call of another tool, or of the same executable with "
    "another operation.",
    "type": "object",
    "properties": {
        "tool": _TEXT,
        "operation": _TEXT,
        "input": {"type": "object", "additionalProperties": True},
    },
    "additionalProperties": False,
    "oneOf": [{"required": ["tool"]}, {"required": ["operation"]}],
}

_EFFECTS: Final[Mapping[str, tuple[type[Any], Schema]]] = {
    "state_change": (
        e.StateChangeEffect,
        _kind("state_change", ("state",), reversible=_FLAG, rollback=_ROLLBACK, state=_TEXT, value={},
              change={"enum": ["set", "clear", "increment", "decrement"]}),
    ),
    "memory": (
        e.MemoryEffect,
        _kind("memory", ("scope", "key"), reversible=_FLAG, rollback=_ROLLBACK, key=_TEXT, value={},
              scope={"enum": ["working", "short-term", "long-term", "episodic"]},
              operation={"enum": ["write", "delete", "update"]}),
    ),
    "notification": (
        e.NotificationEffect,
        _kind("notification", ("event",), reversible=_FLAG, event=_TEXT, payload={}),
    ),
    "cascade": (
        e.CascadeEffect,
        _kind("cascade", ("triggerTool",), reversible=_FLAG, rollback=_ROLLBACK, triggerTool=_TEXT,
              triggerCondition={"type": "object", "additionalProperties": True},
              input={"type": "object", "additionalProperties": True}),
    ),
}  # fmt: skip

PRECONDITIONS_SCHEMA: Final[Schema] = {
    "type": "array",
    "items": {"oneOf": [s for _, s in _PRECONDITIONS.values()]},
}
EFFECTS_SCHEMA: Final[Schema] = {"type": "array", "items": {"oneOf": [s for _, s in _EFFECTS.values()]}}

_PARSERS: Final = {
    kind: schema.parser_for_schema(one) for kind, (_, one) in (*_PRECONDITIONS.items(), *_EFFECTS.items())
}
_SNAKE: Final = {
    "expectedValue": "expected_value",
    "triggerTool": "trigger_tool",
    "triggerCondition": "trigger_condition",
}


def preconditions_from_data(
    data: Any, *, name: str = "", checks: Checks | None = None
) -> tuple[p.Precondition, ...]:
    """Preconditions from a manifest; `checks` holds, by id, the functions that `custom` ones refer to."""

    def make(cls: type[Any], fields: dict[str, Any]) -> Any:
        if cls is p.CustomPrecondition:
            fields["check"] = _custom_check(fields["id"], checks or {})
        return cls(**fields)

    return tuple(_each(data, "preconditions", name, _PRECONDITIONS, make))


def effects_from_data(data: Any, *, name: str = "") -> tuple[e.Effect, ...]:
    """Effects from a manifest."""

    def make(cls: type[Any], fields: dict[str, Any]) -> Any:
        if "rollback" in fields:
            if not fields.setdefault("reversible", True):
                raise ToolValidationError("it has a rollback, but says that it is not reversible")
            fields["rollback"] = e.Compensation(**fields["rollback"])
        return cls(**fields)

    return tuple(_each(data, "effects", name, _EFFECTS, make))


def _each(
    data: Any,
    what: str,
    name: str,
    kinds: Mapping[str, tuple[type[Any], Schema]],
    make: Callable[[type[Any], dict[str, Any]], Any],
) -> list[Any]:
    where = f"tool {name!r}: {what}" if name else what
    if not isinstance(data, list | tuple):
        raise ToolValidationError(f"{where}: expected an array, got {data!r}")
    made: list[Any] = []
    problems: list[str] = []
    for index, one in enumerate(data):
        kind = one.get("type") if isinstance(one, Mapping) else None
        if not isinstance(kind, str) or kind not in kinds:
            problems.append(f"{what}[{index}].type: expected one of {', '.join(kinds)}, got {kind!r}")
            continue
        try:
            parsed = _PARSERS[kind](one)
            fields = {_SNAKE.get(key, key): value for key, value in parsed.items() if key != "type"}
            made.append(make(kinds[kind][0], fields))
        except ArgumentsInvalid as error:
            problems.extend(f"{what}[{index}].{problem}" for problem in error.problems)
        except ToolValidationError as error:
            problems.append(f"{what}[{index}]: {error}")
    if problems:
        raise ToolValidationError((f"tool {name!r}: " if name else "") + "; ".join(problems))
    return made


def _custom_check(id_: str, checks: Checks) -> p.Check:
    if id_ not in checks:
        known = ", ".join(sorted(checks)) or "none"
        raise ToolValidationError(f"no check is registered for the id {id_!r}; registered: {known}")
    return checks[id_]
