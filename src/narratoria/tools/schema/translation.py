"""Python types that msgspec does not know, as types that it does.

A stand-in is a class that takes the place of such a type in an annotation: msgspec hands its values to `Stand.build`,
and `Stand.schema` is its JSON Schema. A dataclass with such a field gets a twin, the same class with other annotations,
because msgspec reads the annotations of the class itself. Types without anything foreign are left as they are.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect as info

from narratoria.tools.schema import constraints
from narratoria.tools.schema.stand_ins import ModelStand, ObjectStand, PathStand, Stand, StandIn, UnionStand
from narratoria.tools.schema.unions import is_union, members_of, union_of

_ALIAS: Final = getattr(typing, "TypeAliasType", None)  # `type X = …`, Python 3.12
FAULTS: Final = (TypeError, NameError, ValueError, AttributeError)


class FieldFault(TypeError):
    """A field whose type cannot be an argument; `field` is its name."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(reason)


class Translation:
    """A params type in msgspec's terms, and its stand-ins."""

    def __init__(self, type_: Any) -> None:
        self.stands: dict[Any, Stand] = {}  # by the class that msgspec sees
        self._known: dict[Any, Any] = {}  # from a type to its stand-in
        self._names: dict[str, int] = {}  # of twins, and how many have it
        self._aliases: list[Any] = []  # that are being translated
        self.is_foreign = _reaches_foreign(type_, set())
        self.root: Any = self.of(type_) if self.is_foreign else type_

    def field_hints(self, type_: Any) -> dict[str, Any]:
        """The annotations of the fields of a type, translated."""
        return {name: self.of(hint) for name, hint in hints_of(type_).items()}

    @property
    def root_stand(self) -> Stand | None:
        return self.stands.get(self.root) if self.is_foreign else None

    def decode(self, class_: Any, value: Any) -> Any:
        """Make the value of a stand-in: msgspec's `dec_hook`."""
        stand = self.stands.get(class_)
        if stand is None:
            raise TypeError(f"arguments cannot be of the type {class_.__qualname__}")
        return stand.build(value, self.decode)

    def of(self, hint: Any) -> Any:
        """Return the hint with stand-ins for what msgspec does not know; itself if there is nothing foreign in it."""
        if not _reaches_foreign(hint, set()):
            return hint
        if typing.get_origin(hint) is typing.Annotated:
            inner, *metadata = typing.get_args(hint)
            return constraints.applied(self.of(inner), constraints.read(metadata))
        if (alias := _aliased(hint)) is not None:
            return self._alias(hint, alias)
        if is_union(hint):
            return self._union([self.of(one) for one in members_of(hint)])
        if is_model(hint):
            return self._stand(hint, ModelStand(hint))
        if _is_path(hint):
            self.stands.setdefault(hint, PathStand(hint))
            return hint
        if is_object(hint):
            return self._object(hint)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        return origin[tuple(one if one is Ellipsis else self.of(one) for one in arguments)]

    def _alias(self, hint: Any, alias: Any) -> Any:
        if any(one is hint for one in self._aliases):
            raise TypeError(
                f"{hint} is an alias that leads back to itself; use a dataclass for one of its parts"
            )
        self._aliases.append(hint)
        try:
            return self.of(alias)
        finally:
            self._aliases.pop()

    def _union(self, members: list[Any]) -> Any:
        made = union_of(members)
        if _is_native(made):
            return made
        some = [one for one in members_of(made) if one is not type(None)]
        stand = UnionStand(some)
        found = next((key for key, other in self.stands.items() if other == stand), None)
        if found is None:
            found = StandIn("Union", some)
            self.stands[found] = stand
        return found if len(some) == len(members_of(made)) else union_of([found, None])

    def _stand(self, type_: Any, stand: Stand) -> Any:
        if type_ not in self._known:
            self._known[type_] = stand_in = StandIn(_name(type_), [type_])
            self.stands[stand_in] = stand
        return self._known[type_]

    def _object(self, type_: Any) -> Any:
        if type_ in self._known:
            return self._known[type_]
        stand = ObjectStand(type_)
        stand_in = self._stand(type_, stand)  # before its fields, which may lead back to it
        hints: dict[str, Any] = {}
        for name, hint in hints_of(type_).items():
            try:
                hints[name] = self.of(hint)
            except FAULTS as error:
                raise FieldFault(f"{_name(type_)}.{name}", str(error)) from None
        stand.twin = twin_of(type_, hints)
        stand.twin.__name__ = self._unused(_name(type_))
        return stand_in

    def _unused(self, name: str) -> str:
        """Return a name that no other twin has: definitions in the schema are known by it."""
        self._names[name] = number = self._names.get(name, 0) + 1
        return name if number == 1 else f"{name}_{number}"


