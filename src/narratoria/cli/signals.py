"""Signals that end a command: TERM and HUP do what Ctrl-C does, and tools get their grace period. A command that is
stuck is ended all the same.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from narratoria.kinds.process.ending import COMMAND_SECONDS, end_within

_heard: list[int] = []
_set_aside: list[Any] = []  # handlers of Ctrl-C that end the command, while another one is in their place


def install_signals(arguments: Sequence[str]) -> None:
    """Treat TERM and HUP as an interrupt, in every command but `mcp --http`, which has its own way to end. The server
    of `play` ends in its own way on TERM and INT, and hands them on here afterwards.

    Signals that nohup ignores stay ignored. In a job that a script started with `&`, the shell ignores interrupts:
    there they are blocked instead, which has the same effect on Ctrl-C, so that asyncio still installs its cancelling
    handler.
    """
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command == "mcp" and any(word.partition("=")[0] == "--http" for word in arguments):
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    if ours and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ours:
        signal.signal(number, _interrupt)


@contextmanager
def on_interrupt(act: Callable[[], bool]) -> Iterator[None]:
    """Call `act` on Ctrl-C instead of ending the command, which ends if `act` returns False. TERM and HUP end it all
    the same, and an ignored interrupt stays ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: FrameType | None) -> None:
        if not act():
            before(number, frame)

    _set_aside.append(before)
    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _set_aside.remove(before)


def exit_code(default: int) -> int:
    """Return the exit code of an interrupted command: 128 and the number of the signal."""
    return 128 + _heard[-1] if _heard else default


def _interrupt(number: int, frame: FrameType | None) -> None:
    if not _heard:  # a stalled loop never sees that its task is cancelled
        end_within(COMMAND_SECONDS, 128 + number)
    _heard.append(number)
    handler = _set_aside[0] if _set_aside else signal.getsignal(signal.SIGINT)
    if callable(handler):  # asyncio's while it runs, Python's own before and after
        handler(signal.SIGINT, frame)
