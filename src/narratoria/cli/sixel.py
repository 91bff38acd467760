"""Pictures as sixels: the terminal is asked if it takes them, and the installed program img2sixel makes them."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final, cast

from narratoria.cli.stdin_lines import keep_typed

LARGEST: Final = 8 * 1024 * 1024  # bytes of sixels that are sent to a terminal
ANSWER_SECONDS: Final = 1.0  # for the terminal's answer
MAKING_SECONDS: Final = 3.0  # for img2sixel
_PROGRAM: Final = "img2sixel"
_QUESTION: Final = b"\x1b[c"  # primary device attributes
_ANSWER: Final = re.compile(rb"\x1b\[\?([\d;]*)c")
_SIXEL: Final = b"4"  # among the attributes
_PIECE: Final = 64 * 1024
_START: Final = (b"\x1bP", b"\x90")  # of a picture
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers of a JPEG that tell its size


_told: list[bool] = []  # by the terminal, once it was asked


def takes_sixels() -> bool:
    """Tell if the terminal shows sixels and img2sixel is there to make them. The terminal is asked once."""
    if shutil.which(_PROGRAM) is None:
        return False
    if not _told:
        attributes = _attributes()
        if attributes is None:
            return False
        _told.append(_SIXEL in attributes[1:])  # the first is the kind of the terminal
    return _told[0]


def sixels(path: Path, content: bytes, box: tuple[int, int]) -> str:
    """Return a picture as sixels, made smaller if it does not fit the box of pixels; "" if img2sixel cannot do it."""
    size = size_of(content)
    if size is None:
        return ""
    scale = min(1.0, box[0] / size[0], box[1] / size[1])
    narrower = ["-w", str(max(1, int(size[0] * scale)))] if scale < 1.0 else []
    # -S: of a film its first picture. The path is absolute, so that it is no option.
    made = _output_of([_PROGRAM, "-S", *narrower, str(path.absolute())])
    return made.decode("latin-1") if made.startswith(_START) else ""


def size_of(content: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF or JPEG in pixels; None for anything else."""
    width = height = 0
    if content.startswith(b"\x89PNG") and len(content) >= 24:
        width, height = struct.unpack(">II", content[16:24])
    elif content.startswith(b"GIF8") and len(content) >= 10:
        width, height = struct.unpack("<HH", content[6:10])
    elif content.startswith(b"\xff\xd8"):
        at = 2
        while at + 9 <= len(content) and content[at] == 0xFF:
            if content[at + 1] in _FRAMES:
                height, width = struct.unpack(">HH", content[at + 5 : at + 9])
                break
            at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return (width, height) if width and height else None


def _attributes() -> list[bytes] | None:
    """Ask the terminal what it is; nothing if it does not answer in time, None if it could not be asked, as while
    somebody types.

    Keys that are pressed before it answers are kept for the next line. An answer that comes too late is dropped by who
    reads that line.
    """
    with _single_keys() as asked:
        if not asked or select.select([0], [], [], 0)[0]:
            return None
        os.write(1, _QUESTION)
        heard, until = b"", monotonic() + ANSWER_SECONDS
        while (found := _ANSWER.search(heard)) is None:
            left = until - monotonic()
            if left <= 0 or not select.select([0], [], [], left)[0]:
                break
            piece = os.read(0, _PIECE)
            if not piece:
                break
            heard += piece
    keep_typed(_ANSWER.sub(b"", heard))
    return found[1].split(b";") if found is not None else []


@contextlib.contextmanager
def _single_keys() -> Iterator[bool]:
    """Let the terminal hand over keys at once, in silence; False if it is not ours to ask."""
    try:
        ours = os.isatty(0) and os.isatty(1) and os.tcgetpgrp(0) == os.getpgrp()
        before = termios.tcgetattr(0) if ours else None
    except (OSError, termios.error):
        before = None
    if before is None:
        yield False
        return
    changed: list[Any] = [*before[:6], [*before[6]]]
    changed[3] &= ~(termios.ECHO | termios.ICANON)
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    termios.tcsetattr(0, termios.TCSANOW, changed)
    try:
        yield True
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


def _output_of(command: list[str]) -> bytes:
    """Run a program and return its output; nothing if it fails, takes too long or writes too much."""
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
        )
    except OSError:
        return b""
    output, until = bytearray(), monotonic() + MAKING_SECONDS
    with cast("IO[bytes]", process.stdout) as pipe:
        try:
            while len(output) <= LARGEST and select.select([pipe], [], [], max(0.0, until - monotonic()))[0]:
                piece = os.read(pipe.fileno(), _PIECE)
                if not piece:
                    return bytes(output) if process.wait(max(0.1, until - monotonic())) == 0 else b""
                output += piece
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
    return b""
