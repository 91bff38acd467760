"""Differences between systems: starting a process, noticing its end, ending it.

Linux has the best of each: a pidfd that becomes readable at the exit, and `/proc`, in which `marks.py` finds a
process that left its group. Elsewhere on POSIX the end is polled for and a process that leaves its group is lost;
both kinds are tried by the tests.

The guardian loads this file by its path, without the package around it: only the standard library here, and only fast
imports.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping

TYPE_CHECKING = False

if TYPE_CHECKING:
    import asyncio

    from narratoria.kinds.process.listeners import EpollListener, LoopListener
    from narratoria.kinds.process.marks import Environment

LINUX = sys.platform.startswith("linux")
PIPE_BYTES = 64 * 1024
"""The capacity of a pipe, and the size of one read: larger pieces fall out of the cache and cost a third more."""


# --- starting ------------------------------------------------------------------------------------------


class Child:
    """A started process, leader of its own session and group, and our ends of its three streams."""

    __slots__ = ("cpu", "metered", "pid", "stderr", "stdin", "stdout", "unsent")

    def __init__(self, pid: int, stdin: int, unsent: memoryview, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.stdin = stdin  # -1 once everything is written
        self.unsent = unsent
        self.stdout = stdout
        self.stderr = stderr
        self.metered = False  # somebody wants to know its CPU time, also where that has to be looked up
        self.cpu = 0.0  # CPU seconds of it and of those it waited for, known once it is reaped

    def watch(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], object]) -> Watch:
        """Call `ended` in the loop when the process is over."""
        return watch_exit(loop, self.pid, ended)

    def signal_group(self, number: int) -> None:
        """Signal every member of its group."""
        signal_group(self.pid, number)

    def reap(self) -> int | None:
        """Return its wait status, None while it runs, -1 if that is not known."""
        try:
            found, status, used = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:
            return -1
        self.cpu = used.ru_utime + used.ru_stime
        return status if found else None

    def look_up_cpu(self) -> None:
        """Read the CPU time of a process that has ended and that another one reaps; Linux only."""
        folder = f"/proc/{self.pid}"
        try:
            with open(f"{folder}/stat", "rb") as file:  # noqa: PTH123 - no pathlib here
                ticks = sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
            with open(f"{folder}/schedstat", "rb") as file:  # noqa: PTH123 - of its first thread, but exact
                exact = int(file.read().split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            return
        self.cpu = max(exact, ticks / os.sysconf("SC_CLK_TCK"))

    def close(self) -> None:
        """Close our ends of its streams, if it was not started."""
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd >= 0:
                os.close(fd)


def spawn(
    argv: list[str], stdin: bytes, env: Environment, cwd: str | None = None, *, hold_stdin: bool = False
) -> Child:
    """Start `argv` in a new session. Its stdin already holds the input that fits; the rest is `unsent`.

    With `hold_stdin`, its stdin stays open when everything is written, for a conversation.

    A session, not only a process group: its leader cannot leave the group by which we end it, and no process of the
    tool's can join a group of ours. posix_spawn, because it does not copy the page tables of a large parent. A pipe
    for stdin rather than a file in memory: tools that wait for it with epoll (asyncio, libuv) refuse files.
    """
    child, theirs = streams(stdin, hold_stdin=hold_stdin)
    try:
        child.pid = start(argv, env, cwd, *theirs)
    except BaseException:
        child.close()
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    return child


def streams(stdin: bytes, *, hold_stdin: bool = False) -> tuple[Child, tuple[int, int, int]]:
    """Return a child that has not been started, with our ends of its streams, and the three ends that are its own."""
    opened: list[int] = []
    try:
        for _ in range(3):
            opened += pipe()
        in_read, in_write, out_read, out_write, err_read, err_write = opened
        os.set_blocking(in_write, False)
        sent = _write_some(in_write, stdin)
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise
    unsent = memoryview(stdin)[sent:]
    if not unsent and not hold_stdin:
        os.close(in_write)
        in_write = -1
    return Child(0, in_write, unsent, out_read, err_read), (in_read, out_write, err_write)


def pipe() -> tuple[int, int]:
    """Return a pipe whose ends cannot collide with the three streams, even when ours are closed."""
    pair = os.pipe()
    if min(pair) > 2:
        return pair
    import fcntl

    moved = fcntl.fcntl(pair[0], fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(pair[1], fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(pair[0])
    os.close(pair[1])
    return moved


def nameless_file() -> int:
    """Return a file that exists only as long as it is open."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("narratoria", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile(prefix="narratoria-") as file:
        return os.dup(file.fileno())


