"""A recorded session again: from the journal alone, with its tools, and as a fixture."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start

from narratoria.events import JsonObject
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.game import Game, story_registry
from narratoria.play.story import Story
from narratoria.play.turn import take_turn
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.fold import fold
from narratoria.store.portable import export_session
from narratoria.store.replay import verify
from narratoria.store.sqlite import SqliteStore
from narratoria.testing import cassette
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolResult

MILL = Path(__file__).parents[1] / "session" / "mill"
PLAYER = Path(__file__).parents[1] / "session" / "mill_player.py"
TURNS = 4


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the mill was played for a few turns."""
    folder = tmp_path_factory.mktemp("home")
    subprocess.run(
        [sys.executable, PLAYER, "sqlite", "game", str(TURNS)],
        env={**os.environ, "NARRATORIA_HOME": str(folder)},
        check=True,
        timeout=120,
        stdout=subprocess.DEVNULL,
    )
    return folder


def narratoria(home: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NARRATORIA_HOME": str(home), "NO_COLOR": "1"}
    if path is not None:
        environment["PATH"] = path
    return warm_start.run(*arguments, env=environment)


def test_a_replay_shows_the_session_and_starts_nothing(home: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = narratoria(home, "replay", "game", path=str(empty))  # no tool's interpreter could be found
    assert done.returncode == 0, done.stderr
    for expected in ("The wheel turns.", "> grind sack 1", "Sack 4 is carried.", "1 Grind sack 5"):
        assert expected in done.stdout


def test_a_replay_as_json_is_a_turn_a_line(home: Path) -> None:
    done = narratoria(home, "replay", "game", "--json")
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    assert [turn["turn"] for turn in turns] == list(range(TURNS + 1))
    assert turns[1]["calls"][0]["attempts"][0]["ok"] is True


def test_verifying_finds_no_difference_when_nothing_changed(home: Path) -> None:
    done = narratoria(home, "replay", "game", "--verify", "--story", str(MILL))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{3 * TURNS} calls of {TURNS} turns came out as recorded" in done.stdout
    assert "what they do outside is done again" in done.stderr


class Scribes:
    """Two that write at the same time; number `late` always ends after the other."""

    def __init__(self, late: int) -> None:
        self.late = late
        self.ended: list[int] = []
        self.other_is_through = asyncio.Event()

    async def write(self, params: JsonObject, *, context: ToolContext) -> ToolResult[None]:
        n = params["n"]
        if n == self.late:
            await self.other_is_through.wait()
        context.memory.write("episodic", "written", n)
        context.memory.write("long-term", "last", n)
        context.session.notify("wrote", {"n": n})
        context.session.grant(f"page:{n}")
        context.patch({"pages": {str(n): True}})
        self.ended.append(n)
        self.other_is_through.set()
        return ToolResult.ok(None, message=f"{n} is written")

    def registry(self) -> ToolRegistry:
        tally = StateChangeEffect(state="count", change="increment")
        tool = Tool[Any, Any]("write", "Writes.", self.write, parameters={"type": "object"}, effects=[tally])
        return ToolRegistry([tool])

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        calls = [PlannedCall(tool_id=f"s{n}", tool_path="write", input={"n": n}, async_=True) for n in (1, 2)]
        return PlanDocument(request_id="scribes", narrative="", parallel=True, tools=calls)

    name = "scribes"


@pytest.mark.parametrize("late", [1, 2])
async def test_calls_that_ran_at_the_same_time_may_end_in_another_order(tmp_path: Path, late: int) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(Session("game", assets=store.assets))
    then, now = Scribes(late), Scribes(3 - late)
    await take_turn(journal.session, "write", narrator=then, registry=then.registry())
    await journal.close()
    outcome = await verify(store, "game", now.registry())
    assert (outcome.calls, outcome.differences) == (2, [])
    assert then.ended == now.ended[::-1] == [3 - late, late]
    store.close()


async def test_verifying_shows_where_a_changed_tool_differs(home: Path, tmp_path: Path) -> None:
    changed = tmp_path / "mill"
    shutil.copytree(MILL, changed)
    grind = changed / "tools" / "grind"
    grind.write_text(grind.read_text().replace('"n": n, f"stone', '"n": n + (n == 2), f"stone'))
    before = SqliteStore(home / "sessions.db")
    recorded = list(before.read("game"))
    story = Story.load(changed)
    outcome = await verify(before, "game", story_registry(story), roots=[story.root])
    assert {(one.turn, one.where, one.what) for one in outcome.differences} == {
        (2, "grind", "output"),
        (2, "state", "differs"),
    }
    state = next(one for one in outcome.differences if one.where == "state")
    assert (state.recorded, state.now) == ({"sacks": {"2": {"n": 2}}}, {"sacks": {"2": {"n": 3}}})
    assert list(before.read("game")) == recorded, "verifying changes nothing"
    before.close()


async def test_verifying_misses_nothing_a_player_or_the_world_would_notice(
    home: Path, tmp_path: Path
) -> None:
    changed = tmp_path / "mill"
    shutil.copytree(MILL, changed)
    grind = changed / "tools" / "grind"
    offer = 'emit("ui_event", event="narrative_choice", payload={"choices": ["Rest"]})\nemit("done"'
    grind.write_text(
        grind.read_text()
        .replace('emit("done"', offer)
        .replace("is ground.", "is CHANGED.")
        .replace("request = json", "import pathlib\nrequest = json")
        .replace(
            "folder =",
            f'pathlib.Path({str(tmp_path / "ids")!r}).open("a").write(request["requestId"] + "\\n")\nfolder =',
        )
    )
    manifest = changed / "tools" / "grind.tool.json"
    document = json.loads(manifest.read_text())
    document["effects"] += [
        {"type": "memory", "scope": "long-term", "operation": "write", "key": "miller", "value": "Ada"},
        {"type": "notification", "event": "ground", "payload": {"by": "Ada"}},
    ]
    manifest.write_text(json.dumps(document))
    store = SqliteStore(home / "sessions.db")
    story = Story.load(changed)
    outcome = await verify(store, "game", story_registry(story), roots=[story.root])
    first = {(one.where, one.what): (one.recorded, one.now) for one in outcome.differences if one.turn == 1}
    assert set(first) == {
        *((call, what) for call in ("grind", "more") for what in ("message", "shown")),
        ("memory", "differs"),
        ("notifications", "differs"),
    }
    assert first["grind", "message"] == ("Sack 1 is ground.", "Sack 1 is CHANGED.")
    assert first["grind", "shown"] == ([], [["narrative_choice", {"choices": ["Rest"]}]])
    assert first["notifications", "differs"] == ([], [["ground", {"by": "Ada"}]] * 2)
    recorded = {call.call for turn in fold(store.read("game")).told for call in turn.calls}
    ran = (tmp_path / "ids").read_text().splitlines()
    assert len(ran) == len(set(ran)) == 2 * TURNS
    assert not recorded & set(ran), "a tool that acts once per id would not act at all under the old one"
    store.close()


async def test_a_recorded_session_is_a_fixture(home: Path, tmp_path: Path) -> None:
    store = SqliteStore(home / "sessions.db")
    export_session(store, "game", tmp_path / "game.narratoria")
    told = [turn.narrative for turn in fold(store.read("game")).told[1:]]
    store.close()

    tape = cassette(tmp_path / "game.narratoria")
    assert tape.prompts == [f"grind sack {n}" for n in range(1, TURNS + 1)]
    session, narrator, registry = tape.session(), tape.narrator(), tape.registry()
    results = [
        await take_turn(session, prompt, narrator=narrator, registry=registry) for prompt in tape.prompts
    ]
    assert session.snapshot() == tape.state
    assert [result.narrative for result in results] == told
    assert sorted({one.hash for one in session.asset_records.values()}) == tape.asset_hashes
    assert len(session.memory.read("episodic", "ground")) == 2 * TURNS

    unrecorded = await registry.execute("grind", {"n": 77}, session=session)
    assert unrecorded.failure is not None and unrecorded.failure.code == "NOT_RECORDED"


@pytest.mark.parametrize(
    ("story", "prompts"),
    [("torch", ("light the torch", "examine the door")), (str(MILL), ("grind a sack", "grind another"))],
    ids=["torch", "mill"],
)
async def test_a_game_of_the_rules_is_a_fixture(story: str, prompts: tuple[str, ...], tmp_path: Path) -> None:
    """Their plans name a story's tools by path."""
    home, tape_file = tmp_path / "home", tmp_path / "tape.narratoria"
    played = subprocess.run(
        [sys.executable, "-m", "narratoria", "play", story, "--terminal", "--narrator", "rules", "--json"],
        env={**os.environ, "NARRATORIA_HOME": str(home)},
        input="\n".join(prompts),
        capture_output=True,
        text=True,
        timeout=120,
    )
    turns = [json.loads(line) for line in played.stdout.splitlines()]
    assert narratoria(home, "sessions", "export", turns[0]["session"], str(tape_file)).returncode == 0

    tape = cassette(tape_file)
    assert tape.prompts == list(prompts)
    session, narrator, registry = tape.session(), tape.narrator(), tape.registry()
    results = [
        await take_turn(session, prompt, narrator=narrator, registry=registry) for prompt in tape.prompts
    ]
    assert [result.outcome for result in results] == ["completed", "completed"]
    assert session.snapshot() == tape.state != {}
    assert [result.narrative for result in results] == [turn.narrative for turn in tape.turns]
    assert [result.choices for result in results] == [turn.choices for turn in tape.turns]


async def test_a_tape_without_the_prompt_says_so(home: Path, tmp_path: Path) -> None:
    store = SqliteStore(home / "sessions.db")
    export_session(store, "game", tmp_path / "game.narratoria")
    store.close()
    tape = cassette(tmp_path / "game.narratoria")
    result = await take_turn(tape.session(), "rest", narrator=tape.narrator(), registry=tape.registry())
    assert result.outcome == "fallback"
    assert "no plan was recorded for 'rest'" in result.problems[0]


async def test_a_game_goes_on_from_a_restored_session(home: Path, tmp_path: Path) -> None:
    """The registry, narrator and journal of a second run fit the session of the first."""
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    store = SqliteStore(copy / "sessions.db")
    journal = await asyncio.to_thread(store.open, "game")
    game = Game(Story.load(MILL), journal.session)
    assert isinstance(game.session, Session)
    assert await game.resume() is None
    result = await game.prompt("look around")
    assert result.turn == TURNS + 1
    assert result.unsaved is None
    await journal.close()
    store.close()
