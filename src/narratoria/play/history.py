"""Moves between turns: undo, redo, retry, checkpoints.

Each moves state, memory, slices, permissions, assets and choices together, and costs what the turn cost, however long
the game is. Effects outside the session are taken back by the compensations their authors wrote. Those that cannot be
taken back are listed by `preview_undo` first, so that a person can decide, and again in the outcome.

A move that cannot be saved is not made, neither now nor later. Before the first compensation runs, the journal says
on the disk that it will, and after each that it did: an interrupted undo goes on with the rest (`finish_undo`, when
the session is opened again). The compensation that was running is run again: it should treat "already gone" as
success.

Effects named by an imported file are listed as staying. They are taken back by what the file says only with
`imported=True`, which a person asks for.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from narratoria.errors import JournalError
from narratoria.events import (
    AnyRuntimeEvent,
    Checkpoint,
    Notice,
    TurnCommitted,
    TurnRedone,
    TurnUndone,
    UndoStarted,
)
from narratoria.play.compensation import compensate, effects_of, weigh
from narratoria.play.killed_writes import take_back_killed_writes
from narratoria.play.resource_undo import (
    changes_of,
    put_back,
    standing_changes,
    weigh_changes,
    weigh_together,
)
from narratoria.play.undo_outcomes import Undone, UndoPreview, previewed, prompt_of
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record
from narratoria.store.journal import Journal
from narratoria.store.restoration import FetchTurn
from narratoria.store.store import TurnUnknown
from narratoria.unicode_text import as_one_line, check_text

__all__ = [
    "UndoPreview", "Undone", "abandon", "checkpoint", "finish_undo", "preview_return", "preview_undo",
    "preview_undo_to", "redo", "redo_to", "retry", "return_to", "show_variant", "undo", "undo_to",
]  # fmt: skip

logger = logging.getLogger("narratoria")


class _Reader:
    """A cache of the turns one move reads: an undo needs its turn, and the one before it, several times.

    It keeps the last two, as a turn may be large and a move may go over many.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[int, list[Record]] = {}

    def __call__(self, turn: int) -> list[Record]:
        known = self._known.pop(turn, None)
        if known is None:
            known = _records_of(self._journal, turn)
        self._known[turn] = known
        if len(self._known) > 2:
            del self._known[next(iter(self._known))]
        return known


async def preview_undo(
    journal: Journal, registry: ToolRegistry | None = None, *, imported: bool = False
) -> UndoPreview:
    """Return what undoing the newest turn would do, without doing it."""
    (preview,) = await _previews(journal, [_newest(journal)], registry, imported)
    return preview


async def preview_return(
    journal: Journal, name: str, registry: ToolRegistry | None = None, *, imported: bool = False
) -> list[UndoPreview]:
    """Return what returning to a checkpoint would do, for each turn that would be undone, the newest first."""
    marked = _marked(journal, name)
    later = [turn for turn in reversed(journal.timeline.turns) if turn > marked]
    return await _previews(journal, later, registry, imported)


async def preview_undo_to(
    journal: Journal, turn: int, registry: ToolRegistry | None = None, *, imported: bool = False
) -> list[UndoPreview]:
    """Return what undoing `turn` and every later one would do, the newest first."""
    return await _previews(journal, _from(journal, turn), registry, imported)


async def _previews(
    journal: Journal, turns: Sequence[int], registry: ToolRegistry | None, imported: bool
) -> list[UndoPreview]:
    """Return what undoing these turns would do, in their order, the newest first."""
    await journal.flush()
    read = _Reader(journal)
    changes = [standing_changes(journal, turn, read(turn), imported=imported) for turn in turns]
    weigh_together(journal, changes)
    previews = []
    for turn, changed in zip(turns, changes, strict=True):
        records = read(turn)
        weighed = weigh(journal, turn, records, registry, imported=imported)
        previews.append(previewed(turn, records, weighed, changed))
    return previews


async def undo(journal: Journal, registry: ToolRegistry | None = None, *, imported: bool = False) -> Undone:
    """Take the newest turn back. `registry` has the tools whose effects are to be compensated."""
    async with journal.session.turn_lock:
        return await _undo(journal, registry, _Reader(journal), imported)


async def undo_to(
    journal: Journal, turn: int, registry: ToolRegistry | None = None, *, imported: bool = False
) -> list[Undone]:
    """Take `turn` and every later one back, the newest first."""
    async with journal.session.turn_lock:
        read = _Reader(journal)
        return [await _undo(journal, registry, read, imported) for _ in _from(journal, turn)]


