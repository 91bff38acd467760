"""What a process did outside is taken back by the process that its manifest names."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from digging import world
from lanterns import DOUSE, SESSION, light, lit, make_tool, requests

from narratoria.errors import ToolValidationError
from narratoria.events import CallFinished
from narratoria.kinds.process.process_tool import process_tool
from narratoria.play.history import finish_undo, preview_undo, redo, undo, undo_to
from narratoria.run.executor import ToolExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.fold import fold
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import Store
from narratoria.tools.deadline import Deadline
from narratoria.tools.tool import CallScope


def registry_of(*paths: Path) -> ToolRegistry:
    return ToolRegistry([process_tool(path) for path in paths])


async def test_an_undo_runs_the_executables_own_operation(make_store, tmp_path: Path) -> None:
    registry = registry_of(make_tool(tmp_path / "tools"))
    store: Store = make_store()
    journal = store.create(Session(state={"start": True}, assets=store.assets))
    await light(journal, registry, "gate")
    before = world(journal.session)
    await light(journal, registry, "pier")
    assert (tmp_path / "tools" / "pier.lit").exists()

    preview = await preview_undo(journal, registry)
    assert (preview.compensated, preview.irreversible) == (["a lantern burns"], [])
    outcome = await undo(journal, registry)
    assert (outcome.compensated, outcome.failed) == (["a lantern burns"], [])
    assert not (tmp_path / "tools" / "pier.lit").exists()
    assert (tmp_path / "tools" / "gate.lit").exists()
    assert world(journal.session) == before, "what the process said meanwhile is not part of the world"
    *_, asked = requests(tmp_path / "tools")
    assert (asked["tool"], asked["operation"]) == ("light", "douse")
    assert asked["input"] == {"name": "pier", "file": str(tmp_path / "tools" / "pier.lit")}
    with pytest.raises(Exception, match="that was taken back"):
        await redo(journal)
    await journal.close()
    assert world(make_store().restore(journal.session.id)) == before


async def test_what_takes_back_is_told_with_its_turn_and_completes_nothing(
    make_store, tmp_path: Path
) -> None:
    registry = registry_of(make_tool(tmp_path / "tools"))
    store: Store = make_store()
    journal = store.create(Session(assets=store.assets))
    await light(journal, registry, "gate", "pier")
    await undo_to(journal, 1, registry)
    assert journal.session.completed_tools == set(), "a tool whose turn is undone has not completed"
    assert journal.session.turn is None
    finished = [r for r in store.read(journal.session.id) if isinstance(r.event, CallFinished)]
    assert [record.turn for record in finished] == [1, 2, 2, 1]
    view = fold(store.read(journal.session.id))
    assert [len(turn.calls) for turn in view.turns] == [1, 1], "it is no call of the turn, but of its undo"
    await journal.close()
    assert make_store().restore(journal.session.id).completed_tools == set()


async def test_an_undo_runs_another_tool_of_the_catalogue(store: Store, tmp_path: Path) -> None:
    rollback = {"tool": "dark", "input": {"name": {"$input": "name"}}}
    lighting = make_tool(tmp_path, effects=[lit(rollback)])
    darkening = make_tool(tmp_path, "dark", effects=[], operation="douse")
    journal = store.create(Session(assets=store.assets))
    await light(journal, registry_of(lighting, darkening), "gate")
    lacking = await preview_undo(journal, registry_of(lighting))
    assert lacking.irreversible == [
        "light: a lantern burns (the tool that takes it back, 'dark', is not here)"
    ]
    await undo(journal, registry_of(lighting, darkening))
    assert not (tmp_path / "gate.lit").exists()
    assert journal.session.snapshot() == {}
    await journal.close()


async def test_a_process_that_cannot_take_it_back_is_told_of_and_the_undo_goes_on(
    store: Store, tmp_path: Path
) -> None:
    stuck = lit({"operation": "douse", "input": {"name": {"$input": "name"}, "stuck": True}})
    registry = registry_of(make_tool(tmp_path, effects=[stuck]))
    journal = store.create(Session(assets=store.assets))
    await light(journal, registry, "gate")
    outcome = await undo(journal, registry)
    assert outcome.failed == ["light: a lantern burns was not taken back: light: the wick is stuck"]
    assert (tmp_path / "gate.lit").exists()
    assert journal.session.snapshot() == {}
    await journal.close()


@pytest.mark.parametrize("hurried", [False, True], ids=["in time", "after its deadline"])
async def test_a_call_whose_later_effect_fails_takes_back_what_its_process_did(
    tmp_path: Path, hurried: bool
) -> None:
    never = {"type": "state_change", "state": "x", "value": {"$result": "nothing.here"}}
    registry = registry_of(make_tool(tmp_path, effects=[lit(DOUSE), never]))
    session = Session()
    executor = registry.executor
    if hurried:
        deadline = Deadline(60.0, clock=lambda: 100.0 if (tmp_path / "gate.lit").exists() else 0.0)
        executor = ToolExecutor(registry, scope=CallScope(deadline=deadline))
    result = await executor.execute("light", {"name": "gate"}, session=session)
    assert result.failure is not None and result.failure.code == "EFFECT_FAILED", result
    assert [one["operation"] for one in requests(tmp_path)] == ["run", "douse"]
    assert not (tmp_path / "gate.lit").exists()
    assert session.snapshot() == {}


async def test_a_compensation_that_a_crash_cut_short_is_run_again_under_its_id(tmp_path: Path) -> None:
    make_tool(tmp_path)
    script = Path(__file__).with_name("lanterns.py")
    player = subprocess.Popen([sys.executable, script, tmp_path], stderr=subprocess.PIPE, text=True)
    (tmp_path / "deadly").write_text(str(player.pid))
    _, said = player.communicate(timeout=60)
    assert player.returncode == -signal.SIGKILL, said
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.open(SESSION)
    assert journal.timeline.undoing == 1
    outcome = await finish_undo(journal, registry_of(tmp_path / "light"))
    assert outcome is not None and outcome.compensated == ["a lantern burns"]
    lighting, first, second = requests(tmp_path)
    assert first == second, "the same id, so that a process may act once"
    assert first["requestId"] != lighting["requestId"]
    assert not (tmp_path / "gate.lit").exists()
    await journal.close()
    store.close()


@pytest.mark.parametrize(
    ("effect", "problem"),
    [
        (lit({"input": {}}), "rollback"),
        (lit({"tool": "dark", "operation": "douse"}), "rollback"),
        (lit({"command": "rm"}), "rollback"),
        (lit({"operation": "douse", "input": {"name": {"$input": 5}}}), "rollback: input"),
        (lit(DOUSE, reversible=False), "has a rollback, but says that it is not reversible"),
        ({"type": "notification", "event": "lit", "rollback": DOUSE}, "rollback"),
    ],
)
def test_a_rollback_that_cannot_be_is_named(tmp_path: Path, effect: dict[str, Any], problem: str) -> None:
    path = make_tool(tmp_path, effects=[effect])
    with pytest.raises(ToolValidationError, match=rf"light\.tool\.json.*effects\[0\].*{problem}"):
        process_tool(path)
