"""`narratoria serve`: one of several servers over one database, behind a load balancer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

import click
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from narratoria.errors import JournalError, SessionElsewhere
from narratoria.kinds.foreign_sources import ToolSources
from narratoria.kinds.process.custody import sweep
from narratoria.kinds.process.ending import SERVER_SECONDS, end_within
from narratoria.kinds.shares.limits import default_limits
from narratoria.kinds.shares.shares import Shares
from narratoria.run.cores import usable_cores
from narratoria.store.default_store import STORES
from narratoria.store.postgres import PostgresStore, open_address
from narratoria.web.access import LOOPBACK
from narratoria.web.accounts import Accounts
from narratoria.web.app import create_app
from narratoria.web.connections import Connections, Limits
from narratoria.web.fonts import fonts_folder
from narratoria.web.forwarding import Forwarding, Recording
from narratoria.web.games import Unavailable
from narratoria.web.json_responses import explain
from narratoria.web.listening import HttpServer, host_name, listen
from narratoria.web.metrics import CONTENT_TYPE, of_shares, of_the_process
from narratoria.web.permissions import Permissions
from narratoria.web.player_limits import PlayerLimits, PlayerRates
from narratoria.web.repeated_records import keep_short
from narratoria.web.shared_games import IDLE_SECONDS, SharedGames
from narratoria.web.shared_token import COOKIE

THREADS: Final = 32  # that wait for the database
TOTAL_CONNECTIONS: Final = 12_000
DRAIN_SECONDS: Final = 20.0
NOTICED_SECONDS: Final = 1.0
"""Seconds for which a server that ends still takes connections: its load balancer has to notice first."""
LOOK_SECONDS: Final = 2.0  # between looks at who may still follow a session
SWEEP_LOOKS: Final = 300
ADVICE: Final = "name another port with --port"


@dataclass(slots=True)
class SharedServer:
    """One server. It ends on SIGTERM: it says that it is not ready, gives its sessions to the others, and stops."""

    store: PostgresStore
    access: Accounts
    home: Path
    host: str = "127.0.0.1"
    port: int = 0
    hosts: Collection[str] = ()
    drain_seconds: float = DRAIN_SECONDS
    idle_seconds: float = IDLE_SECONDS
    narrators: Sequence[str] = ()
    sources: ToolSources | None = None
    skills: Sequence[Path] = ()
    rates: PlayerRates = field(default_factory=PlayerRates)
    shares: Shares = field(default_factory=lambda: Shares(default_limits(usable_cores())))
    games: SharedGames = field(init=False)
    _forwarding: Forwarding = field(init=False)
    _permissions: Permissions = field(init=False)
    _limits: Limits = field(init=False)

    def bind(self) -> socket.socket:
        """Listen on the given port; 0 asks for any free one."""
        listener = listen(self.host, self.port, ADVICE)
        self.port = listener.getsockname()[1]
        return listener

    @property
    def address(self) -> str:
        """The address of this server itself, not that of its load balancer."""
        return f"http://{host_name(self.host)}:{self.port}/"

    async def serve(self, listener: socket.socket) -> None:
        """Serve until the process is asked to end."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
        app = self.make_app()
        keep_short("uvicorn.error", "asyncio", "narratoria")
        looking = [
            asyncio.create_task(self._forwarding.look_around()),
            asyncio.create_task(self._look_at_players()),
        ]
        try:
            await _DrainingServer(app, Connections(self._limits), self).serve(sockets=[listener])
        finally:
            for task in looking:
                task.cancel()
            await asyncio.gather(*looking, return_exceptions=True)
            await self._forwarding.close()

    def make_app(self) -> Starlette:
        """Make the application of this server."""
        self.games = SharedGames(
            self.store,
            idle_seconds=self.idle_seconds,
            narrators=tuple(self.narrators) or None,
            sources=self.sources,
            skills=self.skills,
            shares=self.shares,
        )
        self._forwarding = Forwarding(self.games)
        self._permissions = Permissions(self.store.players, self.games.shelf.is_cover)
        self._limits = _limits()
        app = create_app(
            self.games,
            sign_ins=self.access,
            cookie=COOKIE,
            hosts={host_name(self.host).lower(), *self.hosts} - LOOPBACK,
            streams=self._limits.streams,
            fonts=fonts_folder(self.home),
            more_routes=[
                Route("/healthz", self._healthy),
                Route("/readyz", self._ready),
                Route("/metrics", self._metrics),
                *self._sign_in_routes(),
            ],
            more_middleware=[Middleware(PlayerLimits, rates=self.rates), Middleware(Recording)],
            more_handlers={SessionElsewhere: self._forwarding.elsewhere, Unavailable: explain},
            guarded=self._permissions.guarded,
        )
        self._forwarding.app = app
        return app

    def _sign_in_routes(self) -> list[Route]:
        if self.access.provider is None:
            return []
        from narratoria.web.openid_pages import OpenIdPages  # needs an extra

        return OpenIdPages(self.access.provider, self.store.players, COOKIE).routes()

    async def _look_at_players(self) -> None:
        """End the streams of players who were signed out, or whose rights were taken away, at another server."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            looks += 1
            try:
                await self.access.look_around()
                await self._permissions.look_around()
                if looks % SWEEP_LOOKS == 0:
                    await asyncio.to_thread(self.store.players.sweep)
            except JournalError:
                continue  # the heartbeat says what is wrong

    # --- for load balancers and operators ------------------------------------------------------------------

    async def _healthy(self, request: Request) -> Response:
        return Response(b'{"status": "ok"}', media_type="application/json")

    @property
    def problem(self) -> str | None:
        """The reason for which this server should get no requests."""
        if self.games.draining:
            return "it is ending"
        if not self.games.keeper.beating:
            return "the database does not answer"
        return None

    async def _ready(self, request: Request) -> Response:
        problem = self.problem
        body = {"status": "ready"} if problem is None else {"status": "not ready", "problem": problem}
        return Response(json.dumps(body), 200 if problem is None else 503, media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        games = self.games
        figures = {
            "sessions_open": games.count,
            "sessions_followed": len(games.followers),
            "turns_running": games.running,
            "peers": games.keeper.peers,
            "ready": self.problem is None,
            **of_the_process(),
            **of_shares(self.shares),
        }
        return Response(games.metrics.render(figures), headers={"Content-Type": CONTENT_TYPE})


class _DrainingServer(HttpServer):
    """A server that gives its sessions to others before it ends."""

    def __init__(self, app: ASGIApp, connections: Connections, server: SharedServer) -> None:
        super().__init__(app, connections)
        self._server = server
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM and self._loop is not None and self._draining is None:
            end_within(self._server.drain_seconds + NOTICED_SECONDS + SERVER_SECONDS, 128 + sig)
            self._loop.call_soon_threadsafe(self._begin_drain, sig)
        else:
            super().handle_exit(sig, frame)

    def _begin_drain(self, sig: int) -> None:
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        games = self._server.games
        logging.getLogger("narratoria").warning("ending: %d sessions go to other servers", games.count)
        games.draining = True
        await asyncio.sleep(NOTICED_SECONDS)
        await games.drain(self._server.drain_seconds)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._server.games.begin_end()
        await super().shutdown(sockets)


def _limits() -> Limits:
    """Return limits for a server whose clients all come by one address, that of the load balancer."""
    own = Limits.of_this_process(TOTAL_CONNECTIONS)
    return Limits(total=own.total, per_address=own.total, streams=own.total * 3 // 4)


def serve_shared(server: SharedServer) -> int:
    """Serve until the process is asked to end."""

    async def run() -> None:
        listener = server.bind()
        click.echo(server.address)
        try:
            await server.serve(listener)
        finally:
            await asyncio.to_thread(server.store.close)
            await sweep()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
    return 0


def shared_store(address: str, home: Path) -> PostgresStore:
    """Open the database at an address, which must be one that servers can share."""
    scheme = address.partition("://")[0]
    if scheme not in STORES:
        raise click.UsageError(
            "several servers share a PostgreSQL database: set NARRATORIA_STORE=postgresql://…, or give --store. "
            "`narratoria sessions move` moves the sessions of a file there; `narratoria play` needs no database"
        )
    store = open_address(address, home)
    try:
        store.contents.check()
    except JournalError:
        store.close()
        raise
    return store
