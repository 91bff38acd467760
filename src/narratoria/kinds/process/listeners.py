"""Hearing descriptors: a callback when one of a process can be read."""

from __future__ import annotations

import select
import weakref
from collections.abc import Callable

TYPE_CHECKING = False

if TYPE_CHECKING:
    import asyncio


class LoopListener:
    """Watches descriptors for reading by the loop's own selector."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def listen(self, fd: int, heard: Callable[[], None]) -> None:
        self._loop.add_reader(fd, heard)

    def forget(self, fd: int) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(fd)


class EpollListener:
    """Watches descriptors at a tenth of the cost: the loop watches one epoll, and that watches all of ours.

    Three descriptors a launch through the loop's selector would be a third of the cost of a launch. It must not refer
    to the loop, which is the key of a weak mapping.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._epoll = select.epoll()
        self._heard: dict[int, Callable[[], None]] = {}
        loop.add_reader(self._epoll.fileno(), self._dispatch)

    def listen(self, fd: int, heard: Callable[[], None]) -> None:
        self._heard[fd] = heard
        self._epoll.register(fd, select.EPOLLIN)

    def forget(self, fd: int) -> None:
        if self._heard.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def _dispatch(self) -> None:
        for fd, _ in self._epoll.poll(0):
            if (heard := self._heard.get(fd)) is not None:
                heard()


_listeners: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, EpollListener] = weakref.WeakKeyDictionary()


def listener_of(loop: asyncio.AbstractEventLoop) -> LoopListener | EpollListener:
    """Return the watcher of a loop. Callbacks must not watch further descriptors: a reused number would be confused."""
    if not hasattr(select, "epoll"):
        return LoopListener(loop)
    listener = _listeners.get(loop)
    if listener is None:
        listener = _listeners[loop] = EpollListener(loop)
    return listener
