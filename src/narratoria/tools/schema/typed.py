"""Parameters declared as a dataclass or a Struct."""
# 002 "Dataclass-only schemas"; ours adds Structs.

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

import jsonschema_rs
import msgspec

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema.bounded_patterns import Validator
from narratoria.tools.schema.json_types import complete, object_types
from narratoria.tools.schema.narrowing import narrowed
from narratoria.tools.schema.problems import (
    MAX_DEPTH,
    KeyRules,
    Schema,
    as_object,
    compile_schema,
    find_problems,
    fits,
    known_keys,
    of_tool,
)
from narratoria.tools.schema.references import Place, References
from narratoria.tools.schema.unknown_keys import KeyFinder

_SIMPLE: Final = frozenset(
    ("type", "enum", "anyOf", "default", "description", "title", "examples", "deprecated", "minLength", "maxLength",
     "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
)  # fmt: skip
_LARGEST: Final = sys.float_info.max  # beyond are only infinity and, unlike any number, NaN; JSON has neither


def schema_for(type_: Any, *, name: str = "") -> Schema:
    """Return the JSON Schema 2020-12 of a dataclass, a Struct or None, closed to unknown keys at every depth.

    Descriptions come from class docstrings, from `field(metadata={"description": …})`, and, with other
    constraints, from `Annotated[…, msgspec.Meta(…)]`.
    """
    if type_ is None or type_ is type(None):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if not _is_object_type(type_):
        raise ToolValidationError(
            f"{of_tool(name)}parameters must be a dataclass, a Struct or None, got {_type_name(type_)}; "
            f"declare a frozen dataclass, or pass parameters=<JSON Schema>"
        )
    try:
        types = object_types(type_)
        references, components = msgspec.json.schema_components([one.cls for one in types])
    except (TypeError, NameError, ValueError, AttributeError) as error:
        reason = str(error).rpartition("\n")[2]  # msgspec's own advice before it is about its own interface
        raise ToolValidationError(
            f"{of_tool(name)}{_type_name(type_)}{_field_at_fault(type_)} has no JSON Schema: {reason}"
        ) from None
    names = [reference["$ref"].rpartition("/")[2] for reference in references]
    for one, component_name in zip(types, names, strict=True):
        _describe_fields(one.cls, components[component_name])
        complete(one, components[component_name])
    root: Schema = dict(components[names[0]])
    if not _mentions(components, f"#/$defs/{names[0]}"):
        del components[names[0]]
    if components:
        root["$defs"] = components
    return root


def _field_at_fault(type_: Any) -> str:
    """Return the first field whose type alone is refused too, as ".inner.field"; nothing if that cannot be told."""
    path = ""
    for _ in range(MAX_DEPTH):
        try:
            hints = typing.get_type_hints(typing.get_origin(type_) or type_, include_extras=True)
        except (TypeError, NameError):
            return path
        refused = next((field for field, hint in hints.items() if not _has_schema(hint)), None)
        if refused is None:
            return path
        path, type_ = f"{path}.{refused}", hints[refused]
    return path


def _has_schema(hint: Any) -> bool:
    try:
        object_types(hint)
        msgspec.json.schema_components([hint])
    except (TypeError, NameError, ValueError, AttributeError):
        return False
    return True


def is_params_type(type_: Any) -> bool:
    """Tell if the params of a handler may be of a type: a dataclass, a Struct or None."""
    return type_ is None or type_ is type(None) or _is_object_type(type_)


def _is_object_type(type_: Any) -> bool:
    origin = typing.get_origin(type_) or type_
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin) or issubclass(origin, msgspec.Struct)
    )


def _type_name(type_: Any) -> str:
    return getattr(type_, "__qualname__", None) or repr(type_)


def _describe_fields(type_: Any, component: Schema) -> None:
    origin = typing.get_origin(type_) or type_
    if not dataclasses.is_dataclass(origin):
        return
    for field in dataclasses.fields(origin):
        described = component["properties"].get(field.name)
        if described is not None and "description" in field.metadata:
            described["description"] = field.metadata["description"]


def _mentions_key(part: Any, key: str) -> bool:
    if isinstance(part, dict):
        return key in part or any(_mentions_key(value, key) for value in part.values())
    return isinstance(part, list) and any(_mentions_key(value, key) for value in part)


