"""The two marks that identify the processes of our tools, in any group or session.

The first is a cookie in the environment, which names the call. A process loses it when it clears its environment or
writes a title over it. The second, on Linux, is a resource limit: `RLIMIT_LOCKS`, which no kernel has enforced since
2.4, set to a number of this runtime's own, its tag, plus that of the call. Every descendant inherits it through fork,
exec and setsid, and `/proc/PID/limits` shows it. Elsewhere there is only the process group.

The guardian loads this file by its path: only the standard library, and only fast imports.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping

LINUX = sys.platform.startswith("linux")
COOKIE = "NARRATORIA_CALL"
"""The environment variable that names the call of a process: `RUNTIME.CALL`, nested ones joined by `/`."""
NO_CALL = 0
"""The number of no call: in the cookie of a process that forks for calls, and of one whose call cannot be known."""
UNTAGGED = -1
"""The tag of a process that is not ours: no limit (RLIM_INFINITY)."""

_RLIMIT_LOCKS = 10  # the same on every architecture; the module `resource` does not name it
_TAG_BITS = 62
_LEAST_ROOM = 1 << 48
CALLS = 1 << 24
"""Numbers that belong to a tag: it is a multiple of this, and the numbers of calls are smaller."""
_ceiling = -1
if LINUX:
    import resource

    _ceiling = resource.getrlimit(_RLIMIT_LOCKS)[1]  # -1: there is none

Environment = Mapping[str, str] | Mapping[bytes, bytes]


# --- the tag -------------------------------------------------------------------------------------------


def new_tag() -> int:
    """Return a number no other runtime has; `UNTAGGED` if the system has no such limit, or no room below it."""
    if not LINUX:
        return UNTAGGED
    room = min(_ceiling, 1 << _TAG_BITS) if _ceiling >= 0 else 1 << _TAG_BITS
    if room < _LEAST_ROOM:
        return UNTAGGED
    number = _LEAST_ROOM // 2 + int.from_bytes(os.urandom(8), "little") % (room - _LEAST_ROOM // 2)
    return number - number % CALLS


class Tagged:
    """A block in which every process we start inherits a limit: the tag and the number of its call.

    The limit is set before the start, since a tool may fork at once. posix_spawn holds the interpreter, so hardly
    anything else of the host can start meanwhile; a process that does stays in our own session, which no tool's can
    enter, and is recognised by that.
    """

    __slots__ = ("_before", "_tag")
    one_at_a_time = threading.Lock()

    def __init__(self, tag: int) -> None:
        self._tag = tag
        self._before: tuple[int, int] | None = None

    def __enter__(self) -> None:
        if LINUX:
            Tagged.one_at_a_time.acquire()
            self._before = _limit(_ceiling if self._tag == UNTAGGED else self._tag, _ceiling)

    def __exit__(self, *details: object) -> None:
        if LINUX:
            if self._before is not None:
                _limit(*self._before)
            Tagged.one_at_a_time.release()


def _limit(soft: int, hard: int) -> tuple[int, int] | None:
    """Set our own limit and return the old one; None where the system forbids it: cookie and group remain."""
    try:
        return resource.prlimit(0, _RLIMIT_LOCKS, (soft, hard))
    except (OSError, ValueError):
        return None


def forked() -> None:
    """Renew the lock after a fork: another thread may have held it."""
    Tagged.one_at_a_time = threading.Lock()


# --- finding -------------------------------------------------------------------------------------------


def carriers(
    runtime: str, tag: int, seen: set[int] | None = None, rounds: int = 50
) -> Iterator[tuple[int, int]]:
    """Yield the processes that carry a mark of a runtime and that we may end, as (pid, call). Yield nothing where
    /proc is missing.

    `seen` holds foreign processes, so that another look costs one directory listing and the new ones. If a process
    vanished during the look, it may have forked first: then new processes are looked at too, for `rounds` rounds.
    """
    if not LINUX:
        return
    seen = set() if seen is None else seen
    looked: set[int] = {os.getpid()}
    user = os.geteuid()
    for _ in range(rounds):
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208
        seen &= pids
        vanished = False
        for pid in pids - looked:
            looked.add(pid)
            if pid in seen:
                continue
            found = _mark_of(pid, user, runtime, tag)
            if found is _FOREIGN:
                seen.add(pid)
            elif found is _GONE:
                vanished = True
            elif isinstance(found, int):
                yield pid, found
        if not vanished:
            return


_FOREIGN = object()
_GONE = object()
_STARTING = object()


def _mark_of(pid: int, user: int, runtime: str, tag: int) -> object:
    """Return the number of the call, or the reason there is none."""
    try:
        if not _is_ours_to_signal(pid, user):
            return _FOREIGN
        environ = _environ(pid)
        call = None if environ is None else _call_in(environ, runtime)
        if call or (call is not None and tag == UNTAGGED):
            return call
        if tag == UNTAGGED:
            # No environment: a kernel thread, or one in the middle of exec.
            return _STARTING if environ == b"" else _FOREIGN
        by_tag = call_by_tag(_contents(f"/proc/{pid}/limits"), tag)
        if by_tag is None:
            return _FOREIGN if call is None else call
        call = by_tag
    except (FileNotFoundError, ProcessLookupError):
        return _GONE
    except PermissionError:
        return _FOREIGN  # /proc is mounted with hidepid, and it may not be traced
    except OSError:
        return _GONE  # it ended while being read
    relations = kin(pid)
    if relations is None or not relations.alive:
        return _GONE
    # No tool's is in our session: a child of our host's that was started beside one.
    return _FOREIGN if relations.session == os.getsid(0) else call


def _call_in(environ: bytes, runtime: str) -> int | None:
    """Return the number of a runtime's call that an environment names, in the variable for it and nowhere else.

    A number that cannot be read is that of no call.
    """
    if runtime.encode() not in environ:
        return None
    name, prefix = COOKIE.encode() + b"=", runtime.encode() + b"."
    for entry in environ.split(b"\0"):
        for part in entry[len(name) :].split(b"/") if entry.startswith(name) else ():
            if part.startswith(prefix):
                number = part[len(prefix) : len(prefix) + 20]
                return int(number) if number.isdigit() else NO_CALL
    return None


def call_by_tag(limits: bytes, tag: int) -> int | None:
    """Return the number of the call by `/proc/PID/limits`, where the soft limit on file locks is the tag and that."""
    at = limits.find(b"Max file locks")
    fields = limits[at:].split(b"\n", 1)[0].split()[3:4] if at >= 0 else []
    number = int(fields[0]) - tag if fields and fields[0].isdigit() else -1
    return number if 0 <= number < CALLS else None


def call_of(pid: int, runtime: str, tag: int) -> int | None:
    """Return the number of the call that a process of a runtime belongs to; None if it is unknown."""
    found = _mark_of(pid, 0, runtime, tag)
    return found if isinstance(found, int) else None


def _is_ours_to_signal(pid: int, user: int) -> bool:
    """Tell if we may signal a process. The owner of its folder in /proc does not decide: a process that is not
    dumpable (an agent that guards keys, a program with the setuid bit) shows root there, and still gets our signals.
    """
    if user == 0 or os.stat(f"/proc/{pid}").st_uid == user:  # noqa: PTH116
        return True
    status = _contents(f"/proc/{pid}/status")
    at = status.index(b"\nUid:")
    real, _, saved, _ = map(int, status[at + 5 : status.index(b"\n", at + 1)].split())
    return user in (real, saved) or os.getuid() in (real, saved)


def _environ(pid: int) -> bytes | None:
    """Return the environment, or None if it may not be read: a process that is not dumpable still has the tag."""
    try:
        return _contents(f"/proc/{pid}/environ")
    except PermissionError:
        return None
    except ProcessLookupError:
        return b""  # no memory to look into: a kernel thread, or one whose first thread has ended, if not all


def _contents(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


class Kin:
    """The relations of a process: its parent, its group, its session, its start in seconds since boot."""

    __slots__ = ("alive", "group", "parent", "session", "start")

    def __init__(self, alive: bool, parent: int, group: int, session: int, start: float) -> None:
        self.alive = alive
        self.parent = parent
        self.group = group
        self.session = session
        self.start = start


def kin(pid: int) -> Kin | None:
    """Return the relations of a process, None if it is gone."""
    try:
        # The name stands in parentheses and may hold any character, parentheses included.
        fields = _contents(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    alive = fields[0] not in (b"Z", b"X") or int(fields[17]) > 1  # a zombie may stand for threads that live
    return Kin(alive, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]) / _ticks())


def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")


def tick() -> float:
    """Return the resolution of `Kin.start`, in seconds."""
    return 1 / _ticks()
