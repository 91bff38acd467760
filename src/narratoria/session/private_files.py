"""Folders and files that only their owner may open, whatever the umask.

Sessions are private: a home is 0700, a file in it 0600. SQLite gives its journals the mode of the database.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

FOLDER: Final = 0o700
FILE: Final = 0o600


def make_folder(path: Path) -> None:
    """Make a folder, and its missing parents. An existing one is not changed."""
    for folder in reversed((path, *path.parents)):
        if not folder.exists():
            with contextlib.suppress(FileExistsError):  # another process was first
                folder.mkdir(FOLDER)
                folder.chmod(FOLDER)
    path.mkdir(FOLDER, exist_ok=True)  # says what is wrong if something else is there


def make_file(path: Path) -> None:
    """Make an empty file. An existing one is not changed."""
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE)
        try:
            os.fchmod(descriptor, FILE)
        finally:
            os.close(descriptor)


def close_home(home: Path) -> None:
    """Take from others the permissions that an existing folder gives them when it becomes a home, or that an earlier
    version or another umask left in one. A folder that is meant for several people keeps its own.
    """
    if not _is_shared(home):
        _take_from_others(home)
    for ending in ("", "-wal", "-shm"):
        _take_from_others(home / f"sessions.db{ending}")


def _is_shared(folder: Path) -> bool:
    """Tell if a folder is everybody's (/tmp), somebody else's, or a person's own home, which other programs enter."""
    try:
        found = folder.stat()
        own = Path.home().stat()
    except (OSError, RuntimeError):
        return True
    return bool(found.st_mode & stat.S_ISVTX) or found.st_uid != os.geteuid() or os.path.samestat(found, own)


def _take_from_others(path: Path) -> None:
    with contextlib.suppress(OSError):  # not ours, or not there
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(mode & ~0o077)
