"""The fork server of one warm tool: a Python that has imported what the tool imports, and forks for each call.

The runtime starts it with the tool's own interpreter and flags, `python3 -c BOOT FOLDER IDLE TOOL`, without the package
around it. Its three streams are one end of a socket, by which requests come, each with three streams and a socket of
its own, the link. `warm_servers.py` is the other side.

Before the first call it imports the modules that the head of the script names, and compiles the script; it runs none
of it. A fork becomes what a cold start would be, reports its process on the link, and runs the script as `__main__`; if
the link is shut by then, it does not. At its exit it writes its status into a page that it shares with the runtime. If
the runtime ends, every call is killed.

Only the standard library, only fast imports, and any Python from 3.9 on.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` imports enum
import _socket
import atexit
import builtins
import gc
import mmap
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False  # typing takes as long to import as everything else here
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any, NoReturn

BOOT = """
import sys
safe = getattr(sys.flags, "safe_path", False) or sys.flags.isolated
sys.path[: 0 if safe else 1] = [sys.argv[1]]
import fork_server
del sys.path[0]
fork_server.run(sys.argv[3], *fork_server.main(float(sys.argv[2]), sys.argv[3]))
"""
"""The program that runs this file from its compiled form; to compile it takes as long as Python itself to start."""
READY = b"ready"
UNFIT = b"unfit"
ALIVE = b"-"
ABSENT = b"-"
NEW = b"+"
STATUSES = 1024
"""Numbers of four bytes in the page of statuses. A call has one of them, but 0; an exit status is written plus one."""
LARGEST = 1 << 17
"""Bytes of the longest message."""
SETTLED_NS = 20_000_000
"""A module that was written so shortly before it was imported may have been read before."""
_RLIMIT_LOCKS = 10
_ONLY_AST = 0x400


class Unfit(Exception):
    """The tool cannot be forked; the message says why."""


# --- before the first call -----------------------------------------------------------------------------


def main(idle: float, script: str) -> tuple[CodeType, Account]:
    """Return, in each fork, the code of the script and the place for its status."""
    del sys.modules[__name__]
    control = _socket.socket(fileno=os.dup(0))
    files: list[bytes] = []
    try:
        if not hasattr(os, "pidfd_open"):
            raise Unfit(f"its Python is {sys.version.split()[0]}; warm tools need 3.9 or later, on Linux")
        code = prepare(script, files)
        answer = [READY, b"%d" % resident_bytes()]
    except Unfit as unfit:
        answer = [UNFIT, str(unfit).encode("utf-8", "replace")]
    message = b"\0".join([*answer, *files])
    if answer[0] == UNFIT or len(message) > LARGEST:
        control.send(message[:LARGEST] if answer[0] == UNFIT else UNFIT + b"\0it imports too many files")
        os._exit(0)
    page = os.memfd_create("statuses")
    os.ftruncate(page, 4 * STATUSES)
    before = descriptors()
    statuses = mmap.mmap(page, 4 * STATUSES)
    kept = descriptors() - before  # by the map, which needs it for nothing that is done here
    control.sendmsg([message], passing(page))
    os.close(page)
    os.chdir("/")  # do not keep a folder busy
    sys.argv = [script]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[-5:] = [script]
    gc.collect()
    gc.freeze()
    number = Server(control).serve(idle)
    for name in kept:
        os.close(int(name))
    return code, Account(statuses, number)


def prepare(script: str, files: list[bytes]) -> CodeType:
    """Import what the head of the script names, and return its code; note the files whose change matters."""
    folder = os.path.dirname(os.path.realpath(script))  # noqa: PTH120 - importing pathlib would cost more than this
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
        sys.path.insert(0, folder)
    files.append(signature(script))
    try:
        with open(script, "rb") as file:  # noqa: PTH123
            source = file.read()
        tree = compile(source, script, "exec", _ONLY_AST, dont_inherit=True)
        code: CodeType = compile(source, script, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise Unfit(f"its source cannot be compiled: {error}") from None
    streams = Watched()
    began = time.time_ns()
    before = descriptors()
    import_head(tree.body)
    files += watched_files(began)
    streams.check()
    if descriptors() - before:
        raise Unfit("a module that it imports opens files or connections while it is imported")
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208
        raise Unfit("a module that it imports starts threads while it is imported")
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return code
    raise Unfit("a module that it imports starts processes while it is imported")


class Watched:
    """Streams in the place of the real ones, by which it is noticed that a module reads or writes at its import."""

    def __init__(self) -> None:
        self.given = os.memfd_create("stdin")
        os.write(self.given, b"{}\n")
        os.lseek(self.given, 0, os.SEEK_SET)
        self.written = os.memfd_create("stdout")
        for number, fd in enumerate((self.given, self.written, self.written)):
            os.dup2(fd, number)

    def check(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        read, wrote = os.lseek(0, 0, os.SEEK_CUR), os.fstat(self.written).st_size
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        for fd in (nothing, self.given, self.written):
            os.close(fd)
        if read:
            raise Unfit("a module that it imports reads standard input while it is imported")
        if wrote:
            raise Unfit("a module that it imports writes to standard output or error while it is imported")


def import_head(statements: list[Any]) -> bool:
    """Import what statements name, up to the first that may do more than import, define or name; tell if all did.

    A script may change `sys.path` or the environment before it imports: what follows is imported in the fork.
    """
    for one in statements:
        kind = type(one).__name__
        if kind == "Import":
            fine = all(imported(alias.name) for alias in one.names)
        elif kind == "ImportFrom":
            names = [alias.name for alias in one.names if alias.name != "*"]
            fine = one.level == 0 and imported(one.module, names)
        elif kind == "Try":
            fine = import_head(one.body) or all(import_head(handler.body) for handler in one.handlers)
        elif kind == "If":
            fine = import_head(one.orelse) if is_for_checkers(one.test) else False
        else:
            fine = is_plain(one, kind)
        if not fine:
            return False
    return True


def imported(module: str, names: list[str] | None = None) -> bool:
    try:
        __import__(module, fromlist=names or [])
    except BaseException:  # it fails again in the fork, where the script may have an answer to that
        return False
    return True


def is_for_checkers(test: Any) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def is_plain(statement: Any, kind: str) -> bool:
    """Tell if a statement changes nothing but names of the script itself."""
    if kind in ("FunctionDef", "AsyncFunctionDef"):
        return not statement.decorator_list
    value = getattr(statement, "value", None)
    simple = ("Constant", "Name", "Tuple", "List")
    if kind == "Expr":
        return type(value).__name__ == "Constant"
    targets = statement.targets if kind == "Assign" else [statement.target] if kind == "AnnAssign" else [None]
    return all(type(one).__name__ == "Name" for one in targets) and type(value).__name__ in simple


def watched_files(began: int) -> Iterator[bytes]:
    """Yield the signatures of the imported files that are no part of an installation, and of folders that are."""
    library = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120
    for module in [*sys.modules.values()]:
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or path.startswith(library):
            continue
        if "-packages" + os.sep not in path:
            yield signature(path, began - SETTLED_NS)
    for path in sys.path:
        if path.endswith("-packages"):
            yield signature(path)


def signature(path: str, before: int | None = None) -> bytes:
    """Return what changes with a file, and its path; NEW if it was written after a time."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return b"%s %s" % (ABSENT, os.fsencode(path))
    if before is not None and found.st_mtime_ns > before:
        return b"%s %s" % (NEW, os.fsencode(path))
    return b"%d:%d:%d %s" % (found.st_mtime_ns, found.st_size, found.st_ino, os.fsencode(path))


