"""Turns on a server whose shares are used up, or that has too much to do."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from narratoria.kinds.shares.limits import ShareLimits
from narratoria.kinds.shares.quotas import Quota
from narratoria.kinds.shares.shares import Shares
from narratoria.play.story import Story
from narratoria.store.default_store import default_store
from narratoria.web.app import create_app
from narratoria.web.games import Games
from narratoria.web.shared_token import SharedToken

MILL = Path(__file__).parents[1] / "session" / "mill"
GRIND = {"prompt": "grind sack 1"}


@asynccontextmanager
async def served(
    tmp_path: Path, limits: ShareLimits
) -> AsyncIterator[tuple[Games, Shares, httpx.AsyncClient]]:
    folder = tmp_path / "mill"
    shutil.copytree(MILL, folder)
    grind = folder / "tools" / "grind"
    grind.write_text(grind.read_text().replace("time.sleep(0.003)", "time.sleep(0.06)"))
    store, shares = default_store(tmp_path / "home"), Shares(limits)
    games = Games(store, extra=[Story.load(folder)], covers=False, shares=shares)
    app = create_app(games, sign_ins=SharedToken("t"), cookie="c", cuts_fonts=False)
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers={"Authorization": "Bearer t"}
    )
    async with games, client:
        yield games, shares, client
    store.close()


async def begun(client: httpx.AsyncClient) -> str:
    answer = await client.post("/sessions", json={"story": "mill"})
    return f"/sessions/{answer.json()['id']}"


async def test_an_overloaded_server_sheds_new_turns_and_finishes_those_that_run(tmp_path: Path) -> None:
    limits = ShareLimits(processes=1, overload_seconds=0.1)
    async with served(tmp_path, limits) as (games, shares, client):
        sessions = [await begun(client) for _ in range(3)]
        for session in sessions[:2]:
            assert (await client.post(f"{session}/prompt", json=GRIND)).status_code == 202
        while shares.places.delay() <= 0.1:
            await asyncio.sleep(0.005)
        shed = await client.post(f"{sessions[2]}/prompt", json=GRIND, headers={"Accept-Language": "de"})
        assert (shed.status_code, shed.json()["error"]) == (503, "overloaded")
        assert int(shed.headers["Retry-After"]) >= 1
        assert shed.json()["message"].startswith(
            "Hier werden gerade zu viele Geschichten erzählt; versuch es in"
        )
        opened = [await games.open(one.rpartition("/")[2]) for one in sessions]
        await asyncio.wait([one.turn for one in opened[:2] if one.turn is not None], timeout=30)
        assert [one.session.turn_count for one in opened] == [1, 1, 0]
        assert all(one.session.snapshot()["count"]["ground"] for one in opened[:2])
        assert (await client.post(f"{sessions[2]}/prompt", json=GRIND)).status_code == 202
        await asyncio.wait([one.turn for one in opened if one.turn is not None], timeout=30)
        assert (shares.turns, shares.places.holding, shares.waiting, shares.shed_turns) == (0, 0, 0, 1)


async def test_a_used_up_quota_refuses_the_turn_before_anything_is_undone(tmp_path: Path) -> None:
    limits = ShareLimits(session=Quota(cpu_seconds_per_hour=0.001))
    async with served(tmp_path, limits) as (games, shares, client):
        session, other = await begun(client), await begun(client)
        assert (await client.post(f"{session}/prompt", json=GRIND)).status_code == 202
        opened = await games.open(session.rpartition("/")[2])
        assert opened.turn is not None
        await asyncio.wait([opened.turn], timeout=30)
        assert opened.session.turn_count == 1, "the turn that used it up was told to its end"
        for path, body in (("prompt", GRIND), ("continue", {}), ("retry", {})):
            refused = await client.post(f"{session}/{path}", json=body)
            assert (refused.status_code, refused.json()["error"]) == (429, "quota"), path
            assert int(refused.headers["Retry-After"]) > 60
            assert "this story has used the computing time there is for now" in refused.json()["message"]
        assert opened.journal.timeline.last == 1, "nothing was undone"
        assert (await client.post(f"{other}/prompt", json=GRIND)).status_code == 202
        assert (shares.refused_turns, shares.turns) == (3, 1)
        turn = (await games.open(other.rpartition("/")[2])).turn
        assert turn is not None
        await asyncio.wait([turn], timeout=30)


async def test_no_more_turns_run_at_once_than_the_server_may_have(tmp_path: Path) -> None:
    async with served(tmp_path, ShareLimits(turns=2)) as (games, shares, client):
        sessions = [await begun(client) for _ in range(5)]
        answers = await asyncio.gather(*[client.post(f"{one}/prompt", json=GRIND) for one in sessions])
        assert sorted(one.status_code for one in answers) == [202, 202, 503, 503, 503]
        turns = [(await games.open(one.rpartition("/")[2])).turn for one in sessions]
        await asyncio.wait([one for one in turns if one is not None], timeout=30)
        assert shares.turns == 0
