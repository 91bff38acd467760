"""A recorded session as a test fixture: its plans and its tools' answers, played back through the real runtime.

    tape = cassette("tests/walk.narratoria")
    session = tape.session()
    for prompt in tape.prompts:
        await take_turn(session, prompt, narrator=tape.narrator(), registry=tape.registry())
    assert session.snapshot() == tape.state

No process is started and no model is asked. A call that was not recorded fails with `NOT_RECORDED`, so that a changed
plan is noticed.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from narratoria.errors import EXECUTION_FAILED, CallFailure, PlanRejected, ToolFailure
from narratoria.events import (
    Asset,
    AssetStored,
    CallEmitted,
    CallFinished,
    CallStarted,
    Committed,
    JsonObject,
    MemoryChange,
    PatchChange,
    PermissionChange,
    PlanMade,
    SliceChange,
    ToolEvent,
    TurnStarted,
)
from narratoria.narrator.protocol import Declaration, NarratorRequest
from narratoria.run.plan import PlanDocument
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.session.assets import AssetStore
from narratoria.session.draft_operations import PatchMade, SliceRecorded
from narratoria.state import patch_at
from narratoria.store.fold import fold
from narratoria.store.portable import import_session
from narratoria.store.session_views import SessionView, TurnView
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.tool import Tool, ToolContext, ToolResult

NOT_RECORDED: Final = "NOT_RECORDED"
_ANYTHING: Final[JsonObject] = {"type": "object"}


def cassette(path: Path | str) -> Cassette:
    """Read an exported session (`narratoria sessions export`)."""
    with tempfile.TemporaryDirectory(prefix="narratoria-cassette-") as folder:
        store = SqliteStore(Path(folder) / "sessions.db")
        try:
            meta = import_session(store, Path(path))
            records = list(store.read(meta.id))
            final = store.restore(meta.id)
            contents = {digest: store.assets.path_of(digest).read_bytes() for digest in set(store.assets)}
            beginning = store.restore(meta.id, upto=_before_play(records))
        finally:
            store.close()
    return Cassette(records, beginning, final.snapshot(), contents)


def _before_play(records: list[Record]) -> int:
    """Return the number of the last record before the first turn or call."""
    last = 0
    for record in records:
        if isinstance(record.event, TurnStarted | CallStarted):
            break
        last = record.seq
    return last


class _Take(msgspec.Struct):
    """One recorded call: the events of its last attempt, its other committed changes, and its ending."""

    input: JsonObject
    events: list[ToolEvent] = msgspec.field(default_factory=list)
    assets: list[AssetStored] = msgspec.field(default_factory=list)
    changes: list[Any] = msgspec.field(default_factory=list)
    before: dict[Any, Any] = msgspec.field(default_factory=dict)  # what stood at each place it changed
    slices: dict[str, list[Any]] = msgspec.field(default_factory=dict)  # and in each typed slice
    finished: CallFinished | None = None


class Cassette:
    """A recorded session. Each `session()`, `narrator()` and `registry()` is fresh, so it can be played back often."""

    def __init__(
        self, records: list[Record], beginning: Session, state: JsonObject, contents: dict[str, bytes]
    ) -> None:
        self.view: SessionView = fold(records)
        self.state = state
        self._beginning = beginning
        self._contents = contents
        self._takes = _takes(records)
        self._paths = _paths(self.view)
        made = [record.event for record in records if isinstance(record.event, PlanMade)]
        self._told = {str(event.plan.get("requestId")): event.told for event in made}

    @property
    def turns(self) -> list[TurnView]:
        """The turns that count, the opening left out."""
        return [turn for turn in self.view.told if turn.origin != "opening"]

    @property
    def prompts(self) -> list[str]:
        return [turn.prompt for turn in self.turns]

    @property
    def asset_hashes(self) -> list[str]:
        return sorted({asset.hash for asset in self.view.assets})

    def session(self) -> Session:
        """Return a session as it was at the beginning, with the recorded assets in its store."""
        beginning, assets = self._beginning, AssetStore()
        for content in self._contents.values():
            assets.add_bytes(content)
        session = Session(
            state=beginning.snapshot(),
            permissions=beginning.grants.held | beginning.grants.claimed,
            assets=assets,
        )
        session.memory.load(beginning.memory.export())
        for change in beginning.slices.export():
            session.apply_change(change)
        return session

    def narrator(self) -> TapeNarrator:
        return TapeNarrator(self.turns, self._told)

    def registry(self) -> ToolRegistry:
        """Return a registry with a tool for each one that was called, which answers as recorded."""
        tools = [
            Tool[Any, Any](name, "Answers as recorded.", _Player(name, takes).run, parameters=_ANYTHING)
            for name, takes in self._takes.items()
        ]
        return TapeRegistry(tools, self._paths)


class TapeRegistry(ToolRegistry):
    """Recorded tools, by their names and by the paths that the recorded plans have for them."""

    def __init__(self, tools: Iterable[Tool[Any, Any]], paths: Mapping[str, str]) -> None:
        super().__init__(tools)
        self._paths = paths

    def get(self, name: str) -> Tool[Any, Any] | None:
        return super().get(name) or super().get(self._paths.get(name, ""))


class TapeNarrator:
    """A narrator that returns the recorded plans: for each prompt those of its turn, one per attempt."""

    name = "tape"

    def __init__(self, turns: list[TurnView], told: Mapping[str, Mapping[str, str]] = {}) -> None:
        self._plans: dict[str, deque[list[PlanDocument]]] = defaultdict(deque)
        for turn in turns:
            plans = [PlanDocument.from_data(one.plan) for one in turn.plans]
            self._plans[turn.prompt].append(plans)
        self._current: list[PlanDocument] = []
        self._told_by_plan = told  # words for the results of calls, by the id of the plan
        self._told: Mapping[str, str] = {}

    def declare(self, speaker: str = "") -> Declaration:
        return Declaration(told=self._told)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        if request.attempt == 1:
            waiting = self._plans[request.prompt]
            self._current = list(waiting.popleft()) if waiting else []
        if not self._current:
            raise PlanRejected(
                [f"$: no plan was recorded for {request.prompt!r} (attempt {request.attempt})"]
            )
        plan = self._current.pop(0)
        self._told = self._told_by_plan.get(plan.request_id, {})
        return plan


class _Player:
    """The handler of a recorded tool. Calls are distinguished by their input; those with equal input are answered in
    order.
    """

    def __init__(self, name: str, takes: list[_Take]) -> None:
        self.name = name
        self.left = list(takes)

    async def run(self, params: JsonObject, *, context: ToolContext) -> ToolResult[Any]:
        take = next((one for one in self.left if one.input == dict(params)), None)
        if take is None:
            given = msgspec.json.encode(params).decode()
            raise ToolFailure(
                NOT_RECORDED, f"{self.name}: no call with {given} is left on the tape", recoverable=False
            )
        self.left.remove(take)
        stored = {asset.asset_id: asset for asset in take.assets}
        for event in take.events:
            if not isinstance(event, Asset):
                context.emit(event)
            elif event.asset_id in stored:  # the tool's own file is long gone; our copy is not
                kept = context.session.root.assets.path_of(stored[event.asset_id].hash)
                context.emit(msgspec.structs.replace(event, path=str(kept)))
        end = take.finished
        if end is not None and not end.ok:
            code = end.error_code or EXECUTION_FAILED
            failure = ToolFailure if end.error_source == "tool" else CallFailure
            raise failure(code, end.error or end.message, recoverable=False, suggestions=end.suggestions)
        _commit_others(take, context)
        return ToolResult.ok(end.value if end else None, message=end.message if end else "")


def _commit_others(take: _Take, context: ToolContext) -> None:
    """Commit the recorded changes other than patches: evaluated effects, memory, slices, permissions."""
    before, slices = dict(take.before), dict(take.slices)
    for change in take.changes:
        if isinstance(change, PatchChange):
            _repeat(change.patch, before, context)
        elif isinstance(change, MemoryChange):
            context.session.operations.append(change)
        elif isinstance(change, SliceChange):
            old, slices[change.slice] = slices.get(change.slice, []), change.values
            added = change.values[: len(old)] == old  # then it is added to what is there now, as numbers are
            values = change.values[len(old) :] if added else change.values
            context.session.operations.append(SliceRecorded(change.slice, values, added))
        elif isinstance(change, PermissionChange):
            (context.session.grant if change.granted else context.session.revoke)(change.permission)


def _repeat(patch: JsonObject, before: dict[Any, Any], context: ToolContext) -> None:
    """Repeat an evaluated effect. A number is changed by the recorded difference, so that concurrent calls that now
    commit in another order still add up.
    """
    for path, value in _leaves(patch):
        old = before.get(path)
        if _is_number(value) and _is_number(old) and not any("." in key for key in path):
            context.session.add_state_change(".".join(path), "increment", value - old)
        else:
            context.session.operations.append(PatchMade(patch_at(path, value)))
        before[path] = value


def _leaves(patch: JsonObject, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in patch.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _paths(view: SessionView) -> dict[str, str]:
    """Return the tool that each `toolPath` of a plan stood for."""
    ran = {call.call: call.tool for turn in view.turns for call in turn.calls if call.attempts}
    found: dict[str, str] = {}
    for turn in view.turns:
        for made in turn.plans:
            plan = PlanDocument.from_data(made.plan)
            for planned in plan.tools:
                tool = ran.get(f"{plan.request_id}:{planned.tool_id}")
                if tool is not None:
                    found[planned.tool_path] = tool
    return found


def _takes(records: list[Record]) -> dict[str, list[_Take]]:
    calls: dict[str, _Take] = {}
    found: dict[str, list[_Take]] = defaultdict(list)
    for record in records:
        event = record.event
        if isinstance(event, CallStarted):
            known = calls.get(event.call)
            if known is None or known.finished is not None:
                calls[event.call] = _Take(event.input)
                found[event.tool].append(calls[event.call])
            else:  # another attempt: only the last one counts
                known.events, known.assets = [], []
        elif isinstance(event, CallEmitted) and event.call in calls:
            calls[event.call].events.append(event.event)
        elif isinstance(event, AssetStored) and event.call in calls:
            calls[event.call].assets.append(event)
        elif isinstance(event, Committed) and event.call in calls:
            take = calls[event.call]
            take.changes = [change for change in event.changes if not isinstance(change, int)]
            for inverse in event.inverse:  # the last one for a place holds what stood there before the call
                if isinstance(inverse, PatchChange):
                    take.before.update(_leaves(inverse.patch))
                elif isinstance(inverse, SliceChange):
                    take.slices[inverse.slice] = inverse.values
        elif isinstance(event, CallFinished) and event.call in calls:
            calls[event.call].finished = event
    return dict(found)
