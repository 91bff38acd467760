"""The connection that a request of an MCP client came by."""

from __future__ import annotations

from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext


def connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    """The connection of a request: it lasts as long as the client, where the request's session ends with its answer.

    The SDK gives handlers of the low-level server no public way to it.
    """
    return context.session._connection
