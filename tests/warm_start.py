"""The command line and the web server, started warm: a process that has imported them forks for each.

Every command is a process of its own all the same, with its streams, environment, folder and exit code; only the
imports are paid once instead of some hundreds of times. Tests about starting, signals, terminals and strays start it
cold, with `python -m narratoria`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

LARGEST = 1 << 20
BEGAN = -1  # in place of a status
LEFT_OUT = {"mcp"}  # its package is large, and the commands of these tests are not it


# --- in the tests ------------------------------------------------------------------------------------------


class _Server:
    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        size = 2 * LARGEST
        for one in (self.ours, theirs):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._lock = threading.Lock()
        self._began: int | None = None
        self._codes: dict[int, int] = {}
        atexit.register(self.close)

    def close(self) -> None:
        self.ours.close()
        self.process.wait(10)

    def start(self, asked: Mapping[str, object], streams: list[int]) -> int:
        with self._lock:
            socket.send_fds(self.ours, [json.dumps(asked).encode()], streams)
            while self._began is None:
                self._hear()
            pid, self._began = self._began, None
            return pid

    def ended(self, pid: int, timeout: float | None = None) -> int | None:
        """Return the exit code of a process, or None if it still runs when the time is up."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while pid not in self._codes:
                left = None if until is None else max(0.0, until - time.monotonic())
                if not select.select([self.ours], [], [], left)[0]:
                    return None
                self._hear()
            return self._codes[pid]

    def _hear(self) -> None:
        answer = self.ours.recv(16)
        assert answer, "the process that forks has ended"
        pid, status = struct.unpack("qq", answer)
        if status == BEGAN:
            self._began = pid
        else:
            self._codes[pid] = os.waitstatus_to_exitcode(status)


_server: _Server | None = None


def _warm() -> _Server:
    global _server  # one for the process of the tests
    if _server is None:
        _server = _Server()
    return _server


class WarmProcess:
    """A process that goes on, as much of a `subprocess.Popen` as servers need."""

    def __init__(self, script: Path, *arguments: str, stderr: int, env: Mapping[str, str]) -> None:
        read, write = os.pipe()
        empty = os.open(os.devnull, os.O_RDONLY)
        asked = {"script": str(script), "arguments": [*arguments], "env": dict(env), "cwd": str(Path.cwd())}
        self.pid = _warm().start(asked, [empty, write, stderr])
        os.close(empty)
        os.close(write)
        self.stdout = os.fdopen(read, "rb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = _warm().ended(self.pid, 0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            self.returncode = _warm().ended(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def run(
    *arguments: object,
    env: Mapping[str, str],
    input: str = "",  # noqa: A002 - as subprocess.run has it
    cwd: Path | str = ".",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run `narratoria` with these arguments to its end, as `subprocess.run` would."""
    into, given = os.pipe()
    pipes = [os.pipe(), os.pipe()]
    asked = {"arguments": [*map(str, arguments)], "env": dict(env), "cwd": str(Path(cwd).resolve())}
    pid = _warm().start(asked, [into, *(write for _, write in pipes)])
    for fd in (into, *(write for _, write in pipes)):
        os.close(fd)
    read: dict[int, bytes] = {}

    def take(at: int, fd: int) -> None:
        with os.fdopen(fd, "rb") as stream:
            read[at] = stream.read()

    def give() -> None:
        try:
            with os.fdopen(given, "wb") as stream:
                stream.write(input.encode())
        except BrokenPipeError:
            pass  # it ended before it read all

    workers = [threading.Thread(target=give)]
    workers += [threading.Thread(target=take, args=(at, fd)) for at, (fd, _) in enumerate(pipes)]
    watchdog = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
    for one in (*workers, watchdog):
        one.start()
    code = _warm().ended(pid)
    assert code is not None
    watchdog.cancel()
    until = time.monotonic() + timeout
    for one in workers:
        one.join(max(0.0, until - time.monotonic()))
        if one.is_alive():
            raise subprocess.TimeoutExpired(["narratoria", *map(str, arguments)], timeout)
    if code == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(["narratoria", *map(str, arguments)], timeout)
    text = [read[at].decode() for at in range(2)]
    return subprocess.CompletedProcess(["narratoria", *map(str, arguments)], code, text[0], text[1])


# --- in the process that forks -------------------------------------------------------------------------------


def serve(sock: socket.socket) -> Callable[[], object]:
    """Fork for each command; return what it does in the child, and never in the parent."""
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        readable = select.select([sock, woken], [], [])[0]
        if woken in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
            _reap(sock)
        if sock not in readable:
            continue
        message, streams, _, _ = socket.recv_fds(sock, LARGEST, 3)
        if not message:
            os._exit(0)
        asked = json.loads(message)
        act = _script(asked["script"]) if "script" in asked else cli.main
        pid = os.fork()
        if pid == 0:
            break
        for fd in streams:
            os.close(fd)
        sock.send(struct.pack("qq", pid, BEGAN))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for fd in (woken, wake):
        os.close(fd)
    sock.close()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    tempfile.tempdir = None
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1)
    sys.argv = ["narratoria", *asked["arguments"]]
    sys.orig_argv = [sys.executable, "-m", "narratoria", *asked["arguments"]]
    return lambda: act(list(asked["arguments"]))


def _reap(sock: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            sock.send(struct.pack("qq", pid, status))


def _script(path: str) -> Callable[[list[str]], object]:
    """Return the `start` of a script, which is imported once."""
    name = Path(path).stem
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    act: Callable[[list[str]], object] = sys.modules[name].start
    return act


if __name__ == "__main__":
    from narratoria import cli

    for name, (module, _) in cli.COMMANDS.items():
        if name not in LEFT_OUT:
            importlib.import_module(module)
    assert threading.active_count() == 1, "a fork would lose the threads"
    serve(socket.socket(fileno=int(sys.argv[1])))()
