"""A folder of the host as the files of a tool. It is written at once, and undone from a history."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from narratoria.session.resources.file_changes import DIRECTORY, changes_of, digest_of
from narratoria.session.resources.file_history import FileHistory, Write
from narratoria.session.resources.filesystem import Changes, Names, Texts, inside
from narratoria.session.resources.host_folder import HostFolder, PathRefusedError, parts_of, writable
from narratoria.session.resources.write_notes import CallNotes, Left


class HostFilesystem(Texts):
    """The folder `root` of the host. Symbolic links are not followed, except in `root` itself."""

    __slots__ = ("_folder", "_history", "_over", "_parent", "notes", "writes")

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._folder = HostFolder(Path(root).resolve(strict=True))
        self._history = FileHistory(self._folder)
        self._parent: HostFilesystem | None = None
        self.writes: list[Write] = []
        self.notes: CallNotes | None = None
        self._over = False

    @property
    def root(self) -> Path:
        """The folder on the host."""
        return self._folder.root

    def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        return self._folder.read(parts_of(path))

    def exists(self, path: str) -> bool:
        """Tell if there is a file or folder."""
        return self._folder.look(parts_of(path)) is not None

    def is_dir(self, path: str) -> bool:
        """Tell if there is a folder."""
        found = self._folder.look(parts_of(path))
        return found is not None and stat.S_ISDIR(found.st_mode)

    def list(self, path: str = ".") -> Names:
        """List the names in a folder."""
        return self._folder.names(parts_of(path))

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file."""
        self._put(path, data, None)

    def _put(self, path: str, content: bytes | None, mode: int | None) -> None:
        """Write a file, or make a directory. Without `mode` it keeps the one it has, or had before this call."""
        parts = inside(path)
        with self._history.lock:
            if content is None:
                self._make_directories(parts, mode)
                return
            self._make_directories(parts[:-1])
            found = self._folder.look(parts)
            if found is not None and not stat.S_ISREG(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, "it is not a file", path)
            digest, part = digest_of(content), f".{secrets.token_hex(8)}.part"
            write = self._begin(parts, Left(digest, part))
            if mode is None and found is not None:
                mode = stat.S_IMODE(found.st_mode)
            elif mode is None and write.before is not None and write.before.data is not None:
                mode = write.before.mode  # it is written again by the call that deleted it
            write.left = self._folder.replace(parts, content, mode, part)
            write.digest = digest
            self._end(write)

    def delete(self, path: str) -> None:
        """Remove a file, or an empty directory."""
        parts = inside(path)
        with self._history.lock:
            found = self._folder.look(parts)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
            if stat.S_ISDIR(found.st_mode) and self._folder.names(parts):
                raise OSError(errno.ENOTEMPTY, "the directory is not empty", path)
            write = self._begin(parts, Left(None))
            if stat.S_ISDIR(found.st_mode):
                self._folder.remove_directory(parts)
            else:
                self._folder.remove(parts)
            write.left = None
            self._end(write)

    def mkdir(self, path: str) -> None:
        """Make a directory and those above it; one that exists is fine."""
        with self._history.lock:
            self._make_directories(writable(parts_of(path)))

    def _set_mode(self, path: str, mode: int) -> None:
        self._folder.set_mode(inside(path), mode)

    def _make_directories(self, parts: tuple[str, ...], mode: int | None = None) -> None:
        """Make the missing directories; `mode` is for the last."""
        for depth in range(1, len(parts) + 1):
            if self._folder.look(parts[:depth]) is None:
                write = self._begin(parts[:depth], Left(DIRECTORY))
                own = mode if depth == len(parts) else None
                if own is None and write.before is not None and write.before.data is None:
                    own = write.before.mode  # it is made again by the call that deleted it
                self._folder.make_directory(parts[:depth], own)
                write.left = DIRECTORY
                self._end(write)
            elif not self.is_dir("/".join(parts[:depth])):
                raise NotADirectoryError(errno.ENOTDIR, "a file is in the way", "/".join(parts[:depth]))

    def _begin(self, parts: tuple[str, ...], left: Left) -> Write:
        if self._over:  # a worker thread that outlived its timeout: nobody would take its writes back
            raise PathRefusedError(f"{'/'.join(parts)} is not changed: the call is over")
        return self._history.begin(self, parts, self.writes, left)

    def _end(self, write: Write) -> None:
        if self._parent is None:
            self._history.settle([write])
            self.writes.clear()

    def draft(self) -> HostFilesystem:
        """Return a draft: its changes are made real by `commit`."""
        child = HostFilesystem.__new__(HostFilesystem)
        child._folder = self._folder
        child._history = self._history
        child._parent = self
        child.writes = []
        child.notes = self.notes
        child._over = False
        return child

    def note_in(self, notes: CallNotes) -> None:
        """Keep notes of this draft's writes, and those of drafts of it, until they are final."""
        self.notes = notes

    def changes(self) -> Changes:
        """Return the changes of this draft so far, for an undo after its commit."""
        with self._history.lock:
            found: dict[tuple[str, ...], tuple[Write, str | None]] = {}
            for write in self.writes:
                oldest = self._history.oldest_before(write)
                if oldest is not None and (isinstance(write.left, str | None) or write.digest is not None):
                    left = write.left if isinstance(write.left, str | None) else write.digest
                    found[write.parts] = oldest, left
            return changes_of(
                ("/".join(parts), *_before(oldest), left) for parts, (oldest, left) in found.items()
            )

    def commit(self) -> None:
        """Make the changes of the draft real."""
        with self._history.lock:
            writes, self.writes = self.writes, []
            self._over = self._parent is not None
            if self._parent is None or self._parent._parent is None:
                self._history.settle(writes)
            else:
                self._history.hand_over(writes, self._parent, self._parent.writes)

    def discard(self) -> Sequence[str]:
        """Drop the changes of the draft."""
        with self._history.lock:
            writes, self.writes = self.writes, []
            self._over = self._parent is not None
            return self._history.take_back(writes)


def _before(write: Write) -> tuple[bytes | str | None, int | None]:
    if write.before is None:
        return None, None
    return (DIRECTORY if write.before.data is None else write.before.data), write.before.mode