def _write_some(fd: int, data: bytes) -> int:
    try:
        return os.write(fd, data) if data else 0
    except BlockingIOError:
        return 0


def start(argv: list[str], env: Environment, cwd: str | None, stdin: int, stdout: int, stderr: int) -> int:
    """Start a process with these streams, as the leader of a new session."""
    if cwd is None:
        try:
            return _posix_spawn(argv, env, stdin, stdout, stderr)
        except NotImplementedError:  # a system without POSIX_SPAWN_SETSID
            return _popen(argv, env, cwd, stdin, stdout, stderr)
    return _popen(argv, env, cwd, stdin, stdout, stderr)


def _posix_spawn(argv: list[str], env: Environment, stdin: int, stdout: int, stderr: int) -> int:
    return os.posix_spawn(
        argv[0],
        argv,
        env,
        file_actions=(
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in inherited()),
        ),
        setsid=True,
        # Python ignores SIGPIPE, and an ignored signal would be inherited.
        setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
        setsigmask=(),
    )


def _popen(argv: list[str], env: Environment, cwd: str | None, stdin: int, stdout: int, stderr: int) -> int:
    # posix_spawn cannot change the directory; Popen can, and uses vfork as well.
    import subprocess

    process = subprocess.Popen(
        argv, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )
    process.returncode = 0  # we reap it ourselves; an unset code makes its destructor complain
    return process.pid


_inherited: list[int] | None = None


def inherited() -> list[int]:
    """Return the descriptors that our parent left open for us, which tools must not get.

    Those that Python opens are closed by exec; so one look is enough, and closing one in vain does no harm.
    """
    global _inherited
    if _inherited is None:
        folder = "/proc/self/fd" if LINUX else "/dev/fd"
        numbers = [int(name) for name in os.listdir(folder)]  # noqa: PTH208
        _inherited = [fd for fd in numbers if fd > 2 and _passes_exec(fd)]
    return _inherited


def _passes_exec(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False  # the listing's own


def spawn_apart(argv: list[str], env: Environment, descriptors: Mapping[int, int]) -> int:
    """Start a process that shares nothing with us but `descriptors` (theirs → ours).

    Its own session, so that Ctrl-C and a closed terminal pass it by, with those signals blocked from its
    first instruction, and no standard output or error of ours held open.
    """
    import fcntl

    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (1, 2)
    ]
    blocked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    lifted: list[int] = []
    try:
        for theirs, ours in descriptors.items():
            # Out of the way: one of ours may have the number that another gets there.
            lifted.append(fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, max(descriptors) + 1))
            actions.append((os.POSIX_SPAWN_DUP2, lifted[-1], theirs))
        actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in inherited() if fd not in descriptors]
        try:
            return os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True, setsigmask=blocked)
        except NotImplementedError:  # no POSIX_SPAWN_SETSID: a group of its own is the next best
            return os.posix_spawn(argv[0], argv, env, file_actions=actions, setpgroup=0, setsigmask=blocked)
    finally:
        for fd in lifted:
            os.close(fd)


def read_now(fd: int) -> bytes | None:
    """Read the available bytes of a non-blocking descriptor: b"" at the end, None when there are none yet."""
    try:
        return os.read(fd, PIPE_BYTES)
    except BlockingIOError:
        return None


