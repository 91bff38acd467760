"""The files a tool may touch: a folder of the host, or a tree in memory. No path leads outside it.

Paths are text, relative to the root, with `/` between their parts; writing makes the directories it needs. Both kinds
can be drafted: a failed call's writes are taken back, and the files of concurrent calls stay as they are. A host
folder is written at once, as processes look at it too, and undone from a history; in memory a draft is an overlay
that nobody else sees before it is committed.

Both can list a call's changes (`changes`) and put them back later (`take_back`): so files are part of a turn.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import msgspec

from narratoria.session.resources.file_changes import DIRECTORY, FileChange, changes_of, digest_of, take_back
from narratoria.session.resources.file_history import FileHistory, Write
from narratoria.session.resources.host_folder import HostFolder, PathRefusedError, parts_of, writable
from narratoria.session.resources.write_notes import CallNotes, Left

Names: TypeAlias = list[str]
Reasons: TypeAlias = list[str | None]
Changes: TypeAlias = list[FileChange]

__all__ = ["Filesystem", "HostFilesystem", "MemoryFilesystem", "PathRefusedError"]


@runtime_checkable
class Filesystem(Protocol):
    """The interface of `context.filesystem`. Missing files and the like raise the usual `OSError`s."""

    # 002, "Resource Access".

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """Read a file as text."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        ...

    def write_text(self, path: str, text: str, encoding: str = "utf-8") -> None:
        """Write a file as text."""
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file."""
        ...

    def exists(self, path: str) -> bool:
        """Tell if there is a file or folder."""
        ...

    def is_dir(self, path: str) -> bool:
        """Tell if there is a folder."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, or an empty folder."""
        ...

    def list(self, path: str = ".") -> Names:
        """List the names in a folder."""
        ...

    def glob(self, pattern: str) -> Names:
        """List the paths that match a pattern."""
        ...

    def mkdir(self, path: str) -> None:
        """Make a folder."""
        ...


class _Texts:
    """The methods that both kinds share."""

    __slots__ = ()

    def _put(self: Filesystem, path: str, content: bytes | None, mode: int | None) -> None:
        """Put a file with this content there, or a directory; only a host folder keeps modes."""
        if content is None:
            self.mkdir(path)
        else:
            self.write_bytes(path, content)

    def _set_mode(self, path: str, mode: int) -> None:
        """Give what is there its former mode; only a host folder keeps modes."""

    def take_back(self: Any, receipts: Sequence[Any], *, try_only: bool = False) -> Reasons:
        """Put back the changes of calls, as `changes` listed them; return for each the reason why not, or None."""
        changes = [msgspec.convert(receipt, FileChange) for receipt in receipts]
        return take_back(self, changes, self._put, self._set_mode, try_only=try_only)

    def read_text(self: Filesystem, path: str, encoding: str = "utf-8") -> str:
        return self.read_bytes(path).decode(encoding)

    def write_text(self: Filesystem, path: str, text: str, encoding: str = "utf-8") -> None:
        self.write_bytes(path, text.encode(encoding))

    def glob(self: Filesystem, pattern: str) -> Names:
        """Return the paths that fit `pattern`: `*`, `?`, `[…]` within a part, `**` for any number of directories."""
        return sorted(set(_expand(self, "", parts_of(pattern))))


class HostFilesystem(_Texts):
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
        parts = _inside(path)
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
        parts = _inside(path)
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
        self._folder.set_mode(_inside(path), mode)

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


_GONE: Final = object()
_DIRECTORY: Final = object()


