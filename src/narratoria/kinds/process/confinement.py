"""A tool behind the walls of a profile: its paths, its environment, its cell, and what is told of missing walls."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import marshal
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from narratoria.errors import NOT_EXECUTABLE
from narratoria.kinds.environment import environment
from narratoria.kinds.process import platform
from narratoria.kinds.process.cells import cell as program
from narratoria.kinds.process.cells import reach
from narratoria.kinds.process.cells.cell_pool import Cell, CellLost, Spec, pool
from narratoria.kinds.process.cells.cgroups import Cgroup
from narratoria.kinds.process.launch import LaunchRefused, NotExecutable, refused
from narratoria.kinds.process.marks import LINUX, Environment
from narratoria.kinds.process.supervisor import WarmStart
from narratoria.kinds.sandbox import PROFILES, Profile, runs_despite_missing_walls, story_around

_DROPPED: Final = frozenset(
    [b"USER", b"LOGNAME", b"SHELL", b"XDG_CACHE_HOME", b"XDG_CONFIG_DIRS", b"XDG_CONFIG_HOME", b"XDG_DATA_HOME",
     b"XDG_RUNTIME_DIR", b"XDG_STATE_HOME"]
)  # fmt: skip
"""Standard variables that lead to a person's files and sockets, or name the person."""
_BUSY_TRIES: Final = 20
_BUSY_PAUSE: Final = 0.01
WALLS: Final = (
    "files",
    "network",
    "system calls",
    "signals",
    "privileges",
    "memory",
    "cpu",
    "file size",
    "processes",
)
"""The walls of a profile, by name."""
_ENTRIES: Final = 100_000
_LOOK: Final = 0.25
_LEAST_FREE: Final = 64 << 20
_TOO_DEEP: Final = "its scratch folder is nested so deeply that it cannot be measured"


class WallMissing(LaunchRefused):
    """The system lacks a wall that the profile of a tool promises."""

    code = NOT_EXECUTABLE


@dataclass(frozen=True)
class Confinement:
    """The walls of one tool: its profile, the folders it may read, and if it may use the network."""

    profile: Profile
    command: tuple[str, ...]
    folders: tuple[Path, ...]
    network: bool = False

    @classmethod
    def of(
        cls, profile: Profile, command: Sequence[str], tool: Path, *, asks_network: bool = False
    ) -> Confinement:
        """The walls of the tool at `tool`. Of a story it may read the whole folder; of another place, its own."""
        story = story_around(tool) if profile.name == "story" else None
        folder = reach.own_folder(tool) if story is None or reach.is_broad(story) else story
        open_network = profile.network == "asked" and asks_network
        return cls(profile, tuple(command), (folder,), open_network)

    def variables(self, env: Mapping[bytes, bytes], scratch: str) -> dict[bytes, bytes]:
        """Return the variables for a call: no person, no folders of a person's; its home is its scratch folder."""
        kept = {name: value for name, value in env.items() if name not in _DROPPED}
        return {**kept, b"HOME": os.fsencode(scratch)}

    def spec(self, scratch: str) -> Spec:
        """Return the walls for a cell with this scratch folder."""
        profile = self.profile
        return {
            "paths": reach.paths(self.command, self.folders, scratch, environment(), network=self.network),
            "network": self.network,
            "memory": profile.memory,
            "cpu": profile.cpu,
            "file_size": profile.file_size,
            "open_files": profile.open_files,
            "processes": profile.processes,
            "refuses": profile.refuses and not runs_despite_missing_walls(),
            "counted": [],
        }

    @asynccontextmanager
    async def cell(self) -> AsyncIterator[Cell]:
        """Lend a cell for one call. Raises `WallMissing` if a wall is missing without which nothing may run."""
        env = environment()
        key = self, env.get(b"PATH"), *(env.get(name.encode()) for name in reach.LIBRARIES)
        try:
            one = await pool().take(key, self.spec)
        except CellLost as error:
            raise LaunchRefused(f"no sandbox could be made: {error}") from error
        try:
            self.check(one.missing)
            yield one
        finally:
            await _given_back(one)

    def check(self, missing: Mapping[str, str]) -> None:
        """Refuse to run without a wall that the profile promises."""
        if missing and self.profile.refuses and not runs_despite_missing_walls():
            raise WallMissing(refusal(self.profile, missing))

    def complaint(self, name: str, missing: Mapping[str, str]) -> str:
        """Return what is told of a tool that runs with walls missing."""
        return f"{name}: it runs in the sandbox {self.profile.name!r} without {told(missing)}"


