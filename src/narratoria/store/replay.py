"""Verification of a recorded session: its tools run again, and the outcome is compared with the record.

Each turn starts from the world as it was recorded, so one difference does not affect the turns after it. Plans come
from the journal: no narrator is asked. The tools' files go to a temporary place, and the session stays untouched.
Effects outside the session do happen again: each call has a new id, or a tool that acts once per id would not act at
all.

Compared are the endings of calls, their output, message, assets and the events they showed (choices among them); and
of the turn the state, memory, permissions and notifications. Not times, logs and typed slices, whose reducers are the
program's own.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from narratoria.events import Committed, MemoryChange, Notification
from narratoria.run.plan import CallResult, PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.session.approvals import ApprovalAnswer, ApprovalRequest
from narratoria.session.assets import AssetStore
from narratoria.session.memory import EPISODIC
from narratoria.state import diff
from narratoria.store.fold import fold
from narratoria.store.session_views import CallView, TurnView
from narratoria.store.store import Store


class Difference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One difference. `where` is a call's toolId, or the part of the world that differs after the turn: `state`,
    `memory`, `permissions`, `notifications`.
    """

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
    store: Store,
    session_id: str,
    registry: ToolRegistry,
    *,
    roots: Sequence[Path] = (),
    permissions: Iterable[str] = (),
) -> Verification:
    """Run every call of every turn that counts again, in order.

    `permissions` are the story's: what an imported session claims beyond them does not count.
    """
    permissions = frozenset(permissions)
    outcome = Verification(session=session_id)
    spans = {span.turn: span for span in store.turns(session_id)}
    for turn in fold(store.read(session_id)).told:
        plans = [PlanDocument.from_data(one.plan) for one in turn.plans]
        if not any(plan.tools for plan in plans):
            continue
        span = spans[turn.turn]
        session = store.restore(session_id, upto=span.first)
        session.assets = AssetStore()
        session.grants.trust(permissions)
        made = _Made()
        session.attach(made)
        session.approvals.approver = _Recorded(turn).answer
        for plan in plans:
            again = msgspec.structs.replace(plan, request_id=str(uuid.uuid4()))
            trace = await PlanExecutor(registry, session, roots=roots).execute(again)
            outcome.calls += len(trace.tool_results)
            now = {call.tool_id: call for call in fold(made.records).calls if call.plan == again.request_id}
            outcome.differences += _compare_calls(turn, plan, trace.tool_results, now)
        outcome.turns += 1
        recorded = store.restore(session_id, upto=span.last)
        recorded.grants.trust(permissions)
        outcome.differences += _compare_state(turn.turn, recorded, session)
        records = store.read_turn(session_id, turn.turn)
        for where, old, new in (
            ("memory", _memory(records), _memory(made.records)),
            ("permissions", sorted(recorded.permissions), sorted(session.permissions)),
            ("notifications", _notifications(records), _notifications(made.records)),
        ):
            if old != new:
                outcome.differences.append(
                    Difference(turn=turn.turn, where=where, what="differs", recorded=old, now=new)
                )
    return outcome


class _Recorded:
    """The answers that a turn got, for the same questions again. Nobody is asked."""

    def __init__(self, turn: TurnView) -> None:
        self.left = [one for one in turn.approvals if one.decision in ("approved", "edited", "refused")]

    async def answer(self, request: ApprovalRequest) -> ApprovalAnswer:
        for one in self.left:
            if one.tool == request.tool.name and one.input == request.input:
                self.left.remove(one)
                decision: Any = one.decision
                return ApprovalAnswer(decision, one.edited_input, one.answer, one.by)
        return ApprovalAnswer.refuse("this was not asked when the session was played")


class _Made:
    """A sink for the records of the repeated calls."""

    full = False

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.records.append(record)


def _compare_calls(
    turn: TurnView, plan: PlanDocument, results: Sequence[CallResult], now: dict[str | None, CallView]
) -> list[Difference]:
    recorded = {one.call: one for one in turn.calls}
    found: list[Difference] = []
    for result in results:
        before = recorded.get(f"{plan.request_id}:{result.tool_id}")
        if before is None:
            found.append(
                Difference(turn=turn.turn, where=result.tool_id, what="was not run", now=result.state)
            )
            continue
        for what, old, new in _aspects(before, result, now.get(result.tool_id)):
            if old != new:
                found.append(
                    Difference(turn=turn.turn, where=result.tool_id, what=what, recorded=old, now=new)
                )
    return found


def _aspects(before: CallView, result: CallResult, now: CallView | None) -> list[tuple[str, Any, Any]]:
    aspects: list[tuple[str, Any, Any]] = [
        ("state", before.state, result.state),
        ("error code", before.error_code, result.error_code),
    ]
    if before.ok and result.ok and now is not None:
        if before.output:
            aspects.append(("output", before.output, result.output))
        aspects += [
            ("message", before.message, now.message),
            ("shown", _shown(before), _shown(now)),
            ("assets", _hashes(before), _hashes(now)),
        ]
    return aspects


def _shown(call: CallView) -> list[Any]:
    """Return the client events of the attempt that counts: the choices it offers, a scene, a sound."""
    return [[one.event, one.payload] for one in call.attempts[-1].ui] if call.attempts else []


def _hashes(call: CallView) -> dict[str, str]:
    return {one.asset_id: one.hash for one in call.assets}


def _memory(records: Iterable[Record]) -> list[Any]:
    """Return the changes of memory, sorted: concurrent calls may have made them in another order."""
    changes = [
        [change.scope, change.op, change.key, _without_its_time(change)]
        for record in records
        if isinstance(record.event, Committed)
        for change in record.event.changes
        if isinstance(change, MemoryChange)
    ]
    return sorted(changes, key=msgspec.json.encode)


def _without_its_time(change: MemoryChange) -> Any:
    timed = change.scope == EPISODIC and isinstance(change.value, dict) and "at" in change.value
    return change.value.get("value") if timed else change.value


def _notifications(records: Iterable[Record]) -> list[Any]:
    sent = [
        [record.event.event, record.event.payload]
        for record in records
        if isinstance(record.event, Notification)
    ]
    return sorted(sent, key=msgspec.json.encode)


def _compare_state(turn: int, recorded: Session, now: Session) -> list[Difference]:
    old, new = recorded.snapshot(), now.snapshot()
    if old == new:
        return []
    return [Difference(turn=turn, where="state", what="differs", recorded=diff(new, old), now=diff(old, new))]
