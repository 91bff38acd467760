"""The files of a skill, as others may read them: no hidden ones, and none that a link leads out to."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Final

from narratoria.skills.skill import Skill, SkillInvalid, skill_file

GUIDE: Final = "SKILL.md"
MOST_FILES: Final = 512
"""Files of a skill that an MCP host has to accept (skills extension, "Limits")."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a skill that an MCP host has to accept."""
_MOST_FOLDERS: Final = 2_000
_MADE: Final = ("__pycache__", "node_modules")  # by an interpreter or an installer, not by the author


def skill_files(skill: Skill) -> dict[str, Path]:
    """Return the files of a skill by their paths from its folder, `SKILL.md` first; raise `SkillInvalid` beyond the
    limits.
    """
    root = _root(skill)
    guide = skill_file(root)
    found: dict[str, Path] = {} if guide is None else {GUIDE: guide}
    for looked, (place, folders, names) in enumerate(os.walk(root)):
        folders[:] = sorted(name for name in folders if _shown(name))
        for name in sorted(filter(_shown, names)):
            path = Path(place, name)
            if path != guide and _is_inside(path, root):
                found[path.relative_to(root).as_posix()] = path
        if len(found) > MOST_FILES or looked > _MOST_FOLDERS:
            raise SkillInvalid(root, [f"it has more than {MOST_FILES} files; move some out of it"])
    size = sum(path.stat().st_size for path in found.values())
    if size > MOST_BYTES:
        raise SkillInvalid(
            root, [f"its files have {size:,} bytes, more than {MOST_BYTES:,}; move some out of it"]
        )
    first = [GUIDE] if guide is not None else []
    return {name: found[name] for name in [*first, *sorted(found.keys() - {GUIDE})]}


def file_of_skill(skill: Skill, path: str) -> Path | None:
    """Return one file of a skill by its path from the skill's folder; None if it has no such file."""
    root = _root(skill)
    if path == GUIDE:
        return skill_file(root)
    found = _place(root, path)
    return found if found is not None and _is_inside(found, root) else None


def folder_of_skill(skill: Skill, path: str) -> tuple[list[str], list[str]] | None:
    """Return the names of the folders and of the files in a folder of a skill (`""` is its own); None without one."""
    root = _root(skill)
    place = _place(root, path) if path else root
    if place is None or not place.is_dir():
        return None
    guide = skill_file(root)
    children = sorted(one for one in place.iterdir() if _shown(one.name))
    folders = [one.name for one in children if one.is_dir() and not one.is_symlink()]
    files = [one.name for one in children if one != guide and _is_inside(one, root)]
    return folders, [GUIDE, *files] if place == root else files


def _root(skill: Skill) -> Path:
    if skill.root is None:
        raise SkillInvalid(Path(skill.name), ["a guide is one file, without a folder"])
    return skill.root


def _shown(name: str) -> bool:
    return not name.startswith(".") and name not in _MADE


def _place(root: Path, path: str) -> Path | None:
    """Return a place below a folder; None if a part of the path is hidden, leads up, or is a link to a folder."""
    parts = PurePosixPath(path).parts
    if not parts or "\0" in path or path.startswith("/") or not all(map(_shown, parts)):
        return None
    place = root.joinpath(*parts)
    above = place if place.is_dir() else place.parent
    return place if above.resolve() == above else None


def _is_inside(path: Path, root: Path) -> bool:
    return path.is_file() and path.resolve().is_relative_to(root)
