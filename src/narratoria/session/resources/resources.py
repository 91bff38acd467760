"""Resources that tools use besides the session: a filesystem, a browser, a database connection.

A session has one `ResourceRegistry`, which makes each resource. Each call gets a `ResourceContext`, which records the
resources the call used: `discard` puts them back, `commit` keeps the changes. A resource may help, by one of two
protocols:

* `Draftable`: `draft()` gives a child to work on. Concurrent calls do not disturb each other.   A draft that is
`Undoable` too lists its changes, so that an undo of the turn can put them back. * `Snapshotable`: `snapshot()` before
the first use, `restore()` when the call fails. It restores the whole   resource, so the changes of a concurrent call
are lost too; `discard` detects that and says so.

A resource first made inside a failing call is closed and forgotten, unless another running call uses it by then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, TypeGuard, TypeVar, cast, overload

import msgspec

from narratoria.events import ResourceChange
from narratoria.session.resources.bindings import (
    NOTHING,
    Binding,
    Draftable,
    ResourceError,
    ResourceKey,
    ResourceRegistry,
    ResourceScope,
    Snapshotable,
    Undoable,
    close_resource,
)
from narratoria.session.resources.filesystem import Filesystem
from narratoria.session.resources.write_notes import CallNotes

__all__ = [
    "Draftable",
    "Filesystem",
    "ResourceContext",
    "ResourceError",
    "ResourceRegistry",
    "ResourceScope",
    "Snapshotable",
    "Undoable",
]

T = TypeVar("T")
_Step: TypeAlias = tuple[Binding, Callable[[], Any]]

_MAKING: Final[ContextVar[tuple[Binding, ...]]] = ContextVar("resources being made", default=())


class ResourceContext:
    """The resources of one call. Nested calls commit into the enclosing call; after that it is over."""

    __slots__ = (
        "__weakref__",
        "_at_end",
        "_drafts",
        "_held",
        "_lock",
        "_made",
        "_notes",
        "_over",
        "_parent",
        "_registry",
        "_snapshots",
    )

    def __init__(
        self,
        registry: ResourceRegistry,
        parent: ResourceContext | None = None,
        notes: Callable[[str], CallNotes] | None = None,
    ) -> None:
        # Made once per call: everything else appears at the first use.
        self._registry = registry
        self._parent = parent
        self._notes = notes
        self._held: dict[Binding, Any] | None = None
        self._over = False

    @overload
    def get(self, key: type[T]) -> T: ...
    @overload
    def get(self, key: str) -> Any: ...
    def get(self, key: ResourceKey) -> Any:
        """Return the resource bound to `key`, the same one again within a call, except for prototypes."""
        binding = self._registry.binding(key)
        if self._held is not None and binding in self._held:
            return self._held[binding]
        chain = _MAKING.get()
        if binding in chain:
            names = " -> ".join(one.name for one in [*chain, binding])
            raise ResourceError(f"resource {binding.name} needs itself: {names}")
        with self._registry.lock:
            held = self._open(binding)
        with self._lock:
            if binding in held:
                return held[binding]
            token = _MAKING.set((*chain, binding))
            try:
                return self._obtain(binding)
            finally:
                _MAKING.reset(token)

    def has(self, key: ResourceKey) -> bool:
        """Tell if the session can provide it; nothing is made."""
        return self._registry.has(key)

    @property
    def filesystem(self) -> Filesystem:
        """Shorthand for `get(Filesystem)`."""
        # 002, "Resource Access".
        return cast(Filesystem, self.get(cast(Any, Filesystem)))

    def changes(self, receipts: Sequence[Any] = ()) -> list[ResourceChange]:
        """Return the call's changes in resources that can take them back later. Asked before the commit.

        Paths named by the receipt of an effect that has a rollback, as `path` or among `made`, are left to it.
        """
        found: list[ResourceChange] = []
        if self._held is not None:
            for binding, draft in self._drafts:
                if _is_undoable(draft):
                    found += [
                        ResourceChange(binding.name, one.description, msgspec.to_builtins(one))
                        for one in draft.changes()
                    ]
        own = [path for one in receipts if found for path in _named_in(one)]
        return [one for one in found if one.receipt.get("path") not in own]

    def undoable(self, name: str) -> Undoable | None:
        """Return the resource of this name in records, to take changes back; None if there is none here that can."""
        key = self._registry.key_named(name)
        resource = None if key is None else self.get(key)
        return resource if _is_undoable(resource) else None

    def commit(self) -> tuple[str, ...]:
        """Keep the call's changes: in the enclosing call, or for good. Return the failures, in words."""
        steps: list[_Step] = []
        with self._registry.lock:
            self._over = True
            if self._held is None:
                return ()
            parent = self._parent
            steps += [(binding, partial(close_resource, resource)) for binding, resource in self._at_end]
            steps += [(binding, draft.commit) for binding, draft in self._drafts]
            for binding, snapshot in self._snapshots.items():
                self._leave(binding, heir=parent)
                if parent is not None:
                    parent._open(binding)
                    parent._snapshots.setdefault(binding, snapshot)
            for binding, resource in self._made:
                if binding.maker is self:
                    binding.maker = parent
                if parent is not None:
                    parent._open(binding)
                    parent._made.append((binding, resource))
            self._held = None
        return _carry_out(steps)

    def discard(self) -> tuple[str, ...]:
        """Take back the call's changes. Return what could not be put back cleanly, for people to read."""
        steps: list[_Step] = []
        problems: list[str] = []
        with self._registry.lock:
            self._over = True
            if self._held is None:
                return ()
            dropped = {id(resource) for binding, resource in self._made if self._drops(binding)}
            for binding, resource in self._made:
                if id(resource) in dropped:
                    steps.append((binding, partial(close_resource, resource)))
                    if binding.instance is resource:
                        binding.instance, binding.maker = NOTHING, None
            steps += [(binding, partial(close_resource, resource)) for binding, resource in self._at_end]
            for binding, (resource, snapshot) in self._snapshots.items():
                if self in binding.overlapping:
                    problems.append(
                        f"resource {binding.name} was restored as a whole while another call used it; what "
                        f"that call did to it is lost too (make the resource Draftable to keep them apart)"
                    )
                self._leave(binding, heir=None)
                if id(resource) not in dropped:
                    steps.append((binding, partial(resource.restore, snapshot)))
            steps += [(binding, draft.discard) for binding, draft in self._drafts]
            self._held = None
        return (*problems, *_carry_out(steps))

    # --- how a resource is found, and whose it is ---------------------------------------------------------

    def _open(self, binding: Binding) -> dict[Binding, Any]:
        """Return the table of held resources; called with the registry's lock held."""
        if self._over:
            raise ResourceError(f"resource {binding.name}: the call that asks for it is over")
        if self._held is None:
            self._lock = threading.RLock()
            self._drafts: list[tuple[Binding, Draftable]] = []
            self._snapshots: dict[Binding, tuple[Snapshotable, Any]] = {}
            self._made: list[tuple[Binding, Any]] = []
            self._at_end: list[tuple[Binding, Any]] = []
            self._held = {}
        return self._held

    def _obtain(self, binding: Binding) -> Any:
        """Make or find the resource, and record what a discard will need.

        The author's code (factory, draft, snapshot) runs without the registry's lock: it may be slow, and the call
        may be given up meanwhile.
        """
        if binding.scope != "singleton":
            resource = binding.make(self)
            with self._noting(binding, lambda: close_resource(resource)) as held:
                if binding.scope == "prototype":
                    self._made.append((binding, resource))
                else:
                    self._at_end.append((binding, resource))
                    held[binding] = resource
            return resource
        resource = self._shared(binding)
        if _is_draftable(resource):
            draft = resource.draft()
            if self._notes is not None and self._parent is None and _takes_notes(draft):
                draft.note_in(self._notes(binding.name))
            with self._noting(binding, draft.discard) as held:
                self._drafts.append((binding, draft))
                held[binding] = draft
            return draft
        snapshot = resource.snapshot() if _is_snapshotable(resource) else NOTHING
        with self._noting(binding) as held:
            if snapshot is not NOTHING:
                self._visit(binding)
                self._snapshots[binding] = (resource, snapshot)
            held[binding] = resource
        return resource

    def _shared(self, binding: Binding) -> Any:
        """Return the session's instance, or for a draftable one the draft of the enclosing call."""
        with binding.lock:
            if binding.instance is NOTHING:
                made = binding.make(self)
                with self._noting(binding, lambda: close_resource(made)):
                    binding.instance, binding.maker = made, self
                    self._made.append((binding, made))
            else:
                with self._registry.lock:
                    if binding.maker is not None:
                        self._adopt(binding, binding.maker)
            instance = binding.instance
        if self._parent is not None and _is_draftable(instance):
            return self._parent._draft_for(binding)
        return instance

    def _draft_for(self, binding: Binding) -> Any:
        with self._registry.lock:
            held = self._open(binding)
        with self._lock:
            return held[binding] if binding in held else self._obtain(binding)

    @contextmanager
    def _noting(
        self, binding: Binding, otherwise: Callable[[], Any] | None = None
    ) -> Iterator[dict[Binding, Any]]:
        """Record something while the call lasts; if it was given up meanwhile, undo it and say so."""
        with self._registry.lock:
            if not self._over:
                yield self._open(binding)
                return
        if otherwise is not None:
            otherwise()
        self._open(binding)  # raises

    def _adopt(self, binding: Binding, maker: ResourceContext) -> None:
        """Assign a resource to the smallest call around all its users; beyond that, to the session."""
        enclosing = set(self._lineage())
        owner = next((one for one in maker._lineage() if one in enclosing), None)
        if owner is maker:
            return
        binding.maker = owner
        if owner is not None:
            owner._open(binding)
            owner._made.append((binding, binding.instance))

    def _drops(self, binding: Binding) -> bool:
        return binding.scope == "prototype" or binding.maker is self

    def _visit(self, binding: Binding) -> None:
        mine = set(self._lineage())
        for other in binding.visitors:
            if other not in mine and self not in other._lineage():
                binding.overlapping.update((self, other))
        binding.visitors.add(self)

    def _leave(self, binding: Binding, heir: ResourceContext | None) -> None:
        binding.visitors.discard(self)
        if heir is not None:
            binding.visitors.add(heir)
            if self in binding.overlapping:
                binding.overlapping.add(heir)
        binding.overlapping.discard(self)

    def _lineage(self) -> list[ResourceContext]:
        """Return this context and the enclosing ones, the nearest first."""
        line: list[ResourceContext] = []
        context: ResourceContext | None = self
        while context is not None:
            line.append(context)
            context = context._parent
        return line


