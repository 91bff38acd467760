"""A real server whose clients go away in the middle of everything, and which is killed itself.

Clients post prompts and close without reading the answer, leave streams half read, or send half a request. The server
goes on, holds no descriptor for them, and after a kill its sessions verify and can be played on.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tests.chaos.games import Broken, expect
from tests.chaos.leaks import eventually, processes_with

from narratoria.store.fold import fold
from narratoria.store.salvage.verification import verify
from narratoria.store.sqlite import SqliteStore

PROMPTS: Final = ("light the torch", "look around", "wait", "go north", "examine the door", "xyzzy")
START: Final = 120.0
SLACK: Final = 4  # descriptors of threads and of the store, which come with the first turns


class Served:
    """`narratoria play` in a home of its own: the first time a new game, afterwards the same one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session = ""
        self.log = folder / "log"

    def start(self) -> None:
        what = ["--session", self.session] if self.session else ["torch", "--narrator", "rules"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "narratoria", "play", *what, "--no-browser", "--port", "0"],
                env={**os.environ, "NARRATORIA_HOME": str(self.folder / "home"), "TMPDIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        address = urlsplit(line)
        if not address.netloc:
            raise Broken(f"the server did not start: {line} {self.log.read_text()[-2000:]}")
        self.port = int(address.netloc.rpartition(":")[2])
        self.token = parse_qs(address.query)["token"][0]
        self.session = address.path.rpartition("/")[2]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self.headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def end(self, *, kill: bool) -> None:
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait(30)
        if self.process.stdout is not None:
            self.process.stdout.close()


def go_away(server: Served, chance: random.Random) -> None:
    """Be a client that goes away."""
    base = f"/sessions/{server.session}"
    body = json.dumps({"prompt": chance.choice(PROMPTS)})
    head = "".join(f"{name}: {value}\r\n" for name, value in server.headers.items())
    head = f"HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{head}"
    request = f"POST {base}/prompt {head}Content-Length: {len(body)}\r\n\r\n{body}"
    if chance.random() < 0.5:
        request = f"GET {base}/events {head}\r\n"
    data = request.encode()
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", server.port), timeout=30) as client,
    ):
        client.sendall(data if chance.random() < 0.7 else data[: chance.randrange(1, len(data))])
        if chance.random() < 0.5:
            client.settimeout(0.5)
            client.recv(chance.choice((1, 100, 5000)))
        if chance.random() < 0.3:  # a reset, not a close
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def play_seed(seed: int, folder: Path, patience: float = 1.0) -> None:
    """Play one game over HTTP with clients that go away and a server that is killed."""
    chance = random.Random(f"servers {seed}")
    server = Served(folder)
    try:
        for _ in range(chance.randint(1, 2)):
            server.start()
            expect("the list of sessions", server.ask("GET", "/sessions")[0], 200)
            held = server.descriptors()
            for _ in range(chance.randint(3, 12)):
                go_away(server, chance)
                if chance.random() < 0.3:
                    status, said = server.ask(
                        "POST", f"/sessions/{server.session}/prompt", {"prompt": chance.choice(PROMPTS)}
                    )
                    if status not in (202, 409, 429, 503):
                        raise Broken(f"a prompt was answered with {status}: {said[:300]}")
            expect("the server answers", server.ask("GET", f"/sessions/{server.session}")[0], 200)
            if not eventually(lambda held=held: server.descriptors() <= held + SLACK, 20):
                raise Broken(f"the server holds {server.descriptors()} descriptors, {held} at its start")
            time.sleep(chance.uniform(0, 0.3))
            server.end(kill=chance.random() < 0.7)
    finally:
        with contextlib.suppress(Exception):
            server.end(kill=True)
    told = server.log.read_text(errors="replace")
    if "Traceback" in told:
        raise Broken(f"a traceback of the server: {told[-3000:]}")
    store = SqliteStore(folder / "home" / "sessions.db")
    try:
        expect("faults of the tables", store.table_faults(), [])
        for checked in verify(store, store.list()):
            expect(f"faults of {checked.meta.id}", (checked.faults, checked.altered), ([], []))
        numbers = [one.turn for one in fold(store.read(server.session)).turns]
        expect("the turns", numbers, [*range(len(numbers))])
    finally:
        store.close()
    eventually(lambda: not processes_with(str(folder)), 15)
    expect("processes that are left", processes_with(str(folder)), [])
