"""Constraints and descriptions that an annotation carries for other libraries: `Annotated[int, Gt(0)]`.

`annotated_types` and `pydantic.Field` are read as far as a JSON Schema can express them, and what it cannot express is
refused. Neither library is imported: their objects are known by the module of their class.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect as info

from narratoria.tools.schema.unions import members_of, union_of

# A constraint is a pair: its name in `msgspec.Meta`, and its value.
_SIMPLE: Final = {
    "Gt": "gt", "Ge": "ge", "Lt": "lt", "Le": "le", "MultipleOf": "multiple_of", "MinLen": "min_length",
    "MaxLen": "max_length",
}  # fmt: skip
_REMARKS: Final = ("description", "title", "examples")
_NO_RULES: Final = ("Unit", "Strict")  # a remark; and what we are anyway
# Settings of a pydantic Field that change how a value is read, which we would have to ignore.
_SETTINGS: Final = (
    "alias", "validation_alias", "discriminator", "json_schema_extra", "default_factory", "init_var"
)  # fmt: skip


class Carried(typing.NamedTuple):
    """Metadata of an annotation, sorted: constraints and remarks for `Meta`, and the rest, which stays as it is."""

    constraints: dict[str, Any]
    remarks: dict[str, Any]
    rest: tuple[Any, ...]


def is_foreign(one: Any) -> bool:
    """Tell if metadata says something that msgspec would not read."""
    return isinstance(one, str) or _library(one) != "" or _is_doc(one)


def read(metadata: Iterable[Any]) -> Carried:
    """Sort the metadata of an annotation. Raise `TypeError` for what a JSON Schema cannot express."""
    constraints: dict[str, Any] = {}
    remarks: dict[str, Any] = {}
    rest: list[Any] = []
    for one in metadata:
        if isinstance(one, str):
            remarks["description"] = one
        elif _is_doc(one):
            remarks["description"] = one.documentation
        elif not _library(one):
            rest.append(one)
        elif is_field(one):
            remarks |= {key: value for key in _REMARKS if (value := getattr(one, key, None)) is not None}
            _check_settings(one)
            constraints |= dict(_pairs(one.metadata))
        else:
            constraints |= dict(_pairs([one]))
    return Carried(constraints, remarks, tuple(rest))


def applied(type_: Any, carried: Carried) -> Any:
    """Return a type with the constraints where they apply: to each member of a union that can have them."""
    members = list(members_of(type_))
    for name, value in carried.constraints.items():
        meta = _meta(name, value)
        took = [_takes(member, meta) for member in members]
        if not any(took):
            raise TypeError(
                f"{name}={value!r} says nothing of {_shown(type_)}; a JSON Schema has no such rule"
            )
        members = [
            typing.Annotated[member, meta] if takes else member
            for member, takes in zip(members, took, strict=True)
        ]
    made = union_of(members)
    if carried.rest:
        made = typing.Annotated[(made, *carried.rest)]
    return typing.Annotated[made, msgspec.Meta(**carried.remarks)] if carried.remarks else made


def is_field(value: Any) -> bool:
    """Tell if a value is a `pydantic.Field(…)`."""
    return type(value).__name__ == "FieldInfo" and _library(value) == "pydantic"


def with_default_of(hint: Any, default: Any, none: Any) -> tuple[Any, Any]:
    """Return the hint and the default of a parameter; a default of `pydantic.Field(…)` is both. `none` stands for no
    default.
    """
    if not is_field(default):
        return hint, default
    if getattr(default, "default_factory", None) is not None:
        raise TypeError("Field(default_factory=…): give the default itself, each call gets a copy")
    return typing.Annotated[hint, default], none if default.is_required() else default.default


def _pairs(metadata: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for one in metadata:
        name = type(one).__name__
        if name in _SIMPLE:
            yield _SIMPLE[name], getattr(one, _SIMPLE[name])
        elif name == "Timezone" and one.tz in (None, ...):
            yield "tz", one.tz is ...
        elif name == "_PydanticGeneralMetadata":
            yield from _general(vars(one))
        elif name in _NO_RULES:
            continue
        elif hasattr(one, "__iter__"):  # a group, as Interval(ge=1, le=3)
            yield from _pairs(one)
        else:
            raise TypeError(f"{one!r}: a JSON Schema has no such rule; check it in __post_init__")


def _general(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if key == "pattern":
            yield key, getattr(value, "pattern", value)
        elif value not in (None, False) and key != "strict":
            raise TypeError(
                f"{key}={value!r}: arguments are never changed, and a JSON Schema has no such rule"
            )


def _check_settings(field: Any) -> None:
    for key in _SETTINGS:
        if getattr(field, key, None) is not None:
            raise TypeError(
                f"Field({key}=…) is for pydantic models; use one as the params type, or leave it out"
            )


def _meta(name: str, value: Any) -> msgspec.Meta:
    try:
        return msgspec.Meta(**{name: value})
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}={value!r}: {error}") from None


def _takes(type_: Any, meta: msgspec.Meta) -> bool:
    try:
        info.type_info(typing.Annotated[type_, meta])
    except TypeError:
        return False
    return True


def _library(one: Any) -> str:
    module = type(one).__module__.partition(".")[0]
    return module if module in ("annotated_types", "pydantic") else ""


def _is_doc(one: Any) -> bool:
    return type(one).__name__ == "Doc" and hasattr(one, "documentation")


def _shown(type_: Any) -> str:
    return getattr(type_, "__name__", None) or str(type_).replace("typing.", "")
