"""Type checks of Python values: `mismatch` looks into lists, mappings, unions, literals and fields.

Arguments are parsed by `narratoria.tools.schema`; this is for values already in the program: a handler's result and
the output of an example. Nothing is converted. The fields of dataclasses, Structs and NamedTuples are looked into too.
"""

from __future__ import annotations

import dataclasses
import datetime
import types
import typing
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Reversible, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, Union

from narratoria.tools import value_constraints
from narratoria.tools.schema.excerpts import quoted

_ALIAS: Final = getattr(typing, "TypeAliasType", None)  # `type X = …`, Python 3.12
_PLAIN: Final = frozenset((str, int, bool, float, dict, list, bytes))
_SCALARS: Final = frozenset((str, int, bool, float, bytes, type(None)))
_LISTS: Final = frozenset((Collection, Container, Iterable, Reversible, Sequence))  # arrays in a schema
_TEXTS: Final = (str, bytes, bytearray)
_UNDECORATED: Final = (type, types.GenericAlias, types.UnionType)
_NO_RULES: Final[dict[str, Any]] = {}
_MISSING: Final = object()
_QUALIFIERS: Final = (typing.Annotated, typing.Required, typing.NotRequired, typing.ClassVar, typing.Final)


def mismatch(value: Any, expected: Any) -> str | None:
    """Return the expected type and the misfit of `value`, as "list[int], but [1] is str"; None if it fits."""
    try:
        made: Any = type(value)
        if made is expected and (made in _PLAIN or _fits(made)(value)):  # most results are
            return None
    except (AttributeError, NameError, TypeError):  # a field that was never set, a type that is not known
        pass
    try:
        found = _misfit(value, expected, "")
    except RecursionError:  # a value that contains itself
        return None
    if found is None:
        return None
    where, got = found
    return f"{describe_type(expected)}, {f'but {where} is' if where else 'got'} {got}"


def plain_type(expected: Any) -> Any:
    """Return the type if every value of exactly that type fits: a class that declares no fields. Else a type that no
    value has.
    """
    return expected if isinstance(expected, type) and not _field_names(expected) else _NoValue


class _NoValue:
    """The type of no value."""


@lru_cache(1024)
def _fits(class_: type) -> Callable[[Any], bool]:
    """Return a quick test that a value of the class surely fits, compiled once: its fields are scalars or None."""
    types_: dict[str, Any] = {}
    tests: list[str] = []
    for name, hint in _typed_fields(class_):
        members = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
        if any(map(_constraints, (hint, *members))) or not _SCALARS.issuperset(map(_plain, members)):
            return _never
        is_one = []
        for member in members:
            types_[f"t{len(types_)}"] = _plain(member)
            is_one.append(f"type(value.{name}) is t{len(types_) - 1}")
        tests.append(f"({' or '.join(is_one)})")
    return eval(f"lambda value: {' and '.join(tests) or True}", types_)  # type: ignore[no-any-return]  # noqa: S307 - as dataclasses do; the names are identifiers


def _never(value: Any) -> bool:
    return False


def describe_type(expected: Any) -> str:
    if isinstance(expected, type) and not typing.get_args(expected):
        return expected.__name__
    return str(expected).replace("typing.", "")


def _misfit(value: Any, expected: Any, path: str) -> tuple[str, str] | None:
    """Return the path of the first part that does not fit, and its type or the constraint it breaks."""
    found = _misfit_of_type(value, _plain(expected), path)
    if found is None and (rules := _constraints(expected)):
        told = value_constraints.broken(value, rules)
        return None if told is None else (path, told)
    return found


def _misfit_of_type(value: Any, expected: Any, path: str) -> tuple[str, str] | None:
    if _says_nothing(expected):
        return None
    if isinstance(expected, type) and typing.get_origin(expected) is None:
        if typing.is_typeddict(expected):
            return _misfit_of_typed_dict(value, expected, path)
        return _misfit_of_fields(value, expected, path) if _is_a(value, expected) else (path, _kind(value))
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin is Union or origin is types.UnionType:
        return _misfit_of_union(value, arguments, path)
    if origin is Literal:
        fits = any(type(value) is type(one) and value == one for one in arguments)
        return None if fits else (path, repr(value))
    if origin is Callable:
        return None if callable(value) else (path, _kind(value))
    if not isinstance(origin, type):
        return None  # a form of annotation that this does not know
    if not _is_a(value, origin):
        return path, _kind(value)
    return _misfit_of_parts(value, origin, arguments, path)


def _misfit_of_union(value: Any, members: tuple[Any, ...], path: str) -> tuple[str, str] | None:
    misfits = [_misfit(value, member, path) for member in members]
    if None in misfits:
        return None
    # The member that fits from outside tells most: of list[int] | None, which item is wrong.
    deepest = max((one for one in misfits if one is not None), key=lambda one: len(one[0]))
    return deepest if len(deepest[0]) > len(path) else (path, _kind(value))


def _misfit_of_parts(
    value: Any, origin: type, arguments: tuple[Any, ...], path: str
) -> tuple[str, str] | None:
    if _fields(origin):
        return _misfit_of_fields(value, origin, path, arguments)
    if issubclass(origin, tuple):
        return _misfit_of_tuple(value, arguments, path)
    if issubclass(origin, Mapping) and len(arguments) == 2:
        of_key, of_value = arguments
        keys = _first_misfit(((key, key, of_key) for key in value), path)
        return keys or _first_misfit(((key, one, of_value) for key, one in value.items()), path)
    if issubclass(origin, Iterable) and isinstance(value, Collection) and len(arguments) == 1:
        item = arguments[0] if _constraints(arguments[0]) else _plain(arguments[0])
        if isinstance(item, type) and not _fields(item) and all(type(one) is item for one in value):
            return None
        return _first_misfit(((index, one, item) for index, one in enumerate(value)), path)
    return None  # a generic class of the author's own


