"""One call taken apart, from the records of its turn: attempts, events, request, and what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from narratoria.errors import JournalError, NarratoriaError
from narratoria.events import (
    AssetDenied,
    AssetStored,
    CallEmitted,
    CallFinished,
    CallRetrying,
    CallStarted,
    Committed,
    EffectApplied,
    JsonObject,
    MemoryChange,
    PatchChange,
    PermissionChange,
    PlanMade,
    StatePatch,
)
from narratoria.run.plan import PlanDocument
from narratoria.run.records import output_of
from narratoria.session import Record, Session
from narratoria.state import lookup, merge
from narratoria.store.fold import fold
from narratoria.store.session_views import AttemptView, CallView
from narratoria.store.store import Store

MOST_CHANGES: Final = 500
"""Changes of the state that are listed of one call; `change_count` says how many there are."""


class CallUnknown(JournalError):
    """The session has no such call."""


class StateChangeView(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A value of the state that the call changed; `path` is the keys that lead to it."""

    path: list[str]
    kind: Literal["added", "changed", "removed"]
    before: Any = None
    after: Any = None


class EventView(msgspec.Struct, kw_only=True, rename="camel"):
    """A record of the call: `at` is in seconds after its beginning."""

    seq: int
    at: float
    attempt: int
    event: Any


class RecordedCall(msgspec.Struct, kw_only=True, rename="camel"):
    """A call with all the journal has of it. `request` is what its process read on standard input."""

    call: str
    tool: str
    tool_id: str | None = None
    tool_path: str | None = None
    plan: str | None = None
    parent: str | None = None
    turn: int | None = None
    started: float = 0.0
    state: str = "running"
    ok: bool | None = None
    message: str = ""
    value: Any = None
    error: str | None = None
    error_code: str | None = None
    suggestions: list[str] = msgspec.field(default_factory=list)
    duration: float = 0.0
    input: JsonObject = msgspec.field(default_factory=dict)
    dependencies: JsonObject = msgspec.field(default_factory=dict)
    request: JsonObject | None = None
    operation: str | None = None
    attempts: list[AttemptView] = msgspec.field(default_factory=list)
    patches: list[JsonObject] = msgspec.field(default_factory=list)  # of the last attempt
    committed: bool = False
    changes: list[StateChangeView] = msgspec.field(default_factory=list)
    change_count: int = 0
    other_changes: list[str] = msgspec.field(default_factory=list)
    effects: list[EffectApplied] = msgspec.field(default_factory=list)
    assets: list[AssetStored] = msgspec.field(default_factory=list)
    refused_assets: list[str] = msgspec.field(default_factory=list)
    event_count: int = 0


class CallRecords(NamedTuple):
    """The records of a call's turn, and of these the ones of the call itself."""

    turn: Sequence[Record]
    own: Sequence[Record]

    @property
    def call(self) -> str:
        event: Any = self.own[0].event
        return str(event.call)

    @property
    def begun(self) -> Record | None:
        """The beginning of the last attempt; None of a call that never ran."""
        return next((one for one in reversed(self.own) if isinstance(one.event, CallStarted)), None)


def find_call(store: Store, session_id: str, call: str, turn: int | None = None) -> CallRecords:
    """Return the records of the call of this id; with `turn`, only those of the turn are read."""
    records = list(store.read(session_id)) if turn is None else list(store.read_turn(session_id, turn))
    own = [record for record in records if _of(record) == call]
    # A change outside any call has the id "", and no beginning or end.
    if not any(isinstance(record.event, CallStarted | CallFinished) for record in own):
        raise CallUnknown(
            f"session {session_id} has no call {call!r}; its calls are in `sessions call {session_id}`"
        )
    of_turn = own[0].turn
    return CallRecords([record for record in records if record.turn == of_turn], own)


def named_call(store: Store, session_id: str, name: str) -> str:
    """Return the id of the newest call with this id, `toolId` or tool, or whose id begins with `name`."""
    calls = [one for _, one in all_calls(store.read(session_id))]
    for found in (
        [one for one in calls if one.call == name],
        [one for one in calls if one.tool_id == name],
        [one for one in calls if one.tool == name],
        [one for one in calls if one.call.startswith(name)],
    ):
        if found:
            return found[-1].call
    raise CallUnknown(
        f"session {session_id} has no call {name!r}; `narratoria sessions call {session_id}` lists its {len(calls)}"
    )


def all_calls(records: Iterable[Record]) -> Iterator[tuple[int | None, CallView]]:
    """Yield every call with its turn, turns that were taken back included."""
    view = fold(records)
    for turn in view.turns:
        yield from ((turn.turn, call) for call in turn.calls)
    yield from ((None, call) for call in view.calls)


