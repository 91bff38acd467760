"""The factory of tools that run on other machines."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, TypeVar

from narratoria.errors import ToolValidationError
from narratoria.kinds.conversation import Conversation
from narratoria.kinds.placement import Engine, FunctionJob, prepared
from narratoria.state import plain
from narratoria.tools.node_resources import Resources
from narratoria.tools.read_only import held_to_reading
from narratoria.tools.tool import Tool, ToolContext, ToolResult

P = TypeVar("P")
R = TypeVar("R")


def remote(tool: Tool[P, R], engine: Engine, resources: Resources | None = None) -> Tool[P, R]:
    """Return a tool that does the same on a machine of an engine, with these resources in place of its own.

    Of a Python function, the arguments, a copy of the state and the outputs of its dependencies go there, and its
    events and its result come back. A composition is refused, since its parts are placed, and a tool of an MCP server
    or an OpenAPI document: it runs at its server already.
    """
    if tool.kind.made_of_tools:
        raise ToolValidationError(f"tool {tool.name!r} is a composition; place its parts, and compose those")
    placed = copy.copy(tool)
    placed.resources = resources or tool.resources
    if tool.kind.is_function:
        handler = _Function(tool, engine, placed.resources or Resources())
        placed.is_async, placed.inline = True, False
        placed.handler = held_to_reading(handler.run, is_async=True) if tool.read_only else handler.run
    elif tool.kind.local_files:
        placed.engine = engine
    else:
        raise ToolValidationError(
            f"tool {tool.name!r}: it runs at {tool.origin}, and is not placed elsewhere"
        )
    return placed


@dataclass(frozen=True, eq=False)
class _Function:
    """The handler of a function that runs elsewhere."""

    tool: Tool[Any, Any]
    engine: Engine
    resources: Resources

    async def run(self, params: Any, *, context: ToolContext) -> ToolResult[Any]:
        if not self.engine.ready:
            await prepared(self.engine, context.session)
        job = FunctionJob(
            self.tool.name,
            self.tool.handler,
            params,
            context.call_id,
            plain(context.session.state),
            context.dependencies,
            context.time_limit,
            self.resources,
            context.session.root.assets.cap,
        )
        result: ToolResult[Any] = await self.engine.execute(job, Conversation(context))
        return result
