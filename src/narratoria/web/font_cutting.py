"""Cuts the page's fonts: `python -m narratoria.web.font_cutting FOLDER [SCRIPT …]`. It takes some seconds, once."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from pathlib import Path
from typing import Any, Final

from narratoria.web.fonts import FACES, SCRIPTS, Face, ranges, source_of

FEATURES: Final = ["kern", "liga", "calt", "ccmp", "locl", "mark", "mkmk", "onum", "lnum", "pnum", "tnum"]
KEPT_NAMES: Final = [0, 5, 7, 8, 9, 11, 13, 14]  # copyright, version, trademark, makers, license


def cut(face: Face, script: str, path: Path) -> None:
    """Write the letters of one script; an empty file where the face has none of them."""
    from fontTools import subset  # type: ignore[import-untyped]

    source = source_of(face)
    if source is None:
        return
    options = subset.Options(
        flavor="woff2", layout_features=FEATURES, hinting=False, desubroutinize=True, name_IDs=KEPT_NAMES
    )
    font: Any = subset.load_font(str(source), options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=ranges(script))
    cutter.subset(font)
    part = path.with_suffix(f".{os.getpid()}.part")
    if font.getBestCmap():
        _rename(font, face)
        subset.save_font(font, str(part), options)
    else:
        part.write_bytes(b"")
    part.replace(path)


def _rename(font: Any, face: Face) -> None:
    """Give the font our own names: those of the original are reserved for it."""
    plain = face.family.replace(" ", "")
    for number, text in {
        1: face.family,
        2: "Regular",
        4: f"{face.family} {face.weight} {face.style}",
        6: f"{plain}-{face.weight}{face.style}",
    }.items():
        font["name"].setName(text, number, 3, 1, 0x409)


def _end_with_server() -> None:
    """End this process when the server has ended: it holds the other end of standard input."""
    kind = os.fstat(0).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        sys.stdin.buffer.read()
        signal.raise_signal(signal.SIGTERM)


def main(folder: Path, scripts: list[str]) -> None:
    if hasattr(os, "nice"):
        os.nice(10)
    folder.mkdir(parents=True, exist_ok=True)
    for script in scripts or SCRIPTS:
        for face in FACES:
            path = folder / face.file_name(script)
            if not path.exists():
                cut(face, script, path)
    if not scripts:
        (folder / "done").touch()


if __name__ == "__main__":
    threading.Thread(target=_end_with_server, daemon=True).start()
    main(Path(sys.argv[1]), sys.argv[2:])
