"""The ending of a tool process, as its supervisor saw it."""

from __future__ import annotations

from dataclasses import dataclass

from narratoria.events import Done
from narratoria.kinds.ndjson import ProtocolFailure


@dataclass(frozen=True)
class ProcessOutcome:
    """The ending of a process, its `done` event and its stderr. The caller judges it."""

    exit_code: int | None
    """None when a signal ended it, or when the host ignores SIGCHLD, so that it is unknown."""
    signal: int | None
    done: Done | None
    failure: ProtocolFailure | None
    timed_out: bool
    stderr: str
    """The end of its stderr, bounded by `Limits.stderr_bytes`."""
    duration: float
    after_done: int
    """Bytes written after `done`; they were ignored."""
    lingered: bool
    """It did not exit by itself after `done` (or after closing its output), and was ended."""
    crlf: bool = False
    after_done_line: int = 0
    after_done_head: bytes = b""
    """The beginning of the first line after `done`."""
    pid: int = 0
    closed_stdout: bool = False
    """It closed its output while it ran on, without `done`."""
    cold: str = ""
    """The reason why a warm start was not possible."""
    cpu: float = 0.0
    """CPU seconds of the process and of those it waited for."""
