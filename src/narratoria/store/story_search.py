"""Search in a story: the turns in which every word of a query stands, each with an excerpt.

Case, accents and typographic quotation marks make no difference, nor do the marks of Markdown. A word is found inside
longer ones too, since not every language puts spaces between words. Words in quotation marks belong together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from narratoria.events import Narration, NarrationDelta, NarrationEdited, TurnStarted
from narratoria.session.record import Record

LONGEST_QUERY: Final = 200
MOST_WORDS: Final = 12
EXCERPT: Final = 160  # letters
BEFORE: Final = 50  # letters of an excerpt before the first found word
PIECE: Final = 4_000  # letters of one paragraph that are looked at together
MOST_MARKS: Final = 40  # places of each word in one excerpt that are looked at

# The same ranges as in `search.js`. Signs without which a word is another one, as in Hindi or Japanese, are not here.
_ACCENTS: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_ALIKE: Final = (("'", "‘’‚‛′"), ('"', "“”„‟″"), ("-", "‐‑‒–—"), ("...", "…"))
_QUOTED: Final = re.compile(r'"([^"]*)"|([^\s"]+)')
_PARAGRAPH_END: Final = re.compile(r"\n\s*\n")
_LINE_MARKS: Final = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-+*][ \t]+|\d{1,9}[.)][ \t]+)+", re.MULTILINE
)
_LINK: Final = re.compile(r"!?\[([^\]\[\n]{0,200})\]\([^()\n]{0,200}\)")
_EMPHASIS: Final = re.compile(r"[*`]+|(?<!\w)_++(?=\S)|(?<![\s_])_++(?!\w)")


class Run(NamedTuple):
    """A part of an excerpt."""

    text: str
    found: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """A turn in which everything was found. `newer` is the number of turns that count after it."""

    turn: int
    newer: int
    said: bool  # the excerpt is of the player's own words
    excerpt: list[Run]


@dataclass(frozen=True, slots=True)
class Findings:
    """The newest turns of those in which everything was found, and the number of them all."""

    total: int
    turns: list[Finding]


def words_of(query: str) -> list[str]:
    """Return the folded words of a query, without those that are part of another one."""
    found = [match[1] or match[2] or "" for match in _QUOTED.finditer(_plain_marks(query))]
    words = list(dict.fromkeys(word for one in found if (word := fold_text(as_read(one)).strip())))
    return [one for one in words if not any(one != other and one in other for other in words)]


def search_story(
    records: Iterable[Record],
    counting: Sequence[int],
    words: Sequence[str],
    *,
    before: int | None = None,
    most: int = 50,
    given_up: Callable[[], bool] = lambda: False,
) -> Findings:
    """Search the turns in `counting`, oldest first; only those before the turn `before`, if one is named.

    The work is proportional to the length of the story. It ends early, with what it has, once `given_up` says so.
    """
    places = {turn: place for place, turn in enumerate(counting)}
    limit = len(places) if before is None else places.get(before, len(places))
    reading = takewhile(lambda _: not given_up(), records)
    texts = _texts(reading, {turn for turn, place in places.items() if place < limit})
    hits: list[_TurnText] = []
    for text in texts:
        if given_up():
            break
        if text.has(words):
            hits.append(text)
    hits.sort(key=lambda one: places[one.turn], reverse=True)
    return Findings(
        total=len(hits),
        turns=[one.finding(words, len(places) - 1 - places[one.turn]) for one in hits[:most]],
    )


def fold_text(text: str) -> str:
    """Return the text as it is compared: without case, accents and typographic marks."""
    if not text.isascii():
        text = _plain_marks(text)
    if text.isascii():
        return text.lower()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).casefold()


def _plain_marks(text: str) -> str:
    """Return the text with the marks of a keyboard. Most English prose is ASCII then, which is compared fast."""
    for mark, typographic in _ALIKE:
        for one in typographic:
            text = text.replace(one, mark)
    return text


def as_read(text: str) -> str:
    """Return a paragraph in one line and without the marks of Markdown, about as it is read."""
    text = _EMPHASIS.sub("", _LINE_MARKS.sub("", text))
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    return " ".join(text.split())


@dataclass(slots=True)
class _TurnText:
    """The text of a turn: the player's words, and its narration by attempt."""

    turn: int
    prompt: str = ""
    told: dict[int, str] = field(default_factory=dict)
    final: set[int] = field(default_factory=set)
    edited: str | None = None

    @property
    def narrations(self) -> Iterable[str]:
        return self.told.values() if self.edited is None else (self.edited,)

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield its paragraphs as they are read, each with whether the player said it."""
        for source, said in ((self.prompt, True), *((text, False) for text in self.narrations)):
            for paragraph in _PARAGRAPH_END.split(source):
                read = as_read(paragraph)
                for first in range(0, len(read), PIECE):
                    yield read[first : first + PIECE], said

    def has(self, words: Sequence[str]) -> bool:
        whole = fold_text("\n".join((self.prompt, *self.narrations)))
        for mark in "*`":
            whole = whole.replace(mark, "")
        plain = "_" not in whole and "](" not in whole
        if not plain:  # what such marks mean is read below
            whole = whole.replace("_", "")
        if not all(part.replace("_", "") in whole for word in words for part in word.split()):
            return False  # as most turns, without a closer look
        if plain and not any(" " in word for word in words):
            return True
        missing = set(words)
        for piece, _ in self.pieces():
            folded = fold_text(piece)
            missing -= {word for word in missing if word in folded}
            if not missing:
                return True
        return False

    def finding(self, words: Sequence[str], newer: int) -> Finding:
        """Return the excerpt that has most of the words."""
        best, said, most = "", False, 0
        for piece, by_player in self.pieces():
            folded = fold_text(piece)
            count = sum(word in folded for word in words)
            if count > most:
                best, said, most = piece, by_player, count
        return Finding(self.turn, newer, said, _excerpt(best, words))


def _texts(records: Iterable[Record], wanted: Container[int]) -> Iterable[_TurnText]:
    """Return the text of the wanted turns, as a page shows it: of unfinished narration, the newest alone."""
    texts: dict[int, _TurnText] = {}
    for record in records:
        event = record.event
        if isinstance(event, TurnStarted):
            if event.turn in wanted:
                text = texts.setdefault(event.turn, _TurnText(event.turn))
                text.prompt = event.prompt if event.origin != "opening" else ""
        elif isinstance(event, NarrationEdited):
            if event.turn in texts:
                texts[event.turn].edited = event.text
        elif isinstance(event, (Narration, NarrationDelta)) and record.turn in wanted:
            text = texts.setdefault(record.turn or 0, _TurnText(record.turn or 0))
            if isinstance(event, NarrationDelta):
                text.told[event.attempt] = event.after(text.told.get(event.attempt, ""))
            else:
                text.final.add(event.attempt)
                text.told = {one: told for one, told in text.told.items() if one in text.final}
                text.told[event.attempt] = event.text
    return texts.values()


def _excerpt(piece: str, words: Sequence[str]) -> list[Run]:
    """Return the part of a paragraph where most of the words stand together, with each of them marked."""
    spans = _spans(piece, words)
    if not spans:
        return [Run(piece[:EXCERPT], False)]

    def together(one: tuple[int, int, str]) -> tuple[int, int]:
        near = {word for start, _, word in spans if one[0] <= start < one[0] + EXCERPT - BEFORE}
        return len(near), -one[0]

    best = max(spans, key=together)
    first = max(0, best[0] - BEFORE)
    if first:  # at the beginning of a word, if one is near
        space = piece.find(" ", first, best[0])
        first = space + 1 if space >= 0 else first
    last = max(best[1], min(len(piece), first + EXCERPT))
    if last < len(piece):
        space = piece.rfind(" ", best[1], last)
        last = space if space >= 0 else last
    runs = [Run("…", False)] if first else []
    at = first
    for start, end, _ in spans:
        if start < at or end > last:
            continue
        if start > at:
            runs.append(Run(piece[at:start], False))
        runs.append(Run(piece[start:end], True))
        at = end
    rest = piece[at:last] + ("…" if last < len(piece) else "")
    return [*runs, Run(rest, False)] if rest else runs


def _spans(piece: str, words: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return where the words stand in a text, by its own letters: folding makes some longer, and others vanish."""
    folded, origin = [], []
    for place, letter in enumerate(piece):
        for one in fold_text(letter):
            folded.append(one)
            origin.append(place)
    text = "".join(folded)
    origin.append(len(piece))
    spans = []
    for word in words:
        at = text.find(word)
        for _ in range(MOST_MARKS):
            if at < 0:
                break
            spans.append((origin[at], max(origin[at + len(word)], origin[at] + 1), word))
            at = text.find(word, at + len(word))
    return sorted(spans)
