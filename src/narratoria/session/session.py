"""The session: a world changed only by commits, and the stream of its records."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from narratoria.events import (
    AnyRuntimeEvent,
    Change,
    Committed,
    EffectApplied,
    JsonObject,
    MemoryChange,
    Notice,
    Notification,
    PatchChange,
    PermissionChange,
    ResourceChange,
    SkillHealth,
    SliceChange,
    ToolEvent,
)
from narratoria.session.approvals import Approvals
from narratoria.session.asset_records import AssetRecords
from narratoria.session.assets import AssetStore
from narratoria.session.attempt_note import AttemptNote
from narratoria.session.dispatcher import Dispatcher
from narratoria.session.draft import Draft
from narratoria.session.draft_operations import (
    AssetMade,
    Dispatched,
    Notified,
    Operation,
    PatchMade,
    PermissionSet,
    SliceRecorded,
    StateChanged,
)
from narratoria.session.grants import Grants
from narratoria.session.memory import Memory
from narratoria.session.record import EmittedRecords, Record, Sink, TurnLog, emitted_taker
from narratoria.session.resources.resources import ResourceRegistry
from narratoria.session.resources.write_notes import WriteNotes
from narratoria.session.slices import Reducer, Slice, SliceStore
from narratoria.state import (
    StateError,
    StateMovedOn,
    StateView,
    apply,
    change_to_patch,
    merge,
    plain,
    revert,
)
from narratoria.tools.schema import dump_finite
from narratoria.unicode_text import check_text

if TYPE_CHECKING:
    from narratoria.kinds.shares.shares import Share

logger = logging.getLogger("narratoria")
T = TypeVar("T")
PAST_TURNS: Final = 32


class Session:
    """A world: state, typed slices, memory, permissions, assets, resources, and its stream of records."""

    def __init__(
        self,
        id: str | None = None,  # noqa: A002 - the name everybody expects
        *,
        state: JsonObject | None = None,
        permissions: Iterable[str] = (),
        assets: AssetStore | None = None,
        resources: ResourceRegistry | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.id = check_text(id, "the id of a session") if id else uuid.uuid4().hex
        self.root = self  # a draft answers with the session it belongs to
        self.depth = 0  # of nested calls: a draft is one deeper than what it was opened on
        self.tree: JsonObject = merge(None, dump_finite(state or {}, "state"))
        self.state = StateView(self.tree)
        self.dispatcher = Dispatcher()
        self.memory = Memory(clock)
        self.slices = SliceStore()
        self.resources = resources or ResourceRegistry()
        self.assets = assets or AssetStore()
        self.asset_records = AssetRecords()
        self.completed_tools: set[str] = set()
        self.dropping: dict[Draft, asyncio.Future[None]] = {}  # failed attempts that are being taken back
        self.turn: int | None = None  # the turn that is being taken
        self.turn_count = 0
        self.past: deque[tuple[str, str]] = deque(maxlen=PAST_TURNS)  # (prompt, narrative), newest last
        self.choices: list[str] = []
        self.standing: list[str] | None = None  # what is offered once a narrator's hints have passed
        self.health: dict[str, SkillHealth] = {}
        self.journal: TurnLog | None = None
        self.approvals = Approvals(self)
        self.share: Share | None = None  # of the processes of tools; without one nothing is limited
        self.notes: WriteNotes | None = None  # of writes to files, while the session is kept
        self.turn_lock = asyncio.Lock()
        self.waiting_turns = 0  # for `turn_lock`
        self.clock = clock
        self.seq = 0
        self.calls = 0
        self.beats: dict[str, float] = {}
        self.attempt_notes: dict[str, AttemptNote] = {}  # by call, of the attempt that runs
        self.grants = Grants(check_text(one, "a permission") for one in permissions)
        self._sinks: tuple[Sink, ...] = ()
        self._emitted_takers: tuple[Callable[[EmittedRecords], None], ...] = ()
        self.recording = False  # whether anybody listens; what nobody would read is not made

    @asynccontextmanager
    async def next_turn(self) -> AsyncIterator[None]:
        """Hold `turn_lock`; count as one of `waiting_turns` until it is got."""
        self.waiting_turns += 1
        try:
            await self.turn_lock.acquire()
        finally:
            self.waiting_turns -= 1
        try:
            yield
        finally:
            self.turn_lock.release()

    # --- the stream --------------------------------------------------------------------------------------

    def attach(self, sink: Sink) -> Callable[[], None]:
        """Send every later record to `sink`; return a function that detaches it."""
        self._send_to((*self._sinks, sink))

        def detach() -> None:
            self._send_to(tuple(one for one in self._sinks if one is not sink))

        return detach

    def _send_to(self, sinks: tuple[Sink, ...]) -> None:
        self._sinks, self._emitted_takers = sinks, tuple(map(emitted_taker, sinks))
        self.recording = bool(sinks)

    def record(self, event: AnyRuntimeEvent) -> int:
        """Put an event on the stream and return its sequence number."""
        self.seq += 1
        if self._sinks:
            record = Record(self.seq, self.clock(), self.turn, event)
            failure = None
            for sink in self._sinks:
                try:
                    sink.push(record)
                except (
                    Exception
                ) as error:  # raised below: the sinks after it, such as the journal, lose nothing
                    failure = error
            if failure is not None:
                raise failure
        return self.seq

    def next_record(self, event: AnyRuntimeEvent) -> Record:
        """Return the next record of the stream, before it is sent to any sink."""
        self.seq += 1
        return Record(self.seq, self.clock(), self.turn, event)

    def tell(self, record: Record, *, but: Sink) -> None:
        """Send a record to all sinks but one."""
        for sink in self._sinks:
            if sink is not but:
                sink.push(record)

    def record_emitted(self, call: str, events: Sequence[ToolEvent]) -> int:
        """Put the events that a call emitted at one moment on the stream; return the sequence number of the first."""
        first = self.seq + 1
        self.seq += len(events)
        if self._sinks:
            emitted = EmittedRecords(first, self.clock(), self.turn, call, events)
            failure = None
            for take in self._emitted_takers:
                try:
                    take(emitted)
                except Exception as error:  # as in `record`
                    failure = error
            if failure is not None:
                raise failure
        return first

    @property
    def congested(self) -> bool:
        """Tell if a subscriber asks for a pause."""
        return any(sink.full for sink in self._sinks)

    async def drain(self) -> None:
        """Wait until every subscriber has got what was dispatched."""
        for sink in self._sinks:
            if sink.full:
                await sink.wait()

    def notice(self, notice: Notice) -> None:
        """Send a notice for people, to the log and to the stream."""
        logger.log(logging.INFO if notice.level == "info" else logging.WARNING, "%s", notice.message)
        self.record(notice)

    def beat(self, call_id: str) -> None:
        """Record that a call is alive."""
        self.beats[call_id] = time.monotonic()

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def permissions(self) -> frozenset[str]:
        """The permissions that are granted."""
        return self.grants.granted

    def has_permission(self, permission: str) -> bool:
        """Tell if a permission is granted."""
        return permission in self.grants.granted

    def __getitem__(self, slice_type: type[T]) -> Slice[T]:
        return Slice(self.slices.get(slice_type))

    def snapshot(self) -> JsonObject:
        """The state as plain data, a copy."""
        data: JsonObject = plain(self.state)
        return data

    # --- changing outside a call ---------------------------------------------------------------------------

    def register_reducer(self, event_type: type, reducer: Reducer, *, slice_type: type | None = None) -> None:
        """Let `reducer(values, event)` make the slice of `slice_type` (the event's own type by default)."""
        self.slices.register(event_type, reducer, slice_type or event_type)

    def patch(self, patch: JsonObject) -> None:
        """Merge a patch into the state, outside any call."""
        self.commit("", [PatchMade(dump_finite(patch, "the patch"))])

    def dispatch(self, event: Any) -> None:
        """Hand an event to the reducers and subscribers."""
        self.commit("", [Dispatched(event)])

    def grant(self, *permissions: str) -> None:
        """Grant permissions."""
        self.commit("", [PermissionSet(permission, True) for permission in permissions])

    def revoke(self, *permissions: str) -> None:
        """Take permissions back."""
        self.commit("", [PermissionSet(permission, False) for permission in permissions])

    def draft(self) -> Draft:
        """Return a draft of the session: what is changed there is kept only by its commit."""
        return Draft.of(self)

    # --- committing ----------------------------------------------------------------------------------------

    def _take_back(
        self,
        before: JsonObject,
        inverse: Sequence[Change],
        reduced: Sequence[tuple[type, tuple[Any, ...]]],
        kept_assets: Sequence[int],
    ) -> None:
        """Take back the operations of a commit that could not be finished."""
        revert(self.tree, before)
        for change in reversed(inverse):
            if not isinstance(change, SliceChange) or not reduced:
                self.apply_change(change)
        for slice_type, values in reversed(reduced):
            self.slices.put(slice_type, values)
        for seq in kept_assets:
            self.asset_records.discard(seq)

    def complete(self, tool: str) -> None:
        """Count a committed call: its tool is completed."""
        # 004 `DependencyPrecondition`.
        self.completed_tools.add(tool)

    def commit(
        self,
        call: str,
        operations: list[Operation],
        effects: list[EffectApplied] | None = None,
        completed: Collection[str] = (),
        resources: Sequence[ResourceChange] = (),
        *,
        failed: bool = False,
    ) -> None:
        """Make a draft's operations part of the session: all of them, in order, or none. `completed` are the tools of
        the calls within it, `resources` their changes in resources.
        """
        # One long function on purpose: every call commits here, and each function more would cost it.
        recording = bool(self._sinks)
        changes: list[int | Change] = []
        inverse: list[Change] = []
        before: JsonObject = {}  # what takes the patches back, however many they are
        reduced: list[tuple[type, tuple[Any, ...]]] = []
        kept_assets: list[int] = []
        published: list[Any] = []
        try:
            for operation in operations:
                if type(operation) is PatchMade:
                    apply(self.tree, operation.patch, before)
                    recorded = len(operation.seqs) == operation.made
                    changes += operation.seqs if recorded else [PatchChange(operation.patch)]
                elif type(operation) is AssetMade:
                    self.asset_records[operation.seq] = operation.stored
                    kept_assets.append(operation.seq)
                    changes.append(operation.seq)
                elif type(operation) is Notified:
                    published.append(Notification(event=operation.event, payload=operation.payload))
                elif type(operation) is Dispatched:
                    published.append(operation.event)
                    self._reduce(operation.event, reduced, changes, inverse)
                else:
                    changes.append(self._change(self._evaluate(operation), before, inverse))
        except BaseException:
            self._take_back(before, inverse, reduced, kept_assets)
            raise
        self.completed_tools.update(completed)
        if recording and (changes or effects or completed or resources):
            inverse.reverse()
            if before:
                inverse.append(PatchChange(before))
            self.record(
                Committed(
                    call=call,
                    changes=changes,
                    inverse=inverse,
                    effects=effects or [],
                    failed=failed,
                    completed=sorted(completed),
                    resources=list(resources),
                )
            )
        if published:
            self._publish(published)

    def _publish(self, events: Iterable[Any]) -> None:
        for event in events:
            if isinstance(event, Notification):
                self.record(event)
            self.dispatcher.publish(event)

    def _change(self, change: Change, before: JsonObject, inverse: list[Change]) -> Change:
        """Apply a change, and note what takes it back: of a patch in `before`, of another change in `inverse`."""
        if isinstance(change, PatchChange):
            apply(self.tree, change.patch, before)
        else:
            inverse.extend(reversed(self.apply_change(change)))
        return change

    def _reduce(
        self,
        event: Any,
        reduced: list[tuple[type, tuple[Any, ...]]],
        changes: list[int | Change],
        inverse: list[Change],
    ) -> None:
        """Let the reducers make slices of a dispatched event; note what they were before."""
        for slice_type, values in self.slices.reduce(self.slices.get, event):
            old = self.slices.get(slice_type)
            reduced.append((slice_type, old))
            self.slices.put(slice_type, values)
            if self._sinks:
                changes.append(self.slices.encoded(slice_type, values))
                inverse.append(self.slices.encoded(slice_type, old))

    def _evaluate(self, operation: Operation) -> Change:
        """Return the plain change that an operation amounts to on the session as it is now."""
        if isinstance(operation, StateChanged):
            try:
                patch = change_to_patch(self.tree, operation.path, operation.change, operation.value)
            except StateError as error:
                raise StateMovedOn(f"a state effect fits no longer: {error}") from None
            return PatchChange(patch)
        if isinstance(operation, PermissionSet):
            return PermissionChange(operation.permission, operation.granted)
        if isinstance(operation, SliceRecorded):
            before = self.slices.recorded(operation.slice) if operation.added else []
            return SliceChange(operation.slice, [*before, *operation.values])
        assert isinstance(operation, MemoryChange)  # noqa: S101 - the others are handled by commit
        return operation

    # --- the fold: how recorded changes make a session -----------------------------------------------------

    def apply_change(self, change: Change) -> list[Change]:
        """Apply one recorded change; return its inverse."""
        if isinstance(change, PatchChange):
            return [PatchChange(apply(self.tree, change.patch))]
        if isinstance(change, MemoryChange):
            return list(self.memory.apply(change))
        if isinstance(change, PermissionChange):
            return self.grants.change(change)
        return [self.slices.load(change)]
