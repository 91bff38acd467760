"""Files whose snapshot behind a gap was made to harm: what it leaves pending, counts or promises binds nobody here."""

from __future__ import annotations

import hashlib
import io
import time
from pathlib import Path
from typing import Any

import pytest
from vault import Script, packed, write_vault

from narratoria.errors import JournalError
from narratoria.play.game import Game
from narratoria.play.history import redo, undo
from narratoria.play.story import Story
from narratoria.store.default_store import default_store
from narratoria.store.portable import export_session, import_session
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import Store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    write_vault(tmp_path)
    return tmp_path


def opened(store: Store, session_id: str, home: Path) -> Game:
    story = Story.load(home / "stories" / "vault")
    return Game(story, store.open(session_id).session, narrators=["rules", "template"])


def snapshot(seq: int, timeline: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "seq": seq, "state": {"door": "shut"}, "memory": {}, "slices": [], "permissions": ["look"],
        "turns": [[0, 0]], "timeline": timeline or {}, **fields,
    }  # fmt: skip


def lost(resumed: dict[str, Any], script: Script | None = None) -> Script:
    """The record after the script's last was lost, and this snapshot stands for it."""
    script = script or Script(permissions=["look"])
    here = len(script.lines) + 1
    return script.add("records_lost", first=here, last=here, resumed=resumed)


LATER = 6  # the record of the loss: a beginning and an opening come before it


async def played_and_opened_again(home: Path, content: bytes) -> list[int]:
    """Import, take a turn of one's own, open it again; return the turns that count then."""
    store = default_store(home)
    meta = import_session(store, io.BytesIO(content))
    game = opened(store, meta.id, home)
    await game.resume()
    assert game.session.journal.timeline.undoing is None
    assert (await game.prompt("look")).outcome == "completed"
    await game.session.journal.close()
    ran = (home / "ran").read_text()
    again = opened(store, meta.id, home)
    await again.resume()
    assert (home / "ran").read_text() == ran, "opening a session runs nothing"
    turns = list(again.session.journal.timeline.turns)
    await again.session.journal.close()
    export_session(store, meta.id, home / "again.narratoria")
    import_session(store, home / "again.narratoria")
    store.close()
    return turns


@pytest.mark.parametrize("turn", [0, 1, 2])
async def test_an_undo_that_a_snapshot_left_pending_is_never_run(home: Path, turn: int) -> None:
    content = lost(snapshot(LATER, {"undoing": turn})).file()
    assert await played_and_opened_again(home, content) == [0, 1]


async def test_the_next_turn_is_not_one_that_a_snapshot_has_already(home: Path) -> None:
    script = Script(permissions=["look"]).rollback(1).rollback(2)
    content = lost(snapshot(len(script.lines) + 1, turns=[[0, 2]], turn_count=0), script).file()
    assert await played_and_opened_again(home, content) == [0, 1, 2, 3]


async def test_an_empty_snapshot_before_the_opening_lets_the_story_begin(home: Path) -> None:
    script = Script(permissions=["look"])
    del script.lines[1:]
    content = lost(snapshot(2, turns=[]), script).file()
    assert await played_and_opened_again(home, content) == [0, 1]


