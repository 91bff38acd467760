"""Typed slices: immutable tuples of values, changed only by reducers over dispatched events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from narratoria.events import SliceChange
from narratoria.tools import schema
from narratoria.typed_values import converter

T = TypeVar("T")
Reducer = Callable[[tuple[Any, ...], Any], tuple[Any, ...]]


class Slice(Generic[T]):
    """The values of one type in a session."""

    __slots__ = ("_values",)

    def __init__(self, values: tuple[T, ...]) -> None:
        self._values = values

    def all(self) -> tuple[T, ...]:
        return self._values

    def latest(self) -> T | None:
        return self._values[-1] if self._values else None

    def where(self, predicate: Callable[[T], bool]) -> tuple[T, ...]:
        return tuple(value for value in self._values if predicate(value))


def slice_name(slice_type: type) -> str:
    return f"{slice_type.__module__}.{slice_type.__qualname__}"


def _decoded(values: list[Any], slice_type: type) -> tuple[Any, ...]:
    return tuple(map(converter(slice_type), values))


def append(values: tuple[Any, ...], event: Any) -> tuple[Any, ...]:
    """The default reducer: every dispatched value is kept."""
    return (*values, event)


class SliceStore:
    """Values by type, and the reducers that make them. Reducers are registered, values are data."""

    __slots__ = ("_reducers", "_types", "_unread", "_values")

    def __init__(self) -> None:
        self._values: dict[type, tuple[Any, ...]] = {}
        self._reducers: dict[type, list[tuple[type, Reducer]]] = {}
        self._types: dict[str, type] = {}
        self._unread: dict[str, list[Any]] = {}  # loaded from a journal before their type was registered

    def register(self, event_type: type, reducer: Reducer, slice_type: type) -> None:
        known = self._reducers.setdefault(event_type, [])
        if (slice_type, reducer) not in known:
            known.append((slice_type, reducer))
        self._meet(slice_type)

    def _meet(self, slice_type: type) -> None:
        name = slice_name(slice_type)
        self._types[name] = slice_type
        if name in self._unread:
            self._values[slice_type] = _decoded(self._unread.pop(name), slice_type)

    def get(self, slice_type: type) -> tuple[Any, ...]:
        if self._unread and slice_name(slice_type) in self._unread:
            self._meet(slice_type)
        return self._values.get(slice_type, ())

    def put(self, slice_type: type, values: tuple[Any, ...]) -> None:
        self._types.setdefault(slice_name(slice_type), slice_type)
        self._values[slice_type] = values

    def encoded(self, slice_type: type, values: tuple[Any, ...]) -> SliceChange:
        return SliceChange(slice_name(slice_type), [schema.dump(value) for value in values])

    def recorded(self, name: str) -> list[Any]:
        """Return the encoded values of the slice of this name."""
        slice_type = self._types.get(name)
        if slice_type is None:
            return list(self._unread.get(name, ()))
        return self.encoded(slice_type, self.get(slice_type)).values

    def load(self, change: SliceChange) -> SliceChange:
        """Load recorded values; return the inverse change."""
        slice_type = self._types.get(change.slice)
        if slice_type is None:
            before = self._unread.get(change.slice, [])
            self._unread[change.slice] = change.values
            return SliceChange(change.slice, before)
        old = self.encoded(slice_type, self.get(slice_type))
        self._values[slice_type] = _decoded(change.values, slice_type)
        return old

    def export(self) -> list[SliceChange]:
        known = [self.encoded(slice_type, values) for slice_type, values in self._values.items()]
        return known + [SliceChange(name, values) for name, values in self._unread.items()]

    def reduce(
        self, read: Callable[[type], tuple[Any, ...]], event: Any
    ) -> Iterable[tuple[type, tuple[Any, ...]]]:
        """Return the slices an event changes, as (type, new values). Nothing is stored here."""
        for slice_type, reducer in self._reducers.get(type(event)) or [(type(event), append)]:
            changed = reducer(read(slice_type), event)
            if not isinstance(changed, tuple):
                raise TypeError(
                    f"the reducer of {slice_type.__name__} for {type(event).__name__} must return a tuple, "
                    f"got {type(changed).__name__}"
                )
            yield slice_type, changed
