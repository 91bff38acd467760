"""The examples of `examples/` do what they say."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from narratoria import PlanDocument, Session, ToolRegistry, process_tool, take_turn
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.history import undo
from narratoria.store.sqlite import SqliteStore
from narratoria.testing import conformance

EXAMPLES = Path(__file__).parent.parent / "examples"
TOOLS = EXAMPLES / "tools"


def run(command: list[str] | str, cwd: Path, **more: Any) -> str:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "NARRATORIA_HOME": str(cwd / "home"), "NO_COLOR": "1", "PATH": programs}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Scribe:
    """A narrator with one plan."""

    name = "scribe"

    def __init__(self, **arguments: str) -> None:
        call = {"toolId": "note", "toolPath": "ledger-keeper", "input": arguments}
        self.made = PlanDocument.from_json(json.dumps({"requestId": "note", "tools": [call]}))

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        return self.made


async def test_a_tool_with_a_rollback_is_taken_back(tmp_path: Path) -> None:
    ledger = tmp_path / "debts.txt"
    ledger.write_text("Bo: wine\n")
    registry = ToolRegistry([process_tool(TOOLS / "ledger-keeper")])
    store = SqliteStore(tmp_path / "home" / "sessions.db")
    journal = store.create(Session(assets=store.assets))
    session, scribe = journal.session, Scribe(ledger=str(ledger), line="Ada: ale")
    turn = await take_turn(session, "write", narrator=scribe, registry=registry)
    assert turn.outcome == "completed" and session.state["ledger"] == {"last": "Ada: ale", "lines": 1}
    assert ledger.read_text() == "Bo: wine\nAda: ale\n"
    await undo(journal, registry)
    assert "ledger" not in session.state and ledger.read_text() == "Bo: wine\n"
    await journal.close()
    store.close()


@pytest.mark.parametrize("tool", ["ledger-keeper", "pack-weigher"])
def test_the_tools_conform(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where the ledger is written
    conformance(TOOLS / tool)


async def test_a_strike_that_comes_twice_is_no_error(tmp_path: Path) -> None:
    request = {"operation": "strike", "input": {"ledger": str(tmp_path / "none.txt"), "line": "Ada: ale"}}
    told = run([str(TOOLS / "ledger-keeper")], tmp_path, input=json.dumps(request))
    assert json.loads(told)["ok"] is True


async def test_a_tool_that_wants_the_state_gets_it() -> None:
    registry = ToolRegistry([process_tool(TOOLS / "pack-weigher")])
    session = Session(state={"inventory": {"anvil": {"weight": 30}, "rope": {"weight": 1.5}}})
    result = await registry.execute("pack-weigher", {}, session=session)
    assert result.message == "2 things, 31.5 kg: too heavy."
    assert session.state["pack"] == {"weight": 31.5, "heavy": True}
    lighter = await registry.execute("pack-weigher", {"limit": 40}, session=session)
    assert lighter.message.endswith("light enough.")


@pytest.mark.skipif(not (shutil.which("bash") and shutil.which("node")), reason="needs bash and node")
def test_the_parallel_plan_hands_results_on(tmp_path: Path) -> None:
    plan = str(EXAMPLES / "plans" / "two-towns.json")
    trace = json.loads(run(["narratoria", "run", plan, "--tools", str(EXAMPLES), "--json"], tmp_path))
    ended = {one["toolId"]: one for one in trace["toolResults"]}
    assert trace["success"] and set(ended) == {"north", "south", "note", "map"}
    sky = ended["north"]["output"]["weather"]["sky"]
    assert (tmp_path / "weather.txt").read_text() == f"{sky}\n"
    assert ended["map"]["state"] == "completed"


def test_the_embedding_program_prints_what_happens(tmp_path: Path) -> None:
    printed = run([sys.executable, str(EXAMPLES / "programs" / "tavern.py")], tmp_path).splitlines()
    assert printed[:3] == ["… pouring wine for Bo", "Bo gets wine.", "… pouring ale for Ada"]
    assert printed[-2].endswith("['Ada: ale']") and printed[-1].endswith("[]")


def test_the_script_without_a_loop_prints_what_happens(tmp_path: Path) -> None:
    printed = run([sys.executable, str(EXAMPLES / "programs" / "no_loop.py")], tmp_path).splitlines()
    assert printed[:2] == ["5", "True ['first', 'second'] 2"]
    assert "texts: unknown key" in printed[-1]


@pytest.fixture
def web_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the web application."""
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    found = importlib.util.spec_from_file_location("web_app", EXAMPLES / "programs" / "web_app.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "web_app", module)
    found.loader.exec_module(module)
    return module


def test_the_web_application_plays_a_story(web_app: Any) -> None:
    with TestClient(web_app.app) as client:
        game = client.post("/games").json()["id"]
        turn = client.post(f"/games/{game}/turns", json={"prompt": "light the torch"}).json()
        assert turn["outcome"] == "completed" and "torch" in turn["narrative"]
        assert client.get(f"/games/{game}/state").json() == {"inventory": {"torch": {"lit": True}}}
        assert client.post("/games/none/turns", json={"prompt": "x"}).status_code == 404
        assert client.post(f"/games/{game}/turns", json={"promt": "x"}).status_code == 400


async def test_the_web_application_streams_events(web_app: Any) -> None:
    game = web_app.games.start()
    stream = web_app.records_of(game)
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)  # the viewer attaches
    await game.prompt("light the torch")
    assert (await first).startswith(b'data: {"type":"turn_started"')
    await stream.aclose()
    await game.close()


STEP = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_story_of_ten_steps_can_be_made_and_played(tmp_path: Path) -> None:
    page = (EXAMPLES / "ten-steps.md").read_text()
    assert len(re.findall(r"^## \d+\. ", page, re.M)) == 10
    for kind, body in STEP.findall(page):
        if kind == "console":
            for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                command, _, shown = part.partition("\n")
                printed = [line.strip() for line in run(["sh", "-c", command], tmp_path).splitlines()]
                for line in filter(None, map(str.strip, shown.splitlines())):
                    assert any(line in one for one in printed), (command, line, printed)
            continue
        head, _, text = body.partition("\n")
        path = tmp_path / head.lstrip("#/ ")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(text + "\n")


def test_the_index_names_every_example() -> None:
    index = (EXAMPLES / "README.md").read_text()
    linked = {EXAMPLES / path for path in re.findall(r"\]\(([^)]+)\)", index)}
    assert all(path.exists() for path in linked), linked
    for folder in ("programs", "plans", "stories"):
        for path in (EXAMPLES / folder).iterdir():
            assert path.name == "__pycache__" or path in linked, path
    for manifest in TOOLS.glob("**/*.tool.json"):
        names = {manifest.name.removesuffix(".tool.json"), manifest.parent.name}
        assert any(path.name in names for path in linked), manifest
