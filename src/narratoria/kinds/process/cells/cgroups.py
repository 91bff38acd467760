"""The cgroup of a cell, where the system lets us make one: it counts the processes and the memory of all inside."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "narratoria-"
_STALE: Final = 60.0
# By controller: the files of its cap in version 2 and in version 1.
_CAPS: Final = {"pids": ("pids.max", "pids.max"), "memory": ("memory.max", "memory.limit_in_bytes")}


class Cgroup:
    """The folders of one cell, by controller; there may be none."""

    def __init__(self, name: str, caps: dict[str, int]) -> None:
        self._folders: dict[str, Path] = {}
        for controller, cap in caps.items():
            made = _made(controller, f"{_PREFIX}{name}", cap)
            if made is not None:
                self._folders[controller] = made

    @property
    def files(self) -> dict[str, str]:
        """The files that take the number of a process that moves in, by controller."""
        return {controller: str(folder / "cgroup.procs") for controller, folder in self._folders.items()}

    def join(self, pid: int) -> list[str]:
        """Move a process in; return the controllers that hold it."""
        for controller, folder in list(self._folders.items()):
            try:
                (folder / "cgroup.procs").write_text(str(pid))
            except OSError:
                del self._folders[controller]
                _remove(folder)
        return list(self._folders)

    def remove(self) -> None:
        """Remove it; what is still inside stays, and is found stale later."""
        for folder in set(self._folders.values()):
            _remove(folder)
        self._folders.clear()


def _made(controller: str, name: str, cap: int) -> Path | None:
    new, old = _CAPS[controller]
    for parent, file in [*((one, old) for one in _first(controller)), *((one, new) for one in _second())]:
        folder = parent / name
        try:
            _remove_stale(parent)
            folder.mkdir(exist_ok=True)
        except OSError:
            continue
        try:
            if (folder / file).exists():
                (folder / file).write_text(str(cap))
                return folder
        except OSError:
            pass
        if not any((folder / one).exists() for pair in _CAPS.values() for one in pair):
            _remove(folder)
    return None


def _first(controller: str) -> Iterator[Path]:
    """Yield where a cgroup of version 1 can be made: in our own one."""
    for line in _memberships():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            yield Path(f"{_ROOT / controllers}{path}")


def _second() -> Iterator[Path]:
    """Yield where one of version 2 may be made: in our own, which must be empty or the uppermost, or beside it."""
    root = next((one for one in (_ROOT, _ROOT / "unified") if (one / "cgroup.controllers").is_file()), None)
    own = next((line[3:] for line in _memberships() if line.startswith("0::")), None)
    if root is not None and own is not None:
        here = Path(f"{root}{own}")
        yield here
        if here != root:
            yield here.parent


def _memberships() -> list[str]:
    try:
        return Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)  # noqa: PTH106


def _remove_stale(parent: Path) -> None:
    """Remove the empty ones of runtimes that were killed. The kernel refuses those with a process in them."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - _STALE:
                os.rmdir(folder)  # noqa: PTH106
