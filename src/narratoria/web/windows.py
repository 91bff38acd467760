"""How many streams one browser holds.

Over HTTP/1.1 a browser opens six connections to a host, whatever the number of its windows. If every window held
one for its stream, the sixth would leave none for anything else, and all of them would be stuck. So a browser
says who it is, gets a few streams, and further windows get answers that end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STREAMS_PER_BROWSER: Final = 4  # two connections are left for pages, pictures and prompts


class Windows:
    """The streams that are open, by browser."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def seat(self, browser: str | None) -> Iterator[bool]:
        """Whether this request may go on for ever, as long as it lasts. Who does not say who it is, may."""
        if browser is None:
            yield True
            return
        if self._open[browser] >= STREAMS_PER_BROWSER:
            yield False
            return
        self._open[browser] += 1
        try:
            yield True
        finally:
            self._open[browser] -= 1
            if not self._open[browser]:
                del self._open[browser]
