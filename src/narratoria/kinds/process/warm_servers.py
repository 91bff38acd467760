"""Warm tools: a fork server for each Python script that asks for one, and calls that are forks of it.

A fork is supervised as a cold start is: it leads its own session, carries the tag of its call among its limits
(`marks.py`), and is written into the ledger. It begins when it has reported itself, and cannot report itself once the
call was given up: a server that dies or stalls before loses no call and doubles none, the call is started cold. One
that dies later takes no call with it.

A server is used as long as nothing has changed that a cold start would notice: the script and the modules it
imported, the environment, the folder, the limits. `MOST_SERVERS` and `MOST_BYTES` bound the memory of all; the server
ends itself when it is idle (`fork_server.py`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from narratoria.kinds.process import folder_removal, fork_server, marks, platform
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.fork_server import LARGEST, READY, UNFIT
from narratoria.kinds.process.forked_call import REAP_PATIENCE, ForkedCall, Statuses, readable, shut
from narratoria.kinds.process.warm_conditions import Key, Verdict, changed, circumstances, obstacle, signature

MOST_SERVERS: Final = 16
MOST_BYTES: Final = 512 << 20
"""Resident memory of all servers together."""
START_PATIENCE: Final = 10.0
FORK_PATIENCE: Final = 5.0
_MOST_FAILURES: Final = 3
_PAUSE: Final = 60.0
_MOST_VERDICTS: Final = 256
_PER_CALL: Final = frozenset(
    name.encode() for name in ("TMPDIR", "TEMP", "TMP", "TRACEPARENT", "TRACESTATE", marks.COOKIE)
)


class Cold(Exception):
    """A call has to be started cold; the message says why, if that is worth saying."""


@dataclass(frozen=True)
class WarmScript:
    """A Python script that is forked from a warm interpreter."""

    interpreter: tuple[str, ...]
    script: str
    idle: float = 300.0
    """Seconds without a call after which its server ends itself."""

    async def start(
        self, call: int, stdin: bytes, env: marks.Environment, cwd: Path | None
    ) -> platform.Child | str:
        """Start a call in a fork; or return why it has to be started cold, "" if that passes."""
        loop = asyncio.get_running_loop()
        variables = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        try:
            if obstacle():  # which `doctor` tells: it is not the tool's fault
                raise Cold("")
            folder = os.fsencode(cwd) if cwd is not None else os.getcwdb()  # noqa: PTH109
            lasting = {name: value for name, value in variables.items() if name not in _PER_CALL}
            key = self, folder, frozenset(lasting.items()), circumstances()
            own = {name: value for name, value in variables.items() if name in _PER_CALL}
            for _ in range(2):  # a server that was idle may end in this moment
                server = await _ready_server(key, self, lasting, folder, loop)
                try:
                    return await server.fork(call, stdin, own, folder, loop)
                except _Ended:
                    continue
        except Cold as cold:
            return str(cold)
        except OSError as error:  # no descriptor left, or its folder is gone: a cold start says it better
            return str(error)
        return ""


# --- servers -------------------------------------------------------------------------------------------


class _Ended(Exception):
    """The server had ended in order, being idle."""


_lock = threading.RLock()
_servers: dict[Key, _Server] = {}
_verdicts: dict[Key, Verdict] = {}
_failures: dict[Key, int] = {}


async def _ready_server(
    key: Key, script: WarmScript, env: Mapping[bytes, bytes], folder: bytes, loop: asyncio.AbstractEventLoop
) -> _Server:
    with _lock:
        verdict = _verdicts.get(key)
        if verdict is not None:
            if time.monotonic() < verdict.until and not changed(verdict.files):
                raise Cold(verdict.reason)
            del _verdicts[key]
        server = _servers.get(key)
        if server is not None and server.ready and changed(server.files):
            server.retire()
            server = None
        begins = server is None
        if server is None:
            _make_room()
            server = _servers[key] = _Server(key, script, env, folder, loop)
    if not server.ready:
        if begins:
            await readable(server.control.fileno(), START_PATIENCE, loop)
        server.look()
    return server


def _make_room() -> None:
    """End servers that nobody uses, the one that was used least recently first, until there is room for another."""
    while len(_servers) >= MOST_SERVERS:
        if not _end_one():
            raise Cold("")  # all are busy


def _end_one(but: _Server | None = None) -> bool:
    idle = [one for one in _servers.values() if not one.calls and one.ready and one is not but]
    if idle:
        min(idle, key=lambda one: one.used).retire()
    return bool(idle)


class _Server:
    """A fork server that was started, ready or not."""

    def __init__(
        self,
        key: Key,
        script: WarmScript,
        env: Mapping[bytes, bytes],
        folder: bytes,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.key = key
        self.script = script.script
        self.ready = False
        self.files: list[bytes] = []
        self.bytes = 0
        self.calls = 0
        self.used = time.monotonic()
        self._retired = False
        ours = custody()
        self._call, cookie = ours.begin(loop, serves=True)
        try:
            self._scratch = ours.scratch_folder()
            self.control, self.pid = self._spawn(
                script, {**env, marks.COOKIE.encode(): cookie.encode()}, folder
            )
        except BaseException:
            ours.end(self._call)
            raise
        ours.entrust(self._call, self.pid)
        self.control.setblocking(False)
        self._watched: tuple[weakref.ref[asyncio.AbstractEventLoop], platform.Watch] | None = None
        self._watch(loop)
        _at_exit()

    def _spawn(
        self, script: WarmScript, env: Mapping[bytes, bytes], folder: bytes
    ) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LARGEST)
            end = theirs.fileno()
            place = str(Path(fork_server.__file__).absolute().parent)
            argv = [*script.interpreter, "-c", fork_server.BOOT, place, str(script.idle), script.script]
            marked = {**env, **dict.fromkeys((b"TMPDIR", b"TEMP", b"TMP"), os.fsencode(self._scratch))}
            cwd = None if folder == os.getcwdb() else os.fsdecode(folder)  # noqa: PTH109
            with custody().tagged(self._call):
                return ours, platform.start(argv, marked, cwd, end, end, end)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    def look(self) -> None:
        """Read what the server says about its script; raise `Cold` if it is not ready."""
        try:
            said, passed, _, _ = socket.recv_fds(self.control, LARGEST, 1)
        except BlockingIOError:
            if time.monotonic() < self.used + START_PATIENCE:
                raise Cold("") from None  # another call waits for it
            file = os.fsencode(self.script)
            late = f"its modules were not imported within {START_PATIENCE:g} s"
            self._judge(late, [b"%s %s" % (signature(file), file)])
        except OSError:
            said = b""
        word, *more = said.split(b"\0")
        if word == UNFIT:
            self._judge(more[0].decode("utf-8", "replace"), more[1:])
        if word != READY:
            with contextlib.suppress(BlockingIOError):
                while more_said := self.control.recv(LARGEST):  # a traceback comes line by line
                    said += more_said
            last_line = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise self._failed(
                f"its server ended at its start: {last_line}" if last_line else "its server ended"
            )
        self.statuses = Statuses(passed[0])
        self.bytes, self.files = int(more[0]), more[1:]
        if self.bytes > MOST_BYTES:
            limit = f"all servers may have {MOST_BYTES >> 20}"
            self._judge(f"its modules take {self.bytes >> 20} MiB, and {limit}", self.files)
        self.ready = True
        with _lock:
            while sum(one.bytes for one in _servers.values()) > MOST_BYTES and _end_one(but=self):
                pass

    def _judge(self, reason: str, files: list[bytes] | None = None) -> NoReturn:
        """Note that its script cannot be forked."""
        with _lock:
            if len(_verdicts) >= _MOST_VERDICTS:
                _verdicts.clear()
            _verdicts[self.key] = Verdict(reason, files or [])
            self.retire()
        raise Cold(reason)

    def _failed(self, how: str) -> Cold:
        """Give the server up; after some failures in a row, try no other for a while."""
        with _lock:
            if not self._retired:  # else several calls waited for it
                _failures[self.key] = _failures.get(self.key, 0) + 1
            self.retire()
            if _failures.get(self.key, 0) >= _MOST_FAILURES:
                del _failures[self.key]
                reason = f"its server failed {_MOST_FAILURES} times; {how}"
                _verdicts[self.key] = Verdict(reason, until=time.monotonic() + _PAUSE)
        return Cold(how)

    # --- calls ----------------------------------------------------------------------------------------

    async def fork(
        self,
        call: int,
        stdin: bytes,
        env: Mapping[bytes, bytes],
        folder: bytes,
        loop: asyncio.AbstractEventLoop,
    ) -> platform.Child:
        """Return the process of a call, which has begun."""
        self._watch(loop)
        self.used = time.monotonic()
        number = self.statuses.take()
        mark = b"%d" % (custody().tag + call)
        given = [b"%s=%s" % (name, env[name]) if name in env else name for name in _PER_CALL]
        request = b"\0".join([b"%d" % number, mark, folder, *given])
        child, theirs = platform.streams(stdin)
        link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link.setblocking(False)
        with _lock:
            self.calls += 1
        try:
            try:
                socket.send_fds(self.control, [request], [*theirs, other.fileno()])
            except BlockingIOError:
                raise Cold("") from None  # many wait
            except OSError:  # it has ended, which the link tells too
                other.close()
            finally:
                other.close()
                for fd in theirs:
                    os.close(fd)
            await readable(link.fileno(), FORK_PATIENCE, loop)
            pid, pidfd = self._report(link)
        except BaseException:
            child.close()
            shut(link)  # a fork that was made ends by that
            self.let_go()
            raise
        _failures.pop(self.key, None)
        custody().entrust(call, pid)
        return ForkedCall(pid, child, pidfd, link, lambda: self.statuses.give_back(number), self.let_go)

    def _report(self, link: socket.socket) -> tuple[int, int]:
        """Read the report of a fork. Once our end is shut, none can come: then none begins."""
        stalls = False
        try:
            said, pidfds, _, _ = socket.recv_fds(link, 1024, 1)
        except BlockingIOError:
            link.shutdown(socket.SHUT_RD)
            said, pidfds, _, _ = socket.recv_fds(link, 1024, 1)  # it may have come just before
            stalls = True
        except OSError:
            said, pidfds = b"", []
        if pidfds:
            return int(said), pidfds[0]
        if said:
            raise Cold(said.decode("utf-8", "replace"))
        if stalls:
            raise self._failed(f"its server did not answer within {FORK_PATIENCE:g} s")
        status = self.end()
        if status == 0:
            raise _Ended
        how = "" if status in (None, -1) else f" with status {os.waitstatus_to_exitcode(status)}"
        raise self._failed(f"its server ended{how}")

    def let_go(self) -> None:
        """Note the end of a call."""
        with _lock:
            self.calls -= 1
            if self._retired and not self.calls:
                self.end()

    # --- ending ---------------------------------------------------------------------------------------

    def retire(self) -> None:
        """Use it for no further call, and end it with the last of its own."""
        self._retired = True
        if _servers.get(self.key) is self:
            del _servers[self.key]
        if not self.calls:
            self.end()

    def end(self) -> int | None:
        """End it now, and return its wait status, None if it is not known. Its calls go on without it."""
        if self.pid == 0:
            return None
        pid, self.pid = self.pid, 0
        if _servers.get(self.key) is self:
            del _servers[self.key]
        status = platform.reap(pid)
        watch = self._watched[1] if self._watched is not None else None
        if status is None:
            platform.kill(pid)
            if watch is not None:
                watch.wait(REAP_PATIENCE)
            status = platform.reap(pid)
        if watch is not None:
            watch.close()
        self.control.close()
        custody().end(self._call, unreaped=pid if status is None else None)
        folder_removal.remove(self._scratch)
        return status

    def forget(self) -> None:
        """Let go of it in a fork of the host: it is not ours."""
        self.pid = 0
        self.control.close()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Reap it when it has ended itself; one open loop watches it."""
        if self._watched is not None:
            listening, watch = self._watched[0](), self._watched[1]
            if listening is not None and not listening.is_closed():
                return
            watch.close()
        watch = platform.watch_exit(loop, self.pid, lambda: loop.call_soon(self._gone))
        self._watched = weakref.ref(loop), watch

    def _gone(self) -> None:
        with _lock:
            self.retire()


# --- the end of this process ---------------------------------------------------------------------------

_registered = False


def _at_exit() -> None:
    global _registered
    if not _registered:
        _registered = True
        atexit.register(end_servers)  # after the custody's, so it runs before
        os.register_at_fork(after_in_child=_forked)


def end_servers() -> None:
    """End every server that has no call; the others end with their calls."""
    with _lock:
        for server in [*_servers.values()]:
            server.retire()
        _verdicts.clear()
        _failures.clear()


def _forked() -> None:
    global _lock
    for server in _servers.values():
        server.forget()
    _servers.clear()
    _lock = threading.RLock()
