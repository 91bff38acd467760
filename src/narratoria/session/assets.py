"""Assets: files that tools wrote, checked and copied into a content-addressed store.

A copy under the hash of its bytes outlives the tool's own file, so a session can be replayed and exported.
"""
# 000 §4.3, §7.

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from narratoria.errors import AssetRefused
from narratoria.events import Asset, AssetStored
from narratoria.session.media import HEAD_BYTES, contradiction, is_media_type
from narratoria.session.private_files import make_folder
from narratoria.tools.schema.excerpts import quoted

_HASH: Final = re.compile(r"[0-9a-f]{64}")
DEFAULT_CAP: Final = 256 * 1024 * 1024
_OF_THE_SYSTEM: Final = ("/proc", "/sys", "/dev")
_PATH_SHOWN: Final = 200


class HeldAsset(NamedTuple):
    """A content that a store holds, and the time at which it came; 0 if that is long enough ago."""

    digest: str
    size: int
    came: float


def is_digest(text: str) -> bool:
    """Tell if a text can be the hash of a content."""
    return _HASH.fullmatch(text) is not None


class AssetStore:
    """Files by the SHA-256 of their content, under one folder. `user` is the database whose sessions refer to them:
    several may share a folder, and each leaves its name there.
    """

    def __init__(self, root: Path | None = None, *, cap: int = DEFAULT_CAP, user: Path | None = None) -> None:
        self._root = root
        self.cap = cap
        self._user = user
        self._signed = user is None

    @property
    def root(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="narratoria-assets-"))
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        return self._root

    def path_of(self, digest: str) -> Path:
        """Return the path of the content with this hash; raise `KeyError` if there is none."""
        if not _HASH.fullmatch(digest):
            raise KeyError(digest)
        path = self.root / digest[:2] / digest
        if not path.is_file():
            raise KeyError(digest)
        return path

    def is_whole(self, digest: str) -> bool | None:
        """Tell if the content of an asset is what was stored; None if there is none."""
        hasher = hashlib.sha256()
        try:
            with self.path_of(digest).open("rb") as content:
                while block := content.read(1 << 20):
                    hasher.update(block)
        except (KeyError, OSError):
            return None
        return hasher.hexdigest() == digest

    def __contains__(self, digest: str) -> bool:
        try:
            self.path_of(digest)
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self.root.glob("??/*")):
            if _HASH.fullmatch(path.name):
                yield path.name

    def held(self) -> Iterator[HeldAsset]:
        """Yield what is held here, referred to or not."""
        for digest in self:
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                status = (self.root / digest[:2] / digest).stat()
                yield HeldAsset(digest, status.st_size, status.st_mtime)

    def other_users(self) -> list[Path]:
        """Return the other databases whose sessions may refer to these files: the unreferenced may be theirs."""
        found = {self.root.parent / "sessions.db"}  # that of a home, from before they left their names
        for note in self.root.glob("users/*"):
            found.add(Path(note.read_text("utf-8", "surrogateescape")))
        own = self._user.resolve() if self._user is not None else None
        return sorted(one for one in found if one.exists() and one.resolve() != own)

    def _sign(self) -> None:
        if self._user is None or self._signed:
            return
        name = str(self._user.resolve())
        note = self.root / "users" / hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        make_folder(note.parent)
        # A file of its own: calls side by side, and other processes, sign at the same time.
        with tempfile.NamedTemporaryFile(dir=self._incoming(), delete=False) as written:
            written.write(os.fsencode(name))
        Path(written.name).replace(note)  # atomic: half a name would be another's
        self._signed = True

    def discard(self, digest: str) -> int:
        """Remove an unreferenced file; return the bytes freed."""
        path = self.path_of(digest)
        size = path.stat().st_size
        path.unlink()
        return size

    def accept(
        self,
        call: str,
        asset: Asset,
        base: Path | None = None,
        clean: Callable[[bytes], bytes] | None = None,
        arrived: Path | str | None = None,
        within: Sequence[Path] | None = None,
    ) -> AssetStored:
        """Check the file that an event names and keep a copy, which goes through `clean`; raise `AssetRefused` with the
        reason. `arrived` is the content of a file that lies on another machine, or the reason why it did not come. With
        `within`, it must lie in one of these folders: the tool may not read others, and we may.
        """
        if not asset.asset_id.strip():
            raise AssetRefused("asset: assetId is empty; give each asset a name of its own")
        if not is_media_type(asset.media_type):
            raise AssetRefused(
                f"asset {quoted(asset.asset_id)}: {quoted(asset.media_type)} is not a media type; "
                f"use one like image/png"
            )
        path = Path(asset.path) if base is None else base / asset.path
        digest, size = self._copy(asset.asset_id, path, asset.media_type, clean, arrived, within)
        return AssetStored(
            call=call,
            asset_id=asset.asset_id,
            kind=asset.kind,
            media_type=asset.media_type,
            hash=digest,
            size=size,
            name=path.name if clean is None else cleaned(path.name, clean),
            metadata=asset.metadata,
        )

    def add_bytes(self, content: bytes) -> str:
        """Keep content that is already in memory (an import) and return its hash."""
        digest = hashlib.sha256(content).hexdigest()
        if digest in self:
            self._sign()
        else:
            with tempfile.NamedTemporaryFile(dir=self._incoming(), delete=False) as copy:
                copy.write(content)
            self._settle(Path(copy.name), digest)
        return digest

    def staging(self) -> Path:
        """A new folder beside the others, for content that may still be refused."""
        return Path(tempfile.mkdtemp(dir=self._incoming(), prefix="import-"))

    def take(self, copy: Path, digest: str) -> None:
        """Move a staged file, whose content has this hash, to its place."""
        self._settle(copy, digest)

    def sweep(self, before: float) -> None:
        """Remove half-made copies of a killed process, if they are older than `before`."""
        for left in self.root.glob("incoming/*"):
            with contextlib.suppress(FileNotFoundError):  # another process has finished it meanwhile
                if left.stat().st_mtime < before:
                    shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()

    def _copy(
        self,
        asset_id: str,
        path: Path,
        media_type: str,
        clean: Callable[[bytes], bytes] | None,
        arrived: Path | str | None,
        within: Sequence[Path] | None,
    ) -> tuple[str, int]:
        where = f"asset {quoted(asset_id)}: {shown(path)}"
        with _opened(asset_id, path, self.cap, arrived) as source:
            if within is not None and not _lies_within(source, within):
                raise AssetRefused(
                    f"{where} lies where the tool's sandbox lets it read nothing; write it into TMPDIR"
                )
            head = _read(source, where, HEAD_BYTES)
            if problem := contradiction(media_type, head):
                raise AssetRefused(f"{where} {problem}; let mediaType say what the file is")
            try:
                return self._keep(source, head, where, clean)
            except OSError as error:
                raise self._unkept(error) from None

    def _keep(
        self, source: int, head: bytes, where: str, clean: Callable[[bytes], bytes] | None
    ) -> tuple[str, int]:
        """Copy the rest of `source` behind `head`; return the hash and the size."""
        hasher, size = hashlib.sha256(), 0
        whole = bytearray()
        name = Path()
        try:
            with tempfile.NamedTemporaryFile(dir=self._incoming(), delete=False) as copy:
                name = Path(copy.name)
                chunk = head
                while chunk:
                    size += len(chunk)
                    if size > self.cap:
                        raise AssetRefused(f"{where} grew past the cap of {self.cap:,} bytes")
                    if clean is None:
                        hasher.update(chunk)
                        copy.write(chunk)
                    else:
                        whole += chunk  # what is to be taken out may lie across two chunks
                    chunk = _read(source, where, 1 << 20)
                if clean is not None:
                    content = clean(bytes(whole))
                    size = len(content)
                    hasher.update(content)
                    copy.write(content)
            digest = hasher.hexdigest()
            self._settle(name, digest)
        except BaseException:
            if name.name:
                name.unlink(missing_ok=True)
            raise
        return digest, size

    def _unkept(self, error: OSError) -> AssetRefused:
        return AssetRefused(
            f"assets cannot be kept in {self.root}: {error.strerror}; make that folder writable, with room in it"
        )

    def _incoming(self) -> Path:
        folder = self.root / "incoming"
        try:
            make_folder(folder)
        except OSError as error:
            raise self._unkept(error) from None
        return folder

    def _settle(self, copy: Path, digest: str) -> None:
        self._sign()
        target = self.root / digest[:2] / digest
        make_folder(target.parent)
        copy.replace(target)  # atomic: a reader sees the whole file or none


