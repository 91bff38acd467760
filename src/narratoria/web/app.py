"""The application: pages, API and access put together, and the server that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from narratoria.errors import NarratoriaError
from narratoria.session.store import Store
from narratoria.web.access import LOOPBACK, Access, load_key
from narratoria.web.api import OPERATIONS, Api, explain
from narratoria.web.games import Games
from narratoria.web.static_files import StaticFiles

DEFAULT_PORT: Final = 8417
GRACE_SECONDS: Final = 3
BACKLOG: Final = 128


def create_app(
    store: Store, *, token: str, key: bytes, port: int = DEFAULT_PORT, hosts: Collection[str] = ()
) -> Starlette:
    """Everything under one origin. `hosts` are names it may be called by besides those of the loopback."""
    games = Games(store)
    api = Api(games)
    files = StaticFiles()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with games:
            app.state.games = games
            yield

    routes = [Route(one.path, getattr(api, one.name), methods=[one.method]) for one in OPERATIONS]
    pages = [Route(path, files.page) for path in ("/", "/settings", "/play/{id}")]
    return Starlette(
        routes=[
            *routes,
            *pages,
            Route("/static/{path:path}", files.file),
            Route("/openapi.json", api.describe),
            Route("/api", api.reference),
        ],
        middleware=[Middleware(Access, token=token, key=key, port=port, hosts=hosts)],
        exception_handlers={NarratoriaError: explain},
        lifespan=lifespan,
    )


class _EndingServer(uvicorn.Server):
    """Streams never end by themselves: without this the end of the server would wait for every viewer."""

    def __init__(self, config: uvicorn.Config, app: Starlette) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.games.close_feeds()
        await super().shutdown(sockets)


@dataclass(slots=True)
class Server:
    """A page to open: bound first, so that the address is known before anything is served."""

    store: Store
    home: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def bind(self) -> socket.socket:
        """Listen on the port asked for, or on any free one where that is taken. `port=0` asks for any."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self.host, self.port))
            listener.listen(BACKLOG)  # a browser that is quicker than the server waits instead of failing
        except OSError as error:
            listener.close()
            raise NarratoriaError(
                f"cannot listen on {self.host}:{self.port} ({error.strerror}); choose another with --port"
            ) from None
        self.port = listener.getsockname()[1]
        return listener

    def address(self, path: str = "/") -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{path}?token={self.token}"

    async def serve(self, listener: socket.socket, ready: asyncio.Event | None = None) -> None:
        """Serve until cancelled or until the process is asked to end."""
        hosts = {self.host.lower()} - LOOPBACK
        app = create_app(
            self.store, token=self.token, key=load_key(self.home / "web.key"), port=self.port, hosts=hosts
        )
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
        )
        server = _EndingServer(config, app)
        if ready is not None:
            ready.set()
        await server.serve(sockets=[listener])
