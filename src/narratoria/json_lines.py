"""The lines of keys in JSON files that people write, for messages about them.

The decoder keeps no positions. This walks over the same text once more, only when there is a mistake to point at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from narratoria import bounds
from narratoria.strict_json import BYTE_ORDER_MARK
from narratoria.toml_lines import KeyPath, key_path, nearest_line

_SIGN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*+:)?|[][{},]')
_BLANKS: Final = re.compile(r"\s*+")


def line_of(path: Path, key: str | KeyPath) -> int | None:
    """Return the line of a key in a JSON file, or that of the nearest object around it; None if it cannot be read."""
    try:
        lines = key_lines(bounds.read_file(path).removeprefix(BYTE_ORDER_MARK).decode())
    except (OSError, ValueError):
        return None
    return nearest_line(lines, key_path(key) if isinstance(key, str) else key)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each key and element of a JSON text, which must be valid."""
    found: dict[KeyPath, int] = {}
    for place, line in _walk(text):
        found.setdefault(place, line)
    return found


def _walk(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the path of each key and element, and its line."""
    places: list[Any] = []  # a key or an index in each object or array that is open
    at, line = 0, 1
    for found in _SIGN.finditer(text):
        sign = found[0]
        start = found.start()
        if sign[0] == '"':
            if not found[1] or not places:
                continue
            places[-1] = json.loads(sign[: -len(found[1])], strict=False)
        elif sign in "]}":
            del places[-1:]
            continue
        elif sign == "{":
            places.append("")
            continue
        else:
            if sign == "[":
                places.append(0)
            elif places and isinstance(places[-1], int):  # a comma
                places[-1] += 1
            else:
                continue
            start = _past_blanks(text, found.end())
        line += text.count("\n", at, start)
        at = start
        yield tuple(places), line


def _past_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
