"""The last resort of a turn whose attempts are used up: lines in no language but the caller's own.

The core speaks no language. What it must say itself it takes from the caller (`TurnSettings.last_resort`,
`TurnSettings.list_calls`); these are the defaults.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from narratoria.narrator.protocol import NarratorRequest
from narratoria.run.plan import PlanDocument
from narratoria.run.records import failure_summary

SILENCE: Final = "…"


class PlainNarrator:
    """Answers any prompt with one of the given lines, or the summary of the call that failed; without either, `…`."""

    name = "plain"

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = tuple(lines)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        return request.answer(failure_summary(request.last_trace) or self._line(request) or SILENCE)

    def _line(self, request: NarratorRequest) -> str:
        """The next line, another one than the turn before."""
        start = len(request.history)
        options = [self._lines[(start + step) % len(self._lines)] for step in range(len(self._lines))]
        last = request.history[-1].narrative if request.history else ""
        return next((line for line in options if line not in last), options[0] if options else "")


def plain_list(names: Sequence[str]) -> str:
    """The tools that did their work, by name: "clean reel ×2; ring"."""
    counts = Counter(re.sub(r"[\W_]+", " ", name).strip() for name in names)
    return "; ".join(f"{name} ×{count}" if count > 1 else name for name, count in counts.items())
