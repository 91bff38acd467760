"""Preconditions and effects as data, the way a manifest beside an executable holds them."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.events import JsonObject
from narratoria.spelling import snake_case
from narratoria.tools import schema
from narratoria.tools.contract.effects import Effect
from narratoria.tools.contract.keys import FLAG, OBJECT, TEXT
from narratoria.tools.contract.preconditions import Checks, Precondition

AnyKind: TypeAlias = type[Precondition] | type[Effect]

# Where each kind is; what it takes in a manifest, its class says. They are loaded when the first manifest is read.
PRECONDITIONS: Final = (
    "narratoria.tools.contract.precondition_kinds:ResourcePrecondition",
    "narratoria.tools.contract.precondition_kinds:StatePrecondition",
    "narratoria.tools.contract.precondition_kinds:PermissionPrecondition",
    "narratoria.tools.contract.precondition_kinds:DependencyPrecondition",
    "narratoria.tools.contract.precondition_kinds:CustomPrecondition",
)
EFFECTS: Final = (
    "narratoria.tools.contract.effect_kinds:StateChangeEffect",
    "narratoria.tools.contract.effect_kinds:MemoryEffect",
    "narratoria.tools.contract.effect_kinds:NotificationEffect",
    "narratoria.tools.contract.effect_kinds:CascadeEffect",
)

_ROLLBACK: Final[JsonObject] = {
    "description": "What takes back what the tool did outside: a call of another tool, or of the same executable with "
    "another operation.",
    "type": "object",
    "properties": {"tool": TEXT, "operation": TEXT, "input": OBJECT},
    "additionalProperties": False,
    "oneOf": [{"required": ["tool"]}, {"required": ["operation"]}],
}


class _Kinds:
    """The kinds of one list of a manifest: their JSON Schema, and the reader of each."""

    def __init__(self, what: str, classes: Sequence[AnyKind]) -> None:
        self.what = what
        self.classes: dict[str, AnyKind] = {}
        for cls in classes:
            other = self.classes.setdefault(cls.type, cls)
            if other is not cls:
                raise ToolValidationError(
                    f"{what}: {other.__name__} and {cls.__name__} both have the type {cls.type!r}; rename one"
                )
        schemas = {cls.type: _schema_of(cls) for cls in classes}
        self.schema: JsonObject = {"type": "array", "items": {"oneOf": [*schemas.values()]}}
        self.parsers = {kind: schema.parser_for_schema(one) for kind, one in schemas.items()}

    def read(self, data: Any, name: str, make: Callable[[Any, dict[str, Any]], Any]) -> list[Any]:
        """Read all of a list; every problem is named, with its place."""
        what = self.what
        where = f"tool {name!r}: {what}" if name else what
        if not isinstance(data, list | tuple):
            raise ToolValidationError(f"{where}: expected an array, got {data!r}")
        made: list[Any] = []
        problems: list[str] = []
        for index, one in enumerate(data):
            kind = one.get("type") if isinstance(one, Mapping) else None
            if not isinstance(kind, str) or kind not in self.classes:
                known = ", ".join(self.classes)
                problems.append(f"{what}[{index}].type: expected one of {known}, got {kind!r}")
                continue
            try:
                parsed = self.parsers[kind](one)
                fields = {snake_case(key): value for key, value in parsed.items() if key != "type"}
                made.append(make(self.classes[kind], fields))
            except ArgumentsInvalid as error:
                problems.extend(f"{what}[{index}].{problem}" for problem in error.problems)
            except ToolValidationError as error:
                problems.append(f"{what}[{index}]: {error}")
        if problems:
            raise ToolValidationError((f"tool {name!r}: " if name else "") + "; ".join(problems))
        return made


def _schema_of(cls: AnyKind) -> JsonObject:
    shared: JsonObject = {"type": {"const": cls.type}, "description": {"type": "string"}}
    if issubclass(cls, Effect):
        shared |= {"reversible": FLAG, **({"rollback": _ROLLBACK} if cls.undoable else {})}
    else:
        shared["critical"] = FLAG
    return {
        "type": "object",
        "properties": {**shared, **cls.keys},
        "required": ["type", *cls.required_keys],
        "additionalProperties": False,
    }


@functools.cache
def _preconditions() -> _Kinds:
    return _Kinds("preconditions", [pkgutil.resolve_name(place) for place in PRECONDITIONS])


@functools.cache
def _effects() -> _Kinds:
    return _Kinds("effects", [pkgutil.resolve_name(place) for place in EFFECTS])


def preconditions_schema() -> JsonObject:
    """Return the JSON Schema of the `preconditions` of a manifest."""
    return _preconditions().schema


def effects_schema() -> JsonObject:
    """Return the JSON Schema of the `effects` of a manifest."""
    return _effects().schema


def preconditions_from_data(
    data: Any, *, name: str = "", checks: Checks | None = None
) -> tuple[Precondition, ...]:
    """Preconditions from a manifest; `checks` holds, by id, the functions that `custom` ones refer to."""
    known: Checks = {} if checks is None else checks
    return tuple(_preconditions().read(data, name, lambda cls, fields: cls.from_manifest(fields, known)))


def effects_from_data(data: Any, *, name: str = "") -> tuple[Effect, ...]:
    """Effects from a manifest."""
    return tuple(_effects().read(data, name, lambda cls, fields: cls.from_manifest(fields)))