def _misfit_of_tuple(value: tuple[Any, ...], arguments: tuple[Any, ...], path: str) -> tuple[str, str] | None:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _first_misfit(((index, one, arguments[0]) for index, one in enumerate(value)), path)
    if len(value) != len(arguments):
        return path, f"a tuple of {len(value)}"
    return _first_misfit(((index, one, arguments[index]) for index, one in enumerate(value)), path)


def _misfit_of_fields(
    value: Any, class_: type, path: str, arguments: tuple[Any, ...] = ()
) -> tuple[str, str] | None:
    variables = dict(zip(getattr(class_, "__parameters__", ()), arguments, strict=False)) if arguments else {}
    for name, hint in _fields(class_):
        one = getattr(value, name, _MISSING)
        if type(one) is hint and (hint in _PLAIN or not _fields(hint)):
            continue
        if one is _MISSING:
            return f"{path}.{name}", "missing"
        if found := _misfit(one, _filled(hint, variables), f"{path}.{name}"):
            return found
    return None


def _filled(hint: Any, variables: Mapping[Any, Any]) -> Any:
    """Return an annotation with the type variables of its class replaced, as in `list[T]`."""
    if not variables:
        return hint
    if isinstance(hint, TypeVar):
        return variables.get(hint, hint)
    inside = getattr(hint, "__parameters__", ())
    if not inside or isinstance(hint, type):
        return hint
    return hint[tuple(variables.get(one, one) for one in inside)]


def _fields(class_: type) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a class that say something, with their types."""
    try:
        return _typed_fields(class_)
    except (
        NameError,
        TypeError,
        AttributeError,
    ):  # a name that only a type checker finds, or not defined yet
        return ()


@lru_cache(1024)
def _typed_fields(class_: type) -> tuple[tuple[str, Any], ...]:
    names = _field_names(class_)
    hints = typing.get_type_hints(class_, include_extras=True) if names else {}
    return tuple(
        (name, hints[name] if _constraints(hints[name]) else _plain(hints[name]))
        for name in names
        if name in hints and not _is_free(hints[name])
    )


def _field_names(class_: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(class_):
        return tuple(field.name for field in dataclasses.fields(class_))
    if issubclass(class_, tuple):
        return getattr(class_, "_fields", ())
    return getattr(class_, "__struct_fields__", ())


def _is_free(hint: Any) -> bool:
    if _constraints(hint):
        return False
    hint = _plain(hint)
    return _says_nothing(hint) and not isinstance(hint, TypeVar)


def _first_misfit(parts: Iterable[tuple[Any, Any, Any]], path: str) -> tuple[str, str] | None:
    for key, one, expected in parts:
        found = _misfit(one, expected, f"{path}[{key!r}]")
        if found is not None:
            return found
    return None


def _misfit_of_typed_dict(value: Any, expected: Any, path: str) -> tuple[str, str] | None:
    if not isinstance(value, Mapping):
        return path, _kind(value)
    for key in sorted(expected.__required_keys__):
        if key not in value:
            return f"{path}[{key!r}]", "missing"
    hints = typing.get_type_hints(expected, include_extras=True)
    for key in value:
        if key not in hints:
            return f"{path}[{quoted(key)}]", "not declared"
    return _first_misfit(((key, value[key], hint) for key, hint in hints.items() if key in value), path)


def _plain(expected: Any) -> Any:
    """Return the annotation without decorations that do not affect the check."""
    while True:
        if typing.get_origin(expected) in _QUALIFIERS:
            expected = typing.get_args(expected)[0]
        elif hasattr(expected, "__supertype__"):  # a NewType
            expected = expected.__supertype__
        elif _ALIAS is not None and isinstance(expected, _ALIAS):
            expected = expected.__value__
        else:
            return type(None) if expected is None else expected


def _constraints(expected: Any) -> dict[str, Any]:
    """Return the constraints that an annotation states around its type."""
    if isinstance(
        expected, type | types.GenericAlias | types.UnionType
    ):  # most are: int, list[int], int | None
        return _NO_RULES
    found: dict[str, Any] = {}
    while True:
        origin = typing.get_origin(expected)
        if origin in _QUALIFIERS:
            if origin is typing.Annotated:
                found |= value_constraints.read(expected.__metadata__)
            expected = typing.get_args(expected)[0]
        elif hasattr(expected, "__supertype__"):
            expected = expected.__supertype__
        elif _ALIAS is not None and isinstance(expected, _ALIAS):
            expected = expected.__value__
        else:
            return found


def _says_nothing(expected: Any) -> bool:
    return expected is Any or expected is object or isinstance(expected, TypeVar | typing.ForwardRef | str)


def _is_a(value: Any, expected: type) -> bool:
    if expected is int or expected is float:  # true is not an int; an int will do for a float
        return isinstance(value, int if expected is int else int | float) and not isinstance(value, bool)
    if expected is datetime.date and isinstance(value, datetime.datetime):  # a subclass, written another way
        return False
    if isinstance(value, _TEXTS) and expected in _LISTS:
        return False
    try:
        return isinstance(value, expected)
    except TypeError:  # a Protocol that cannot be checked at run time
        return True


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
