"""The command that runs a tool, found by its run bit, its shebang and its suffix.

A tool that cannot be started is refused before anything runs, and the message says what to do about it.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from narratoria.errors import EXECUTION_FAILED, NOT_EXECUTABLE, TOOL_NOT_FOUND, NarratoriaError
from narratoria.kinds.manifest import SUFFIX, has_manifest, is_manifest

INTERPRETERS: Final = {
    ".py": (sys.executable,),
    ".sh": ("bash", "sh"),
    ".bash": ("bash",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    ".rb": ("ruby",),
    ".pl": ("perl",),
}
_PYTHON_OF_ENV: Final = re.compile(r"-S\s+python3((?:\s+-[bBdEIOPqsSuv]+)*)")  # flags that take no value
_HEAD_BYTES: Final = 256
_NATIVE: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")


class LaunchRefused(NarratoriaError):
    """A tool could not be started; `code` is the code of the failed call."""

    code: str = EXECUTION_FAILED


class ToolMissing(LaunchRefused):
    """There is no file at the tool's path."""

    code = TOOL_NOT_FOUND


class NotExecutable(LaunchRefused):
    """There is a file, but it cannot be run."""

    code = NOT_EXECUTABLE


def command_for(path: Path) -> list[str]:
    """Return the argv that runs the tool at `path`."""
    path = path.absolute()
    head = _head(path)
    runnable = os.access(path, os.X_OK)
    if runnable and head.startswith(_NATIVE):
        return [str(path)]
    if head.startswith(b"#!"):
        return _by_shebang(path, head, runnable=runnable)
    if head.startswith(_NATIVE):
        raise NotExecutable(
            f"{path} is a program without its run bit; run: chmod +x {shlex.quote(str(path))}"
        )
    if not head:
        raise NotExecutable(
            f"{path} is empty; write the tool into it, beginning with a shebang such as #!/bin/sh"
        )
    if path.suffix.lower() in INTERPRETERS:
        return _by_suffix(path)
    if runnable and b"\0" in head:
        return [str(path)]  # a format the kernel may know better than we
    raise NotExecutable(
        f"{path} has no shebang and no suffix that says how to run it; "
        "make #!/usr/bin/env … its first line, or name it .py, .sh or .js"
    )


def tool_command(path: Path) -> list[str]:
    """Return the argv that runs the tool at `path`. Without the run bit a file is a tool only if a manifest says so."""
    if is_manifest(path):
        raise ToolMissing(f"{path} {lacking_executable(path)}")
    command = command_for(path)
    problem = lacking_run_bit(path)
    if problem is not None:
        raise NotExecutable(f"{path} {problem}")
    return command


def lacking_run_bit(path: Path) -> str | None:
    """Return what is to be done about a file that has neither the run bit nor a manifest; None if it has one."""
    if os.access(path, os.X_OK) or has_manifest(path):
        return None
    return f"is there but may not be run: chmod +x {shlex.quote(str(path))}"


def lacking_executable(manifest: Path) -> str:
    """Return what is to be done about a manifest beside which there is no executable."""
    folder = manifest.parent
    built = (folder / "Makefile").is_file()
    advice = f"; it is built from source: make -C {shlex.quote(str(folder))}" if built else ""
    return f"describes {manifest.name.removesuffix(SUFFIX)!r}, which is not beside it{advice}"


def looks_like_script(path: Path) -> bool:
    """Tell if a file begins with a shebang."""
    try:
        return _head(path).startswith(b"#!")
    except LaunchRefused:
        return False


