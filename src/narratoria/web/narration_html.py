"""Narration as safe HTML for viewers, in blocks, so that no client needs to read Markdown.

A finished narration carries all its blocks. An unfinished one carries, on the last piece of each message, the blocks
that have changed since the message before. The journal does not hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from itertools import takewhile
from operator import eq
from typing import Final

import msgspec

from narratoria.events import Narration, NarrationDelta, NarrationEdited
from narratoria.prose import LONGEST, render
from narratoria.session import Record

Key = tuple[int | None, int]  # a turn, and the attempt that tells it
TOLD: Final = frozenset({Narration, NarrationDelta, NarrationEdited})


class Prose(msgspec.Struct, frozen=True, omit_defaults=True):
    """A narration as HTML, one element a block. The first `kept` of the blocks sent before are unchanged."""

    blocks: list[str]
    kept: int = 0


class FeedRecord(Record, frozen=True, omit_defaults=True):
    """A record as viewers get it: with `prose` for a narration that is not too long for it."""

    prose: Prose | None = None


class UnfinishedNarrations:
    """The unfinished narrations of one session, as far as they have been written."""

    def __init__(self) -> None:
        self._pieces: dict[Key, list[str]] = {}

    def hear(self, record: Record) -> None:
        event = record.event
        if isinstance(event, Narration):
            self._pieces = {key: pieces for key, pieces in self._pieces.items() if key[0] != record.turn}
        elif isinstance(event, NarrationDelta):
            key = record.turn, event.attempt
            if event.anew:
                self._pieces.pop(key, None)
            self._pieces.setdefault(key, []).append(event.text)

    def texts(self) -> dict[Key, str]:
        """Return the texts so far, cut one letter beyond the longest that can be rendered."""
        for pieces in self._pieces.values():
            pieces[:] = ["".join(pieces)[: LONGEST + 1]]
        return {key: pieces[0] for key, pieces in self._pieces.items()}


def tells(records: Iterable[Record]) -> bool:
    return any(type(record.event) in TOLD for record in records)


def dress(
    records: Sequence[Record], texts: Mapping[Key, str], shown: MutableMapping[Key, list[str]] | None = None
) -> list[Record]:
    """Return `records` with the HTML of their narrations; `texts` are the unfinished ones up to the last record.

    `shown` holds the blocks that all receivers of these records already have, and is updated.
    """
    shown = {} if shown is None else shown
    dressed = list(records)
    waiting = dict(texts)
    for index in range(len(dressed) - 1, -1, -1):
        record = dressed[index]
        event = record.event
        if isinstance(event, Narration | NarrationEdited):
            dressed[index] = _with_prose(record, render(event.text or ""), [])
        elif isinstance(event, NarrationDelta):
            key = record.turn, event.attempt
            if key in waiting:
                blocks = render(waiting.pop(key))
                anew = any(_begins_anew(one, key) for one in records)
                dressed[index] = _with_prose(record, blocks, [] if anew else shown.get(key, []))
                shown[key] = blocks or []
    return dressed


def _begins_anew(record: Record, key: Key) -> bool:
    event = record.event
    return isinstance(event, NarrationDelta) and event.anew and (record.turn, event.attempt) == key


def _with_prose(record: Record, blocks: list[str] | None, shown: list[str]) -> Record:
    if blocks is None:
        return record
    kept = sum(takewhile(bool, map(eq, blocks, shown)))
    prose = Prose(blocks=blocks[kept:], kept=kept)
    return FeedRecord(record.seq, record.ts, record.turn, record.event, prose)
