"""The resolver from a plan's `toolPath` to a tool: a registered name, or an executable inside the allowed folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from narratoria.errors import NOT_EXECUTABLE, TOOL_NOT_FOUND, NarratoriaError
from narratoria.kinds.load import load_tool
from narratoria.kinds.process.launch import NotExecutable, ToolMissing
from narratoria.run.registry import ToolRegistry
from narratoria.tools.tool import Tool


class ToolRefused(NarratoriaError):
    """A path does not name a tool that may be run. Nothing was started."""

    def __init__(self, code: str, message: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.suggestions = tuple(suggestions)


class ToolResolver:
    """Finds tools by registered name or by path; symlinks are followed before the folder is checked."""

    def __init__(self, registry: ToolRegistry, roots: Sequence[Path] = ()) -> None:
        self.registry = registry
        self.roots = tuple(root.resolve() for root in roots)
        self._found: dict[str, Tool[Any, Any]] = {}

    def resolve(self, tool_path: str) -> Tool[Any, Any]:
        known = self.registry.get(tool_path) or self._found.get(tool_path)
        if known is not None:
            return known
        path = self.locate(tool_path)
        found = next((tool for tool in self.registry if tool.origin == path), None)
        if found is None:
            found = self._load(path)
        self._found[tool_path] = found
        return found

    def _load(self, path: Path) -> Tool[Any, Any]:
        try:
            return load_tool(path)
        except ToolMissing as error:
            raise ToolRefused(TOOL_NOT_FOUND, str(error)) from None
        except NotExecutable as error:
            raise ToolRefused(NOT_EXECUTABLE, str(error)) from None

    def locate(self, tool_path: str) -> Path:
        """Return the executable at `tool_path`, inside one of the roots; raise `ToolRefused` otherwise."""
        outside = False
        for root in self.roots:
            try:
                candidate = (root / tool_path).resolve()
            except (OSError, RuntimeError, ValueError):  # a loop of symlinks, a NUL in the name
                continue
            if not any(candidate.is_relative_to(allowed) for allowed in self.roots):
                outside = True
                continue
            if candidate.is_file():
                return candidate
        if outside:
            raise ToolRefused(
                NOT_EXECUTABLE,
                f"{tool_path!r} lies outside the folders this plan may use; nothing was started",
                ["move the tool into the story's folder, or allow its folder with --tools DIR"],
            )
        where = ", ".join(map(str, self.roots))
        sought = f"no such file is in {where}" if where else "no folder is allowed to look for a file in"
        raise ToolRefused(
            TOOL_NOT_FOUND,
            f"no tool {tool_path!r}: it is not a registered name, and {sought}",
            ["check the path", "allow its folder with --tools DIR"],
        )
