"""Subscriptions to resources: who wants to hear of a change, by either way of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

from narratoria.mcp_server.client_connection import connection_of

Context = ServerRequestContext[Any, Any]


class Subscriptions:
    """Until 2025-11-25 a client subscribes to an address; since 2026-07-28 it opens a stream that it listens to."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._connections: dict[Any, set[str]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        connection = connection_of(context)
        if connection not in self._connections:
            self._connections[connection] = set()
            connection.exit_stack.callback(self._connections.pop, connection, None)
        self._connections[connection].add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._connections.get(connection_of(context), set()).discard(str(params.uri))
        return types.EmptyResult()

    def tell(self, uri: str, *, more: bool) -> None:
        """Tell of a change at an address; `more` if the list of resources changed too."""
        self._later(self._tell(uri, more))

    def tell_tools(self) -> None:
        """Tell that the list of tools changed."""
        self._later(self._bus.publish(ToolsListChanged()))

    def _later(self, telling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(telling)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _tell(self, uri: str, more: bool) -> None:
        for connection, wanted in list(self._connections.items()):
            if uri in wanted:
                await connection.send_resource_updated(uri)
            if more:
                await connection.send_resource_list_changed()
        await self._bus.publish(ResourceUpdated(uri=uri))
        if more:
            await self._bus.publish(ResourcesListChanged())

    def close(self) -> None:
        self.listen.close()