def events_of(records: CallRecords, first: int = 0, most: int | None = None) -> list[EventView]:
    """Return the records of a call in their order, from number `first` on, at most `most` of them."""
    began = records.own[0].ts
    attempt, shown = 1, []
    last = len(records.own) if most is None else first + most
    for number, record in enumerate(records.own[:last]):
        if isinstance(record.event, CallStarted):
            attempt = record.event.attempt
        if number >= first:
            event: Any = record.event
            inner = event.event if isinstance(event, CallEmitted) else event
            at = round(max(0.0, record.ts - began), 6)
            shown.append(EventView(seq=record.seq, at=at, attempt=attempt, event=inner))
    return shown


def recorded_call(records: CallRecords, world: Session | None) -> RecordedCall:
    """Return the call taken apart. `world` is the session as it was just before, if it is known."""
    own, call = records.own, records.call
    view = [one for _, one in all_calls(records.turn) if one.call == call][-1]
    started = next((one.event for one in own if isinstance(one.event, CallStarted)), None)
    ended = next((one.event for one in reversed(own) if isinstance(one.event, CallFinished)), None)
    planned, plan = _planned(records.turn, call)
    told = RecordedCall(
        call=call,
        tool=view.tool,
        tool_id=view.tool_id,
        tool_path=planned,
        plan=plan,
        parent=started.parent if started else None,
        turn=own[0].turn,
        started=own[0].ts,
        state=view.state,
        ok=view.ok,
        message=view.message,
        value=view.value,
        error=view.error,
        error_code=view.error_code,
        suggestions=list(ended.suggestions) if ended else [],
        duration=view.duration,
        input=view.input,
        dependencies=dependencies_of(records),
        attempts=view.attempts,
        patches=view.attempts[-1].patches if view.attempts else [],
        refused_assets=view.refused_assets,
        event_count=len(own),
    )
    kept = _unless_dropped(own)
    told.assets = [one.event for one in own if isinstance(one.event, AssetStored) and one.seq in kept]
    if ended is not None and ended.operation is not None:
        told.operation = ended.operation
        told.request = {
            "requestId": call,
            "tool": view.tool,
            "operation": ended.operation,
            "input": view.input if ended.sent is None else ended.sent,
            "dependencies": told.dependencies,
        }
        if ended.sent_state and world is not None:
            told.request["state"] = world.snapshot()
    _add_changes(told, records, world)
    return told


def state_before(store: Store, session_id: str, records: CallRecords) -> Session | None:
    """Return the session as it was when the last attempt at the call began; None if the call never ran, or if that
    was lost to damage.

    A call within another saw also what its siblings had done by then, which was not committed yet.
    """
    begun = records.begun
    if begun is None:
        return None
    try:
        session = store.restore(session_id, upto=begun.seq - 1)
    except JournalError:
        return None
    for patch in _uncommitted(records, begun):
        session.apply_change(PatchChange(patch))
    return session


def dependencies_of(records: CallRecords) -> JsonObject:
    """Return the outputs of the planned calls that this one waited for; null for one that failed."""
    begun = records.begun
    if begun is None or not isinstance(begun.event, CallStarted) or begun.event.plan is None:
        return {}
    plan = begun.event.plan
    made = [one.event.plan for one in records.turn if isinstance(one.event, PlanMade)]
    found = next((one for one in reversed(made) if one.get("requestId") == plan), None)
    if found is None:
        return {}
    try:
        planned = {one.tool_id: one for one in PlanDocument.from_data(found).tools}
    except NarratoriaError:  # of an imported file
        return {}
    if begun.event.tool_id not in planned:
        return {}
    calls = {view.call: view for _, view in all_calls(one for one in records.turn if one.seq < begun.seq)}
    outputs: JsonObject = {}
    for dependency in planned[begun.event.tool_id].all_dependencies:
        view = calls.get(f"{plan}:{dependency}")
        if view is None or not view.ok:
            outputs[dependency] = None
        else:
            outputs[dependency] = view.output or output_of([], view.value)
    return outputs


def _of(record: Record) -> str | None:
    event: Any = record.event
    if isinstance(
        event,
        CallStarted | CallEmitted | CallRetrying | CallFinished | AssetStored | AssetDenied | Committed,
    ):
        return event.call
    return None


