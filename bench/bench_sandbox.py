"""The sandbox: a call of a tiny C tool in a cell, against one without.

Run in a virtual environment: `python bench/bench_sandbox.py [COUNT]`. Needs Linux and a C compiler. Both go through the
whole pipeline. The cells are ended in each round, so that their CPU, and that of the tools in them, counts.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from _measure import Row, against, interleaved, report
from bench_launch import compile_tool

from narratoria.kinds.process.cells.cell_pool import pool
from narratoria.kinds.process.process_tool import process_tool
from narratoria.kinds.sandbox import ProfileName
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session

TARGET = 1.25


def calls(tool: Path, sandbox: ProfileName, count: int) -> None:
    async def one_after_the_other() -> None:
        executor, session = ToolRegistry().executor, Session()
        made = process_tool(tool, sandbox=sandbox)
        for _ in range(count):
            result = await executor.execute(made, {}, session=session)
            assert result.success, result

    asyncio.run(one_after_the_other())
    pool().close()


def first_call(tool: Path, sandbox: ProfileName) -> float:
    before = time.perf_counter()
    calls(tool, sandbox, 1)
    return (time.perf_counter() - before) * 1000


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        tool = compile_tool(Path(folder))
        costs = interleaved(
            {name: partial(calls, tool, name, count) for name in ("trusted", "story", "strict")}
        )
        first = sorted(first_call(tool, "strict") - first_call(tool, "trusted") for _ in range(5))[2]
    plain, ms = costs["trusted"], 1000 / count
    report(
        f"sandbox: {count} calls of a tiny C tool (per call: "
        + ", ".join(f"{n} {c.wall * ms:.2f} ms, {c.cpu * ms:.2f} ms CPU" for n, c in costs.items())
        + ")",
        [
            against("wall time of story against trusted", costs["story"], plain, TARGET, by="wall"),
            against("wall time of strict against trusted", costs["strict"], plain, TARGET, by="wall"),
            against("CPU of strict against trusted", costs["strict"], plain, TARGET, by="cpu"),
            Row("the first call, more than without", first, None, unit=" ms"),
        ],
    )


if __name__ == "__main__":
    main()
