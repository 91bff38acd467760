"""The timeline of a game: its turns, those taken back, its checkpoints. A fold of records, always small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from narratoria.events import (
    AnyRuntimeEvent,
    CallFinished,
    Checkpoint,
    Committed,
    EffectTakenBack,
    NarrationEdited,
    TurnCommitted,
    TurnRedone,
    TurnStarted,
    TurnUndone,
    UndoCancelled,
    UndoStarted,
)
from narratoria.session.record import Record


class Timeline(msgspec.Struct, omit_defaults=True):
    """The turns of a session: `turns` are those that count, oldest first; `undone` those a redo brings back, the next
    one last.

    Numbers are never used twice: a turn taken after an undo gets a new one. A turn that is taken again is a *variant*
    of the one it was taken instead of: both follow the same turn, and at most one of them counts.
    """

    turns: list[int] = msgspec.field(default_factory=list)
    undone: list[int] = msgspec.field(default_factory=list)
    open: int | None = None
    checkpoints: dict[str, int] = msgspec.field(default_factory=dict)
    dropped: dict[str, int] = msgspec.field(default_factory=dict)  # checkpoints of turns that were taken back
    completions: dict[str, int] = msgspec.field(default_factory=dict)
    undoing: int | None = None  # the turn whose effects are being taken back
    taken_back: dict[int, list[tuple[str, int]]] = msgspec.field(default_factory=dict)
    """By turn, the effects, as (call, number), that are undone outside. Never forgotten: the turn may count again, if
    not here then in a session that shares it.
    """
    variants: list[list[int]] = msgspec.field(default_factory=list)
    """Turns that were taken again: each list has the variants of one turn, oldest first."""
    futures: dict[int, list[int]] = msgspec.field(default_factory=dict)
    """By variant that does not count now, the turns that a redo brings back once it does, the next one last."""
    edited: dict[int, str] = msgspec.field(
        default_factory=dict
    )  # by turn, its narration as the player changed it

    def apply(self, record: Record) -> None:
        step = _STEPS.get(type(record.event))
        if step is not None:
            step(self, record.event)

    def copy(self) -> Timeline:
        """Return an independent copy."""
        return msgspec.structs.replace(
            self,
            turns=list(self.turns),
            undone=list(self.undone),
            checkpoints=dict(self.checkpoints),
            dropped=dict(self.dropped),
            completions=dict(self.completions),
            taken_back={turn: list(effects) for turn, effects in self.taken_back.items()},
            variants=[list(group) for group in self.variants],
            futures={turn: list(later) for turn, later in self.futures.items()},
            edited=dict(self.edited),
        )

    def become(self, other: Timeline) -> None:
        for field in self.__struct_fields__:
            setattr(self, field, getattr(other, field))

    @property
    def last(self) -> int | None:
        """The newest turn that counts."""
        return self.turns[-1] if self.turns else None

    @property
    def standing(self) -> int:
        """The number of the player's turns that count: the opening is not one."""
        return sum(turn > 0 for turn in self.turns)

    def before(self, turn: int) -> int | None:
        """The turn that counts just before `turn`."""
        for one in reversed(self.turns):
            if one < turn:
                return one
        return None

    def variants_of(self, turn: int) -> list[int]:
        """The variants of `turn`, itself among them, oldest first."""
        return next((group for group in reversed(self.variants) if turn in group), [turn])

    def count_completions(self, tools: dict[str, int], sign: int) -> None:
        """Add or subtract the completions of a turn."""
        for tool, count in tools.items():
            left = self.completions.get(tool, 0) + sign * count
            if left > 0:
                self.completions[tool] = left
            else:
                self.completions.pop(tool, None)


def _started(timeline: Timeline, event: TurnStarted) -> None:
    timeline.open = event.turn
    timeline.undoing = None  # a turn was taken instead of finishing it
    if event.origin == "retry" and timeline.undone:
        _add_variant(timeline, timeline.undone[-1], event.turn)
        _keep_future(timeline)
    timeline.undone = []


def _add_variant(timeline: Timeline, earlier: int, turn: int) -> None:
    group = timeline.variants_of(earlier)
    if len(group) == 1:
        timeline.variants.append(group)
    group.append(turn)


def _keep_future(timeline: Timeline) -> None:
    """Remember what a redo would bring back after the turn that was undone last."""
    *later, turn = timeline.undone
    if later:
        timeline.futures[turn] = later


def _committed(timeline: Timeline, event: TurnCommitted) -> None:
    timeline.open = None
    timeline.turns.append(event.turn)


def _undo_started(timeline: Timeline, event: UndoStarted) -> None:
    timeline.undoing = event.turn


def _undo_cancelled(timeline: Timeline, event: UndoCancelled) -> None:
    timeline.undoing = None


def _taken_back(timeline: Timeline, event: EffectTakenBack) -> None:
    timeline.taken_back.setdefault(event.turn, []).append((event.call, event.effect))


def _undone(timeline: Timeline, event: TurnUndone) -> None:
    timeline.undoing = None
    timeline.turns.remove(event.turn)
    timeline.undone.append(event.turn)
    move_names(event.turn, timeline.checkpoints, timeline.dropped)


def _redone(timeline: Timeline, event: TurnRedone) -> None:
    if event.turn in timeline.undone:
        timeline.undone.remove(event.turn)
    else:  # a variant of the turn undone last, in its place
        timeline.variants_of(timeline.undone[-1]).index(event.turn)
        _keep_future(timeline)
        timeline.undone = timeline.futures.pop(event.turn, [])
    timeline.turns.append(event.turn)
    move_names(event.turn, timeline.dropped, timeline.checkpoints)


def move_names(turn: int, source: dict[str, int], target: dict[str, int]) -> None:
    """Move the checkpoints of a turn with it."""
    for name in [name for name, marked in source.items() if marked == turn]:
        target[name] = source.pop(name)


def _edited(timeline: Timeline, event: NarrationEdited) -> None:
    if event.text is None:
        timeline.edited.pop(event.turn, None)
    else:
        timeline.edited[event.turn] = event.text


def _marked(timeline: Timeline, event: Checkpoint) -> None:
    timeline.checkpoints[event.name] = event.turn
    timeline.dropped.pop(event.name, None)


def completed_by(event: AnyRuntimeEvent) -> Sequence[str]:
    """Return the tools that count as completed from this record on. A part of a call is named by that call's commit."""
    if isinstance(event, Committed):
        return event.completed
    if isinstance(event, CallFinished) and event.ok and not event.part:
        return (event.tool,)
    return ()


def _completed(timeline: Timeline, event: CallFinished | Committed) -> None:
    undoing = timeline.undoing is not None and timeline.open is None  # what takes back completes nothing
    if not undoing:
        for tool in completed_by(event):
            timeline.completions[tool] = timeline.completions.get(tool, 0) + 1


_STEPS: Final[dict[type, Callable[[Timeline, Any], None]]] = {
    TurnStarted: _started,
    TurnCommitted: _committed,
    UndoStarted: _undo_started,
    UndoCancelled: _undo_cancelled,
    EffectTakenBack: _taken_back,
    TurnUndone: _undone,
    TurnRedone: _redone,
    NarrationEdited: _edited,
    Checkpoint: _marked,
    CallFinished: _completed,
    Committed: _completed,
}
