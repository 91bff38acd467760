"""Resuming after a crash: the decisions and completed calls of an open turn, rebuilt from its records.

In flight is at least once, completed is exactly once: a call that committed keeps its result and is not run again;
one that did not is run again under the same id, which is its idempotency key. Its attempts before count: it goes on
with the one that was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from narratoria.errors import CANCELLED, PlanRejected
from narratoria.events import (
    ApprovalGiven,
    ApprovalRequested,
    CallEmitted,
    CallFinished,
    CallRetrying,
    CallStarted,
    Committed,
    PlanFinished,
    PlanMade,
    PlanRefused,
    SkillHealth,
    ToolEvent,
    TurnCommitted,
    TurnStarted,
)
from narratoria.play.earlier_plans import FutileCall, is_futile
from narratoria.play.turn_types import Origin
from narratoria.run.plan import CallResult, PlanDocument, PlannedCall
from narratoria.run.records import committed_result, interrupted_result, recorded_result
from narratoria.session import Record
from narratoria.store.journal import Journal


@dataclass(slots=True)
class OpenTurn:
    """An open turn, for `take_turn(…, resume=…)`. `plan` is None when a plan is still to be made."""

    turn: int
    prompt: str
    origin: Origin = "player"
    plan: PlanDocument | None = None
    completed: dict[str, CallResult] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    attempt: int = 1
    narrator: str = ""  # who made the plan
    told: dict[str, str] = field(default_factory=dict)  # its words for the results of calls, by their ids
    parent: str | None = None  # the id of the plan before, which failed or was rejected
    problems: tuple[str, ...] = ()  # why the plan before was rejected
    ids: set[str] = field(default_factory=set)  # of the turn's plans, also of those that were rejected
    futile: list[tuple[PlanDocument, FutileCall]] = field(
        default_factory=list
    )  # that failed for their arguments
    approvals: list[ApprovalRequested | ApprovalGiven] = field(default_factory=list)


def open_turn(journal: Journal) -> OpenTurn | None:
    """Return the turn a crash left open in a restored session, or None."""
    return from_records(journal.open_records) if journal.timeline.open is not None else None


def from_records(records: Iterable[Record]) -> OpenTurn | None:
    """Return the open turn of these records, which are all of one turn."""
    found: OpenTurn | None = None
    calls: dict[str, _Call] = {}
    for record in records:
        event = record.event
        if isinstance(event, TurnStarted):
            found, calls = OpenTurn(event.turn, event.prompt, event.origin), {}
        elif found is None:
            continue
        elif isinstance(event, PlanMade):
            _take_plan(found, event)
            calls = {}  # an older version let two plans have one id, and so their calls
        elif isinstance(event, PlanRefused):
            found.plan, found.attempt = None, event.attempt + 1
            rejected = event.rejected or event.plan  # else the narrator itself failed
            found.problems = tuple(event.problems) if rejected else ()
            if event.plan:
                found.parent = event.plan
                found.ids.add(event.plan)
        elif isinstance(event, PlanFinished):
            if not event.success:  # that attempt is spent; the next plan is made afresh
                if found.plan is not None:
                    found.futile += _futile(found.plan, calls)
                found.plan, found.attempt, found.parent = None, found.attempt + 1, event.plan
        elif isinstance(event, ApprovalRequested | ApprovalGiven):
            found.approvals.append(event)
        elif isinstance(event, SkillHealth):
            (found.disabled.add if "Failure" in event.health else found.disabled.discard)(event.skill)
        elif isinstance(event, TurnCommitted):
            return None
        else:
            _note(calls, record)
    if found is not None and found.plan is not None:
        for planned in found.plan.tools:
            result = _result(found.plan, planned, calls)
            if result is not None:
                found.completed[planned.tool_id] = result
    return found


def _take_plan(found: OpenTurn, event: PlanMade) -> None:
    found.attempt, found.narrator, found.problems = event.attempt, event.narrator, ()
    found.told = dict(event.told)
    found.ids.add(str(event.plan.get("requestId")))
    try:
        found.plan = PlanDocument.from_data(event.plan)
    except PlanRejected:  # an older version was less strict: the next plan is made afresh
        found.plan, found.attempt = None, event.attempt + 1


def _result(plan: PlanDocument, planned: PlannedCall, calls: Mapping[str, _Call]) -> CallResult | None:
    call = calls.get(f"{plan.request_id}:{planned.tool_id}")
    return call.result(planned.tool_id) if call is not None else None


def _futile(plan: PlanDocument, calls: Mapping[str, _Call]) -> Iterator[tuple[PlanDocument, FutileCall]]:
    """Yield the plan with each call of it that failed for its arguments."""
    for planned in plan.tools:
        result = _result(plan, planned, calls)
        if result is not None and is_futile(planned, result):
            yield plan, FutileCall(planned.tool_path, result.error or "")


@dataclass(slots=True)
class _Call:
    """One call, read from its records. The events of its parts are its own too."""

    events: list[ToolEvent] = field(default_factory=list)
    attempt: list[_Emitted] = field(default_factory=list)  # those of the latest attempt
    parent: _Call | None = None
    cascade: bool = False  # called by an effect, or part of such a call
    committed: frozenset[int] | None = None  # the records that the commit kept
    finished: CallFinished | None = None
    begun: bool = False
    failed: list[CallRetrying] = field(default_factory=list)  # its attempts that were followed by another

    def result(self, tool_id: str) -> CallResult | None:
        end = self.finished
        if end is not None and end.verdict == CANCELLED:
            end = None
        if end is not None and (end.ok or self.committed is None):
            return recorded_result(tool_id, end, self.events, self._given())
        if self.committed is not None:
            return committed_result(tool_id, self.events, self._given())
        if not self.begun:
            return None
        elapsed = sum(one.duration + one.delay for one in self.failed)
        return interrupted_result(tool_id, self.events, len(self.failed), elapsed)

    def _given(self) -> list[ToolEvent]:
        """The events that make up the output: the call's own, and the patches of its parts that were kept."""
        kept = self.committed or frozenset()
        return [
            one.event for one in self.attempt if one.by is self or (one.seq in kept and not one.by.cascade)
        ]


class _Emitted(NamedTuple):
    seq: int
    event: ToolEvent
    by: _Call


def _note(calls: dict[str, _Call], record: Record) -> None:
    event = record.event
    if isinstance(event, CallStarted):
        call = calls.setdefault(event.call, _Call())
        call.parent = calls.get(event.parent) if event.parent is not None else None
        call.cascade = event.cascade or (call.parent is not None and call.parent.cascade)
        call.attempt = []
        call.begun = True
    elif isinstance(event, CallEmitted):
        made = _Emitted(record.seq, event.event, calls.setdefault(event.call, _Call()))
        above: _Call | None = made.by
        while above is not None:
            above.events.append(event.event)
            above.attempt.append(made)
            above = above.parent
    elif isinstance(event, Committed) and not event.failed:
        kept = frozenset(one for one in event.changes if isinstance(one, int))
        calls.setdefault(event.call, _Call()).committed = kept
    elif isinstance(event, CallRetrying):
        calls.setdefault(event.call, _Call()).failed.append(event)
    elif isinstance(event, CallFinished):
        calls.setdefault(event.call, _Call()).finished = event
