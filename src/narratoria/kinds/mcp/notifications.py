"""Notifications of an MCP server: progress and logs as events of a call, and changes of its tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from narratoria.events import LogLevel
from narratoria.tools.tool import ToolContext

if TYPE_CHECKING:
    from mcp import Client

logger = logging.getLogger("narratoria.mcp")

MOST_NOTES: Final = 1_000
"""Notifications of one call that become events."""
LONGEST_NOTE: Final = 10_000
_LEVELS: Final[dict[str, LogLevel]] = {"debug": "debug", "info": "info", "notice": "info", "warning": "warn"}


def level_of(level: str) -> LogLevel:
    """Return the level of an MCP log as ours; those above a warning are errors."""
    return _LEVELS.get(level, "error")


class Notes:
    """The notifications of one call, as events; those beyond the cap are counted only."""

    def __init__(self, context: ToolContext, safe: Callable[[str], str]) -> None:
        self._context = context
        self._safe = safe
        self._count = 0
        self._progressed: str | None = None  # the message of the last progress

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        fields: dict[str, Any] = {"done": progress}
        if total:
            fields["progress"] = min(1.0, max(0.0, progress / total))
            fields["total"] = total
        self._progressed = message
        self._note(message or (f"{progress:g} of {total:g}" if total else f"{progress:g}"), "info", fields)

    def note(self, text: str, level: LogLevel, fields: Mapping[str, Any]) -> None:
        """Tell a log, unless the progress before it said the same: some servers send both, as ours does."""
        progressed, self._progressed = self._progressed, None
        if text != progressed or level != "info":
            self._note(text, level, fields)

    def _note(self, text: str, level: LogLevel, fields: Mapping[str, Any]) -> None:
        self._count += 1
        if self._count == MOST_NOTES:
            text, level, fields = f"more than {MOST_NOTES:,} notifications; the rest is left out", "warn", {}
        if self._count <= MOST_NOTES:
            self._context.log(self._safe(text)[:LONGEST_NOTE], level, **fields)


async def hear_changes(client: Client, changed: Callable[[], None]) -> None:
    """Hear of changed tools on connections that send such news only on request (2026-07-28)."""
    from mcp import MCPError
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    tools = client.server_capabilities.tools
    if tools is None or not tools.list_changed:
        return
    try:
        async with client.listen(tools_list_changed=True) as subscription:
            async for _ in subscription:
                changed()
    except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError) as error:
        logger.debug("no news of changed tools: %s", error)


def text_of(data: Any) -> str:
    """Return the data of a log as text: its `message`, where it has one."""
    if isinstance(data, Mapping) and isinstance(data.get("message"), str):
        return str(data["message"])
    if isinstance(data, str):
        return data
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, ValueError):
        return str(data)
