"""The end of a process that was asked to end and does not: its loop stalls, or it waits for a thread that is stuck."""

from __future__ import annotations

import _thread
import os
import select
import time
from typing import Final

COMMAND_SECONDS: Final = 4.5
"""Time that a command has to end in order: tools are asked first, and servers of tools get their grace."""
SERVER_SECONDS: Final = 8.0
"""Time that a server has to end in order: turns and viewers get theirs as well."""


def end_within(seconds: float, code: int) -> None:
    """End this process at the latest after some seconds, with an exit code. The guardian ends the processes of its
    tools.

    It is called by handlers of signals, which may interrupt anything: `threading` has locks that they would wait for.
    """
    _thread.start_new_thread(_end, (seconds, code))


def _end(seconds: float, code: int) -> None:
    time.sleep(seconds)
    try:
        _say(b"narratoria: it did not end when asked to, and was stopped; running tools were ended\n")
    finally:
        os._exit(code)


def _say(line: bytes) -> None:
    """Write to standard error if it takes a line now: its reader may be stuck as well, or gone."""
    if select.select([], [2], [], 0)[1]:
        os.write(2, line)
