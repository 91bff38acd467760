"""An MCP server that is a program: it runs under our custody, and speaks JSON-RPC by lines on its stdin and stdout.

The program is the leader of a group of its own, with our marks on it and the short environment of a tool. Whatever
ends it, the whole group is killed before its leader is reaped, and a sweep finds children that left the group; if this
runtime dies, the guardian does both (`custody.py`). Lines of its output that are no messages are skipped and counted,
its stderr is kept to the last bytes, and nothing it writes, or fails to read, is buffered without a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from narratoria import bounds
from narratoria.errors import OUTPUT_LIMIT, PROTOCOL_ERROR
from narratoria.kinds.environment import environment
from narratoria.kinds.line_faults import printable
from narratoria.kinds.mcp.server_file import McpServer
from narratoria.kinds.process import folder_removal, marks, platform
from narratoria.kinds.process.cells.cell_pool import cgroup_for
from narratoria.kinds.process.cells.cgroups import Cgroup
from narratoria.kinds.process.confinement import CELLS, Confinement, nothing_holds, told, tried_walls, wrapped
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.launch import LaunchRefused, NotExecutable, ToolMissing, refused
from narratoria.kinds.sandbox import NETWORK, ProfileName, profile_of
from narratoria.unicode_text import escaped

_log: Final = logging.getLogger("narratoria")
MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""Cap on one message of a server."""
STDERR_BYTES: Final = 64 * 1024
NOISE_LINES: Final = 10_000
NOISE_BYTES: Final = 16 * 1024 * 1024
"""Caps on output that is no message; a server that passes one is ended."""
CHECKED_BYTES: Final = 64 * 1024
"""Larger messages are measured before they are decoded."""
GRACE: Final = 2.0  # seconds between the end of its stdin and TERM
TERM_GRACE: Final = 1.0
KILL_PATIENCE: Final = 5.0
LINGER: Final = 0.25  # seconds to read on after its exit; a child may hold the pipe
_NOISE_SHOWN: Final = 3

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


