"""Warm tools: calls that are forks of a server, against cold starts of the same script by the same supervisor.

Run in a virtual environment: `python bench/bench_warm.py [COUNT]`. Linux only.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from _measure import Row, Samples, middle, ratio, report, turns

from narratoria.kinds.process.supervisor import run_process
from narratoria.kinds.process.warm_servers import WarmScript

PLAIN = """
import json
import sys

json.load(sys.stdin)
print(json.dumps({"version": "0", "type": "done", "ok": True}))
"""
HEAVY = """
import asyncio, decimal, email.mime.text, http.server, sqlite3, ssl, unittest.mock, urllib.request, xmlrpc.client
"""
REQUEST = b'{"requestId":"bench","tool":"plain","operation":"run","input":{"n":1},"dependencies":{}}\n'
ROUNDS = 9


def caller(script: Path, count: int, *, warm: bool) -> Callable[[], Awaitable[None]]:
    start = WarmScript((sys.executable,), str(script)).start if warm else None

    async def call() -> None:
        for _ in range(count):
            outcome = await run_process(
                [sys.executable, str(script)],
                REQUEST,
                tool="plain",
                on_events=lambda events: None,
                timeout=30,
                linger=10,
                warm=start,
            )
            assert outcome.exit_code == 0 and outcome.done is not None and not outcome.cold, outcome

    return call


def server_mebibytes() -> float:
    """Resident memory of our largest child."""
    pids = [int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return max(pages) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def measured(folder: Path, count: int) -> tuple[Samples, float]:
    contenders = {}
    for name, source in (("plain", PLAIN), ("heavy", HEAVY + PLAIN)):
        script = folder / f"{name}.py"
        script.write_text(source)
        for warm in (True, False):
            contenders[f"{name} {'warm' if warm else 'cold'}"] = caller(script, count, warm=warm)
    return await turns(contenders, count, ROUNDS), server_mebibytes()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        samples, mebibytes = asyncio.run(measured(Path(folder), count))
    rows = []
    for name, told, target in (("plain", "a plain tool", 10), ("heavy", "heavy imports", 20)):
        faster, spread = ratio(samples, f"{name} cold", f"{name} warm")
        rows.append(Row(f"{told}: cold start against fork", faster, target, at_least=True, spread=spread))
    rows.append(Row("the largest server", mebibytes, 512, unit=" MiB"))
    each = ", ".join(f"{name} {middle(values)[0] / 1000:.2f} ms" for name, values in samples.items())
    report(f"warm: {count} calls a round, one after another (per call: {each})", rows)


if __name__ == "__main__":
    main()
