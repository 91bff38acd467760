"""Changes of a call to a session's files: kept with its commit, taken back by an undo, also in a later run.

Per path there is one change: the content before the call and after it. Those of a turn are taken back together. Each
path is followed back from its present content; if somebody else has written since, the path is left as it is, and the
reason is given.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from narratoria.session.resources.host_folder import PathRefusedError

if TYPE_CHECKING:
    from narratoria.session.resources.filesystem import Filesystem

LARGEST_KEPT: Final = 4 * 1024 * 1024
"""Bytes of a replaced file that the journal keeps for a later undo."""
KEPT_OF_A_CALL: Final = 16 * 1024 * 1024
"""Bytes of all replaced files of one call that the journal keeps."""
DIRECTORY: Final = "directory"
LEFT_AS_IT_IS: Final = "it was changed since then"


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One changed path. `before` and `left` are the SHA-256 of a file, `directory`, or None where there was nothing."""

    path: str
    before: str | None = None
    left: str | None = None
    content: str | None = None  # of the file that stood there, packed
    mode: int | None = None
    lost: int = 0  # bytes of it, where they are too many to be kept

    @property
    def description(self) -> str:
        if DIRECTORY in (self.before, self.left):
            return f"folder {self.path} {'removed' if self.left is None else 'made'}"
        if self.left is None:
            return f"file {self.path} deleted"
        return f"file {self.path} {'written' if self.before is None else 'overwritten'}"


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


Standing = bytes | str | None  # a file's content, DIRECTORY, or nothing


def changes_of(found: Iterable[tuple[str, Standing, int | None, str | None]]) -> list[FileChange]:
    """Return the changes among (path, content before, its mode, content after): those where the two differ."""
    room = KEPT_OF_A_CALL
    changes: list[FileChange] = []
    for path, before, mode, left in found:
        if not isinstance(before, bytes):
            if before != left:
                changes.append(FileChange(path, before, left, None, mode))
            continue
        digest = digest_of(before)
        if digest == left:
            continue
        if len(before) > min(room, LARGEST_KEPT):
            changes.append(FileChange(path, digest, left, None, mode, len(before)))
            continue
        room -= len(before)
        changes.append(FileChange(path, digest, left, base64.b64encode(zlib.compress(before)).decode(), mode))
    return changes


# --- taking back -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Path:
    """A path, the numbers of its changes, and the content to restore: the one before `oldest`."""

    path: str
    numbers: list[int]
    now: str | None
    oldest: FileChange

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def wanted(self) -> str | None:
        return self.oldest.before


Put: TypeAlias = Callable[[str, bytes | None, int | None], None]
SetMode: TypeAlias = Callable[[str, int], None]


def take_back(
    files: Filesystem,
    changes: Sequence[FileChange],
    put: Put,
    set_mode: SetMode,
    *,
    try_only: bool = False,
) -> list[str | None]:
    """Put back the content before these changes, in any order. Return for each the reason why not, or None.

    Content that is already restored counts as success: an interrupted undo is repeated. `put` writes a file, or makes
    a directory of no content, with a mode; `set_mode` gives content that was restored already its mode.
    """
    reasons: list[str | None] = [None] * len(changes)
    paths: list[_Path] = []
    restored: list[_Path] = []
    for path in dict.fromkeys(one.path for one in changes):
        numbers = [number for number, one in enumerate(changes) if one.path == path]
        found = _found(files, path, [changes[number] for number in numbers])
        if isinstance(found, str):
            for number in numbers:
                reasons[number] = found
        else:
            (restored if found[0] == found[1].before else paths).append(_Path(path, numbers, *found))
    for one in _in_order(paths):
        hindrance = _hindrance(files, one, paths) if try_only else _put_back(files, one, put)
        for number in one.numbers if hindrance else ():
            reasons[number] = hindrance
    for one in [] if try_only else restored:  # last: a directory may be closed to us by its mode
        hindrance = _put_mode_back(one, set_mode)
        for number in one.numbers if hindrance else ():
            reasons[number] = hindrance
    return reasons