class MemoryFilesystem(_Texts):
    """Files that live as long as the session's process, for tests and for tools that need no disk."""

    __slots__ = ("_base", "_nodes")

    def __init__(self, files: Mapping[str, str | bytes] | None = None) -> None:
        self._base: MemoryFilesystem | None = None
        self._nodes: dict[str, object] = {}  # path → bytes, a directory, or gone
        for path, content in (files or {}).items():
            self.write_bytes(path, content.encode() if isinstance(content, str) else content)

    def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        node = self._node("/".join(parts_of(path)))
        if isinstance(node, bytes):
            return node
        if node is _DIRECTORY:
            raise IsADirectoryError(errno.EISDIR, "it is a directory", path)
        raise FileNotFoundError(errno.ENOENT, "there is no such file", path)

    def exists(self, path: str) -> bool:
        """Tell if there is a file or folder."""
        return self._node("/".join(parts_of(path))) is not _GONE

    def is_dir(self, path: str) -> bool:
        """Tell if there is a folder."""
        return self._node("/".join(parts_of(path))) is _DIRECTORY

    def list(self, path: str = ".") -> Names:
        """List the names in a folder."""
        parts = parts_of(path)
        node = self._node("/".join(parts))
        if node is _GONE:
            raise FileNotFoundError(errno.ENOENT, "there is no such directory", path)
        if node is not _DIRECTORY:
            raise NotADirectoryError(errno.ENOTDIR, "it is a file", path)
        prefix = "".join(f"{part}/" for part in parts)
        return sorted(
            {
                known[len(prefix) :]
                for known in self._paths()
                if known.startswith(prefix)
                and "/" not in known[len(prefix) :]
                and self._node(known) is not _GONE
            }
        )

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file."""
        parts = _inside(path)
        if self.is_dir(path):
            raise IsADirectoryError(errno.EISDIR, "it is not a file", path)
        self.mkdir("/".join(parts[:-1]))
        self._nodes["/".join(parts)] = bytes(data)

    def delete(self, path: str) -> None:
        """Remove a file, or an empty directory."""
        name = "/".join(_inside(path))
        node = self._node(name)
        if node is _GONE:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
        if node is _DIRECTORY and self.list(name):
            raise OSError(errno.ENOTEMPTY, "the directory is not empty", path)
        self._remove(name)

    def mkdir(self, path: str) -> None:
        """Make a directory and those above it; one that exists is fine."""
        parts = writable(parts_of(path))
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            node = self._node(name)
            if isinstance(node, bytes):
                raise NotADirectoryError(errno.ENOTDIR, "a file is in the way", name)
            if node is _GONE:
                self._nodes[name] = _DIRECTORY

    def draft(self) -> MemoryFilesystem:
        """Return a draft: its changes are made real by `commit`."""
        child = MemoryFilesystem()
        child._base = self
        return child

    def changes(self) -> Changes:
        """Return the changes of this draft so far, for an undo after its commit."""
        base = self._base
        if base is None:
            return []
        return changes_of(
            (name, _told(base._node(name)), None, _left(node)) for name, node in self._nodes.items()
        )

    def commit(self) -> Sequence[str]:
        """Make the changes of the draft real."""
        base, nodes = self._base, self._nodes
        if base is None:
            return []
        self._nodes = {}
        problems: Names = []
        for name, node in nodes.items():
            try:
                if isinstance(node, bytes):
                    base.write_bytes(name, node)
                elif node is _DIRECTORY:
                    base.mkdir(name)
            except (IsADirectoryError, NotADirectoryError) as problem:
                problems.append(f"{name} was not kept: another call wrote there meanwhile ({problem})")
        for name in sorted((name for name, node in nodes.items() if node is _GONE), reverse=True):
            present = base._node(name)
            if isinstance(present, bytes) or (present is _DIRECTORY and not base.list(name)):
                base._remove(name)  # a directory that a call beside this one has filled since then stays
        return problems

    def discard(self) -> None:
        """Drop the changes of the draft."""
        self._nodes = {}

    def _remove(self, name: str) -> None:
        if self._base is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = _GONE

    def _node(self, name: str) -> object:
        if not name:
            return _DIRECTORY
        layer: MemoryFilesystem | None = self
        while layer is not None:
            node = layer._nodes.get(name)
            if node is not None:
                return node
            layer = layer._base
        return _GONE

    def _paths(self) -> Iterator[str]:
        layer: MemoryFilesystem | None = self
        while layer is not None:
            yield from tuple(layer._nodes)
            layer = layer._base


def _before(write: Write) -> tuple[bytes | str | None, int | None]:
    if write.before is None:
        return None, None
    return (DIRECTORY if write.before.data is None else write.before.data), write.before.mode


def _told(node: object) -> bytes | str | None:
    return node if isinstance(node, bytes) else DIRECTORY if node is _DIRECTORY else None


def _left(node: object) -> str | None:
    return digest_of(node) if isinstance(node, bytes) else DIRECTORY if node is _DIRECTORY else None


def _inside(path: str) -> tuple[str, ...]:
    parts = parts_of(path)
    if not parts:
        raise PathRefusedError(f"path {path!r} is the filesystem's root; name something in it")
    return writable(parts)


def _expand(files: Filesystem, prefix: str, pattern: Sequence[str]) -> Iterator[str]:
    """Yield the paths below `prefix` that fit `pattern`, part by part."""
    if not pattern:
        yield prefix
        return
    head, rest = pattern[0], pattern[1:]
    if not any(char in head for char in "*?["):
        path = f"{prefix}/{head}" if prefix else head
        if files.exists(path):
            yield from _expand(files, path, rest)
        return
    if head == "**" and rest:
        yield from _expand(files, prefix, rest)
    if prefix and not files.is_dir(prefix):
        return
    for name in files.list(prefix):
        path = f"{prefix}/{name}" if prefix else name
        if head == "**":
            if not rest:
                yield path
            yield from _expand(files, path, pattern)
        elif fnmatchcase(name, head):
            yield from _expand(files, path, rest)
