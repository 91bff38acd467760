"""Tools from files: the one way in for a path, whatever kind of tool lies there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from narratoria.errors import ToolValidationError
from narratoria.kinds.manifest import SUFFIX, Manifest, load_manifest, read_manifest
from narratoria.kinds.process.process_tool import process_tool
from narratoria.tools.tool import Tool

Loader: TypeAlias = Callable[[Path, Manifest], Tool[Any, Any]]


def _mcp(path: Path, manifest: Manifest) -> Tool[Any, Any]:
    from narratoria.kinds.mcp.mcp_tools import manifest_tool  # few need it

    return manifest_tool(path, manifest)


# One line for each kind that a manifest may name under `kind`.
KINDS: Final[dict[str, Loader]] = {
    "mcp": _mcp,
    "process": lambda path, manifest: process_tool(path, manifest=manifest),
}


def load_tool(path: Path | str, kinds: Mapping[str, Loader] = KINDS) -> Tool[Any, Any]:
    """The tool at `path`: an executable, with or without a manifest, or the manifest of a tool of another kind.

    Raises `ToolMissing`, `NotExecutable` or `ToolValidationError`; nothing is started here.
    """
    path = Path(path)
    manifest = read_manifest(path) if path.name.endswith(SUFFIX) else load_manifest(path)
    if manifest.kind not in kinds:
        raise ToolValidationError(
            f"{path}: there is no kind of tool {manifest.kind!r}; known: {', '.join(sorted(kinds))}"
        )
    return kinds[manifest.kind](path, manifest)
