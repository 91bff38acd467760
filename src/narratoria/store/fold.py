"""A session as people see it: turns with their prompts, calls and narration. A pure fold of records.

The live page, `sessions show`, a replay, a transcript and an export all read a session through here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from narratoria.events import (
    ApprovalGiven,
    ApprovalRequested,
    AssetDenied,
    AssetStored,
    CallEmitted,
    CallFinished,
    CallRetrying,
    CallStarted,
    Checkpoint,
    Choices,
    Committed,
    Log,
    MemoriesRecalled,
    ModelAsked,
    Narration,
    NarrationDelta,
    NarrationEdited,
    NarratorChosen,
    Notice,
    PlanFinished,
    PlanMade,
    PlanRefused,
    RecordsLost,
    SessionStarted,
    StatePatch,
    TurnCommitted,
    TurnRedone,
    TurnStarted,
    TurnUndone,
    UiEvent,
)
from narratoria.session.record import Record
from narratoria.state import merge
from narratoria.store.session_views import (
    ApprovalView,
    AttemptView,
    CallView,
    PlanView,
    SessionView,
    TurnView,
)
from narratoria.store.timeline import move_names


def fold(records: Iterable[Record]) -> SessionView:
    """Return the view of a session from all its records."""
    folding = Fold()
    for record in records:
        folding.apply(record)
    return folding.view


def fold_turn(records: Iterable[Record]) -> TurnView:
    """Return the view of one turn from its records alone."""
    turns = fold(records).turns
    return turns[-1] if turns else TurnView(turn=-1)


class Fold:
    """The fold in progress. `view` is current after every record."""

    def __init__(self) -> None:
        self.view = SessionView()
        self._turn: TurnView | None = None
        self._calls: dict[str, CallView] = {}
        self._stored: dict[int, AssetStored] = {}
        self._dropped: dict[str, int] = {}  # checkpoints of undone turns
        self._gone: list[TurnView] = []  # those taken back since the last turn, the last one last

    def apply(self, record: Record) -> None:
        step = _STEPS.get(type(record.event))
        if step is not None:
            step(self, record, record.event)

    # --- the session ------------------------------------------------------------------------------------

    def _session(self, record: Record, event: SessionStarted) -> None:
        view = self.view
        view.session, view.story = event.session, event.story
        view.title = event.title or view.title
        view.parent, view.parent_turn = event.parent_session, event.parent_turn

    def _checkpoint(self, record: Record, event: Checkpoint) -> None:
        self.view.checkpoints[event.name] = event.turn
        self._dropped.pop(event.name, None)

    def _undone(self, record: Record, event: TurnUndone) -> None:
        for turn in self.view.turns:
            if turn.turn == event.turn:
                turn.undone = True
                self._gone.append(turn)
        move_names(event.turn, self.view.checkpoints, self._dropped)

    def _redone(self, record: Record, event: TurnRedone) -> None:
        for turn in self.view.turns:
            if turn.turn == event.turn:
                turn.undone = False
                self._gone = [one for one in self._gone if one is not turn]
        move_names(event.turn, self._dropped, self.view.checkpoints)

    # --- the turn ---------------------------------------------------------------------------------------

    def _started(self, record: Record, event: TurnStarted) -> None:
        self._turn = TurnView(turn=event.turn, prompt=event.prompt, origin=event.origin, started=record.ts)
        if event.origin == "retry" and self._gone:
            earlier = self._gone[-1]
            earlier.variants = earlier.variants or [earlier.turn]
            earlier.variants.append(event.turn)
            self._turn.variants = earlier.variants
        self._gone.clear()
        self._calls.clear()
        self._stored.clear()
        self.view.turns.append(self._turn)

    def _chosen(self, record: Record, event: NarratorChosen) -> None:
        if self._turn is not None:
            self._turn.narrator = event.narrator

    def _asked(self, record: Record, event: ModelAsked) -> None:
        if self._turn is not None:
            self._turn.asked.append(event)

    def _recalled(self, record: Record, event: MemoriesRecalled) -> None:
        if self._turn is not None:
            self._turn.recalled = list(event.memories)

    def _plan(self, record: Record, event: PlanMade) -> None:
        if self._turn is not None:
            self._turn.plans.append(PlanView(plan=event.plan, attempt=event.attempt, narrator=event.narrator))
            self._turn.narrative = ""

    def _refused(self, record: Record, event: PlanRefused) -> None:
        if self._turn is not None:
            self._turn.problems.extend(event.problems)

    def _plan_ended(self, record: Record, event: PlanFinished) -> None:
        if self._turn is not None:
            for plan in self._turn.plans:
                if plan.plan.get("requestId") == event.plan:
                    plan.success = event.success

    def _said(self, record: Record, event: NarrationDelta) -> None:
        if self._turn is not None:
            self._turn.narrative = event.after(self._turn.narrative)

    def _narration(self, record: Record, event: Narration) -> None:
        if self._turn is not None:
            self._turn.narrative = event.text
            self._turn.narrator = event.narrator or self._turn.narrator

    def _edited(self, record: Record, event: NarrationEdited) -> None:
        for turn in self.view.turns:
            if turn.turn == event.turn:
                told = turn.narrative if turn.told is None else turn.told
                turn.narrative, turn.told = (told, None) if event.text is None else (event.text, told)

    def _choices(self, record: Record, event: Choices) -> None:
        if self._turn is not None:
            self._turn.choices = list(event.choices)

    def _notice(self, record: Record, event: Notice) -> None:
        if self._turn is not None:
            self._turn.notices.append(event)

    def _approval(self, record: Record, event: ApprovalRequested) -> None:
        if self._turn is not None:
            self._turn.approvals.append(
                ApprovalView(
                    id=event.id, call=event.call, tool=event.tool, input=event.input, reason=event.reason
                )
            )

    def _answered(self, record: Record, event: ApprovalGiven) -> None:
        for one in self._turn.approvals if self._turn is not None else ():
            if one.id == event.id:
                one.decision, one.edited_input = event.decision, event.input
                one.answer, one.by = event.reason, event.by

    def _lost(self, record: Record, event: RecordsLost) -> None:
        self.view.lost += event.count

    def _ended(self, record: Record, event: TurnCommitted) -> None:
        if self._turn is not None:
            self._turn.outcome, self._turn.ended = event.outcome, record.ts
            for one in self._turn.approvals:
                one.decision = one.decision or "cancelled"
            self._turn = None

    # --- the calls --------------------------------------------------------------------------------------

    def _call(self, record: Record, event: CallStarted) -> None:
        call = self._calls.get(event.call)
        if call is None:
            call = CallView(call=event.call, tool=event.tool, tool_id=event.tool_id, plan=event.plan)
            self._calls[event.call] = call
            (self.view if self._turn is None else self._turn).calls.append(call)
        if event.attempt == 1:  # also a call that a crash cut short, begun again
            call.attempts = []
        call.input, call.state = event.input, "running"
        call.attempts.append(AttemptView(attempt=event.attempt, started=record.ts))

    def _attempt(self, call: str) -> AttemptView | None:
        found = self._calls.get(call)
        return found.attempts[-1] if found is not None and found.attempts else None

    def _emitted(self, record: Record, event: CallEmitted) -> None:
        attempt = self._attempt(event.call)
        if attempt is None:
            return
        if isinstance(event.event, Log):
            attempt.logs.append(event.event)
        elif isinstance(event.event, StatePatch):
            attempt.patches.append(event.event.patch)
        elif isinstance(event.event, UiEvent):
            attempt.ui.append(event.event)

    def _stored_asset(self, record: Record, event: AssetStored) -> None:
        self._stored[record.seq] = event

    def _denied_asset(self, record: Record, event: AssetDenied) -> None:
        if event.call in self._calls:
            self._calls[event.call].refused_assets.append(event.reason)

    def _retrying(self, record: Record, event: CallRetrying) -> None:
        attempt = self._attempt(event.call)
        if attempt is not None:
            attempt.ok, attempt.error, attempt.error_code = False, event.error, event.error_code
            attempt.duration = event.duration or max(0.0, record.ts - attempt.started)
            attempt.delay = event.delay
            _end_process(attempt, event)

    def _committed(self, record: Record, event: Committed) -> None:
        for change in event.changes:
            asset = self._stored.get(change) if isinstance(change, int) else None
            if asset is not None:
                (self.view.other_assets if self._turn is None else self._turn.assets).append(asset)
                if asset.call in self._calls:
                    self._calls[asset.call].assets.append(asset)
        if event.call in self._calls and not event.failed:
            self._calls[event.call].committed = True

    def _finished(self, record: Record, event: CallFinished) -> None:
        call = self._calls.get(event.call)
        if call is None:  # it never ran: refused, or skipped
            call = CallView(call=event.call, tool=event.tool, tool_id=event.tool_id)
            self._calls[event.call] = call
            (self.view if self._turn is None else self._turn).calls.append(call)
        call.ok, call.state, call.message, call.value = event.ok, event.state, event.message, event.value
        call.error, call.error_code, call.duration = event.error, event.error_code, event.duration
        if call.attempts:
            last = call.attempts[-1]
            last.ok, last.error, last.error_code = event.ok, event.error, event.error_code
            alone = event.duration if len(call.attempts) == 1 else 0.0
            last.duration = event.last_duration or alone or max(0.0, record.ts - last.started)
            _end_process(last, event)
            if event.ok:
                for patch in last.patches:
                    call.output = merge(call.output, patch)


def _end_process(attempt: AttemptView, event: CallRetrying | CallFinished) -> None:
    attempt.exit_code, attempt.signal, attempt.stderr = event.exit_code, event.signal, event.stderr


_STEPS: Final[dict[type, Callable[[Fold, Record, Any], None]]] = {
    SessionStarted: Fold._session,
    Checkpoint: Fold._checkpoint,
    TurnUndone: Fold._undone,
    TurnRedone: Fold._redone,
    TurnStarted: Fold._started,
    NarratorChosen: Fold._chosen,
    ModelAsked: Fold._asked,
    MemoriesRecalled: Fold._recalled,
    PlanMade: Fold._plan,
    PlanRefused: Fold._refused,
    PlanFinished: Fold._plan_ended,
    NarrationDelta: Fold._said,
    Narration: Fold._narration,
    NarrationEdited: Fold._edited,
    Choices: Fold._choices,
    Notice: Fold._notice,
    ApprovalRequested: Fold._approval,
    ApprovalGiven: Fold._answered,
    RecordsLost: Fold._lost,
    TurnCommitted: Fold._ended,
    CallStarted: Fold._call,
    CallEmitted: Fold._emitted,
    AssetStored: Fold._stored_asset,
    AssetDenied: Fold._denied_asset,
    CallRetrying: Fold._retrying,
    Committed: Fold._committed,
    CallFinished: Fold._finished,
}
