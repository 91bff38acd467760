"""Tools from files: the one way in for a path, whatever kind of tool lies there."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from narratoria.errors import ToolValidationError
from narratoria.kinds.from_manifest import FileKind
from narratoria.kinds.manifest import Manifest, is_manifest, load_manifest, read_manifest
from narratoria.tools.tool import Tool

# Where each kind is that a manifest may name under `kind`. A kind is loaded when a manifest of it is read.
KINDS: Final[dict[str, str]] = {
    "mcp": "narratoria.kinds.mcp.mcp_tools:FILES",
    "process": "narratoria.kinds.process.process_tool:FILES",
}

_resolve = functools.cache(pkgutil.resolve_name)


def load_tool(
    path: Path | str, kinds: Mapping[str, str] = KINDS, *, operation: str | None = None
) -> Tool[Any, Any]:
    """The tool at `path`: an executable, with or without a manifest, or the manifest of a tool of another kind.

    `operation` takes the place of the manifest's.

    Raises `ToolMissing`, `NotExecutable` or `ToolValidationError`; nothing is started here.
    """
    path = Path(path)
    manifest = manifest_of(path)
    if operation is not None:
        manifest = msgspec.structs.replace(manifest, operation=operation)
    return file_kind(manifest.kind, path, kinds).load(path, manifest)


def manifest_of(path: Path) -> Manifest:
    """The manifest of the tool at `path`, which may be the manifest itself."""
    return read_manifest(path) if is_manifest(path) else load_manifest(path)


def file_kind(name: str, where: Path, kinds: Mapping[str, str] = KINDS) -> FileKind:
    """The kind that a manifest names; `where` is for the error about one that there is not."""
    if name not in kinds:
        raise ToolValidationError(
            f"{where}: there is no kind of tool {name!r}; known: {', '.join(sorted(kinds))}"
        )
    kind: FileKind = _resolve(kinds[name])
    return kind
