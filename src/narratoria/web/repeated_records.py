"""A log filter that limits repeated records."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

ALIKE: Final = 3
"""Records of one kind a minute."""
IN_ALL: Final = 30
"""Records a minute, of all kinds."""
MINUTE: Final = 60.0


class RepeatedRecords(logging.Filter):
    """Lets a few records of a kind through each minute and counts the others.

    Records are of one kind if their level, the first line of their message and their exception's type are the same.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._begun = clock()
        self._seen: dict[tuple[int, str, str], int] = {}
        self._left_out: dict[tuple[int, str, str], int] = {}
        self._written = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        if now - self._begun >= MINUTE:
            self._begun, self._written = now, 0
            self._left_out = {kind: count - ALIKE for kind, count in self._seen.items() if count > ALIKE}
            self._seen.clear()
        kind = _kind(record)
        if kind not in self._seen and len(self._seen) >= IN_ALL:
            return False
        self._seen[kind] = self._seen.get(kind, 0) + 1
        if self._seen[kind] > ALIKE or self._written >= IN_ALL:
            return False
        self._written += 1
        if more := self._left_out.pop(kind, 0):
            record.msg = f"{record.getMessage()} (and {more:,} like it in the minute before)"
            record.args = ()
        return True


def _kind(record: logging.LogRecord) -> tuple[int, str, str]:
    raised = record.exc_info[0] if record.exc_info else None
    return record.levelno, str(record.msg).partition("\n")[0][:100], raised.__name__ if raised else ""


def keep_short(*names: str) -> None:
    """Limit what these loggers write."""
    for name in names:
        logger = logging.getLogger(name)
        for one in [one for one in logger.filters if isinstance(one, RepeatedRecords)]:
            logger.removeFilter(one)
        logger.addFilter(RepeatedRecords())
