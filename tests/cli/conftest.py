"""The command line as its users start it: another process, its streams, its exit code, and what it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start
from tests.cli.real_terminal import TORCH, Terminal
from tests.marked_processes import MarkedProcesses


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine(MarkedProcesses):
    """Runs `python -m narratoria`; its strays are found by their mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(folder)
        self.env["NARRATORIA_HOME"] = str(folder)
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONUNBUFFERED"):
            self.env.pop(name, None)

    def __call__(self, *arguments: object, stdin: str = "", **env: str) -> Ended:
        ended = warm_start.run(*arguments, input=stdin, env={**self.env, **env}, cwd=self.folder, timeout=60)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def cold(self, *arguments: object, stdin: str = "", **env: str) -> Ended:
        """Start it as users do. Only then the command itself bears the mark, and is found if it stays."""
        ended = subprocess.run(
            self.command(*arguments),
            input=stdin.encode(),
            capture_output=True,
            timeout=60,
            env={**self.env, **env},
            cwd=self.folder,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def start(self, *arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env,
            cwd=self.folder,
        )

    @staticmethod
    def command(*arguments: object) -> list[str]:
        return [sys.executable, "-m", "narratoria", *map(str, arguments)]

    def script(self, source: str, name: str = "tool.sh") -> Path:
        path = self.folder / name
        path.write_text("#!/bin/bash\n" + source if name.endswith(".sh") else source)
        path.chmod(0o755)
        return path


@pytest.fixture
def narratoria(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def at_terminal(narratoria: CommandLine) -> Iterator[Callable[..., Terminal]]:
    """Start games on terminals of their own: the torch, unless another story is named."""
    opened: list[Terminal] = []

    def start(*arguments: object, **details: str) -> Terminal:
        opened.append(Terminal(narratoria, *(arguments or (TORCH,)), **details))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
