"""Narratoria, started warm: a process that has imported it forks for each command.

Every command is a process of its own all the same, with its streams, environment, folder, signals and exit code; only
the imports are paid once instead of some hundreds of times. Tests about starting, killing and strays start it cold,
with `python -m narratoria`.

There are three ways in: `run` runs a command to its end, `Started` is a command that runs, and `command` is what
another program, such as a client of MCP, starts: a small program whose streams and signals are handed to the command.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

LARGEST = 1 << 20
# `mcp` has a process of its own, since its package is large and most commands are not it.
SERVERS = ("stdio_server", "http_server", "tool_server", "offered_prompts")
MCP = ("narratoria.cli.mcp", *(f"narratoria.mcp_server.{name}" for name in SERVERS))
WEB = ("narratoria.cli.play", "narratoria.web.server", "narratoria.store.sqlite", "uvicorn.lifespan.on")
MODEL = ("narratoria.cli.play", "narratoria.narrator.llm.llm_narrator", "openai.resources.chat")
SHARED = ("narratoria.cli.serve", "narratoria.web.shared_server", "uvicorn.lifespan.on")
KINDS = {"commands": (), "mcp": MCP, "web": WEB, "model": MODEL, "shared": SHARED}


# --- in the tests ------------------------------------------------------------------------------------------


class _Warm:
    """The process that forks. It ends with this one, and all that it started ends with it."""

    def __init__(self, kind: str) -> None:
        self.name = f"narratoria-warm-{os.getpid()}-{os.urandom(6).hex()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(f"\0{self.name}")
            listener.listen(64)
            passed = listener.fileno()
            self.process = subprocess.Popen(
                [sys.executable, __file__, kind, str(passed)], pass_fds=[passed], stdin=subprocess.PIPE
            )
        atexit.register(self.close)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)

    @classmethod
    def of(cls, kind: str) -> _Warm:
        """Return the one of a kind; there is one for the process of the tests."""
        if kind not in _running:
            _running[kind] = cls(kind)
        return _running[kind]


_running: dict[str, _Warm] = {}


def command(*arguments: object, kind: str = "mcp") -> list[str]:
    """Return what another program starts instead of `python -m narratoria …`."""
    launcher = Path(__file__).with_name("warm_command.py")
    return [sys.executable, "-I", "-S", str(launcher), _Warm.of(kind).name, *map(str, arguments)]


class Started:
    """A command that runs, as `subprocess.Popen` has it. Its streams are pipes, unless they are given.

    A `script` is run instead of `narratoria`. At a terminal, it gets a session of its own and is controlled by it.
    """

    def __init__(
        self,
        *arguments: object,
        env: Mapping[str, str],
        cwd: Path | str = ".",
        kind: str = "commands",
        script: Path | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        terminal: bool = False,
    ) -> None:
        self.args = ["narratoria", *map(str, arguments)]
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        ours: list[int] = []
        if stdin == subprocess.DEVNULL:
            stdin = os.open(os.devnull, os.O_RDONLY)
            ours.append(stdin)
        if stdin is None:
            stdin, write = os.pipe()
            ours.append(stdin)
            self.stdin = os.fdopen(write, "wb")
        if stdout is None:
            read, stdout = os.pipe()
            ours.append(stdout)
            self.stdout = os.fdopen(read, "rb")
        if stderr is None:
            read, stderr = os.pipe()
            ours.append(stderr)
            self.stderr = os.fdopen(read, "rb")
        self._link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST)
        self._link.connect(f"\0{_Warm.of(kind).name}")
        message = {
            "arguments": self.args[1:],
            "env": dict(env),
            "cwd": str(Path(cwd).resolve()),
            "script": script and str(script),
            "terminal": terminal,
        }
        socket.send_fds(self._link, [json.dumps(message).encode()], [stdin, stdout, stderr])
        self.pid = int(struct.unpack("q", self._link.recv(8))[0])
        for fd in ours:
            os.close(fd)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._link], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(struct.unpack("q", self._link.recv(8))[0])
            self._link.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, input: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:  # noqa: A002
        """Give it the input and read all that it says, until it has ended."""
        until = None if timeout is None else time.monotonic() + timeout
        read: dict[IO[bytes] | None, bytes] = {}

        def take(stream: IO[bytes]) -> None:
            with stream:
                read[stream] = stream.read()

        def give(stream: IO[bytes]) -> None:
            with contextlib.suppress(BrokenPipeError), stream:  # it ended before it read all
                stream.write(input)

        workers = [threading.Thread(target=take, args=(one,)) for one in (self.stdout, self.stderr) if one]
        if self.stdin is not None:
            workers.append(threading.Thread(target=give, args=(self.stdin,)))
        for worker in workers:
            worker.start()
        self.wait(timeout)
        for worker in workers:
            worker.join(None if until is None else max(0.0, until - time.monotonic()))
            if worker.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return read.get(self.stdout, b""), read.get(self.stderr, b"")


def run(
    *arguments: object,
    env: Mapping[str, str],
    input: str = "",  # noqa: A002 - as subprocess.run has it
    cwd: Path | str = ".",
    timeout: float = 120,
    kind: str = "commands",
) -> subprocess.CompletedProcess[str]:
    """Run `narratoria` with these arguments to its end, as `subprocess.run` would."""
    started = Started(*arguments, env=env, cwd=cwd, kind=kind)
    try:
        out, err = started.communicate(input.encode(), timeout)
    finally:
        started.kill()
    assert started.returncode is not None
    return subprocess.CompletedProcess(started.args, started.returncode, out.decode(), err.decode())


# --- in the process that forks -------------------------------------------------------------------------------


class _Forking:
    """Forks for each command. Whoever hangs up before its end has it killed, as if it were its own process."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.links: dict[int, socket.socket] = {}  # by the id of the process
        self.woken, self.wake = os.pipe()
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP):  # of a terminal: they are for the tests, which end us
            signal.signal(number, lambda *_: None)

    def serve(self) -> tuple[dict[str, object], list[int]]:
        """Return what is asked for and its streams in each child, and never in the parent."""
        while True:
            ready, _, _ = select.select([0, self.woken, self.listener, *self.links.values()], [], [])
            if 0 in ready:  # whoever started us is gone
                for pid in self.links:
                    os.kill(pid, signal.SIGKILL)
                os._exit(0)
            if self.woken in ready:
                os.read(self.woken, 4096)
                self._reap()
            for pid, link in [*self.links.items()]:
                if link in ready:  # nothing is ever said there: it was closed
                    os.kill(pid, signal.SIGKILL)
                    self._forget(pid)
            if self.listener in ready:
                asked = self._fork()
                if asked is not None:
                    return asked

    def _fork(self) -> tuple[dict[str, object], list[int]] | None:
        link, _ = self.listener.accept()
        message, streams, _, _ = socket.recv_fds(link, LARGEST, 3)
        if len(streams) < 3:
            link.close()
            return None
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for one in (link, self.listener, *self.links.values()):
                one.close()
            os.close(self.woken)
            os.close(self.wake)
            return json.loads(message), streams
        for fd in streams:
            os.close(fd)
        self.links[pid] = link
        self._tell(link, pid)
        return None

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid in self.links:
                    self._tell(self.links[pid], status)
                    self._forget(pid)

    def _tell(self, link: socket.socket, number: int) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            link.send(struct.pack("q", number))

    def _forget(self, pid: int) -> None:
        self.links.pop(pid).close()


