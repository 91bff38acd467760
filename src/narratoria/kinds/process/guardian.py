"""The guardian: a small process that outlives the runtime and ends the processes its tools left behind.

It holds the read end of a pipe whose write end only the runtime holds. When the runtime dies, even by `kill -9`, the
kernel closes that end, the guardian wakes, and kills every process group in the ledger and, on Linux, every process
that carries one of the runtime's marks (`marks.py`), daemons in their own session included. It repeats that until
nothing is left, and removes the scratch folders.

There are two of it, so that nothing is left when one and the runtime are killed in the same instant. When all three
are, the guardians of the next runtime find the folder of the dead one, which nobody locks any more, and do its work.

This file is run by its path (`python -I -S guardian.py RUNTIME TAG FOLDER`), never imported by the runtime: the
package is not importable there, and importing it would be slow. `custody.py` is the other side of the pipe.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # typing takes as long to import as everything else here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIFELINE = 0
LEDGER = 3
SLOT_BYTES = 8
GUARDIAN_SLOTS = 2
"""Slots at the beginning of the ledger with the pids of the guardian's two processes, which they write themselves."""
LOCK = 4
RUNTIME_DIGITS = 16
UNTAGGED = -1
"""The tag of a runtime that has none; the same as in `marks.py`."""
LEAST_TAG = 1 << 31
"""The least tag a runtime chooses."""
FAREWELL = b"."
"""Written by a runtime that leaves in order, with no call running: one look is enough then."""
RELIEVED = b"-"
"""Written by a runtime that has started another guardian: there is nothing to do."""
PATIENCE = 10.0
"""Seconds to go on killing new processes; usually a third of a second suffices."""
CLEAN_LOOKS = (0.0, 0.05, 0.25)
"""Pauses before the looks that must all find nothing: a process may be between fork and exec."""


def main(runtime: str, tag: int, folder: str) -> None:
    platform, marks = _neighbour("platform.py"), _neighbour("marks.py")
    os.chdir("/")  # do not keep a folder busy
    said, to_twin = watch(lambda: end_leftovers(os.path.dirname(folder), platform, marks))  # noqa: PTH120
    try:
        if not said.endswith(RELIEVED):
            for pgid in read_ledger(LEDGER):
                platform.signal_group(pgid, signal.SIGKILL)
            end_carriers(
                runtime, tag, platform, marks, CLEAN_LOOKS[:1] if said.endswith(FAREWELL) else CLEAN_LOOKS
            )
            remove(folder)
    finally:  # after an error too: the second would meet the same, and the guardians of the next runtime see to it
        _let_go(to_twin)


def watch(errand: Callable[[], None]) -> tuple[bytes, int]:
    """Wait for the end of the runtime, in two processes, so that ending one of them does not end the watch.

    The first waits for the runtime, and starts a second, which waits for the first; whichever is killed is replaced
    by the other. The second does the errand. Returns in the first what the runtime said last, and the pipe to the
    second.
    """
    said, errands = b"", [errand]
    while True:
        from_twin, twins_end = os.pipe()
        from_first, to_twin = os.pipe()
        first = os.getpid()
        twin = os.fork()
        write_guardians(LEDGER, first, twin or os.getpid())
        if twin == 0:
            os.close(from_twin)
            os.close(to_twin)
            os.setsid()  # a signal to the group of the first must not hit the second
            while errands:
                errands.pop()()
            if os.read(from_first, 1):
                os._exit(0)  # everything is done
            os.close(from_first)
            os.close(twins_end)
            continue  # the first was killed: take its place
        os.close(from_first)
        os.close(twins_end)
        errands.clear()
        poll = select.poll()
        poll.register(LIFELINE, select.POLLIN)
        poll.register(from_twin, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if LIFELINE in ready:
                part = os.read(LIFELINE, 4096)
                if not part:
                    return said, to_twin
                said = part
            elif from_twin in ready:
                break
        os.waitpid(twin, 0)
        os.close(from_twin)
        os.close(to_twin)


def _let_go(to_twin: int) -> None:
    try:
        os.write(to_twin, b".")
    except BrokenPipeError:
        return  # somebody killed it


def end_carriers(runtime: str, tag: int, platform: Any, marks: Any, looks: tuple[float, ...]) -> None:
    """Kill every process with a mark of a runtime until the given number of looks find none."""
    until = time.monotonic() + PATIENCE
    clean = 0
    while clean < len(looks) and time.monotonic() < until:
        time.sleep(looks[clean])
        found = [pid for pid, _ in marks.carriers(runtime, tag)]
        for pid in found:
            platform.kill(pid)
        clean = 0 if found else clean + 1


def end_leftovers(place: str, platform: Any, marks: Any) -> None:
    """End the processes of runtimes that were killed together with both of their guardians.

    Their folders stand in the same place and name their marks; an unlocked folder belongs to a dead runtime.
    """
    import fcntl

    try:
        names = os.listdir(place)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        marks_of = parse_folder(name)
        if marks_of is None:
            continue
        path = f"{place}/{name}"
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(fd).st_uid == os.geteuid():
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                end_carriers(*marks_of, platform, marks, CLEAN_LOOKS)
                remove(path)
        except OSError:
            continue  # its runtime or a guardian of its lives
        finally:
            os.close(fd)


def folder_name(runtime: str, tag: int) -> str:
    """Return the name of a runtime's scratch folder, which holds its marks."""
    return f"narratoria-{runtime}-{tag}"


def parse_folder(name: str) -> tuple[str, int] | None:
    """Return the marks in the name of a folder."""
    if not name.startswith("narratoria-"):
        return None
    runtime, _, digits = name[len("narratoria-") :].partition("-")
    if len(runtime) != RUNTIME_DIGITS or not set(runtime) <= set("0123456789abcdef"):
        return None
    if not digits.isascii() or not digits.removeprefix("-").isdecimal():
        return None
    tag = int(digits)
    # Anybody may make such a folder: a tag that no runtime chooses may be a limit that every process has.
    plausible = tag == UNTAGGED or LEAST_TAG <= tag < 1 << 63
    return (runtime, tag) if plausible and folder_name(runtime, tag) == name else None


def remove(folder: str) -> None:
    """Remove the scratch folders of calls that were cut short."""
    if os.path.isdir(folder):  # noqa: PTH112 - importing pathlib would cost more than all the rest
        _neighbour("folder_removal.py").remove(folder)


def read_ledger(fd: int) -> list[int]:
    """Return the groups of the running calls: little-endian numbers of `SLOT_BYTES`, 0 where a slot is free."""
    table = os.pread(fd, 1 << 24, 0)
    first = GUARDIAN_SLOTS * SLOT_BYTES
    slots = (table[at : at + SLOT_BYTES] for at in range(first, len(table), SLOT_BYTES))
    return [pgid for slot in slots if (pgid := int.from_bytes(slot, "little"))]


def write_guardians(fd: int, *pids: int) -> None:
    os.pwrite(fd, b"".join(pid.to_bytes(SLOT_BYTES, "little") for pid in pids), 0)


def read_guardians(fd: int) -> tuple[int, int]:
    """Return the pids of the guardian's two processes, 0 for one that has not started yet."""
    table = os.pread(fd, GUARDIAN_SLOTS * SLOT_BYTES, 0)
    return int.from_bytes(table[:SLOT_BYTES], "little"), int.from_bytes(table[SLOT_BYTES:], "little")


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
