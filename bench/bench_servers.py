"""Several servers over one PostgreSQL: throughput, a thousand players, taking over, memory of idle sessions.

The database, the servers and the players share this machine's cores, so the throughput of two servers is told by the
clock and by the CPU time of the servers; only with cores to spare do both say the same. `NARRATORIA_BENCH_SCALE=0.1`
plays with a tenth of the sessions.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _measure import Row, report

SCALE = float(os.environ.get("NARRATORIA_BENCH_SCALE", "1"))
PLAYERS = max(10, int(1_000 * SCALE))
IDLE = max(50, int(10_000 * SCALE))
THINKING = 20.0  # seconds between two prompts of one of the thousand
ROUNDS = 3  # prompts of each
BUSY_PLAYERS, BUSY_TURNS = 32, max(4, int(20 * SCALE))
KILLS = 5
TOKEN = "bench"  # noqa: S105 - of a server that ends with this
STORY = """id = "room"
title = "The Room"
premise = "A story for measuring."
narrator = ["rules"]
[opening]
narrative = "A room."
choices = ["Look"]
"""
RULES = """[[rule]]
id = "look"
patterns = ["look [around]"]
narrative = "Shelves, and more shelves."
[[rule]]
id = "wait"
patterns = ["sleep"]
narrative = "You sleep."
calls = [{ id = "sleep", tool = "sleeper", input = {} }]
"""
SLEEPER = """#!/bin/sh
sleep 3
echo '{"version": "0", "type": "done", "ok": true}'
"""


@contextmanager
def database(folder: Path) -> Iterator[str]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    binaries = (
        found[-1].parent if found else Path(shutil.which("postgres") or sys.exit("no PostgreSQL")).parent
    )
    user = "postgres" if os.getuid() == 0 else None
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def run(program: str, *arguments: str) -> None:
        command = [str(binaries / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)

    run("initdb", "-U", "narratoria", "--auth=trust", "-E", "UTF8", "--locale=C")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
    run("pg_ctl", "start", "-w", "-l", str(folder / "data" / "log.txt"), "-o", options)
    try:
        yield f"postgresql://narratoria@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "stop", "-w", "-m", "fast")


class Server:
    """One `narratoria serve`."""

    def __init__(self, url: str, home: Path, *options: str) -> None:
        story = home / "stories" / "room"
        (story / "tools").mkdir(parents=True, exist_ok=True)
        (story / "story.toml").write_text(STORY)
        (story / "narrator.toml").write_text(RULES)
        (story / "tools" / "sleeper").write_text(SLEEPER)
        (story / "tools" / "sleeper").chmod(0o755)
        environment = os.environ | {
            "NARRATORIA_HOME": str(home), "NARRATORIA_STORE": url, "NARRATORIA_TOKEN": TOKEN,
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "narratoria", "serve", "--port", "0", *options],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().strip().rstrip("/").rpartition(":")[2])

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def servers(url: str, folder: Path, count: int, *options: str) -> Iterator[list[Server]]:
    started = [Server(url, folder / f"home{number}", *options) for number in range(count)]
    try:
        yield started
    finally:
        for one in started:
            if one.process.poll() is None:
                one.end()


async def ask(server: Server, method: str, path: str, body: Any = None) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content)
    answer = await reader.read()
    writer.close()
    status = int(answer.split(b" ", 2)[1])
    assert status < 300, answer[:500]
    found = answer.partition(b"\r\n\r\n")[2]
    return json.loads(found) if found.strip().startswith((b"{", b"[")) else found


class Player:
    """One session: its stream, and the ends of its turns."""

    def __init__(self, server: Server, session: str) -> None:
        self.server, self.session = server, session
        self.ended = asyncio.Queue[float]()
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self.server.port, limit=1 << 22)
        path = f"/sessions/{self.session}/events?after=1000000"
        self._writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        first = True
        while line := await reader.readline():
            if b'"turn_committed"' in line:
                if not first:  # the first is the story so far
                    self.ended.put_nowait(time.perf_counter())
                first = False

    async def turn(self, prompt: str = "look around") -> float:
        begun = time.perf_counter()
        await ask(self.server, "POST", f"/sessions/{self.session}/prompt", {"prompt": prompt})
        return await asyncio.wait_for(self.ended.get(), 120) - begun

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._writer.close()


async def players(found: list[Server], count: int) -> list[Player]:
    made: list[Player] = []
    for start in range(0, count, 20):
        chosen = [found[number % len(found)] for number in range(start, min(start + 20, count))]
        ids = await asyncio.gather(*(ask(one, "POST", "/sessions", {"story": "room"}) for one in chosen))
        made += [Player(one, answer["id"]) for one, answer in zip(chosen, ids, strict=True)]
    await asyncio.sleep(2)
    return made


async def throughput(found: list[Server]) -> tuple[float, float]:
    """Turns a second on the clock, and for each second of the servers' CPU time times their number."""
    playing = await players(found, BUSY_PLAYERS)

    async def play(one: Player) -> None:
        for _ in range(BUSY_TURNS):
            await one.turn()

    await asyncio.gather(*(one.turn() for one in playing))  # narrators are warm after it
    cpu, begun = sum(one.cpu() for one in found), time.perf_counter()
    await asyncio.gather(*map(play, playing))
    took, used = time.perf_counter() - begun, sum(one.cpu() for one in found) - cpu
    for one in playing:
        await one.close()
    turns = BUSY_PLAYERS * BUSY_TURNS
    return turns / took, turns / used * len(found)


