"""Changes of a turn in resources, such as files: if each can be put back, and putting them back.

The journal has the state before and after each call (`Committed.resources`). The resource itself decides if things
are still as the call left them: a change that somebody else made since is never overwritten, but listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from narratoria.events import CallStarted, Committed, EffectTakenBack, ResourceChange
from narratoria.play.compensation import IMPORTED, StayingEffect, sharing_of
from narratoria.session import Record
from narratoria.session.resources.resources import ResourceContext, ResourceError, Undoable
from narratoria.store.journal import Journal

NOT_BOUND: Final = "the resource is not here; bind it when the session is opened"


@dataclass(slots=True)
class Changed:
    """One change, its call, and the reason it stays, if it does. Its number is below zero: effects count from zero."""

    call: str
    number: int
    tool: str
    change: ResourceChange
    stays: StayingEffect | None = None

    @property
    def description(self) -> str:
        return self.change.description

    def stay(self, reason: str, *, tried: bool = False, of_a_file: bool = False) -> None:
        self.stays = StayingEffect(self.tool, self.description, reason, tried=tried, of_a_file=of_a_file)


def changes_of(records: list[Record]) -> list[Changed]:
    """Return the changes in the order they were made. Those that a killed attempt left are counted with its call's."""
    tools = {one.event.call: one.event.tool for one in records if isinstance(one.event, CallStarted)}
    counts: Counter[str] = Counter()
    found: list[Changed] = []
    for record in records:
        event = record.event
        if isinstance(event, Committed):
            for one in event.resources:
                counts[event.call] += 1
                found.append(Changed(event.call, -counts[event.call], tools.get(event.call, "a call"), one))
    return found


def weigh_changes(journal: Journal, turn: int, records: list[Record], *, imported: bool) -> list[Changed]:
    """Return the standing changes, each with the reason it cannot be put back, or None. Nothing is changed."""
    found = standing_changes(journal, turn, records, imported=imported)
    weigh_together(journal, [found])
    return found


def standing_changes(journal: Journal, turn: int, records: list[Record], *, imported: bool) -> list[Changed]:
    """Return the changes not taken back yet. One that no undo takes back has its reason."""
    done = journal.timeline.taken_back.get(turn, ())
    found = [one for one in changes_of(records) if (one.call, one.number) not in done]
    sharing = sharing_of(journal, turn) if found else None
    for one in found:
        if sharing is not None:
            one.stay(sharing)
        elif one.change.imported and not imported:
            one.stay(IMPORTED, of_a_file=True)
    return found


def weigh_together(journal: Journal, turns: Sequence[list[Changed]]) -> None:
    """Give a reason to each change that cannot be put back when these turns are undone, the newest first.

    A file that three turns wrote is as the newest left it, so the older ones are weighed with the newer ones undone.
    """
    draft = journal.session.draft()
    try:
        whole = [replace(one) for changes in reversed(turns) for one in changes]
        if len(turns) > 1:
            take_back(draft.resources, whole, try_only=True)
            if not any(one.stays for one in whole):
                return
        newer: list[Changed] = []
        for changes in turns:
            undone = [replace(one) for one in newer]
            take_back(draft.resources, [*changes, *undone], try_only=True)
            newer = [*(one for one in changes if one.stays is None), *newer]
    finally:
        draft.discard()


async def put_back(journal: Journal, turn: int, weighed: list[Changed]) -> list[Changed]:
    """Put back the changes that can be, and record that on the disk. Return those tried; one that stays has its
    reason.
    """
    tried = [one for one in weighed if one.stays is None]
    if not tried:
        return []
    draft = journal.session.draft()
    try:
        take_back(draft.resources, tried, try_only=False)
    except BaseException:
        draft.discard()
        raise
    draft.commit_resources()
    for one in tried:
        if one.stays is None:
            journal.session.record(
                EffectTakenBack(turn=turn, call=one.call, effect=one.number, description=one.description)
            )
    await journal.commit_turn()
    return tried


def take_back(resources: ResourceContext, changes: Sequence[Changed], *, try_only: bool) -> None:
    """Put changes back, or only see if that could be done; one that cannot be stays, with the reason."""
    for name in dict.fromkeys(one.change.resource for one in changes):
        these = [one for one in changes if one.change.resource == name and one.stays is None]
        resource = _bound(resources, name) if these else None
        if resource is None:
            reasons: list[str | None] = [NOT_BOUND] * len(these)
        else:
            try:
                reasons = list(resource.take_back([one.change.receipt for one in these], try_only=try_only))
            except Exception as error:  # a resource is foreign code, and its receipt may be a file's
                reasons = [f"{type(error).__name__}: {error}"] * len(these)
        for one, reason in zip(these, reasons, strict=True):
            if reason is not None:
                one.stay(reason, tried=not try_only)


def _bound(resources: ResourceContext, name: str) -> Undoable | None:
    try:
        return resources.undoable(name)
    except ResourceError:
        return None
