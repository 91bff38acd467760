"""Arguments: their JSON Schema, and their strict parsing.

A tool's parameters are a dataclass, a msgspec Struct, nothing, or a JSON Schema of their own. Whichever it is:
nothing is coerced, unknown keys are refused at every depth, and the error names each path.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, TypeAlias

import jsonschema_rs
import msgspec

from narratoria.errors import ArgumentsInvalid, ToolValidationError

Schema: TypeAlias = dict[str, Any]

MAX_PROBLEMS: Final = 20  # as many as a person reads; arguments may have a hundred thousand keys


# --- types → schema ------------------------------------------------------------------------------------


def schema_for(type_: Any, *, name: str = "") -> Schema:
    """JSON Schema 2020-12 of a dataclass, a Struct or None, closed to unknown keys at every depth."""
    where = f"tool {name!r}: " if name else ""
    if type_ is None or type_ is type(None):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if not _is_object_type(type_):
        raise ToolValidationError(
            f"{where}parameters must be a dataclass, a msgspec.Struct or None, got {type_!r}; "
            f"declare a frozen dataclass, or pass parameters=<JSON Schema>"
        )
    try:
        (reference,), components = msgspec.json.schema_components([type_])
    except (TypeError, NameError, ValueError) as error:
        raise ToolValidationError(f"{where}{_type_name(type_)} has no JSON Schema: {error}") from None
    root_name = reference["$ref"].rpartition("/")[2]
    for component in components.values():
        _close(component)
    root: Schema = dict(components[root_name])
    if not _mentions(components, f"#/$defs/{root_name}"):
        del components[root_name]
    if components:
        root["$defs"] = components
    return root


def _is_object_type(type_: Any) -> bool:
    origin = typing.get_origin(type_) or type_
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin) or issubclass(origin, msgspec.Struct)
    )


def _type_name(type_: Any) -> str:
    return getattr(type_, "__qualname__", None) or repr(type_)


def _close(schema: Any) -> None:
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            _close(part)
    elif isinstance(schema, list):
        for part in schema:
            _close(part)


def _mentions(part: Any, reference: str) -> bool:
    if isinstance(part, dict):
        return part.get("$ref") == reference or any(_mentions(value, reference) for value in part.values())
    return isinstance(part, list) and any(_mentions(value, reference) for value in part)


# --- arguments → typed parameters ----------------------------------------------------------------------


def parser_for(type_: Any, *, name: str = "") -> Callable[[Mapping[str, Any]], Any]:
    """A function from raw arguments to the type; it raises `ArgumentsInvalid` with every problem it finds."""
    schema = schema_for(type_, name=name)
    known = frozenset(schema["properties"])
    validator = _validator(schema, name)
    convert = msgspec.convert
    nested = "$defs" in schema
    is_none = type_ is None or type_ is type(None)

    def parse(arguments: Mapping[str, Any]) -> Any:
        if type(arguments) is not dict:
            arguments = _as_dict(arguments)
        if known.issuperset(arguments):
            try:
                value = None if is_none else convert(arguments, type_)
            except (msgspec.ValidationError, RecursionError) as error:
                raise ArgumentsInvalid(_problems(validator, arguments, schema, error)) from None
            if not nested or _fits(validator, arguments):
                return value
        raise ArgumentsInvalid(_problems(validator, arguments, schema, None))

    return parse


def _as_dict(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, Mapping):
        return dict(arguments)
    raise ArgumentsInvalid([f"arguments: expected an object, got {_show(arguments)}"])


def _validator(schema: Schema, name: str) -> jsonschema_rs.Draft202012Validator:
    def refuse(uri: str) -> Any:
        raise ValueError(f"{uri} is outside the schema; copy what it refers to into $defs")

    try:
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, retriever=refuse)
    except ValueError as error:
        where = f"tool {name!r}: " if name else ""
        message = getattr(error, "message", str(error)).splitlines()[0]
        raise ToolValidationError(f"{where}parameters are not a JSON Schema: {message}") from None


def _fits(validator: jsonschema_rs.Draft202012Validator, arguments: Any) -> bool:
    try:
        return validator.is_valid(arguments)
    except ValueError:  # a date, a UUID, … where the caller is Python: judge what it is as JSON
        return validator.is_valid(dump(arguments))


def _problems(validator: Any, arguments: Any, schema: Schema, error: Exception | None) -> list[str]:
    found = [error.message for error in itertools.islice(validator.iter_errors(arguments), MAX_PROBLEMS)]
    return found or [str(error)]


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


# --- arguments checked by a supplied schema ------------------------------------------------------------


def parser_for_schema(
    schema: Mapping[str, Any], *, name: str = ""
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    validator = _validator(dict(schema), name)

    def parse(arguments: Mapping[str, Any]) -> dict[str, Any]:
        filled = dict(_as_dict(arguments))
        for key, part in schema.get("properties", {}).items():
            if key not in filled and isinstance(part, dict) and "default" in part:
                filled[key] = part["default"]
        if not validator.is_valid(filled):
            raise ArgumentsInvalid(_problems(validator, filled, dict(schema), None))
        return filled

    return parse


# --- values → JSON -------------------------------------------------------------------------------------


def dump(value: Any) -> Any:
    """The value as what JSON knows: dataclasses and Structs become objects, enums their values, dates text."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_other)


def dump_json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=_encode_other).decode()


def _encode_other(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterator):
        return list(value)
    raise ToolValidationError(
        f"{type(value).__qualname__} cannot be written as JSON; return a dataclass or plain data"
    )
