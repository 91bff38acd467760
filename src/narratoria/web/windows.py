"""How many streams one browser holds.

Over HTTP/1.1 a browser opens six connections to a host, whatever the number of its windows. If every window held
one for its stream, the sixth would leave none for anything else, and all of them would be stuck. So a browser
says who it is, gets a few streams, and further windows get answers that end. So does everybody once the streams
of all together would leave no connection for anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MAX_STREAMS: Final = 300
STREAMS_PER_BROWSER: Final = 4  # two connections are left for pages, pictures and prompts


class Windows:
    """The streams that are open, by browser."""

    def __init__(self, most: int = MAX_STREAMS) -> None:
        self._most = most
        self._open: Counter[str | None] = Counter()

    @contextmanager
    def seat(self, browser: str | None) -> Iterator[bool]:
        """Tell if this request may go on for ever, as long as it lasts. A browser is one that says who it is."""
        full = browser is not None and self._open[browser] >= STREAMS_PER_BROWSER
        if full or self._open.total() >= self._most:
            yield False
            return
        self._open[browser] += 1
        try:
            yield True
        finally:
            self._open[browser] -= 1
            if not self._open[browser]:
                del self._open[browser]
