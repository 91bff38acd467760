"""One life of a connection to an MCP server: what its owner and the calls tell each other, and the sign of life."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp import Client

    from narratoria.kinds.mcp.connection import ServerUnavailable
    from narratoria.kinds.mcp.notifications import Notes
    from narratoria.kinds.mcp.server_process import ServerProcess

LIFE_SIGN: Final = 3.0
"""Seconds for a sign of life after a call took too long."""
EXPIRED: Final = "Session terminated"
"""The official client's words for a 404 in a session, of 2025-11-25."""
REFUSED: Final = "Server returned an error response"
"""Its words for an HTTP error that is no answer of the protocol."""

CLOSED: Final = "Connection closed"
"""Its words where the connection ended. Servers use the same code for errors of their own."""


class Life:
    """One life of a connection, in one event loop: from its start to its end."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.client: Client | None = None
        self.process: ServerProcess | None = None
        self.settled = asyncio.Event()
        """Set while it can be used, and once it is over."""
        self.news = asyncio.Event()
        self.closing = False
        self.doubted = False
        self.changed = False
        self.over = False
        self.failure: ServerUnavailable | None = None
        self.calls: dict[int, Notes] = {}
        self.told_noise = 0
        self.mended: list[str] = []
        """Parts of the server's answers that were left out, and not told yet."""
        self.refused: int | None = None
        """The HTTP status with which the server asked for a login."""

    @property
    def gone(self) -> bool:
        """True once the connection, or the process at its other end, has ended."""
        return self.over or (self.process is not None and self.process.over)

    def wake(self) -> None:
        self.news.set()

    def note_change(self) -> None:
        self.changed = True
        self.wake()

    def close(self) -> None:
        self.closing = True
        self.wake()

    def doubt(self) -> None:
        """Ask for a sign of life; calls wait meanwhile."""
        if not self.over:
            self.doubted = True
            self.settled.clear()
            self.wake()


async def gives_sign(client: Client) -> bool:
    """Tell if the server gives a sign of life; an error is one too."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    try:
        async with asyncio.timeout(LIFE_SIGN):
            if client.session.discover_result is not None:  # 2026-07-28 has no ping
                await client.session.send_discover(client.protocol_version)
            else:
                await client.session.send_ping()
    except TimeoutError:
        return False
    except MCPError as error:
        closed = error.code == CONNECTION_CLOSED and error.message == CLOSED
        return not closed and error.message not in (EXPIRED, REFUSED)
    return True


def in_words(error: BaseException) -> str:
    """Return an exception in words, on one line; of a group, the first that is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__