def _become(asked: dict[str, object], streams: list[int]) -> None:
    """Make this process what it would be if it had just been started."""
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    if asked.get("terminal"):
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(str(asked["cwd"]))
    os.environ.clear()
    env = asked["env"]
    assert isinstance(env, dict)
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None
    sys.stdin = os.fdopen(0, encoding="utf-8")
    by_line = os.isatty(1) or bool(env.get("PYTHONUNBUFFERED"))
    sys.stdout = os.fdopen(1, "w", buffering=1 if by_line else -1, encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
    script, arguments = asked.get("script"), asked["arguments"]
    assert isinstance(arguments, list)
    sys.path[0] = str(asked["cwd"] if script is None else Path(str(script)).parent)
    sys.argv = [str(script or "narratoria"), *arguments]
    sys.orig_argv = [sys.executable, *([str(script)] if script else ["-m", "narratoria"]), *arguments]


if __name__ == "__main__":
    from narratoria import cli

    kind = sys.argv[1]
    commands = [module for name, (module, _) in cli.COMMANDS.items() if name != "mcp"]
    for module in KINDS[kind] or commands:
        importlib.import_module(module)
    assert threading.active_count() == 1, "a fork would lose the threads"
    gc.collect()
    gc.freeze()
    _asked, _streams = _Forking(socket.socket(fileno=int(sys.argv[2]))).serve()
    _become(_asked, _streams)
    if _asked.get("script"):
        runpy.run_path(str(_asked["script"]), run_name="__main__")
    else:
        cli.main(sys.argv[1:])
