"""One tool process from launch to exit: write its input, read its output as it comes, end it in every case.

Everything happens in one coroutine that sleeps until a descriptor, a timer or the exit wakes it, so there is no task
to lose. It never waits for end-of-file, since a grandchild may hold the pipe; a process that lingers after `done` is
ended and `done` stands. In every case the whole group is killed before its leader is reaped, while the leader's pid
cannot be taken by another process.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from narratoria.events import ToolEvent
from narratoria.kinds.environment import environment
from narratoria.kinds.ndjson import Decoder, Limits, ProtocolFailure
from narratoria.kinds.process import listeners, marks, platform
from narratoria.kinds.process.custody import custody, sweep
from narratoria.kinds.process.launch import refused
from narratoria.kinds.process.process_outcome import ProcessOutcome

__all__ = ["EventSink", "ProcessOutcome", "run_process", "sweep"]

EventSink = Callable[[list[ToolEvent]], Awaitable[None] | None]
"""Takes the events as they arrive. While the returned awaitable is pending, nothing more is read."""
WarmStart = Callable[[int, bytes, marks.Environment, Path | None], Awaitable[platform.Child | str]]
"""Starts a call faster than by its command; or returns why it cannot."""

_BUSY_TRIES: Final = 20
_BUSY_PAUSE: Final = 0.01
_KILL_PATIENCE: Final = 5.0


async def run_process(
    argv: Sequence[str],
    stdin: bytes,
    *,
    tool: str,
    on_events: EventSink,
    timeout: float | None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    env: marks.Environment | None = None,
    cwd: Path | None = None,
    grace: float = 1.0,
    linger: float = 0.5,
    warm: WarmStart | None = None,
    spent: Callable[[float], None] | None = None,
) -> ProcessOutcome:
    """Run a tool to its end. `env` is its environment without our cookie; by default the standard variables.

    Raises `LaunchRefused` when it cannot be started. `grace` is the time between TERM and KILL; `linger` the time a
    process has after `done`, or its output after its exit. A process that closed its output without `done` can only
    fail; it has until the timeout, or `linger` when there is none. When cancelled, or when `on_events` raises, the
    group is ended and reaped before the exception goes on. `spent` is called with the CPU seconds, however it ends.
    """
    started = time.monotonic()
    call, cookie = custody().begin(asyncio.get_running_loop())
    try:
        listener = _listener(argv)
        marked = _with_cookie(environment() if env is None else env, cookie)
        begun = "" if warm is None else await warm(call, stdin, marked, cwd)
        child = await _spawn(call, list(argv), stdin, marked, cwd) if isinstance(begun, str) else begun
    except BaseException:
        custody().end(call)
        raise
    async with _Supervision(
        child, listener, call, Decoder(tool, limits), on_events, grace, linger, spent
    ) as supervision:
        await supervision.listen(timeout)
    return supervision.outcome(time.monotonic() - started, begun if isinstance(begun, str) else "")


def _with_cookie(env: marks.Environment, cookie: str) -> marks.Environment:
    marked: dict[Any, Any] = {**env}
    if isinstance(next(iter(env), ""), str):
        marked[marks.COOKIE] = cookie
    else:
        marked[marks.COOKIE.encode()] = cookie.encode()
    return marked


def _listener(argv: Sequence[str]) -> listeners.LoopListener | listeners.EpollListener:
    try:
        return listeners.listener_of(asyncio.get_running_loop())
    except OSError as error:
        raise refused(argv, error) from error


async def _spawn(
    call: int, argv: list[str], stdin: bytes, env: marks.Environment, cwd: Path | None
) -> platform.Child:
    for last in (*[False] * _BUSY_TRIES, True):
        try:
            with custody().tagged(call):
                return platform.spawn(argv, stdin, env, None if cwd is None else str(cwd))
        except OSError as error:
            # A fork elsewhere may still hold a file that was just written; that passes.
            if error.errno != errno.ETXTBSY or last:
                raise refused(argv, error) from error
        await asyncio.sleep(_BUSY_PAUSE)
    raise AssertionError("the last try returns or raises")


class _Supervision:
    """The life of one process; used once, as a context."""

    def __init__(
        self,
        child: platform.Child,
        listener: listeners.LoopListener | listeners.EpollListener,
        call: int,
        decoder: Decoder,
        on_events: EventSink,
        grace: float,
        linger: float,
        spent: Callable[[float], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._child = child
        self._spent = spent
        child.metered = spent is not None
        self._call = call
        self._decoder = decoder
        self._on_events = on_events
        self._grace = grace
        self._linger = linger
        self._waker: asyncio.Future[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._watch: platform.Watch | None = None
        self._inbox: bytes | None = None
        self._stderr = bytearray()
        self._exited = False
        self._terminating = False
        self._patience = _KILL_PATIENCE
        self._timed_out = False
        self._lingered = False
        self._closed_early = False
        self._failure: ProtocolFailure | None = None
        self._status: int | None = None

    async def __aenter__(self) -> _Supervision:
        child = self._child
        custody().entrust(self._call, child.pid)
        try:
            self._watch = child.watch(self._loop, self._on_exit)
            self._listener.listen(child.stdout, self._on_stdout)
            self._listener.listen(child.stderr, self._on_stderr)
            if child.unsent:
                self._loop.add_writer(child.stdin, self._on_stdin)
        except BaseException:
            self._kill_and_reap()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # A coroutine that is thrown away cannot wait; then only the blocking half remains.
            if kind is not GeneratorExit and not self._exited:
                await self._end()
        finally:
            self._kill_and_reap()

    def outcome(self, duration: float, cold: str) -> ProcessOutcome:
        code = None if self._status in (None, -1) else os.waitstatus_to_exitcode(self._status)
        return ProcessOutcome(
            exit_code=None if code is None or code < 0 else code,
            signal=-code if code is not None and code < 0 else None,
            done=self._decoder.done,
            failure=self._failure,
            timed_out=self._timed_out,
            stderr=bytes(self._stderr).decode("utf-8", "replace"),
            duration=duration,
            after_done=self._decoder.after_done,
            lingered=self._lingered,
            crlf=self._decoder.crlf,
            after_done_line=self._decoder.lines + 1 if self._decoder.after_done else 0,
            after_done_head=self._decoder.after_done_head,
            pid=self._child.pid,
            closed_stdout=self._closed_early,
            cold=cold,
            cpu=self._child.cpu,
        )

    # --- what the loop calls --------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def _on_exit(self) -> None:
        self._exited = True
        self._wake()

    def _on_stdout(self) -> None:
        # Called only when there is something to read, so reading does not block.
        if self._inbox is None:
            self._inbox = os.read(self._child.stdout, platform.PIPE_BYTES)
            if not self._inbox:
                self._close_stdout()
            self._wake()

    def _on_stderr(self) -> None:
        self._keep_stderr(os.read(self._child.stderr, platform.PIPE_BYTES))

    def _keep_stderr(self, data: bytes) -> None:
        if not data:
            self._child.stderr = self._close(self._child.stderr)
        self._stderr += data
        del self._stderr[: -self._decoder.limits.stderr_bytes]

    def _on_stdin(self) -> None:
        child = self._child
        try:
            child.unsent = child.unsent[os.write(child.stdin, child.unsent) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            child.unsent = child.unsent[:0]  # it does not want its input; that is its right
        if not child.unsent:
            self._close_stdin()

    def _on_timeout(self) -> None:
        # Acts by itself, so that a subscriber who takes its time does not prolong the tool's life.
        if not self._exited:
            self._timed_out = True
            self._terminate()
            self._wake()

    def _on_linger(self) -> None:
        self._lingered = not self._exited
        self._wake()

    # --- listening ------------------------------------------------------------------------------------

    async def listen(self, timeout: float | None) -> None:
        """Pass events on until the process exits or has to be ended."""
        if timeout is not None:
            self._at(timeout, self._on_timeout)
        while not self._exited:
            await self._next()
            await self._take(bounded=timeout is not None)
            if self._failure is not None or self._timed_out or self._lingered:
                self._closed_early = self._child.stdout < 0 and self._decoder.done is None
                return
        await self._drain()

    async def _next(self) -> None:
        """Sleep until something happens."""
        self._waker = self._loop.create_future()
        try:
            await self._waker
        finally:
            self._waker = None

    async def _take(self, *, bounded: bool = True) -> None:
        """Decode the bytes in the inbox and deliver the events."""
        data, self._inbox = self._inbox, None
        if data is None:
            return
        decoder = self._decoder
        was_done = decoder.done is not None
        try:
            events = decoder.feed(data) if data else decoder.close()
        except ProtocolFailure as failure:
            self._failure, events = failure, failure.events
        if events:
            delivered = self._on_events(events)
            if delivered is not None:
                await self._paused(delivered)
        is_done = decoder.done is not None
        if self._exited:
            return  # most are gone by now, and need no time to go
        if (is_done and not was_done) or not (data or is_done or bounded):
            self._at(self._linger, self._on_linger)

    async def _paused(self, delivery: Awaitable[None]) -> None:
        """Wait for a subscriber; meanwhile the pipe fills and the tool has to wait too."""
        if self._child.stdout >= 0:
            self._listener.forget(self._child.stdout)
        await delivery
        if self._child.stdout >= 0:
            self._listener.listen(self._child.stdout, self._on_stdout)

    async def _drain(self) -> None:
        """Read, after the exit, the rest of the pipe, with a moment for a child that is still writing.

        Without `done`, its last line may be on its way through a pipeline of the tool's (`… | tee log`).
        """
        if self._child.stdout >= 0:
            os.set_blocking(self._child.stdout, False)
        until = self._loop.time() + self._linger
        owed = platform.PIPE_BYTES
        while self._child.stdout >= 0 and self._failure is None:
            if self._inbox is None:
                self._inbox = platform.read_now(self._child.stdout)
            overdue = self._loop.time() >= until
            if self._inbox is None:
                if overdue or self._decoder.done is not None:
                    break
                self._at(until - self._loop.time(), self._wake)
                await self._next()
                continue
            if overdue and owed <= 0:
                break  # a daemon that writes on and on
            owed -= len(self._inbox)
            if not self._inbox:
                self._close_stdout()
            await self._take()
        if self._failure is None:
            self._inbox = self._inbox or b""
            await self._take()

    # --- ending ---------------------------------------------------------------------------------------

    def _terminate(self) -> None:
        """TERM to the whole group now, KILL after the grace period; the second call changes nothing."""
        if not self._terminating:
            self._terminating = True
            self._child.signal_group(signal.SIGTERM)
            self._at(self._grace, lambda: self._child.signal_group(signal.SIGKILL))

    async def _end(self) -> None:
        self._terminate()
        self._close_stdin()
        self._close_stdout()
        self._at(self._grace + _KILL_PATIENCE, self._wake)
        until = self._loop.time() + self._grace + _KILL_PATIENCE
        while not self._exited and self._loop.time() < until:
            await self._next()
        self._patience = 0.0  # who survives a KILL that long hangs in the kernel

    def _kill_and_reap(self) -> None:
        """Kill, reap and close: blocking but brief, whatever came before."""
        for timer in self._timers:
            timer.cancel()
        self._child.signal_group(signal.SIGKILL)
        if not self._exited and self._watch is not None:
            self._watch.wait(self._patience)
        self._status = self._child.reap()
        if self._spent is not None:
            self._spent(self._child.cpu)
        if self._watch is not None:
            self._watch.close()
        self._close_stdin()
        self._close_stdout()
        self._close_stderr()
        custody().end(self._call, unreaped=self._child.pid if self._status is None else None)
        if not self._loop.is_closed():
            custody().sweep_soon(self._loop)

    def _at(self, delay: float, act: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(delay, act))

    def _close_stdin(self) -> None:
        if self._child.stdin >= 0:
            if not self._loop.is_closed():
                self._loop.remove_writer(self._child.stdin)
            os.close(self._child.stdin)
            self._child.stdin = -1

    def _close_stdout(self) -> None:
        self._child.stdout = self._close(self._child.stdout)

    def _close_stderr(self) -> None:
        """Read the rest of stderr once: a daemon may go on writing, and no pipe holds more."""
        if self._child.stderr >= 0:
            os.set_blocking(self._child.stderr, False)
            self._keep_stderr(platform.read_now(self._child.stderr) or b"")
            self._child.stderr = self._close(self._child.stderr)

    def _close(self, fd: int) -> int:
        if fd >= 0:
            self._listener.forget(fd)
            os.close(fd)
        return -1
