"""Text with `$name` placeholders, which are checked when the prompt is made, not when it is rendered."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Set
from string import Template as Placeholders
from typing import Any

from narratoria.errors import PromptValidationError
from narratoria.tools import schema


class Template:
    """A text in which `$name` and `${name}` are replaced; `$$` is a dollar sign. Values are put in as they are."""

    __slots__ = ("_placeholders", "names")

    def __init__(self, text: str, *, where: str) -> None:
        if not isinstance(text, str):
            raise PromptValidationError(f"{where}: expected text, got {type(text).__name__}")
        self._placeholders = Placeholders(textwrap.dedent(text).strip())
        if not self._placeholders.is_valid():
            raise PromptValidationError(
                f"{where}: a $ stands alone; write $name, ${{name}}, or $$ for a dollar sign"
            )
        self.names: Set[str] = frozenset(self._placeholders.get_identifiers())

    def check(self, fields: Set[str], *, where: str) -> None:
        """Refuse placeholders that no field fills."""
        unknown = sorted(self.names - fields)
        if unknown:
            known = f"the params have {', '.join(sorted(fields))}" if fields else "the section has no params"
            names = ", ".join(f"${name}" for name in unknown)
            raise PromptValidationError(f"{where}: nothing fills {names}; {known}")

    def render(self, values: Mapping[str, Any]) -> str:
        return self._placeholders.substitute({name: as_text(values[name]) for name in self.names})


def as_text(value: Any) -> str:
    """Return a value as text: text as it is, "" for None, JSON for a value with parts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return schema.dump_json(value)
