"""Overrides of a prompt: section texts and tool descriptions, changed without changing the code."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from narratoria.bounds import DocumentFault
from narratoria.errors import PromptValidationError
from narratoria.strict_json import read
from narratoria.tools.tool import LONGEST_DESCRIPTION, Tool
from narratoria.typed_values import convert


class PromptOverrides(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Texts by section path, descriptions by tool name. A section that does not accept overrides keeps its own."""

    sections: dict[str, str] = {}
    tools: dict[str, str] = {}

    @classmethod
    def from_json(cls, text: str | bytes) -> PromptOverrides:
        """Read overrides from JSON text."""
        try:
            return convert(read(text.encode() if isinstance(text, str) else text), cls)
        except DocumentFault as problem:
            raise PromptValidationError(problem.at("prompt overrides")) from None
        except ValueError as problem:
            raise PromptValidationError(f"prompt overrides: {problem}") from None


def redescribed(tool: Tool[Any, Any], description: str, *, where: str) -> Tool[Any, Any]:
    """Return the same tool with another description."""
    if not tool.accepts_overrides:
        raise PromptValidationError(
            f"{where}: tool {tool.name!r} does not accept overrides; remove its override"
        )
    most = len(description) if tool.kind.foreign else LONGEST_DESCRIPTION
    if not isinstance(description, str) or not description.strip() or len(description) > most:
        raise PromptValidationError(f"{where}: the description of {tool.name!r} needs 1-{most} characters")
    changed = copy.copy(tool)
    changed.description = description
    return changed
