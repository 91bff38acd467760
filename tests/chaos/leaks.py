"""What a process must not leave: children, zombies, descriptors, temporary files, memory."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from narratoria.kinds.process.custody import custody


def eventually(holds: Callable[[], Any], within: float = 5.0) -> bool:
    """Tell if something becomes true in time."""
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def processes_with(token: str) -> list[str]:
    """The command lines with a word in them, of processes other than this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if token.encode() in line:
                found.append(f"{entry.name}: {line.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


def zombies() -> list[int]:
    """Children of this process that ended and were not reaped."""
    found = []
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            try:
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    found.append(int(pid))
            except OSError:
                continue
    return found


def descriptors() -> dict[str, str]:
    """The open descriptors of this process, with what they are."""
    found = {}
    for one in Path("/proc/self/fd").iterdir():
        try:
            found[one.name] = str(one.readlink())
        except OSError:
            continue
    return found


def memory() -> int:
    """Bytes this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def scratch() -> list[str]:
    """The temporary folders of calls that are over."""
    folder = Path(custody().scratch)
    return [one.name for one in folder.iterdir() if one.is_dir()] if folder.exists() else []


class Watch:
    """Compares what this process holds with what it held before."""

    def __init__(self) -> None:
        gc.collect()
        self.before = descriptors()

    def faults(self) -> list[str]:
        """What is left over; nothing, if all is well."""
        gc.collect()
        eventually(lambda: len(descriptors()) <= len(self.before) and not zombies(), 2)
        found = []
        if len(now := descriptors()) > len(self.before):
            found.append(
                f"descriptors: {Counter(now.values()) - Counter(self.before.values())} are left open"
            )
        if left := zombies():
            found.append(f"zombies: {left}")
        if folders := scratch():
            found.append(f"temporary folders: {folders}")
        return found
