"""The guardian: a small process that outlives us and ends what our tools left behind.

It holds the read end of a pipe whose write end only we hold. When we die, even by `kill -9`, the kernel
closes our end, the guardian wakes, and kills every process group in the ledger and, on Linux, every process
that carries one of our marks (`marks.py`), daemons in their own session included. It looks again until nothing
is left, and removes the scratch folders.

This file is run by its path (`python -I -S guardian.py RUNTIME TAG FOLDER`), never imported by the runtime: the package
is not importable there, and importing it would be slow. `custody.py` is the other side of the pipe.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False  # typing takes as long to import as everything else here
if TYPE_CHECKING:
    from typing import Any

LIFELINE = 0
LEDGER = 3
SLOT_BYTES = 8
FAREWELL = b"."
"""Written by a runtime that leaves in order, with no call running: one look is enough then."""
PATIENCE = 10.0
"""Seconds to go on killing what keeps appearing; usually a third of one suffices."""
CLEAN_LOOKS = (0.0, 0.05, 0.25)
"""Pauses before the looks that must all find nothing: a process may be between fork and exec."""


def main(runtime: str, tag: int, folder: str) -> None:
    platform, marks = _neighbour("platform.py"), _neighbour("marks.py")
    os.chdir("/")  # do not keep a folder busy
    said = b""
    while part := os.read(LIFELINE, 4096):
        said = part
    looks = CLEAN_LOOKS[:1] if said.endswith(FAREWELL) else CLEAN_LOOKS
    for pgid in read_ledger(LEDGER):
        platform.signal_group(pgid, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    clean = 0
    while clean < len(looks) and time.monotonic() < until:
        time.sleep(looks[clean])
        found = [pid for pid, _ in marks.carriers(runtime, tag)]
        for pid in found:
            platform.kill(pid)
        clean = 0 if found else clean + 1
    remove(folder)


def remove(folder: str) -> None:
    """The scratch folders of calls that did not come to their end."""
    if os.path.isdir(folder):  # noqa: PTH112 - importing pathlib would cost more than all the rest
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def read_ledger(fd: int) -> list[int]:
    """The groups of the calls that run: little-endian numbers of `SLOT_BYTES`, 0 where a slot is free."""
    table = os.pread(fd, 1 << 24, 0)
    slots = (table[at : at + SLOT_BYTES] for at in range(0, len(table), SLOT_BYTES))
    return [pgid for slot in slots if (pgid := int.from_bytes(slot, "little"))]


def _neighbour(name: str) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    folder = __file__[: -len("guardian.py")]
    spec = spec_from_file_location("narratoria_neighbour", folder + name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder + name} is missing; install narratoria again")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
