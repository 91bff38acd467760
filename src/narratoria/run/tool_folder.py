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
        raise _no_tool(folder, [f"{one.path} {one.problem}" for one in found])
    return tools


def usable_tools(folder: Path) -> tuple[ToolRegistry, list[str]]:
    """The tools of a folder that can be used, and a line for each that cannot, such as one with a broken manifest. Of
    two with one name the first counts. A folder without any is refused.
    """
    registry, problems = ToolRegistry(), list[str]()
    for one in tool_files(folder):
        if one.problem is not None:
            problems.append(f"{one.path} {one.problem}")
            continue
        try:
            registry.register(load_tool(one.path))
        except NarratoriaError as error:
            told = str(error)
            problems.append(told if str(one.path) in told else f"{one.path}: {told}")
    if not registry.tools:
        raise _no_tool(folder, problems)
    return registry, problems


def _no_tool(folder: Path, problems: list[str]) -> NarratoriaError:
    return NarratoriaError("; ".join([f"{folder}: {NO_TOOL}", *problems]))
