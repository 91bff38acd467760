"""The socket and the settings that every HTTP server of ours has: of the page and of MCP hosts."""

from __future__ import annotations

import asyncio
import errno
import socket
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from narratoria.errors import NarratoriaError
from narratoria.kinds.process.ending import SERVER_SECONDS, end_within
from narratoria.web.connections import ACCEPTED_AT_ONCE, QUEUE, Connections

EVERY_INTERFACE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to
GRACE_SECONDS: Final = 3


class PortTaken(NarratoriaError):
    """Another program listens on this port."""


def listen(host: str, port: int, advice: str) -> socket.socket:
    """Listen on an address; port 0 is any free one. `advice` says what to do if that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small writes at once; else each waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(QUEUE)  # a client that is quicker than the server waits instead of failing
    except OSError as error:
        listener.close()
        problem = PortTaken if error.errno == errno.EADDRINUSE else NarratoriaError
        raise problem(f"cannot listen on {host}:{port} ({error.strerror}); {advice}") from None
    return listener


def host_name(host: str) -> str:
    """Return the host as it is written in an address."""
    name = socket.gethostname() if host in EVERY_INTERFACE else host
    return f"[{name}]" if ":" in name else name


class HttpServer(uvicorn.Server):
    """A server of an application. Its end does not wait for clients that neither send nor read."""

    def __init__(self, app: ASGIApp, connections: Connections) -> None:
        super().__init__(_config(app, connections))
        self._connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the end, which a stalled loop would never see."""
        if not self.should_exit:
            end_within(SERVER_SECONDS, 128 + sig)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        stalled = asyncio.get_running_loop().call_later(GRACE_SECONDS / 2, self._connections.end_stalled)
        await super().shutdown(sockets)
        stalled.cancel()


def _config(app: ASGIApp, connections: Connections) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        http=connections.protocol(),
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        lifespan="on",
    )
