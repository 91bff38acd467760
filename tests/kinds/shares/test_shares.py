"""Sessions that share places for the processes of their tools: order, quotas, time limits, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from narratoria.kinds.process.process_tool import process_tool
from narratoria.kinds.shares.limits import ShareLimits
from narratoria.kinds.shares.quotas import Quota
from narratoria.kinds.shares.shares import Overload, Shares, TurnRefused
from narratoria.run.plan import CallResult, PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Draft, Session

DONE = '{"version":"0","type":"done","ok":true}'
TOOL = f"#!/bin/sh\n{{body}}\necho '{DONE}'\n"


def write_tool(folder: Path, body: str, name: str = "tool", **manifest: Any) -> Path:
    path = folder / name
    path.write_text(TOOL.replace("{body}", body))
    path.chmod(0o755)
    whole = {"name": name, "description": "A tool.", **manifest}
    path.with_name(f"{name}.tool.json").write_text(json.dumps(whole))
    return path


def plan(calls: int, tool: str = "tool", *, parallel: bool = True, retries: int = 0) -> PlanDocument:
    retry = {"maxRetries": retries, "backoffMs": 0}
    tools = [
        {"toolId": f"c{at}", "toolPath": tool, "input": {}, "async": True, "retryPolicy": retry}
        for at in range(calls)
    ]
    return PlanDocument.from_json(json.dumps({"requestId": "p", "tools": tools, "parallel": parallel}))


def executor(
    tools: list[Path], shares: Shares | None, name: str, player: str = "", **options: Any
) -> PlanExecutor:
    session = Session(name)
    if shares is not None:
        session.share = shares.of(name, player)
    return PlanExecutor(ToolRegistry([process_tool(one) for one in tools]), session, **options)


def idle(shares: Shares) -> bool:
    counts = (
        shares.places.holding,
        shares.places.waiting,
        shares.elsewhere.holding,
        shares.waiting,
        shares.turns,
    )
    return counts == (0, 0, 0, 0, 0)


async def test_one_call_is_served_within_a_few_places_beside_a_plan_of_many(tmp_path: Path) -> None:
    log = tmp_path / "log"
    many = write_tool(tmp_path, f"echo m >> {log}", "many")
    one = write_tool(tmp_path, f"echo 1 >> {log}", "one")
    shares = Shares(ShareLimits(processes=1))
    large = asyncio.create_task(executor([many], shares, "large", limit=4).execute(plan(40, "many")))
    small = executor([one], shares, "small")
    places = []
    for _ in range(3):
        before = len(log.read_text()) if log.exists() else 0
        while not log.exists() or len(log.read_text()) < before + 4:
            await asyncio.sleep(0.001)
        asked = log.read_text().count("m")
        assert (await small.execute(plan(1, "one"))).success
        places.append(log.read_text().count("m") - asked)
    assert max(places) <= 3, places
    assert (await large).success
    assert log.read_text().count("m") == 40
    assert idle(shares)


async def test_no_more_processes_run_at_once_than_a_player_a_session_and_a_tool_may_have(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "running"
    folder.mkdir()
    own, log = f"{folder}/$$.{{name}}", f"{tmp_path}/log"
    body = f"mkdir {own}; printf '%s\\n\\n' \"$(ls {folder})\" >> {log}; sleep 0.02; rmdir {own}"
    tools = [write_tool(tmp_path, body.replace("{name}", name), name) for name in ("plain", "rare")]
    shares = Shares(
        ShareLimits(
            processes=6,
            player=Quota(processes=4),
            session=Quota(processes=3),
            tools={"rare": Quota(processes=1)},
        )
    )
    runs = [executor(tools, shares, f"s{at}", player="a" if at < 2 else "b", limit=8) for at in range(4)]
    results = await asyncio.gather(
        *[run.execute(plan(6, "rare" if at % 2 else "plain")) for at, run in enumerate(runs)]
    )
    assert all(result.success for result in results)
    groups = [one.split() for one in (tmp_path / "log").read_text().split("\n\n")]
    assert max(len(group) for group in groups) <= 6
    assert max(sum(name.endswith("rare") for name in group) for group in groups) == 1
    assert idle(shares)


async def test_a_session_whose_cpu_time_is_used_up_gets_no_more_calls_and_no_turn(tmp_path: Path) -> None:
    busy = write_tool(tmp_path, "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done", "busy")
    shares = Shares(ShareLimits(session=Quota(cpu_seconds_per_hour=0.05)))
    run = executor([busy], shares, "s")
    result = await run.execute(plan(5, "busy", parallel=False, retries=3))
    codes = [one.error_code or "" for one in result.tool_results]
    assert codes[0] == ""
    assert codes[-1] == "QUOTA_EXCEEDED"
    assert codes == sorted(codes), "once used up, it stays so"
    last: CallResult = result.tool_results[-1]
    assert last.retry_count == 0, "no retry would help"
    assert "the CPU time of this session is used up; there is more in" in str(last.error)
    assert run.session.share is not None
    with pytest.raises(TurnRefused, match="this story has used the computing time") as refused:
        run.session.share.begin_turn()
    assert refused.value.seconds > 60
    other = executor([busy], shares, "t")
    assert (await other.execute(plan(1, "busy"))).success, "another session has its own"
    assert idle(shares)


async def test_cpu_time_is_counted_of_cold_warm_and_confined_calls_and_of_cancelled_ones(
    tmp_path: Path,
) -> None:
    source = "import time\nwhile time.process_time() < {}: pass\nprint('{}')\n"
    path = tmp_path / "warm"
    path.write_text(f"#!{sys.executable} -S\n" + source.format(0.08, DONE))
    path.chmod(0o755)
    (tmp_path / "warm.tool.json").write_text('{"name": "warm", "description": "W.", "warm": true}')
    strict = tmp_path / "strict"
    strict.write_text(f"#!{sys.executable} -S\n" + source.format(0.08, DONE))
    strict.chmod(0o755)
    (tmp_path / "strict.tool.json").write_text('{"name": "strict", "description": "S.", "sandbox": "story"}')
    shares = Shares(ShareLimits())
    run = executor([path, strict], shares, "s")
    for name in ("warm", "warm", "strict"):  # the first start of a warm tool is cold
        before = shares.cpu_seconds
        result = await run.registry.execute(name, {}, session=run.session)
        assert result.success, result.message
        assert 0.07 < shares.cpu_seconds - before < 1.0, name
    endless = write_tool(tmp_path, "while :; do :; done", "endless")
    run = executor([endless], shares, "s")
    before = shares.cpu_seconds
    task = asyncio.create_task(run.execute(plan(1, "endless")))
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shares.cpu_seconds - before > 0.005
    assert idle(shares)


async def test_a_call_beyond_the_rate_waits_and_one_that_would_wait_too_long_is_refused(
    tmp_path: Path,
) -> None:
    quick = write_tool(tmp_path, ":")
    shares = Shares(ShareLimits(session=Quota(calls_per_minute=600), wait_seconds=5))
    run = executor([quick], shares, "s")
    meters = shares.meters("session", "s", shares.limits.session)
    assert meters.calls is not None
    meters.calls.take(600, shares.clock())
    assert run.session.share is not None
    with pytest.raises(TurnRefused, match="this story has done enough for this minute"):
        run.session.share.begin_turn()
    began = time.monotonic()
    assert (await run.execute(plan(3))).success
    assert time.monotonic() - began > 0.2, "ten a second"
    meters.calls.take(600, shares.clock())
    result = await run.execute(plan(1))
    assert [one.error_code for one in result.tool_results] == ["QUOTA_EXCEEDED"]
    assert idle(shares)


async def test_time_limits_stand_still_while_a_call_waits_and_the_wait_has_a_limit_of_its_own(
    tmp_path: Path,
) -> None:
    slow = write_tool(tmp_path, "sleep 0.6", "slow")
    quick = write_tool(tmp_path, ":", "quick", timeout=0.3)
    shares = Shares(ShareLimits(processes=1, wait_seconds=2))
    holding = asyncio.create_task(executor([slow], shares, "a").execute(plan(1, "slow")))
    while not shares.places.holding:
        await asyncio.sleep(0.001)
    waited = await executor([quick], shares, "b", plan_timeout=0.4).execute(plan(1, "quick"))
    assert waited.success, waited.tool_results
    await holding
    shares = Shares(ShareLimits(processes=1, wait_seconds=0.1))
    holding = asyncio.create_task(executor([slow], shares, "a").execute(plan(1, "slow")))
    while not shares.places.holding:
        await asyncio.sleep(0.001)
    result = await executor([quick], shares, "b").execute(plan(1, "quick"))
    (one,) = result.tool_results
    assert one.error is not None
    assert one.error_code == "OVERLOADED"
    assert "no place for its process came free within 0.1 s" in str(one.error)
    assert (await holding).success, "what runs goes on"
    assert idle(shares)


async def test_a_plan_that_has_something_running_has_no_more_time_than_else(tmp_path: Path) -> None:
    slow = write_tool(tmp_path, "sleep 5", "slow")
    shares = Shares(ShareLimits(processes=1))
    began = time.monotonic()
    result = await executor([slow], shares, "a", limit=2, plan_timeout=0.3).execute(plan(3, "slow"))
    assert not result.success
    assert time.monotonic() - began < 4
    assert idle(shares)


async def test_nothing_stays_behind_of_cancelled_plans(tmp_path: Path) -> None:
    slow = write_tool(tmp_path, "sleep 5", "slow")
    shares = Shares(ShareLimits(processes=2, tools={"slow": Quota(processes=1)}))
    tasks = [
        asyncio.create_task(executor([slow], shares, f"s{at}", limit=3).execute(plan(4, "slow")))
        for at in range(4)
    ]
    while shares.waiting < 11:
        await asyncio.sleep(0.001)
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended)
    assert idle(shares)
    assert shares.queue_of("slow", 1).holding == shares.queue_of("slow", 1).waiting == 0


async def test_a_call_that_takes_an_effect_back_is_never_refused(tmp_path: Path) -> None:
    quick, slow = write_tool(tmp_path, ":"), write_tool(tmp_path, "sleep 5", "slow")
    quota = Quota(cpu_seconds_per_hour=0.001, calls_per_minute=1)
    shares = Shares(ShareLimits(processes=1, session=quota, wait_seconds=0.1))
    run = executor([quick, slow], shares, "s")
    holding = asyncio.create_task(run.execute(plan(1, "slow")))
    while not shares.places.holding:
        await asyncio.sleep(0.001)
    refused = await run.registry.execute("tool", {}, session=run.session)
    assert refused.failure is not None and refused.failure.code == "QUOTA_EXCEEDED"
    taken_back = await run.registry.executor.compensate("tool", {}, session=Draft.of(run.session))
    assert taken_back.success, taken_back.message
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    assert idle(shares)


async def test_the_queue_is_bounded(tmp_path: Path) -> None:
    slow = write_tool(tmp_path, "sleep 0.1", "slow")
    shares = Shares(ShareLimits(processes=1, waiting=2))
    result = await executor([slow], shares, "s", limit=5).execute(plan(5, "slow"))
    codes = sorted(one.error_code or "" for one in result.tool_results)
    assert codes == ["", "", "", "OVERLOADED", "OVERLOADED"]
    assert idle(shares)


def test_turns_are_shed_while_there_is_too_much_to_do_and_resumed_ones_never() -> None:
    now = 0.0
    shares = Shares(ShareLimits(processes=1, turns=2, overload_seconds=10), clock=lambda: now)
    share = shares.of("s")
    ends = [share.begin_turn(), shares.of("t").begin_turn()]
    with pytest.raises(Overload, match="too many stories are being told here now"):
        shares.of("u").begin_turn()
    ends.append(shares.of("u").resume_turn())
    assert shares.turns == 3
    for end in (*ends, *ends):
        end()
    assert shares.turns == 0
    held = [shares.places.ask("", "a") for _ in range(100)]
    now = 4.0
    share.begin_turn()()
    held += [shares.places.ask("", name) for name in "bc"]
    with pytest.raises(Overload) as shed:
        share.begin_turn()
    assert shed.value.seconds == pytest.approx(16.0)
    assert (shares.shed_turns, shares.refused_turns) == (2, 0)
