"""The files of a folder that are tools: executables, and manifests that stand alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
from narratoria.kinds.process.launch import (
    LaunchRefused,
    command_for,
    lacking_executable,
    lacking_run_bit,
    looks_like_script,
)

NO_TOOL: Final = (
    "no tool in this folder; a tool is a file with the run bit (below the folder one with a manifest), a file with a "
    "manifest that can be run, or a manifest of a kind that runs no file"
)


@dataclass(frozen=True, slots=True)
class ToolFile:
    """A file that is a tool, or was meant as one: `problem` says why it is none."""

    path: Path
    """The executable, or a manifest that stands alone: `load_tool` takes both."""
    manifest: Path | None = None
    problem: str | None = None
    meant: bool = True
    """False for a script that has neither the run bit nor a manifest: it may be something else."""

    @property
    def name(self) -> str:
        """The file's name, without the ending of a manifest."""
        return self.path.name.removesuffix(SUFFIX)


def tool_files(folder: Path, deepest: int | None = None) -> Iterator[ToolFile]:
    """Yield the tools of a folder, by name: for every command, and for a story.

    A tool is a file with a manifest that can be run, one with the run bit in the folder itself, or a manifest of a kind
    that runs no file. Files in subfolders, and those without the run bit, need the manifest, since they may be
    anything; a script in the folder itself that lacks the run bit is told of. What begins with `_` or `.` is the tools'
    own; so is a file beside one of the same name with the run bit, such as the source of a compiled tool.
    No folder more than `deepest` levels below it is looked at.
    """
    for place, folders, names in os.walk(folder):
        level = len(Path(place).relative_to(folder).parts)
        wanted = folders if deepest is None or level < deepest else []
        folders[:] = sorted(name for name in wanted if not name.startswith(("_", ".")))
        paths = (Path(place, name) for name in sorted(names))
        yield from _tools_among([path for path in paths if _may_be_tool(path)], below=Path(place) != folder)


def _tools_among(files: Sequence[Path], *, below: bool) -> Iterator[ToolFile]:
    """Yield the tools among the files of the folder itself, or of one `below` it."""
    described = {manifest_path(path) for path in files if not is_manifest(path)}
    run = {manifest_path(path) for path in files if os.access(path, os.X_OK)}
    for path in files:
        if is_manifest(path):
            if path not in described:
                yield _alone(path)
            continue
        manifest = manifest_path(path) if has_manifest(path) else None
        if os.access(path, os.X_OK):
            if manifest is not None or not below:
                yield ToolFile(path, manifest)
        elif manifest is not None and manifest not in run:
            yield ToolFile(path, manifest, _why_not(path))
        elif manifest is None and not below and _is_left_out(path, run):
            yield ToolFile(path, None, lacking_run_bit(path), meant=False)


def _is_left_out(path: Path, run: set[Path]) -> bool:
    return manifest_path(path) not in run and looks_like_script(path)


def _why_not(path: Path) -> str | None:
    """Return why a file without the run bit cannot be run; None if its first line or its suffix says how."""
    try:
        command_for(path)
    except LaunchRefused as error:
        return f"cannot be run: {error}"
    return None


def _may_be_tool(path: Path) -> bool:
    return not path.name.startswith(("_", ".")) and path.is_file()


def _alone(path: Path) -> ToolFile:
    try:
        data = manifest_data(path)
        kind = data.get("kind", DEFAULT_KIND) if isinstance(data, dict) else DEFAULT_KIND
        needs_a_file = file_kind(str(kind), path).runs_a_file
    except ToolValidationError:
        needs_a_file = False  # whoever loads it says what is wrong
    return ToolFile(path, path, lacking_executable(path) if needs_a_file else None)
