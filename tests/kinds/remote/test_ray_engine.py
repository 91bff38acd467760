"""Tools on a real Ray of one node: the same pipeline, the same events, the same ends."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.kinds.remote.conftest import Field
from tests.marked_processes import eventually

from narratoria.errors import ToolFailure
from narratoria.events import AssetDenied, AssetStored, CallEmitted, CallRetrying, CallStarted, Log
from narratoria.kinds.function import tool
from narratoria.kinds.process import orphans
from narratoria.kinds.remote.remote import remote
from narratoria.tools.tool import ToolContext, ToolResult

LOG = """echo '{"version":"0","type":"log","level":"info","message":"'$1'"}'"""
SAY = f"say() {{ {LOG}; }}\n"
DONE = """echo '{"version":"0","type":"done","ok":true,"summary":"fine"}'\n"""


async def test_a_call_streams_its_events_and_commits_its_patches(field: Field) -> None:
    tool = field.tool(
        SAY + "read -r line; say one; while [ ! -e go ]; do sleep 0.02; done; say two\n"
        """echo '{"version":"0","type":"state_patch","patch":{"asked":'"$line"'}}'\n""" + DONE,
        cwd=field.folder,
    )
    running = asyncio.create_task(field.call(tool, {"a": 1}))
    while not field.recorder.of(CallEmitted):
        await asyncio.sleep(0.01)
    (field.folder / "go").touch()  # the first event came while the tool was running
    result = await running

    assert (result.success, result.message) == (True, "fine")
    assert field.session.state["asked"]["input"] == {"a": 1}
    logs = [one.event.message for one in field.recorder.of(CallEmitted) if isinstance(one.event, Log)]
    assert logs == ["one", "two"]


STUBBORN = "trap '' TERM\n(setsid sleep 300 </dev/null >/dev/null 2>&1 &)\n" + SAY


async def test_a_cancelled_call_ends_its_whole_group_and_its_daemons(field: Field) -> None:
    tool = field.tool(STUBBORN + "say started; sleep 300 & wait; sleep 300")
    running = asyncio.create_task(field.call(tool))
    while not field.recorder.of(CallEmitted):
        await asyncio.sleep(0.01)
    assert field.alive()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert field.leaves_nothing()


async def test_a_call_past_its_time_limit_is_ended_on_the_node(field: Field) -> None:
    result = await field.call(field.tool("echo talk >&2; sleep 300 & sleep 300"), timeout=0.5)
    assert result.failure is not None
    assert result.failure.code == "TIMEOUT"
    assert "no result within 0.5 s" in result.failure.message
    assert (result.failure.details or {})["stderr"] == "talk\n"
    assert field.leaves_nothing()


async def test_a_killed_worker_is_a_lost_node_and_the_call_runs_again_under_its_id(field: Field) -> None:
    tool = field.tool(
        STUBBORN
        + """read -r line
        echo '{"version":"0","type":"state_patch","patch":{"attempt":"'$RANDOM'"}}'
        if [ ! -e second ]; then touch second; kill -9 $PPID; sleep 300; fi
        echo '{"version":"0","type":"state_patch","patch":{"asked":'"$line"'}}'\n"""
        + DONE,
        cwd=field.folder,
    )
    result = await field.call(tool)
    assert result.success, result
    started, retried = field.recorder.of(CallStarted), field.recorder.of(CallRetrying)
    assert [one.attempt for one in started] == [1, 2]
    assert len({one.call for one in started}) == 1
    assert [one.error_code for one in retried] == ["NODE_LOST"]
    assert field.session.state["asked"]["requestId"] == started[0].call
    assert field.leaves_nothing()  # Ray and the guardian ended what the first attempt had started


async def test_assets_of_any_size_arrive_in_the_content_store(field: Field) -> None:
    event = """echo '{"version":"0","type":"asset","assetId":"%s","kind":"data","mediaType":"%s","path":"%s"}'\n"""
    tool = field.tool(
        "head -c 5000000 /dev/zero > $TMPDIR/large; echo small > $TMPDIR/small\n"
        + (event % ("large", "application/octet-stream", "'$TMPDIR'/large"))
        + (event % ("small", "text/plain", "'$TMPDIR'/small"))
        + (event % ("small", "text/plain", "'$TMPDIR'/small"))
        + (event % ("missing", "text/plain", "'$TMPDIR'/missing"))
        + (event % ("picture", "image/png", "'$TMPDIR'/small"))
        + DONE
    )
    result = await field.call(tool)
    assert result.success, result
    stored = {one.asset_id: one for one in field.recorder.of(AssetStored)}
    assert {name: one.size for name, one in stored.items()} == {"large": 5_000_000, "small": 6}
    assert field.session.assets.path_of(stored["small"].hash).read_text() == "small\n"
    denied = [one.reason for one in field.recorder.of(AssetDenied)]
    assert ["already used" in denied[0], "missing does not exist" in denied[1], "small" in denied[2]] == [
        True
    ] * 3


@pytest.mark.slow
async def test_a_slow_listener_holds_the_tool_back(field: Field) -> None:
    """The tool writes 24 MB; while nobody takes them, it is held up by the pipe, the node and Ray in turn."""
    tool = field.tool(
        "line=$(head -c 20000 /dev/zero | tr '\\0' x)\n"
        """for i in $(seq 1200); do echo '{"version":"0","type":"log","level":"info","message":"'$line'"}'; """
        "echo $i > count; done\n" + DONE,
        cwd=field.folder,
    )
    field.recorder.full = True  # type: ignore[misc]
    gate = asyncio.Event()
    field.recorder.wait = gate.wait  # type: ignore[method-assign,assignment]
    running = asyncio.create_task(field.call(tool))
    count = field.folder / "count"
    before = -1
    until = time.monotonic() + 20
    while time.monotonic() < until:
        await asyncio.sleep(0.5)
        now = int(count.read_text() or 0) if count.exists() else 0
        if 0 < now == before:
            break
        before = now
    assert 0 < before < 1000
    field.recorder.full = False  # type: ignore[misc]
    gate.set()
    assert (await running).success
    assert len(field.recorder.of(CallEmitted)) == 1201


async def test_files_reach_a_node_that_lacks_them_by_their_hash(
    field: Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/proc/self/cwd` is another folder in each process: the node finds nothing there."""
    (tmp_path / "words.txt").write_text("from its own folder")
    monkeypatch.chdir(tmp_path)
    tool = field.tool(
        """echo '{"version":"0","type":"done","ok":true,"summary":"'"$(cat ${0%/*}/words.txt)"'"}'""",
        within=Path("/proc/self/cwd"),
    )
    for _ in range(2):
        result = await field.call(tool)
        assert (result.message, result.failure) == ("from its own folder", None)
    kept = list((field.cache / "narratoria" / "tools").iterdir())
    assert len(kept) == 1
    assert sorted(one.name for one in kept[0].iterdir()) == ["tool.sh", "words.txt"]


