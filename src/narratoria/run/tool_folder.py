"""Tools of a folder that is no story: which files are tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from narratoria.errors import NarratoriaError
from narratoria.kinds.load import load_tool
from narratoria.kinds.manifest import SUFFIX
from narratoria.run.registry import ToolRegistry
from narratoria.tools.tool import Tool


def executables(folder: Path) -> Iterator[Path]:
    """Yield the files that can be run; in subfolders only those with a manifest, since others may be anything."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        for name in sorted(names):
            path = Path(place, name)
            described = path.with_name(name + SUFFIX).is_file()
            if name.startswith(("_", ".")) or name.endswith(SUFFIX) or not path.is_file():
                continue
            if os.access(path, os.X_OK) and (described or Path(place) == folder):
                yield path


def folder_tools(folder: Path) -> dict[Path, Tool[Any, Any]]:
    """The tools of a folder by their files. Two of one name are refused, and so is a folder without any."""
    tools = {path: load_tool(path) for path in executables(folder)}
    ToolRegistry(tools.values())  # says so where two have one name
    if not tools:
        raise NarratoriaError(
            f"{folder}: no tool in this folder; a tool is a file with the run bit, below the folder one with a manifest"
        )
    return tools
