"""Real tools written on the spot, and a look at what they leave behind."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from narratoria.events import ToolEvent
from narratoria.kinds.process.supervisor import ProcessOutcome, run_process, sweep


class Trial:
    """One run of a tool under supervision."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.events: list[ToolEvent] = []

    def script(self, source: str, name: str = "tool.py") -> list[str]:
        path = self.folder / name
        path.write_text(source)
        return ["/bin/bash", str(path)] if name.endswith(".sh") else [sys.executable, "-S", str(path)]

    async def run(self, argv: list[str], stdin: bytes = b"{}", **options: Any) -> ProcessOutcome:
        options.setdefault("on_events", self.events.extend)
        options.setdefault("timeout", 20)
        return await run_process(
            argv, stdin, tool="trial", env={**os.environ, "TRIAL_MARK": self.mark}, **options
        )

    async def bash(self, source: str, **options: Any) -> ProcessOutcome:
        return await self.run(self.script(source, "tool.sh"), **options)

    async def python(self, source: str, **options: Any) -> ProcessOutcome:
        return await self.run(self.script(source), **options)

    def alive(self) -> list[int]:
        """The processes of this trial: those that carry its mark in their environment, zombies apart."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    @staticmethod
    def eventually(holds: Callable[[], Any], within: float = 5.0) -> bool:
        """Whether something becomes true in time; looks again and again, up to a deadline."""
        until = time.monotonic() + within
        while not holds():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    async def orphans(self) -> list[int]:
        await sweep()
        return self.alive()


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    yield Trial(tmp_path, f"mark-{os.urandom(6).hex()}")
