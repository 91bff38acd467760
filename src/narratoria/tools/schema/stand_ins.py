"""Stand-ins: how a value is made, and which JSON Schema it has, where msgspec does not know the type."""

from __future__ import annotations

import copy
import dataclasses
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from narratoria.errors import unwritten
from narratoria.tools.schema.dumping import dump_json
from narratoria.tools.schema.excerpts import show_path
from narratoria.tools.schema.problems import PartRefused, Schema, from_msgspec
from narratoria.tools.schema.references import children
from narratoria.typed_values import convert

Decode = Callable[[Any, Any], Any]


class _AnyInstance(type):
    """The metaclass of stand-ins: msgspec asks whether what was built is an instance, and it always is."""

    def __instancecheck__(cls, value: object) -> bool:
        return True


def StandIn(name: str, for_types: Iterable[Any]) -> type:  # noqa: N802 - makes a class
    """Return a new class to stand in an annotation; hashable if the types are, since a set may hold it."""
    hashable = all(getattr(typing.get_origin(one) or one, "__hash__", None) for one in for_types)
    return _AnyInstance(name, (), {} if hashable else {"__hash__": None})


class Stand:
    """The way to build values of one type, and their schema."""

    accepts: Sequence[Callable[[Any], bool]] = ()  # of a union: whether a value fits the schema of a member

    def build(self, value: Any, decode: Decode) -> Any:
        """Make a value of the type; raise `ValueError` if the value does not fit."""
        raise unwritten(self, "build")

    def hints(self) -> list[Any]:
        """The types, known to msgspec, that it is made of, and whose schemas it needs."""
        return []

    def schema(self, parts: list[Schema], definitions: dict[str, Schema]) -> Schema:
        """Return its schema, made of those of `hints`. New definitions are added."""
        raise unwritten(self, "schema")


class PathStand(Stand):
    """A path of the file system, text in JSON."""

    def __init__(self, type_: Any) -> None:
        self.type = type_

    def build(self, value: Any, decode: Decode) -> Any:
        if not isinstance(value, str | self.type):
            raise ValueError("expected a path, as text")
        return self.type(value)

    def schema(self, parts: list[Schema], definitions: dict[str, Schema]) -> Schema:
        return {"type": "string", "format": "path"}


class ObjectStand(Stand):
    """A dataclass, Struct, TypedDict or NamedTuple that has a twin."""

    twin: Any = None

    def __init__(self, type_: Any) -> None:
        self.type = typing.get_origin(type_) or type_

    def build(self, value: Any, decode: Decode) -> Any:
        return self.from_twin(_convert(value, self.twin, decode))

    def from_twin(self, made: Any) -> Any:
        if typing.is_typeddict(self.type):
            return made
        if issubclass(self.type, tuple):
            return self.type(*made)
        if issubclass(self.type, msgspec.Struct):
            return self.type(**{name: getattr(made, name) for name in made.__struct_fields__})
        # as msgspec does: the fields, and then `__post_init__`
        real = self.type.__new__(self.type)
        for field in dataclasses.fields(self.type):
            object.__setattr__(real, field.name, getattr(made, field.name))
        if (post_init := getattr(real, "__post_init__", None)) is not None:
            post_init()
        return real

    def hints(self) -> list[Any]:
        return [self.twin]

    def schema(self, parts: list[Schema], definitions: dict[str, Schema]) -> Schema:
        return parts[0]


class UnionStand(Stand):
    """A union that msgspec cannot tell apart, as of two dataclasses: the first member that fits is taken."""

    def __init__(self, members: list[Any]) -> None:
        self.members = members

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnionStand) and self.members == other.members

    __hash__ = None  # type: ignore[assignment]

    def build(self, value: Any, decode: Decode) -> Any:
        refusals = []
        for member, accepts in zip(self.members, self.accepts, strict=True):
            if accepts(value):
                try:
                    return _convert(value, member, decode)
                except ValueError as error:
                    refusals.append(error)
        raise refusals[0] if refusals else ValueError(f"fits none of {len(self.members)} alternatives")

    def hints(self) -> list[Any]:
        return self.members

    def schema(self, parts: list[Schema], definitions: dict[str, Schema]) -> Schema:
        return {"anyOf": copy.deepcopy(parts)}


class ModelStand(Stand):
    """A model of pydantic: read by pydantic itself, strictly and as JSON."""

    def __init__(self, type_: Any) -> None:
        self.type = type_
        self._adapter: Any = sys.modules["pydantic"].TypeAdapter(type_)

    def build(self, value: Any, decode: Decode) -> Any:
        try:
            return self._adapter.validate_json(dump_json(value), strict=True)
        except sys.modules["pydantic"].ValidationError as error:
            raise PartRefused(
                f"{show_path(one['loc']) or 'arguments'}: {one['msg'][:1].lower()}{one['msg'][1:]}"
                for one in error.errors(include_url=False, include_context=False)
            ) from None

    def schema(self, parts: list[Schema], definitions: dict[str, Schema]) -> Schema:
        try:
            made: Schema = self._adapter.json_schema()
        except RuntimeError as error:  # of pydantic: it has no JSON Schema
            raise TypeError(f"{self.type.__name__}: {str(error).partition(chr(10))[0]}") from None
        inside: dict[str, Schema] = made.pop("$defs", {})
        if "$ref" not in made:
            inside[self.type.__name__] = made
            made = {"$ref": f"#/$defs/{self.type.__name__}"}
        names = {name: _free_name(name, definitions) for name in inside}
        for name, node in inside.items():
            for one in _nodes(node):
                if "properties" in one:
                    one.setdefault("additionalProperties", False)
                _rename(one, names)
            definitions[names[name]] = node
        _rename(made, names)
        return made


def _convert(value: Any, type_: Any, decode: Decode) -> Any:
    try:
        return convert(value, type_, str_keys=True, dec_hook=decode)
    except msgspec.ValidationError as error:
        raise PartRefused(from_msgspec(error, value)) from None


def _free_name(name: str, definitions: dict[str, Schema]) -> str:
    free, number = name, 2
    while free in definitions:
        free, number = f"{name}_{number}", number + 1
    return free


def _rename(node: Schema, names: dict[str, str]) -> None:
    reference = node.get("$ref", "")
    if isinstance(reference, str) and (name := reference.removeprefix("#/$defs/")) in names:
        node["$ref"] = f"#/$defs/{names[name]}"


def _nodes(node: Any) -> Iterator[Schema]:
    """The schema and every schema in it."""
    if isinstance(node, dict):
        yield node
        for _, _, child in children(node):
            yield from _nodes(child)
