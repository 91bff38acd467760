"""What a page gets of a game before it asks for the stream."""

from __future__ import annotations

import json
from pathlib import Path

from narratoria.store.default_store import default_store
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
