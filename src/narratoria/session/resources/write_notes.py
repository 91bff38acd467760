"""Notes of writes that are not final yet, in files that outlive the process.

Before a call changes a path of a host folder, a note says what was there and what will be. Once the journal has the
call's commit, or the call's writes were taken back, the note is removed. A note found when the session is opened
again is of a call that was killed: its write is taken back, or listed (`narratoria.play.killed_writes`).

Notes survive the end of the process, not of the machine: they are not forced to the disk.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from narratoria.session.private_files import FILE, make_folder
from narratoria.session.resources.file_changes import (
    DIRECTORY,
    KEPT_OF_A_CALL,
    LARGEST_KEPT,
    FileChange,
    changes_of,
    digest_of,
)
from narratoria.typed_values import decoder

if TYPE_CHECKING:
    from narratoria.session.session import Session

_LONGEST_HEADER: Final = 64 * 1024
_OPEN: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Kept(NamedTuple):
    """The earlier content of a path: a directory when `data` is None."""

    data: bytes | None
    mode: int


class Left(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content a write will leave: the hash of a file, `directory`, or None. Until it is whole, the file's name is
    `part`.
    """

    left: str | None
    part: str = ""


class _Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line of a note. `size` bytes of content follow it, then a line for each write."""

    resource: str
    call: str
    turn: int | None
    after: int  # the number of the last record when it was made: the commit's is greater
    path: str
    before: str | None = None
    size: int = 0
    mode: int | None = None
    lost: int = 0


class Note:
    """The note of one open write."""

    __slots__ = ("_before", "_call", "_lefts", "_notes", "_path", "number")

    def __init__(self, call: CallNotes, number: int, path: str, before: Kept | None, left: Left) -> None:
        self._notes = call.notes
        self._call = call
        self._path = path
        self._before = before
        self._lefts = [left]
        self.number = number
        self._write()

    def will_leave(self, left: Left) -> None:
        """Say that the same write is about to change the path again."""
        self._lefts.append(left)
        self._notes.append(self.number, _line(left))

    def now_before(self, before: Kept | None) -> None:
        """Take over the earlier content from a write that was taken back."""
        self._before = before
        self._write()

    def hand_to(self, call: CallNotes | None) -> None:
        """Make it the note of another call."""
        if call is not None:
            self._call = call
            self._write()

    def merge(self, later: Note) -> None:
        """Take over what a later write of the same call leaves."""
        for left in later._lefts:
            self.will_leave(left)
        later.drop()

    def drop(self) -> None:
        self._notes.remove(self.number)

    def settle(self) -> None:
        """Remove it as soon as the journal has all that is recorded by now."""
        self._notes.remove_when_written(self.number)

    def _write(self) -> None:
        header, content = self._call.header(self._path, self._before)
        self._notes.put(self.number, b"".join((_line(header), content, b"\n", *map(_line, self._lefts))))


class CallNotes:
    """The notes of one call in one resource."""

    def __init__(self, notes: WriteNotes, resource: str, call: str) -> None:
        self.notes = notes
        self.resource = resource
        self.call = call
        self._room = KEPT_OF_A_CALL

    def begin(self, path: str, before: Kept | None, left: Left) -> Note:
        """Keep what is at a path before it is changed."""
        return Note(self, self.notes.next_number(), path, before, left)

    def header(self, path: str, before: Kept | None) -> tuple[_Header, bytes]:
        turn, after = self.notes.session.turn, self.notes.session.seq
        header = _Header(self.resource, self.call, turn, after, path)
        if before is None:
            return header, b""
        if before.data is None:
            return msgspec.structs.replace(header, before=DIRECTORY, mode=before.mode), b""
        size = len(before.data)
        if size > min(self._room, LARGEST_KEPT):
            digest = digest_of(before.data)
            return msgspec.structs.replace(header, before=digest, mode=before.mode, lost=size), b""
        self._room -= size
        return msgspec.structs.replace(header, before="file", size=size, mode=before.mode), before.data


class KilledWrite(msgspec.Struct, frozen=True):
    """A write found in a note that an earlier process left."""

    number: int
    resource: str
    call: str
    turn: int | None
    after: int
    before: FileChange  # what was there, and what the first write was to leave
    lefts: list[str | None]  # what each write was to leave
    part: FileChange | None  # the half-made file of the last one

    @property
    def path(self) -> str:
        return self.before.path


class WriteNotes:
    """The notes of one session, in a folder of their own."""

    def __init__(self, folder: Callable[[], Path], session: Session) -> None:
        self.session = session
        self.written = session.seq
        self._find_folder = folder
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._next = 0  # 0: nobody has looked what is there
        self._own: set[int] = set()
        self._settled: list[tuple[int, int]] = []  # (the last record that must be written, number)

    def of(self, resource: str, call: str) -> CallNotes:
        return CallNotes(self, resource, call)

    # --- the files -----------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = self._find_folder()
        return self._folder

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}"

    def next_number(self) -> int:
        with self._lock:
            if not self._next:
                make_folder(self.folder)
                self._next = max(self._numbers(), default=0) + 1
            number, self._next = self._next, self._next + 1
            self._own.add(number)
            return number

    def _numbers(self) -> list[int]:
        try:
            return sorted(int(name) for name in os.listdir(self.folder) if name.isdecimal())  # noqa: PTH208
        except FileNotFoundError:
            return []

    def put(self, number: int, content: bytes) -> None:
        path = self._path(number)
        fresh = path.with_name(f"{path.name}.part")
        fresh.unlink(missing_ok=True)
        self._append(fresh, content)
        fresh.replace(path)

    def append(self, number: int, content: bytes) -> None:
        self._append(self._path(number), content)

    def _append(self, path: Path, content: bytes) -> None:
        descriptor = os.open(path, _OPEN, FILE)
        with os.fdopen(descriptor, "ab") as file:
            file.write(content)

    def remove(self, number: int) -> None:
        self._own.discard(number)
        self._path(number).unlink(missing_ok=True)

    # --- what becomes of them ------------------------------------------------------------------------------

    def remove_when_written(self, number: int) -> None:
        with self._lock:
            if self.session.seq > self.written:
                self._settled.append((self.session.seq, number))
                return
        self.remove(number)

    def note_written(self, seq: int) -> None:
        """Remove the notes of calls whose commit is written: records up to `seq` are."""
        self.written = seq
        if not self._settled:
            return
        with self._lock:
            done = [number for last, number in self._settled if last <= seq]
            self._settled = [one for one in self._settled if one[0] > seq]
        for number in done:
            self.remove(number)

    def close(self) -> None:
        if self._folder is not None:
            with contextlib.suppress(OSError):  # it is not there, or not empty
                self._folder.rmdir()

    def left_behind(self) -> list[KilledWrite]:
        """Return the writes that an earlier process noted and did not finish, in their order."""
        found = []
        for number in self._numbers():
            if number not in self._own:
                with contextlib.suppress(FileNotFoundError):
                    found.append(_read(number, self._path(number).read_bytes()))
                if found and found[-1] is None:
                    self.remove(number)
        return [one for one in found if one is not None]


_decode_header: Final = decoder(_Header).decode
_decode_left: Final = decoder(Left).decode


def _line(one: _Header | Left) -> bytes:
    return msgspec.json.encode(one) + b"\n"


def _read(number: int, content: bytes) -> KilledWrite | None:
    """Return the write that a note tells of; None for a note that is not whole: nothing was changed then."""
    end = content.find(b"\n", 0, _LONGEST_HEADER) + 1
    try:
        header = _decode_header(content[:end])
        before, told = content[end : end + header.size], content[end + header.size + 1 :]
        lefts = [_decode_left(line) for line in told.split(b"\n")[:-1]]
    except msgspec.DecodeError:
        return None
    if not end or not lefts or len(before) != header.size:
        return None
    first = _first(header, before, lefts[0].left)
    part = None
    if lefts[-1].part:
        folder, _, _ = header.path.rpartition("/")
        path = f"{folder}/{lefts[-1].part}" if folder else lefts[-1].part
        part = FileChange(path, None, lefts[-1].left)
    left = [one.left for one in lefts]
    return KilledWrite(number, header.resource, header.call, header.turn, header.after, first, left, part)


def _first(header: _Header, content: bytes, left: str | None) -> FileChange:
    if header.before != "file":
        return FileChange(header.path, header.before, left, None, header.mode, header.lost)
    (kept,) = changes_of([(header.path, content, header.mode, "")])
    return msgspec.structs.replace(kept, left=left)
