"""The state of a story, or a part of it, as indented lines for `/state`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Final

from narratoria.errors import NarratoriaError

_LONGEST: Final = 400  # lines
_WIDEST: Final = 200  # characters of a value


class NoSuchPath(NarratoriaError):
    """A path at which the state has nothing."""


def part_of(state: Any, path: str) -> Any:
    """Return the part at a path such as `inventory.torch` or `log.0`. A name with dots in it is found too."""
    value, walked, names = state, "", path.split(".") if path else []
    while names:
        for size in range(len(names), 0, -1):
            name = ".".join(names[:size])
            if isinstance(value, Mapping) and name in value:
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
            else:
                continue
            walked, names = f"{walked}.{name}".strip("."), names[size:]
            break
        else:
            raise NoSuchPath(_nothing(value, walked, names[0]))
    return value


def _nothing(value: Any, walked: str, name: str) -> str:
    where = f"the state has no {f'{walked}.{name}'.strip('.')}"
    if not isinstance(value, Mapping) or not value:
        return where
    keys = [str(key) for key in value]
    near = difflib.get_close_matches(name, keys, 1)
    there = ", ".join(keys[:12]) + (", …" if len(keys) > 12 else "")
    return f"{where}; did you mean {near[0]}?" if near else f"{where}; there: {there}"


def state_lines(value: Any) -> list[str]:
    lines = list(_lines(value, 0))
    left = len(lines) - _LONGEST
    return lines if left <= 0 else [*lines[:_LONGEST], f"… {left:,} more lines; /state PATH shows a part"]


def _lines(value: Any, depth: int) -> list[str]:
    margin = "  " * depth
    if isinstance(value, Mapping) and value:
        parts = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value):
        parts = [(str(at), one) for at, one in enumerate(value)]
    else:
        return [f"{margin}{_leaf(value)}"]
    found = []
    for name, one in parts:
        nested = isinstance(one, Mapping | list) and any(
            isinstance(inner, Mapping | list)
            for inner in (one if isinstance(one, list) else [{}] if one else [])
        )
        if nested:
            found += [f"{margin}{name}:", *_lines(one, depth + 1)]
        else:
            found.append(f"{margin}{name}: {_leaf(one)}")
    return found


def _leaf(value: Any) -> str:
    """Return a value in one line: texts as they are, the rest as JSON; a list of them with commas."""
    if isinstance(value, str):
        text = " ".join(value.split()) or '""'
    elif isinstance(value, list) and value:
        text = ", ".join(_leaf(one) for one in value)
    elif isinstance(value, Mapping) and not value:
        text = "(nothing)"
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
