"""Parameters declared as a dataclass or a Struct."""
# 002 "Dataclass-only schemas"; ours adds Structs.

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

import jsonschema_rs
import msgspec

from narratoria.errors import ArgumentsInvalid
from narratoria.tools.schema.bounded_patterns import Validator
from narratoria.tools.schema.copying import copied, makes_all_anew
from narratoria.tools.schema.narrowing import narrowed
from narratoria.tools.schema.problems import (
    KeyRules,
    Schema,
    as_object,
    compile_schema,
    find_problems,
    fits,
    known_keys,
)
from narratoria.tools.schema.references import Place, References
from narratoria.tools.schema.translation import Translation, always
from narratoria.tools.schema.typed_schema import schema_for, typed_schema, without_remarks
from narratoria.tools.schema.unknown_keys import KeyFinder
from narratoria.typed_values import converter

_SIMPLE: Final = frozenset(
    ("type", "enum", "anyOf", "default", "description", "title", "examples", "deprecated", "minLength", "maxLength",
     "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
)  # fmt: skip
_LARGEST: Final = sys.float_info.max  # beyond are only infinity and, unlike any number, NaN; JSON has neither


def parser_for(type_: Any, *, name: str = "") -> Callable[[Mapping[str, Any]], Any]:
    """Return a function from raw arguments to the type; it raises `ArgumentsInvalid` with every problem it finds."""
    if type_ is None or type_ is type(None):
        schema = schema_for(type_, name=name)
        return _nothing_parser(schema, compile_schema(schema, name))
    typed = typed_schema(type_, name)
    validator = compile_schema(typed.schema, name)
    if _is_plain_dataclass(type_, typed.schema):
        return _flat_parser(type_, typed.schema, validator, typed.translation.field_hints(type_))
    for stand_in, members in typed.members.items():
        stand = typed.translation.stands[stand_in]
        stand.accepts = [partial(fits, compile_schema(one, name)) for one in members]
    return _deep_parser(type_, typed.schema, validator, typed.translation)


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


def _deep_parser(
    type_: Any, schema: Schema, validator: Validator, translation: Translation
) -> Callable[[Mapping[str, Any]], Any]:
    """Return a parser that uses msgspec and the validator: msgspec ignores unknown keys of dataclasses and accepts
    more text than the schema says.
    """

    patterned = _mentions_key(schema, "pattern")
    stand = translation.root_stand
    make = (
        converter(type_, str_keys=True) if stand is None else partial(stand.build, decode=translation.decode)
    )
    anew = makes_all_anew(schema)

    def parse(arguments: Mapping[str, Any]) -> Any:
        given = as_object(arguments)
        if patterned and not _fits(validator, given):
            # before msgspec, whose patterns can take for ever on a text that does not match
            raise _refusal(schema, validator, given)
        try:
            value = make(given if anew else copied(given))
        except (ValueError, TypeError) as error:  # msgspec's; TypeError: a list in a set of anything
            raise _refusal(schema, validator, given, error) from None
        if not patterned and not _fits(validator, given):
            raise _refusal(schema, validator, given)
        return value

    return parse


def _mentions_key(part: Any, key: str) -> bool:
    if isinstance(part, dict):
        return key in part or any(_mentions_key(value, key) for value in part.values())
    return isinstance(part, list) and any(_mentions_key(value, key) for value in part)


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
    type_: type[Any], schema: Schema, validator: Validator, hints: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Any]:
    """Return the parser of the common case, at half the cost.

    msgspec is three times as fast on a Struct as on a dataclass, and it forbids unknown keys there. So the arguments
    go through a Struct of the same fields; the assignments are generated, as dataclasses generate theirs. If every
    field is given and is of exactly its plain type, msgspec is not needed at all.
    """
    twin = msgspec.defstruct(
        type_.__name__, _twin_fields(type_, hints), kw_only=True, forbid_unknown_fields=True
    )
    names = [field.name for field in dataclasses.fields(type_)]
    source = "\n".join(
        ["def parse(arguments):",
         *_exact_match(hints, names),
         *_finite(schema, names),
         "    try:",
         "        parsed = convert(arguments)",
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
        "convert": converter(twin), "ValidationError": msgspec.ValidationError,
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


def _exact_match(hints: Mapping[str, Any], names: list[str]) -> list[str]:
    """Source that returns at once when each argument has exactly its field's type; none where types say more."""
    hints = {name: without_remarks(hint) for name, hint in hints.items()}
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


def _twin_fields(
    type_: type[Any], hints: Mapping[str, Any]
) -> Iterable[tuple[str, Any] | tuple[str, Any, Any]]:
    for field in dataclasses.fields(type_):
        if field.default is not dataclasses.MISSING:
            # a factory also for plain defaults: msgspec copies or refuses mutable ones
            yield field.name, hints[field.name], msgspec.field(default_factory=always(field.default))
        elif field.default_factory is not dataclasses.MISSING:
            yield field.name, hints[field.name], msgspec.field(default_factory=field.default_factory)
        else:
            yield field.name, hints[field.name]
