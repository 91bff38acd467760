"""The snapshot behind a gap in an imported journal: one that a session could have had, and inert.

A snapshot stands for records that were lost to damage, so it is believed where they would be: nothing in it may be
pending, and nothing in it may speak of what is still to come.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import msgspec

from narratoria.store.restoration import SessionSnapshot
from narratoria.store.store import LARGEST
from narratoria.store.timeline import Timeline
from narratoria.tools.schema.excerpts import excerpt
from narratoria.typed_values import convert

MAX_TURNS: Final = 1_000_000
"""Cap on the turns that all snapshots of a file count: a few bytes name millions of them."""


class Unfit(ValueError):
    """A journal is refused; the message says why."""


def read_snapshot(content: Any, where: str) -> SessionSnapshot:
    try:
        return convert(content, SessionSnapshot, str_keys=True)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"{where}: its snapshot cannot be read: {excerpt(error)}") from None


def inert_snapshot(snapshot: SessionSnapshot) -> SessionSnapshot:
    """Return the snapshot with its permissions as claims, without an undo that is under way and without variants: the
    records that tell of them are lost.
    """
    timeline = snapshot.timeline
    return msgspec.structs.replace(
        snapshot,
        permissions=[],
        claimed=sorted({*snapshot.permissions, *snapshot.claimed}),
        timeline=msgspec.structs.replace(
            timeline,
            turns=[],
            undoing=None,
            variants=[],
            futures={},
            dropped={name: turn for name, turn in timeline.dropped.items() if turn in timeline.undone},
        ),
    )


def counted(snapshot: SessionSnapshot) -> int:
    """Return the number of turns that count in it."""
    return sum(last - first + 1 for first, last in snapshot.turns)


def newest_turn(snapshot: SessionSnapshot) -> int:
    """Return the highest number of a turn that it knows; -1 if no turn was taken."""
    return max([snapshot.turn_count or -1, *snapshot.timeline.undone, *(last for _, last in snapshot.turns)])


def check_snapshot(snapshot: SessionSnapshot, where: str) -> None:
    """Refuse a snapshot that contradicts itself."""
    timeline = snapshot.timeline
    if timeline.open is not None:
        raise Unfit(f"{where}: a turn is open in its snapshot")
    numbers = [snapshot.turn_count, snapshot.calls, snapshot.seq, *timeline.completions.values()]
    if any(not 0 <= number < LARGEST for number in numbers):
        raise Unfit(f"{where}: the numbers of its snapshot are out of range")
    _check_turns(snapshot, where)
    newest = newest_turn(snapshot)
    for turn in timeline.taken_back:
        if not 0 <= turn <= newest:
            raise Unfit(
                f"{where}: its snapshot has effects of turn {turn} that are taken back before it is taken"
            )
    if any(not 0 <= turn <= newest for turn in timeline.edited):
        raise Unfit(f"{where}: its snapshot has the edited text of a turn that is still to come")
    for names, standing in ((timeline.checkpoints, _stands), (timeline.dropped, _was_taken)):
        for name, turn in names.items():
            if not standing(snapshot, turn):
                raise Unfit(f"{where}: the checkpoint {name[:100]!r} of its snapshot is of no turn there")
    for seq in snapshot.assets:
        if not 0 < seq <= snapshot.seq:
            raise Unfit(f"{where}: its snapshot has an asset of record {seq}, which it cannot know")


def _check_turns(snapshot: SessionSnapshot, where: str) -> None:
    """Check that turns are in order and none is there twice: those that count, then those a redo brings back."""
    runs = [*snapshot.turns, *((turn, turn) for turn in reversed(snapshot.timeline.undone))]
    right = all(0 <= first <= last < LARGEST for first, last in runs)
    right = right and 0 not in snapshot.timeline.undone  # the opening is never taken back
    if not right or any(before[1] >= after[0] for before, after in pairwise(runs)):
        raise Unfit(f"{where}: the turns of its snapshot are out of order")


def _stands(snapshot: SessionSnapshot, turn: int) -> bool:
    return any(first <= turn <= last for first, last in snapshot.turns)


def _was_taken(snapshot: SessionSnapshot, turn: int) -> bool:
    return 0 < turn <= newest_turn(snapshot)


def timeline_of(snapshot: SessionSnapshot) -> Timeline:
    """Return the timeline of a snapshot that was checked and measured."""
    turns = [turn for first, last in snapshot.turns for turn in range(first, last + 1)]
    return msgspec.structs.replace(snapshot.timeline.copy(), turns=turns)
