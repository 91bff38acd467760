"""Running the tools of a recorded session again, to see where the outcome differs from what was recorded.

Each turn starts from the world as it was recorded, so one difference does not colour the turns after it.
Plans come from the journal: no narrator is asked. What the tools make goes to a temporary place, and the
session stays untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from narratoria.events import AssetStored
from narratoria.plan import CallResult, PlanDocument
from narratoria.plan_executor import PlanExecutor
from narratoria.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.session.assets import AssetStore
from narratoria.session.fold import CallView, TurnView, fold
from narratoria.session.store import Store
from narratoria.state import diff


class Difference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that came out otherwise. `where` is a call's toolId, or `state`: the world after the turn."""

    turn: int
    where: str
    what: str
    recorded: Any = None
    now: Any = None


class Verification(msgspec.Struct, kw_only=True, rename="camel"):
    session: str
    turns: int = 0
    calls: int = 0
    differences: list[Difference] = msgspec.field(default_factory=list)

    @property
    def same(self) -> bool:
        return not self.differences


async def verify(
    store: Store, session_id: str, registry: ToolRegistry, *, roots: Sequence[Path] = ()
) -> Verification:
    """Run every call of every turn that counts again, in order."""
    outcome = Verification(session=session_id)
    spans = {span.turn: span for span in store.turns(session_id)}
    for turn in fold(store.read(session_id)).told:
        plans = [PlanDocument.from_data(one.plan) for one in turn.plans]
        if not any(plan.tools for plan in plans):
            continue
        span = spans[turn.turn]
        session = store.restore(session_id, upto=span.first)
        session.assets = AssetStore()
        made = _Made()
        session.attach(made)
        for plan in plans:
            trace = await PlanExecutor(registry, session, roots=roots).execute(plan)
            outcome.calls += len(trace.tool_results)
            outcome.differences += _compare_calls(turn, plan, trace.tool_results, made)
        outcome.turns += 1
        outcome.differences += _compare_state(turn.turn, store.restore(session_id, upto=span.last), session)
    return outcome


class _Made:
    """Hears which assets the tools make this time."""

    full = False

    def __init__(self) -> None:
        self.assets: dict[str, list[AssetStored]] = {}

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        if isinstance(record.event, AssetStored):
            self.assets.setdefault(record.event.call, []).append(record.event)


def _compare_calls(
    turn: TurnView, plan: PlanDocument, results: Sequence[CallResult], made: _Made
) -> list[Difference]:
    recorded = {one.call: one for one in turn.calls}
    found: list[Difference] = []
    for result in results:
        call = f"{plan.request_id}:{result.tool_id}"
        before = recorded.get(call)
        if before is None:
            found.append(
                Difference(turn=turn.turn, where=result.tool_id, what="was not run", now=result.state)
            )
            continue
        for what, old, new in _aspects(before, result, made.assets.get(call, [])):
            if old != new:
                found.append(
                    Difference(turn=turn.turn, where=result.tool_id, what=what, recorded=old, now=new)
                )
    return found


def _aspects(before: CallView, now: CallResult, assets: list[AssetStored]) -> list[tuple[str, Any, Any]]:
    """What is compared of a call: not its times, not its logs."""
    aspects: list[tuple[str, Any, Any]] = [
        ("state", before.state, now.state),
        ("error code", before.error_code, now.error_code),
    ]
    if before.ok and now.ok:
        if before.output:
            aspects.append(("output", before.output, now.output))
        old = {one.asset_id: one.hash for one in before.assets}
        aspects.append(("assets", old, {one.asset_id: one.hash for one in assets}))
    return aspects


def _compare_state(turn: int, recorded: Session, now: Session) -> list[Difference]:
    old, new = recorded.snapshot(), now.snapshot()
    if old == new:
        return []
    return [Difference(turn=turn, where="state", what="differs", recorded=diff(new, old), now=diff(old, new))]
