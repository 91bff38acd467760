"""News for clients: who wants to hear of a changed list or resource, by either way of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from narratoria.mcp_server.client_connection import connection_of

Context = ServerRequestContext[Any, Any]
ListKind = Literal["tools", "prompts", "resources"]

_EVENTS: Final[dict[ListKind, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class Subscriptions:
    """Until 2025-11-25 a client hears of every changed list, and of the addresses it subscribed to; since 2026-07-28 it
    opens a stream that it listens to.
    """

    def __init__(self) -> None:
        self._bus = _Bus()
        self.listen = ListenHandler(self._bus)
        self._connections: dict[Connection, _Earlier] = {}
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def heard(self) -> bool:
        """True if there is a client to tell."""
        return bool(self._connections) or self._bus.listeners > 0

    async def admit(self, context: Context, params: types.NotificationParams | None) -> None:
        """Take up a client that has introduced itself, as those until 2025-11-25 do."""
        self._of(context)

    def _of(self, context: Context) -> _Earlier:
        connection = connection_of(context)
        known = self._connections.get(connection)
        if known is None:
            known = self._connections[connection] = _Earlier(connection)
            connection.exit_stack.push_async_callback(self._dismiss, connection)
        return known

    async def _dismiss(self, connection: Connection) -> None:
        if (gone := self._connections.pop(connection, None)) is not None:
            await gone.close()

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._of(context).wanted.add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._of(context).wanted.discard(str(params.uri))
        return types.EmptyResult()

    def tell(self, uri: str, *, more: bool) -> None:
        """Tell of a change at an address; `more` if the list of resources changed too."""
        for one in self._connections.values():
            if uri in one.wanted:
                one.send(f"updated {uri}", lambda to: to.send_resource_updated(uri))
        self._publish(ResourceUpdated(uri=uri))
        if more:
            self.tell_list("resources")

    def tell_list(self, kind: ListKind) -> None:
        """Tell that a list changed."""
        for one in self._connections.values():
            one.send(kind, _SENDERS[kind])
        self._publish(_EVENTS[kind])

    def _publish(self, event: ServerEvent) -> None:
        if self._bus.listeners:
            task = asyncio.get_running_loop().create_task(self._bus.publish(event))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    def close(self) -> None:
        self.listen.close()


class _Bus(InMemorySubscriptionBus):
    """The bus of the library, which also counts who listens."""

    listeners = 0

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        leave = super().subscribe(listener)
        self.listeners += 1
        left = False

        def unsubscribe() -> None:
            nonlocal left
            if not left:
                left = True
                self.listeners -= 1
                leave()

        return unsubscribe


_Send = Callable[[Connection], Any]
_SENDERS: Final[dict[ListKind, _Send]] = {
    "tools": lambda to: to.send_tool_list_changed(),
    "prompts": lambda to: to.send_prompt_list_changed(),
    "resources": lambda to: to.send_resource_list_changed(),
}


class _Earlier:
    """A client of a revision until 2025-11-25. The same news twice is sent once if the client has not read the first;
    one that reads nothing keeps nobody else waiting.
    """

    def __init__(self, connection: Connection) -> None:
        self.wanted: set[str] = set()
        """The addresses it subscribed to."""
        self._connection = connection
        self._waiting: dict[str, _Send] = {}
        self._task: asyncio.Task[None] | None = None

    def send(self, key: str, send: _Send) -> None:
        self._waiting[key] = send
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._waiting:
                await self._waiting.pop(next(iter(self._waiting)))(self._connection)
        finally:
            self._task = None

    async def close(self) -> None:
        if self._task is not None:
            task = self._task
            task.cancel()
            await asyncio.wait([task])
