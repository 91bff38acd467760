"""A recorded call run again, on the state it had then, in a scratch session that is kept nowhere."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject, SessionStarted
from narratoria.kinds.process.custody import sweep
from narratoria.run.call_record import Call
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.resolve import ToolRefused
from narratoria.session import Record, Session
from narratoria.session.approvals import approving
from narratoria.session.assets import AssetStore
from narratoria.store.recorded_call import (
    CallRecords,
    EventView,
    RecordedCall,
    dependencies_of,
    events_of,
    recorded_call,
    state_before,
)
from narratoria.store.store import Store
from narratoria.tools.tool import Tool

MOST_EVENTS: Final = 2_000
"""Events of a repeated call that its answer has; `event_count` says how many there were."""


class NotRunAgain(NarratoriaError):
    """The call cannot be run again, and why."""


class NotAgreed(NotRunAgain):
    """Running it again may change something outside; a person has to agree first. `reasons` say what."""

    def __init__(self, tool: str, reasons: list[str]) -> None:
        super().__init__(f"{tool}: running it again would act outside the story: {'; '.join(reasons)}")
        self.reasons = reasons


class RepeatedCall(msgspec.Struct, kw_only=True, rename="camel"):
    """A call that was run again: its outcome, its events, and if it came out as recorded."""

    call: RecordedCall
    events: list[EventView]
    differs: list[str]


def tool_of(call: RecordedCall, executor: PlanExecutor) -> Tool[Any, Any]:
    """Return the tool of a recorded call as it is now."""
    found = executor.registry.get(call.tool)
    if found is not None:
        return found
    try:
        return executor.resolver.resolve(call.tool_path or call.tool)
    except ToolRefused as refusal:
        raise NotRunAgain(f"{call.tool} is not there any more: {refusal}") from None


def outside_effects(tool: Tool[Any, Any], *, imported: bool = False) -> list[str]:
    """Return, in words, what a call of the tool may do that the scratch session cannot hold."""
    reasons = []
    for one in (tool, *_parts(tool)):
        for effect in one.effects:
            if effect.leaves_session() or effect.destroys():
                stays = "" if effect.is_taken_back else ", which cannot be taken back"
                reasons.append(f"{effect.description}{stays}")
    if imported:
        reasons.append("the session comes from a file, which chose what the tool is given")
    return list(dict.fromkeys(reasons))


def is_imported(store: Store, session_id: str) -> bool:
    """Tell if the session came from a file."""
    first = next(store.read(session_id, limit=1), None)
    return first is not None and isinstance(first.event, SessionStarted) and first.event.imported


def _parts(tool: Tool[Any, Any]) -> Iterable[Tool[Any, Any]]:
    for part in tool.parts:
        yield part
        yield from _parts(part)


async def run_again(
    store: Store,
    session_id: str,
    records: CallRecords,
    executor: PlanExecutor,
    *,
    given: JsonObject | None = None,
    permissions: Iterable[str] = (),
    agreed: bool = False,
) -> RepeatedCall:
    """Run a call once more, with its own input or `given`, on the state it had then.

    One attempt, within the time any call of the tool has, under a new `requestId`. The journal gets no record, and
    the files it makes are gone with the answer. Raises `NotAgreed` if it may act outside and nobody has agreed.
    """
    world = state_before(store, session_id, records)
    before = recorded_call(records, world)
    if world is None:
        lost = "the state it had was lost to damage" if before.attempts else before.error or before.state
        raise NotRunAgain(f"{before.tool} cannot be run again: {lost}")
    tool = tool_of(before, executor)
    reasons = outside_effects(tool, imported=is_imported(store, session_id))
    if reasons and not agreed:
        raise NotAgreed(tool.name, reasons)
    return await _run_in_scratch(world, tool, before, records, executor, given, permissions)


async def _run_in_scratch(
    world: Session,
    tool: Tool[Any, Any],
    before: RecordedCall,
    records: CallRecords,
    executor: PlanExecutor,
    given: JsonObject | None,
    permissions: Iterable[str],
) -> RepeatedCall:
    world.assets = AssetStore()  # a folder of its own, removed with it
    world.grants.trust(permissions)
    world.share = executor.session.share
    past = Session(state=world.snapshot())
    heard = _Heard()
    world.attach(heard)
    world.approvals.approver = approving("whoever runs it again")
    call = Call(
        approval=False,
        call_id=f"again-{uuid.uuid4()}",
        tool_id=before.tool_id,
        timeout=tool.plan_timeout,
        dependencies=dependencies_of(records) or None,
    )
    try:
        await executor.executor.execute(
            tool, before.input if given is None else given, session=world, call=call
        )
    finally:
        await sweep()
    own = [one for one in heard.records if getattr(one.event, "call", None) == call.call_id]
    made = CallRecords(heard.records, own)
    now = recorded_call(made, past)
    now.dependencies, now.tool_path = before.dependencies, before.tool_path
    if now.request is not None:
        now.request["dependencies"] = before.dependencies
    return RepeatedCall(call=now, events=events_of(made, most=MOST_EVENTS), differs=_differences(before, now))


class _Heard:
    """A sink that keeps the records of the scratch session while it lives."""

    full = False

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.records.append(record)


def _differences(before: RecordedCall, now: RecordedCall) -> list[str]:
    """Return the names of what came out differently."""
    aspects = {
        "how it ended": (before.state, now.state),
        "the error": (before.error_code, now.error_code),
        "the message": (before.message, now.message) if before.ok and now.ok else (0, 0),
        "the state it changed": (_changes(before), _changes(now)),
        "the assets": (_hashes(before), _hashes(now)),
    }
    return [name for name, (old, new) in aspects.items() if old != new]


def _changes(call: RecordedCall) -> list[Any]:
    return [(one.path, one.kind, one.after) for one in call.changes]


def _hashes(call: RecordedCall) -> list[tuple[str, str]]:
    return [(one.asset_id, one.hash) for one in call.assets]
