"""Python types as JSON: the text forms of dates, durations and number keys.

msgspec accepts more for some types than a schema can say, and its schemas say less than it accepts. Here the schema
is completed, so that it names exactly the accepted values; the parser then holds every value to it.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, TypeAlias

from msgspec import inspect as info

from narratoria.tools.schema import text_formats
from narratoria.tools.schema.problems import Schema

# The text that stands for a value of the type. Formats are RFC 3339's, so times carry an offset.
_TEXT: Final[dict[type[Any], Schema]] = {
    info.DateTimeType: {"format": "date-time"},
    info.TimeType: {"format": "time"},
    info.DateType: {"format": "date"},
    info.TimeDeltaType: {"format": "duration", "pattern": text_formats.DURATION},
    info.UUIDType: {"format": "uuid"},
    info.DecimalType: {"format": "decimal", "pattern": text_formats.DECIMAL},
    info.BytesType: {"pattern": text_formats.BASE64},
    info.ByteArrayType: {"pattern": text_formats.BASE64},
    info.MemoryViewType: {"pattern": text_formats.BASE64},
}
_LOCAL: Final[dict[type[Any], Schema]] = {
    info.DateTimeType: {"pattern": text_formats.LOCAL_DATE_TIME},
    info.TimeType: {"pattern": text_formats.LOCAL_TIME},
}
_KEYS: Final[dict[type[Any], Schema]] = {
    info.IntType: {"pattern": text_formats.INT_KEY},
    info.DateType: {"format": "date"},
    info.UUIDType: {"format": "uuid", "pattern": "^[0-9a-f-]*$"},  # two spellings would be one key
}
_FROM: Final = {None: text_formats.INT_KEY, 0: text_formats.NATURAL_KEY, 1: text_formats.POSITIVE_KEY}
_MOST_KEYS: Final = 1000
_TEXT_KEYS: Final = (info.StrType, info.AnyType)
_LISTS: Final = (info.ListType, info.VarTupleType, info.CollectionType, info.SetType, info.FrozenSetType)
_SETS: Final = (info.SetType, info.FrozenSetType)
_UNHASHABLE: Final = (info.ListType, info.DictType, info.SetType, info.CollectionType, info.TypedDictType)
ObjectType: TypeAlias = info.DataclassType | info.StructType | info.TypedDictType | info.NamedTupleType


def object_types(type_: Any) -> list[ObjectType]:
    """The types with fields that a type is made of, itself first, in the order met.

    Raises `TypeError` for a part that arguments cannot have.
    """
    found: dict[Any, ObjectType] = {}
    waiting: list[Any] = [info.type_info(type_)]
    seen = set()
    for node in waiting:  # grows while it is walked
        if id(node) in seen:
            continue
        seen.add(id(node))
        _check(node)
        if isinstance(node, ObjectType):
            found.setdefault(node.cls, node)
        waiting += _parts(node)
    return list(found.values())


def _parts(node: Any) -> Iterator[Any]:
    for part in getattr(node, "__struct_fields__", ()):
        value = getattr(node, part)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, info.Type | info.Field):
                yield one


def _check(node: Any) -> None:
    if isinstance(node, info.RawType | info.ExtType):
        raise TypeError("msgspec.Raw and Ext are parts of messages, not arguments; use Any")
    if isinstance(node, info.FloatType) and Decimal(repr(step := node.multiple_of or 1)) != Decimal(step):
        raise TypeError(
            f"multiple_of={step} has no exact float, so 1 would be none; use a Decimal or a whole number"
        )
    if isinstance(node, info.DictType):
        _key_rule(node.key_type)
    if isinstance(node, _SETS) and not _is_hashable(node.item_type):
        raise TypeError("the items of a set must be hashable; use a list, or frozen dataclasses")


def _is_hashable(node: Any) -> bool:
    node = _bare(node)
    if isinstance(node, _UNHASHABLE):
        return False
    if isinstance(node, info.CustomType):
        return getattr(node.cls, "__hash__", None) is not None
    if isinstance(node, ObjectType):
        origin = typing.get_origin(node.cls) or node.cls
        return getattr(origin, "__hash__", None) is not None
    return all(map(_is_hashable, _parts(node)))


def _key_rule(key: Any) -> Schema:
    """Return the schema of the keys of a `dict` in JSON, where every key is text."""
    key = _bare(key)
    if isinstance(key, _TEXT_KEYS):
        return {}
    if isinstance(key, info.EnumType):
        return {"enum": sorted(str(member.value) for member in key.cls)}
    if isinstance(key, info.LiteralType):
        return {"enum": sorted(map(str, key.values))}
    if type(key) not in _KEYS:
        name = type(key).__name__.removesuffix("Type").lower()
        raise TypeError(
            f"a dict with {name} keys: keys are text in JSON, and may stand for int, date, UUID, an enum or a "
            f"Literal; use dict[str, …] or a list of pairs"
        )
    return _int_keys(key) if isinstance(key, info.IntType) else _KEYS[type(key)]


def _int_keys(key: info.IntType) -> Schema:
    """Return the schema of keys that stand for whole numbers; a bound must be one that text can say."""
    least = key.ge if key.ge is not None else None if key.gt is None else key.gt + 1
    most = key.le if key.le is not None else None if key.lt is None else key.lt - 1
    if least is not None and most is not None and most - least < _MOST_KEYS:
        return {"enum": [str(one) for one in range(least, most + 1) if one % (key.multiple_of or 1) == 0]}
    if most is None and key.multiple_of is None and least in _FROM:
        return {"pattern": _FROM[least]}
    raise TypeError(
        f"a dict with int keys and these bounds: keys are text in JSON, which can say ge=0, ge=1 or a range of "
        f"{_MOST_KEYS:,} numbers; use one of them, or check the keys in __post_init__"
    )


def _bare(node: Any) -> Any:
    while isinstance(node, info.Metadata):
        node = node.type
    return node


def complete(type_: ObjectType, component: Schema) -> None:
    """Add to the schema of a type with fields the JSON text forms of its fields, and close it."""
    if "prefixItems" in component:  # a tuple with names; a tag comes first
        for field, part in zip(reversed(type_.fields), reversed(component["prefixItems"]), strict=False):
            _complete(field.type, part)
        component.setdefault("items", False)
        return
    for field in type_.fields:
        _complete(field.type, component["properties"][field.encode_name])
    component.setdefault("additionalProperties", False)


def complete_part(type_: Any, part: Schema) -> None:
    """Add to the schema of any type the JSON text forms of what is in it."""
    _complete(info.type_info(type_), part)


def _complete(node: Any, part: Schema) -> None:
    node = _bare(node)
    if "$ref" in part:
        return  # a component of its own
    if isinstance(node, info.UnionType):
        for one in node.types:
            for branch in _branches(part):
                if branch.get("type") == _json_type(_bare(one)) and "enum" not in branch:
                    _complete(one, branch)
    elif type(node) in _TEXT:
        part |= _LOCAL[type(node)] if getattr(node, "tz", None) is False else _TEXT[type(node)]
    elif isinstance(node, _SETS) and isinstance(_bare(node.item_type), info.AnyType):
        part["items"] = {"type": ["string", "number", "boolean", "null"]}  # what Python can put into a set
    elif isinstance(node, _LISTS) and isinstance(part.get("items"), dict):
        _complete(node.item_type, part["items"])
    elif isinstance(node, info.TupleType):
        for item, inside in zip(node.item_types, part.get("prefixItems", ()), strict=True):
            _complete(item, inside)
    elif isinstance(node, info.DictType):
        if rule := _key_rule(node.key_type):
            part["propertyNames"] = rule
        if isinstance(part.get("additionalProperties"), dict):
            _complete(node.value_type, part["additionalProperties"])


def _branches(part: Schema) -> Iterator[Schema]:
    for branch in part.get("anyOf", ()):
        yield branch
        yield from _branches(branch)


def _json_type(node: Any) -> str | None:
    """The JSON type of a part of a union; a union has at most one of each."""
    if type(node) in _TEXT:
        return "string"
    if isinstance(node, (*_LISTS, info.TupleType)):
        return "array"
    return "object" if isinstance(node, info.DictType) else None