def cleaned(text: str, clean: Callable[[bytes], bytes]) -> str:
    """Return a text that went through `clean`, which is made for bytes."""
    return clean(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def shown(path: Path) -> str:
    """Return a path for a message; one that is too long is cut."""
    text = str(path)
    return text if len(text) <= _PATH_SHOWN else f"{text[:_PATH_SHOWN]}… ({len(text):,} characters)"


def opened(asset_id: str, path: Path, cap: int) -> BinaryIO:
    """Open a tool's file for reading; raise `AssetRefused` if it is not one that may be an asset."""
    with _opened(asset_id, path, cap) as source:
        return os.fdopen(os.dup(source), "rb", buffering=0)


@contextlib.contextmanager
def _opened(asset_id: str, path: Path, cap: int, arrived: Path | str | None = None) -> Iterator[int]:
    """Open the file at `path`, or what arrived of it, and close it again."""
    if isinstance(arrived, str):
        raise AssetRefused(arrived)
    where = f"asset {quoted(asset_id)}: {shown(path)}"
    # O_NONBLOCK: opening a FIFO nobody writes to must not hang; it is then refused as not a regular file.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        source = os.open(arrived or path, flags)
    except (OSError, ValueError) as error:
        raise AssetRefused(_why_unreadable(asset_id, path, error)) from None
    with contextlib.ExitStack() as closing:
        closing.callback(os.close, source)  # Python makes no file object of a directory's descriptor
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            what = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise AssetRefused(f"{where} is {what}; write a file and name it")
        if _is_of_the_system(source, arrived or path, status):
            raise AssetRefused(f"{where} is the system's, not a file of the tool's; write a file and name it")
        if status.st_size > cap:
            raise AssetRefused(f"{where} has {status.st_size:,} bytes, more than the cap of {cap:,}")
        yield source


def _is_of_the_system(fd: int, path: Path, status: os.stat_result) -> bool:
    """Tell if the opened file lies in a folder of the kernel, such as /proc; shared memory is allowed.

    The descriptor tells, not the path: a link may point elsewhere, or be gone, a moment after it was followed.
    """
    if status.st_dev in _kernel_devices():
        return True
    real = _path_of_descriptor(fd) or os.path.abspath(path)  # noqa: PTH100 - it must not look at the disk
    shared = real.startswith("/dev/shm/")  # noqa: S108 - not used, only told apart
    return real.startswith(tuple(f"{root}/" for root in _OF_THE_SYSTEM)) and not shared


def _lies_within(fd: int, folders: Sequence[Path]) -> bool:
    """Tell if an opened file lies in one of some folders, by the kernel's path of it, whatever links led there."""
    real = _path_of_descriptor(fd)
    if real is None or os.fstat(fd).st_nlink == 0:  # it was removed, and its path may be another's by now
        return False
    return any(Path(real).is_relative_to(folder.resolve()) for folder in folders)


@cache
def _kernel_devices() -> frozenset[int]:
    """Return the devices of /proc and /sys, where those are mounts of their own."""
    devices = {number for root in ("/proc", "/sys") if (number := _device(root)) is not None}
    return frozenset(devices - {_device("/")})


def _device(path: str) -> int | None:
    try:
        return os.stat(path).st_dev  # noqa: PTH116
    except OSError:
        return None


def _path_of_descriptor(fd: int) -> str | None:
    """Return the kernel's path of an opened file; None if it is unknown."""
    try:
        if sys.platform == "darwin":
            import fcntl

            return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
    except OSError:
        return None


def _read(fd: int, where: str, size: int) -> bytes:
    try:
        return os.read(fd, size)
    except OSError as error:  # a bad disk, a file of the system's own
        raise AssetRefused(f"{where} cannot be read: {error.strerror}") from None


def _why_unreadable(asset_id: str, path: Path, error: OSError | ValueError) -> str:
    reasons: dict[type[Exception], str] = {
        FileNotFoundError: "does not exist; write the file before emitting the event",
        PermissionError: "is not readable by the runtime; check its permissions",
        IsADirectoryError: "is a directory; name a file",
    }
    reason = reasons.get(type(error), f"cannot be opened: {getattr(error, 'strerror', None) or error}")
    return f"asset {quoted(asset_id)}: {shown(path)} {reason}"
