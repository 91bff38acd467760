"""Values and paths as they stand in messages: short, whatever they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from narratoria.unicode_text import escaped

Path: TypeAlias = Sequence[str | int]

MAX_SHOWN: Final = 60
"""Cap on the characters of a value or a key in a message."""
MAX_EXCERPT: Final = 240
"""Cap on the characters of a foreign text in a message, such as what a decoder says of a document."""


def show_path(path: Path) -> str:
    """Return ['inner', 'counts', 0] as `inner.counts[0]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{show_key(part)}" for part in path)
    return text.removeprefix(".")


def show_key(key: str) -> str:
    """Return a key as it stands in a path; one that nobody would see, such as an empty one, in quotes."""
    return shorten(key, MAX_SHOWN) if key.strip() and key.isprintable() else quoted(key)


def show(value: Any) -> str:
    """Return the value as JSON if it is short, else a description; never the whole of something large."""
    if isinstance(value, str):
        return msgspec.json.encode(shorten(value, MAX_SHOWN)).decode()
    if isinstance(value, Mapping | list | tuple) and len(value) > 3:
        return (
            f"an object of {len(value)} keys"
            if isinstance(value, Mapping)
            else f"an array of {len(value)} items"
        )
    if isinstance(value, Mapping | list | tuple | int | float | bool | None):
        try:
            return shorten(msgspec.json.encode(value, enc_hook=repr).decode(), MAX_SHOWN)
        except (RecursionError, TypeError, ValueError, OverflowError):
            return "an object" if isinstance(value, Mapping) else shorten(type(value).__name__, MAX_SHOWN)
    return type(value).__name__


def quoted(value: Any) -> str:
    """Return a name or a path that somebody else wrote, in quotes and on one line; a long one is cut."""
    if isinstance(value, str):
        return repr(shorten(value, MAX_SHOWN))
    return shorten(repr(value), MAX_SHOWN)


def excerpt(text: object) -> str:
    """Return a text that quotes somebody else, on one line; of a long one its middle is left out, since a decoder
    says what is wrong at the beginning and where at the end.
    """
    text = str(text)
    if len(text) > MAX_EXCERPT:
        text = f"{text[: MAX_EXCERPT // 2]}…{text[-MAX_EXCERPT // 3 :]}"
    return escaped(text)


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
