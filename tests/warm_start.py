"""The command line, started warm: a process that has imported it forks for each command.

Every command is a process of its own all the same, with its streams, environment, folder and exit code; only the
imports are paid once instead of some hundreds of times. Tests about starting, signals, terminals and strays start it
cold, with `python -m narratoria`.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
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

LARGEST = 1 << 20
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
        atexit.register(self.close)

    def close(self) -> None:
        self.ours.close()
        self.process.wait(10)

    def start(self, arguments: list[str], env: Mapping[str, str], cwd: Path | str, streams: list[int]) -> int:
        message = json.dumps({"arguments": arguments, "env": dict(env), "cwd": str(cwd)}).encode()
        socket.send_fds(self.ours, [message], streams)
        return int(struct.unpack("q", self.ours.recv(8))[0])

    def ended(self) -> int:
        return os.waitstatus_to_exitcode(struct.unpack("q", self.ours.recv(8))[0])


_server: _Server | None = None


def run(
    *arguments: object,
    env: Mapping[str, str],
    input: str = "",  # noqa: A002 - as subprocess.run has it
    cwd: Path | str = ".",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run `narratoria` with these arguments to its end, as `subprocess.run` would."""
    global _server  # one for the process of the tests
    if _server is None:
        _server = _Server()
    into, given = os.pipe()
    pipes = [os.pipe(), os.pipe()]
    pid = _server.start(
        [*map(str, arguments)], env, Path(cwd).resolve(), [into, *(write for _, write in pipes)]
    )
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
    code = _server.ended()
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


def serve(sock: socket.socket) -> list[str]:
    """Fork for each command; return its arguments in the child, and never in the parent."""
    while True:
        message, streams, _, _ = socket.recv_fds(sock, LARGEST, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            break
        for fd in streams:
            os.close(fd)
        sock.send(struct.pack("q", pid))
        sock.send(struct.pack("q", os.waitpid(pid, 0)[1]))
    sock.close()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    asked = json.loads(message)
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
    return list(asked["arguments"])


if __name__ == "__main__":
    from narratoria import cli

    for name, (module, _) in cli.COMMANDS.items():
        if name not in LEFT_OUT:
            importlib.import_module(module)
    assert threading.active_count() == 1, "a fork would lose the threads"
    cli.main(serve(socket.socket(fileno=int(sys.argv[1]))))
