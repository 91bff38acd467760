"""A folder of the host, opened part by part so that no path leads out of it.

Each part of a path is opened relative to the folder before it and never through a symbolic link (`openat`
with `O_NOFOLLOW`), so a link put there between a check and its use changes nothing. `..` is refused.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from narratoria.errors import NarratoriaError
from narratoria.unicode_text import check_text

MAX_PATH: Final = 4096
_OPEN_DIR: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathRefusedError(NarratoriaError):
    """An invalid path, or one that leads out of the filesystem's root."""


def parts_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The parts of a relative path; the root itself has none."""
    text = os.fspath(path)
    if not isinstance(text, str) or "\0" in text or len(text) > MAX_PATH:
        raise PathRefusedError(
            f"{text[:80]!r} is not a path: use text of up to {MAX_PATH} characters without NUL"
        )
    if text.startswith("/"):
        raise PathRefusedError(f"path {text!r} is absolute; give it relative to the filesystem's root")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if ".." in parts:
        raise PathRefusedError(f"path {text!r} goes up by '..'; give it relative to the filesystem's root")
    return parts


def writable(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of a path that is to be changed: a journal must be able to name it."""
    try:
        check_text("/".join(parts), "path")
    except ValueError as error:
        raise PathRefusedError(str(error)) from None
    return parts


class Stamp(NamedTuple):
    """The inode, time and size of a file right after it was written; a different stamp means that somebody else wrote
    it.
    """

    inode: int
    changed: int
    size: int


class HostFolder:
    """Operations below the folder `root`. Paths are parts, as `parts_of` gives them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def directory(self, parts: Sequence[str]) -> Iterator[int]:
        """A descriptor of the directory at `parts`, closed afterwards."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, part in enumerate(parts):
                inner = self._open_inner(descriptor, parts[: depth + 1], part)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_inner(self, descriptor: int, parts: Sequence[str], name: str) -> int:
        try:
            return os.open(name, _OPEN_DIR, dir_fd=descriptor)
        except OSError as problem:
            if problem.errno in (errno.ELOOP, errno.ENOTDIR):
                _refuse_link(os.lstat(name, dir_fd=descriptor), parts)
            raise type(problem)(problem.errno, problem.strerror, "/".join(parts)) from None

    def look(self, parts: Sequence[str]) -> os.stat_result | None:
        """Return the status of the entry at `parts`, or None. A symbolic link is refused."""
        if not parts:
            return self.root.stat()
        try:
            with self.directory(parts[:-1]) as parent:
                found = os.lstat(parts[-1], dir_fd=parent)
        except (FileNotFoundError, NotADirectoryError):
            return None
        _refuse_link(found, parts)
        return found

    def read(self, parts: Sequence[str]) -> bytes:
        if not parts:
            raise IsADirectoryError(errno.EISDIR, "it is a directory", ".")
        with self.directory(parts[:-1]) as parent:
            # O_NONBLOCK: opening a named pipe that nobody writes to must not hang.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            try:
                descriptor = os.open(parts[-1], flags, dir_fd=parent)
            except OSError as problem:
                if problem.errno == errno.ELOOP:
                    _refuse_link(os.lstat(parts[-1], dir_fd=parent), parts)
                raise type(problem)(problem.errno, problem.strerror, "/".join(parts)) from None
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "it is a directory", "/".join(parts))
            if not stat.S_ISREG(mode):
                raise PathRefusedError(f"{'/'.join(parts)} is neither a file nor a directory")
            return file.read()

    def replace(
        self, parts: Sequence[str], data: bytes, mode: int | None = None, part: str | None = None
    ) -> Stamp:
        """Put `data` at `parts` in one step: a reader sees the old file or the new one, never a half. Until it is
        whole, the file has the name `part`.
        """
        with self.directory(parts[:-1]) as parent:
            temporary = part or f".{secrets.token_hex(8)}.part"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    file.write(data)
                os.replace(temporary, parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(temporary, dir_fd=parent)
                raise
            return stamp_of(os.lstat(parts[-1], dir_fd=parent))

    def remove(self, parts: Sequence[str]) -> None:
        with self.directory(parts[:-1]) as parent:
            os.unlink(parts[-1], dir_fd=parent)

    def make_directory(self, parts: Sequence[str], mode: int | None = None) -> bool:
        """Make a directory; return False if it exists already, which then keeps its mode."""
        with self.directory(parts[:-1]) as parent:
            try:
                # With a mode of its own it is never open to more people than that mode lets in.
                os.mkdir(parts[-1], 0o777 if mode is None else 0o700, dir_fd=parent)
            except FileExistsError:
                if (found := self.look(parts)) is None or not stat.S_ISDIR(found.st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, "a file is in the way", "/".join(parts)) from None
                return False
        if mode is not None:
            self.set_mode(parts, mode)
        return True

    def set_mode(self, parts: Sequence[str], mode: int) -> None:
        """Give a file or a directory a mode, unless it has it."""
        found = self.look(parts)
        if found is None or stat.S_IMODE(found.st_mode) == mode:
            return
        with self.directory(parts[:-1]) as parent:
            descriptor = os.open(
                parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=parent
            )
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)

    def remove_directory(self, parts: Sequence[str]) -> bool:
        """Remove a directory; return False if it is not empty."""
        with self.directory(parts[:-1]) as parent:
            try:
                os.rmdir(parts[-1], dir_fd=parent)
            except OSError as problem:
                if problem.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return False
                raise
        return True

    def names(self, parts: Sequence[str]) -> list[str]:
        """Return the names in a directory, without symbolic links."""
        with self.directory(parts) as descriptor, os.scandir(descriptor) as entries:
            return sorted(entry.name for entry in entries if not entry.is_symlink())


def stamp_of(found: os.stat_result) -> Stamp:
    return Stamp(found.st_ino, found.st_mtime_ns, found.st_size)


def _refuse_link(found: os.stat_result, parts: Sequence[str]) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise PathRefusedError(
            f"{'/'.join(parts)} is a symbolic link; links are not followed, name the file itself"
        )
