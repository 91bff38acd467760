"""The operations a draft holds until it is committed: patches, state changes, assets, events, permissions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from narratoria.events import AssetStored, JsonObject, MemoryChange
from narratoria.state import StateChange, StateView, change_to_patch, compose, copy_patch
from narratoria.tools.schema import dump
from narratoria.unicode_text import check_text


class PatchMade(msgspec.Struct, gc=False):
    """A patch, or several in a row merged into one, and the journal records that carry them."""

    patch: JsonObject
    seqs: list[int] = []
    made: int = 1  # how many patches this is; fewer records than that, and the journal has to carry it itself

    def followed_by(self, patch: JsonObject) -> bool:
        """Merge in a patch that follows this one; return False if the two cannot be merged."""
        if self.made == 1:
            self.patch = copy_patch(self.patch)  # until now it was the event's own
        if not compose(self.patch, patch):
            return False
        self.made += 1
        return True


class StateChanged:
    """A state effect, evaluated when the draft is committed, so that two parallel increments give 2."""

    __slots__ = ("change", "path", "value")

    def __init__(self, path: str, change: StateChange, value: Any) -> None:
        self.path = path
        self.change = change
        self.value = value


class AssetMade:
    __slots__ = ("seq", "stored")

    def __init__(self, stored: AssetStored) -> None:
        self.stored = stored
        self.seq = 0


class Dispatched:
    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event


class PermissionSet:
    __slots__ = ("granted", "permission")

    def __init__(self, permission: str, granted: bool) -> None:
        self.permission = check_text(permission, "a permission")
        self.granted = granted


class Notified:
    __slots__ = ("event", "payload")

    def __init__(self, event: str, payload: Any) -> None:
        self.event = check_text(event, "the event of a notification")
        self.payload = dump(payload)


class SliceRecorded:
    """A reducer's recorded result for a slice: the values it `added`, or all values after it."""

    __slots__ = ("added", "slice", "values")

    def __init__(self, slice_name: str, values: list[Any], added: bool) -> None:
        self.slice = slice_name
        self.values = values
        self.added = added


Operation = (
    PatchMade
    | StateChanged
    | AssetMade
    | Dispatched
    | PermissionSet
    | Notified
    | MemoryChange
    | SliceRecorded
)

_PARTS: Final = {
    MemoryChange: "memory",
    PermissionSet: "the permissions",
    Dispatched: "a slice",
    SliceRecorded: "a slice",
}


def add_layers(layers: list[JsonObject], operations: Iterable[Operation], tree: JsonObject) -> None:
    """Add the patches of operations, as they would be applied to the state tree with these layers over it."""
    for operation in operations:
        if isinstance(operation, PatchMade):
            layers.append(operation.patch)
        elif isinstance(operation, StateChanged):
            view = StateView(tree, list(layers))
            layers.append(change_to_patch(view, operation.path, operation.change, operation.value))


def permissions_after(before: Iterable[str], operations: Iterable[Operation]) -> frozenset[str]:
    """Return the granted permissions, with the changes of operations."""
    granted = set(before)
    for operation in operations:
        if isinstance(operation, PermissionSet):
            (granted.add if operation.granted else granted.discard)(operation.permission)
    return frozenset(granted)


def changed_part(operations: Iterable[Operation]) -> str | None:
    """Return the part of a session that operations change, in words; None if they only show something."""
    for operation in operations:
        if not isinstance(operation, AssetMade | Notified):
            return _PARTS.get(type(operation), "the state")
    return None
