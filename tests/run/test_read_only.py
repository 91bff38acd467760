"""A tool that declares to change nothing is held to it, whatever kind it is of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from narratoria.errors import ToolValidationError
from narratoria.kinds.compose import sequence
from narratoria.kinds.function import tool
from narratoria.kinds.process.process_tool import process_tool
from narratoria.mcp_server.annotations import annotations_of
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.contract import NotificationEffect
from narratoria.tools.tool import ToolContext, ToolResult


@dataclass(frozen=True)
class Look:
    at: str = "state"


@tool(description="Look at something.", read_only=True)
async def look(params: Look, *, context: ToolContext) -> ToolResult[int]:
    context.log("looking")
    if params.at == "state":
        context.patch({"seen": True})
    elif params.at == "memory":
        context.memory.write("working", "seen", True)
    elif params.at == "permissions":
        context.session.grant("net:fetch")
    return ToolResult.ok(7, "seen")


@tool(description="Look at once.", read_only=True)
def glance(params: Look, *, context: ToolContext) -> ToolResult[int]:
    context.patch({"seen": True})
    return ToolResult.ok(7, "seen")


@pytest.mark.parametrize(
    "at, part", [("state", "the state"), ("memory", "memory"), ("permissions", "the permissions")]
)
async def test_a_change_fails_the_call_and_is_dropped(at: str, part: str) -> None:
    session = Session(state={"seen": False})
    result = await ToolRegistry([look]).execute("look", {"at": at}, session=session)
    assert not result.success and result.failure is not None
    assert result.failure.code == "EXECUTION_FAILED" and not result.failure.recoverable
    assert f"would change {part}" in result.message
    assert session.state == {"seen": False}
    assert not session.has_permission("net:fetch")


async def test_a_plain_function_is_held_to_it_too() -> None:
    result = await ToolRegistry([glance]).execute("glance", {})
    assert "glance is declared as one that changes nothing" in result.message


async def test_results_logs_and_assets_are_no_changes(tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.txt"
    drawn.write_text("a line")

    @tool(description="Draw.", read_only=True)
    async def draw(params: Look, *, context: ToolContext) -> ToolResult[int]:
        context.asset(drawn, media_type="text/plain", kind="text")
        return ToolResult.ok(1, "drawn")

    registry = ToolRegistry([look, draw])
    assert (await registry.execute("look", {"at": "nothing"})).value == 7
    assert (await registry.execute("draw", {})).success


async def test_a_manifest_says_it_and_a_patch_of_the_executable_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "peek"
    patch = '{"version":"0","type":"state_patch","patch":{"seen":true}}'
    done = '{"version":"0","type":"done","ok":true}'
    path.write_text(f"#!/bin/sh\ncat >/dev/null\necho '{patch}'\necho '{done}'\n")
    path.chmod(0o755)
    manifest = {"name": "peek", "description": "Peeks.", "readOnly": True}
    (tmp_path / "peek.tool.json").write_text(json.dumps(manifest))
    peek = process_tool(path)
    assert annotations_of(peek) == {"readOnlyHint": True, "openWorldHint": False}
    session = Session()
    result = await ToolRegistry([peek]).execute("peek", {}, session=session)
    assert not result.success
    assert "would change the state" in result.message
    assert session.state == {}


def test_effects_and_read_only_exclude_each_other() -> None:
    with pytest.raises(ToolValidationError, match="read-only and has effects"):
        tool(description="x", read_only=True, effects=[NotificationEffect(description="x", event="seen")])(
            _handler
        )


async def _handler(params: Look, *, context: ToolContext) -> ToolResult[int]:
    return ToolResult.ok(1)


def test_a_composition_reads_only_if_all_its_parts_do() -> None:
    writing: Any = tool(description="Writes.", name="writing")(_handler)
    assert sequence([look, glance]).read_only
    assert not sequence([look, writing]).read_only
    assert annotations_of(look) == {"readOnlyHint": True, "openWorldHint": False}
    assert annotations_of(writing) == {}
