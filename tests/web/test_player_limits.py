"""Limits on what one player may send."""

from __future__ import annotations

from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from narratoria.errors import NarratoriaError
from narratoria.web.callers import CALLER
from narratoria.web.json_responses import explain
from narratoria.web.player_limits import Bucket, PlayerLimits, PlayerRates


class Town:
    """A server of limited players. `role` and the sender's name come by headers, as if it knew them."""

    def __init__(self, **rates: Any) -> None:
        self.now = 0.0
        self.app = Starlette(
            routes=[Route("/", self.read, methods=["GET", "POST"])],
            exception_handlers={NarratoriaError: explain},
        )
        self.limits = PlayerLimits(self.app, rates=PlayerRates(**rates), clock=lambda: self.now)

    async def read(self, request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, role = dict(scope["headers"])[b"x-me"].decode().split("/")
        scope[CALLER] = {"player": name, "name": name, "role": role}
        await self.limits(scope, receive, send)

    async def ask(self, me: str, body: Any = None) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self), base_url="http://x") as client:
            return await client.request(
                "GET" if body is None else "POST", "/", content=body, headers={"x-me": me}
            )


async def test_a_player_who_asks_too_much_waits_and_nobody_else_does() -> None:
    town = Town(requests=3)
    statuses = [(await town.ask("anna/player")).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    answer = await town.ask("anna/player")
    assert answer.json()["error"] == "too_many" and answer.headers["retry-after"] == "20"
    assert (await town.ask("bob/guest")).status_code == 200
    assert [(await town.ask("olga/operator")).status_code for _ in range(9)] == [200] * 9
    town.now = 20
    assert [(await town.ask("anna/player")).status_code for _ in range(2)] == [200, 429]


async def test_bodies_are_limited_one_by_one_and_by_the_minute() -> None:
    town = Town(body_bytes=100, largest_body=60)
    assert (await town.ask("anna/player", b"x" * 61)).status_code == 413, "it said so"

    async def pieces() -> Any:
        for _ in range(7):
            yield b"x" * 10

    answer = await town.ask("anna/player", pieces())
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large"), "it did not say so"
    assert (await town.ask("anna/player", b"x" * 40)).status_code == 200
    answer = await town.ask("anna/player", b"x" * 30)
    assert (answer.status_code, answer.json()["error"]) == (429, "too_many")
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert (await town.ask("bob/player", b"x" * 60)).text == "60"
    town.now = 60
    assert (await town.ask("anna/player", b"x" * 30)).status_code == 200


def test_a_bucket_fills_evenly_and_not_beyond() -> None:
    bucket = Bucket(60, 0)
    assert bucket.take(60, 0) == 0 and bucket.take(5, 0) == 5 and bucket.take(5, 5) == 0
    assert bucket.take(60, 1_000) == 0 and bucket.take(1, 1_000) == 1
    assert not bucket.is_full(1_059) and bucket.is_full(1_060)


async def test_few_counts_are_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr("narratoria.web.player_limits.MOST", 2)
    town = Town(requests=3)
    for name in "abcdef":
        assert (await town.ask(f"{name}/player")).status_code == 200
    assert len(town.limits._buckets) <= 2
