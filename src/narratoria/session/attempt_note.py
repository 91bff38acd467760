"""Notes on a running attempt at a call, for the record of its end."""

from __future__ import annotations

from typing import Final

import msgspec

from narratoria.events import JsonObject

MOST_STDERR: Final = 4_000
"""Characters of stderr kept of an attempt that did not fail the call; a failure keeps all that was read."""


class AttemptNote(msgspec.Struct, kw_only=True):
    """One attempt: when it began, if it is not the first, and the ending of its process, if it has one."""

    began: float | None = None  # by `perf_counter`
    exit_code: int | None = None
    signal: int | None = None
    stderr: str = ""
    operation: str | None = None
    sent: JsonObject | None = None
    sent_state: bool = False
    sandbox: JsonObject | None = None