REFUSED: dict[str, tuple[Script, str]] = {
    "a snapshot that knows more than the journal": (lost(snapshot(7, {"undoing": 1})), "record 7"),
    "a snapshot that knows the far future": (lost(snapshot(1 << 40)), "record"),
    "an open turn": (lost(snapshot(LATER, {"open": 1})), "open"),
    "turns that no record can have had": (
        lost(snapshot(LATER, turns=[[0, 200]], turn_count=200)), "201 turns"),
    "a turn twice": (lost(snapshot(LATER, turns=[[0, 0], [0, 0]])), "out of order"),
    "a turn backwards": (lost(snapshot(LATER, turns=[[1, 0]])), "out of order"),
    "no opening where one was told": (lost(snapshot(LATER, turns=[])), "turn 0"),
    "an effect of a turn to come, taken back already": (
        lost(snapshot(LATER, {"taken_back": {"1": [["evil:1", 0]]}})), "turn 1"),
    "a checkpoint of a turn to come": (lost(snapshot(LATER, {"checkpoints": {"here": 1}})), "checkpoint"),
    "a dropped checkpoint of a turn to come": (lost(snapshot(LATER, {"dropped": {"here": 1}})), "checkpoint"),
    "a turn to come, taken back already": (lost(snapshot(LATER, {"undone": [1, 2]})), "out of order"),
    "a turn that counts and was taken back": (lost(snapshot(LATER, {"undone": [0]})), "out of order"),
    "completions below none": (lost(snapshot(LATER, {"completions": {"look": -5}})), "out of range"),
    "an asset of a record to come": (
        lost(snapshot(LATER, assets={"9": {"type": "asset_stored", "call": "c", "assetId": "a", "kind": "k",
             "mediaType": "text/plain", "hash": "0" * 64, "size": 1}})), "record 9"),
    "a loss in reverse": (Script().add("records_lost", first=6, last=2), "lost"),
    "a loss of what is here": (Script().add("records_lost", first=2, last=6, resumed=snapshot(6)), "lost"),
    "a snapshot in the middle of a turn": (
        lost(snapshot(7), Script().begin(1, "look")), "turn 1"),
    "the opening, taken back before": (lost(snapshot(LATER, {"undone": [0]}, turns=[])), "out of order"),
    "a snapshot from before the gap": (Script().lose(9, seq=12), "end of the gap"),
    "the opening, taken back": (Script().add("turn_undone", turn=0), "out of order"),
    "the undo of the opening": (Script().add("undo_started", turn=0), "out of order"),
    "a second opening, hidden behind a snapshot": (
        lost(snapshot(8, turns=[]), Script()), "turn 0"),
    "a turn without an end, hidden behind a snapshot": (
        lost(snapshot(7, turn_count=5)).begin(1, "look"), "turn 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_snapshot_that_no_session_has_is_refused(tmp_path: Path, what: str) -> None:
    script, reason = REFUSED[what]
    store = SqliteStore(tmp_path / "sessions.db")
    with pytest.raises(JournalError, match=reason) as refusal:
        import_session(store, io.BytesIO(script.file()))
    assert "nothing was imported" in str(refusal.value)
    assert store.list() == []
    store.close()


def test_a_snapshot_hidden_by_another_counts_for_nobody(home: Path) -> None:
    """The first knows up to record 7; the second, at record 7, is what the first knows already."""
    script = lost(snapshot(7, turns=[[0, 0]]))
    content = lost(snapshot(7, {"undoing": 0}, turns=[[0, 0]], turn_count=9), script).file()
    store = default_store(home)
    meta = import_session(store, io.BytesIO(content))
    assert store.timeline(meta.id).undoing is None
    assert store.restore(meta.id).turn_count == 0
    store.close()


@pytest.mark.parametrize("taken", [0, 1, 4])
async def test_a_session_whose_newest_turns_were_lost_goes_on(home: Path, taken: int) -> None:
    script = Script(permissions=["look"]).lose(100, turns=[[0, 40]], turn_count=40, choices=["Look"])
    for turn in range(41, 41 + taken):
        script.begin(turn, "look").add("narration", text="You look.").end(turn)
    store = default_store(home)
    game = opened(store, import_session(store, io.BytesIO(script.file())).id, home)
    await game.resume()
    assert game.where_we_are().turn == 40 + taken
    assert (await game.prompt("look")).outcome == "completed"
    await game.session.journal.close()
    export_session(store, game.session.id, home / "again.narratoria")
    assert import_session(store, home / "again.narratoria").turns == 41 + taken
    store.close()


def test_an_asset_that_only_a_snapshot_speaks_of_travels(home: Path) -> None:
    digest = hashlib.sha256(b"a picture").hexdigest()
    stored = {"call": "c", "assetId": "a", "kind": "k", "mediaType": "text/plain", "hash": digest, "size": 9}
    script = Script().lose(1, assets={"6": {"type": "asset_stored", **stored}})
    store = default_store(home)
    meta = import_session(store, io.BytesIO(script.file({digest: b"a picture"})))
    assert export_session(store, meta.id, home / "again.narratoria").assets == [digest]
    import_session(store, home / "again.narratoria")
    store.close()


async def test_a_session_without_an_opening_gets_none_when_its_first_turn_is_taken_back(home: Path) -> None:
    script = Script()
    del script.lines[1:]
    script.begin(1, "look").end(1).add("turn_undone", turn=1)
    store = default_store(home)
    game = opened(store, import_session(store, io.BytesIO(script.file())).id, home)
    assert await game.resume() is None
    await game.session.journal.close()
    export_session(store, game.session.id, home / "again.narratoria")
    import_session(store, home / "again.narratoria")
    store.close()


async def test_the_first_turn_behind_a_gap_is_taken_back_and_a_lost_one_is_not(home: Path) -> None:
    script = Script(permissions=["look"]).lose(1, turns=[[0, 1]], turn_count=1, state={"door": "open"})
    store = default_store(home)
    game = opened(store, import_session(store, io.BytesIO(script.file())).id, home)
    journal = game.session.journal
    await game.resume()
    turn = await game.prompt("look")
    assert (turn.outcome, journal.timeline.turns) == ("completed", [0, 1, 2])
    await undo(journal, game.registry)
    for _ in range(2):
        assert (journal.timeline.turns, game.session.snapshot()) == ([0, 1], {"door": "open"})
        with pytest.raises(JournalError, match="turn 1 were lost to damage: it can be neither taken back"):
            await undo(journal, game.registry)
    assert await redo(journal, force=True) == 2
    await journal.close()
    again = store.open(game.session.id)
    assert (again.timeline.turns, again.session.snapshot()) == ([0, 1, 2], game.session.snapshot())
    await again.close()
    store.close()


def test_memory_that_no_session_has_is_refused_in_a_snapshot(home: Path) -> None:
    store = default_store(home)
    with pytest.raises(JournalError, match=r"memory cannot be loaded.*nothing was imported"):
        import_session(store, io.BytesIO(Script().lose(1, memory={"attic": {}}).file()))
    assert list(store.list()) == []
    store.close()


# --- what small files cost -----------------------------------------------------------------------------------


def losses(number: int, turns: int) -> bytes:
    """Each line speaks of millions of turns in a few bytes."""
    script = Script()
    for _ in range(number):
        script.lose(turns, turns=[[0, turns - 1]], turn_count=turns - 1)
    return script.file()


@pytest.mark.parametrize(("number", "turns"), [(1, 3_999_999), (20, 900_000), (500, 90_000)])
def test_turns_that_a_file_only_counts_cost_little(tmp_path: Path, number: int, turns: int) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    content = losses(number, turns)
    began = time.process_time()
    with pytest.raises(JournalError, match="too many turns"):
        import_session(store, io.BytesIO(content))
    assert time.process_time() - began < 3
    store.close()


def test_lines_that_hold_nothing_are_refused_at_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    content = packed(Script().lines[0] + b"\n" + b"\n" * 50_000_000, 1)
    began = time.process_time()
    with pytest.raises(JournalError, match="line 2 is empty"):
        import_session(store, io.BytesIO(content))
    assert time.process_time() - began < 2
    store.close()


def test_a_large_turn_is_not_taken_back_and_brought_back_without_end(tmp_path: Path) -> None:
    """Each of these lines reads the whole turn again."""
    script = Script().begin(1, "look")
    for _ in range(5000):
        script.add("narration", text="x")
    script.end(1)
    for _ in range(1500):
        script.add("turn_undone", turn=1).add("turn_redone", turn=1)
    store = SqliteStore(tmp_path / "sessions.db")
    began = time.process_time()
    with pytest.raises(JournalError, match="too often"):
        import_session(store, io.BytesIO(script.file()))
    assert time.process_time() - began < 3
    store.close()
