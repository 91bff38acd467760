"""An undo that is killed between two compensations goes on with the rest, and does none of them twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from digging import play, world
from unringing import SESSION, registry, silenced

from narratoria.errors import JournalError
from narratoria.events import EffectTakenBack, TurnUndone
from narratoria.play.game import Game
from narratoria.play.history import checkpoint, preview_undo, redo, return_to, undo
from narratoria.play.story import Story
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore

MILL = Path(__file__).with_name("mill")


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    script = Path(__file__).with_name("unringing.py")
    done = subprocess.run([sys.executable, script, tmp_path], timeout=60, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert silenced(tmp_path) == ["high"], "the last effect goes first, and the second was being taken back"
    return tmp_path


def opened(home: Path) -> Journal:
    return SqliteStore(home / "sessions.db").open(SESSION)


def undone(journal: Journal) -> list[int]:
    records = journal.store.read(SESSION)
    return [record.event.turn for record in records if isinstance(record.event, TurnUndone)]


async def test_the_next_opening_finishes_the_undo(killed: Path) -> None:
    journal = opened(killed)
    assert journal.timeline.undoing == 2
    assert journal.session.state["rung"] == 1, "until it is through, the turn stands"
    game = Game(Story.load(MILL), journal.session)
    game.registry = registry(killed)
    assert await game.resume() is None
    assert silenced(killed) == ["high", "middle", "low"]
    assert journal.session.snapshot() == {"start": True}
    assert (journal.timeline.undoing, journal.timeline.turns, undone(journal)) == (None, [1], [2])
    assert game.where_we_are().prompt == "talk"
    await journal.close()
    again = opened_again(journal)
    assert world(again.session) == world(journal.session)
    assert await Game(Story.load(MILL), again.session).resume() is None
    assert silenced(killed) == ["high", "middle", "low"]
    await again.close()


def opened_again(journal: Journal) -> Journal:
    return journal.store.open(SESSION)


async def test_undoing_again_does_only_the_rest_and_tells_of_all(killed: Path) -> None:
    journal = opened(killed)
    preview = await preview_undo(journal, registry(killed))
    assert (preview.turn, preview.compensated) == (2, ["the low bell rings", "the middle bell rings"])
    outcome = await undo(journal, registry(killed))
    assert outcome.compensated == ["the high bell rings", "the middle bell rings", "the low bell rings"]
    assert silenced(killed) == ["high", "middle", "low"]
    taken_back = [r.event for r in journal.store.read(SESSION) if isinstance(r.event, EffectTakenBack)]
    assert [(one.turn, one.effect) for one in taken_back] == [(2, 2), (2, 1), (2, 0)]
    await journal.close()


async def test_a_turn_taken_meanwhile_does_not_make_it_twice(killed: Path) -> None:
    """Nobody finished the undo first; what it had taken back is known when it comes to that turn again."""
    journal = opened(killed)
    await play(journal, registry(killed), "talk")
    await undo(journal, registry(killed))
    assert silenced(killed) == ["high"]
    await undo(journal, registry(killed))
    assert silenced(killed) == ["high", "middle", "low"]
    assert undone(journal) == [3, 2]
    await journal.close()


async def test_until_the_undo_is_through_nothing_else_moves(killed: Path) -> None:
    journal = opened(killed)
    for move in (redo(journal), checkpoint(journal, "here")):
        with pytest.raises(JournalError, match="undo of turn 2 was cut short; undo it again"):
            await move
    await journal.close()


async def test_a_turn_brought_back_by_force_is_not_taken_back_twice(killed: Path) -> None:
    journal = opened(killed)
    await undo(journal, registry(killed))
    with pytest.raises(JournalError, match=r"ring: the low bell rings.*say 'ring 1' again"):
        await redo(journal)
    await redo(journal, force=True)
    outcome = await undo(journal, registry(killed))
    assert (silenced(killed), outcome.compensated) == (["high", "middle", "low"], [])
    await journal.close()


async def test_a_later_turn_of_the_same_tool_is_taken_back_on_its_own(killed: Path) -> None:
    journal = opened(killed)
    await undo(journal, registry(killed))
    await checkpoint(journal, "quiet")
    await play(journal, registry(killed), "ring 2")
    await return_to(journal, "quiet", registry(killed))
    assert silenced(killed) == ["high", "middle", "low"] * 2
    assert journal.session.snapshot() == {"start": True}
    await journal.close()
