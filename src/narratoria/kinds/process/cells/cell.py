"""A cell: a small process that puts up the walls of a profile around itself, and starts tools, which inherit them.

Walls are for good, and putting them up takes as long as many launches. A cell does it once, and then starts the tools
of one place, one after the other; a launch costs a message more than one without walls. When a tool has ended, the cell
ends what it left behind: every orphan inside becomes the cell's child.

This file is run by its path (`python -I -S cell.py`), never imported by the runtime, whose side is `cell_pool.py`.
Messages are marshalled, with their length in front. Its stdin is a socket. The first message is the specification of
the walls; the answer, the report. As `cell.py exec HEX` it is no server: it becomes one program, behind the same walls.
"""

from __future__ import annotations

import array
import marshal
import os
import select
import signal
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LENGTH = struct.Struct("=I")
MOST_DESCRIPTORS = 8
_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def send(sock: socket.socket, message: Any, descriptors: tuple[int, ...] = ()) -> None:
    """Send one message, and descriptors with its first byte."""
    data = marshal.dumps(message)
    data = LENGTH.pack(len(data)) + data
    if descriptors:
        sent = socket.send_fds(sock, [data], descriptors)
        data = data[sent:]
    if data:
        sock.sendall(data)


def receive(sock: socket.socket) -> tuple[Any, list[int]]:
    """Return one message and its descriptors; `EOFError` when the other side is gone."""
    room = socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)
    data, ancillary, _, _ = sock.recvmsg(1 << 16, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, part in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(part[: len(part) - len(part) % 4])
    while len(data) < LENGTH.size or len(data) < LENGTH.size + LENGTH.unpack_from(data)[0]:
        part = sock.recv(1 << 20)
        if not part:
            raise EOFError
        data += part
        if not data:
            raise EOFError
    return marshal.loads(data[LENGTH.size :]), list(descriptors)  # noqa: S302 - of our own runtime


def main(arguments: list[str]) -> None:
    if arguments:
        become(*marshal.loads(bytes.fromhex(arguments[1])))  # noqa: S302 - of our own runtime
    confine, filters = _neighbour("confine.py"), _neighbour("filters.py")
    sock = socket.socket(fileno=os.dup(0))
    sock.set_inheritable(False)
    children = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY)
    spec, _ = receive(sock)
    report = confine.confine(spec, filters)
    send(sock, (report.holds, report.missing))
    try:
        serve(sock, children)
    except EOFError:
        return


def serve(sock: socket.socket, children: int) -> None:
    """Start tools as they are asked for: one at a time, each until it and what it left are gone."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    leader = 0
    while True:
        message, descriptors = receive(sock)
        if message[0] == "launch":
            argv, env, cwd = message[1:]
            answer = leader = launch(argv, env, cwd, descriptors)
            for fd in descriptors:
                os.close(fd)
            send(sock, answer)
        else:
            send(sock, clear(leader, children))
            leader = 0


def launch(argv: list[str], env: dict[bytes, bytes], cwd: str, streams: list[int]) -> int:
    """Start a tool in a session of its own; return its pid, or the number of the error, negated."""
    try:
        os.chdir(cwd)
        return os.posix_spawn(
            argv[0],
            argv,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams)],
            setsid=True,
            setsigdef=_SIGNALS,
            setsigmask=(),
        )
    except OSError as error:
        return -(error.errno or 1)


def clear(leader: int, children: int) -> tuple[int | None, int]:
    """Reap the tool, and end everything it left; return its wait status and the number of what was left.

    A child of a child becomes ours when its parent is gone: there is nothing left when there is no child.
    """
    status, left = None, 0
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, left
        if pid == leader:
            status = ended
        elif pid == 0:
            for child in os.pread(children, 1 << 16, 0).split():
                left += int(child) != leader
                try:
                    os.kill(int(child), signal.SIGKILL)
                except OSError:
                    continue
            select.select([], [], [], 0.0005)


def become(spec: dict[str, Any], argv: list[str]) -> None:
    """Put up the walls and become a program. Where one is missing that must not be, say so and end."""
    spec["counted"] = [controller for controller, file in spec["join"].items() if _joined(file)]
    report = _neighbour("confine.py").confine(spec, _neighbour("filters.py"))
    if report.missing and spec["refuses"]:
        walls = "; ".join(f"{wall}: {reason}" for wall, reason in report.missing.items())
        sys.exit(f"a wall of its sandbox is missing, and it was not started: {walls}")
    if report.missing:
        sys.stderr.write(f"narratoria: it runs in its sandbox without {sorted(report.missing)}\n")
    try:
        os.execve(argv[0], argv, os.environ)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.exit(f"{argv[0]} could not be started in its sandbox: {error.strerror}")


def _joined(file: str) -> bool:
    try:
        with open(file, "w") as procs:  # noqa: PTH123
            procs.write(str(os.getpid()))
    except OSError:
        return False
    return True


def _neighbour(name: str) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    folder = __file__[: -len("cell.py")]
    spec = spec_from_file_location(f"narratoria_{name[:-3]}", folder + name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder + name} is missing; install narratoria again")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1:])
