"""Plans: a DAG of no-op calls against a bare asyncio scheduler, and k tools of 200 ms against the ideal.

The bare scheduler knows one task per node, counters and a semaphore: no arguments, no retries, no session, no trace.
Ours runs with retries, the limit and every record on. Peers get the same graphs, smaller, because they are slow:
the larger a graph, the more LangGraph spends on each of its nodes, so its target is judged on the largest that ends
within seconds, which is still in its favour. DBOS records every step in SQLite; Dask keeps nothing at all.
All costs are CPU time; that of Prefect's server is not counted.
Run in a virtual environment: `python bench/bench_plan.py [--no-peers]`. Needs a C compiler.
"""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from _measure import Row, Samples, middle, ratio, report
from peers.environment import Peer, PeerMissing
from peers.graphs import KINDS, Graph, make_graph

from narratoria import (
    PlanDocument,
    PlanExecutor,
    PlannedCall,
    Session,
    ToolContext,
    ToolRegistry,
    ToolResult,
    tool,
)
from narratoria.kinds.process.process_tool import process_tool
from narratoria.session import Record

CALLS, ROUNDS, LIMIT = 10_000, 7, 2
SLEEP = 0.2
PEERS = (
    (Peer("langgraph", "plan_langgraph.py", 35), (300, 3_000)),
    (Peer("prefect", "plan_prefect.py", 300), (100,)),
    (Peer("dbos", "plan_dbos.py"), (300,)),
    (Peer("dask", "plan_dask.py"), (3_000,)),
)  # each with its sizes; the target holds for the last
SLEEPER = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    char buffer[4096];
    while (read(0, buffer, sizeof buffer) > 0) {}
    struct timespec pause = {0, 200000000};
    nanosleep(&pause, 0);
    puts("{\"version\":\"0\",\"type\":\"done\",\"ok\":true}");
    return 0;
}
"""


@dataclass(frozen=True)
class Nothing:
    pass


@tool(description="Does nothing.")
async def nothing(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    return ToolResult.ok(None)


class Nowhere:
    """A sink: with one attached, every call writes its records."""

    full = False

    def push(self, record: Record) -> None:
        pass

    async def wait(self) -> None:
        pass


def plan_of(graph: Graph, tool_path: str = "nothing") -> PlanDocument:
    calls = [
        PlannedCall(tool_id=node, tool_path=tool_path, dependencies=dependencies, async_=True)
        for node, dependencies in graph.items()
    ]
    return PlanDocument(request_id="bench", parallel=True, tools=calls)


async def bare(graph: Graph) -> None:
    remaining = {node: len(dependencies) for node, dependencies in graph.items()}
    dependants: Graph = {node: [] for node in graph}
    for node, dependencies in graph.items():
        for dependency in dependencies:
            dependants[dependency].append(node)
    places, tasks, results = asyncio.Semaphore(LIMIT), set(), {}
    finished = asyncio.Event()

    async def act() -> None:
        return None

    async def run(node: str) -> None:
        async with places:
            results[node] = await act()
        for dependant in dependants[node]:
            remaining[dependant] -= 1
            if not remaining[dependant]:
                start(dependant)
        if len(results) == len(graph):
            finished.set()

    def start(node: str) -> None:
        task = asyncio.create_task(run(node))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    for node in graph:
        if not remaining[node]:
            start(node)
    await finished.wait()


async def ours(plan: PlanDocument) -> None:
    session = Session()
    session.attach(Nowhere())
    result = await PlanExecutor(ToolRegistry([nothing]), session, limit=LIMIT).execute(plan)
    assert result.success and len(result.tool_results) == len(plan.tools)


def compare(kind: str, calls: int) -> Samples:
    """Microseconds of CPU per call, ours and bare, which take turns."""
    graph = make_graph(kind, calls)
    plan = plan_of(graph)
    samples: Samples = {"ours": [], "bare": []}
    for number in range(ROUNDS + 1):
        for name in samples:
            begun = time.process_time()
            asyncio.run(ours(plan) if name == "ours" else bare(graph))
            if number:
                samples[name].append((time.process_time() - begun) / calls * 1e6)
    return samples


def against_bare() -> list[Row]:
    rows = []
    for kind in KINDS:
        samples = compare(kind, CALLS)
        times, spread = ratio(samples, "ours", "bare")
        note = f"{middle(samples['ours'])[0]:.1f} against {middle(samples['bare'])[0]:.1f} µs"
        rows.append(
            Row(f"{CALLS:,} calls, {kind}: bare asyncio scheduler", times, 2, note=note, spread=spread)
        )
    return rows


def against_peers() -> list[Row]:
    rows = []
    for peer, sizes in PEERS:
        try:
            for calls in sizes:
                rows.extend(against(peer, kind, calls, calls == sizes[-1]) for kind in KINDS)
        except PeerMissing as reason:
            print(f"skipped: {peer.package}: {reason}")
    return rows


def against(peer: Peer, kind: str, calls: int, judged: bool) -> Row:
    mine, theirs = min(compare(kind, calls)["ours"]), peer.measure(kind, str(calls))
    return Row(
        f"{calls:,} calls, {kind}: {peer.package} against ours",
        theirs / mine,
        peer.factor if judged else None,
        at_least=True,
        note=f"{theirs:,.0f} against {mine:.1f} µs",
        peer=peer.release,
    )


def sleeping_tools() -> list[Row]:
    """Launch cost is what the same plan takes of tools that end at once."""
    rows = []
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        source, tool_path, quick_path = Path(folder, "s.c"), Path(folder, "sleeper"), Path(folder, "quick")
        source.write_text(SLEEPER)
        subprocess.run(["cc", "-O2", "-o", tool_path, source], check=True)
        source.write_text(SLEEPER.replace("nanosleep(&pause, 0);", ""))
        subprocess.run(["cc", "-O2", "-o", quick_path, source], check=True)
        registry = ToolRegistry([process_tool(tool_path), process_tool(quick_path)])
        for count in (cores, 4 * cores, 4 * cores + 1):
            plans = {
                name: plan_of({f"n{n}": [] for n in range(count)}, name) for name in ("sleeper", "quick")
            }
            best = dict.fromkeys(plans, float("inf"))
            for _ in range(5):
                for name, plan in plans.items():
                    best[name] = min(best[name], asyncio.run(elapsed(registry, plan)))
            ideal = math.ceil(count / cores) * SLEEP
            note = f"{best['sleeper']:.3f} s, ideal {ideal:.1f} s, launches {best['quick']:.3f} s"
            name = f"{count} tools of 200 ms on {cores} cores, launches taken off"
            rows.append(Row(name, (best["sleeper"] - best["quick"]) / ideal, 1.05, note=note))
    return rows


async def elapsed(registry: ToolRegistry, plan: PlanDocument) -> float:
    begun = time.perf_counter()
    result = await PlanExecutor(registry, Session()).execute(plan)
    assert result.success, result
    return time.perf_counter() - begun


def main() -> None:
    rows = against_bare() + sleeping_tools()
    if "--no-peers" not in sys.argv:
        rows += against_peers()
    report("plans of no-op calls, with retries, limit and records", rows)


if __name__ == "__main__":
    main()
