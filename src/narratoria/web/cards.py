"""The text on a session's card: an excerpt of the last turn, and the title of a branch."""

from __future__ import annotations

import html
import re
from typing import Final

from narratoria import prose

LONGEST_TITLE: Final = 200
EXCERPT: Final = 150  # letters, about as many as a card has room for
READ: Final = 2_000  # letters, from the end: more than enough for an excerpt, and quickly rendered

_BETWEEN_ITEMS: Final = re.compile(r"</li>\s*<li>")
_INLINE: Final = re.compile(r"</?(?:em|strong|code)>")
_TAG: Final = re.compile(r"<[^>]*>")
_BRANCHED: Final = re.compile(r"(?: \(from (?:turn \d+|the beginning)\))+$")


def excerpt(told: str) -> str:
    """Return the end of a turn, from the beginning of a sentence if there is one near."""
    words = _as_read(told[-READ:])
    if len(words) <= EXCERPT and len(told) <= READ:
        return words
    end = words[-EXCERPT:]
    begins = re.search(r"[.!?…][”’\"]* (?=\S)", end[: EXCERPT // 2])
    return end[begins.end() :] if begins else "…" + end.partition(" ")[2]


def _as_read(source: str) -> str:
    """Return a narration in one line, without Markdown marks."""
    blocks = prose.render(source)
    if blocks is None:
        return " ".join(source.split())
    markup = _BETWEEN_ITEMS.sub(" · ", " ".join(blocks))
    return " ".join(html.unescape(_TAG.sub(" ", _INLINE.sub("", markup))).split())


def branch_title(title: str, turn: int) -> str:
    """Return the title of a branch of `title`: with the turn where it left, not those of earlier branches."""
    place = f" (from turn {turn})" if turn else " (from the beginning)"
    name = _BRANCHED.sub("", title)
    room = LONGEST_TITLE - len(place)
    return (name if len(name) <= room else name[: room - 1] + "…") + place
