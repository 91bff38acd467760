"""Other machines: a call on a local Ray against a bare Ray task, and events in batches against one by one.

Run in a virtual environment with the extra `ray`: `python bench/bench_remote.py [COUNT]`. Needs a C compiler.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from _measure import Row, ratio, report, turns
from bench_launch import REQUEST, compile_tool

from narratoria.kinds.process.process_tool import process_tool
from narratoria.kinds.remote.ray_engine import RayEngine
from narratoria.kinds.remote.remote import remote
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.tool import Tool

EVENTS = 4000
LINE = '{"version":"0","type":"log","level":"info","message":"a line of an ordinary length, as tools write them"}'


def bare(program: str) -> bytes:
    return subprocess.run([program], input=REQUEST, stdout=subprocess.PIPE, check=True).stdout


def nothing() -> int:
    return 1


def one_by_one(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield LINE.encode()


def repeated(call: Callable[[], Awaitable[object]], count: int) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        for _ in range(count):
            await call()

    return run


async def calls(engine: RayEngine, tool: Path, count: int) -> list[Row]:
    import ray

    placed: Tool[Any, Any] = remote(process_tool(tool), engine)
    executor, session = ToolRegistry().executor, Session()
    runs, empty = ray.remote(bare), ray.remote(nothing)

    async def ours() -> None:
        result = await executor.execute(placed, {}, session=session)
        assert result.success, result

    async def theirs() -> None:
        assert await runs.remote(str(tool))

    async def hollow() -> None:
        assert await empty.remote()

    contenders = {"ours": ours, "bare": theirs, "empty": hollow}
    samples = await turns({name: repeated(one, count) for name, one in contenders.items()}, count, 5)
    rows = []
    for name, other, target in (
        ("a call against a bare Ray task that runs the same program", "bare", 1.2),
        ("a call against a Ray task that does nothing", "empty", None),
    ):
        measured, spread = ratio(samples, "ours", other)
        shown = ", ".join(f"{one} {sorted(samples[one])[2] / 1000:.2f} ms" for one in ("ours", other))
        rows.append(Row(name, measured, target, spread=spread, note=shown))
    return rows


async def events(engine: RayEngine, folder: Path) -> list[Row]:
    import ray

    (folder / "lines").write_text(f"{LINE}\n" * EVENTS + '{"version":"0","type":"done","ok":true}\n')
    talker = folder / "talker.sh"
    talker.write_text(f"#!/bin/sh\ncat {folder / 'lines'}\n")
    talker.chmod(0o755)
    placed: Tool[Any, Any] = remote(process_tool(talker), engine)
    executor = ToolRegistry().executor
    streaming = ray.remote(num_returns="streaming")(one_by_one)

    async def ours() -> None:
        result = await executor.execute(placed, {}, session=Session())
        assert result.success, result

    async def theirs() -> None:
        seen = 0
        async for ref in streaming.remote(EVENTS):
            seen += bool(await ref)
        assert seen == EVENTS

    samples = await turns({"ours": ours, "one by one": theirs}, EVENTS, 5)
    measured, spread = ratio(samples, "one by one", "ours")
    rates = ", ".join(f"{name} {1e6 / sorted(each)[2]:,.0f}/s" for name, each in samples.items())
    return [
        Row("events of a call against a stream of single ones", measured, 15, True, spread=spread, note=rates)
    ]


async def measured(engine: RayEngine, folder: Path, count: int) -> list[Row]:
    return await calls(engine, compile_tool(folder), count) + await events(engine, folder)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    engine = RayEngine(num_cpus=2)
    engine.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = asyncio.run(measured(engine, Path(folder), count))
    finally:
        engine.close()
    report(f"remote: {count} calls on a local Ray, one after the other; {EVENTS:,} events", rows)


if __name__ == "__main__":
    main()