async def thousand(found: list[Server]) -> list[float]:
    playing = await players(found, PLAYERS)
    chance = random.Random(1)

    async def play(one: Player) -> list[float]:
        times = []
        for _ in range(ROUNDS):
            await asyncio.sleep(chance.uniform(0, 2 * THINKING))
            times.append(await one.turn())
        return times

    found_times = await asyncio.gather(*map(play, playing))
    for one in playing:
        await one.close()
    return sorted(time for times in found_times for time in times)


async def takeover(url: str, folder: Path) -> float:
    with servers(url, folder, 2) as (first, second):
        while "narratoria_peers 1" not in str(await ask(second, "GET", "/metrics")):
            await asyncio.sleep(0.1)
        await asyncio.sleep(3)  # both have started, covers are drawn
        session = (await ask(first, "POST", "/sessions", {"story": "room"}))["id"]
        await ask(first, "POST", f"/sessions/{session}/prompt", {"prompt": "sleep"})
        await asyncio.sleep(0.7)
        begun = time.perf_counter()
        first.kill()
        while True:
            figures = str(await ask(second, "GET", "/metrics"))
            if "narratoria_takeovers_total 1" in figures:
                return time.perf_counter() - begun
            await asyncio.sleep(0.02)


async def idle_memory(server: Server) -> tuple[float, float]:
    """Bytes for each session while it is open, and once it is closed for want of use."""
    for _ in range(20):
        await ask(server, "POST", "/sessions", {"story": "room"})
    await asyncio.sleep(1)
    before = server.memory()
    for start in range(0, IDLE, 20):
        new = (
            ask(server, "POST", "/sessions", {"story": "room"}) for _ in range(start, min(start + 20, IDLE))
        )
        await asyncio.gather(*new)
    opened = server.memory() - before
    while "narratoria_sessions_open 0\\n" not in str(await ask(server, "GET", "/metrics")):
        await asyncio.sleep(1)
    return opened / IDLE, max(0, server.memory() - before) / IDLE


async def main() -> None:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="narratoria-bench-") as place, database(Path(place)) as url:
        folder = Path(tempfile.mkdtemp(prefix="narratoria-bench-home-"))
        try:
            with servers(url, folder, 1) as one:
                single = await throughput(one)
                print(f"one server: {single[0]:.1f} turns/s", flush=True)
            with servers(url, folder, 2) as two:
                double = await throughput(two)
                print(f"two servers: {double[0]:.1f} turns/s", flush=True)
                times = await thousand(two)
            rows.append(
                Row(
                    "two servers against one, by the clock",
                    double[0] / single[0],
                    1.7,
                    at_least=True,
                    note=f"{single[0]:.0f} and {double[0]:.0f} turns/s; {os.cpu_count()} cores for all",
                )
            )
            rows.append(
                Row(
                    "two servers against one, by their CPU time",
                    double[1] / single[1],
                    1.7,
                    at_least=True,
                    note="as if each had a core of its own",
                )
            )
            p99 = times[int(len(times) * 0.99) - 1] * 1000
            rows.append(
                Row(
                    f"overhead of a turn, {PLAYERS:,} sessions on two servers, p99",
                    p99,
                    250,
                    unit=" ms",
                    note=f"a prompt every {THINKING:g} s each; median {statistics.median(times) * 1000:.0f} ms",
                )
            )
            taken = [await takeover(url, folder) for _ in range(KILLS)]
            rows.append(
                Row(
                    "a killed server's turn is taken over, longest",
                    max(taken),
                    5,
                    unit=" s",
                    note=f"median of {KILLS}: {statistics.median(taken):.2f} s",
                )
            )
            with servers(url, folder, 1, "--idle-seconds", "2") as one:
                opened, closed = await idle_memory(one[0])
            rows.append(
                Row(
                    f"memory of an idle session, {IDLE:,} opened",
                    closed / 1024,
                    64,
                    unit=" kB",
                    note=f"{opened / 1024:.0f} kB while some are open",
                )
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    report("servers", rows)


if __name__ == "__main__":
    asyncio.run(main())
