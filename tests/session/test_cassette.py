"""A tape plays back everything a turn changes: typed slices, memory and permissions too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from digging import Outside, Stone, new_game, play, trusted_world, world

from narratoria.play.turn import take_turn
from narratoria.run.resolve import ToolRefused, ToolResolver
from narratoria.session import Session
from narratoria.store.portable import export_session, import_session
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import Store
from narratoria.testing import Cassette, cassette


def taped(store: Store, session_id: str, folder: Path) -> Cassette:
    export_session(store, session_id, folder / "tape.narratoria")
    return cassette(folder / "tape.narratoria")


async def played_back(tape: Cassette) -> Session:
    session, narrator, registry = tape.session(), tape.narrator(), tape.registry()
    for prompt in tape.prompts:
        await take_turn(session, prompt, narrator=narrator, registry=registry)
    return session


async def test_a_tape_plays_typed_slices_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 3", "talk")
    await journal.close()
    session = await played_back(taped(store, journal.session.id, tmp_path))
    assert session[Stone].all() == (Stone(1), Stone(3))
    assert world(session) == world(journal.session)
    store.close()


@dataclass(frozen=True)
class Pile:
    """What a reducer keeps of all stones: the largest."""

    largest: int


async def test_a_slice_that_a_reducer_rewrites_is_played_back_as_it_was(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    session = Session(assets=store.assets)
    session.register_reducer(
        Stone,
        lambda values, stone: (Pile(max([stone.n, *[pile.largest for pile in values]])),),
        slice_type=Pile,
    )
    journal = store.create(session)
    await play(journal, Outside(tmp_path).registry(), "dig 4", "dig 2", "dig 9")
    await journal.close()
    again = await played_back(taped(store, session.id, tmp_path))
    assert again[Pile].all() == (Pile(9),)
    store.close()


async def test_calls_that_commit_in_another_order_lose_no_value(tmp_path: Path) -> None:
    """A value that was added is added to what is there now, not to what was there then."""
    store = SqliteStore(tmp_path / "sessions.db")
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 2")
    await journal.close()
    tape = taped(store, journal.session.id, tmp_path)
    session, registry = tape.session(), tape.registry()
    for n in (2, 1):
        assert (await registry.execute("dig", {"n": n}, session=session)).success
    assert session[Stone].all() == (Stone(2), Stone(1))
    store.close()


async def test_a_session_that_held_something_when_it_was_first_kept_takes_it_along(tmp_path: Path) -> None:
    session = Session(state={"start": True}, permissions=["begin"])
    session.dispatch(Stone(7))
    session.memory.write("long-term", "name", "Ada")
    session.memory.write("episodic", "met", 1)
    session.memory.write("episodic", "met", 2)
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(session)
    await journal.close()
    expected = world(session)
    assert world(store.restore(session.id)) == expected
    tape = taped(store, session.id, tmp_path)
    assert world(tape.session()) == expected
    elsewhere = SqliteStore(tmp_path / "elsewhere" / "sessions.db")
    taken = import_session(elsewhere, tmp_path / "tape.narratoria")
    assert trusted_world(elsewhere, taken.id, expected) == expected
    elsewhere.close()
    store.close()


async def test_an_undo_takes_a_played_back_slice_back(tmp_path: Path) -> None:
    """Played into a store, a tape makes a session like any other."""
    from narratoria.play.history import undo

    store = SqliteStore(tmp_path / "sessions.db")
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1", "dig 3")
    await journal.close()
    tape = taped(store, journal.session.id, tmp_path)
    session, narrator, registry = tape.session(), tape.narrator(), tape.registry()
    again = store.create(session)
    for prompt in tape.prompts:
        await take_turn(session, prompt, narrator=narrator, registry=registry)
    await undo(again, registry)
    assert session[Stone].all() == (Stone(1),)
    await again.close()
    assert world(store.restore(session.id)) == world(session)
    store.close()


async def test_a_path_on_no_tape_is_said_to_be_nowhere(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    journal = new_game(store)
    await play(journal, Outside(tmp_path).registry(), "dig 1")
    await journal.close()
    tape = taped(store, journal.session.id, tmp_path)
    with pytest.raises(ToolRefused, match="not a registered name, and no folder is allowed to look for"):
        ToolResolver(tape.registry()).resolve("tools/sing")
    store.close()
