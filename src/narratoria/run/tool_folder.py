"""Tools of a folder that is no story."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narratoria.errors import NarratoriaError
from narratoria.kinds.load import load_tool
from narratoria.kinds.tool_files import NO_TOOL, tool_files
from narratoria.run.registry import ToolRegistry
from narratoria.tools.tool import Tool


def folder_tools(folder: Path) -> dict[Path, Tool[Any, Any]]:
    """The tools of a folder by their files. Two of one name are refused, and so is a folder without any."""
    found = list(tool_files(folder))
    tools = {one.path: load_tool(one.path) for one in found if one.problem is None}
    ToolRegistry(tools.values())  # says so where two have one name
    if not tools:
        raise NarratoriaError(
            "; ".join(
                [
                    f"{folder}: {NO_TOOL}",
                    *(f"{one.path} {one.problem}" for one in found),
                ]
            )
        )
    return tools
