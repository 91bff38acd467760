"""The command line as its users start it: another process, its streams, its exit code, and what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    """Runs `python -m narratoria`; every process of a test carries a mark by which strays are found: the name of the
    temporary folder, since a tool gets no variable it did not ask for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"mark-{os.urandom(6).hex()}"
        self.temporary = folder / self.mark
        self.temporary.mkdir()
        self.env = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "NARRATORIA_HOME": str(folder),
        }
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

    def strays(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def leaves_nothing(self, within: float = 5.0) -> bool:
        """Whether soon no process of this test runs: the guardian takes a moment to leave."""
        until = time.monotonic() + within
        while self.strays():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True


@pytest.fixture
def narratoria(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
