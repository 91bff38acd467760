"""The typefaces of the page: Roboto and Source Serif Pro, from packages, cut into one small file for each script.

Neither font is a part of this repository. `font-roboto` (Apache License 2.0) and `font-source-serif-pro` (SIL Open Font
License 1.1) are installed with the extra `web`. Their letters are cut out once, in a process of its own, into the cache
of the data folder. A browser fetches a file only when the page has letters of its script. Where a package is missing,
and until the files are there, the fonts of the system stand in.

The license of Source Serif Pro reserves the name for the font as it is, so the cut files have names of our own.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from narratoria.tools.schema.excerpts import excerpt

logger = logging.getLogger("narratoria")

EDITION: Final = 1
"""Raised when the files are to be cut in another way."""
PATIENCE_SECONDS: Final = 600
DELAY_SECONDS: Final = 5.0
"""The page itself comes first."""
_FAILED: Final = "the page's fonts could not be made, the system's stand in: %s"


class Face(NamedTuple):
    """One style of a family, and the file in a package that it is cut from."""

    family: str
    weight: int
    style: str
    package: str
    file: str

    def file_name(self, script: str) -> str:
        kind = "sans" if self.family == SANS else "serif"
        return f"{kind}-{self.weight}{'-italic' if self.style == 'italic' else ''}-{script}.woff2"


SANS: Final = "Narratoria Sans"
SERIF: Final = "Narratoria Serif"
_ROBOTO: Final = "font-roboto"
_SOURCE_SERIF: Final = "font-source-serif-pro"
FACES: Final = (
    Face(SERIF, 400, "normal", _SOURCE_SERIF, "SourceSerifPro-Regular.ttf"),
    Face(SANS, 400, "normal", _ROBOTO, "Roboto-Regular.ttf"),
    Face(SANS, 500, "normal", _ROBOTO, "Roboto-Medium.ttf"),
    Face(SERIF, 400, "italic", _SOURCE_SERIF, "SourceSerifPro-It.ttf"),
    Face(SERIF, 600, "normal", _SOURCE_SERIF, "SourceSerifPro-Semibold.ttf"),
)
SCRIPTS: Final = {
    "latin": "U+0000-00FF, U+0131, U+0152-0153, U+02BB-02BC, U+02C6, U+02DA, U+02DC, U+2000-206F, U+20AC, U+2122, "
    "U+2190-2193, U+2212, U+2215, U+FEFF, U+FFFD",
    "latin-ext": "U+0100-0130, U+0132-0151, U+0154-02BA, U+02BD-02C5, U+02C7-02D9, U+02DB, U+02DD-02FF, U+1E00-1EFF, "
    "U+20A0-20AB, U+20AD-20C0, U+2C60-2C7F, U+A720-A7FF",
    "greek": "U+0370-03FF, U+1F00-1FFF",
    "cyrillic": "U+0400-045F, U+0490-0491, U+04B0-04B1, U+2116",
    "cyrillic-ext": "U+0460-048F, U+0492-04AF, U+04B2-052F, U+1C80-1C88, U+2DE0-2DFF, U+A640-A69F",
}
FIRST: Final = (FACES[0].file_name("latin"), FACES[1].file_name("latin"))
"""Files that every page needs; a browser is told of them before it has read the styles."""


def ranges(script: str) -> list[int]:
    """Return the letters of a script."""
    found: list[int] = []
    for part in SCRIPTS[script].split(", "):
        first, _, last = part.removeprefix("U+").partition("-")
        found += range(int(first, 16), int(last or first, 16) + 1)
    return found


def source_of(face: Face) -> Path | None:
    """Return the installed file of a face; None if its package is missing."""
    spec = find_spec(face.package.replace("-", "_"))
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "files" / face.file
    return path if path.is_file() else None


def fonts_folder(home: Path) -> Path | None:
    """Return the folder of the cut files; None if a package or the cutter is missing."""
    if find_spec("fontTools") is None or find_spec("brotli") is None:
        return None
    try:
        made_of = f"{EDITION}-{version(_ROBOTO)}-{version(_SOURCE_SERIF)}"
    except PackageNotFoundError:
        return None
    return home / "cache" / "fonts" / made_of


def read_fonts(folder: Path) -> dict[str, bytes]:
    """Return the cut files that are there, by name."""
    names = [face.file_name(script) for face in FACES for script in SCRIPTS]
    found = {}
    for name in names:
        with contextlib.suppress(OSError):
            found[name] = (folder / name).read_bytes()
    return {name: data for name, data in found.items() if data}


def font_styles(files: Mapping[str, bytes]) -> str:
    """Return the `@font-face` rules of these files. Text is shown at once, in the fonts that are there."""
    rules = []
    for face in FACES:
        for script, letters in SCRIPTS.items():
            name = face.file_name(script)
            if name in files:
                rules.append(
                    f'@font-face {{ font-family: "{face.family}"; font-weight: {face.weight}; '
                    f"font-style: {face.style}; "
                    f'font-display: swap; src: url({font_address(name, files[name])}) format("woff2"); '
                    f"unicode-range: {letters}; }}\n"
                )
    return "".join(rules)


def font_address(name: str, data: bytes) -> str:
    """Return an address that is another one for another content: a browser may keep it for good."""
    return f"/static/fonts/{name}?{hashlib.sha256(data).hexdigest()[:12]}"


def preloads(files: Mapping[str, bytes]) -> str:
    """Return the links to the files that every page needs."""
    return "".join(
        f'<link rel="preload" as="font" type="font/woff2" crossorigin href="{font_address(name, files[name])}">\n'
        for name in FIRST
        if name in files
    )


async def _said_by(process: asyncio.subprocess.Process) -> bytes:
    """Return what a process wrote to standard error, once it has ended; its standard input stays open until then."""
    said = b"" if process.stderr is None else await process.stderr.read()
    await process.wait()
    return said


class FontCutting:
    """Cuts the fonts once a page has been asked for: a server that nobody looks at needs none."""

    def __init__(self, folder: Path | None, use: Callable[[dict[str, bytes]], None]) -> None:
        self._folder = folder
        self._use = use
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._folder is not None and self._task is None:
            self._task = asyncio.create_task(self._cut(self._folder))

    async def _cut(self, folder: Path) -> None:
        await asyncio.sleep(DELAY_SECONDS)
        if await cut_fonts(folder):
            self._use(await asyncio.to_thread(read_fonts, folder))

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def cut_fonts(folder: Path) -> bool:
    """Cut the files that are not there yet, in a process of its own; tell if there are new ones."""
    done = folder / "done"
    if done.exists():
        return False
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "narratoria.web.font_cutting",
            str(folder),
            stdin=asyncio.subprocess.PIPE,  # it ends with us: then this is closed
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONUTF8": "1"},
        )
    except OSError as error:
        logger.warning(_FAILED, f"{sys.executable}: {error.strerror or error}")
        return False
    try:
        said = await asyncio.wait_for(_said_by(process), PATIENCE_SECONDS)
    except TimeoutError:
        said = b"it took too long"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
    if process.returncode:
        logger.warning(_FAILED, _cause(process.returncode, said.decode(errors="replace")))
    return process.returncode == 0


def _cause(code: int, said: str) -> str:
    """Return why the cutter failed: its last line, which is the exception's, and how it ended if it said nothing."""
    if last := said.strip().rpartition("\n")[2].strip():
        return excerpt(last)
    if code > 0:
        return f"the cutter ended with exit code {code} and said nothing"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    return f"the cutter was ended by {name}; is there too little memory?"