class ServerProcess:
    """The process of one connection, from its start to its end; used once."""

    def __init__(self, server: McpServer, on_over: Callable[[], object] = lambda: None) -> None:
        self.server = server
        self.over = False
        """True when it has exited, or broke a bound: nothing more is heard from it. Then `on_over` is called."""
        self._on_over = on_over
        self.fault: tuple[str, str] | None = None
        """The bound it broke: a code and a sentence."""
        self.noise = 0
        self.noise_heads: list[str] = []
        self.hung = False
        """True once it is known not to answer: it gets no time to say goodbye."""
        self._noise_bytes = 0
        self._stderr = bytearray()
        self._exited = asyncio.Event()
        self._status: int | None = None
        self._watch: platform.Watch | None = None
        self._child: platform.Child | None = None
        self._waiting: set[asyncio.Event] = set()
        self._cgroup: Cgroup | None = None

    # --- its life ---------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Streams]:
        """Start it and yield the streams of messages; end it and its children afterwards, in every case.

        Raises `LaunchRefused` if it cannot be started.
        """
        loop = asyncio.get_running_loop()
        call, cookie = custody().begin(loop)
        scratch = ""
        try:
            scratch = custody().scratch_folder()
            await self._tell_walls()
            self._start(loop, call, cookie, scratch)
            to_session, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            outbox, from_session = anyio.create_memory_object_stream[SessionMessage](0)
            async with to_session, inbox, outbox, from_session, anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear, to_session)
                tasks.start_soon(self._hear_stderr)
                tasks.start_soon(self._speak, from_session)
                try:
                    yield inbox, outbox
                finally:
                    with anyio.CancelScope(shield=True):
                        inbox.close()
                        await self._say_goodbye()
                    tasks.cancel_scope.cancel()
        finally:
            self._kill_and_reap(loop, call)
            if scratch:
                await asyncio.shield(asyncio.to_thread(folder_removal.remove, scratch))

    def _start(self, loop: asyncio.AbstractEventLoop, call: int, cookie: str, scratch: str) -> None:
        server = self.server
        temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), scratch)
        added = {
            os.fsencode(name): os.fsencode(value)
            for name, value in {**temporary, **server.env, marks.COOKIE: cookie}.items()
        }
        env = {**environment(), **added}
        argv = [self._program(env), *server.args]
        walls = self._confinement(argv)
        if walls is not None:
            env = {**walls.variables(environment(), scratch), **added}
            self._cgroup = cgroup_for(call, walls.spec(scratch))
            argv = wrapped(walls, argv, scratch, self._cgroup)
        cwd = None if server.cwd is None else str(server.cwd)
        if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112
            raise NotExecutable(f"its folder {cwd} does not exist; check `cwd`")
        try:
            with custody().tagged(call):
                child = platform.spawn(argv, b"", env, cwd, hold_stdin=True)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                raise refused(argv, error) from error
            raise LaunchRefused(f"{argv[0]}: {error}") from error  # a NUL in an argument
        self._child = child
        custody().entrust(call, child.pid)
        os.set_blocking(child.stdout, False)
        os.set_blocking(child.stderr, False)
        self._watch = platform.watch_exit(loop, child.pid, self._on_exit)

    async def _tell_walls(self) -> None:
        """Log the walls of its profile that this system lacks; one that must not be missing ends it at its start."""
        profile = profile_of(self._own_profile)
        if profile.confines:
            _, missing = await tried_walls(profile.name)
            if missing:
                _log.warning(
                    "%s: it runs in the sandbox %r without %s", self.server.name, profile.name, told(missing)
                )

    @property
    def _own_profile(self) -> ProfileName:
        return "trusted" if self.server.story is None else "story"

    def _confinement(self, argv: list[str]) -> Confinement | None:
        """Return the walls of its profile: that of a story's server, or the one a person chose; None without any."""
        server = self.server
        profile = profile_of(self._own_profile)
        if not profile.confines:
            return None
        tool = Path(argv[0]) if server.story is None else server.story / "story.toml"
        walls = Confinement.of(profile, argv, tool, asks_network=NETWORK in server.settings.permissions)
        if not CELLS:
            walls.check(nothing_holds())
            return None
        return walls

    def _program(self, env: dict[bytes, bytes]) -> str:
        command = os.path.expanduser(self.server.command)  # noqa: PTH111
        if os.sep in command:
            here = self.server.cwd or os.curdir
            return os.path.abspath(os.path.join(here, command))  # noqa: PTH100, PTH118
        found = shutil.which(command, path=os.fsdecode(env.get(b"PATH", b"")) or None)
        if found is None:
            raise ToolMissing(f"the program {command!r} is not on the PATH; install it, or give its path")
        return found

    def _on_exit(self) -> None:
        self._exited.set()
        for one in self._waiting:
            one.set()

    async def _say_goodbye(self) -> None:
        """Close its stdin, then TERM, then KILL; every wait is bounded."""
        # MCP, "Shutdown" of stdio: close the input, wait, then signal.
        if self._child is None:
            return
        self._close_stdin()
        group = self._child.pid
        steps = [(0, GRACE), (signal.SIGTERM, TERM_GRACE), (signal.SIGKILL, KILL_PATIENCE)]
        for number, patience in steps[1:] if self.hung else steps:
            if self._exited.is_set():
                return
            if number:
                platform.signal_group(group, number)
            with anyio.move_on_after(patience):
                await self._exited.wait()

    def _kill_and_reap(self, loop: asyncio.AbstractEventLoop, call: int) -> None:
        """Kill the group, reap its leader and close the streams: blocking but brief."""
        child, unreaped = self._child, None
        if child is not None:
            platform.signal_group(child.pid, signal.SIGKILL)
            if self._watch is not None:
                self._watch.wait(0.0 if self._exited.is_set() else KILL_PATIENCE)
                self._watch.close()
            self._status = platform.reap(child.pid)
            unreaped = child.pid if self._status is None else None
            self._close_stdin()
            self._keep_stderr(platform.read_now(child.stderr) or b"")
            os.close(child.stdout)
            os.close(child.stderr)
            self._child = None
        self.over = True
        custody().end(call, unreaped=unreaped)
        if self._cgroup is not None:
            self._cgroup.remove()
        if not loop.is_closed():
            custody().sweep_soon(loop)

    def _close_stdin(self) -> None:
        if self._child is not None and self._child.stdin >= 0:
            asyncio.get_running_loop().remove_writer(self._child.stdin)
            os.close(self._child.stdin)
            self._child.stdin = -1

    # --- its end, in words ------------------------------------------------------------------------------

    @property
    def ending(self) -> str:
        """The way it ended, in words, with the last of its stderr."""
        if self.fault is not None:
            how = self.fault[1]
        elif self._status in (None, -1):
            how = "closed the connection"
        else:
            code = os.waitstatus_to_exitcode(self._status or 0)
            how = f"exited with status {code}" if code >= 0 else f"was ended by signal {-code}"
        last = " / ".join(self.stderr.strip().splitlines()[-3:])
        return f"{how}; stderr ends: {escaped(last[-600:])}" if last else how

    @property
    def stderr(self) -> str:
        """The end of its stderr, without secrets."""
        return self.server.redaction.text(bytes(self._stderr).decode("utf-8", "replace"))

    # --- its streams ------------------------------------------------------------------------------------

    async def _hear(self, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass on its messages until it ends. Nothing is read while one waits to be taken."""
        assert self._child is not None  # noqa: S101 - started before
        stdout, line = self._child.stdout, bytearray()
        last_look, wanted = False, True
        while True:
            data = platform.read_now(stdout)
            if data is None:
                if last_look:
                    break
                last_look = self._exited.is_set()
                await self._readable(stdout)
                continue
            if not data:
                break
            *whole, rest = data.split(b"\n")
            for part in whole:
                line += part
                wanted = wanted and await self._take(bytes(line), to_session)
                line.clear()
            line += rest
            await anyio.lowlevel.checkpoint()
            if len(line) > MESSAGE_BYTES:
                self.fault = OUTPUT_LIMIT, f"sent a message of more than {MESSAGE_BYTES:,} bytes"
            if self.fault is not None:
                break
        self.over = True
        to_session.close()  # requests that wait for an answer fail now
        self._on_over()

    async def _take(
        self, line: bytes, to_session: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> bool:
        """Pass on one line; return False when nobody listens any more."""
        if not line.strip():
            return True
        try:
            if len(line) > CHECKED_BYTES:
                bounds.check(line)
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except bounds.NestedTooDeeply as error:
            self.fault = PROTOCOL_ERROR, f"sent a message that is nested too deeply to be read: {error}"
            return False
        except bounds.OutOfBounds as error:
            self.fault = OUTPUT_LIMIT, f"sent a message that is too large: {error}"
            return False
        except ValueError as error:
            if "recursion limit" in str(error) and line.lstrip().startswith(b"{"):
                self.fault = PROTOCOL_ERROR, "sent a message that is nested too deeply to be read"
                return False
            self._note_noise(line)
            return self.fault is None
        try:
            await to_session.send(SessionMessage(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return False
        return True

    def _note_noise(self, line: bytes) -> None:
        self.noise += 1
        self._noise_bytes += len(line)
        if len(self.noise_heads) < _NOISE_SHOWN:
            self.noise_heads.append(self.server.redaction.text(printable(line)))
        if self.noise > NOISE_LINES or self._noise_bytes > NOISE_BYTES:
            self.fault = (
                PROTOCOL_ERROR,
                f"wrote {self.noise:,} lines to stdout that are no messages, such as {self.noise_heads[0]}",
            )

    async def _hear_stderr(self) -> None:
        assert self._child is not None  # noqa: S101
        stderr, last_look = self._child.stderr, False
        while True:
            data = platform.read_now(stderr)
            if data is None:
                if last_look:
                    return
                last_look = self._exited.is_set()
                await self._readable(stderr)
            elif data:
                self._keep_stderr(data)
                await anyio.lowlevel.checkpoint()
            else:
                return

    def _keep_stderr(self, data: bytes) -> None:
        self._stderr += data
        del self._stderr[:-STDERR_BYTES]

    async def _speak(self, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write messages to it, one after the other; one that it does not read holds up the next."""
        async for item in from_session:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            unsent = memoryview(f"{text}\n".encode())
            while unsent and self._child is not None and self._child.stdin >= 0:
                try:
                    unsent = unsent[os.write(self._child.stdin, unsent) :]
                except BlockingIOError:
                    await self._writable(self._child.stdin)
                except OSError:  # it closed its input, or is gone: its end tells the rest
                    return

    async def _readable(self, fd: int) -> None:
        """Wait until there is something to read; after the exit of the process at most for a moment."""
        loop = asyncio.get_running_loop()
        ready = self._waiter()
        loop.add_reader(fd, ready.set)
        try:
            await self._woken(ready)
        finally:
            loop.remove_reader(fd)

    async def _writable(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        ready = self._waiter()
        loop.add_writer(fd, ready.set)
        try:
            await self._woken(ready)
        finally:
            if (
                self._child is not None and self._child.stdin == fd
            ):  # else closed, and the number may be another's
                loop.remove_writer(fd)

    def _waiter(self) -> asyncio.Event:
        ready = asyncio.Event()
        self._waiting.add(ready)
        return ready

    async def _woken(self, ready: asyncio.Event) -> None:
        try:
            with anyio.move_on_after(LINGER if self._exited.is_set() else math.inf):
                await ready.wait()
        finally:
            self._waiting.discard(ready)