def descriptors() -> set[str]:
    """Return the open descriptors; the listing's own is closed by then."""
    return {name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}  # noqa: PTH110, PTH208


def resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize()


# --- serving -------------------------------------------------------------------------------------------


class Server:
    """Forks for each request, and reaps when the runtime has killed the group: until then its number is taken."""

    def __init__(self, control: _socket.socket) -> None:
        self.control = control
        self.calls: dict[
            int, tuple[_socket.socket, int]
        ] = {}  # descriptor of the link → the link, the process
        self.late: list[int] = []
        self.poll = select.poll()
        self.poll.register(control.fileno(), select.POLLIN)

    def serve(self, idle: float) -> int:
        """Return in each fork, with the number of its status.

        Exit when the runtime is gone, or when nothing was to do for some seconds.
        """
        while True:
            ready = self.poll.poll(None if self.calls else idle * 1000)
            self.late = [pid for pid in self.late if reaped(pid) is None]
            if not ready:
                os._exit(0)
            for fd, _ in ready:
                if fd in self.calls:
                    self.settle(fd)
                elif (number := self.accept()) is not None:
                    return number

    def accept(self) -> int | None:
        """Fork for a request; return the number of its status in the fork."""
        try:
            request, more, _, _ = self.control.recvmsg(LARGEST, 1024)
        except OSError:
            request, more = b"", []
        fds = [fd for _, _, data in more for fd in descriptors_in(data)]
        if not request:  # the runtime is gone
            for _, pid in self.calls.values():
                end(pid)
            os._exit(0)
        *streams, last = fds
        link = _socket.socket(fileno=last)
        try:
            pid = os.fork()
        except OSError as error:
            link.send(str(error).encode())
            pid = -1
        if pid == 0:
            self.control.close()
            for other, _ in self.calls.values():
                other.close()
            return be_called(link, streams, request)
        for fd in streams:
            os.close(fd)
        if pid < 0:
            link.close()
            return None
        self.calls[last] = link, pid
        self.poll.register(last, select.POLLRDHUP)
        return None

    def settle(self, fd: int) -> None:
        """Reap the process of a call and send its status, if anybody waits for it: the runtime's end was shut."""
        link, pid = self.calls.pop(fd)
        self.poll.unregister(fd)
        end(pid)
        status = reaped(pid)
        if status is None:
            self.late.append(pid)
        try:
            link.send(ALIVE if status is None else b"%d" % status)
        except OSError:
            status = None  # nobody waits for it
        link.close()


