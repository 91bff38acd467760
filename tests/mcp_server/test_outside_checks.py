"""The outside's own checks: the MCP inspector lists and calls our tools, and the conformance suite passes.

Both come from npm, by `scripts/npm_needs.sh`; without them the tests are skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NPM = Path(os.environ.get("NARRATORIA_SOURCE", HERE.parents[1])) / "build" / "npm"
PROGRAMS = NPM / "node_modules" / ".bin"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{NPM / 'node_modules' / 'node' / 'bin'}{os.pathsep}{os.environ['PATH']}",
}
DONE = '{"version":"0","type":"done","ok":true,"summary":"All done."}'
PATCH = '{"version":"0","type":"state_patch","patch":{"torch":{"lit":true}}}'

pytestmark = pytest.mark.skipif(
    not (NPM / ".has").is_file(), reason="needs build/npm; scripts/npm_needs.sh installs it"
)


def inspect(*arguments: object, env: dict[str, str] | None = None) -> Any:
    ended = subprocess.run(
        [str(PROGRAMS / "mcp-inspector"), "--cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**ENVIRONMENT, **(env or {})},
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_the_inspector_lists_and_calls_our_tools_over_stdio(workshop):
    schema = {"type": "object", "properties": {"target": {"type": "string"}}, "additionalProperties": False}
    workshop.tool("lighter", PATCH, DONE, parameters=schema)
    home = {"HOME": str(workshop.folder)}
    given = ["-e", f"NARRATORIA_HOME={workshop.folder / 'home'}", *workshop.command(cold=True)]
    listed = inspect(*given, "--method", "tools/list", "--strict", env=home)
    assert [one["name"] for one in listed["tools"]] == ["lighter", "undo"]
    called = inspect(
        *given, "--method", "tools/call", "--tool-name", "lighter", "--tool-arg", "target=torch", env=home
    )
    assert called["structuredContent"] == {"torch": {"lit": True}}
    assert called["isError"] is False


async def test_the_inspector_lists_and_calls_our_tools_over_http(workshop):
    workshop.tool("lighter", PATCH, DONE)
    home = {"HOME": str(workshop.folder)}
    async with workshop.serving() as (address, _):
        given = [
            address,
            "--transport",
            "http",
            "--header",
            "Authorization: Bearer a-token-that-nobody-guesses",
        ]
        listed = await asyncio.to_thread(inspect, *given, "--method", "tools/list", env=home)
        assert [one["name"] for one in listed["tools"]] == ["lighter", "undo"]
        called = await asyncio.to_thread(
            inspect, *given, "--method", "tools/call", "--tool-name", "lighter", env=home
        )
        assert called["structuredContent"] == {"torch": {"lit": True}}
        state = await asyncio.to_thread(
            inspect, *given, "--method", "resources/read", "--uri", "narratoria://state", env=home
        )
        assert json.loads(state["contents"][0]["text"]) == {"torch": {"lit": True}}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of the server with what the suite asks for."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "conformance_server.py"), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.communicate(timeout=30)


def results(address: str, *arguments: str) -> dict[str, tuple[int, int]]:
    """Scenario → passed and failed checks."""
    ended = subprocess.run(
        [str(PROGRAMS / "conformance"), "server", "--url", address, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=ENVIRONMENT,
    )
    found = re.findall(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed", ended.stdout, re.MULTILINE)
    assert found, ended.stdout[-2000:] + ended.stderr[-2000:]
    return {name: (int(passed), int(failed)) for name, passed, failed in found}


@pytest.mark.slow
def test_the_active_conformance_suite_passes(served):
    found = results(served)
    assert len(found) >= 31
    assert {name: checks for name, checks in found.items() if checks[1]} == {}


def test_all_that_the_revision_2026_07_28_requires_passes(served):
    named = NPM / "node_modules/@modelcontextprotocol/conformance/requirements/2026-07-28.yaml"
    of_servers = named.read_text().partition("\nserver:\n")[2].partition("\nclient:\n")[0]
    required = set(re.findall(r"^  - ([\w-]+)$", of_servers, re.MULTILINE))
    found = results(served, "--requirements", "2026-07-28")
    assert len(required) >= 37
    assert {name: found.get(name) for name in required if found.get(name, (0, 1))[1]} == {}
