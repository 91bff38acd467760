"""What a page gets of a game before it asks for the stream, and faults that cost one game only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.recorder import Recorder

from narratoria.events import Notice
from narratoria.play.game import Game
from narratoria.store.default_store import default_store
from narratoria.web import library
from narratoria.web.games import Games


async def test_a_page_waits_for_its_story_only_so_long(tmp_path: Path) -> None:
    store = default_store(tmp_path)
    async with Games(store, narrators=["rules"], patience=20) as games:
        session = await games.create("torch")
        look = await games.first_look(session)
    assert look is not None
    assert json.loads(look)["past"]["records"][0]["event"]["type"] == "session_started"
    async with Games(store, narrators=["rules"], patience=0) as games:
        assert await games.first_look(session) is None
        assert (await games.open(session)).session.id == session, "it is opened all the same"
    store.close()


async def test_of_a_session_that_is_not_there_nothing_is_looked_at(tmp_path: Path) -> None:
    store = default_store(tmp_path)
    async with Games(store, patience=20) as games:
        assert await games.first_look("nowhere") is None
    store.close()


async def test_a_fault_in_a_cover_a_look_or_a_turn_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_off(*given: Any, **named: Any) -> Any:
        raise RuntimeError("a fault")

    monkeypatch.setattr(library, "draw_cover", break_off)
    store = default_store(tmp_path)
    heard = Recorder()
    async with Games(store, narrators=["rules"], patience=20, heard=heard) as games:
        first, second = await games.create("torch"), await games.create("torch")
        with monkeypatch.context() as broken:
            broken.setattr(Games, "open", break_off)
            with pytest.raises(RuntimeError, match="a fault"):
                await games.first_look(first)
        one, other = await games.open(first), await games.open(second)
        with monkeypatch.context() as broken:
            broken.setattr(Game, "prompt", break_off)
            await games.prompt(first, "light the torch", "player")
            await asyncio.wait([one.turn], timeout=20)
        assert caplog.text.count("a task of the server failed") == 3
        await games.prompt(second, "light the torch", "player")
        await asyncio.wait([other.turn], timeout=20)
        await games.prompt(first, "light the torch", "player")
        await asyncio.wait([one.turn], timeout=20)
        assert [one.session.turn_count, other.session.turn_count] == [1, 1]
    (told,) = heard.of(Notice)
    assert "broke off by a fault of this program" in told.message
    store.close()


async def test_the_end_waits_for_no_cover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def never(*given: Any) -> str | None:
        begun.set()
        await asyncio.Event().wait()
        return None

    monkeypatch.setattr(library, "draw_cover", never)
    store = default_store(tmp_path)
    async with asyncio.timeout(20), Games(store):
        await begun.wait()
    store.close()
