"""The files a tool may touch: a folder of the host, or a tree in memory. No path leads outside it.

Paths are text, relative to the root, with `/` between their parts; writing makes the directories it needs. Both kinds
can be drafted: a failed call's writes are taken back, and the files of concurrent calls stay as they are. A host
folder is written at once, as processes look at it too, and undone from a history; in memory a draft is an overlay
that nobody else sees before it is committed.

Both can list a call's changes (`changes`) and put them back later (`take_back`): so files are part of a turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeAlias, runtime_checkable

from narratoria.session.resources.file_changes import FileChange, take_back
from narratoria.session.resources.host_folder import PathRefusedError, parts_of, writable
from narratoria.typed_values import convert

Names: TypeAlias = list[str]
Reasons: TypeAlias = list[str | None]
Changes: TypeAlias = list[FileChange]


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


class Texts:
    """The methods that both kinds of filesystem share."""

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
        changes = [convert(receipt, FileChange) for receipt in receipts]
        return take_back(self, changes, self._put, self._set_mode, try_only=try_only)

    def read_text(self: Filesystem, path: str, encoding: str = "utf-8") -> str:
        return self.read_bytes(path).decode(encoding)

    def write_text(self: Filesystem, path: str, text: str, encoding: str = "utf-8") -> None:
        self.write_bytes(path, text.encode(encoding))

    def glob(self: Filesystem, pattern: str) -> Names:
        """Return the paths that fit `pattern`: `*`, `?`, `[…]` within a part, `**` for any number of directories."""
        return sorted(set(_expand(self, "", parts_of(pattern))))


def inside(path: str) -> tuple[str, ...]:
    """Return the parts of a path that may be written: the root is none."""
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
