"""Pictures in terminals that can show them: the graphics protocol of kitty, the inline images of iTerm2, and sixels."""

from __future__ import annotations

import base64
import fcntl
import math
import os
import struct
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from rich.console import Console

from narratoria.cli.sixel import sixels, takes_sixels

Protocol = Literal["kitty", "iterm"]

LARGEST: Final = 4 * 1024 * 1024  # bytes of a picture that is sent to a terminal
_CHUNK: Final = 4096  # characters in one command of kitty's
_COLUMNS: Final = 64
_ROWS: Final = 20
_CELL: Final = (9, 18)  # pixels, where the terminal does not say
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_MAGIC: Final = (_PNG, b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


def protocol_of(env: Mapping[str, str]) -> Protocol | None:
    """Return how the terminal with this environment shows pictures; None if it is not known.

    tmux and screen pass these protocols on only where their owner allowed it.
    """
    program, term = env.get("TERM_PROGRAM", ""), env.get("TERM", "")
    if "TMUX" in env or "STY" in env or term.startswith(("tmux", "screen")):
        return None
    if program in ("iTerm.app", "WezTerm", "mintty") or env.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    if "KITTY_WINDOW_ID" in env or term in ("xterm-kitty", "xterm-ghostty") or program == "ghostty":
        return "kitty"
    return "kitty" if _number(env.get("KONSOLE_VERSION", "")) >= 220400 else None


def show_picture(out: Console, path: Path) -> bool:
    """Show a picture on the terminal, if it can; tell if it did."""
    if not out.is_terminal or not os.isatty(1):
        return False
    protocol = protocol_of(os.environ)
    if protocol is None and not takes_sixels():
        return False
    try:
        if path.stat().st_size > LARGEST:
            return False
        content = path.read_bytes()
    except OSError:
        return False
    columns, cell = max(1, min(_COLUMNS, out.width - 4)), _cell()
    if protocol is not None:
        sequence = picture_sequence(content, protocol, columns, cell)
    else:
        sequence = sixels(path, content, (columns * cell[0], _ROWS * cell[1]))
    if not sequence:
        return False
    out.file.write(f"  {sequence}\n")
    out.file.flush()
    return True


def picture_sequence(content: bytes, protocol: Protocol, columns: int, cell: tuple[int, int] = _CELL) -> str:
    """Return what makes a terminal show a PNG, JPEG or GIF as it is; "" for a picture it does not take."""
    if not content.startswith(_MAGIC) or (protocol == "kitty" and not content.startswith(_PNG)):
        return ""
    data = base64.b64encode(content).decode()
    wide = _fitting(content, columns, cell)
    if protocol == "kitty":
        return "".join(_kitty(data, f",c={wide}" if wide else ""))
    width = str(wide) if wide else "auto"
    return f"\x1b]1337;File=inline=1;size={len(content)};width={width};preserveAspectRatio=1:{data}\x07"


def _kitty(data: str, size: str) -> Iterator[str]:
    # q=2: the terminal does not answer; what it said would be taken for keys.
    for start in range(0, len(data), _CHUNK):
        more = int(start + _CHUNK < len(data))
        control = f"a=T,f=100,q=2{size},m={more}" if start == 0 else f"q=2,m={more}"
        yield f"\x1b_G{control};{data[start : start + _CHUNK]}\x1b\\"


def _fitting(content: bytes, columns: int, cell: tuple[int, int]) -> int | None:
    """Return the columns for a PNG that is too large as it is; None for one that fits, and for other formats."""
    if not content.startswith(_PNG) or len(content) < 24:
        return None
    width, height = struct.unpack(">II", content[16:24])
    if not width or not height:
        return None
    scale = min(1.0, columns * cell[0] / width, _ROWS * cell[1] / height)
    return max(1, math.floor(width * scale / cell[0])) if scale < 1.0 else None


def _cell() -> tuple[int, int]:
    """Return the size of a character in pixels, as the terminal says it."""
    try:
        rows, columns, width, height = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return _CELL
    return (width // columns, height // rows) if min(rows, columns, width, height) > 0 else _CELL


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