def _mentions(part: Any, reference: str) -> bool:
    if isinstance(part, dict):
        return part.get("$ref") == reference or any(_mentions(value, reference) for value in part.values())
    return isinstance(part, list) and any(_mentions(value, reference) for value in part)


# --- parsing -------------------------------------------------------------------------------------------


def parser_for(type_: Any, *, name: str = "") -> Callable[[Mapping[str, Any]], Any]:
    """Return a function from raw arguments to the type; it raises `ArgumentsInvalid` with every problem it finds."""
    schema = schema_for(type_, name=name)
    validator = compile_schema(schema, name)
    if type_ is None or type_ is type(None):
        return _nothing_parser(schema, validator)
    if _is_plain_dataclass(type_, schema):
        return _flat_parser(type_, schema, validator)
    return _deep_parser(type_, schema, validator)


def _refusal(
    schema: Schema, validator: Validator, arguments: dict[str, Any], error: Exception | None = None
) -> ArgumentsInvalid:
    references = References(schema)
    arguments = _with_text(arguments)

    def known(
        refused: jsonschema_rs.ValidationError, start: Place = references.top, skip: int = 0
    ) -> KeyRules:
        place = references.at(refused.evaluation_path[skip:-1], start)
        return KeyRules(known_keys(place.node) if place else [])

    def listed(place: Place, value: Any) -> list[str]:
        known_there = partial(known, start=place, skip=references.steps_to(place))
        return find_problems(references.validator(place), known_there, value)

    lines = narrowed(references, references.top, arguments, listed, KeyFinder(references).is_meant)
    return ArgumentsInvalid(find_problems(validator, known, arguments, error, lines=lines))


def _nothing_parser(schema: Schema, validator: Validator) -> Callable[[Mapping[str, Any]], None]:
    def parse(arguments: Mapping[str, Any]) -> None:
        if as_object(arguments):
            raise _refusal(schema, validator, as_object(arguments))

    return parse


def _deep_parser(type_: Any, schema: Schema, validator: Validator) -> Callable[[Mapping[str, Any]], Any]:
    """Return a parser that uses msgspec and the validator: msgspec ignores unknown keys of dataclasses and accepts
    more text than the schema says.
    """

    patterned = _mentions_key(schema, "pattern")

    def parse(arguments: Mapping[str, Any]) -> Any:
        given = as_object(arguments)
        if patterned and not _fits(validator, given):
            # before msgspec, whose patterns can take for ever on a text that does not match
            raise _refusal(schema, validator, given)
        try:
            value = msgspec.convert(given, type_, str_keys=True)
        except (msgspec.ValidationError, TypeError) as error:  # TypeError: a list in a set of anything
            raise _refusal(schema, validator, given, error) from None
        if not patterned and not _fits(validator, given):
            raise _refusal(schema, validator, given)
        return value

    return parse


def _fits(validator: Validator, given: dict[str, Any]) -> bool:
    return fits(validator, given) or fits(validator, _with_text(given))


