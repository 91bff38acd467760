"""A narration that is too long ends with a sentence, else with a word: in the plan, and while it is being written.

The last part below the bound is shown sentence by sentence, since nobody knows yet which of them is the last.
"""

from __future__ import annotations

import re
from typing import Final

_TAIL: Final = 400  # characters below the bound in which the last sentence is looked for
_ELLIPSIS: Final = "…"
# Each end is seen only with what follows it: a piece of a text has no ends that the whole has not.
_SENTENCE_END: Final = re.compile(
    r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？]+[」』”]*(?=[^。！？」』”])"
)


def shortened(text: str, limit: int) -> str:
    """`text` without the space around it, in at most `limit` characters; what is cut ends where a reader can stop."""
    text = text.strip()
    if len(text) <= limit:
        return text
    free, end = _free(limit), _last_end(text, limit)
    if end > free:
        return text[:end]
    tail = text[free : limit - len(_ELLIPSIS)]
    if not text[free + len(tail)].isspace() and (word := re.search(r"\s\S*$", tail)):
        tail = tail[: word.start()]
    return text[:free] + tail.rstrip(" \t\n,;:—–-") + _ELLIPSIS


class Shortening:
    """`shortened` for a text that comes in pieces: what `feed` and `end` give back makes up the same."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text = ""
        self._shown = 0

    def feed(self, piece: str) -> str:
        if len(self._text) <= 2 * self._limit:  # the rest is not shown in any case
            self._text = (self._text + piece).lstrip()
        free = min(len(self._text), _free(self._limit))
        return self._up_to(self._text, max(free, _last_end(self._text, self._limit)))

    def end(self) -> str:
        """The text that was held back and stands after all."""
        whole = shortened(self._text, self._limit)
        return self._up_to(whole, len(whole))

    def _up_to(self, text: str, end: int) -> str:
        fresh, self._shown = text[self._shown : end], max(self._shown, end)
        return fresh


def _free(limit: int) -> int:
    """Characters that are shown at once, before the end is known."""
    return limit - min(_TAIL, limit // 2)


def _last_end(text: str, limit: int) -> int:
    ends = [found.end() for found in _SENTENCE_END.finditer(text, _free(limit), limit + 8)]
    return max((end for end in ends if end <= limit), default=0)
