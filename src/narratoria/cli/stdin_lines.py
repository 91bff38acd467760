"""Lines of standard input, read so that a command can end while it waits for one."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
_PIECE: Final = 64 * 1024
_unread = bytearray()


async def in_daemon_thread(act: Callable[[], T]) -> T:
    """Return the result of `act`, which may wait for ever: neither the loop nor the process waits for it when they
    end.
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

    threading.Thread(target=work, name="input", daemon=True).start()
    return await future


def read_line() -> str | None:
    """Return the next line, None at the end. Bytes that are not UTF-8 become question marks: a slip must not end a
    game.

    It does not use `sys.stdin.buffer`: its lock, held by a waiting thread, would break the interpreter's exit.
    """
    if sys.stdin is None:
        return None
    while b"\n" not in _unread:
        piece = os.read(sys.stdin.fileno(), _PIECE)
        if not piece:
            break
        _unread.extend(piece)
    line, end, rest = bytes(_unread).partition(b"\n")
    _unread[:] = rest
    return line.decode("utf-8", "replace").rstrip("\r\n") if line or end else None
