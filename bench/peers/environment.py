"""Virtual environments for the peers, apart from ours and from each other: build/peers/NAME, as pinned.txt says.

Peers bring many dependencies that Narratoria must not have, and some of them contradict each other. Each peer is
measured in a process of its own that prints microseconds per call on its last line.
"""

from __future__ import annotations

import os
import re
import subprocess
import venv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent.parent / "build" / "peers"
INSTALL_TIMEOUT = 600.0
RUN_TIMEOUT = 300.0


class PeerMissing(Exception):
    """A peer that cannot be measured here, and why."""


@dataclass(frozen=True)
class Peer:
    """A package, the script here that measures it, and how many times slower than ours it has to be."""

    package: str
    script: str
    factor: float | None = None

    def measure(self, *arguments: str) -> float:
        """Microseconds per call, taken in a process of its own."""
        command = [str(python_with(self.package)), str(HERE / self.script), *arguments]
        done = _run(command, RUN_TIMEOUT, f"{self.script} was not done")
        return float(done.stdout.strip().rpartition("\n")[2])

    @property
    def release(self) -> str:
        """The name and the version that is installed."""
        return release(self.package)


def pinned() -> dict[str, list[str]]:
    """For each peer what is installed for it."""
    lines = (HERE / "pinned.txt").read_text().splitlines()
    found = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {re.split(r"[<>=~!\[]", wanted[0])[0]: wanted for wanted in found}


def release(package: str) -> str:
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    done = _run([str(python_with(package)), "-c", code, package], 30, "pip did not answer")
    return f"{package} {done.stdout.strip()}"


@cache
def python_with(package: str) -> Path:
    """The interpreter of the peer's environment, which is made if it is not there or pinned.txt has changed."""
    folder, wanted = ENVIRONMENTS / package, pinned()[package]
    python, marker = folder / "bin" / "python", folder / "installed.txt"
    if not marker.exists() or marker.read_text() != "\n".join(wanted):
        print(f"installing {' '.join(wanted)} into build/peers/{package} …", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        _run(command, INSTALL_TIMEOUT, "pip was not done")
        marker.write_text("\n".join(wanted))
    return python


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
