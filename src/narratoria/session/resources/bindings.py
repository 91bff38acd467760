"""Bindings of resources: the protocols they may offer, and the registry that makes them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable
from weakref import WeakSet

from narratoria.errors import NarratoriaError

if TYPE_CHECKING:
    from narratoria.session.resources.resources import ResourceContext

ResourceKey: TypeAlias = type[Any] | str
ResourceScope: TypeAlias = Literal["singleton", "tool_call", "prototype"]
Factory: TypeAlias = "Callable[[], Any] | Callable[[ResourceContext], Any]"

NOTHING: Final = object()


class ResourceError(NarratoriaError, LookupError):
    """A resource is not bound, cannot be made, or is bound wrongly."""


@runtime_checkable
class Snapshotable(Protocol):
    """A resource that is put back as a whole when a call fails."""

    def snapshot(self) -> Any:
        """Return the whole content."""

    def restore(self, snapshot: Any, /) -> None:
        """Put a content back."""


@runtime_checkable
class Draftable(Protocol):
    """A resource with drafts. Their `commit` and `discard` may return lines that say what they could not do."""

    def draft(self) -> Draftable:
        """Open a draft."""

    def commit(self) -> Any:
        """Keep the changes of the draft."""

    def discard(self) -> Any:
        """Drop the changes of the draft."""


class Undoable(Protocol):
    """A draft of a resource whose changes an undo of the turn takes back, also in a later run.

    `changes` returns the draft's changes, before it is committed: structs, which become JSON, with a `description`.
    `take_back` puts them back, and returns for each receipt the reason it was left, or None.
    """

    def changes(self) -> Sequence[Any]:
        """Return the changes of the draft, before it is committed."""

    def take_back(self, receipts: Sequence[Any], *, try_only: bool = False) -> Sequence[str | None]:
        """Put changes back, or only tell if that can be done; return a reason for each that stays, or None."""


class Binding:
    """The factory of one resource, and the shared instance once it is made."""

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
        self, name: str, scope: ResourceScope, factory: Factory | None, instance: Any = NOTHING
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


class ResourceRegistry:
    """The resources of a session. `bind` a factory, or `provide` an instance that you close yourself."""

    __slots__ = ("_bindings", "lock")

    def __init__(self) -> None:
        self._bindings: dict[ResourceKey, Binding] = {}
        self.lock = threading.RLock()

    def bind(
        self,
        key: ResourceKey,
        factory: Factory,
        scope: ResourceScope = "singleton",
        *,
        name: str | None = None,
    ) -> None:
        """Bind a factory: called once per session, once per call, or each time the resource is asked for.

        The factory takes nothing, or the `ResourceContext` to get other resources from. `name` is a second key, for
        preconditions that name their resource.
        """
        if scope not in get_args(ResourceScope):
            scopes = ", ".join(get_args(ResourceScope))
            raise ResourceError(
                f"resource {_name(key)}: there is no scope {scope!r}; the scopes are {scopes}"
            )
        self._add(key, name, Binding(_name(key), scope, factory))

    def provide(self, key: ResourceKey, instance: Any, *, name: str | None = None) -> None:
        """Bind an existing instance."""
        self._add(key, name, Binding(_name(key), "singleton", None, instance))

    def has(self, key: ResourceKey) -> bool:
        """Tell if a resource is bound."""
        return key in self._bindings

    def key_named(self, name: str) -> ResourceKey | None:
        """Return the key of the resource with this name in messages and records."""
        return next((key for key, binding in self._bindings.items() if binding.name == name), None)

    def close(self) -> None:
        """Close every shared resource made here; all are tried before a failure of one is raised."""
        with ExitStack() as stack, self.lock:
            for binding in dict.fromkeys(self._bindings.values()):
                if binding.owned and binding.instance is not NOTHING:
                    stack.callback(close_resource, binding.instance)
                    binding.instance = NOTHING
                    binding.maker = None

    def _add(self, key: ResourceKey, name: str | None, binding: Binding) -> None:
        keys = [key] if name is None else [key, name]
        for one in keys:
            if one in self._bindings:
                raise ResourceError(
                    f"resource {_name(one)} is bound already; bind it once, or under another name"
                )
        self._bindings.update(dict.fromkeys(keys, binding))

    def binding(self, key: ResourceKey) -> Binding:
        """Return the binding of a resource."""
        binding = self._bindings.get(key)
        if binding is None:
            bound = ", ".join(sorted(_name(one) for one in self._bindings)) or "nothing"
            raise ResourceError(f"no resource {_name(key)}: bind or provide it first; there is {bound}")
        return binding


def _takes_context(factory: Factory, name: str) -> bool:
    if not callable(factory):
        raise ResourceError(f"resource {name}: its factory is not callable: {factory!r}")
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # a builtin type without a signature: called with nothing
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.kind in positional and one.default is inspect.Parameter.empty for one in parameters)


def close_resource(resource: Any) -> None:
    close = getattr(resource, "close", None)
    if callable(close):
        close()


def _name(key: ResourceKey) -> str:
    return key if isinstance(key, str) else key.__name__