def descriptors_in(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4)]


def end(pid: int) -> None:
    """Kill a call, which may not have its own group yet."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, _signal.SIGKILL)
        except OSError:
            continue


def reaped(pid: int) -> int | None:
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if found else None


# --- one call, in the fork -----------------------------------------------------------------------------


def be_called(link: _socket.socket, streams: list[int], request: bytes) -> int:
    """Become the process that a cold start would have made, and report it; return the number of its status."""
    number, *more = request.split(b"\0")
    try:
        become(streams, *more)
        handle = os.pidfd_open(os.getpid())
    except Exception as error:
        link.send(f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        os._exit(1)
    try:
        link.sendmsg([b"%d" % os.getpid()], passing(handle))
    except OSError:  # the call was given up, and may have been started cold
        os._exit(0)
    os.close(handle)
    link.close()
    return int(number)


def passing(fd: int) -> list[tuple[int, int, bytes]]:
    """Return what a message has to have beside it to pass a descriptor on."""
    return [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fd.to_bytes(4, sys.byteorder))]


def become(streams: list[int], mark: bytes, folder: bytes, *variables: bytes) -> None:
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    resource.setrlimit(_RLIMIT_LOCKS, (int(mark), resource.getrlimit(_RLIMIT_LOCKS)[1]))
    os.chdir(folder)
    for variable in variables:
        name, given, value = variable.partition(b"=")
        if given:
            os.environb[name] = value
        else:
            os.environb.pop(name, None)
    # Found out or drawn at the import by some; a new process would do it anew. `random` does it by itself.
    modules: dict[str, Any] = sys.modules
    if "tempfile" in modules:
        modules["tempfile"].tempdir = None
    if "numpy.random" in modules:
        modules["numpy.random"].seed()


class Account:
    """The place for the exit status of a call. Its own forks have other statuses."""

    def __init__(self, statuses: mmap.mmap, number: int) -> None:
        self.statuses = statuses
        self.number = number
        self.pid = os.getpid()

    def note(self, status: int) -> None:
        if self.number and os.getpid() == self.pid:
            self.statuses[4 * self.number : 4 * self.number + 4] = (status + 1).to_bytes(4, "little")


def run(script: str, code: CodeType, account: Account) -> NoReturn:
    """Run the script as `python SCRIPT` does, and end as it does, but for the taking apart of the interpreter."""
    main = type(sys)("__main__")
    names = main.__dict__
    names.update(__file__=script, __builtins__=builtins, __cached__=None, __package__=None)
    names["__loader__"] = type(_LOADER)("__main__", script)
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    sys.modules["__main__"] = main
    status, interrupted = 0, False
    try:
        exec(code, names)  # noqa: S102 - the tool itself
    except SystemExit as left:
        status = exit_code(left.code)
    except BaseException as error:
        status, interrupted = 1, isinstance(error, KeyboardInterrupt)
        tell(error)
    wind_up()
    sys.modules.pop("__main__", None)
    del main, names  # so that they are collected: destructors run, and files are written
    if not finish():
        status = 120
    if interrupted:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGINT)
    account.note(status)
    os._exit(status)


def exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def tell(error: BaseException) -> None:
    """Write the traceback, without our own frame at its top."""
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:
        sys.__excepthook__(type(error), error, error.__traceback__)


def wind_up() -> None:
    """Wait for threads, and run what was registered for the exit."""
    for act in (getattr(sys.modules.get("threading"), "_shutdown", None), atexit._run_exitfuncs):
        try:
            if act is not None:
                act()
        except BaseException as error:
            tell(error)


def finish() -> bool:
    """Collect what the script made and write what is left in its files; tell if standard output could be written."""
    gc.collect()  # what was there before the fork is frozen, so this is short
    streams = [one for one in gc.get_objects() if type(one).__name__ in ("TextIOWrapper", "BufferedWriter")]
    fine = True
    for stream in (*streams, sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError, AttributeError):
            fine = fine and stream is not sys.stdout
    return fine


_LOADER: Any = globals()["__loader__"]
