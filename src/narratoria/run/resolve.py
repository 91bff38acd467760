"""The resolver from a plan's `toolPath` to a tool: a registered name, or an executable inside the allowed folders."""

from __future__ import annotations

import contextlib
import difflib
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from narratoria.errors import NOT_EXECUTABLE, TOOL_NOT_FOUND, NarratoriaError, ToolValidationError
from narratoria.kinds.load import load_tool, manifest_of
from narratoria.kinds.manifest import SUFFIX
from narratoria.kinds.process.launch import NotExecutable, ToolMissing
from narratoria.kinds.tool_files import tool_files
from narratoria.run.plan import tool_name
from narratoria.run.registry import ToolRegistry
from narratoria.tools.tool import Tool

_DEEPEST: Final = 2  # folders below a root in which a tool is found by its name
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

        It is an executable, or a manifest that stands alone, whose ending may be left out; or the file of the tool
        that has this name, as `tool_files` finds it.
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
        named_so = self._by_name.get(tool_path)
        if named_so is not None:
            return named_so
        if outside:
            raise ToolRefused(
                NOT_EXECUTABLE,
                f"{named} lies outside the folders this plan may use; nothing was started",
                ["move the tool into the story's folder, or allow its folder with --tools DIR"],
            )
        where = ", ".join(map(str, self.roots))
        sought = f"no such file is in {where}" if where else "no folder is allowed to look for a file in"
        known = {tool.name for tool in self.registry} | self._by_name.keys()
        near = difflib.get_close_matches(tool_path, known, 1)
        meant = [f"did you mean {near[0]!r}?"] if near else []
        raise ToolRefused(
            TOOL_NOT_FOUND,
            f"no tool {named}: it is not a registered name, and {sought}",
            [*meant, "check the path", "allow its folder with --tools DIR"],
        )

    @functools.cached_property
    def _by_name(self) -> dict[str, Path]:
        """The tools of the roots by their names; of two with one name, that of the first root."""
        found: dict[str, Path] = {}
        for one in (one for root in self.roots for one in tool_files(root, _DEEPEST) if one.problem is None):
            path = one.path.resolve()
            if any(path.is_relative_to(allowed) for allowed in self.roots):
                with contextlib.suppress(ToolValidationError):  # whoever names its file hears of it
                    found.setdefault(manifest_of(one.path).name, path)
        return found