def _with_text(value: Any) -> Any:
    """Return the decimals of a Python caller as text, as in JSON; the validator takes them for numbers."""
    if isinstance(value, dict):
        return {key: _with_text(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_with_text(one) for one in value]
    return str(value) if isinstance(value, Decimal) else value


def _is_plain_dataclass(type_: Any, schema: Schema) -> bool:
    """Tell if filling `__dict__` makes the same instance as the generated `__init__` would."""
    return (
        isinstance(type_, type)
        and dataclasses.is_dataclass(type_)
        and "$defs" not in schema
        and not hasattr(type_, "__post_init__")
        and type_.__dictoffset__ != 0
        and type_.__new__ is object.__new__
        and all(field.init and _is_plain_attribute(type_, field.name) for field in dataclasses.fields(type_))
        and not any("__slots__" in vars(one) for one in type_.__mro__[:-1])
        and all(map(_is_scalar, schema["properties"].values()))
    )


def _is_plain_attribute(type_: type[Any], name: str) -> bool:
    """Tell if a name is neither a property of the class nor one that a Struct reserves."""
    return not hasattr(getattr(type_, name, None), "__set__") and not hasattr(msgspec.Struct, name)


def _is_scalar(part: Schema) -> bool:
    """Tell if msgspec alone accepts exactly what the schema says: nothing inside, no format, no pattern."""
    if not part.keys() <= _SIMPLE:
        return False
    if "anyOf" in part:
        return all(map(_is_scalar, part["anyOf"]))
    return "enum" in part or part.get("type") in ("string", "integer", "number", "boolean", "null")


def _flat_parser(
    type_: type[Any], schema: Schema, validator: Validator
) -> Callable[[Mapping[str, Any]], Any]:
    """Return the parser of the common case, at half the cost.

    msgspec is three times as fast on a Struct as on a dataclass, and it forbids unknown keys there. So the arguments
    go through a Struct of the same fields; the assignments are generated, as dataclasses generate theirs. If every
    field is given and is of exactly its plain type, msgspec is not needed at all.
    """
    twin = msgspec.defstruct(type_.__name__, _twin_fields(type_), kw_only=True, forbid_unknown_fields=True)
    names = [field.name for field in dataclasses.fields(type_)]
    source = "\n".join(
        ["def parse(arguments):",
         *_exact_match(type_, names),
         *_finite(schema, names),
         "    try:",
         "        parsed = convert(arguments, twin)",
         "    except ValidationError as error:",
         "        return reparse(arguments, error)",
         "    made = new(type_)",
         *(["    fields = made.__dict__"] if names else []),
         *(f"    fields[{name!r}] = parsed.{name}" for name in names),
         "    return made"]
    )  # fmt: skip

    def reparse(arguments: Any, error: Exception | None) -> Any:
        given = as_object(arguments)
        if type(arguments) is not dict:  # a Mapping of another kind, which msgspec does not read
            return parse(given)
        raise _refusal(schema, validator, given, error) from None

    scope: dict[str, Any] = {
        "convert": msgspec.convert, "twin": twin, "ValidationError": msgspec.ValidationError,
        "reparse": reparse, "new": object.__new__, "type_": type_, "largest": _LARGEST,
    }  # fmt: skip
    exec(source, scope)  # noqa: S102 - field names are identifiers, nothing else enters the text
    parse: Callable[[Mapping[str, Any]], Any] = scope["parse"]
    return parse


def _finite(schema: Schema, names: list[str]) -> list[str]:
    """Source that refuses NaN and infinity, which msgspec takes for a float."""
    floats = [name for name in names if "number" in _types_in(schema["properties"][name])]
    if not floats:
        return []
    return [
        "    if type(arguments) is dict:",
        *(
            f"        if type(value := arguments.get({name!r})) is float and not -largest <= value <= largest:\n"
            f"            return reparse(arguments, None)"
            for name in floats
        ),
    ]


def _types_in(part: Schema) -> set[str]:
    return {part.get("type", ""), *(name for one in part.get("anyOf", ()) for name in _types_in(one))}


def _exact_match(type_: type[Any], names: list[str]) -> list[str]:
    """Source that returns at once when each argument has exactly its field's type; none where types say more."""
    hints = typing.get_type_hints(type_, include_extras=True)
    if not names or any(hints[name] not in (int, str, bool, float) for name in names):
        return []
    same = " and ".join(
        f"type(value{n}) is {hints[name].__name__}"
        + (f" and -largest <= value{n} <= largest" if hints[name] is float else "")
        for n, name in enumerate(names)
    )
    return [
        f"    if type(arguments) is dict and len(arguments) == {len(names)}:",
        "        try:",
        *(f"            value{n} = arguments[{name!r}]" for n, name in enumerate(names)),
        "        except KeyError:",
        "            pass",
        "        else:",
        f"            if {same}:",
        "                made = new(type_)",
        "                fields = made.__dict__",
        *(f"                fields[{name!r}] = value{n}" for n, name in enumerate(names)),
        "                return made",
    ]


def _twin_fields(type_: type[Any]) -> Iterable[tuple[str, Any] | tuple[str, Any, Any]]:
    hints = typing.get_type_hints(type_, include_extras=True)
    for field in dataclasses.fields(type_):
        if field.default is not dataclasses.MISSING:
            # a factory also for plain defaults: msgspec copies or refuses mutable ones
            yield field.name, hints[field.name], msgspec.field(default_factory=_always(field.default))
        elif field.default_factory is not dataclasses.MISSING:
            yield field.name, hints[field.name], msgspec.field(default_factory=field.default_factory)
        else:
            yield field.name, hints[field.name]


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value
