"""MCP: an in-process tool called over our server, against the same tool on a bare server of the official package.

The client here is a few lines over a pipe or a socket, so that the server is what is measured. Ours keeps every call in
a journal on the disk. `python bench/bench_mcp.py [--no-peers]`; the servers are in _mcp_servers.py.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measure import Row, Samples, middle, ratio, report
from peers.environment import HERE, PeerMissing, python_with, release

CALLS, ROUNDS, LISTS = 100, 30, 4
SERVERS = Path(__file__).parent / "_mcp_servers.py"
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
ADD = {"name": "add", "arguments": {"a": 2, "b": 3}}


def message(method: str, number: int | None, params: dict[str, Any]) -> bytes:
    numbered = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **numbered, "method": method, "params": params}).encode()


class OverPipe:
    """A server over standard input and output."""

    def __init__(self, *command: object) -> None:
        self.process = subprocess.Popen(
            [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0
        self.ask("initialize", HELLO)
        self._write(message("notifications/initialized", None, {}))

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        self.number += 1
        self._write(message(method, self.number, params))
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise PeerMissing("the server ended")
        return line

    def close(self) -> None:
        self.process.communicate(timeout=20)


class OverHttp:
    """A server over HTTP, on one connection that is kept."""

    def __init__(self, kind: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, str(SERVERS), kind, str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": "Bearer a-token-for-the-benchmark",
        }
        self.number = 0
        self._wait()
        self._post(message("notifications/initialized", None, {}))

    def _wait(self) -> None:
        until = time.monotonic() + 60
        while True:
            try:
                self.ask("initialize", HELLO)
                return
            except OSError:
                self.connection.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _post(self, body: bytes) -> bytes:
        try:
            self.connection.request("POST", "/mcp", body, self.headers)
            answer = self.connection.getresponse()
        except (
            BrokenPipeError,
            http.client.RemoteDisconnected,
        ):  # it was idle while the others had their turn
            self.connection.close()
            self.connection.request("POST", "/mcp", body, self.headers)
            answer = self.connection.getresponse()
        data = answer.read()
        if session := answer.getheader("mcp-session-id"):
            self.headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        return data

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        self.number += 1
        return self._post(message(method, self.number, params))

    def close(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait(timeout=20)


def per_ask(server: Any, method: str, params: dict[str, Any], times: int, expected: bytes) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        answer = server.ask(method, params)
    taken = (time.perf_counter() - begun) / times
    assert expected in answer, answer[:300]
    return taken


def compare(
    servers: dict[str, Any], method: str, params: dict[str, Any], times: int, expected: bytes
) -> Samples:
    """Seconds of each, round by round; all take a turn in every round, and the first does not count."""
    samples: Samples = {name: [] for name in servers}
    for number in range(ROUNDS + 1):
        for name, server in servers.items():
            taken = per_ask(server, method, params, times, expected)
            if number:
                samples[name].append(taken)
    return samples


def together(
    made: dict[str, Callable[[], Any]], asks: list[tuple[str, dict[str, Any], int, bytes]]
) -> list[Samples]:
    servers: dict[str, Any] = {}
    try:
        for name, make in made.items():
            try:
                servers[name] = make()
            except PeerMissing as error:
                print(f"  {name}: not measured: {error}")
        return [compare(servers, *ask) for ask in asks]
    finally:
        for server in servers.values():
            server.close()


def row(name: str, samples: Samples, ours: str, target: float | None = None, peer: str = "") -> Row:
    times, spread = ratio(samples, ours, "bare")
    note = f"{middle(samples[ours])[0] * 1e6:,.0f} µs each"
    return Row(name, times, target, note=note, spread=spread, peer=peer)


def main() -> None:
    call = ("tools/call", ADD, CALLS, b"5")
    listing = ("tools/list", {}, LISTS, b"tool_498")
    pipes: dict[str, Callable[[], Any]] = {
        "ours": lambda: OverPipe(sys.executable, SERVERS, "ours"),
        "bare": lambda: OverPipe(sys.executable, SERVERS, "bare"),
        "high": lambda: OverPipe(sys.executable, SERVERS, "high"),
    }
    if "--no-peers" not in sys.argv:
        pipes["FastMCP"] = lambda: OverPipe(python_with("fastmcp"), HERE / "mcp_fastmcp.py")
    (calls,) = together(pipes, [call])
    rows = [row("over stdio, ours / bare mcp", calls, "ours", 1.15)]
    if "high" in calls:
        rows.append(row("over stdio, mcp's decorated functions / bare", calls, "high"))
    if "FastMCP" in calls:
        rows.append(row("over stdio, FastMCP / bare", calls, "FastMCP", peer=release("fastmcp")))
    (lists,) = together({name: pipes[name] for name in ("ours", "bare")}, [listing])
    rows.append(row("500 tools listed, ours / bare", lists, "ours", 1.0))
    webs: dict[str, Callable[[], Any]] = {"ours": lambda: OverHttp("ours"), "bare": lambda: OverHttp("bare")}
    (posts,) = together(webs, [call])
    rows.append(row("over HTTP, ours / bare mcp", posts, "ours", 1.15))
    report("MCP: a two-int tool called over a server", rows)


if __name__ == "__main__":
    main()
