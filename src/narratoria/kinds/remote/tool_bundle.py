"""The files of a tool by the hash of their content: what goes to a node that does not have them.

They are those of the folder that the executable lies in (of a skill: the skill's), without hidden files. Of a folder
with too many or too large files, only the executable and its manifest go.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import platformdirs

from narratoria.errors import NarratoriaError
from narratoria.kinds.manifest import manifest_path
from narratoria.session.private_files import make_folder

MOST_FILES: Final = 256
MOST_BYTES: Final = 16 * 1024 * 1024
_SKIPPED: Final = frozenset({"__pycache__", "node_modules"})
_known: dict[tuple[object, ...], str] = {}


class BundleBroken(NarratoriaError):
    """Files that came for a tool are not those that were asked for."""


class _File(msgspec.Struct, frozen=True, array_like=True):
    name: str
    runnable: bool
    content: bytes


_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder(list[_File])

_Found = tuple[str, os.stat_result]


def digest_of(folder: Path, name: str) -> str:
    """Return the hash of the files of a tool; raise `OSError` if they cannot be read."""
    found = _members(folder, name)
    key = (
        str(folder),
        *((one, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode) for one, status in found),
    )
    if key not in _known:
        if len(_known) > 1000:
            _known.clear()
        _known[key] = _digest(_read(folder, found))
    return _known[key]


def pack(folder: Path, name: str) -> bytes:
    """Return the files of a tool as one piece."""
    return _pack([*_read(folder, _members(folder, name))])


def kept(digest: str) -> Path:
    """Return the folder in which a node keeps the files with this hash; it may not exist."""
    return Path(platformdirs.user_cache_dir("narratoria")) / "tools" / digest


def keep(digest: str, packed: bytes) -> Path:
    """Keep files that came to this node, if they are those with this hash."""
    files = _unpack.decode(packed)
    if _digest(iter(files)) != digest:
        raise BundleBroken(f"the files that came for the hash {digest[:12]} have another; send them again")
    target = kept(digest)
    make_folder(target.parent)
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix=".coming-"))
    for one in files:
        path = made / one.name
        if not path.resolve().is_relative_to(made.resolve()):
            raise BundleBroken(f"a file of the tool lies outside its folder: {one.name!r}")
        make_folder(path.parent)
        path.write_bytes(one.content)
        path.chmod(0o700 if one.runnable else 0o600)
    try:
        made.replace(target)
    except OSError:  # another call was quicker
        if not target.is_dir():
            raise
    return target


def _members(folder: Path, name: str) -> list[_Found]:
    found: list[_Found] = []
    size = 0
    for one, status in _walk(folder, ""):
        size += status.st_size
        found.append((one, status))
        if len(found) > MOST_FILES or size > MOST_BYTES:
            return [*_alone(folder, name)]
    if all(one != name for one, _ in found):  # a hidden file, or a link
        found += [*_alone(folder, name)]
    return sorted({one: (one, status) for one, status in found}.values())


def _alone(folder: Path, name: str) -> Iterator[_Found]:
    file = folder / name
    yield name, file.stat()
    manifest = manifest_path(file)
    if manifest.is_file():
        yield str(manifest.relative_to(folder)), manifest.stat()


def _walk(folder: Path, prefix: str) -> Iterator[_Found]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
            else:
                try:
                    status = entry.stat()
                except OSError:  # a link to nothing, or gone
                    continue
                if stat.S_ISREG(status.st_mode):
                    yield prefix + entry.name, status


def _read(folder: Path, found: list[_Found]) -> Iterator[_File]:
    for name, status in found:
        try:
            content = (folder / name).read_bytes()
        except PermissionError:  # a program may be run without being read, in its place
            content = b""
        yield _File(name, bool(status.st_mode & stat.S_IXUSR), content)


def _digest(files: Iterator[_File]) -> str:
    whole = hashlib.sha256()
    for one in files:
        whole.update(_pack([one.name, one.runnable, hashlib.sha256(one.content).digest()]))
    return whole.hexdigest()
