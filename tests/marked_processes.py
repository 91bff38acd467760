"""Processes of a test, found by a mark in their environment when they outlive it."""

from __future__ import annotations

import os
import time
from pathlib import Path


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
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def leaves_nothing(self, within: float = 10.0) -> bool:
        """Tell if soon no process of this test runs: the guardian takes a moment to leave."""
        until = time.monotonic() + within
        while self.strays():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True
