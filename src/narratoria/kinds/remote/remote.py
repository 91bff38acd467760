"""The factory of tools that run on other machines."""

from __future__ import annotations

import copy
from typing import TypeVar

from narratoria.errors import ToolValidationError
from narratoria.kinds.placement import Engine
from narratoria.tools.node_resources import Resources
from narratoria.tools.tool import Tool

P = TypeVar("P")
R = TypeVar("R")


def remote(tool: Tool[P, R], engine: Engine, resources: Resources | None = None) -> Tool[P, R]:
    """Return a tool that does the same on a machine of an engine, with these resources in place of its own.

    The parts of a composition are placed one by one. A tool of an MCP server or an OpenAPI document is refused: it runs
    at its server already.
    """
    placed = copy.copy(tool)
    placed.resources = resources or tool.resources
    if tool.kind.foreign and not tool.kind.local_files:
        raise ToolValidationError(
            f"tool {tool.name!r}: it runs at {tool.origin}, and is not placed elsewhere"
        )
    placed.engine = engine
    return placed