def _head(path: Path) -> bytes:
    """Return the first bytes of a regular file. Anything else is not even opened: a FIFO would block."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise ToolMissing(f"{path} is a link to {path.readlink()}, which does not exist") from None
        raise ToolMissing(f"there is no tool at {path}; check the path, or create it") from None
    except OSError as error:
        raise NotExecutable(f"{path} cannot be used: {error.strerror}") from error
    except ValueError as error:
        raise ToolMissing(f"{str(path)!r} is not a path: {error}") from error
    if stat.S_ISDIR(mode):
        raise NotExecutable(f"{path} is a folder; name the executable inside it")
    if not stat.S_ISREG(mode):
        raise NotExecutable(f"{path} is not a regular file; a tool is a program or a script")
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except PermissionError as error:
        if os.access(path, os.X_OK):
            return _NATIVE[0]  # --x--x--x: a program may be run without being read
        raise NotExecutable(
            f"{path} is neither readable nor executable for you; run: chmod +rx {shlex.quote(str(path))}"
        ) from error


def _by_shebang(path: Path, head: bytes, *, runnable: bool) -> list[str]:
    line = head[2:].split(b"\n", 1)[0]
    if line.endswith(b"\r"):
        raise NotExecutable(
            f"{path}: its first line ends in CR LF, so the system looks for an interpreter with a CR in its "
            "name; save the file with Unix line endings"
        )
    # The kernel splits once: the interpreter, and everything after it as one argument.
    interpreter, _, argument = os.fsdecode(line).strip().partition(" ")
    words = [interpreter, *([argument.strip()] if argument.strip() else [])]
    own = _own_python(words)
    if own:
        return [*own, str(path)]
    problem = _missing_interpreter(words)
    if problem is None:
        return [str(path)] if runnable else [*words, str(path)]
    if path.suffix.lower() in INTERPRETERS:
        return _by_suffix(path)
    raise NotExecutable(f"{path}: its shebang names {problem}; install it, or change the first line")


def _own_python(words: Sequence[str]) -> list[str]:
    """Return our own Python for `#!/usr/bin/env -S python3 -S`, which asks for the standard library alone.

    Ours has that too. The `python3` on the PATH may be a version manager's script, which takes 0.4 s to find the real
    one: longer than most tools run.
    """
    asked = _PYTHON_OF_ENV.fullmatch(words[1]) if words[0].endswith("/env") and len(words) == 2 else None
    flags = asked[1].split() if asked else []
    return [sys.executable, *flags] if any("S" in flag for flag in flags) else []


def _missing_interpreter(words: Sequence[str]) -> str | None:
    if not words[0]:
        return "no interpreter"
    if not Path(words[0]).is_file():
        return f"{words[0]}, which does not exist"
    if Path(words[0]).name == "env" and len(words) > 1:
        plain = [w for w in words[1].split() if not w.startswith("-") and "=" not in w]
        if plain and shutil.which(plain[0]) is None:
            return f"{plain[0]}, which is not on the PATH"
    return None


def _by_suffix(path: Path) -> list[str]:
    names = INTERPRETERS[path.suffix.lower()]
    for name in names:
        if found := shutil.which(name):
            return [found, str(path)]
    raise NotExecutable(f"{path} needs {' or '.join(names)}, which is not on the PATH; install it")


def refused(argv: Sequence[str], error: OSError) -> LaunchRefused:
    """Return the system's error at a launch as a refusal that says what to do."""
    what = argv[0]
    if error.errno == errno.ENOENT:
        if Path(what).exists():
            return NotExecutable(
                f"{what}: the interpreter it asks for, or its folder, does not exist ({error})"
            )
        return ToolMissing(f"there is no tool at {what}; check the path, or create it")
    if error.errno in (errno.EACCES, errno.EPERM):
        return NotExecutable(f"{what} may not be run: chmod +x it, and check that its disk is not noexec")
    if error.errno == errno.ENOEXEC:
        return NotExecutable(f"{what} is not a program for this system; rebuild it here, or add a shebang")
    if error.errno == errno.E2BIG:
        return LaunchRefused(f"{what}: arguments and environment are too long; pass data on stdin")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return LaunchRefused(f"{what}: too many open files; run fewer tools at once, or raise `ulimit -n`")
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return LaunchRefused(f"{what}: the system has no room for another process ({error.strerror})")
    return LaunchRefused(f"{what} could not be started: {error}")