async def _undo(
    journal: Journal,
    registry: ToolRegistry | None,
    read: FetchTurn,
    imported: bool = False,
    *,
    instead: int | None = None,
) -> Undone:
    """Take the newest turn back, and bring its variant `instead`, if given, back in the same step."""
    await take_back_killed_writes(journal.session)
    if journal.timeline.open is not None:
        await _abandon(journal)
    turn = _newest(journal)
    await journal.flush()
    outcome = await _take_back_outside(journal, turn, read(turn), registry, imported)
    before, restoration = journal.timeline.copy(), journal.restoration(read)
    restoration.take_back(turn)
    moves: list[AnyRuntimeEvent] = [TurnUndone(turn=turn)]
    if instead is not None:
        restoration.make_again(instead)
        moves.append(TurnRedone(turn=instead))

    def revert() -> None:
        if instead is not None:
            restoration.take_back(instead)
        restoration.make_again(turn)
        journal.timeline.become(before)

    notices = [Notice(level="warn", message=message) for message in outcome.failed]
    for message in outcome.failed:
        logger.warning("%s", message)
    await journal.keep(*moves, *notices, revert=revert)
    return outcome


async def _take_back_outside(
    journal: Journal, turn: int, records: list[Record], registry: ToolRegistry | None, imported: bool
) -> Undone:
    """Take back effects, the newest first, then the resources as a whole. Those that an interrupted undo had already
    taken back are reported too.
    """
    weighed = weigh(journal, turn, records, registry, imported=imported)
    changes = weigh_changes(journal, turn, records, imported=imported)
    preview = previewed(turn, records, weighed, changes)
    outcome = Undone(turn, preview.prompt, preview.staying)
    if journal.timeline.undoing == turn:
        taken_back = journal.timeline.taken_back.get(turn, ())
        done = [(one.call, one.effect, one.description) for one in effects_of(records)]
        done += [(one.call, one.number, one.description) for one in changes_of(records)]
        outcome.compensated += [what for call, number, what in done[::-1] if (call, number) in taken_back]
    elif preview.compensated:
        await _keep(journal, UndoStarted(turn=turn))
    for applied, stays in reversed(weighed):
        if stays is not None or registry is None:
            continue
        failed = await compensate(journal, registry, turn, applied)
        if failed is None:
            outcome.compensated.append(applied.description)
        else:
            outcome.not_taken_back.append(failed)
    for one in await put_back(journal, turn, changes):
        if one.stays is None:
            outcome.compensated.append(one.description)
        else:
            outcome.not_taken_back.append(one.stays)
    return outcome


async def _keep(journal: Journal, event: AnyRuntimeEvent) -> None:
    """Record an event that changes only the timeline: on the disk, or not at all."""
    before = journal.timeline.copy()
    await journal.keep(event, revert=lambda: journal.timeline.become(before))


async def finish_undo(journal: Journal, registry: ToolRegistry | None = None) -> Undone | None:
    """Finish an undo that a crash cut short, if there is one and no turn was taken since."""
    async with journal.session.turn_lock:
        timeline = journal.timeline
        if timeline.undoing is None or timeline.open is not None or timeline.undoing != timeline.last:
            return None
        return await _undo(journal, registry, _Reader(journal))


def refuse_while_undoing(journal: Journal) -> None:
    """Refuse a move while an undo that was cut short waits to be finished."""
    turn = journal.timeline.undoing
    if turn is not None and turn == journal.timeline.last:
        raise JournalError(f"the undo of turn {turn} was cut short; undo it again to finish that first")


async def redo(journal: Journal, *, force: bool = False) -> int:
    """Bring back the turn that was undone last, from its records: no tool runs. Return its number.

    Refused when the undo took back something outside the session: records cannot do it again. Effects that were not
    taken back still stand, and are no obstacle. With `force` the session is brought back without the lost effects.
    """
    async with journal.session.turn_lock:
        refuse_while_undoing(journal)
        turn = _undone_last(journal)
        if not force:
            await _refuse_what_was_taken_back(journal, turn)
        return await _redo(journal, turn)


async def redo_to(journal: Journal, turn: int) -> list[int]:
    """Bring back every turn undone since, up to `turn`, the oldest first; all of them, or none."""
    async with journal.session.turn_lock:
        refuse_while_undoing(journal)
        _undone_last(journal)
        undone = journal.timeline.undone
        if turn not in undone:
            raise JournalError(f"turn {turn} is not one that a redo brings back")
        again = undone[undone.index(turn) :][::-1]
        for one in again:
            await _refuse_what_was_taken_back(journal, one)
        return [await _redo(journal, one) for one in again]


def _undone_last(journal: Journal) -> int:
    if journal.timeline.open is not None or not journal.timeline.undone:
        raise JournalError("there is nothing to redo: a redo follows an undo, before another turn is taken")
    return journal.timeline.undone[-1]


async def _refuse_what_was_taken_back(journal: Journal, turn: int) -> None:
    await journal.flush()
    records = _records_of(journal, turn)
    timelines = [journal.timeline, *journal.store.sharing(journal.session.id, turn).values()]
    gone = {effect for timeline in timelines for effect in timeline.taken_back.get(turn, ())}
    outside = [one for one in effects_of(records) if (one.call, one.effect) in gone]
    changed = [one for one in changes_of(records) if (one.call, one.number) in gone]
    if outside or changed:
        done = "; ".join(
            [f"{one.tool}: {one.description}" for one in outside]
            + [f"{one.tool}: {one.description}" for one in changed]
        )
        raise JournalError(
            f"turn {turn} also acted outside the session ({done}); that was taken back, and a redo, which runs no "
            f"tool, cannot do it again: say {prompt_of(records)!r} again instead"
        )


