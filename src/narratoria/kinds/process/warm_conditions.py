"""Conditions of a warm tool: if this system can have any, and what a server depends on beside its environment."""

from __future__ import annotations

import math
import os
import resource
from dataclasses import dataclass, field
from typing import Any, Final

from narratoria.kinds.process import marks
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.fork_server import ABSENT

_LIMITS: Final = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
Key = tuple[Any, ...]


def obstacle() -> str:
    """Return the reason why no tool can be warm on this system; "" if there is none."""
    if not marks.LINUX or not hasattr(os, "pidfd_open"):
        return "this system has no pidfds; warm tools need Linux 5.3 or later"
    if custody().tag == marks.UNTAGGED:
        return "the hard limit on locks (ulimit -H -x) is too low to mark a fork by"
    return ""


def circumstances() -> Key:
    """Return what a process has from us, beside its environment: identity, priority, limits and mask."""
    with open("/proc/self/status", "rb") as file:  # noqa: PTH123
        status = file.read(512)
    at = status.find(b"\nUmask:")
    mask = status[at + 7 : at + 13] if at >= 0 else b""
    limits = tuple(map(resource.getrlimit, _LIMITS))
    return limits, mask, os.getresuid(), os.getresgid(), os.getpriority(os.PRIO_PROCESS, 0)


@dataclass
class Verdict:
    """The reason not to fork a script. It holds until a file changes, or the time is up."""

    reason: str
    files: list[bytes] = field(default_factory=list)
    until: float = math.inf


def changed(files: list[bytes]) -> bool:
    return any(signature(path) != before for before, _, path in (one.partition(b" ") for one in files))


def signature(path: bytes) -> bytes:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return ABSENT
    return b"%d:%d:%d" % (found.st_mtime_ns, found.st_size, found.st_ino)
