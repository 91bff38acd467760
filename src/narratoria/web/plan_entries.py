"""The plans of a session, each with how it ended."""

from __future__ import annotations

from narratoria.events import PlanFinished, PlanMade
from narratoria.web.documents import PlanEntry
from narratoria.web.feed import Feed


async def plan_entries(feed: Feed) -> list[PlanEntry]:
    """Return every plan made so far, in order."""
    ended: dict[str, PlanFinished] = {}
    made: list[tuple[int | None, PlanMade]] = []
    async for part in feed.read(0, feed.seq):
        for record in part:
            if isinstance(record.event, PlanMade):
                made.append((record.turn, record.event))
            elif isinstance(record.event, PlanFinished):
                ended[record.event.plan] = record.event
    return [_entry(turn, event, ended.get(event.plan["requestId"])) for turn, event in made]


def _entry(turn: int | None, made: PlanMade, ended: PlanFinished | None) -> PlanEntry:
    return PlanEntry(
        turn=turn,
        attempt=made.attempt,
        narrator=made.narrator,
        plan=made.plan,
        success=ended.success if ended else None,
        failed=list(ended.failed) if ended else [],
    )
