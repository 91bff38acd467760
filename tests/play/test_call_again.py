"""A recorded call taken apart and run again: in the program, and by `narratoria sessions call`."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start

from narratoria.play.call_again import NotAgreed, NotRunAgain, run_again
from narratoria.play.call_command import call_command
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.run.plan_executor import PlanExecutor
from narratoria.session import Session
from narratoria.store.default_store import default_store
from narratoria.store.recorded_call import (
    CallRecords,
    CallUnknown,
    RecordedCall,
    events_of,
    find_call,
    named_call,
    recorded_call,
    state_before,
)
from narratoria.store.sqlite import SqliteStore

sys.path.insert(0, str(Path(__file__).parents[1] / "planted"))
from planted_bugs import write_planted

WORDS = ("light", "weigh", "send", "ring", "audit", "rest")


class Played:
    """The story of planted bugs, played once, and its journal."""

    def __init__(self, home: Path, words: tuple[str, ...] = WORDS) -> None:
        self.home = home
        self.story = Story.load(write_planted(home / "stories" / "planted"))
        self.store = default_store(home)
        session = Session(
            state=self.story.state, permissions=self.story.permissions, assets=self.store.assets
        )
        self.id = session.id

        async def play() -> None:
            journal = self.store.create(session, story=self.story.id, title=self.story.title)
            self.game = Game(self.story, session, narrators=["rules"])
            self.game.begin()
            for word in words:
                await self.game.prompt(word)
            await journal.close()

        asyncio.run(play())

    def call(self, name: str) -> CallRecords:
        return find_call(self.store, self.id, named_call(self.store, self.id, name))

    def told(self, name: str) -> RecordedCall:
        records = self.call(name)
        return recorded_call(records, state_before(self.store, self.id, records))

    def got(self, tool: str) -> Any:
        return json.loads((self.story.root / f"got-{tool}.json").read_text())

    @property
    def executor(self) -> PlanExecutor:
        return self.game.executor

    async def again(self, name: str, **options: Any) -> Any:
        return await run_again(self.store, self.id, self.call(name), self.executor, **options)

    def records(self) -> list[bytes]:
        return [repr(record).encode() for record in self.store.read(self.id)]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("home"))


# --- taken apart -----------------------------------------------------------------------------------------


def test_the_request_is_what_the_process_read(played: Played) -> None:
    assert played.told("ledger").request == played.got("ledger")
    assert played.told("lantern").request == played.got("lantern"), "state, operation and defaults included"
    assert played.got("lantern")["operation"] == "light" and played.got("lantern")["input"] == {"oil": 2}


def test_defaults_of_the_manifest_are_in_the_request(played: Played) -> None:
    records = find_call(played.store, played.id, _first(played, "lantern"))
    told = recorded_call(records, state_before(played.store, played.id, records))
    assert told.input == {} and told.request is not None and told.request["input"] == {"oil": 7}
    assert told.request["state"] == {"lantern": {"lit": False, "oil": 3}, "door": {"open": False}}


def test_a_wrong_key_in_a_patch_is_seen_among_the_changes(played: Played) -> None:
    records = find_call(played.store, played.id, _first(played, "lantern"))
    told = recorded_call(records, state_before(played.store, played.id, records))
    changes = {".".join(one.path): (one.kind, one.before, one.after) for one in told.changes}
    assert changes == {"lantern.lti": ("added", None, True), "lantern.oil": ("changed", 3, 7)}
    assert told.committed and told.change_count == 2


def _first(played: Played, tool: str) -> str:
    return next(
        record.event.call  # type: ignore[union-attr]
        for record in played.store.read(played.id)
        if getattr(record.event, "tool", None) == tool
    )


def test_a_crash_shows_its_exit_code_and_traceback(played: Played) -> None:
    told = played.told("scales")
    (attempt,) = told.attempts
    assert (told.ok, attempt.exit_code) == (False, 1)
    assert "weighing 0" in (attempt.stderr or "") and "ZeroDivisionError" in (attempt.stderr or "")
    assert told.changes == []


def test_each_attempt_has_its_outcome_duration_and_wait(played: Played) -> None:
    told = played.told("courier")
    first, second = told.attempts
    assert (first.ok, first.exit_code, first.stderr) == (False, 3, "the bridge is closed\n")
    assert first.delay is not None and first.delay > 0
    assert (second.ok, second.exit_code, second.delay) == (True, 0, None)
    assert (
        second.duration is not None and first.duration is not None and second.duration > 0.8 > first.duration
    )


def test_events_come_in_order_and_in_parts(played: Played) -> None:
    records = played.call("courier")
    kinds = [type(one.event).__name__ for one in events_of(records)]
    assert kinds[:3] == ["CallStarted", "CallRetrying", "CallStarted"] and kinds[-1] in (
        "CallFinished",
        "Committed",
    )
    assert [one.attempt for one in events_of(records, 2, 1)] == [2]
    assert played.told("courier").event_count == len(kinds)


def test_a_call_that_is_not_there_is_named(played: Played) -> None:
    with pytest.raises(CallUnknown, match="no call 'lantren'"):
        played.call("lantren")


# --- run again -------------------------------------------------------------------------------------------


async def test_a_call_runs_again_on_its_state_and_touches_nothing(played: Played) -> None:
    before, assets = played.records(), sorted(played.store.assets)
    outcome = await played.again("scales", given={"weight": 4})
    assert outcome.call.ok and [(one.path, one.after) for one in outcome.call.changes] == [
        (["scales", "ratio"], 25.0)
    ]
    assert "how it ended" in outcome.differs
    same = await played.again("scales")
    assert not same.call.ok and same.differs == []
    assert played.got("scales")["requestId"].startswith("again-"), "a tool that acts once per id acts"
    assert played.records() == before and sorted(played.store.assets) == assets


async def test_the_state_is_that_of_then_not_of_now(played: Played) -> None:
    records = find_call(played.store, played.id, _first(played, "lantern"))
    outcome = await run_again(played.store, played.id, records, played.executor)
    assert outcome.call.request is not None
    assert outcome.call.request["state"]["lantern"] == {"lit": False, "oil": 3}
    assert outcome.differs == []


async def test_dependencies_are_given_again(played: Played) -> None:
    outcome = await played.again("ledger")
    assert list(played.got("ledger")["dependencies"].values()) == [{"lantern": {"lti": True, "oil": 2}}]
    assert outcome.differs == []


async def test_an_effect_outside_is_asked_about_first(played: Played) -> None:
    rung = (played.story.root / "rung").read_text()
    with pytest.raises(NotAgreed, match="the village wakes, which cannot be taken back"):
        await played.again("bell")
    assert (played.story.root / "rung").read_text() == rung
    assert (await played.again("bell", agreed=True)).call.ok
    assert (played.story.root / "rung").read_text() == rung + "x"


async def test_a_tool_that_is_gone_cannot_run_again(played: Played) -> None:
    empty = PlanExecutor(type(played.executor.registry)(), Session())
    with pytest.raises(NotRunAgain, match="not there any more"):
        await run_again(played.store, played.id, played.call("scales"), empty)


async def test_a_repeated_call_that_is_cancelled_leaves_no_process(played: Played) -> None:
    pid_file = played.story.root / "sleeper.pid"
    pid_file.unlink(missing_ok=True)
    task = asyncio.create_task(played.again("sleeper", given={"long": True}))
    await _until(lambda: pid_file.exists() and pid_file.read_text())
    pid = int(pid_file.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until(lambda: not Path(f"/proc/{pid}").exists())


async def _until(holds: Callable[[], Any], within: float = 15.0) -> None:
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until
        await asyncio.sleep(0.02)


# --- as a command ----------------------------------------------------------------------------------------


def command_of(played: Played, name: str) -> Any:
    records = played.call(name)
    world = state_before(played.store, played.id, records)
    told = recorded_call(records, world)
    tool = played.game.registry.get(told.tool)
    assert tool is not None
    return call_command(told, tool, world, played.id)


def test_the_command_is_safe_in_a_shell(played: Played) -> None:
    command = command_of(played, "sleeper").command
    words = shlex.split(command)
    assert words[:3] == ["narratoria", "call", str(played.story.root / "tools" / "sleeper")]
    assert json.loads(words[words.index("--input") + 1]) == {"name": "<b>'; rm -rf ~ #"}
    shown = subprocess.run(
        ["bash", "-c", f"narratoria() {{ printf '%s\\n' \"$@\"; }}; {command}"],
        capture_output=True,
        text=True,
    )
    assert shown.stdout.splitlines() == words[1:]


def test_the_command_has_the_operation_the_state_and_the_dependencies(played: Played) -> None:
    words = shlex.split(command_of(played, "lantern").command)
    assert words[words.index("--operation") + 1] == "light"
    assert json.loads(words[words.index("--state") + 1])["door"] == {"open": False}
    words = shlex.split(command_of(played, "ledger").command)
    given = json.loads(words[words.index("--dependencies") + 1])
    assert list(given.values()) == [{"lantern": {"lti": True, "oil": 2}}]


@pytest.mark.parametrize("name", ["lantern", "ledger", "sleeper"])
def test_the_command_sends_the_same_request(played: Played, name: str, tmp_path: Path) -> None:
    sent = played.told(name).request
    assert sent is not None
    ours = tmp_path / "narratoria"
    ours.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m narratoria "$@"\n')
    ours.chmod(0o755)
    run = subprocess.run(
        ["bash", "-c", command_of(played, name).command],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "NARRATORIA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    got = played.got(name)
    assert {**got, "requestId": ""} == {**sent, "requestId": ""}


def test_secrets_are_never_in_the_command(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "sk-very-secret-1234")
    records = played.call("scales")
    told = recorded_call(records, state_before(played.store, played.id, records))
    told.input = {
        "apiKey": "x",
        "api_key": "abcdef123456",
        "note": "use sk-very-secret-1234",
        "key": "of brass",
    }
    tool = played.game.registry.get("scales")
    assert tool is not None
    made = call_command(told, tool, None, played.id)
    assert "abcdef123456" not in made.command and "sk-very-secret" not in made.command
    assert "of brass" in made.command
    assert any("2 values that look like a secret" in note for note in made.notes)


# --- at the terminal -------------------------------------------------------------------------------------


def narratoria(played: Played, *arguments: str, say: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NARRATORIA_HOME": str(played.home), "NO_COLOR": "1"}
    return warm_start.run(*arguments, env=env, input=say)


def test_sessions_call_lists_shows_and_runs_again(played: Played) -> None:
    session = played.id[:10]
    listed = narratoria(played, "sessions", "call", session)
    assert "✗ scales failed" in listed.stdout and "✓ courier completed after 2 attempts" in listed.stdout
    shown = narratoria(played, "sessions", "call", session, "courier").stdout
    assert "exit code 3" in shown and "the bridge is closed" in shown and "then waited" in shown
    shown = narratoria(played, "sessions", "call", session, "scales").stdout
    assert "ZeroDivisionError" in shown and '"input":{"weight":0}' in shown and "narratoria call " in shown
    again = narratoria(played, "sessions", "call", session, "scales", "--input", '{"weight": 5}')
    assert again.returncode == 0, again.stderr
    assert "+ scales.ratio 20.0" in again.stdout and "differs from the record: how it ended" in again.stdout
    same = narratoria(played, "sessions", "call", session, "scales", "--run", "--json")
    assert same.returncode == 1 and json.loads(same.stdout)["differs"] == []
    told = json.loads(narratoria(played, "sessions", "call", session, "courier", "--json").stdout)
    assert [one["exitCode"] for one in told["attempts"]] == [3, 0] and len(told["events"]) == told[
        "eventCount"
    ]


def test_sessions_call_asks_before_it_acts_outside(played: Played) -> None:
    rung = (played.story.root / "rung").read_text()
    refused = narratoria(played, "sessions", "call", played.id, "bell", "--run", say="n\n")
    assert refused.returncode == 1 and "outside the story: the village wakes" in refused.stderr
    assert (played.story.root / "rung").read_text() == rung
    agreed = narratoria(played, "sessions", "call", played.id, "bell", "--run", "--yes")
    assert agreed.returncode == 0, agreed.stderr
    assert (played.story.root / "rung").read_text() == rung + "x"


def test_the_state_of_then_can_be_printed(played: Played) -> None:
    printed = narratoria(played, "sessions", "call", played.id, "ledger", "--print-state").stdout
    assert json.loads(printed)["lantern"] == {"lit": False, "oil": 2, "lti": True}


def test_control_c_ends_a_repeated_call(played: Played) -> None:
    pid_file = played.story.root / "sleeper.pid"
    pid_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "narratoria", "sessions", "call", played.id, "sleeper", "--input"]
    running = subprocess.Popen(
        [*command, '{"long": true}'],
        env={**os.environ, "NARRATORIA_HOME": str(played.home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    asyncio.run(_until(lambda: pid_file.exists() and pid_file.read_text()))
    pid = int(pid_file.read_text())
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)
    assert running.returncode != 0
    asyncio.run(_until(lambda: not Path(f"/proc/{pid}").exists()))


async def test_a_change_outside_any_call_is_no_call(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(Session("alone"))
    journal.session.patch({"lamp": "lit"})  # the call of its record is ""
    await journal.close()
    with pytest.raises(CallUnknown, match="has no call ''"):
        find_call(store, "alone", "")
    store.close()