# --- what is foreign -----------------------------------------------------------------------------------


def _reaches_foreign(hint: Any, seen: set[Any]) -> bool:
    """Tell if there is anything in a type, at any depth, that msgspec does not know."""
    if typing.get_origin(hint) is typing.Annotated:
        inner, *metadata = typing.get_args(hint)
        return any(map(constraints.is_foreign, metadata)) or _reaches_foreign(inner, seen)
    if (alias := _aliased(hint)) is not None:
        if id(hint) in seen:
            return False
        seen.add(id(hint))
        return _reaches_foreign(alias, seen)
    if is_model(hint) or _is_path(hint):
        return True
    if is_union(hint) and not _is_native(hint):
        return True
    if is_object(hint):
        if hint in seen:
            return False
        seen.add(hint)
        parts: Iterator[Any] = iter(hints_of(hint).values())
    elif typing.get_origin(hint) is typing.Literal:
        return False
    else:
        parts = (one for one in typing.get_args(hint) if not isinstance(one, list))
    return any(_reaches_foreign(one, seen) for one in parts)


def _is_native(union: Any) -> bool:
    """Tell if msgspec takes a union of these members, whatever is in them."""
    try:
        info.type_info(union)
    except FAULTS:
        return False
    return True


def is_model(hint: Any) -> bool:
    """Tell if a type is a model or a dataclass of pydantic."""
    return isinstance(hint, type) and "__pydantic_validator__" in vars(hint)


def _is_path(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, PurePath)


def is_object(hint: Any) -> bool:
    """Tell if a type has fields that msgspec reads: a dataclass, a Struct, a TypedDict or a NamedTuple."""
    origin = typing.get_origin(hint) or hint
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin)
        or issubclass(origin, msgspec.Struct)
        or typing.is_typeddict(origin)
        or (issubclass(origin, tuple) and origin is not tuple)
    )


def _aliased(hint: Any) -> Any:
    """Return the type that a NewType or `type X = …` is a name of; None for any other type."""
    if _ALIAS is not None and isinstance(hint, _ALIAS):
        return hint.__value__
    return getattr(hint, "__supertype__", None)


# --- objects -------------------------------------------------------------------------------------------


def hints_of(type_: Any) -> dict[str, Any]:
    """The annotations of the fields of a type, with the arguments of a generic one filled in."""
    origin = typing.get_origin(type_) or type_
    try:
        hints = typing.get_type_hints(origin, include_extras=True)
    except FAULTS:  # msgspec refuses the type, in its words
        return {}
    names = _field_names(origin)
    variables = dict(zip(getattr(origin, "__parameters__", ()), typing.get_args(type_), strict=False))
    return {name: _filled(hints[name], variables) for name in names if name in hints}


def _field_names(origin: Any) -> list[str]:
    if dataclasses.is_dataclass(origin):
        return [field.name for field in dataclasses.fields(origin)]
    if issubclass(origin, msgspec.Struct):
        return list(origin.__struct_fields__)
    if issubclass(origin, tuple):
        return list(inspect.signature(origin).parameters)
    return list(typing.get_type_hints(origin))