# --- ending --------------------------------------------------------------------------------------------


def signal_group(pgid: int, number: int) -> None:
    """Signal every member of a group; one that is gone is not an error."""
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return
    except PermissionError:
        # macOS answers so for a group of zombies; Linux when every member changed its user.
        return


def kill(pid: int) -> None:
    """Kill one process; one that is gone, or belongs to another user by now, is not an error."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def reap(pid: int, *, block: bool = False) -> int | None:
    """Return the wait status of an ended child, None while it runs, -1 if another part of the program reaped it."""
    try:
        found, status = os.waitpid(pid, 0 if block else os.WNOHANG)
    except ChildProcessError:
        return -1
    return status if found else None


def is_stopped(pid: int) -> bool:
    """Tell if a process was stopped by a signal; False where /proc is missing."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def runs(pid: int) -> bool:
    """Tell if a child is alive; reap it if not."""
    status = reap(pid)
    if status is None:
        return True
    if status != -1:
        return False
    try:  # the host ignores SIGCHLD or reaps everything itself
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class PidfdWatch:
    """Calls back once the process has ended; Linux only."""

    def __init__(
        self, listener: LoopListener | EpollListener, pid: int, ended: Callable[[], object], pidfd: int = -1
    ) -> None:
        self._listener = listener
        self._fd = os.pidfd_open(pid) if pidfd < 0 else pidfd
        self._ended = ended
        listener.listen(self._fd, self._report)

    def _report(self) -> None:
        self.close()
        self._ended()

    def wait(self, seconds: float) -> None:
        """Block until the end of the process or until the time is up, without the loop."""
        if self._fd >= 0:
            poll = select.poll()
            poll.register(self._fd, select.POLLIN)
            poll.poll(seconds * 1000)

    def close(self) -> None:
        if self._fd >= 0:
            self._listener.forget(self._fd)
            os.close(self._fd)
            self._fd = -1


class PollingWatch:
    """Calls back soon after the process has ended; for systems without pidfds."""

    FIRST = 0.001
    SLOWEST = 0.02

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int, ended: Callable[[], object]) -> None:
        self._loop = loop
        self._pid = pid
        self._ended = ended
        self._timer = loop.call_later(self.FIRST, self._look, self.FIRST)

    def _look(self, interval: float) -> None:
        if has_ended(self._pid):
            self._ended()
        else:
            later = min(interval * 2, self.SLOWEST)
            self._timer = self._loop.call_later(later, self._look, later)

    def wait(self, seconds: float) -> None:
        import time

        until = time.monotonic() + seconds
        while not has_ended(self._pid) and time.monotonic() < until:
            time.sleep(self.FIRST)

    def close(self) -> None:
        self._timer.cancel()


def has_ended(pid: int) -> bool:
    """Tell if a child is a zombie, or gone, without reaping it."""
    if hasattr(os, "waitid"):
        try:
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True
    import subprocess  # macOS before Python 3.13

    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False).stdout
    return not state.strip() or state.lstrip().startswith(b"Z")


Watch = PidfdWatch | PollingWatch
_WITHOUT_PIDFD = (errno.ENOSYS, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EINVAL)


def watch_exit(loop: asyncio.AbstractEventLoop, pid: int, ended: Callable[[], object]) -> Watch:
    """Call `ended` in the loop when the child is over."""
    if hasattr(os, "pidfd_open"):
        try:
            from narratoria.kinds.process.listeners import (
                listener_of,  # the guardian, which has no package, never gets here
            )

            return PidfdWatch(listener_of(loop), pid, ended)
        except OSError as error:
            # ESRCH: over already, and reaped by the kernel, since the host ignores SIGCHLD
            if error.errno != errno.ESRCH and error.errno not in _WITHOUT_PIDFD:
                raise
    return PollingWatch(loop, pid, ended)
