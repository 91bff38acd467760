"""Templates of rules: texts and inputs with `{group}`, `{state.path}` and `{name|default}` in them.

`{state.inventory.*}` is a list of all texts that are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from narratoria.state import MISSING, lookup

_SLOT: Final = re.compile(r"\{\{|\}\}|\{([^{}|]*)(?:\|([^{}]*))?\}")


def slots(template: Any) -> set[str]:
    """The names a template refers to, at any depth."""
    if isinstance(template, str):
        return {match[1].strip() for match in _SLOT.finditer(template) if match[1] is not None}
    if isinstance(template, Mapping):
        return set().union(*(slots(value) for value in template.values()))
    if isinstance(template, list | tuple):
        return set().union(*(slots(value) for value in template))
    return set()


def fill(template: Any, groups: Mapping[str, str], state: Mapping[str, Any]) -> Any:
    """A template with its values. A string that is one slot takes the value itself, with its type."""
    if isinstance(template, Mapping):
        return {key: fill(value, groups, state) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, groups, state) for value in template]
    if not isinstance(template, str):
        return template
    alone = _SLOT.fullmatch(template)
    if alone and alone[1] is not None:
        return _value(alone, groups, state)
    return _SLOT.sub(lambda match: _text(match, groups, state), template)


def fill_state(text: str, state: Mapping[str, Any]) -> str:
    """A text with the values of its `{state.path}`; other braces stay."""
    return _SLOT.sub(
        lambda match: _text(match, {}, state) if _in_state(match) else match[0],
        text,
    )


def _in_state(match: re.Match[str]) -> bool:
    return match[1] is not None and match[1].strip().startswith("state.")


def _text(match: re.Match[str], groups: Mapping[str, str], state: Mapping[str, Any]) -> str:
    if match[1] is None:
        return match[0][0]
    value = _value(match, groups, state)
    return "" if value is None else str(value)


def _value(match: re.Match[str], groups: Mapping[str, str], state: Mapping[str, Any]) -> Any:
    name = match[1].strip()
    path = name.removesuffix(".*").split(".")[1:]
    value = lookup(state, path, MISSING) if _in_state(match) else groups.get(name, MISSING)
    if name.endswith(".*"):
        texts = value.values() if isinstance(value, Mapping) else ()
        value = "; ".join(text for text in texts if isinstance(text, str)) or MISSING
    return (match[2] if match[2] is not None else "") if value is MISSING else value
