"""The cells of this process: one for each tool that runs in one, kept for the next call (`cell.py`)."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from narratoria.errors import NarratoriaError
from narratoria.kinds.environment import standard
from narratoria.kinds.process import folder_removal, listeners, marks, platform
from narratoria.kinds.process.cells import cell as program
from narratoria.kinds.process.cells.cgroups import Cgroup
from narratoria.kinds.process.custody import custody

START_PATIENCE: Final = 20.0
PATIENCE: Final = 5.0
"""Seconds for an answer of a cell; one that does not answer is ended."""
_GLANCE: Final = 0.02
MOST_IDLE: Final = 4
MOST_LAUNCHES: Final = 10_000
OLDEST: Final = 120.0
"""Seconds after which a cell is not used again: its limit on processes counts what else ran when it was made."""

Spec = dict[str, Any]


class CellLost(NarratoriaError):
    """A cell ended, or does not answer."""


@dataclass(eq=False)
class Cell:
    """A cell, its scratch folder, and the walls that hold in it. It runs one tool at a time."""

    key: object
    pid: int
    call: int
    scratch: str
    sock: socket.socket
    cgroup: Cgroup
    holds: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    launches: int = 0
    leader: int = 0
    """The process of the tool that runs, or ran last."""
    born: float = field(default_factory=time.monotonic)
    lost: bool = False
    _place: os.stat_result | None = None

    @property
    def worn(self) -> bool:
        """True if it should not be used again."""
        return (
            self.lost
            or self.launches >= MOST_LAUNCHES
            or time.monotonic() - self.born > OLDEST
            or not self._is_in_place()
        )

    def _is_in_place(self) -> bool:
        try:
            now = os.stat(self.scratch)  # noqa: PTH116
        except OSError:
            return False
        self._place = self._place or now
        return os.path.samestat(now, self._place)

    def spawn(self, argv: list[str], stdin: bytes, env: marks.Environment, cwd: str) -> CellChild:
        """Start a tool inside, as `platform.spawn` does outside."""

        child, theirs = platform.streams(stdin)
        try:
            self.launches += 1
            answer = self.ask(("launch", argv, dict(env), cwd), theirs)
            if answer < 0:
                raise OSError(-answer, os.strerror(-answer))
        except BaseException:
            child.close()
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        child.pid = self.leader = int(answer)
        return CellChild(child, self)

    def clear(self) -> int | None:
        """End what a tool left inside, and return its wait status; that of a killed one, if the cell is lost."""
        try:
            status, _ = self.ask(("clear",))
        except CellLost:
            return int(signal.SIGKILL)
        return None if status is None else int(status)

    def ask(self, message: object, descriptors: tuple[int, ...] = ()) -> Any:
        """Send a message and return the answer; it blocks, for a part of a millisecond."""
        try:
            program.send(self.sock, message, descriptors)
            self._wait()
            return program.receive(self.sock)[0]
        except (OSError, EOFError) as error:
            self.lost = True
            raise CellLost(f"the sandbox's process {self.pid} does not answer: {error!r}") from error

    def _wait(self) -> None:
        """Wait for an answer. A tool may have stopped its cell, which then never answers, and a loop waits here."""
        poll, until = select.poll(), time.monotonic() + (self.sock.gettimeout() or 0)
        poll.register(self.sock, select.POLLIN)
        while not poll.poll(_GLANCE * 1000):
            if platform.is_stopped(self.pid):
                raise TimeoutError("it was stopped")
            if time.monotonic() > until:
                raise TimeoutError("timed out")

    def close(self) -> None:
        """End it, and everything in it."""
        failed, self.lost = self.lost, True
        self.sock.close()
        platform.kill(self.pid)
        status = platform.reap(self.pid, block=True)
        custody().end(self.call, unreaped=self.pid if status is None else None)
        if failed:  # what ran inside has the cell's mark, which it cannot take off
            custody().sweep_now()
        self.cgroup.remove()
        folder_removal.remove(self.scratch)


class CellChild(platform.Child):
    """A tool in a cell. The cell is its parent, and reaps it."""

    __slots__ = ("_cell",)

    def __init__(self, child: platform.Child, cell: Cell) -> None:
        super().__init__(child.pid, child.stdin, child.unsent, child.stdout, child.stderr)
        self._cell = cell

    def reap(self) -> int | None:
        if self.metered:
            self.look_up_cpu()
        return self._cell.clear()

    def watch(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], object]) -> platform.Watch:
        return platform.PidfdWatch(listeners.listener_of(loop), self.pid, ended)


class CellPool:
    """The idle cells. There is one pool, shared by all loops and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Cell] = []

    async def take(self, key: object, spec: Callable[[str], Spec]) -> Cell:
        """Return a cell for `key`: an idle one, or a new one with the walls of `spec(scratch)`."""
        worn = []
        try:
            with self._lock:
                for at in range(len(self._idle) - 1, -1, -1):
                    if self._idle[at].key == key:
                        one = self._idle.pop(at)
                        if not one.worn:
                            return one
                        worn.append(one)
        finally:
            for one in worn:
                one.close()
        return await asyncio.to_thread(_new, key, spec)

    def give_back(self, one: Cell) -> None:
        """Keep a cell whose tool is gone, with an empty scratch folder; end those that are too many."""
        if one.lost or not folder_removal.empty(one.scratch):
            one.close()
            return
        with self._lock:
            self._idle.append(one)
            spare = self._idle[:-MOST_IDLE]
            del self._idle[:-MOST_IDLE]
        for other in spare:
            other.close()

    def close(self) -> None:
        """End all idle cells."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.close()

    def forget(self) -> None:
        """Let go, in a fork, of the cells of the process it was forked from."""
        for one in self._idle:
            one.sock.close()
        self._idle, self._lock = [], threading.Lock()


def _new(key: object, spec: Callable[[str], Spec]) -> Cell:
    """Start a cell; it takes some hundredths of a second. Raises `LaunchRefused` or `CellLost`."""
    call, _ = custody().begin()
    scratch, cgroup = "", None
    try:
        scratch = custody().scratch_folder()
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-I", "-S", str(Path(program.__file__).absolute())]
            with custody().tagged(call):
                pid = platform.spawn_apart(argv, standard(), {0: theirs.fileno()})
        ours.settimeout(START_PATIENCE)
        walls = spec(scratch)
        cgroup = cgroup_for(call, walls)
        one = Cell(key, pid, call, scratch, ours, cgroup)
    except BaseException:
        if cgroup is not None:
            cgroup.remove()
        custody().end(call)
        folder_removal.remove(scratch)
        raise
    custody().entrust(call, pid)
    try:
        walls["counted"] = cgroup.join(pid)
        one.holds, one.missing = one.ask(walls)
        ours.settimeout(PATIENCE)
        one.worn  # noqa: B018 - notes where its folder is
    except BaseException:
        one.close()
        raise
    return one


def cgroup_for(call: int, walls: Spec) -> Cgroup:
    """Make the cgroup of a call, as far as the system lets us; one process more is the cell."""
    caps = {"pids": walls["processes"] + 1, "memory": walls["memory"]}
    return Cgroup(f"{custody().runtime}-{call}", caps)


_pool: CellPool | None = None


def pool() -> CellPool:
    """The cells of this process."""
    global _pool
    if _pool is None:
        custody()  # first: its own farewell comes after ours
        _pool = CellPool()
        atexit.register(_pool.close)
        os.register_at_fork(after_in_child=_forked)
    return _pool


def _forked() -> None:
    global _pool
    if _pool is not None:
        with contextlib.suppress(OSError):
            _pool.forget()
        atexit.unregister(_pool.close)
        _pool = None
