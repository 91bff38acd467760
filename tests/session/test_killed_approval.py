"""A question to a person outlives the process that asked it: the same one stands again, and an answer is kept."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from narratoria.events import ApprovalGiven, ApprovalRequested
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.session import Session
from narratoria.session.approvals import ApprovalAnswer
from narratoria.store.fold import fold
from narratoria.store.portable import export_session, import_session
from narratoria.store.sqlite import SqliteStore

PLAYER = Path(__file__).with_name("paying.py")
PROMPTS = pytest.mark.parametrize("prompt", ["pay", "pay inside another call"])


@contextlib.contextmanager
def playing(place: Path, mode: str, prompt: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, PLAYER, place, mode, prompt], stdout=subprocess.PIPE, text=True
    ) as player:
        try:
            yield player
        finally:
            player.kill()


def line(player: subprocess.Popen[str]) -> str:
    assert player.stdout is not None
    return player.stdout.readline().strip()


@PROMPTS
def test_after_a_kill_the_same_question_stands_again_under_its_id(tmp_path: Path, prompt: str) -> None:
    place = tmp_path / "a.db"
    with playing(place, "ask", prompt) as player:
        first = line(player)
    assert first.startswith("question approval-")
    with playing(place, "ask", prompt) as player:
        assert line(player) == first
    with playing(place, "finish", prompt) as player:
        assert line(player) == first
        assert line(player) == "paying 7"
        assert line(player) == "state {'paid': 7}"
        assert player.wait(30) == 0
    with contextlib.closing(SqliteStore(place)) as store:
        events = [record.event for record in store.read("game")]
        asked = [one for one in events if isinstance(one, ApprovalRequested)]
        given = [one for one in events if isinstance(one, ApprovalGiven)]
        assert [one.id for one in asked] == [one.id for one in given] == [first.split()[1]]
        (view,) = fold(store.read("game")).turns[-1].approvals
        assert (view.decision, view.edited_input, view.by) == ("edited", {"to": "ada", "amount": 7}, "a test")


@PROMPTS
def test_an_answer_that_is_written_down_is_not_asked_for_again(tmp_path: Path, prompt: str) -> None:
    place = tmp_path / "a.db"
    with playing(place, "answer", prompt) as player:
        assert line(player).startswith("question")
        assert line(player) == "paying 7"  # killed in the middle of the call
    with playing(place, "finish", prompt) as player:
        assert line(player) == "paying 7"
        assert line(player) == "state {'paid': 7}"
        assert player.wait(30) == 0


def test_an_imported_session_has_no_open_question(tmp_path: Path) -> None:
    with playing(tmp_path / "a.db", "ask", "pay") as player:
        line(player)
    file = io.BytesIO()
    with contextlib.closing(SqliteStore(tmp_path / "a.db")) as store:
        export_session(store, "game", file)
    file.seek(0)
    with contextlib.closing(SqliteStore(tmp_path / "b.db")) as store:
        meta = import_session(store, file)
        turn = fold(store.read(meta.id)).turns[-1]
        assert turn.outcome == "cancelled"
        assert [one.decision for one in turn.approvals] == ["cancelled"]
        session = store.open(meta.id).session
        assert session.approvals.pending == []


def write_story(root: Path) -> Story:
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(
        'title = "T"\npremise = "P"\nnarrator = ["rules"]\n[opening]\nnarrative = "N"\n'
    )
    (root / "narrator.toml").write_text(
        '[[rule]]\nid = "pay"\npatterns = ["pay"]\nnarrative = "You pay."\ncalls = [{ tool = "pay" }]\n'
    )
    (root / "tools" / "pay.tool.json").write_text(
        json.dumps({"name": "pay", "description": "Pays.", "approval": "always"})
    )
    pay = root / "tools" / "pay"
    pay.write_text(
        """#!/bin/sh
echo '{"version":"0","type":"state_patch","patch":{"paid":true}}'
echo '{"version":"0","type":"done","ok":true}'
"""
    )
    pay.chmod(0o755)
    return Story.load(root)


async def test_a_question_stands_again_from_every_kind_of_store(make_store, tmp_path: Path) -> None:
    tale = write_story(tmp_path / "tale")
    store = make_store()
    session = Session("game", state=tale.state, assets=store.assets)
    journal = store.create(session, story=tale.id)
    first = Game(tale, session)
    session.approvals.attended = True  # somebody will answer
    first.begin()
    turn = asyncio.create_task(first.prompt("pay"))
    while not any(isinstance(one.event, ApprovalRequested) for one in store.read("game")):
        await journal.flush()
        await asyncio.sleep(0.01)
    await journal.close()  # as when the server ends: what comes after is not recorded
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    store.close()

    async def agree(request: object) -> ApprovalAnswer:
        return ApprovalAnswer.approve(by="a test")

    again = make_store()
    reopened = again.open("game")
    reopened.session.approvals.approver = agree
    await Game(tale, reopened.session).resume()
    await reopened.flush()
    events = [record.event for record in again.read("game")]
    asked = {one.id for one in events if isinstance(one, ApprovalRequested)}
    given = [one for one in events if isinstance(one, ApprovalGiven)]
    assert (len(asked), [(one.id in asked, one.by) for one in given]) == (1, [(True, "a test")])
    assert reopened.session.snapshot() == {"paid": True}
    await reopened.close()