def _is_draftable(resource: Any) -> TypeGuard[Draftable]:
    # isinstance() with a protocol takes 10 µs; this is asked at each call's first use.
    kind = type(resource)
    return hasattr(kind, "draft") and hasattr(kind, "commit") and hasattr(kind, "discard")


def _named_in(receipt: Any) -> list[Any]:
    if not isinstance(receipt, dict):
        return []
    made = receipt.get("made")
    return [receipt.get("path"), *(made if isinstance(made, list) else ())]


def _is_undoable(resource: Any) -> TypeGuard[Undoable]:
    kind = type(resource)
    return hasattr(kind, "changes") and hasattr(kind, "take_back")


class _NoteTaking(Draftable, Protocol):
    def note_in(self, notes: CallNotes) -> None: ...


def _takes_notes(draft: Draftable) -> TypeGuard[_NoteTaking]:
    return hasattr(type(draft), "note_in")


def _is_snapshotable(resource: Any) -> TypeGuard[Snapshotable]:
    kind = type(resource)
    return hasattr(kind, "snapshot") and hasattr(kind, "restore")


def _carry_out(steps: list[_Step]) -> tuple[str, ...]:
    """Carry out steps, the last first; a failing one is reported and the others go on."""
    problems: list[str] = []
    for binding, step in reversed(steps):
        try:
            lines = step()
        except Exception as error:  # the end of a call is part of the pipeline: its result stands by now
            lines = [f"resource {binding.name}: {type(error).__name__}: {error}"]
        if isinstance(lines, list | tuple):
            problems += map(str, lines)
    return tuple(problems)