def start_in(cell: Cell, command: Sequence[str]) -> WarmStart:
    """Return the way to start a command in a cell."""

    async def start(call: int, stdin: bytes, env: Environment, cwd: Path | None) -> platform.Child:
        for last in (*[False] * _BUSY_TRIES, True):
            try:
                return cell.spawn(list(command), stdin, env, str(cwd))
            except CellLost as error:
                raise LaunchRefused(str(error)) from error
            except OSError as error:  # one that was just written may still be open in a fork elsewhere
                if error.errno == errno.EACCES:
                    raise NotExecutable(
                        f"{command[0]} may not be run in its sandbox: it has no run bit, or it or its interpreter lies "
                        f"neither in its own folder, nor in one of the system's or of PATH; see docs/sandbox.md"
                    ) from error
                if error.errno != errno.ETXTBSY or last:
                    raise refused(command, error) from error
            await asyncio.sleep(_BUSY_PAUSE)
        raise AssertionError("the last try returns or raises")

    return start


def refusal(profile: Profile, missing: Mapping[str, str]) -> str:
    """Return the words for a tool that is not run."""
    return (
        f"the sandbox {profile.name!r} promises walls that this system lacks, and nothing was started: "
        f"{told(missing)}; run it all the same with --missing-walls report, or see `narratoria doctor`"
    )


def told(missing: Mapping[str, str]) -> str:
    """Return the missing walls in words, each with the reason."""
    return "; ".join(f"{wall} ({reason})" for wall, reason in missing.items())


def nothing_holds(reason: str = "there are cells on Linux alone") -> dict[str, str]:
    """Return every wall as missing, for a place in which there is no cell."""
    return dict.fromkeys(WALLS, reason)


CELLS: Final = LINUX and hasattr(os, "pidfd_open")
"""True where there can be cells."""


async def _given_back(one: Cell) -> None:
    """Give a cell back; what is left in its folder is removed in a thread, since it may be much."""
    if one.lost or not _is_empty(one.scratch):
        await asyncio.shield(asyncio.to_thread(pool().give_back, one))
    else:
        pool().give_back(one)


def _is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return False


class ScratchWatch:
    """Ends a tool whose scratch folder grows past its cap, or that has nearly filled the disk. It looks now and then,
    so both are passed by what is written meanwhile.
    """

    def __init__(self, cell: Cell, cap: int) -> None:
        self.over = ""
        """The reason for which the tool was ended; empty if it was not."""
        self._cell = cell
        self._cap = cap
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> ScratchWatch:
        self._timer = self._loop.call_later(_LOOK, self._look)
        return self

    def __exit__(self, *details: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        looking = self._loop.run_in_executor(None, _measured, self._cell.scratch, self._cap)
        looking.add_done_callback(lambda done: self._judge(done.result()))

    def _judge(self, over: str) -> None:
        if self._timer is None:
            return  # the tool has ended
        if over:
            self.over = over
            platform.signal_group(self._cell.leader, signal.SIGKILL)
        else:
            self._timer = self._loop.call_later(_LOOK, self._look)


def _measured(folder: str, cap: int) -> str:
    """Return what is wrong with the size of a folder; an empty text if nothing is."""
    size = entries = 0
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                inside = list(found)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return _TOO_DEEP
            continue
        entries += len(inside)
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
                continue
            try:
                size += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    return _TOO_DEEP
        if size > cap or entries > _ENTRIES:
            return f"its scratch folder holds more than {cap >> 20:,} MiB or {_ENTRIES:,} entries"
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        if disk.f_bavail * disk.f_frsize < _LEAST_FREE:
            return f"its disk has less than {_LEAST_FREE >> 20} MiB left"
    return ""


def wrapped(
    confinement: Confinement,
    argv: Sequence[str],
    scratch: str,
    cgroup: Cgroup,
) -> list[str]:
    """Return a command that puts up the walls and becomes `argv`: for a program that lives long, such as a server. It
    joins `cgroup` first.
    """
    spec = {**confinement.spec(scratch), "join": cgroup.files}
    data = marshal.dumps((spec, list(argv))).hex()
    return [sys.executable, "-I", "-S", str(Path(program.__file__).absolute()), "exec", data]


_tried: dict[str, tuple[dict[str, str], dict[str, str]]] = {}


async def tried_walls(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Try the walls of a profile here, once; return those that hold, by what, and those that are missing, with the
    reason.
    """
    if name not in _tried:
        _tried[name] = await _walls_here(name) if CELLS else ({}, nothing_holds())
    return _tried[name]


async def _walls_here(name: str) -> tuple[dict[str, str], dict[str, str]]:
    profile = replace(PROFILES[name], refuses=False)
    async with Confinement(profile, (sys.executable,), ()).cell() as one:
        return dict(one.holds), dict(one.missing)
