"""A draft: the changes of one attempt of a call so far, visible only to itself.

A draft holds operations, not copies. Reads look through it to the session (or to the draft of the enclosing call), so
that commits of siblings show through. Committing hands the operations on, in the order they were made; discarding
forgets them. Nothing is ever restored as a whole, so no sibling's work can be erased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from narratoria.errors import NarratoriaError
from narratoria.events import (
    Asset,
    CallEmitted,
    EffectApplied,
    JsonObject,
    MemoryChange,
    Notice,
    ResourceChange,
    StatePatch,
    ToolEvent,
)
from narratoria.session.dispatcher import Dispatcher
from narratoria.session.draft_assets import accept_asset, add_asset
from narratoria.session.draft_operations import (
    AssetMade,
    Dispatched,
    Notified,
    Operation,
    PatchMade,
    PermissionSet,
    StateChanged,
    add_layers,
    changed_part,
    permissions_after,
)
from narratoria.session.memory import Memory
from narratoria.session.memory_draft import MemoryDraft
from narratoria.session.resources.resources import ResourceContext
from narratoria.session.resources.write_notes import CallNotes
from narratoria.session.slices import Slice
from narratoria.state import StateChange, StateView, change_to_patch, merge_into
from narratoria.tools.schema import dump, dump_finite
from narratoria.tools.schema.excerpts import quoted
from narratoria.unicode_text import check_text

if TYPE_CHECKING:
    from narratoria.session.session import Session
    from narratoria.tools.tool import ToolError

T = TypeVar("T")


class Draft(msgspec.Struct, eq=False):
    """The session as one attempt of a call sees and changes it. `Draft.of(parent)` opens one."""

    # A struct, because one is made for every attempt and its fields are then filled in C.
    parent: Session | Draft
    root: Session
    depth: int
    operations: list[Operation] = []
    events: list[ToolEvent] = []
    loop: asyncio.AbstractEventLoop | None = None  # set while a worker thread runs the handler
    _memory: MemoryDraft | None = None
    _resources: ResourceContext | None = None
    _slices: dict[type, tuple[Any, ...]] | None = None
    asset_ids: set[str] | None = None
    _effects: list[EffectApplied] | None = None
    _applied: list[Any] | None = None
    _completed: set[str] | None = None
    call_id: str = ""  # of the call, if anybody records
    cascading: bool = False  # while an effect of this call runs another tool
    over: bool = False  # it is committed or discarded: nothing more becomes part of it
    limits: tuple[asyncio.Timeout, ...] = ()  # the time limits of the attempt
    asked: dict[Any, int] | None = None  # the questions to a person so far, and how often
    aside: set[int] | None = None  # which of `events`, by index, are no part of what the call gives
    effect_failed: ToolError | None = None  # of a call within this one, whose handler has done its work

    @classmethod
    def of(cls, parent: Session | Draft) -> Draft:
        """Open a draft of a session, or within another draft."""
        return cls(parent, parent.root, parent.depth + 1)

    def draft(self) -> Draft:
        """Open a draft within this one: part of the same transaction, dropped on its own."""
        return Draft.of(self)

    @property
    def effects(self) -> list[EffectApplied]:
        """The call's effects outside the session, for the journal."""
        if self._effects is None:
            self._effects = []
        return self._effects

    @property
    def applied(self) -> list[Any]:
        """The applied effects that the pipeline takes back if this draft is dropped."""
        if self._applied is None:
            self._applied = []
        return self._applied

    @property
    def caller(self) -> str | None:
        """The id of the recorded call that this draft is of."""
        if self.call_id:
            return self.call_id
        return self.parent.caller if isinstance(self.parent, Draft) else None

    @property
    def enclosing(self) -> Iterator[Draft]:
        """The drafts around this one, the nearest first."""
        above = self.parent
        while isinstance(above, Draft):
            yield above
            above = above.parent

    @property
    def cascades(self) -> int:
        """The number of enclosing effects that run tools."""
        above = self.parent
        return above.cascades + above.cascading if isinstance(above, Draft) else 0

    # --- reading ---------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.root.id

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher of the session."""
        return self.root.dispatcher

    @property
    def state(self) -> StateView:
        """The state with the patches of this draft and of the enclosing drafts laid over it."""
        layers = self._layers()
        return StateView(self.root.tree, layers) if layers else self.root.state

    def _layers(self) -> list[JsonObject]:
        above = self.parent._layers() if isinstance(self.parent, Draft) else []
        add_layers(above, self.operations, self.root.tree)
        return above

    @property
    def memory(self) -> Memory:
        """The memory, with the changes of this draft."""
        if self._memory is None:
            self._memory = MemoryDraft(self.parent.memory, self.operations.append)
        return self._memory

    @property
    def resources(self) -> ResourceContext:
        """The resources, as this draft sees them."""
        if self._resources is None:
            above = self.parent.resources if isinstance(self.parent, Draft) else None
            self._resources = ResourceContext(self.root.resources, above, self._notes())
        return self._resources

    def _notes(self) -> Callable[[str], CallNotes] | None:
        """Return what gives a resource the notes of this call's writes, if it is a recorded call of a kept session."""
        notes, call = self.root.notes, self.call_id
        return None if notes is None or not call else lambda resource: notes.of(resource, call)

    @property
    def completed_tools(self) -> Set[str]:
        """The tools that count as completed inside this call: those of its own parts too."""
        above = self.parent.completed_tools
        return above | self._completed if self._completed else above

    @property
    def permissions(self) -> frozenset[str]:
        """The granted permissions, with the changes of this draft."""
        return permissions_after(self.parent.permissions, self.operations)

    def has_permission(self, permission: str) -> bool:
        """Tell if a permission is granted."""
        return permission in self.permissions

    def __getitem__(self, slice_type: type[T]) -> Slice[T]:
        return Slice(self._values(slice_type))

    def _values(self, slice_type: type) -> tuple[Any, ...]:
        if self._slices is not None and slice_type in self._slices:
            return self._slices[slice_type]
        return self.parent[slice_type].all()

    # --- changing --------------------------------------------------------------------------------------

    def emit(self, call_id: str, event: ToolEvent) -> None:
        """Take an event of the protocol, from a process or from the handler's own verbs."""
        if type(event) is Asset:
            add_asset(self, call_id, event, accept_asset(self, call_id, event))
            return
        self.publish(call_id, event, self._patch(event.patch) if type(event) is StatePatch else None)

    def emit_all(self, call_id: str, events: Sequence[ToolEvent]) -> None:
        """Take many events of a process at once, on the loop's thread, none of them an asset."""
        self.events.extend(events)
        recording = self.root.recording
        seq = self.root.record_emitted(call_id, events) if recording else 0
        for event in events:
            if type(event) is StatePatch:
                operation = self._patch(event.patch)
                if recording:
                    operation.seqs.append(seq)
            seq += 1

    def _patch(self, patch: JsonObject) -> PatchMade:
        last = self.operations[-1] if self.operations else None
        if type(last) is PatchMade and last.followed_by(patch):
            return last
        made = PatchMade(patch)
        self.operations.append(made)
        return made

    @property
    def patched(self) -> JsonObject:
        """Return the patches so far, merged."""
        merged: JsonObject = {}
        for operation in self.operations:
            if type(operation) is PatchMade:
                merge_into(merged, operation.patch)
        return merged

    def publish(self, call_id: str, event: ToolEvent, operation: PatchMade | None = None) -> None:
        """Add an event to those of the call, and record it."""
        self.events.append(event)
        if not self.root.recording:
            return

        def record() -> None:
            seq = self.root.record(CallEmitted(call=call_id, event=event))
            if operation is not None:
                operation.seqs.append(seq)

        self.on_loop(record)

    def on_loop(self, action: Callable[[], None]) -> None:
        """Run an action on the loop's thread, which alone writes records; a worker thread hands them over in order."""
        if self.loop is None:
            action()
        else:
            self.loop.call_soon_threadsafe(action)

    def add_state_change(self, path: str, change: StateChange, value: Any = None) -> None:
        """Add a state effect. It is tried on the present state, so that a misfit fails the call, then evaluated again
        at the commit.
        """
        path = check_text(path, "the path of a state change")
        value = dump_finite(value, f"the value for {quoted(path)}")
        change_to_patch(self.state, path, change, value)
        self.operations.append(StateChanged(path, change, value))

    def dispatch(self, event: Any) -> None:
        """Reduce an event into the typed slices, and tell the dispatcher once it is committed."""
        reduced = dict(self.root.slices.reduce(self._values, event))
        self._slices = {**(self._slices or {}), **reduced}
        self.operations.append(Dispatched(event))

    def complete(self, tool: str) -> None:
        """Count a committed call within this one: its tool is completed as long as this draft exists."""
        if self._completed is None:
            self._completed = set()
        self._completed.add(tool)

    def grant(self, permission: str) -> None:
        """Grant a permission when the draft is committed."""
        self.operations.append(PermissionSet(permission, True))

    def revoke(self, permission: str) -> None:
        """Take a permission away when the draft is committed."""
        self.operations.append(PermissionSet(permission, False))

    def notify(self, event: str, payload: Any = None) -> None:
        """Publish a notification when, and only if, this draft is committed."""
        self.operations.append(Notified(event, payload))

    # --- speaking --------------------------------------------------------------------------------------

    def hear(self, part: Draft, *, kept: bool) -> None:
        """Add the events of a call within this one to this one's. They count for the output only if the part was
        `kept` and is no consequence of an effect.
        """
        if not part.events:
            return
        start = len(self.events)
        self.events.extend(part.events)
        if not kept or self.cascading:
            self._set_aside(range(start, len(self.events)))
        elif part.aside:
            self._set_aside(start + index for index in part.aside)

    def _set_aside(self, indexes: Iterable[int]) -> None:
        if self.aside is None:
            self.aside = set()
        self.aside.update(indexes)

    @property
    def given(self) -> list[ToolEvent]:
        """The events that make up the call's output, if it is committed."""
        if self.aside is None:
            return self.events
        return [event for index, event in enumerate(self.events) if index not in self.aside]

    def report(self, message: str, *, level: str = "warn") -> None:
        """Tell the viewers of the session at once, whatever becomes of the draft."""
        notice = Notice(level="warn" if level == "warn" else "error", message=message)
        self.on_loop(lambda: self.root.notice(notice))

    def beat(self, call_id: str) -> None:
        """Tell that a call is alive."""
        self.root.beat(call_id)

    @property
    def congested(self) -> bool:
        """True while a subscriber of the session is behind."""
        return self.root.congested

    async def drain(self) -> None:
        """Wait until the session's slowest subscriber has room again."""
        await self.root.drain()

    # --- ending ----------------------------------------------------------------------------------------

    def _hand_up(self, parent: Draft) -> None:
        """Hand a part's changes to the enclosing call's draft: a composed call is one transaction."""
        if parent.over:
            raise NarratoriaError("the call it is part of is over, and would keep nothing of it")
        parent.operations.extend(self.operations)
        parent.effects.extend(self.effects)
        parent.applied.extend(self.applied)
        for tool in self._completed or ():
            parent.complete(tool)
        if self._slices:
            parent._slices = {**(parent._slices or {}), **self._slices}
        if self._memory is not None:
            for operation in self.operations:
                if isinstance(operation, MemoryChange):
                    parent.memory.apply(operation)

    def changed_part(self) -> str | None:
        """Return the part of the session that this draft would change, in words; None if it changes nothing."""
        changed = changed_part(self.operations)
        if changed is None and self._resources is not None and self._resources.changes([]):
            return "a resource"
        return changed

    def commit(self, call_id: str) -> None:
        """Make the changes of this draft part of the session, or of the enclosing call's draft."""
        changed = () if self._resources is None else self._changed(self._resources)
        if self.operations or self._effects or self._applied or self._completed or changed:
            if isinstance(self.parent, Draft):
                self._hand_up(self.parent)
            else:
                self.root.commit(call_id, self.operations, self.effects, self._completed or (), changed)
        if self._resources is not None:
            self.commit_resources()
        self.over = True

    def commit_resources(self) -> None:
        """Keep the changes to resources, and nothing else."""
        for problem in self.resources.commit():
            self.report(problem)

    def _changed(self, resources: ResourceContext) -> Sequence[ResourceChange]:
        """Return the resource changes for the journal, once the outermost call is committed."""
        if isinstance(self.parent, Draft) or not self.root.recording:
            return ()
        return resources.changes([dump(one.receipt) for one, _ in self.applied if one.effect.is_taken_back])

    def discard(self) -> None:
        """Forget everything but the assets, which `keep` may still save. Only resources are put back actively."""
        self.operations = [one for one in self.operations if type(one) is AssetMade]
        self._slices = None
        self._completed = None
        self.over = True
        if self._resources is not None:
            for problem in self._resources.discard():
                self.report(problem)

    def keep(self, call_id: str) -> None:
        """Keep the assets of a failed call, after `discard`: only its patches are dropped."""
        # 000 §13.4 rule 7.
        if isinstance(self.parent, Draft):
            self.parent.operations.extend(self.operations)
        elif self.operations:
            self.root.commit(call_id, self.operations, failed=True)
        self.operations = []
