"""`narratoria serve` in tests: servers that share a database, and what their clients see."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import pytest
from tests import warm_start

MILL = Path(__file__).with_name("mill")
TOKEN = "the-token-of-these-servers"
START_SECONDS = 60


class Node:
    """One server. A `command` starts it cold, in another place."""

    def __init__(
        self,
        database: str,
        home: Path,
        *options: str,
        story: Path = MILL,
        command: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        (home / "stories").mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (home / "stories" / story.name).symlink_to(story)
        environment = os.environ | {
            "NARRATORIA_HOME": str(home),
            "TMPDIR": str(home),
            "NARRATORIA_STORE": database,
            "NARRATORIA_TOKEN": TOKEN,
            **(env or {}),
        }
        self.log = (home / "log").open("ab")
        words = ("serve", "--port", "0", *options)
        self.process: warm_start.Started | subprocess.Popen[bytes]
        if command is None:
            self.process = warm_start.Started(
                *words, env=environment, kind="shared", stdin=subprocess.DEVNULL, stderr=self.log.fileno()
            )
        else:
            self.process = subprocess.Popen(
                [*command, sys.executable, "-m", "narratoria", *words],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
            )  # fmt: skip
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], START_SECONDS)[0], "no address in time"
        address = self.process.stdout.readline().decode().strip()
        self.client = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
        wait_until(self.is_ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.kill()
        self.close()

    def close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.client.close()
        self.log.close()

    def is_ready(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/readyz").status_code == 200
        return False

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def begin(self, story: str = "mill") -> str:
        answer = self.client.post("/sessions", json={"story": story})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def ask(self, session: str, verb: str, body: Any = None) -> httpx.Response:
        return self.client.post(f"/sessions/{session}/{verb}", json={} if body is None else body)

    def metric(self, name: str) -> float:
        for line in self.client.get("/metrics").text.splitlines():
            if line.startswith(f"narratoria_{name} "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def said(self) -> str:
        return (self.home / "log").read_text()


class OwnPostgres:
    """A database server that a test may stop and start."""

    def __init__(self, folder: Path, *, everywhere: bool = False) -> None:
        self._listens = "*" if everywhere else "127.0.0.1"
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        which = shutil.which("postgres")
        if not found and which is None:
            pytest.skip("NO POSTGRESQL: install the package postgresql")
        self._binaries = found[-1].parent if found else Path(which or "").parent
        self._data = folder / "data"
        self._user = "postgres" if os.getuid() == 0 else None
        if self._user is not None:  # PostgreSQL refuses to run as root
            os.chown(folder, pwd.getpwnam(self._user).pw_uid, -1)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run(
            "initdb",
            "-D",
            self._data,
            "-U",
            "narratoria",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        )
        self.url = f"postgresql://narratoria@127.0.0.1:{self.port}/postgres"
        if everywhere:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all 198.18.0.0/15 trust\n")
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -F -c listen_addresses={self._listens} -c unix_socket_directories="
        log = self._data / "log.txt"
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", log, "-o", options)

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", how)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        subprocess.run(
            command,
            check=True,
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


class Link:
    """A way to a database that can be cut: what is sent meanwhile arrives when it is whole again."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{parts.port}/", f":{self._listener.getsockname()[1]}/")
        self.whole = threading.Event()
        self.whole.set()
        self._ends: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._ends.append(near)
                far = socket.create_connection(self._target)
                self._ends.append(far)
                for one, other in ((near, far), (far, near)):
                    thread = threading.Thread(target=self._pass_on, args=(one, other), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := one.recv(65536):
                self.whole.wait()
                other.sendall(content)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.whole.set()
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for end in self._ends:
            end.close()


class Viewer:
    """A client that follows a session, comes again where it was, and keeps every record it was sent."""

    def __init__(self, nodes: list[Node], session: str) -> None:
        self.nodes = nodes
        self.session = session
        self.records: list[dict[str, Any]] = []
        self.seq = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        turn = 0
        while not self._ended.is_set():
            node = self.nodes[turn % len(self.nodes)]
            turn += 1
            with contextlib.suppress(httpx.TransportError, RuntimeError):
                self._follow_one(node)
            self._ended.wait(0.1)

    def _follow_one(self, node: Node) -> None:
        with node.client.stream(
            "GET", f"/sessions/{self.session}/events", params={"after": self.seq}, timeout=2
        ) as answer:
            for line in answer.iter_lines():
                if self._ended.is_set():
                    return
                if line.startswith("data: "):
                    told = json.loads(line.removeprefix("data: "))
                    if isinstance(told, dict):
                        self.records = []  # a snapshot: the story from its beginning
                    for record in told["records"] if isinstance(told, dict) else told:
                        self.records.append(record)
                        self.seq = record["seq"]

    def ends(self) -> list[int]:
        return [
            one["event"]["turn"] for one in list(self.records) if one["event"]["type"] == "turn_committed"
        ]

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10)


def wait_until(true: Any, seconds: float = 30) -> float:
    """Wait until something is true; return how long it took."""
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < seconds, f"not within {seconds} s"
        time.sleep(0.05)  # it happens in another process
    return time.monotonic() - begun


@contextlib.contextmanager
def viewing(nodes: list[Node], session: str) -> Iterator[Viewer]:
    viewer = Viewer(nodes, session)
    try:
        yield viewer
    finally:
        viewer.close()
