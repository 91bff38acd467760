"""Fair shares: the wait of a session with one call beside a session with a plan of a thousand.

    python bench/bench_shares.py

Both share the places of one server. The small session calls now and then, while the large one keeps all places busy.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import tempfile
import time
from collections import deque
from pathlib import Path

from _measure import Row, report

from narratoria.kinds.process.process_tool import process_tool
from narratoria.kinds.shares.fair_queue import FairQueue, Place
from narratoria.kinds.shares.limits import ShareLimits, default_limits
from narratoria.kinds.shares.shares import Shares
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session

CALLS = 1_000
LOOKS = 40
PLACES = 2
SESSIONS = 1_000


def write_tool(folder: Path) -> Path:
    path = folder / "tool"
    path.write_text("""#!/bin/sh\necho '{"version":"0","type":"done","ok":true}'\n""")
    path.chmod(0o755)
    return path


def plan(calls: int) -> PlanDocument:
    tools = [{"toolId": f"c{at}", "toolPath": "tool", "input": {}, "async": True} for at in range(calls)]
    return PlanDocument.from_json(json.dumps({"requestId": "p", "tools": tools, "parallel": True}))


def executor(tool: Path, shares: Shares | None, name: str, limit: int) -> PlanExecutor:
    session = Session(name)
    session.share = None if shares is None else shares.of(name)
    return PlanExecutor(ToolRegistry([process_tool(tool)]), session, limit=limit, plan_timeout=600)


async def one_call(small: PlanExecutor) -> float:
    began = time.perf_counter()
    result = await small.execute(plan(1))
    assert result.success, result.tool_results
    return time.perf_counter() - began


async def beside_a_large_one(tool: Path) -> tuple[list[float], list[float], float]:
    """Return the times of small calls alone and beside the large plan, and the mean time of a call of that."""
    shares = Shares(ShareLimits(processes=PLACES, wait_seconds=600))
    small = executor(tool, shares, "small", 1)
    alone = [await one_call(small) for _ in range(LOOKS)]
    large = executor(tool, shares, "large", 4 * PLACES)  # its workers would fill any line
    began = time.perf_counter()
    running = asyncio.create_task(large.execute(plan(CALLS)))
    beside = []
    while not running.done() and len(beside) < LOOKS:
        await asyncio.sleep(0.03)
        beside.append(await one_call(small))
    result = await running
    assert result.success, [one for one in result.tool_results if not one.ok][:3]
    return alone, beside, (time.perf_counter() - began) / (CALLS + len(beside)) * PLACES


async def cost_of_a_share(tool: Path) -> float:
    """Return the microseconds of CPU that a share adds to the call of a process where nobody waits."""
    times: dict[bool, list[float]] = {True: [], False: []}
    shares = Shares(default_limits(PLACES))
    runs = {shared: executor(tool, shares if shared else None, "s", 1) for shared in times}
    for _ in range(300):
        for shared, run in runs.items():
            began = time.process_time()
            await run.registry.execute("tool", {}, session=run.session)
            times[shared].append(time.process_time() - began)
    return (statistics.median(times[True]) - statistics.median(times[False])) * 1e6


def cost_of_the_queue() -> float:
    """Return the microseconds of a place, asked for and given back, while calls of a thousand sessions wait."""
    queue, waiting = FairQueue(1), deque[Place]()
    for _ in range(2):
        waiting += [queue.ask("", f"s{at}") for at in range(SESSIONS)]
    served, began = 0, time.perf_counter()
    while served < 5_000:
        first = waiting.popleft()
        if not first.granted:  # it was not its turn yet
            waiting.append(first)
            continue
        first.release()
        waiting.append(queue.ask("", f"s{served % SESSIONS}"))
        served += 1
    return (time.perf_counter() - began) / served * 1e6


async def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="narratoria-bench-"))
    try:
        tool = write_tool(folder)
        alone, beside, each = await beside_a_large_one(tool)
        added = statistics.median(beside) - statistics.median(alone)
        rows = [
            Row(
                f"wait of a session with one call beside {CALLS:,} of another, in calls",
                max(0.0, added) / each,
                2,
                unit=" calls",
                note=f"{statistics.median(beside) * 1000:.1f} ms, alone {statistics.median(alone) * 1000:.1f} ms; "
                f"{PLACES} places, {each * 1000:.1f} ms each",
            ),
            Row(
                "the longest such wait",
                (max(beside) - statistics.median(alone)) / each,
                6,
                unit=" calls",
                note=f"of {len(beside)}",
            ),
            Row(
                "a share, on the call of a process, where nobody waits, CPU",
                await cost_of_a_share(tool),
                100,
                unit=" µs",
            ),
            Row(f"a place, with {SESSIONS:,} sessions waiting", cost_of_the_queue(), 100, unit=" µs"),
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report("shares", rows)


if __name__ == "__main__":
    asyncio.run(main())
