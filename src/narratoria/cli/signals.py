"""How a command ends when it is asked to: TERM and HUP do what Ctrl-C does, and the tools get their grace."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from types import FrameType

_heard: list[int] = []


def heed(arguments: Sequence[str]) -> None:
    """Take TERM and HUP for an interrupt, in every command but the server, which has its own way to end.

    What nohup has ignored stays ignored. An interrupt is ignored in a job that a script started with `&`: there
    it is blocked instead, which is as deaf to Ctrl-C, so that asyncio still installs the handler that cancels.
    """
    command = next((word for word in arguments if not word.startswith("-")), "")
    if command == "play" and not {"--terminal", "--json"} & set(arguments):
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    if ours and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ours:
        signal.signal(number, _interrupt)


def exit_code(default: int) -> int:
    """The code of an interrupted command: 128 and the number of the signal that asked for the end."""
    return 128 + _heard[-1] if _heard else default


def _interrupt(number: int, frame: FrameType | None) -> None:
    _heard.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):  # asyncio's while it runs, Python's own before and after
        handler(signal.SIGINT, frame)
