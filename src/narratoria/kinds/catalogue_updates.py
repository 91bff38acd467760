"""Keeps a registry in step with a source whose tools come and go: MCP servers, OpenAPI documents, skills."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from narratoria.tools.tool import Tool

AnyTool = Tool[Any, Any]


class Catalogue(Protocol):
    """The part of a registry that is kept in step with a source."""

    tools: dict[str, AnyTool]

    def register(self, tool: AnyTool) -> None: ...


def replace_tools(
    registry: Catalogue,
    before: Collection[AnyTool],
    after: Collection[AnyTool],
    notes: list[str],
    source: str | None = None,
) -> None:
    """Put the tools `after` in the place of those `before`. A name that is taken stays with its owner, which goes to
    `notes` once; `source` names the other, else its origin does.
    """
    for old in before:
        if old not in after and registry.tools.get(old.name) is old:
            del registry.tools[old.name]
    for new in after:
        there = registry.tools.get(new.name)
        if there is None:
            registry.register(new)
        elif there is not new:
            note = f"{new.name}: another tool has this name; that of {source or new.origin} is left out"
            if note not in notes:
                notes.append(note)
