"""Writes of calls that a crash cut short: they are taken back before anything else happens in the session.

An attempt that fails loses its writes; so does one whose process is killed. What cannot be put back is recorded as
left by the call, so that an undo of the turn lists it, or puts it back once the filesystem is bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

from narratoria.events import Committed, Notice, ResourceChange
from narratoria.play.resource_undo import NOT_BOUND, Changed, take_back
from narratoria.session import Session
from narratoria.session.resources.file_changes import FileChange
from narratoria.session.resources.resources import ResourceContext
from narratoria.session.resources.write_notes import KilledWrite
from narratoria.store.journal import Journal


async def take_back_killed_writes(session: Session) -> None:
    """Take back the writes that an earlier process noted and did not finish; record those that stay."""
    journal = session.journal
    if not isinstance(journal, Journal):
        return
    found = journal.notes.left_behind()
    if not found:
        return
    draft = session.draft()
    try:
        staying = _put_back(draft.resources, _unfinished(journal, found))
    except BaseException:
        draft.discard()
        raise
    draft.commit_resources()
    _record(journal, staying)
    await journal.flush()
    for one in found:
        journal.notes.remove(one.number)


def _unfinished(journal: Journal, found: Sequence[KilledWrite]) -> list[KilledWrite]:
    """Return the writes without those of calls that are committed after all, and without those before them."""
    records = journal.store.read(journal.session.id, min(one.after for one in found))
    committed: dict[str, int] = {}
    for record in records:
        if isinstance(record.event, Committed) and not record.event.failed:
            committed[record.event.call] = record.seq
    final: dict[tuple[str, str], int] = {}
    for one in found:
        if committed.get(one.call, 0) > one.after:
            final[one.resource, one.path] = one.number
    return [one for one in found if one.number > final.get((one.resource, one.path), 0)]


class _Try:
    """The writes to one path, as one change to be taken back, from what the last of them was to leave."""

    def __init__(self, writes: Sequence[KilledWrite], left: str | None) -> None:
        self.writes = writes
        self.change = msgspec.structs.replace(writes[0].before, left=left)
        self.changed = changed(writes[0].resource, self.change)

    @property
    def stays(self) -> str | None:
        return self.changed.stays.reason if self.changed.stays is not None else None


def changed(resource: str, change: FileChange) -> Changed:
    receipt = msgspec.to_builtins(change)
    return Changed("", 0, "", ResourceChange(resource, change.description, receipt))


def _put_back(
    resources: ResourceContext, writes: Sequence[KilledWrite]
) -> list[tuple[KilledWrite, FileChange, str]]:
    """Put back what can be; return the rest, each with the reason."""
    by_path = sorted(writes, key=lambda one: (one.resource, one.path, one.number))
    grouped = [list(same) for _, same in groupby(by_path, key=lambda one: (one.resource, one.path))]
    tries = [_Try(same, same[-1].lefts[-1]) for same in grouped]
    take_back(resources, [one.changed for one in tries], try_only=True)
    tries = [_other_try(resources, one) if one.stays else one for one in tries]
    parts = [(one, one.part, changed(one.resource, one.part)) for one in writes if one.part is not None]
    every = [*(one.changed for one in tries), *(part for _, _, part in parts)]
    take_back(resources, every, try_only=False)
    staying = [
        (write, msgspec.structs.replace(write.before, left=write.lefts[-1]), one.stays)
        for one in tries
        if one.stays
        for write in one.writes
    ]
    for write, change, part in parts:
        if part.stays is not None and part.stays.reason != NOT_BOUND:
            staying.append((write, change, part.stays.reason))
    return staying


def _other_try(resources: ResourceContext, failed: _Try) -> _Try:
    """Return a try from what an earlier write left, if that is there now: the process was killed before the last one,
    or while writes were taken back. Else all of it, once more.
    """
    lefts = [left for one in failed.writes for left in one.lefts]
    for left in dict.fromkeys(lefts[::-1]):
        other = _Try(failed.writes, left)
        take_back(resources, [other.changed], try_only=True)
        if other.stays is None:
            return other
    return _Try(failed.writes, lefts[-1])


def _record(journal: Journal, staying: Sequence[tuple[KilledWrite, FileChange, str]]) -> None:
    session, before = journal.session, journal.session.turn
    for write, change, reason in staying:
        session.turn = write.turn if write.turn == journal.timeline.open else None
        receipt = msgspec.to_builtins(change)
        left = ResourceChange(write.resource, change.description, receipt)
        if session.turn is not None:
            session.record(Committed(call=write.call, changes=[], resources=[left], failed=True))
        message = f"{change.description} by a call that was cut short, and not put back: {reason}"
        session.notice(Notice(level="warn", message=message))
    session.turn = before
