"""What tools use besides the session: a filesystem, a browser, a database connection.

A session has one `ResourceRegistry`, which says how each resource is made. Each call gets a
`ResourceContext`, which remembers what the call touched: `discard` puts that back, `commit` keeps it.
A resource may help, by one of two protocols:

* `Draftable`: `draft()` gives a child to work on. Calls that run at once do not disturb each other.
* `Snapshotable`: `snapshot()` before the first use, `restore()` when the call fails. It restores the whole
  resource, so what a call beside it did in the meantime is lost too; `discard` detects that and says so.

A resource first made inside a failing call is closed and forgotten, unless a call beside it uses it by then.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import (
    Any,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    get_args,
    overload,
    runtime_checkable,
)
from weakref import WeakSet

from narratoria.errors import NarratoriaError
from narratoria.session.filesystem import Filesystem

T = TypeVar("T")
ResourceKey: TypeAlias = type[Any] | str
ResourceScope: TypeAlias = Literal["singleton", "tool_call", "prototype"]
Factory: TypeAlias = Callable[[], Any] | Callable[["ResourceContext"], Any]

__all__ = [
    "Draftable",
    "Filesystem",
    "ResourceContext",
    "ResourceError",
    "ResourceRegistry",
    "ResourceScope",
    "Snapshotable",
]

_NOTHING: Final = object()


class ResourceError(NarratoriaError, LookupError):
    """A resource is not bound, cannot be made, or is bound wrongly."""


@runtime_checkable
class Snapshotable(Protocol):
    def snapshot(self) -> Any: ...
    def restore(self, snapshot: Any, /) -> None: ...


@runtime_checkable
class Draftable(Protocol):
    """`discard` may return lines that say what it could not put back."""

    def draft(self) -> Draftable: ...
    def commit(self) -> None: ...
    def discard(self) -> Any: ...


class _Binding:
    """How one resource is made, and the shared instance once it is."""

    __slots__ = (
        "factory",
        "instance",
        "lock",
        "maker",
        "name",
        "overlapping",
        "owned",
        "scope",
        "takes_context",
        "visitors",
    )

    def __init__(
        self, name: str, scope: ResourceScope, factory: Factory | None, instance: Any = _NOTHING
    ) -> None:
        self.name = name
        self.scope = scope
        self.factory = factory
        self.takes_context = factory is not None and _takes_context(factory, name)
        self.instance = instance
        self.owned = factory is not None  # what the user handed over, the user closes
        self.lock = threading.RLock()  # held while the shared instance is made
        self.maker: ResourceContext | None = None
        # Weak: a call that vanished without an end (a check before the call) is in nobody's way.
        self.visitors: WeakSet[ResourceContext] = WeakSet()
        self.overlapping: WeakSet[ResourceContext] = WeakSet()

    def make(self, context: ResourceContext) -> Any:
        factory = cast(Callable[..., Any], self.factory)
        made = factory(context) if self.takes_context else factory()
        if inspect.isawaitable(made):
            cast(Any, made).close()
            raise ResourceError(
                f"resource {self.name}: its factory is async; make the resource in a plain function"
            )
        if hasattr(made, "aclose") and not hasattr(made, "close"):
            raise ResourceError(
                f"resource {self.name}: it has aclose() only; give it a close() that does not wait"
            )
        return made


_MAKING: Final[ContextVar[tuple[_Binding, ...]]] = ContextVar("resources being made", default=())


class ResourceRegistry:
    """What a session can provide. `bind` a factory, or `provide` an instance that you close yourself."""

    __slots__ = ("_bindings", "_lock")

    def __init__(self) -> None:
        self._bindings: dict[ResourceKey, _Binding] = {}
        self._lock = threading.RLock()

    def bind(
        self,
        key: ResourceKey,
        factory: Factory,
        scope: ResourceScope = "singleton",
        *,
        name: str | None = None,
    ) -> None:
        """Say how to make a resource: once per session, once per call, or anew each time it is asked for.

        The factory takes nothing, or the `ResourceContext` to get other resources from. `name` is a second
        key, for preconditions that name their resource.
        """
        if scope not in get_args(ResourceScope):
            scopes = ", ".join(get_args(ResourceScope))
            raise ResourceError(
                f"resource {_name(key)}: there is no scope {scope!r}; the scopes are {scopes}"
            )
        self._add(key, name, _Binding(_name(key), scope, factory))

    def provide(self, key: ResourceKey, instance: Any, *, name: str | None = None) -> None:
        """Offer an instance that exists already."""
        self._add(key, name, _Binding(_name(key), "singleton", None, instance))

    def has(self, key: ResourceKey) -> bool:
        return key in self._bindings

    def close(self) -> None:
        """Close every shared resource made here; all are tried before a failure of one is raised."""
        with ExitStack() as stack, self._lock:
            for binding in dict.fromkeys(self._bindings.values()):
                if binding.owned and binding.instance is not _NOTHING:
                    stack.callback(_close, binding.instance)
                    binding.instance = _NOTHING
                    binding.maker = None

    def _add(self, key: ResourceKey, name: str | None, binding: _Binding) -> None:
        keys = [key] if name is None else [key, name]
        for one in keys:
            if one in self._bindings:
                raise ResourceError(
                    f"resource {_name(one)} is bound already; bind it once, or under another name"
                )
        self._bindings.update(dict.fromkeys(keys, binding))

    def _binding(self, key: ResourceKey) -> _Binding:
        binding = self._bindings.get(key)
        if binding is None:
            bound = ", ".join(sorted(_name(one) for one in self._bindings)) or "nothing"
            raise ResourceError(f"no resource {_name(key)}: bind or provide it first; there is {bound}")
        return binding


class ResourceContext:
    """The resources of one call. Nested calls commit into the call around them; after that it is over."""

    __slots__ = (
        "__weakref__",
        "_at_end",
        "_drafts",
        "_held",
        "_lock",
        "_made",
        "_over",
        "_parent",
        "_registry",
        "_snapshots",
    )

    def __init__(self, registry: ResourceRegistry, parent: ResourceContext | None = None) -> None:
        # Made once per call: everything else appears at the first use.
        self._registry = registry
        self._parent = parent
        self._held: dict[_Binding, Any] | None = None
        self._over = False

    @overload
    def get(self, key: type[T]) -> T: ...
    @overload
    def get(self, key: str) -> Any: ...
    def get(self, key: ResourceKey) -> Any:
        """The resource bound to `key`, the same one again within a call, but for prototypes."""
        binding = self._registry._binding(key)
        if self._held is not None and binding in self._held:
            return self._held[binding]
        chain = _MAKING.get()
        if binding in chain:
            names = " -> ".join(one.name for one in [*chain, binding])
            raise ResourceError(f"resource {binding.name} needs itself: {names}")
        with self._registry._lock:
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
        """Whether the session can provide it; nothing is made."""
        return self._registry.has(key)

    @property
    def filesystem(self) -> Filesystem:
        """002: shorthand for `get(Filesystem)`."""
        return cast(Filesystem, self.get(cast(Any, Filesystem)))

    def commit(self) -> None:
        """Keep what the call did: in the call around it, or for good."""
        with ExitStack() as stack, self._registry._lock:
            self._over = True
            if self._held is None:
                return
            parent = self._parent
            for resource in self._at_end:
                stack.callback(_close, resource)
            for draft in self._drafts:
                stack.callback(draft.commit)
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

    def discard(self) -> tuple[str, ...]:
        """Take back what the call did. Returns what could not be put back cleanly, for people to read.

        Every resource is tried before the first failure of one is raised.
        """
        problems: list[str] = []
        with ExitStack() as stack, self._registry._lock:
            self._over = True
            if self._held is None:
                return ()
            dropped = {id(resource) for binding, resource in self._made if self._drops(binding)}
            for binding, resource in self._made:
                if id(resource) in dropped:
                    stack.callback(_close, resource)
                    if binding.instance is resource:
                        binding.instance, binding.maker = _NOTHING, None
            for resource in self._at_end:
                stack.callback(_close, resource)
            for binding, (resource, snapshot) in self._snapshots.items():
                if self in binding.overlapping:
                    problems.append(
                        f"resource {binding.name} was restored as a whole while another call used it; what "
                        f"that call did to it is lost too (make the resource Draftable to keep them apart)"
                    )
                self._leave(binding, heir=None)
                if id(resource) not in dropped:
                    stack.callback(resource.restore, snapshot)
            for draft in self._drafts:
                stack.callback(_discard_draft, draft, problems)
            self._held = None
        return tuple(problems)

    # --- how a resource is found, and whose it is ---------------------------------------------------------

    def _open(self, binding: _Binding) -> dict[_Binding, Any]:
        """Ready to note things down; called with the registry's lock held."""
        if self._over:
            raise ResourceError(f"resource {binding.name}: the call that asks for it is over")
        if self._held is None:
            self._lock = threading.RLock()
            self._drafts: list[Draftable] = []
            self._snapshots: dict[_Binding, tuple[Snapshotable, Any]] = {}
            self._made: list[tuple[_Binding, Any]] = []
            self._at_end: list[Any] = []
            self._held = {}
        return self._held

    def _obtain(self, binding: _Binding) -> Any:
        """Make or find the resource, and note what a discard will need.

        What the author wrote (factory, draft, snapshot) runs without the registry's lock: it may be slow, and
        the call may be given up meanwhile.
        """
        if binding.scope != "singleton":
            resource = binding.make(self)
            with self._noting(binding, lambda: _close(resource)) as held:
                if binding.scope == "prototype":
                    self._made.append((binding, resource))
                else:
                    self._at_end.append(resource)
                    held[binding] = resource
            return resource
        resource = self._shared(binding)
        if _is_draftable(resource):
            draft = resource.draft()
            with self._noting(binding, draft.discard) as held:
                self._drafts.append(draft)
                held[binding] = draft
            return draft
        snapshot = resource.snapshot() if _is_snapshotable(resource) else _NOTHING
        with self._noting(binding) as held:
            if snapshot is not _NOTHING:
                self._visit(binding)
                self._snapshots[binding] = (resource, snapshot)
            held[binding] = resource
        return resource

    def _shared(self, binding: _Binding) -> Any:
        """The session's instance, or for a draftable one the draft of the call around this one."""
        with binding.lock:
            if binding.instance is _NOTHING:
                made = binding.make(self)
                with self._noting(binding, lambda: _close(made)):
                    binding.instance, binding.maker = made, self
                    self._made.append((binding, made))
            else:
                with self._registry._lock:
                    if binding.maker is not None:
                        self._adopt(binding, binding.maker)
            instance = binding.instance
        if self._parent is not None and _is_draftable(instance):
            return self._parent._draft_for(binding)
        return instance

    def _draft_for(self, binding: _Binding) -> Any:
        with self._registry._lock:
            held = self._open(binding)
        with self._lock:
            return held[binding] if binding in held else self._obtain(binding)

    @contextmanager
    def _noting(
        self, binding: _Binding, otherwise: Callable[[], Any] | None = None
    ) -> Iterator[dict[_Binding, Any]]:
        """Note something down while the call lasts; when it was given up meanwhile, undo it and say so."""
        with self._registry._lock:
            if not self._over:
                yield self._open(binding)
                return
        if otherwise is not None:
            otherwise()
        self._open(binding)  # raises

    def _adopt(self, binding: _Binding, maker: ResourceContext) -> None:
        """A resource belongs to the smallest call around all that use it; beyond that, to the session."""
        enclosing = set(self._lineage())
        owner = next((one for one in maker._lineage() if one in enclosing), None)
        if owner is maker:
            return
        binding.maker = owner
        if owner is not None:
            owner._open(binding)
            owner._made.append((binding, binding.instance))

    def _drops(self, binding: _Binding) -> bool:
        return binding.scope == "prototype" or binding.maker is self

    def _visit(self, binding: _Binding) -> None:
        mine = set(self._lineage())
        for other in binding.visitors:
            if other not in mine and self not in other._lineage():
                binding.overlapping.update((self, other))
        binding.visitors.add(self)

    def _leave(self, binding: _Binding, heir: ResourceContext | None) -> None:
        binding.visitors.discard(self)
        if heir is not None:
            binding.visitors.add(heir)
            if self in binding.overlapping:
                binding.overlapping.add(heir)
        binding.overlapping.discard(self)

    def _lineage(self) -> list[ResourceContext]:
        """This context and those around it, the nearest first."""
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


def _is_snapshotable(resource: Any) -> TypeGuard[Snapshotable]:
    kind = type(resource)
    return hasattr(kind, "snapshot") and hasattr(kind, "restore")


def _takes_context(factory: Factory, name: str) -> bool:
    if not callable(factory):
        raise ResourceError(f"resource {name}: its factory is not callable: {factory!r}")
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # a builtin type without a signature: called with nothing
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.kind in positional and one.default is inspect.Parameter.empty for one in parameters)


def _discard_draft(draft: Draftable, problems: list[str]) -> None:
    problems.extend(draft.discard() or ())


def _close(resource: Any) -> None:
    close = getattr(resource, "close", None)
    if callable(close):
        close()


def _name(key: ResourceKey) -> str:
    return key if isinstance(key, str) else key.__name__
