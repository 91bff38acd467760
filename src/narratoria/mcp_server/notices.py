"""Progress and log notifications: what a call's events tell its client while the call runs."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from narratoria.events import (
    AnyRuntimeEvent,
    AssetDenied,
    CallEmitted,
    CallRetrying,
    JsonObject,
    Log,
    Notice,
    ToolErrorEvent,
    ToolEvent,
)
from narratoria.mcp_server.client_connection import connection_of

LEVELS: Final[tuple[types.LoggingLevel, ...]] = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
)  # fmt: skip
FROM: Final = {level: frozenset(LEVELS[index:]) for index, level in enumerate(LEVELS)}
DEFAULT_LEVEL: Final = "info"
LEVEL_KEY: Final = "narratoria.level"  # in the state of a connection
ROOM: Final = 1024
"""Notifications that may wait to be sent; beyond, the tool is asked to pause."""

_LEVEL: Final[dict[str, types.LoggingLevel]] = {
    "debug": "debug", "info": "info", "warn": "warning", "error": "error"
}  # fmt: skip


def connection_state(context: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """The data kept for the connection of a request."""
    return connection_of(context).state


class Notices:
    """The notifications of one request, sent in the order of its events."""

    def __init__(self, context: ServerRequestContext[Any, Any], logger: str) -> None:
        self.context = context
        self.logger = logger
        self._queue: deque[tuple[str, JsonObject]] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._steps = 0  # progress told by counting
        self._reached = 0.0
        meta = context.meta or {}
        self._wants_progress = meta.get("progress_token", meta.get("progressToken")) is not None
        self._levels = self._allowed()

    def _allowed(self) -> frozenset[types.LoggingLevel]:
        context = self.context
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:  # each request says what it wants to hear
            return allowed_log_levels(context.protocol_version, context.meta)
        return FROM[connection_state(context).get(LEVEL_KEY, DEFAULT_LEVEL)]

    @property
    def sending(self) -> bool:
        return self._sending is not None

    @property
    def full(self) -> bool:
        return len(self._queue) > ROOM

    def hear(self, event: AnyRuntimeEvent) -> None:
        """Tell the client of an event that was recorded."""
        if isinstance(event, CallEmitted):
            self.hear_tool(event.event)
        elif isinstance(event, Notice):
            self._log(_LEVEL[event.level], event.message)
        elif isinstance(event, AssetDenied):
            self._log("warning", event.reason)
        elif isinstance(event, CallRetrying):
            again = f"attempt {event.attempt} failed ({event.error_code}: {event.error}); again in {event.delay:g} s"
            self._log("warning", again)

    def hear_tool(self, event: ToolEvent) -> None:
        """Tell the client of an event that the tool emitted."""
        if isinstance(event, Log):
            if self._wants_progress:
                self._progress(event)
            fields = event.fields
            self._log(_LEVEL[event.level], {"message": event.message, **fields} if fields else event.message)
        elif isinstance(event, ToolErrorEvent):
            self._log("error", {"code": event.error_code, "message": event.error_message})

    def _progress(self, event: Log) -> None:
        """Tell progress: the numbers of the log's `progress` and `total`; without them, one step for each line."""
        fields = event.fields or {}
        told, total = _number(fields.get("progress")), _number(fields.get("total"))
        if told is not None:
            reached = self._steps + told
            whole = total if total is not None else 1.0 if told <= 1 else None
            whole = None if whole is None else self._steps + whole
        elif self._reached > self._steps:
            return  # it tells numbers: a plain line is no step
        else:
            self._steps += 1
            reached, whole = float(self._steps), None
        if reached <= self._reached and self._reached:
            return  # progress must increase
        self._reached = reached
        params: JsonObject = {"progress": reached, "message": event.message}
        if whole is not None:
            params["total"] = whole
        self._push("progress", params)

    def _log(self, level: types.LoggingLevel, data: Any) -> None:
        if level in self._levels:
            self._push("log", {"level": level, "logger": self.logger, "data": data})

    def _push(self, kind: str, params: JsonObject) -> None:
        self._queue.append((kind, params))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._queue:
                kind, params = self._queue.popleft()
                session = self.context.session
                if kind == "progress":
                    await session.report_progress(params["progress"], params.get("total"), params["message"])
                else:
                    await session.send_notification(
                        types.LoggingMessageNotification(
                            params=types.LoggingMessageNotificationParams(**params)
                        ),
                        self.context.request_id,
                    )
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._queue.clear()  # nobody listens any more
        finally:
            self._sending = None

    async def sent(self) -> None:
        """Wait until everything so far is sent: the answer comes last."""
        while self._sending is not None:
            await asyncio.wait([self._sending])


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
