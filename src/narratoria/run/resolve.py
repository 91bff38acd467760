"""The resolver from a plan's `toolPath` to a tool: a registered name, or an executable inside the allowed folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from narratoria.errors import NOT_EXECUTABLE, TOOL_NOT_FOUND, NarratoriaError, ToolValidationError
from narratoria.kinds.load import load_tool
from narratoria.kinds.manifest import SUFFIX
from narratoria.kinds.process.launch import NotExecutable, ToolMissing
from narratoria.run.plan import tool_name
from narratoria.run.registry import ToolRegistry
from narratoria.tools.tool import Tool

_SHOWN: Final = 200  # characters of a path that a message repeats


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
        try:
            path = self.locate(tool_path)
        except ToolRefused:
            # A plan of an earlier version may name a file of the story for what the runtime brings now.
            known = self.registry.get(tool_path.removeprefix("tools/"))
            if known is None:
                raise
            return known
        found = next((tool for tool in self.registry if tool.origin == path), None)
        if found is None:
            found = self._load(path)
        self._found[tool_path] = found
        return found

    def name_of(self, tool_path: str) -> str:
        """Return the name of the tool at `tool_path`, also of one that there is not."""
        try:
            return self.resolve(tool_path).name
        except ToolRefused:
            return tool_name(tool_path)

    def _load(self, path: Path) -> Tool[Any, Any]:
        try:
            return load_tool(path)
        except ToolMissing as error:
            raise ToolRefused(TOOL_NOT_FOUND, str(error)) from None
        except (NotExecutable, ToolValidationError) as error:  # the second: its manifest is broken
            raise ToolRefused(NOT_EXECUTABLE, str(error)) from None

    def locate(self, tool_path: str) -> Path:
        """Return the file of the tool at `tool_path`, inside one of the roots; raise `ToolRefused` otherwise.

        It is an executable, or a manifest that stands alone, whose ending may be left out.
        """
        outside = False
        named = repr(tool_path if len(tool_path) <= _SHOWN else f"{tool_path[:_SHOWN]}…")
        places = [root / spelled for spelled in (tool_path, tool_path + SUFFIX) for root in self.roots]
        for place in places:
            try:
                candidate = place.resolve()
                if not any(candidate.is_relative_to(allowed) for allowed in self.roots):
                    outside = True
                elif candidate.is_file():
                    return candidate
            except (
                OSError,
                RuntimeError,
                ValueError,
            ):  # a loop of symlinks, a NUL or too many letters in the name
                continue
        if outside:
            raise ToolRefused(
                NOT_EXECUTABLE,
                f"{named} lies outside the folders this plan may use; nothing was started",
                ["move the tool into the story's folder, or allow its folder with --tools DIR"],
            )
        where = ", ".join(map(str, self.roots))
        sought = f"no such file is in {where}" if where else "no folder is allowed to look for a file in"
        raise ToolRefused(
            TOOL_NOT_FOUND,
            f"no tool {named}: it is not a registered name, and {sought}",
            ["check the path", "allow its folder with --tools DIR"],
        )
