"""What viewers get with narration: the same text as safe HTML, in blocks, so that no client needs to read Markdown.

A finished narration carries all its blocks. One that is still being told carries, on the last piece of each
message, those that have changed since the message before. The journal knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from itertools import takewhile
from operator import eq
from typing import Final

import msgspec

from narratoria.events import Narration, NarrationDelta
from narratoria.prose import LONGEST, render
from narratoria.session import Record

Key = tuple[int | None, int]  # a turn, and the attempt that tells it
TOLD: Final = frozenset({Narration, NarrationDelta})


class Prose(msgspec.Struct, frozen=True, omit_defaults=True):
    """A narration as HTML, one element a block. The first `kept` of the blocks sent before stand as they are."""

    blocks: list[str]
    kept: int = 0


class FeedRecord(Record, frozen=True, omit_defaults=True):
    """A record as viewers get it: with `prose` where narration is told that is not too long for it."""

    prose: Prose | None = None


class Telling:
    """The narrations of one session that have begun and not ended, as far as they have been told."""

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
        """What has been told so far. One letter more than can be rendered is as good as all of them."""
        for pieces in self._pieces.values():
            pieces[:] = ["".join(pieces)[: LONGEST + 1]]
        return {key: pieces[0] for key, pieces in self._pieces.items()}


def tells(records: Iterable[Record]) -> bool:
    return any(type(record.event) in TOLD for record in records)


def dress(
    records: Sequence[Record], texts: Mapping[Key, str], shown: MutableMapping[Key, list[str]] | None = None
) -> list[Record]:
    """`records` with what their narrations look like; `texts` is how far those under way have come by the last one.

    `shown` holds the blocks that everybody who gets these records has already, and will hold those of now.
    """
    shown = {} if shown is None else shown
    dressed = list(records)
    waiting = dict(texts)
    for index in range(len(dressed) - 1, -1, -1):
        record = dressed[index]
        event = record.event
        if isinstance(event, Narration):
            dressed[index] = _with_prose(record, render(event.text), [])
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