def _found(
    files: Filesystem, path: str, changes: Sequence[FileChange]
) -> tuple[str | None, FileChange] | str:
    """Return the present content of a path and the change whose earlier content is to be restored, or the reason it
    cannot be.
    """
    try:
        now = _standing(files, path)
    except (OSError, PathRefusedError) as problem:
        return str(problem)
    oldest = _followed_back(now, changes)
    if oldest is None:
        return LEFT_AS_IT_IS
    if oldest.lost and now != oldest.before:
        return f"it had {oldest.lost:,} bytes before, too many to be kept for an undo"
    return now, oldest


def _standing(files: Filesystem, path: str) -> str | None:
    if not files.exists(path):
        return None
    return DIRECTORY if files.is_dir(path) else digest_of(files.read_bytes(path))


def _followed_back(now: str | None, changes: Sequence[FileChange]) -> FileChange | None:
    """Return the change whose `before` is to be restored, if all changes lead from the present content back to it."""
    lefts = [one.left for one in changes]
    first = next((one for one in changes if one.before not in lefts), changes[0])
    if now == first.before:
        return first  # done already
    left, oldest, at = list(changes), None, now
    while left:
        newest = next((one for one in reversed(left) if one.left == at), None)
        if newest is None:
            return None
        left.remove(newest)
        oldest, at = newest, newest.before
    return oldest


def _in_order(paths: Sequence[_Path]) -> list[_Path]:
    """Return the paths in working order: removals first, the innermost before the outer; then creations, the other
    way round.
    """
    going = [
        one
        for one in paths
        if one.now is not None and (one.wanted is None or DIRECTORY in (one.now, one.wanted))
    ]
    coming = [one for one in paths if one not in going]
    return [
        *sorted(going, key=lambda one: -one.depth),
        *sorted(coming, key=lambda one: (one.wanted != DIRECTORY, one.depth)),
    ]


def _put_back(files: Filesystem, one: _Path, put: Put) -> str | None:
    try:
        if one.now is not None and (one.wanted is None or DIRECTORY in (one.now, one.wanted)):
            if one.now == DIRECTORY and files.list(one.path):
                return "it holds what others wrote"
            files.delete(one.path)
        if one.wanted == DIRECTORY:
            put(one.path, None, _mode(one.oldest))
        elif one.wanted is not None and one.oldest.content is not None:
            put(one.path, unpacked(one.oldest.content), _mode(one.oldest))
    except (OSError, PathRefusedError, ValueError, zlib.error) as problem:
        return str(problem)
    return None


def unpacked(content: str) -> bytes:
    """Return what a file held before, as a record keeps it. Raises `ValueError` or `zlib.error`, and never unpacks more
    than a record would have kept: it may come from a file that somebody made.
    """
    inflater = zlib.decompressobj()
    data = inflater.decompress(base64.b64decode(content), LARGEST_KEPT + 1)
    if not inflater.eof or len(data) > LARGEST_KEPT:
        raise ValueError("what it held before is not kept in a form that can be read")
    return data


def _put_mode_back(one: _Path, set_mode: SetMode) -> str | None:
    """Undo what a delete and a later creation with the same content changed: the mode."""
    mode = _mode(one.oldest)
    if mode is not None:
        try:
            set_mode(one.path, mode)
        except (OSError, PathRefusedError) as problem:
            return str(problem)
    return None


def _mode(change: FileChange) -> int | None:
    """Return the former mode, without bits that let a program run as somebody else."""
    if change.mode is None:
        return None
    return change.mode & (0o3777 if change.before == DIRECTORY else 0o777)


def _hindrance(files: Filesystem, one: _Path, paths: Sequence[_Path]) -> str | None:
    """Return the reason a path could not be put back, as far as it is known without trying."""
    if one.now != DIRECTORY:
        return None
    going = {other.path for other in paths if other.wanted is None}
    held = [name for name in files.list(one.path) if f"{one.path}/{name}" not in going]
    return "it holds what others wrote" if held else None
