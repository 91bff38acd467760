"""The JSON Schema of a Python type."""

from __future__ import annotations

import copy
import dataclasses
import typing
from typing import Any, Final, NamedTuple

import msgspec

from narratoria.errors import ToolValidationError
from narratoria.tools.schema.dumping import dump
from narratoria.tools.schema.json_types import ObjectType, complete, complete_part, object_types
from narratoria.tools.schema.problems import MAX_DEPTH, Schema, of_tool
from narratoria.tools.schema.translation import FAULTS, FieldFault, Translation, hints_of, is_model

_PLACEHOLDER: Final = "stand-in:"
_RULES: Final = (
    "gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz", "extra_json_schema"
)  # fmt: skip


class TypedSchema(NamedTuple):
    """The schema of a type, the type in msgspec's terms, and the schemas of the members of its unions."""

    schema: Schema
    translation: Translation
    members: dict[Any, list[Schema]]  # by the stand-in of the union


def schema_for(type_: Any, *, name: str = "") -> Schema:
    """Return the JSON Schema 2020-12 of a dataclass, a Struct, a pydantic model or None, closed to unknown keys at
    every depth.

    Descriptions come from class docstrings, from `field(metadata={"description": …})`, from `Annotated[…, "text"]`,
    and, with constraints, from `Annotated[…, msgspec.Meta(…)]`, annotated_types and `pydantic.Field`.
    """
    if type_ is None or type_ is type(None):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    return typed_schema(type_, name).schema


def typed_schema(type_: Any, name: str) -> TypedSchema:
    """Return the schema of a params type with what a parser needs beside it."""
    if not _is_object_type(type_):
        raise ToolValidationError(
            f"{of_tool(name)}parameters must be a dataclass, a Struct, a pydantic model or None, got "
            f"{_type_name(type_)}; declare a frozen dataclass, or pass parameters=<JSON Schema>"
        )
    try:
        return _schema_of(Translation(type_))
    except FAULTS as error:
        reason = str(error).rpartition("\n")[2]  # msgspec's own advice before it is about its own interface
        where = error.field if isinstance(error, FieldFault) else _type_name(type_) + _field_at_fault(type_)
        raise ToolValidationError(f"{of_tool(name)}{where} has no JSON Schema: {reason}") from None


def is_params_type(type_: Any) -> bool:
    """Tell if the params of a handler may be of a type: a dataclass, a Struct, a pydantic model or None."""
    return type_ is None or type_ is type(None) or _is_object_type(type_)


def without_remarks(hint: Any) -> Any:
    """Return the type of an annotation that adds only descriptions; any other annotation as it is."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint
    inner, *metadata = typing.get_args(hint)
    says_more = any(getattr(one, rule, None) is not None for one in metadata for rule in _RULES)
    return hint if says_more else inner


def _schema_of(translation: Translation) -> TypedSchema:
    stands = list(translation.stands.items())
    numbers = {stand_in: number for number, (stand_in, _) in enumerate(stands)}

    def hook(class_: Any) -> Schema:
        if class_ not in numbers:
            raise NotImplementedError
        return {"$ref": f"{_PLACEHOLDER}{numbers[class_]}"}

    hints = [translation.root, *(hint for _, stand in stands for hint in stand.hints())]
    types: dict[Any, ObjectType] = {}
    for hint in hints:
        types |= {one.cls: one for one in object_types(hint) if one.cls not in types}
    made, definitions = msgspec.json.schema_components([*types, *hints], schema_hook=hook)
    for one, reference in zip(types.values(), made, strict=False):
        component = definitions[_name_in(reference)]
        _describe_fields(one, component)
        complete(one, component)
    parts = [dict(part) for part in made[len(types) :]]
    for hint, part in zip(hints, parts, strict=True):
        complete_part(hint, part)
    root, parts = parts[0], parts[1:]
    schemas: list[Schema] = []
    for _, stand in stands:
        own, parts = parts[: len(stand.hints())], parts[len(stand.hints()) :]
        schemas.append(stand.schema(own, definitions))
    for name, node in definitions.items():
        definitions[name] = _filled_in(node, schemas)
    root = _filled_in(root, schemas)
    members = {
        stand_in: [_filled_in(one, schemas) | {"$defs": definitions} for one in schema["anyOf"]]
        for (stand_in, stand), schema in zip(stands, schemas, strict=True)
        if "anyOf" in schema and stand.hints()
    }
    return TypedSchema(_with_definitions(root, definitions), translation, members)


def _with_definitions(root: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return the schema that a root refers to, with those definitions that are still referred to."""
    name = _name_in(root)
    root, definitions = dict(definitions[name]), dict(definitions)
    if not _mentions(definitions, f"#/$defs/{name}"):
        del definitions[name]
    if definitions:
        root["$defs"] = definitions
    return root


def _name_in(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _filled_in(part: Any, schemas: list[Schema]) -> Any:
    """Return a part of a schema with the schemas of the stand-ins in their places."""
    if isinstance(part, list):
        return [_filled_in(one, schemas) for one in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith(_PLACEHOLDER):
        made = copy.deepcopy(schemas[int(reference.removeprefix(_PLACEHOLDER))])
        beside = {key: value for key, value in part.items() if key != "$ref"}
        return _filled_in(made, schemas) | beside
    filled = {key: _filled_in(value, schemas) for key, value in part.items()}
    if isinstance(filled.get("anyOf"), list):  # a union in a union is one
        filled["anyOf"] = [
            inner for one in filled["anyOf"] for inner in (one["anyOf"] if one.keys() == {"anyOf"} else [one])
        ]
    return filled


def _field_at_fault(type_: Any) -> str:
    """Return the first field whose type alone is refused too, as ".inner.field"; nothing if that cannot be told."""
    path = ""
    for _ in range(MAX_DEPTH):
        hints = hints_of(type_) if _is_object_type(type_) else {}
        refused = next((field for field, hint in hints.items() if not _has_schema(hint)), None)
        if refused is None:
            return path
        path, type_ = f"{path}.{refused}", hints[refused]
    return path


def _has_schema(hint: Any) -> bool:
    try:
        _schema_of(Translation(dataclasses.make_dataclass("Alone", [("field", hint)])))
    except FAULTS:
        return False
    return True


def _is_object_type(type_: Any) -> bool:
    origin = typing.get_origin(type_) or type_
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin) or issubclass(origin, msgspec.Struct) or is_model(origin)
    )


def _type_name(type_: Any) -> str:
    return getattr(type_, "__qualname__", None) or repr(type_)


def _describe_fields(type_: ObjectType, component: Schema) -> None:
    """Add the descriptions of a dataclass's fields, and the defaults that msgspec cannot write as JSON."""
    properties = component.get("properties", {})
    origin = typing.get_origin(type_.cls) or type_.cls
    if dataclasses.is_dataclass(origin):
        for field in dataclasses.fields(origin):
            described = properties.get(field.name)
            if described is not None and "description" in field.metadata:
                described["description"] = field.metadata["description"]
    for one in type_.fields:
        if hasattr(one.default_factory, "shown") and one.encode_name in properties:
            properties[one.encode_name]["default"] = dump(one.default_factory.shown)


def _mentions(part: Any, reference: str) -> bool:
    if isinstance(part, dict):
        return part.get("$ref") == reference or any(_mentions(value, reference) for value in part.values())
    return isinstance(part, list) and any(_mentions(value, reference) for value in part)
