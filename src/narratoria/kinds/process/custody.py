"""Custody of the processes our tools start: the running calls, and the end of every process that outlives its call.

Every tool gets two marks that its children inherit (`marks.py`): a cookie in its environment, this runtime's id and
the number of the call, and on Linux a tag of this runtime among its resource limits. A group is killed with its
leader; a daemon that left the group still has its marks, and a sweep of `/proc`, shared by all calls that end within
a moment, finds it. If the runtime itself dies, the guardian does it.

A daemon that has only the tag left, having cleared or overwritten its environment, is still known by its call. One
with neither mark is found where we adopt orphans, which the command line does, and killed once no call runs that could
have started it.

`docs/protocol.md` lists the processes that can escape; only a container would hold those.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import os
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from narratoria.kinds.environment import standard
from narratoria.kinds.process import guardian, marks, orphans, platform
from narratoria.kinds.process.launch import LaunchRefused

SWEEP_DELAY: Final = 0.05
SWEEP_PATIENCE: Final = 2.0
_GENERATIONS: Final = 64


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if marks.LINUX else 0.0


class Custody:
    """The calls of this process, and its guardian. There is one, shared by all loops and threads."""

    def __init__(self) -> None:
        self.runtime = os.urandom(8).hex()
        # A tool may itself run narratoria: its tools are ours as well.
        outer = os.environ.get(marks.COOKIE)
        self.tag = marks.new_tag()
        self.scratch = os.path.join(tempfile.gettempdir(), guardian.folder_name(self.runtime, self.tag))  # noqa: PTH118
        self._prefix = f"{outer}/{self.runtime}." if outer else f"{self.runtime}."
        self._lock = threading.Lock()
        self._last_call = 0
        self._slots: dict[int, int] = {}  # call → its slot in the ledger
        self._groups: dict[int, int] = {}  # call → its process group
        self._began: dict[int, float] = {}  # call → seconds since boot
        self._free: list[int] = []
        self._unreaped: list[int] = []
        self._seen: set[int] = set()
        self._adopting = False
        self._guardian = 0
        self._guardian_watch: tuple[weakref.ref[asyncio.AbstractEventLoop], platform.Watch] | None = None
        self._lifeline = -1
        self._ledger = -1
        self._scratch_lock = -1
        self._sweeping: weakref.ref[asyncio.AbstractEventLoop] | None = None

    # --- calls ----------------------------------------------------------------------------------------

    def begin(
        self, loop: asyncio.AbstractEventLoop | None = None, *, serves: bool = False
    ) -> tuple[int, str]:
        """Begin a call: return its number and its cookie. Start the guardian if there is none.

        A process that `serves` calls, forking for each, has a number as well, but the cookie of no call: forks show
        the environment of their server. Orphans are never taken for its own.
        """
        with self._lock:
            self._ensure_guardian()
            if loop is not None:
                self._watch_guardian(loop)
            call = self._next_call()
            self._slots[call] = self._free.pop() if self._free else len(self._slots)
            if not serves:
                self._began[call] = _since_boot()
        return call, f"{self._prefix}{marks.NO_CALL if serves else call}"

    def _next_call(self) -> int:
        """Return a number that no running call has, small enough to be told by the tag."""
        while True:
            self._last_call = self._last_call % (marks.CALLS - 1) + 1
            if self._last_call not in self._slots:
                return self._last_call

    def tagged(self, call: int) -> marks.Tagged:
        """Return a block in which every process we start gets the mark of a call that it cannot lose by accident."""
        return marks.Tagged(self.tag if self.tag == marks.UNTAGGED else self.tag + call)

    def entrust(self, call: int, group: int) -> None:
        """Write a started group into the ledger."""
        with self._lock:
            self._groups[call] = group
            self._note(self._slots[call], group)

    def end(self, call: int, unreaped: int | None = None) -> None:
        """End a call whose group is killed; from now on, processes with its cookie are strays.

        `unreaped` is a leader that a KILL has not ended yet, hanging in the kernel: it is buried later.
        """
        with self._lock:
            if unreaped is not None:
                self._unreaped.append(unreaped)
            slot = self._slots.pop(call)
            self._began.pop(call, None)
            if self._groups.pop(call, None) is not None:
                self._note(slot, 0)
            self._free.append(slot)

    def _note(self, slot: int, group: int) -> None:
        size = guardian.SLOT_BYTES
        if self._ledger >= 0:
            os.pwrite(self._ledger, group.to_bytes(size, "little"), (guardian.GUARDIAN_SLOTS + slot) * size)

    # --- strays ---------------------------------------------------------------------------------------

    def sweep_now(self, *, thorough: bool = False) -> list[int]:
        """Kill the processes of ended calls and return their pids; `thorough` ignores earlier sweeps."""
        with self._lock:
            if thorough:
                self._seen.clear()
            self._unreaped = [pid for pid in self._unreaped if platform.reap(pid) is None]
            strays = self._adopted() if self._adopting else []
            strays += [
                pid
                for pid, call in marks.carriers(self.runtime, self.tag, self._seen, 50 if thorough else 1)
                if call not in self._slots
            ]
        for pid in strays:
            platform.kill(pid)
        return strays

    def adopt_orphans(self) -> None:
        """Become the parent of every daemon our tools leave, and end also those without a mark (`orphans.py`).

        Only for a process that runs nothing but Narratoria: its other children must stay in its session, or they are
        taken for a tool's. The command line does this; a server that opens a browser does not.
        """
        self._adopting = orphans.adopt()

    def _adopted(self) -> list[int]:
        """Return children that we did not start and that no running call can have started. Ended ones are reaped."""
        strays = []
        for pid, _ in self._orphans():
            call = marks.call_of(pid, self.runtime, self.tag)
            if not (self._may_run(pid) if call is None else call in self._slots):
                strays.append(pid)
        return strays

    def _orphans(self) -> Iterator[tuple[int, marks.Kin]]:
        """Yield the living children that we did not start, and reap those that have ended."""
        known = {self._guardian, *self.guardians(), *self._groups.values(), *self._unreaped}
        session = os.getsid(0)
        for pid in orphans.children():
            this = marks.kin(pid)
            if pid in known or this is None or this.session == session:
                continue
            if this.alive:
                yield pid, this
            else:
                platform.reap(pid)

    def belonging_to(self, call: int) -> list[int]:
        """Return the processes of a running call, its leader included."""
        with self._lock:
            return [pid for pid, owner in marks.carriers(self.runtime, self.tag) if owner == call]

    def unmarked_of(self, call: int) -> list[int]:
        """Return the orphans without a mark that only this running call can have started; none unless we adopt them.

        Nobody is older than its ancestors: one that was born before the call began is not of it.
        """
        if not self._adopting:
            return []
        with self._lock:
            others = [began for one, began in self._began.items() if one != call]
            return [
                pid
                for pid, this in self._orphans()
                if marks.call_of(pid, self.runtime, self.tag) is None
                and (born := this.start + marks.tick()) >= self._began[call]
                and not any(began <= born for began in others)
            ]

    def _may_run(self, pid: int) -> bool:
        """Tell if an orphan without a mark may belong to a running call, by its ancestors and its age."""
        groups = set(self._groups.values())
        this = marks.kin(pid)
        if this is None:
            return True  # gone
        ancestor: marks.Kin | None = this
        for _ in range(_GENERATIONS):
            if ancestor is None or ancestor.parent <= 1:
                break
            if ancestor.group in groups:
                return True
            ancestor = marks.kin(ancestor.parent)
        # An orphan does not tell its parent; but nobody is older than its ancestors.
        born = this.start + marks.tick()
        return any(began <= born for began in self._began.values())

    def sweep_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sweep a moment later, once for all calls that end until then."""
        if self._sweeping is None or self._sweeping() is not loop:
            self._sweeping = weakref.ref(loop)
            loop.call_later(SWEEP_DELAY, self._sweep_in, loop)

    def _sweep_in(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweeping = None
        if self.sweep_now():
            self.sweep_soon(loop)  # killing takes a moment, and it may have forked meanwhile

    async def sweep(self) -> None:
        """Return once no process of an ended call is alive."""
        until = time.monotonic() + SWEEP_PATIENCE
        # Strays are nobody's children here, so nothing tells us that they are gone.
        while self.sweep_now(thorough=True) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    # --- the guardian ---------------------------------------------------------------------------------

    def _start_guardian(self) -> None:
        before = self._lifeline, self._ledger
        if self._scratch_lock < 0:
            self._make_scratch()
        self._ledger = platform.nameless_file()
        read_end, self._lifeline = platform.pipe()
        program = str(Path(guardian.__file__).absolute())
        argv = [sys.executable, "-I", "-S", program, self.runtime, str(self.tag), self.scratch]
        try:
            ours = {
                guardian.LIFELINE: read_end,
                guardian.LEDGER: self._ledger,
                guardian.LOCK: self._scratch_lock,
            }
            with marks.Tagged(marks.UNTAGGED):  # of a runtime inside a tool, it must outlive that tool's end
                self._guardian = platform.spawn_apart(argv, standard(), ours)
        except OSError as error:
            raise LaunchRefused(
                f"the guardian, without which no tool is run, could not be started: {error}; "
                f"check that {sys.executable!r} runs"
            ) from error
        finally:
            os.close(read_end)
        for call, group in self._groups.items():
            self._note(self._slots[call], group)
        _let_go(*before, guardian.RELIEVED)  # its second half may live, and must not take us for dead

    def _watch_guardian(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start another guardian as soon as ours is killed, not only at the next call; one open loop watches it."""
        if self._guardian_watch is not None:
            listening, watch = self._guardian_watch[0](), self._guardian_watch[1]
            if listening is not None and not listening.is_closed():
                return
            watch.close()
        # Not in the callback itself: it would listen to new descriptors, which callbacks must not.
        watch = platform.watch_exit(loop, self._guardian, lambda: loop.call_soon(self._guardian_ended, loop))
        self._guardian_watch = weakref.ref(loop), watch

    def _guardian_ended(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._guardian_watch is not None:
                self._guardian_watch[1].close()
                self._guardian_watch = None
            if self._slots:  # else the next call starts one
                self._ensure_guardian()
                self._watch_guardian(loop)

    def _ensure_guardian(self) -> None:
        if not self._guardian or not platform.runs(self._guardian):
            self._start_guardian()

    def guardians(self) -> tuple[int, int]:
        """Return the pids of the guardian's two processes, as far as they have started. If the first is killed, the
        second is an orphan.
        """
        return guardian.read_guardians(self._ledger) if self._ledger >= 0 else (0, 0)

    def scratch_folder(self) -> str:
        """Make a folder that is removed after this process ends in any way: the guardian removes its parent folder."""
        try:
            return tempfile.mkdtemp(prefix="call-", dir=self.scratch)
        except FileNotFoundError:  # the first, or somebody cleared the temporary files away
            with self._lock:
                self._make_scratch()
            return tempfile.mkdtemp(prefix="call-", dir=self.scratch)

    def _make_scratch(self) -> None:
        """Make the folder and lock it before it gets the name by which guardians know it: an unlocked one belongs to
        a dead runtime.
        """
        made = tempfile.mkdtemp(prefix="narratoria.")
        lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # not on every network disk; there guardians cannot lock either
            fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            os.rename(made, self.scratch)  # noqa: PTH104
        except OSError:  # another thread was quicker
            os.close(lock)
            os.rmdir(made)  # noqa: PTH106
            return
        if self._scratch_lock >= 0:
            os.close(self._scratch_lock)
        self._scratch_lock = lock

    def forget_guardian(self, farewell: bytes = b"") -> None:
        """Close the pipe, which sends the guardian on its last round."""
        _let_go(self._lifeline, self._ledger, farewell)
        if self._scratch_lock >= 0:
            os.close(self._scratch_lock)
        self._guardian, self._lifeline, self._ledger, self._scratch_lock = 0, -1, -1, -1

    def leave(self) -> None:
        """Leave at the interpreter's exit: the guardian looks once more and ends."""
        with contextlib.suppress(
            OSError
        ):  # there is none, or not everything is gone: the guardian sees to it
            os.rmdir(self.scratch)  # noqa: PTH106
        self.forget_guardian(b"" if self._slots else guardian.FAREWELL)


def _let_go(lifeline: int, ledger: int, farewell: bytes) -> None:
    if lifeline >= 0:
        if farewell:
            with contextlib.suppress(BrokenPipeError):  # somebody killed it
                os.write(lifeline, farewell)
        os.close(lifeline)
        os.close(ledger)


_ours: Custody | None = None
_starting = threading.Lock()


def custody() -> Custody:
    """The custody of this process."""
    global _ours
    if _ours is None:
        with _starting:
            if _ours is None:
                _ours = Custody()
                atexit.register(_leave)
                os.register_at_fork(after_in_child=_forked)
    return _ours


def _leave() -> None:
    if _ours is not None:
        _ours.leave()


def _forked() -> None:
    # A fork holds a copy of our end of the pipe: while it lived, the guardian would not see us die.
    global _ours, _starting
    if _ours is not None:
        _ours.forget_guardian()
        marks.forked()
        _ours = None
        atexit.unregister(_leave)
    _starting = threading.Lock()


async def sweep() -> None:
    """Return once no process of any ended call is alive, daemons that left their group included."""
    if _ours is not None:
        await _ours.sweep()
