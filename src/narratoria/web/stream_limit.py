"""The limit on the streams of one browser.

Over HTTP/1.1 a browser opens six connections to a host, for all its windows together. If every window held one for
its stream, the sixth would leave none for anything else, and all of them would be stuck. So a browser identifies
itself and gets a few streams; its other windows get answers that end. So does every client when the streams of all
together would leave no connection for anything else.
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
    def opened(self, browser: str | None) -> Iterator[bool]:
        """Tell if this request may be an endless stream, and count it while it lasts. A browser is one that
        identifies itself.
        """
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
