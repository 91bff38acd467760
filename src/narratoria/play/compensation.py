"""Effects of a turn outside the session: if each can be taken back, by which compensation, and taking them back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from narratoria.errors import JournalError
from narratoria.events import Committed, EffectApplied, EffectTakenBack
from narratoria.run.executor import ToolExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Draft, Record
from narratoria.store.journal import Journal
from narratoria.tools.contract import Compensation, Effect
from narratoria.tools.tool import CallScope, Tool, ToolContext, ToolResult

GRACE: Final = 2.0  # seconds that a rollback may still take once its undo is cancelled
NOT_HERE: Final = "its tool is not here"
IMPORTED: Final = "how to take it back comes from an imported file, and is not run unasked"


@dataclass(frozen=True, slots=True)
class StayingEffect:
    """An effect outside the session that an undo leaves in place, and the reason."""

    tool: str
    description: str
    reason: str
    tried: bool = False  # whether its compensation ran, and failed
    lacks_tool: bool = False  # whether it could be taken back with the story's tools at hand
    of_a_file: bool = False  # whether it would be taken back if a person asked for what an imported file says

    def __str__(self) -> str:
        said = f"{self.tool}: {self.description}"
        return f"{said} was not taken back: {self.reason}" if self.tried else f"{said} ({self.reason})"


@dataclass(frozen=True, slots=True)
class SentNotification:
    """A notification that was sent: it cannot be unsent."""

    event: str

    def __str__(self) -> str:
        return f"notification {self.event!r} (it was sent)"


Staying = StayingEffect | SentNotification
Weighed = tuple[EffectApplied, StayingEffect | None]  # why it cannot be taken back now, or None


def effects_of(records: list[Record]) -> list[EffectApplied]:
    return [one for record in records if isinstance(record.event, Committed) for one in record.event.effects]


def weigh(
    journal: Journal,
    turn: int,
    records: list[Record],
    registry: ToolRegistry | None,
    *,
    imported: bool = False,
) -> list[Weighed]:
    """Return the standing outside effects of a turn, each with the reason it cannot be taken back, or None.

    With `imported`, compensations named by an imported file count too.
    """
    done = journal.timeline.taken_back.get(turn, ())
    standing = [one for one in effects_of(records) if (one.call, one.effect) not in done]
    sharing = sharing_of(journal, turn) if any(one.reversible for one in standing) else None
    return [(one, _obstacle(one, sharing, registry, imported)) for one in standing]


def sharing_of(journal: Journal, turn: int) -> str | None:
    """Return the session that shares this turn, in words, or None."""
    for other, timeline in journal.store.sharing(journal.session.id, turn).items():
        if turn in timeline.turns:
            if other == journal.store.meta(journal.session.id).parent:
                return "shared with the session this one branched from"
            return f"session {other[:12]} shares it"
    return None


def _obstacle(
    applied: EffectApplied, sharing: str | None, registry: ToolRegistry | None, imported: bool
) -> StayingEffect | None:
    stays = partial(StayingEffect, applied.tool, applied.description)
    if not applied.reversible:
        return stays("irreversible")
    if sharing is not None:
        return stays(sharing)
    tool = registry.find_part(applied.tool) if registry is not None else None
    if registry is None or tool is None:
        return stays(NOT_HERE, lacks_tool=True)
    effect = effect_of(tool, applied)
    if effect is None:
        return stays("its tool has changed since")
    if effect.rollback is None:
        return stays("it has an apply but no rollback")
    by = effect.rollback.tool if isinstance(effect.rollback, Compensation) else None
    if isinstance(by, str) and not registry.has(by):
        return stays(f"the tool that takes it back, {by!r}, is not here", lacks_tool=True)
    if applied.imported and not imported:
        return stays(IMPORTED, of_a_file=True)
    return None


def effect_of(tool: Tool[object, object], applied: EffectApplied) -> Effect | None:
    """Return the tool's effect that matches the recorded one: the same description in the same place, or the only one
    with that description.

    A tool may have been edited since; another effect's compensation must not run with this one's receipt.
    """
    same = [
        (place, one)
        for place, one in enumerate(tool.effects)
        if one.description == applied.description and one.reversible and one.reaches_outside
    ]
    for place, one in same:
        if place == applied.effect or len(same) == 1:
            return one
    return None


@dataclass(frozen=True, slots=True)
class _Undoing:
    """The pipeline as an undone effect sees it: its compensation has one id, also when it is repeated after a crash."""

    pipeline: ToolExecutor
    call_id: str

    @property
    def scope(self) -> CallScope:
        return self.pipeline.scope

    def has_tool(self, name: str) -> bool:
        return self.pipeline.has_tool(name)

    async def execute(
        self, name: str | Tool[Any, Any], args: Mapping[str, Any], *, session: Draft
    ) -> ToolResult[Any]:
        return await self.pipeline.execute(name, args, session=session)

    async def compensate(
        self, tool: str | Tool[Any, Any], args: Mapping[str, Any], *, session: Draft
    ) -> ToolResult[Any]:
        return await self.pipeline.compensate(tool, args, session=session, call_id=self.call_id)

    async def drop(self, draft: Draft) -> None:
        await self.pipeline.drop(draft)


async def compensate(
    journal: Journal, registry: ToolRegistry, turn: int, applied: EffectApplied
) -> StayingEffect | None:
    """Take an effect back and record that on the disk; return it, with the reason, if that failed."""
    tool = registry.find_part(applied.tool)
    effect = effect_of(tool, applied) if tool is not None else None
    if tool is None or effect is None:
        raise JournalError(f"{applied.tool} was unregistered while its effects were being taken back")
    draft = journal.session.draft()
    pipeline = _Undoing(registry.executor, f"{applied.call}:undo:{applied.effect}")
    context = ToolContext(tool, draft, applied.call, pipeline, CallScope())
    journal.session.turn = turn  # what is recorded meanwhile is of this turn
    work = asyncio.ensure_future(effect.roll_back(context, applied.receipt))
    try:
        cancelled = await _finished(work)
        reason = _failure(work)
    except BaseException:
        draft.discard()
        raise
    finally:
        journal.session.turn = None
    failed: StayingEffect | None = None
    if reason is not None:
        draft.discard()
        failed = StayingEffect(applied.tool, applied.description, reason, tried=True)
    else:
        draft.commit_resources()  # the session itself goes back by the turn's inverses
        journal.session.record(
            EffectTakenBack(
                turn=turn, call=applied.call, effect=applied.effect, description=applied.description
            )
        )
        await journal.commit_turn()
    if cancelled is not None:
        raise cancelled
    return failed


def _failure(work: asyncio.Future[None]) -> str | None:
    """Return the reason a rollback failed, or None."""
    try:
        work.result()
    except asyncio.CancelledError:  # by itself
        return "it was cancelled"
    except Exception as error:  # foreign code; 004: "Log but continue with other rollbacks"
        return str(error)
    return None


async def _finished(work: asyncio.Future[None]) -> asyncio.CancelledError | None:
    """Wait until a rollback has ended, and return the cancellation that came meanwhile.

    It may go on for a moment then, so that it is not left half done; one that does not end is cancelled too, and the
    cancellation raised.
    """
    try:
        await asyncio.wait([work])
    except asyncio.CancelledError as cancelled:
        await asyncio.wait([work], timeout=GRACE)
        if work.done():
            return cancelled
        work.cancel()
        await asyncio.wait([work], timeout=GRACE)
        raise
    return None
