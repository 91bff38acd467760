"""Launching: 1,000 tiny C tools with the full contract, against xargs and against stock asyncio.

Run in a virtual environment: `python bench/bench_launch.py [COUNT]`. Needs a C compiler and xargs.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from _measure import Row, against, interleaved, measure, report

from narratoria.events import Done, ToolEvent, decode_tool_event
from narratoria.kinds.process.supervisor import run_process

TOOL = r"""
#include <unistd.h>
#include <string.h>
int main(void) {
    char buffer[4096];
    while (read(0, buffer, sizeof buffer) > 0) {}
    const char *done = "{\"version\":\"0\",\"type\":\"done\",\"ok\":true}\n";
    return write(1, done, strlen(done)) > 0 ? 0 : 1;
}
"""
REQUEST = b'{"requestId":"bench","tool":"tiny","operation":"run","input":{"n":1},"dependencies":{}}\n'
WORKERS = 2


def compile_tool(folder: Path) -> Path:
    source, tool = folder / "tiny.c", folder / "tiny"
    source.write_text(TOOL)
    subprocess.run(["cc", "-O2", "-o", tool, source], check=True)
    return tool


async def ours(tool: Path) -> None:
    seen: list[ToolEvent] = []
    outcome = await run_process([str(tool)], REQUEST, tool="tiny", on_events=seen.extend, timeout=30)
    assert outcome.exit_code == 0 and outcome.done is not None and len(seen) == 1


async def stock(tool: Path) -> None:
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(tool, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(REQUEST)
    process.stdin.close()
    events = []
    async with asyncio.timeout(30):
        while line := await process.stdout.readline():
            events.append(decode_tool_event(line))
        assert await process.wait() == 0
    assert isinstance(events[-1], Done)


def in_pairs(launch: Callable[[Path], Awaitable[None]], tool: Path, count: int) -> None:
    async def worker(turns: list[None]) -> None:
        while turns:
            turns.pop()
            await launch(tool)

    async def both() -> None:
        turns: list[None] = [None] * count
        await asyncio.gather(*(worker(turns) for _ in range(WORKERS)))

    asyncio.run(both())


def xargs(tool: Path, count: int) -> None:
    numbers = "\n".join(map(str, range(count)))
    subprocess.run(
        ["xargs", f"-P{WORKERS}", "-n1", tool],
        input=numbers,
        text=True,
        stdout=subprocess.DEVNULL,
        check=True,
    )


def ballast_ratio(tool: Path, count: int, rounds: int = 5) -> float:
    """CPU per launch of a parent of 1 GB, relative to that of a small one."""
    small, large = [], []
    for _ in range(rounds):
        small.append(measure(partial(in_pairs, ours, tool, count)).cpu)
        ballast = b"x" * (1 << 30)
        large.append(measure(partial(in_pairs, ours, tool, count)).cpu)
        del ballast
    return sorted(large)[rounds // 2] / sorted(small)[rounds // 2]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        tool = compile_tool(Path(folder))
        costs = interleaved(
            {
                "ours": partial(in_pairs, ours, tool, count),
                "xargs": partial(xargs, tool, count),
                "stock": partial(in_pairs, stock, tool, count),
            }
        )
        heavy = ballast_ratio(tool, max(count // 5, 20))
    ms = 1000 / count
    report(
        f"launch: {count} tiny C tools, {WORKERS} at a time (per tool: "
        + ", ".join(f"{n} {c.wall * ms:.2f} ms, {c.cpu * ms:.2f} ms CPU" for n, c in costs.items())
        + ")",
        [
            against("wall time against xargs -P2", costs["ours"], costs["xargs"], 1.25, by="wall"),
            against("CPU against stock asyncio", costs["ours"], costs["stock"], 0.75, by="cpu"),
            Row("CPU of a launch, 1 GB parent against small", heavy, 1.2),
            against("wall time against stock asyncio", costs["ours"], costs["stock"], None, by="wall"),
        ],
    )


if __name__ == "__main__":
    main()