async def _redo(journal: Journal, turn: int) -> int:
    await journal.flush()
    before, restoration = journal.timeline.copy(), journal.restoration()
    restoration.make_again(turn)

    def revert() -> None:
        restoration.take_back(turn)
        journal.timeline.become(before)

    await journal.keep(TurnRedone(turn=turn), revert=revert)
    return turn


async def show_variant(
    journal: Journal, turn: int, registry: ToolRegistry | None = None, *, imported: bool = False
) -> Undone:
    """Let another variant of the newest turn count instead of it, with the world it left; no tool runs for that.

    Refused, before anything is done, when the variant had effects outside the session that were taken back.
    """
    async with journal.session.turn_lock:
        refuse_while_undoing(journal)
        newest = journal.timeline.last
        if journal.timeline.open is not None or newest is None:
            raise JournalError(f"turn {turn} cannot be shown now: let the running turn end first")
        if turn == newest or turn not in journal.timeline.variants_of(newest):
            raise JournalError(
                f"turn {turn} is not another variant of the newest turn, {newest}; branch from it instead"
            )
        await _refuse_what_was_taken_back(journal, turn)
        return await _undo(journal, registry, _Reader(journal), imported, instead=turn)


async def retry(journal: Journal, registry: ToolRegistry | None = None) -> str:
    """Undo the newest turn and return its prompt, to be taken again with origin `retry`. It stays as a variant."""
    return (await undo(journal, registry)).prompt


async def checkpoint(journal: Journal, name: str) -> int:
    """Name the present turn, to return to it; a name used before moves here. Return the turn."""
    try:
        name = as_one_line(check_text(name, "the name of a checkpoint"))
    except ValueError as error:
        raise JournalError(str(error)) from None
    if not name:
        raise JournalError("a checkpoint needs a name")
    async with journal.session.turn_lock:
        refuse_while_undoing(journal)
        turn = journal.timeline.last
        if journal.timeline.open is not None:
            raise JournalError(f"turn {journal.timeline.open} is not finished; let it end, then name it")
        if turn is None:
            raise JournalError("there is no turn yet to give a name to")
        await journal.flush()
        await _keep(journal, Checkpoint(name=name, turn=turn))
        return turn


async def return_to(
    journal: Journal, name: str, registry: ToolRegistry | None = None, *, imported: bool = False
) -> list[Undone]:
    """Undo every turn after a checkpoint, the newest first."""
    undone: list[Undone] = []
    async with journal.session.turn_lock:
        turn = _marked(journal, name)
        read = _Reader(journal)
        while journal.timeline.last is not None and journal.timeline.last > turn:
            undone.append(await _undo(journal, registry, read, imported))
    return undone


def _marked(journal: Journal, name: str) -> int:
    turn = journal.timeline.checkpoints.get(name.strip())
    if turn is None:
        known = ", ".join(sorted(journal.timeline.checkpoints)) or "none"
        raise JournalError(f"there is no checkpoint {name!r}; there are: {known}")
    return turn


async def abandon(journal: Journal) -> int | None:
    """End a turn that a crash left open, without running the rest of it. Return its number, if any."""
    async with journal.session.turn_lock:
        await take_back_killed_writes(journal.session)
        turn = journal.timeline.open
        if turn is not None:
            await _abandon(journal)
        return turn


async def _abandon(journal: Journal) -> None:
    turn = journal.timeline.open
    if turn is not None:
        await journal.flush()
        await _keep(journal, TurnCommitted(turn=turn, outcome="cancelled"))
        journal.session.turn = None
        journal.open_records = []


# --- which turns -------------------------------------------------------------------------------------------


def _newest(journal: Journal) -> int:
    turn = journal.timeline.open if journal.timeline.open is not None else journal.timeline.last
    if turn is None or (turn == 0 and journal.timeline.open is None):
        raise JournalError("there is nothing to undo: the story is at its beginning")
    return turn


def _records_of(journal: Journal, turn: int) -> list[Record]:
    try:
        return journal.store.read_turn(journal.session.id, turn)
    except TurnUnknown:
        raise TurnUnknown(
            f"the records of turn {turn} were lost to damage: it can be neither taken back nor brought back"
        ) from None


def _from(journal: Journal, turn: int) -> list[int]:
    """`turn` and every later one, the newest first."""
    timeline = journal.timeline
    there = [*timeline.turns, timeline.open] if timeline.open is not None else timeline.turns
    if turn <= 0 or turn not in there:
        raise JournalError(f"turn {turn} cannot be undone: it is not a turn of the story as it stands")
    return [one for one in reversed(there) if one >= turn]
