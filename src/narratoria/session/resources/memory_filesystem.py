"""A tree of files in memory. A draft is an overlay that nobody else sees before it is committed."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from narratoria.session.resources.file_changes import DIRECTORY, changes_of, digest_of
from narratoria.session.resources.filesystem import Changes, Names, Texts, inside
from narratoria.session.resources.host_folder import parts_of, writable

_GONE: Final = object()
_DIRECTORY: Final = object()


class MemoryFilesystem(Texts):
    """Files that live as long as the session's process, for tests and for tools that need no disk."""

    __slots__ = ("_base", "_nodes", "_removed")

    def __init__(self, files: Mapping[str, str | bytes] | None = None) -> None:
        self._base: MemoryFilesystem | None = None
        self._nodes: dict[str, object] = {}  # path → bytes, a directory, or gone
        self._removed: dict[str, bool] = {}  # what a draft has removed of its base → if it was a file
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
        parts = inside(path)
        if self.is_dir(path):
            raise IsADirectoryError(errno.EISDIR, "it is not a file", path)
        self.mkdir("/".join(parts[:-1]))
        self._nodes["/".join(parts)] = bytes(data)

    def delete(self, path: str) -> None:
        """Remove a file, or an empty directory."""
        name = "/".join(inside(path))
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
        base, nodes, removed = self._base, self._nodes, self._removed
        if base is None:
            return []
        self.discard()
        for name in sorted(removed, reverse=True):  # first: a file may become a directory, and the reverse
            present, left = base._node(name), nodes[name]
            is_file = isinstance(present, bytes)
            if left is not _GONE and (isinstance(left, bytes) == is_file or removed[name] is not is_file):
                continue  # it is overwritten, or another call wrote there meanwhile
            if is_file or (present is _DIRECTORY and not base.list(name)):
                base._remove(name)  # a directory that a call beside this one has filled since then stays
        problems: Names = []
        for name, node in nodes.items():
            try:
                if isinstance(node, bytes):
                    base.write_bytes(name, node)
                elif node is _DIRECTORY:
                    base.mkdir(name)
            except (IsADirectoryError, NotADirectoryError) as problem:
                problems.append(f"{name} was not kept: another call wrote there meanwhile ({problem})")
        return problems

    def discard(self) -> None:
        """Drop the changes of the draft."""
        self._nodes = {}
        self._removed = {}

    def _remove(self, name: str) -> None:
        if self._base is None:
            self._nodes.pop(name, None)
        else:
            if (before := self._base._node(name)) is not _GONE:
                self._removed.setdefault(name, isinstance(before, bytes))
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


def _told(node: object) -> bytes | str | None:
    return node if isinstance(node, bytes) else DIRECTORY if node is _DIRECTORY else None


def _left(node: object) -> str | None:
    return digest_of(node) if isinstance(node, bytes) else DIRECTORY if node is _DIRECTORY else None