def _planned(records: Iterable[Record], call: str) -> tuple[str | None, str | None]:
    """Return the `toolPath` and the id of the plan that asked for the call."""
    for record in records:
        if isinstance(record.event, PlanMade):
            plan = record.event.plan
            tools = plan.get("tools")
            for one in tools if isinstance(tools, list) else ():
                if isinstance(one, dict) and f"{plan.get('requestId')}:{one.get('toolId')}" == call:
                    return one.get("toolPath"), plan.get("requestId")
    return None, None


def _unless_dropped(own: Sequence[Record]) -> set[int]:
    """Return the numbers of the records since the last attempt that was retried."""
    kept: set[int] = set()
    for record in own:
        if isinstance(record.event, CallRetrying):
            kept.clear()
        else:
            kept.add(record.seq)
    return kept


def _uncommitted(records: CallRecords, begun: Record) -> list[JsonObject]:
    """Return the patches that the calls around this one had made in the same transaction, in order."""
    parents: dict[str, str | None] = {}
    patches: list[tuple[str, JsonObject]] = []
    ended: dict[str, bool] = {}  # those that succeeded
    for record in records.turn:
        if record.seq >= begun.seq:
            break
        event = record.event
        if isinstance(event, CallStarted):
            parents[event.call] = event.parent
        elif isinstance(event, CallEmitted) and isinstance(event.event, StatePatch):
            patches.append((event.call, event.event.patch))
        elif isinstance(event, CallFinished) and event.ok:
            ended[event.call] = True
        elif isinstance(event, CallRetrying | CallFinished | Committed):  # dropped, or in the state already
            patches = [one for one in patches if event.call not in _line(one[0], parents)]
    assert isinstance(begun.event, CallStarted)  # noqa: S101 - so it was found
    above = set(_line(begun.event.parent, parents)) if begun.event.parent else set()
    return [
        patch
        for call, patch in patches
        if call in above or (ended.get(call) and above.intersection(_line(call, parents)))
    ]


def _line(call: str | None, parents: dict[str, str | None]) -> Iterator[str]:
    """Yield a call and those it is part of."""
    seen: set[str] = set()
    while call is not None and call not in seen:
        seen.add(call)
        yield call
        call = parents.get(call)


def _add_changes(told: RecordedCall, records: CallRecords, world: Session | None) -> None:
    """Add what became of the call: its patches as they were committed, its effects, memory and permissions."""
    emitted = {
        one.seq: one.event.event.patch
        for one in records.own
        if isinstance(one.event, CallEmitted) and isinstance(one.event.event, StatePatch)
    }
    mine: list[JsonObject] = []
    for record in records.turn:
        event = record.event
        if not isinstance(event, Committed):
            continue
        for change in event.changes:
            if isinstance(change, int):
                if change in emitted:
                    mine.append(emitted[change])
                    told.committed = True
            elif event.call != told.call:
                continue
            elif isinstance(change, PatchChange):
                mine.append(change.patch)
            elif isinstance(change, MemoryChange):
                told.other_changes.append(f"memory ({change.scope}): {change.op} {change.key}".rstrip())
            elif isinstance(change, PermissionChange):
                verb = "granted" if change.granted else "taken away"
                told.other_changes.append(f"permission {change.permission}: {verb}")
        told.effects += [one for one in event.effects if one.call == told.call]
        told.committed = told.committed or (event.call == told.call and not event.failed)
    if world is not None:  # else it never ran, or the state before it was lost to damage
        _add_state_changes(told, mine, world.snapshot())


def _add_state_changes(told: RecordedCall, patches: list[JsonObject], before: Any) -> None:
    """Add the places of the state that patches changed, each with its value before and after."""
    after = before
    paths: dict[tuple[str, ...], None] = {}
    for patch in patches:
        after = merge(after, patch)
        paths.update(dict.fromkeys(_leaves(patch)))
    changes = [one for path in paths if (one := _change(path, before, after)) is not None]
    told.change_count = len(changes)
    told.changes = changes[:MOST_CHANGES]


_GONE: Final = object()


def _leaves(patch: JsonObject, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in patch.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key)


def _change(path: tuple[str, ...], before: Any, after: Any) -> StateChangeView | None:
    old, new = lookup(before, path, _GONE), lookup(after, path, _GONE)
    if old is new or (old is not _GONE and new is not _GONE and _same(old, new)):
        return None
    kind: Literal["added", "changed", "removed"] = (
        "added" if old is _GONE else "removed" if new is _GONE else "changed"
    )
    return StateChangeView(
        path=list(path),
        kind=kind,
        before=None if old is _GONE else old,
        after=None if new is _GONE else new,
    )


def _same(old: Any, new: Any) -> bool:
    """Tell if two values are the same JSON: `1` is not `true`."""
    return msgspec.json.encode(old) == msgspec.json.encode(new)
