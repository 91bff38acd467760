"""Removing folders that tools have filled, however deeply they are nested.

`shutil.rmtree` calls itself for each level, and a path has at most 4,096 bytes: a thousand folders inside each other
end the first with an error, and the second cannot name what lies deeper. Here every inner folder is moved up to the
uppermost before it is emptied, so that no path and no stack grows.

The guardian loads this file by its path, without the package around it: only the standard library here, and only fast
imports.
"""

from __future__ import annotations

import os

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN_NAME = "\N{BLACK CIRCLE}%d-%d"
"""The names of folders that are moved up, which no tool is likely to choose."""


def remove(folder: str) -> bool:
    """Remove a folder and everything in it; tell if it is gone. A link to a folder is not followed."""
    try:
        os.rmdir(folder)  # noqa: PTH106 - most are empty
        return True
    except FileNotFoundError:
        return True
    except OSError:
        pass
    if not empty(folder):
        return False
    try:
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        return False
    return True


def empty(folder: str) -> bool:
    """Remove everything in a folder that can be; tell if it is empty."""
    try:
        top = os.open(folder, _FOLDER)
    except OSError:
        return False
    stuck: set[str] = set()
    moved = 0
    try:
        while folders := [name for name in _without_files(top) if name not in stuck]:
            for name in folders:
                try:
                    moved = _dissolve(top, name, moved)
                except OSError:
                    stuck.add(name)
        return not os.listdir(top)  # noqa: PTH208
    except OSError:
        return False
    finally:
        os.close(top)


def _dissolve(top: int, name: str, moved: int) -> int:
    """Remove a folder in the uppermost one, after its own folders were moved up there; return how many were moved so
    far.
    """
    try:
        inner = os.open(name, _FOLDER, dir_fd=top)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=top)
        inner = os.open(name, _FOLDER, dir_fd=top)
    try:
        if os.fstat(inner).st_mode & 0o300 != 0o300:
            os.fchmod(inner, 0o700)
        for below in _without_files(inner):
            moved += 1
            _move_up(inner, below, top, moved)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return moved


def _without_files(folder: int) -> list[str]:
    """Remove the files in a folder; return the names of its folders."""
    folders = []
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
            continue
        try:
            os.unlink(entry.name, dir_fd=folder)
        except OSError:
            continue  # the folder around it stays then, which is noticed
    return folders


def _move_up(folder: int, name: str, top: int, number: int) -> None:
    """Move a folder up. Where its new name is taken, by another that is not empty, it stays and so does the one
    around it.
    """
    new = _OWN_NAME % (number, os.getpid())
    try:
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:  # to move a folder is to change what it says of its parent
        os.chmod(name, 0o700, dir_fd=folder)
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
