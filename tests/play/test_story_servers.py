"""A story with MCP servers: its turns are transactions like any other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from narratoria.errors import StoryInvalid
from narratoria.events import CallFinished
from narratoria.play import history
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.session import Session
from narratoria.store.default_store import default_store
from narratoria.store.fold import fold

SERVER = Path(__file__).parents[1] / "kinds" / "mcp" / "plain_server.py"
STORY = """
title = "The desk"
premise = "A desk and a pen."
narrator = ["rules"]
free_tools = ["trial.echo"]

[opening]
narrative = "You sit at a desk."
"""
RULES = """
[[rule]]
id = "write"
patterns = ["write note"]
narrative = "You write it down."
calls = [{ tool = "trial.write", input = { path = "NOTE", text = "milk" } }]

[[rule]]
id = "keep"
patterns = ["keep it"]
narrative = "You write it down, in ink."
calls = [{ tool = "trial.echo", input = { text = "hello" } }]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "narrator.toml").write_text(RULES.replace("NOTE", str(tmp_path / "note.txt")))
    return folder


def server(**settings: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVER)], "narratoria": settings}


def with_file(folder: Path, **settings: Any) -> Story:
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"trial": server(**settings)}}))
    (folder / "story.toml").write_text('mcp = "servers.json"\n' + STORY)
    return Story.load(folder)


async def begun(story: Story, tmp_path: Path) -> tuple[Game, Any, Any]:
    store = default_store(tmp_path / "home")
    session = Session(state=story.state, permissions=story.permissions, assets=store.assets)
    game = Game(story, session)
    journal = store.create(session, story=story.id, title=story.title)
    game.begin()
    return game, journal, store


async def test_a_turn_calls_a_tool_of_a_server_and_an_undo_says_what_stays(
    folder: Path, tmp_path: Path
) -> None:
    game, journal, store = await begun(with_file(folder), tmp_path)
    try:
        result = await game.prompt("write a note")
        assert result.narrative == "You write it down."
        assert (tmp_path / "note.txt").read_text() == "milk"
        preview = await history.preview_undo(journal, game.registry)
        assert preview.irreversible == ["trial.write: what trial.write did at its server (irreversible)"]
        undone = await history.undo(journal, game.registry)
        assert undone.irreversible == preview.irreversible
        assert (tmp_path / "note.txt").exists()
    finally:
        await game.close()
        await journal.close()
        store.close()


async def test_a_declared_rollback_takes_the_effect_back(folder: Path, tmp_path: Path) -> None:
    effect = {
        "type": "state_change",
        "state": "written",
        "value": True,
        "rollback": {"tool": "trial.remove", "input": {"path": {"$input": "path"}}},
    }
    story = with_file(folder, tools={"write": {"effects": [effect]}})
    game, journal, store = await begun(story, tmp_path)
    try:
        await game.prompt("write a note")
        assert game.session.state["written"] is True
        assert (tmp_path / "note.txt").exists()
        undone = await history.undo(journal, game.registry)
        assert undone.compensated
        assert not (tmp_path / "note.txt").exists()
        assert "written" not in game.session.state
    finally:
        await game.close()
        await journal.close()
        store.close()


async def test_a_tool_that_needs_a_permission_is_refused_without_it(folder: Path, tmp_path: Path) -> None:
    story = with_file(folder, tools={"write": {"permissions": ["desk:write"]}})
    game, journal, store = await begun(story, tmp_path)
    try:
        await game.prompt("write a note")
        assert not (tmp_path / "note.txt").exists()
        game.session.grant("desk:write")
        game.session.health.clear()
        await game.prompt("write a note")
        assert (tmp_path / "note.txt").exists()
    finally:
        await game.close()
        await journal.close()
        store.close()


async def test_a_turn_is_told_again_from_its_records_without_the_server(folder: Path, tmp_path: Path) -> None:
    game, journal, store = await begun(with_file(folder), tmp_path)
    try:
        await game.prompt("keep it")
        await journal.flush()
    finally:
        await game.close()
        await journal.close()
    told = fold(store.read(game.session.id)).told[-1]
    assert told.narrative == "You write it down, in ink."
    store.close()


async def test_a_server_that_cannot_be_used_is_told_once_and_the_story_goes_on(folder: Path) -> None:
    (folder / "story.toml").write_text(STORY + '\n[mcp.trial]\ncommand = "no-such-program-here"\n')
    game = Game.new(Story.load(folder))
    notices: list[str] = []
    game.session.notice = lambda notice: notices.append(notice.message)  # type: ignore[method-assign]
    await game.prompt("dance")
    await game.prompt("dance")
    assert len([one for one in notices if "no-such-program-here" in one]) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('mcp = "missing.json"', "key 'mcp': .*missing.json: cannot be read"),
        ('mcp = "../servers.json"', "is no file inside the story's folder"),
        ("mcp = 3", "key 'mcp': .*expected"),
    ],
)
def test_a_mistake_in_the_servers_of_a_story_names_the_key(folder: Path, line: str, said: str) -> None:
    (folder / "story.toml").write_text(f"{line}\n{STORY}")
    with pytest.raises(StoryInvalid, match=said):
        Story.load(folder)


async def test_a_secret_of_a_server_is_in_no_file_of_the_journal(folder: Path, tmp_path: Path) -> None:
    secret = "sesame-0pen-4711"
    entry = {**server(), "env": {"TRIAL_TOKEN": secret}}
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"trial": entry}}))
    (folder / "story.toml").write_text('mcp = "servers.json"\n' + STORY)
    (folder / "narrator.toml").write_text(
        RULES.replace("trial.echo", "trial.environ").replace('text = "hello"', 'name = "TRIAL_TOKEN"')
    )
    game, journal, store = await begun(Story.load(folder), tmp_path)
    try:
        result = await game.prompt("keep it")
        assert result.outcome == "completed"
        await journal.flush()
        records = repr(list(store.read(game.session.id)))
    finally:
        await game.close()
        await journal.close()
        store.close()
    assert "trial.environ" in records
    assert "***" in records
    assert secret not in records
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]


async def test_a_server_of_a_story_runs_in_the_sandbox(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NARRATORIA_SANDBOX")
    (folder / "server.py").write_bytes(SERVER.read_bytes())
    (folder / "servers.json").write_text(
        json.dumps({"mcpServers": {"trial": {"command": sys.executable, "args": ["server.py"]}}})
    )
    (folder / "story.toml").write_text('mcp = "servers.json"\n' + STORY)
    game, journal, store = await begun(Story.load(folder), tmp_path)
    try:
        await game.prompt("keep it")
        await game.prompt("write note")
        await journal.flush()
        records = [record.event for record in store.read(game.session.id)]
    finally:
        await game.close()
        await journal.close()
        store.close()
    ended = {one.tool: one.ok for one in records if isinstance(one, CallFinished)}
    assert ended == {"trial.echo": True, "trial.write": False}
    assert not (tmp_path / "note.txt").exists()
