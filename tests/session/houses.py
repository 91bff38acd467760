"""A shared server inside a test: its application over a real database, without a socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from serving import MILL, TOKEN
from starlette.applications import Starlette

from narratoria.store.postgres import PostgresStore
from narratoria.web.accounts import Accounts
from narratoria.web.shared_server import SharedServer
from narratoria.web.shared_token import SharedToken


class House:
    """One server, and clients of it."""

    def __init__(self, server: SharedServer, app: Starlette) -> None:
        self.server = server
        self.app = app
        self.players = server.store.players
        self._clients: list[httpx.AsyncClient] = []

    def client(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A program with a token, or a browser that has none yet."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        made = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://127.0.0.1", headers=headers
        )
        self._clients.append(made)
        return made

    def player(self, name: str, role: Any = "player") -> httpx.AsyncClient:
        return self.client(self.players.make_token(name, role))

    @property
    def operator(self) -> httpx.AsyncClient:
        return self.client(TOKEN)

    async def close(self) -> None:
        for one in self._clients:
            await one.aclose()


@contextlib.asynccontextmanager
async def house(database: str, home: Path, *, provider: Any = None, **options: Any) -> AsyncIterator[House]:
    """Serve the mill. The home must be NARRATORIA_HOME."""
    (home / "stories").mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (home / "stories" / "mill").symlink_to(MILL)
    with contextlib.closing(PostgresStore(database, assets=home / "assets")) as store:
        access = Accounts(store.players, SharedToken(TOKEN), provider=provider)
        server = SharedServer(store, access, home, **options)
        app = server.make_app()
        made = House(server, app)
        async with app.router.lifespan_context(app):
            try:
                yield made
            finally:
                await made.close()


async def begin(player: httpx.AsyncClient) -> str:
    answer = await player.post("/sessions", json={"story": "mill"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def grind(player: httpx.AsyncClient, session: str, sack: int = 1) -> list[str]:
    """Play a turn to its end; return the hashes of the session's assets."""
    assert (
        await player.post(f"/sessions/{session}/prompt", json={"prompt": f"grind sack {sack}"})
    ).status_code == 202
    while True:
        card = (await player.get(f"/sessions/{session}")).json()
        if card["turns"] >= sack:
            assets = (await player.get(f"/sessions/{session}/assets")).json()
            return [one["hash"] for one in assets["assets"]]
        await asyncio.sleep(0.02)  # the turn runs in this process
