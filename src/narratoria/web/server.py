"""`narratoria play`: a server on this machine, and a browser that opens on a story."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click
from starlette.types import ASGIApp

from narratoria.errors import NarratoriaError
from narratoria.kinds.foreign_sources import ToolSources
from narratoria.kinds.process.custody import sweep
from narratoria.play.story import Story
from narratoria.play.story_library import open_story
from narratoria.session.record import Sink
from narratoria.store.default_store import default_store
from narratoria.store.store import Store, data_home
from narratoria.web.access import LOOPBACK, cookie_name
from narratoria.web.app import create_app
from narratoria.web.browser_launch import clear_signposts, has_display, open_browser, signpost
from narratoria.web.catalogues import Catalogues
from narratoria.web.connections import Connections, Limits
from narratoria.web.fonts import fonts_folder
from narratoria.web.games import Games
from narratoria.web.listening import HttpServer, PortTaken, host_name, listen
from narratoria.web.repeated_records import keep_short
from narratoria.web.sign_ins import SignIns

DEFAULT_STORY: Final = "lighthouse"
PORTS: Final = (*range(8321, 8341), 0)  # where nobody says which: the first that is free
OPENING_SECONDS: Final = 60
SLOW_SECONDS: Final = 10


def serve(
    *,
    story: str | None = None,
    session_id: str | None = None,
    narrators: Sequence[str] = (),
    host: str = "127.0.0.1",
    port: int | None = None,
    browser: bool = True,
    sources: ToolSources | None = None,
    skills: Sequence[Path] = (),
    watched: bool = False,
    heard: Sink | None = None,
) -> int:
    """Serve until interrupted. Opens on `session_id`, on a new game of `story`, or where the player was last.

    Stories that are `watched` are read anew when their files are saved. `heard` hears all records of all games.
    """

    def games(store: Store, loaded: Story | None) -> Games:
        return Games(
            store,
            narrators=tuple(narrators) or None,
            extra=[loaded] if loaded else [],
            sources=sources,
            skills=skills,
            watched=watched,
            heard=heard,
        )

    return asyncio.run(_serve(story, session_id, host, port, browser, games))


async def _serve(
    story: str | None,
    session_id: str | None,
    host: str,
    port: int | None,
    browser: bool,
    make_games: Callable[[Store, Story | None], Games],
) -> int:
    loaded = await asyncio.to_thread(open_story, story) if story else None
    for line in loaded.warn() if loaded else ():
        click.echo(line, err=True)
    store = await asyncio.to_thread(default_store)
    try:
        games = make_games(store, loaded)
        server = Server(games, data_home(), host=host, port=port)
        listener = server.bind()
        path = await first_page(store, loaded, session_id, games)
        click.echo(
            f"{loaded.title if loaded else 'Narratoria'} is open at this address; Ctrl+C ends it.", err=True
        )
        click.echo(server.address(path))
        resumed = (await asyncio.to_thread(store.find, session_id)).id if session_id is not None else None
        opening = asyncio.create_task(_open(server, path)) if browser and has_display() else None
        try:
            await server.serve(listener, resumed=resumed)
        finally:
            if opening is not None:
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)
    finally:
        store.close()
    await sweep()
    return 0


async def first_page(store: Store, story: Story | None, session_id: str | None, games: Games) -> str:
    """Return the path of the page to open first."""
    if session_id is not None:
        meta = await asyncio.to_thread(store.find, session_id)
        await games.shelf.check(meta, story)
        session_id = meta.id
    elif story is not None:
        session_id = await games.create(story.id)
    else:
        session_id = await asyncio.to_thread(games.shelf.newest) or await games.create(DEFAULT_STORY)
    return f"/play/{quote(session_id)}"


async def _open(server: Server, path: str) -> None:
    """Open the browser, with a token of its own, and keep its redirecting file until it has connected."""
    token = server.sign_ins.new_token(OPENING_SECONDS)
    with signpost(server.home, server.address(path, token)) as place:
        open_browser(place)
        for waited in range(OPENING_SECONDS):
            if not server.sign_ins.waits(token):
                return
            if waited == SLOW_SECONDS:
                click.echo("No browser has come yet; paste the address above into one.", err=True)
            await asyncio.sleep(1)


def _show_next(address: str) -> None:
    click.echo(f"Somebody has signed in with that address. For another browser: {address}", err=True)


class _EndingServer(HttpServer):
    """A server that ends its streams: without this its end would wait for every viewer."""

    def __init__(self, app: ASGIApp, games: Games, connections: Connections, resumed: str | None) -> None:
        super().__init__(app, connections)
        self._games = games
        self._resumed = resumed

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._resumed is not None and self.started:
            with contextlib.suppress(NarratoriaError):  # the page says why it cannot be opened
                await self._games.open(self._resumed)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._games.begin_end()
        await super().shutdown(sockets)


@dataclass(slots=True)
class Server:
    """The server. It binds first, so that the address is known before anything is served."""

    games: Games
    home: Path
    host: str = "127.0.0.1"
    port: int | None = 0
    announce: Callable[[str], None] = _show_next  # an address that takes the place of one that was used
    limits: Limits = field(default_factory=Limits.of_this_process)
    sign_ins: SignIns = field(default_factory=SignIns)
    cuts_fonts: bool = True  # where the page's typefaces are not in the cache yet
    catalogues: Catalogues | None = None  # the languages of the page, if not those that come with it

    def bind(self) -> socket.socket:
        """Listen on the given port; 0 asks for any free one, None for the usual one or a near one."""
        if self.port is not None:
            return self._listen(self.port)
        for port in PORTS[:-1]:
            try:
                return self._listen(port)
            except PortTaken:
                continue
        return self._listen(PORTS[-1])

    def _listen(self, port: int) -> socket.socket:
        advice = "leave out --port to take a free one, or name another (under make: ARGS=--port=8400)"
        listener = listen(self.host, port, advice)
        self.port = listener.getsockname()[1]
        self.sign_ins = SignIns(self.home / "sign-ins" / f"{self.port}.json", used=self._print_again)
        self.sign_ins.print_token()
        return listener

    def _print_again(self) -> None:
        self.sign_ins.print_token()
        self.announce(self.address())

    @property
    def name(self) -> str:
        """The host to write into an address."""
        return host_name(self.host)

    def address(self, path: str = "/", token: str | None = None) -> str:
        """Return an address that signs one browser in."""
        return f"http://{self.name}:{self.port}{path}?token={token or self.sign_ins.printed}"

    async def serve(self, listener: socket.socket, *, resumed: str | None = None) -> None:
        """Serve until cancelled or until the process is asked to end.

        A turn that a crash left open in the session `resumed` is finished even if no page asks for it.
        """
        hosts = {self.name.lower()} - LOOPBACK
        with contextlib.suppress(OSError):  # the key that earlier versions made every cookie with
            (self.home / "web.key").unlink(missing_ok=True)
        clear_signposts(self.home, OPENING_SECONDS)
        app = create_app(
            self.games,
            sign_ins=self.sign_ins,
            cookie=cookie_name(listener.getsockname()[1]),
            hosts=hosts,
            streams=self.limits.streams,
            fonts=fonts_folder(self.home),
            cuts_fonts=self.cuts_fonts,
            catalogues=self.catalogues,
        )
        connections = Connections(self.limits)
        keep_short("uvicorn.error", "asyncio")
        await _EndingServer(app, self.games, connections, resumed).serve(sockets=[listener])
