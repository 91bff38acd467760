"""A virtual environment for peers, apart from ours: build/bench-venv, filled by name from the package index.

Peers bring many dependencies that Narratoria must not have, and their newest versions are what matters, so nothing
here is pinned. Each peer is measured in a process of its own that prints microseconds per call on its last line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent.parent / "build" / "bench-venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
INSTALL_TIMEOUT = 600.0
RUN_TIMEOUT = 300.0


class PeerMissing(Exception):
    """A peer that cannot be measured here, and why."""


@dataclass(frozen=True)
class Peer:
    """A package, the script here that measures it, and how many times slower than ours it has to be."""

    package: str
    script: str
    factor: float
    beside: tuple[str, ...] = ()  # further requirements, where its own admit what it does not work with

    def measure(self, *arguments: str) -> float:
        """Microseconds per call, taken in a process of its own."""
        command = [str(python_with(self.package, *self.beside)), str(HERE / self.script), *arguments]
        done = _run(command, RUN_TIMEOUT, f"{self.script} was not done")
        return float(done.stdout.strip().rpartition("\n")[2])

    @property
    def version(self) -> str:
        code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
        return _run([str(PYTHON), "-c", code, self.package], 30, "pip did not answer").stdout.strip()


def python_with(package: str, *beside: str) -> Path:
    """The environment's interpreter, once `package` is in it."""
    if not PYTHON.exists():
        print("making build/bench-venv for the peers …", flush=True)
        venv.create(ENVIRONMENT, with_pip=True)
    marker = ENVIRONMENT / f".has-{package}"
    if not marker.exists():
        print(f"installing {package} into build/bench-venv …", flush=True)
        command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
        _run([*command, *beside], INSTALL_TIMEOUT, "pip was not done")
        marker.touch()
    return PYTHON


def _run(command: list[str], timeout: float, complaint: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise PeerMissing(f"{complaint} within {timeout:g} s") from None
    if done.returncode:
        raise PeerMissing(done.stderr.strip().rpartition("\n")[2][:200] or f"exit status {done.returncode}")
    return done
