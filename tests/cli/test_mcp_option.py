"""`--mcp` and `narratoria tools`: tools of MCP servers on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).parents[1] / "kinds" / "mcp" / "trial_server.py"


@pytest.fixture
def servers(tmp_path: Path) -> str:
    path = tmp_path / "servers.json"
    good = {"command": sys.executable, "args": [str(SERVER)], "env": {"API_KEY": "${TRIAL_KEY:-none}"}}
    bad = {"command": "no-such-program-here"}
    path.write_text(json.dumps({"mcpServers": {"trial": good, "bad": bad}}))
    return str(path)


def test_the_tools_of_servers_are_listed_and_the_reasons_for_those_missing(
    narratoria: Any, servers: str
) -> None:
    ended = narratoria("tools", "--mcp", servers, "--json")
    assert ended.code == 1
    tools = {one["name"]: one for one in ended.json["tools"]}
    assert tools["trial.add"]["kind"] == "mcp"
    assert tools["trial.add"]["from"].startswith("MCP server trial: ")
    assert tools["trial.add"]["parameters"]["required"] == ["a"]
    assert tools["trial.write"]["effects"][0]["reversible"] is False
    assert "trial.getuser: the server calls it 'getUser'" in ended.json["notes"]
    assert any("no-such-program-here" in line for line in ended.json["problems"])


def test_the_tools_of_a_folder_and_of_a_story_are_listed(narratoria: Any, tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "hello"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    ended = narratoria("tools", "--tools", str(tool.parent), "--story", "lighthouse", "--json")
    assert ended.code == 0, ended.err
    found = {one["name"]: one for one in ended.json["tools"]}
    assert found["hello"]["from"] == str(tool)
    assert found["walk"]["kind"] == "process"
    shown = narratoria("tools", "--tools", str(tool.parent))
    assert "hello(…)  process" in shown.out


def test_a_tool_of_a_server_is_called_by_its_name(narratoria: Any, servers: str) -> None:
    ended = narratoria("call", "trial.add", "--mcp", servers, "--input", '{"a": 2, "b": 3}', "--json")
    assert ended.code == 0, ended.err
    assert ended.json["output"] == {"total": 5}
    assert "no-such-program" not in ended.err  # the other server is not started
    shown = narratoria("call", "trial.echo", "--mcp", servers, "--input", '{"text": "hello"}')
    assert "✓ hello" in shown.out


@pytest.mark.slow
def test_a_tool_that_no_server_has_is_named_with_its_likes(narratoria: Any, servers: str) -> None:
    ended = narratoria("call", "trial.ad", "--mcp", servers, "--json")
    assert ended.code == 1
    assert ended.json["errorCode"] == "TOOL_NOT_FOUND"
    assert "trial.add" in ended.json["error"]
    broken = narratoria("call", "bad.tool", "--mcp", servers, "--json")
    assert "is not on the PATH" in broken.json["error"]


@pytest.mark.slow
def test_a_plan_runs_tools_of_servers(narratoria: Any, servers: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    call = {"toolId": "one", "toolPath": "trial.add", "input": {"a": 1}, "dependencies": []}
    plan.write_text(json.dumps({"requestId": "p", "tools": [call]}))
    ended = narratoria("run", str(plan), "--mcp", servers, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["toolResults"][0]["output"] == {"total": 2}
    linted = narratoria("lint", str(plan), "--mcp", servers, "--json")
    assert linted.code == 0, linted.out


def test_a_file_that_cannot_be_read_is_a_usage_error(narratoria: Any, tmp_path: Path) -> None:
    ended = narratoria("tools", "--mcp", str(tmp_path / "missing.json"))
    assert ended.code == 2
    assert "missing.json: cannot be read" in ended.err
