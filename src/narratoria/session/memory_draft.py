"""A call's view of memory: its own changes over what is committed, until its draft commits or is dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from narratoria.events import JsonObject, MemoryChange
from narratoria.session.memory import (
    EPISODIC,
    Entry,
    Memory,
    MemoryAccessError,
    check_scope,
    remove_last,
    writes,
)


class MemoryDraft(Memory):
    """A call's view of memory: its own changes first, then what is committed, siblings' commits included.

    A change calls `record` and stays in this draft; nothing touches the base. Drop the draft to drop it all.
    """

    __slots__ = ("_base", "_overlay", "_record")

    def __init__(self, base: Memory, record: Callable[[MemoryChange], None]) -> None:
        self._base = base
        self._record = record
        self.clock = base.clock
        self.short_term_ttl = base.short_term_ttl
        self._overlay: dict[str, _Overlay] | None = None

    def apply(self, change: MemoryChange) -> list[MemoryChange]:
        """Show a change in this draft without recording it, as when a nested draft commits into this one."""
        check_scope(change.scope)
        before = self.scan_entries(change.scope) if change.op == "clear" else []
        old = self.find_entry(change.scope, change.key)
        if self._overlay is None:
            self._overlay = {}
        self._overlay.setdefault(change.scope, _Overlay()).add(change)
        if change.op == "clear":
            return [undo for key, entry in before for undo in writes(change.scope, key, entry)]
        if change.scope == EPISODIC and (change.op == "write" or change.value is not None):
            op: Literal["write", "delete"] = "delete" if change.op == "write" else "write"
            return [MemoryChange(scope=change.scope, op=op, key=change.key, value=change.value)]
        if old is None:
            return [MemoryChange(scope=change.scope, op="delete", key=change.key)]
        return writes(change.scope, change.key, old)

    def export(self) -> JsonObject:
        """Return everything this draft sees."""
        return super().export()

    def load(self, data: Mapping[str, Any]) -> None:
        raise MemoryAccessError("memory is loaded into a session, not into the draft of a call")

    def find_entry(self, scope: str, key: str) -> Entry | None:
        overlay = None if self._overlay is None else self._overlay.get(scope)
        if overlay is None:
            return self._base.find_entry(scope, key)
        changes = overlay.changes.get(key)
        if changes is not None and scope != EPISODIC:
            return _after(None, changes[-1])
        entry = None if overlay.cleared else self._base.find_entry(scope, key)
        for change in changes or ():
            entry = _after(entry, change)
        return entry

    def scan_entries(self, scope: str) -> list[tuple[str, Entry]]:
        overlay = None if self._overlay is None else self._overlay.get(scope)
        base = self._base.scan_entries(scope)
        if overlay is None:
            return base
        kept = [] if overlay.cleared else [item for item in base if item[0] not in overlay.changes]
        mine = ((key, self.find_entry(scope, key)) for key in list(overlay.changes))
        return [*kept, *((key, entry) for key, entry in mine if entry is not None)]

    def _change(self, change: MemoryChange) -> None:
        self.apply(change)
        self._record(change)


class _Overlay:
    """The changes of a draft in one scope: per key the last change, in `episodic` all of them."""

    __slots__ = ("changes", "cleared")

    def __init__(self) -> None:
        self.cleared = False
        self.changes: dict[str, list[MemoryChange]] = {}

    def add(self, change: MemoryChange) -> None:
        if change.op == "clear":
            self.cleared = True
            self.changes.clear()
            return
        before = self.changes.pop(change.key, [])
        self.changes[change.key] = [*before, change] if change.scope == EPISODIC else [change]


def _after(entry: Entry | None, change: MemoryChange) -> Entry | None:
    """Return the entry under a key after `change`."""
    if change.scope != EPISODIC:
        return Entry(change.value, change.expires) if change.op == "write" else None
    episodes = [] if entry is None else list(entry.value)
    if change.op == "write":
        episodes.append(change.value)
    elif change.value is None or (remove_last(episodes, change.value) and not episodes):
        return None
    return Entry(episodes) if episodes else None
