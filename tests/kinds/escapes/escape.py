#!/usr/bin/env -S python3 -S
"""Tries one way out of a sandbox, named by its input, and tells if it succeeded."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
from typing import Any

SCRATCH = os.environ["TMPDIR"]
libc = ctypes.CDLL(None, use_errno=True)


def log(message: object) -> None:
    print(json.dumps({"version": "0", "type": "log", "level": "info", "message": str(message)}), flush=True)


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def read_file(path: str) -> object:
    with open(path, "rb") as file:
        return file.read() or True


def write_outside(path: str) -> object:
    with open(path, "w") as file:
        return file.write("written")


def truncate_outside(path: str) -> object:
    os.truncate(path, 0)
    return True


def change_mode(path: str) -> object:
    os.chmod(path, 0o777)
    return True


def change_times(path: str) -> object:
    os.utime(path, (1, 1))
    return True


def open_a_socket(_: object) -> object:
    return socket.socket(socket.AF_INET).fileno()


def connect(port: int) -> object:
    with socket.create_connection(("127.0.0.1", port), 2) as ours:
        ours.sendall(b"hello")
    return True


def connect_to_a_path(path: str) -> object:
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(path)
    return True


def fork_bomb(most: int) -> object:
    started = []
    try:
        for _ in range(most):
            pid = os.fork()
            if not pid:
                signal.pause()
                os._exit(0)
            started.append(pid)
    except OSError as error:
        log(f"{len(started)} processes: {error}")
    for pid in started:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(started) == most


def thread_bomb(most: int) -> object:
    end = threading.Event()
    threading.stack_size(1 << 16)
    threads = [threading.Thread(target=end.wait) for _ in range(most)]
    try:
        for one in threads:
            one.start()
    except RuntimeError:
        return False
    finally:
        end.set()
    return True


def big_file(size: int) -> object:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open(f"{SCRATCH}/big", "wb") as file:
        file.truncate(size)
    return True


def many_files(size: int) -> object:
    for number in range(10):
        with open(f"{SCRATCH}/{number}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    time.sleep(5)
    return True


def much_memory(size: int) -> object:
    with mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        return True


def trace(pid: int) -> object:
    checked(libc.ptrace(0x4206, pid, None, None))  # PTRACE_SEIZE, which does not stop it
    return True


def kill(pid: int) -> object:
    os.kill(pid, signal.SIGTERM)
    return True


def limit_another(pid: int) -> object:
    resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE))
    return True


def new_namespace(_: object) -> object:
    checked(libc.unshare(0x10000000 | 0x40000000))
    return True


def daemon_without_marks(_: object) -> object:
    """Leave a process in a session of its own, without our cookie, and where it can, without our limit."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        try:
            resource.setrlimit(10, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (OSError, ValueError):
            resource.prlimit(0, resource.RLIMIT_CORE)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.set_inheritable(writes, True)
        script = f"import os, time; os.write({writes}, str(os.getpid()).encode()); os.close({writes}); time.sleep(30)"
        os.execve(sys.executable, [sys.executable, "-S", "-c", script], {})
    os.close(writes)
    log(os.read(reads, 20).decode())
    return True


def killed_cell(_: object) -> object:
    """End the process that started us, and leave a daemon, which nobody but the runtime can find then."""
    left = daemon_without_marks(None)
    os.kill(os.getppid(), signal.SIGKILL)
    return left


def stopped_cell(_: object) -> object:
    os.kill(os.getppid(), signal.SIGSTOP)
    return True


def deep_folders(levels: int) -> object:
    """Folders inside each other, more than Python's stack can hold, or more than a path can name; then it waits."""
    os.chdir(os.environ["TMPDIR"])
    for _ in range(levels):
        os.mkdir("d")
        os.chdir("d")
    time.sleep(20 if levels > 2000 else 0)
    return True


def ignore_term(_: object) -> object:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log(os.getpid())
    time.sleep(30)
    return True


def through_a_link(path: str) -> object:
    os.symlink(path, f"{SCRATCH}/link")
    return read_file(f"{SCRATCH}/link")


def hard_link(path: str) -> object:
    os.link(path, f"{SCRATCH}/hard")
    return read_file(f"{SCRATCH}/hard")


def link_as_asset(path: str) -> object:
    """Let the runtime read, as the file of an asset, what we may not."""
    os.symlink(path, f"{SCRATCH}/picture.txt")
    asset = {"assetId": "secret", "kind": "text", "mediaType": "text/plain", "path": f"{SCRATCH}/picture.txt"}
    print(json.dumps({"version": "0", "type": "asset", **asset}), flush=True)
    return False


def ordinary(_: object) -> object:
    """What a tool does that tries nothing: a file as an asset, a child, its own folder."""
    with open("page.txt", "w") as file:
        file.write("a page")
    asset = {"assetId": "page", "kind": "text", "mediaType": "text/plain", "path": "page.txt"}
    print(json.dumps({"version": "0", "type": "asset", **asset}), flush=True)
    assert os.path.exists(f"{os.path.dirname(os.path.abspath(__file__))}/escape.py")
    assert os.listdir(os.path.dirname(os.path.abspath(__file__)))
    assert os.system("echo to stderr >&2") == 0
    left, right = socket.socketpair()
    left.close()
    right.close()
    with open("page.txt", "rb+") as file:
        os.fchmod(file.fileno(), 0o600)
        os.utime(file.fileno())
    return sorted(os.environ)


def crash(_: object) -> object:
    sys.exit("something is wrong")


def main() -> None:
    request: dict[str, Any] = json.load(sys.stdin)["input"]
    try:
        escaped = globals()[request["way"]](request.get("to"))
        why = ""
    except (OSError, MemoryError) as error:
        escaped, why = False, repr(error)
    patch = {"escaped": escaped if isinstance(escaped, list) else bool(escaped), "why": why}
    print(json.dumps({"version": "0", "type": "state_patch", "patch": patch}))
    print(json.dumps({"version": "0", "type": "done", "ok": True}), flush=True)


main()
