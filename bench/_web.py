"""What the benchmark of the page is made of: servers in processes of their own, a story, a browser, a meter."""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

CHROMIUM = os.environ.get("NARRATORIA_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]  # fmt: skip
TITLE = "The Reading Room"
OPENING = (
    "Dust hangs in the light of the tall windows. **Somebody** has left a lamp burning on the long table."
)
CHOICES = ["Look around", "Put out the lamp"]
ANSWER = "Shelves, and more shelves. Behind the last of them a clock ticks, and stops when you listen."

STORY = f"""
id = "room"
title = "{TITLE}"
premise = "A story for measuring."
narrator = ["rules"]

[opening]
narrative = "{OPENING}"
choices = {json.dumps(CHOICES)}
"""
RULES = f"""
[[rule]]
id = "look"
patterns = ["look [around]"]
narrative = "{ANSWER}"
""" + "".join(
    f"""
[[rule]]
id = "{what}"
patterns = ["{what}"]
narrative = "It begins."
calls = [{{ id = "talk", tool = "talker", input = {{ what = "{what}" }}, retries = 0 }}]
"""
    for what in ("flood", "stream", "work")
)
TALKER = """
import json, sys, time

def line(message, **fields):
    return json.dumps({"version": "0", "type": "log", "level": "info", "message": message, **fields}) + "\\n"

what = json.load(sys.stdin)["input"]["what"]
write = sys.stdout.write
if what == "flood":
    for number in range(FLOOD):
        write(line(f"line {number} of a long report, about as long as such lines are"))
elif what == "stream":
    start = time.time()
    for number in range(STREAM):
        due = start + number / 1000
        while (wait := due - time.time()) > 0:
            time.sleep(wait)
        write(line(f"at {time.time():.4f}"))
        sys.stdout.flush()
else:
    for number in range(20):
        write(line(f"step {number}", fields={"progress": number / 20}))
        sys.stdout.flush()
        time.sleep(0.01)
write(json.dumps({"version": "0", "type": "done", "ok": True, "summary": "It ends."}) + "\\n")
"""


def write_story(home: Path, *, flood: int, stream: int) -> None:
    root = home / "stories" / "room"
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(STORY)
    (root / "narrator.toml").write_text(RULES)
    tool = root / "tools" / "talker"
    tool.write_text(f"#!{sys.executable} -S\nFLOOD, STREAM = {flood}, {stream}\n{TALKER}")
    tool.chmod(0o755)
    manifest = {
        "name": "talker",
        "description": "Talks.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        "timeout": 120,
    }
    tool.with_name("talker.tool.json").write_text(json.dumps(manifest))


class OurServer:
    """`narratoria play` in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "narratoria", "play", "room", "--no-browser", "--port", "0"],
            env=os.environ | {"NARRATORIA_HOME": str(home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], 60)[0], "the server did not start within 60 s"
        address = urlsplit(self.process.stdout.readline().decode().strip())
        self.port = address.port or 0
        self.token = address.query.removeprefix("token=")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        with urlopen(request, timeout=60) as answer:  # noqa: S310 - our own server
            return json.load(answer)

    def begin(self) -> str:
        return str(self.ask("POST", "/sessions", {"story": "room"})["id"])

    def page(self, session: str, port: int | None = None, view: str = "narrative") -> str:
        token = self.ask("POST", "/tokens")["token"]  # it lets one browser in
        return f"http://127.0.0.1:{port or self.port}/play/{session}?token={token}#{view}"

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def nicegui_server(python: Path) -> Iterator[int]:
    """The peer's port, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = Path(__file__).parent / "peers" / "nicegui_app.py"
    process = subprocess.Popen(
        [python, app, str(port), TITLE, OPENING, ANSWER, *CHOICES],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/", timeout=20).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(20)


class Meter:
    """A wire that counts: forwards connections to `port`, and knows how many bytes have come back."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.received = 0
        self.port = 0
        self._ended = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self._count())

    async def _count(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._ended.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        both = asyncio.gather(self._pass(reader, far_writer, False), self._pass(far_reader, writer, True))
        with suppress(asyncio.CancelledError):  # the end of the measurement; streams would log it
            await both

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counts: bool) -> None:
        try:
            while block := await reader.read(1 << 16):
                self.received += len(block) if counts else 0
                writer.write(block)
                await writer.drain()
        except ConnectionError:
            pass  # browsers hang up as they please
        finally:
            writer.close()
