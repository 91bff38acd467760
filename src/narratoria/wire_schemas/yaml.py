"""JSON values as YAML 1.2 that people like to read: enough for a contract, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

# Plain scalars only where no reader, old ones either, could take them for a number, a date, a flag or null.
_PLAIN: Final = re.compile(r"[A-Za-z$][A-Za-z0-9_$-]*(?: [A-Za-z][A-Za-z-]*)*")
_RESERVED: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def dump(value: Any) -> str:
    """`value` in block style, keys in their order."""
    if isinstance(value, dict | list) and value:
        return "\n".join(_block(value, 0)) + "\n"
    return _inline(value) + "\n"


def _block(value: Any, depth: int) -> Iterator[str]:
    pad = "  " * depth
    for key, item in value.items() if isinstance(value, dict) else ((None, item) for item in value):
        head = f"{pad}-" if key is None else f"{pad}{_scalar(key)}:"
        if not (isinstance(item, dict | list) and item) or _is_short(item):
            yield f"{head} {_inline(item)}"
        elif key is None:
            # `- first: …`, the rest of the item below it
            lines = _block(item, depth + 1)
            yield f"{head} {next(lines).lstrip()}"
            yield from lines
        else:
            yield head
            yield from _block(item, depth + 1)


def _is_short(item: Any) -> bool:
    """A list of a few plain words reads best on one line."""
    return (
        isinstance(item, list)
        and all(isinstance(part, str) for part in item)
        and sum(len(part) + 2 for part in item) < 80
    )


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return _scalar(value)
    if isinstance(value, list):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    if isinstance(value, float) and "." not in repr(value):
        return repr(value).replace("e", ".0e")  # old readers take 1e+16 for text
    return json.dumps(value)


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\U{ord(char):08x}"
