"""The files of a folder that are tools: executables, and manifests that stand alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from narratoria.errors import ToolValidationError
from narratoria.kinds.load import file_kind
from narratoria.kinds.manifest import (
    DEFAULT_KIND,
    SUFFIX,
    has_manifest,
    is_manifest,
    manifest_data,
    manifest_path,
)

NO_TOOL: Final = (
    "no tool in this folder; a tool is a file with the run bit (below the folder one with a manifest), or a manifest "
    "of a kind that runs no file"
)


@dataclass(frozen=True, slots=True)
class ToolFile:
    """A file that is a tool, or was meant as one: `problem` says why it is none."""

    path: Path
    """The executable, or a manifest that stands alone: `load_tool` takes both."""
    manifest: Path | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The file's name, without the ending of a manifest."""
        return self.path.name.removesuffix(SUFFIX)


def tool_files(folder: Path, *, below: bool = True) -> Iterator[ToolFile]:
    """Yield the tools of a folder, by name.

    A tool is a file with the run bit, or a manifest of a kind that runs no file. In subfolders, if those `below` are
    asked for, a file needs a manifest too, since others may be anything. What begins with `_` or `.` is the tools' own.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if below and not name.startswith(("_", ".")))
        described = {manifest_path(Path(place, name)) for name in names if not name.endswith(SUFFIX)}
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith(("_", ".")) or not path.is_file():
                continue
            if is_manifest(path):
                if path not in described:
                    yield _alone(path)
                continue
            manifest = manifest_path(path) if has_manifest(path) else None
            if os.access(path, os.X_OK):
                if manifest is not None or Path(place) == folder:
                    yield ToolFile(path, manifest)
            elif manifest is not None:
                yield ToolFile(path, manifest, f"cannot be run; give it the run bit: chmod +x {path.name}")


def _alone(path: Path) -> ToolFile:
    try:
        data = manifest_data(path)
        kind = data.get("kind", DEFAULT_KIND) if isinstance(data, dict) else DEFAULT_KIND
        needs_a_file = file_kind(str(kind), path).runs_a_file
    except ToolValidationError:
        needs_a_file = False  # whoever loads it says what is wrong
    name = path.name.removesuffix(SUFFIX)
    return ToolFile(path, path, f"describes {name!r}, which is not beside it" if needs_a_file else None)