@dataclass
class Word:
    word: str
    times: int = 1


async def test_a_function_gets_the_state_and_its_events_and_its_result_come_back(field: Field) -> None:
    @tool(description="Says a word.")
    def say(params: Word, *, context: ToolContext) -> ToolResult[Word]:
        context.log(f"in {os.getpid()}")
        context.patch({"said": {"word": params.word, "before": context.session.state["count"]}})
        file = Path(tempfile.gettempdir()) / f"word-{os.getpid()}"
        file.write_text(params.word)
        context.asset(file, kind="text", media_type="text/plain")
        file.unlink()
        if params.word == "fail":
            raise ToolFailure("MUTE", "it cannot be said")
        if params.word == "remember":
            context.memory.write("working", "a", 1)
        if params.word == "forever":
            while True:
                time.sleep(0.01)
        return ToolResult.ok(Word(params.word * params.times), "said")

    field.session.patch({"count": 7})
    placed = remote(say, field.engine)
    result = await field.call(placed, {"word": "ha", "times": 3})
    assert (result.message, result.value) == ("said", Word("hahaha"))
    assert field.session.state["said"] == {"word": "ha", "before": 7}
    (log,) = [one.event for one in field.recorder.of(CallEmitted) if isinstance(one.event, Log)]
    assert log.message != f"in {os.getpid()}"
    (stored,) = field.recorder.of(AssetStored)
    assert field.session.assets.path_of(stored.hash).read_text() == "ha"

    failed = await field.call(placed, {"word": "fail"})
    assert failed.failure is not None and failed.failure.code == "MUTE"
    remembered = await field.call(placed, {"word": "remember"})
    assert remembered.failure is not None and "only events reach the session" in remembered.failure.message
    assert field.session.state["said"]["word"] == "ha"

    before = len(field.recorder.of(CallEmitted))
    endless = await field.call(placed, {"word": "forever"}, timeout=5.0)
    assert endless.failure is not None and endless.failure.code == "TIMEOUT"
    (log, *_) = [one.event for one in field.recorder.of(CallEmitted)[before:] if isinstance(one.event, Log)]
    assert eventually(lambda: not Path(f"/proc/{log.message.removeprefix('in ')}").exists(), 10)


@pytest.mark.slow
async def test_a_ray_of_our_own_that_died_is_followed_by_another(field: Field) -> None:
    tool = field.tool(DONE)
    assert (await field.call(tool)).success
    servers = [pid for pid in orphans.children() if Path(f"/proc/{pid}/comm").read_text() == "raylet\n"]
    for pid in servers:
        os.kill(pid, signal.SIGKILL)
    assert servers
    results = [
        await field.call(tool, timeout=20.0) for _ in range(3)
    ]  # the first may still wait for the dead one
    assert results[-1].success, results
