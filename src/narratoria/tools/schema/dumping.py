"""Conversion of values back to JSON."""

from __future__ import annotations

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
