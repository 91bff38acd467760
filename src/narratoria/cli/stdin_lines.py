"""Lines of standard input, read so that a command can end while it waits for one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")
_PIECE: Final = 64 * 1024
_LOOK: Final = 0.1  # seconds after which a waiting thread looks if its line is still wanted
_LATE: Final = re.compile(
    rb"\x1b\[\?[\d;]*c"
)  # what a terminal says of itself when nobody waits for it any more
_CONTROLS: Final = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]?|O.|)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_unread = bytearray()


class _Reader(threading.Thread):
    """A thread that may wait for ever."""

    given_up = False  # nobody wants its line any more
    looks = False  # it will see that


async def in_daemon_thread(act: Callable[[], T]) -> T:
    """Return the result of `act`, which may wait for ever: neither the loop nor the process waits for it when they
    end. When the caller is cancelled, `read_line` stops, so that the next line is for the next reader.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = act()
        except BaseException as problem:
            error = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    reader = _Reader(target=work, name="input", daemon=True)
    reader.start()
    try:
        return await future
    except asyncio.CancelledError:
        reader.given_up = True
        if reader.looks:
            reader.join(3 * _LOOK)
        raise


def read_line(ask: Callable[[], object] | None = None) -> str | None:
    """Return the next line, None at the end. Bytes that are not UTF-8 become question marks: a slip must not end a
    game. `ask` prints a question, once the terminal shows what is typed.

    It does not use `sys.stdin.buffer`: its lock, held by a waiting thread, would break the interpreter's exit.
    """
    if sys.stdin is None:
        return None
    fd = sys.stdin.fileno()
    with _by_lines(fd):
        if ask is not None:
            ask()
        while b"\n" not in _unread:
            if not _ready(fd):
                return None
            piece = os.read(fd, _PIECE)
            if not piece:
                break
            _unread.extend(piece)
    line, end, rest = _LATE.sub(b"", bytes(_unread)).partition(b"\n")
    _unread[:] = rest
    return line.decode("utf-8", "replace").rstrip("\r\n") if line or end else None


def keep_typed(keys: bytes) -> None:
    """Keep keys that were read while something else was waited for: the next line begins with them. Keys that edit a
    line are dropped.
    """
    _unread.extend(_CONTROLS.sub(b"", keys))


def typed_line() -> tuple[str, bool]:
    """Return the keys that were kept, up to the end of a line, and tell if it came."""
    line, end, rest = bytes(_unread).partition(b"\n")
    _unread[:] = rest
    return line.decode("utf-8", "replace").rstrip("\r"), bool(end)


def _ready(fd: int) -> bool:
    """Wait until there is something to read; False if the line is not wanted any more."""
    reader = threading.current_thread()
    if not isinstance(reader, _Reader):
        return True
    reader.looks = True
    while not select.select([fd], [], [], _LOOK)[0]:
        if reader.given_up:
            return False
    return not reader.given_up


@contextlib.contextmanager
def _by_lines(fd: int) -> Iterator[None]:
    """Let the terminal show and collect what is typed until the line ends, if it does not: in a game it is told to
    wait for single keys in silence.
    """
    before = termios.tcgetattr(fd) if os.isatty(fd) else None
    if before is None or before[3] & termios.ICANON:
        yield
        return
    changed: list[Any] = [*before]
    changed[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)


async def answer_to(ask: Callable[[], object]) -> str | None:
    """Ask, and return the line that answers, None at the end. It is shown as it is typed, and the loop runs on
    meanwhile. Whoever is cancelled leaves the line to the next reader.
    """
    return await in_daemon_thread(lambda: read_line(ask))