def _filled(hint: Any, variables: dict[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    inside = () if isinstance(hint, type) else getattr(hint, "__parameters__", ())
    return hint[tuple(variables.get(one, one) for one in inside)] if inside and variables else hint


def twin_of(type_: Any, hints: dict[str, Any]) -> Any:
    """Return a class with the same fields and other annotations, which msgspec reads in place of the type."""
    origin = typing.get_origin(type_) or type_
    if dataclasses.is_dataclass(origin):
        twin: Any = _dataclass_twin(origin, hints)
    elif issubclass(origin, msgspec.Struct):
        twin = _struct_twin(origin, hints)
    elif typing.is_typeddict(origin):
        twin = _typed_dict_twin(origin, hints)
    else:
        twin = _named_tuple_twin(origin, hints)
    made_up = (origin.__doc__ or "").startswith(f"{origin.__name__}(")  # by dataclasses: it describes nothing
    twin.__qualname__, twin.__module__ = origin.__qualname__, origin.__module__
    twin.__doc__ = None if made_up else origin.__doc__
    return twin


def _dataclass_twin(origin: Any, hints: dict[str, Any]) -> Any:
    fields = []
    for field in dataclasses.fields(origin):
        if constraints.is_field(field.default):
            raise FieldFault(
                f"{origin.__name__}.{field.name}", "write Annotated[…, Field(…)] and the default after it"
            )
        given = _default(field.default, field.default_factory, dataclasses.MISSING)
        fields.append((field.name, hints[field.name], dataclasses.field(metadata=field.metadata, **given)))
    return dataclasses.make_dataclass(origin.__name__, fields, kw_only=True)


def _named_tuple_twin(origin: Any, hints: dict[str, Any]) -> Any:
    parameters = inspect.signature(origin).parameters
    defaults = {name: one.default for name, one in parameters.items() if one.default is not one.empty}
    body = {"__module__": origin.__module__, "__annotations__": hints, **defaults}
    return types.new_class(origin.__name__, (typing.NamedTuple,), {}, lambda given: given.update(body))


def _typed_dict_twin(origin: Any, hints: dict[str, Any]) -> Any:
    make: Any = typing.TypedDict
    kinds = {True: typing.Required, False: typing.NotRequired}
    return make(
        origin.__name__,
        {name: kinds[name in origin.__required_keys__][_unqualified(hint)] for name, hint in hints.items()},
    )


def _struct_twin(origin: Any, hints: dict[str, Any]) -> Any:
    config = origin.__struct_config__
    fields = [
        (
            one.name,
            hints[one.name],
            msgspec.field(
                name=one.encode_name, **_default(one.default, one.default_factory, msgspec.NODEFAULT)
            ),
        )
        for one in msgspec.structs.fields(origin)
    ]
    return msgspec.defstruct(
        origin.__name__, fields, kw_only=True, tag=config.tag, tag_field=config.tag_field,
        array_like=config.array_like, forbid_unknown_fields=config.forbid_unknown_fields,
    )  # fmt: skip


def _default(default: Any, factory: Any, none: Any) -> dict[str, Any]:
    if factory is not none:
        return {"default_factory": factory}
    if default is none:
        return {}
    try:
        msgspec.to_builtins(default)
        hash(default)
    except TypeError:  # msgspec could not show it in the schema; `typed` does
        return {"default_factory": _shown(default)}
    return {"default": default}


def always(value: Any) -> Callable[[], Any]:
    """A factory of one value."""
    return lambda: value


def _shown(value: Any) -> Callable[[], Any]:
    """A factory of one value, which is also in the schema."""
    give = always(value)
    give.shown = value  # type: ignore[attr-defined]
    return give


def _unqualified(hint: Any) -> Any:
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        hint = typing.get_args(hint)[0]
    return hint


def _name(type_: Any) -> str:
    origin = typing.get_origin(type_)
    if origin is None:
        return str(getattr(type_, "__name__", type_))
    arguments = [getattr(one, "__name__", str(one)) for one in typing.get_args(type_)]
    return re.sub(r"\W+", "_", "_".join([origin.__name__, *arguments])) + "_"
