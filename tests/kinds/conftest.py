"""Real tools written on the spot, and a look at what they leave behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.marked_processes import eventually, with_mark

from narratoria.events import ToolEvent
from narratoria.kinds.process.supervisor import ProcessOutcome, run_process, sweep
from narratoria.kinds.process.warm_servers import WarmScript, end_servers


class Trial:
    """One run of a tool under supervision."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.events: list[ToolEvent] = []
        self.warm = False
        self.argv: list[str] = []

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
        self.argv = argv = self.script(source)
        return await self.run(argv, **self.way(argv), **options)

    def way(self, argv: list[str]) -> dict[str, Any]:
        """Return the option that makes a run of a Python tool warm, if this trial is."""
        return {"warm": WarmScript(tuple(argv[:-1]), argv[-1]).start} if self.warm else {}

    eventually = staticmethod(eventually)

    def alive(self) -> list[int]:
        """Return the processes of this trial: those that carry its mark in their environment, zombies apart."""
        return with_mark(self.mark)

    async def orphans(self) -> list[int]:
        await sweep()
        return self.alive()


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    yield Trial(tmp_path, f"mark-{os.urandom(6).hex()}")


@pytest.fixture
def warm(trial: Trial) -> Iterator[Trial]:
    """A trial whose Python tools are forks."""
    trial.warm = True
    yield trial
    end_servers()


@pytest.fixture(params=["cold", "warm"])
def either(request: pytest.FixtureRequest) -> Any:
    """A trial in both ways of starting a Python tool, which must be alike in all that can be seen."""
    return request.getfixturevalue("trial" if request.param == "cold" else "warm")
