"""Conversion of values back to JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from narratoria.errors import ToolValidationError


def dump(value: Any) -> Any:
    """Return the value as JSON data: dataclasses and Structs become objects, enums their values, dates text.

    Through JSON and back, so that the result is what a journal gives back: no tuples, no number keys.
    """
    kind = type(value)
    if value is None or kind is bool or (kind is str and value.isascii()):
        return value
    return msgspec.json.decode(_encode(value))


def dump_finite(value: Any, where: str) -> Any:
    """As `dump`, and refuse NaN and infinity: JSON has neither. They would be written as null, which removes a key of
    the state. `where` is the value in words.
    """
    kind = type(value)
    if value is None or kind is bool or (kind is str and value.isascii()):
        return value
    text = _encode(value)
    if b"null" in text and (found := _not_finite(msgspec.to_builtins(value, enc_hook=_other), where)):
        raise ToolValidationError(found)
    return msgspec.json.decode(text)


def _not_finite(value: Any, where: str) -> str | None:
    """Return the problem of the first number that JSON does not have, or None."""
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{where}: {value!r} is not a JSON number; give a finite one"
    if isinstance(value, dict):
        parts = [(one, f"{where}.{key}") for key, one in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [(one, f"{where}[{index}]") for index, one in enumerate(value)]
    else:
        return None
    return next((found for one, place in parts if (found := _not_finite(one, place))), None)


def dump_json(value: Any) -> str:
    """The value as JSON text."""
    return _encode(value).decode()


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_other)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ToolValidationError(
            f"{type(value).__qualname__} cannot be written as JSON: {error}; use a dataclass or plain data"
        ) from None


def _other(value: Any) -> Any:
    """Convert values that msgspec does not know: paths, pydantic models, the read-only views of a session's state."""
    if isinstance(value, PurePath):
        return str(value)
    if (serializer := getattr(value, "__pydantic_serializer__", None)) is not None:
        return serializer.to_python(value, mode="json", by_alias=True)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"there is no JSON for {type(value).__qualname__}")
