"""The interpreter of a tool that is a Python script, found as a launch finds it: by its shebang or its suffix."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PYTHON: Final = re.compile(r"python(?:3(?:\.\d+)?)?")
_FLAGS: Final = re.compile(r"(?:-[bBdEIOPqRsSuv]+ ?)*")  # those that take no value


class NotPython(Exception):
    """A tool is not a Python script, or is one with options that are not known here; the message says which."""


def interpreter_of(command: Sequence[str]) -> tuple[str, ...]:
    """Return the part of a tool's command before the path of the script. Raises `NotPython`."""
    *before, path = command
    words = before or _shebang(Path(path))
    if words and Path(words[0]).name == "env":
        words = [words[0], *(" ".join(words[1:]).removeprefix("-S").split())]
        name, flags = (words[1], words[2:]) if len(words) > 1 else ("", [])
    else:
        name, flags = (Path(words[0]).name, words[1:]) if words else ("", [])
    if not (_PYTHON.fullmatch(name) or words[:1] == [sys.executable]):
        raise NotPython(
            f"it is run by {name}, not by Python" if name else "it is a program, not a Python script"
        )
    if not _FLAGS.fullmatch(" ".join(flags)):
        raise NotPython(
            f"its Python has the options {' '.join(flags)!r}; warm tools may have only short flags"
        )
    return tuple(words)


def _shebang(path: Path) -> list[str]:
    """Return the words of the first line: the kernel splits it once."""
    try:
        with path.open("rb") as file:
            line = file.readline(256)
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    interpreter, _, argument = os.fsdecode(line[2:]).strip().partition(" ")
    return [interpreter, *([argument.strip()] if argument.strip() else [])]
