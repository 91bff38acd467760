"""From values back to JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from narratoria.errors import ToolValidationError


def dump(value: Any) -> Any:
    """The value as JSON knows it: dataclasses and Structs become objects, enums their values, dates text."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_other)


def dump_json(value: Any) -> str:
    """The value as JSON text."""
    return msgspec.json.encode(value, enc_hook=_other).decode()


def _other(value: Any) -> Any:
    """What msgspec does not know itself: paths, and the read-only views of a session's state."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise ToolValidationError(
        f"{type(value).__qualname__} cannot be written as JSON; return a dataclass or plain data instead"
    )
