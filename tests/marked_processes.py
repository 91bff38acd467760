"""Processes of a test, found by a mark in their environment when they outlive it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class MarkedProcesses:
    """An environment for processes, with a mark: the name of the temporary folder, since a tool gets no variable it did
    not ask for.
    """

    def __init__(self, folder: Path) -> None:
        self.mark = f"mark-{os.urandom(6).hex()}"
        self.temporary = folder / self.mark
        self.temporary.mkdir()
        self.env = {**os.environ, "TMPDIR": str(self.temporary)}

    def strays(self) -> list[int]:
        """Return the ids of the processes with the mark, but this one."""
        return with_mark(self.mark)

    def leaves_nothing(self, within: float = 10.0) -> bool:
        """Tell if soon no process of this test runs: the guardian takes a moment to leave."""
        return eventually(lambda: not self.strays(), within)


def with_mark(mark: str) -> list[int]:
    """Return the ids of the processes with a mark in their environment, but this one; zombies have none."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def eventually(holds: Callable[[], Any], within: float = 5.0) -> bool:
    """Tell if something becomes true in time; looks again and again, up to a deadline."""
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
