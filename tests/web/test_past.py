"""A long story opens on its newest turns; what they are folded upon is right, whatever was undone before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from narratoria.events import Committed, Narration, PatchChange, SessionStarted, TurnCommitted, TurnStarted
from narratoria.play import history
from narratoria.session import Record, Session
from narratoria.session.draft_operations import PatchMade
from narratoria.state import merge
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore
from narratoria.web.turn_pages import JournalRecords, Window

Begin = Callable[[], Journal]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    store = SqliteStore(tmp_path / "sessions.db", assets=tmp_path / "assets")
    yield lambda: store.create(Session(state={"count": 0}), story="counting", title="Counting")
    store.close()


def take_turn(session: Session, value: int) -> None:
    session.turn = session.turn_count = session.turn_count + 1
    session.record(TurnStarted(turn=session.turn, prompt=f"count to {value}"))
    session.commit("", [PatchMade({"count": value, f"seen{session.turn % 7}": value})])
    session.record(Narration(text=f"{value}."))
    session.record(TurnCommitted(turn=session.turn))
    session.turn = None


def newest(journal: Journal, turns: int) -> Window:
    past = JournalRecords(journal.store, journal.session.id, journal.timeline)
    return past.newest(turns, journal.session.seq)


def folded(records: list[Record], counting: list[int]) -> Any:
    """What a page makes of these records: the state they begin with, and the patches of turns that count."""
    begun = records[0].event
    assert isinstance(begun, SessionStarted)
    state: Any = begun.state
    for record in records:
        if isinstance(record.event, Committed) and record.turn in counting:
            for change in record.event.changes:
                assert isinstance(change, PatchChange)
                state = merge(state, change.patch)
    return state


async def test_ten_thousand_turns_open_as_fifty(begin: Begin) -> None:
    journal = begin()
    for value in range(1, 10_001):
        take_turn(journal.session, value)
    await journal.commit_turn()
    window = newest(journal, 50)
    assert window.earlier == 9_950
    assert len(window.records) == 1 + 50 * 4
    assert window.records[0].seq == window.records[1].seq - 1
    assert folded(window.records, journal.timeline.turns) == journal.session.snapshot()
    await journal.close()


async def test_a_short_story_is_told_whole(begin: Begin) -> None:
    journal = begin()
    take_turn(journal.session, 1)
    await journal.commit_turn()
    window = newest(journal, 50)
    assert (window.earlier, window.records[0].seq) == (0, 1)
    await journal.close()


@pytest.mark.parametrize(
    ("undone", "redone", "later"), [(5, 0, 0), (5, 5, 0), (12, 3, 0), (12, 0, 4), (3, 1, 9)]
)
async def test_turns_taken_back_do_not_confuse_what_is_shown(
    begin: Begin, undone: int, redone: int, later: int
) -> None:
    journal = begin()
    for value in range(20):
        take_turn(journal.session, value)
    await journal.commit_turn()
    for _ in range(undone):
        await history.undo(journal)
    for _ in range(redone):
        await history.redo(journal)
    for value in range(later):
        take_turn(journal.session, 100 + value)
    await journal.commit_turn()
    for turns in (1, 3, 8):
        window = newest(journal, turns)
        assert window.earlier == len(journal.timeline.turns) - turns
        shown = {record.turn for record in window.records}
        assert set(journal.timeline.turns[-turns:]) <= shown
        assert folded(window.records, journal.timeline.turns) == journal.session.snapshot()
    await journal.close()
