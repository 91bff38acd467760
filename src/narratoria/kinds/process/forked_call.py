"""A call in a fork of a server (`warm_servers.py`), supervised as a process of our own."""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import Final

from narratoria.kinds.process import listeners, platform
from narratoria.kinds.process.fork_server import ALIVE, STATUSES

REAP_PATIENCE: Final = 1.0
"""Seconds in which a server has to tell how a call ended, or to be gone itself."""


class Statuses:
    """A page with the exit statuses of calls that end by themselves, which their forks write."""

    def __init__(self, fd: int) -> None:
        self._page = mmap.mmap(fd, 4 * STATUSES)
        os.close(fd)
        self._free = list(range(1, STATUSES))

    def take(self) -> int:
        """Return the number of a free place; 0, which is none, if all are taken."""
        return self._free.pop() if self._free else 0

    def give_back(self, number: int) -> int | None:
        """Return the exit status in a place, None if there is none, and free it."""
        place = slice(4 * number, 4 * number + 4)
        found = int.from_bytes(self._page[place], "little")
        self._page[place] = bytes(4)
        if number:
            self._free.append(number)
        return found - 1 if found else None


class ForkedCall(platform.Child):
    """A call in a fork of a server, which is its parent and reaps it when the link is shut.

    Its descriptor tells its end. It writes its status itself when it exits by itself; else the server knows it.
    """

    __slots__ = ("_ended", "_link", "_pidfd", "_status")

    def __init__(
        self,
        pid: int,
        streams: platform.Child,
        pidfd: int,
        link: socket.socket,
        status: Callable[[], int | None],
        ended: Callable[[], None],
    ) -> None:
        super().__init__(pid, streams.stdin, streams.unsent, streams.stdout, streams.stderr)
        self._pidfd = pidfd
        self._link = link
        self._status = status
        self._ended = ended

    def watch(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], object]) -> platform.Watch:
        return platform.PidfdWatch(listeners.listener_of(loop), self.pid, ended, os.dup(self._pidfd))

    def signal_group(self, number: int) -> None:
        try:
            signal.pidfd_send_signal(self._pidfd, 0)
        except ProcessLookupError:
            return  # without its server it was reaped by another, and its number may be taken
        platform.signal_group(self.pid, number)

    def reap(self) -> int | None:
        """Return its wait status. It is asked for only when the group was killed. Without its server nobody may know
        it; then it did not exit as Python does, and counts as killed.
        """
        if self.metered:
            self.look_up_cpu()
        exited = self._status()
        said = self._asked() if exited is None else b""
        shut(self._link)
        os.close(self._pidfd)
        self._ended()
        if exited is not None:
            return exited << 8
        if said == ALIVE:
            return None
        if said:
            return int(said)
        status = platform.reap(self.pid)
        return int(signal.SIGKILL) if status == -1 else status

    def _asked(self) -> bytes:
        """Ask the server for the status; return nothing if it is gone."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)
            poll = select.poll()
            poll.register(self._link, select.POLLIN)
            if poll.poll(REAP_PATIENCE * 1000):
                return self._link.recv(64)
        return b""


def shut(link: socket.socket) -> None:
    """Shut a link for good, also if a fork of this process holds a copy of it: the server then ends its call."""
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    link.close()


async def readable(fd: int, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
    """Wait until there is something to read, or the time is up."""
    listener = listeners.listener_of(loop)
    heard: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not heard.done():
            heard.set_result(None)

    timer = loop.call_later(seconds, wake)
    listener.listen(fd, wake)
    try:
        await heard
    finally:
        listener.forget(fd)
        timer.cancel()
