"""The memory of a session, in four scopes.

* `working`: the scratch of the task at hand. * `short-term`: forgotten after a time to live, an hour unless the write
says otherwise. * `long-term`: kept until deleted. * `episodic`: what happened and when. Append-only: a write adds an
entry `{"at": …, "value": …}` under its   key, a read gives the list of entries, oldest first. An update is refused;
delete and clear are not.

A fifth part, `lore`, is the player's: what was written, imported and pinned on the page (`play/game_lore.py`). Tools
read it and cannot change it.

Every change is a `MemoryChange`: a draft (`memory_draft`) only records changes, `Memory.apply` applies one and
returns its inverse. Values are JSON data, copied on the way in and on the way out, so that a held reference cannot
change committed memory.
"""
# 004 `MemoryManager`.

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from narratoria import state
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject, MemoryChange
from narratoria.typed_values import convert
from narratoria.unicode_text import check_text

MemoryScope: TypeAlias = Literal["working", "short-term", "long-term", "episodic"]
SCOPES: Final[tuple[MemoryScope, ...]] = get_args(MemoryScope)
EPISODIC: Final = "episodic"
LORE: Final = "lore"  # the player's own
SHORT_TERM_TTL: Final = 3600.0
MAX_DEPTH: Final = 100

_EXPIRING: Final = ("working", "short-term")
_KeptScope: TypeAlias = Literal["working", "short-term", "long-term", "episodic", "lore"]
_KEPT: Final[tuple[_KeptScope, ...]] = get_args(_KeptScope)


class MemoryAccessError(NarratoriaError):
    """An invalid use of memory: an unknown scope, a value that is not JSON, an episode updated."""


class Entry(NamedTuple):
    value: Any
    expires: float | None = None


class _Stored(msgspec.Struct, omit_defaults=True):
    """An entry as `export` writes it."""

    value: Any
    expires: float | None = None


class Memory:
    """The committed memory of a session."""

    __slots__ = ("_scopes", "_timers", "clock", "lore_edits", "short_term_ttl")

    def __init__(
        self, clock: Callable[[], float] = time.time, *, short_term_ttl: float = SHORT_TERM_TTL
    ) -> None:
        self.clock = clock
        self.short_term_ttl = short_term_ttl
        self._scopes: dict[str, dict[str, Entry]] = {scope: {} for scope in _KEPT}
        self._timers: list[tuple[float, str, str]] = []
        self.lore_edits = 0  # changes of the player's lore so far: what was read of it may be out of date

    # --- reading ----------------------------------------------------------------------------------

    def read(self, scope: str, key: str, default: Any = None) -> Any:
        """Return a copy of the value under `key`, or `default`."""
        entry = self._live(scope, key)
        return default if entry is None else state.plain(entry.value)

    def has(self, scope: str, key: str) -> bool:
        """Tell if a scope has a key."""
        return self._live(scope, key) is not None

    def keys(self, scope: str) -> list[str]:
        """Return the keys of `scope`, the one written last at the end."""
        return [key for key, _ in self._living(scope)]

    def search(self, scope: str, query: str, limit: int | None = None) -> list[tuple[str, Any]]:
        """Return the entries whose key or JSON text contains `query`, in any case; the newest first."""
        needles = (query.casefold(), msgspec.json.encode(query)[1:-1].decode().casefold())
        found: list[tuple[str, Any]] = []
        for key, entry in reversed(self._living(scope)):
            if limit is not None and len(found) >= limit:
                break
            text = f"{key}\n{msgspec.json.encode(entry.value).decode()}".casefold()
            if any(needle in text for needle in needles):
                found.append((key, state.plain(entry.value)))
        return found

    # --- changing ---------------------------------------------------------------------------------

    def write(self, scope: str, key: str, value: Any, ttl: float | None = None) -> None:
        """Store `value` under `key` in place of the old value; in `episodic`, after the old ones."""
        _check_key(scope, key)
        value = as_json(value, f"memory {scope}/{key}")
        if scope == EPISODIC:
            value = {"at": self.clock(), "value": value}
        self._change(
            MemoryChange(scope=scope, op="write", key=key, value=value, expires=self._expiry(scope, key, ttl))
        )

    def update(self, scope: str, key: str, value: Any | Callable[[Any], Any]) -> Any:
        """Change a value and return it: an object is merged (RFC 7396), anything else replaced.

        A callable gets the present value, or None, and returns the new one. The entry keeps its remaining time to
        live. If two concurrent calls update one key, the later commit wins.
        """
        _check_key(scope, key)
        if scope == EPISODIC:
            raise MemoryAccessError(
                f"memory episodic/{key}: what happened is not updated; write another entry instead"
            )
        entry = self._live(scope, key)
        present = None if entry is None else entry.value
        if callable(value):
            value = as_json(value(state.plain(present)), f"memory {scope}/{key}")
        else:
            value = as_json(value, f"memory {scope}/{key}")
            if isinstance(value, dict) and isinstance(present, dict):
                value = state.merge(present, value)
        expires = self._expiry(scope, key, None) if entry is None else entry.expires
        self._change(MemoryChange(scope=scope, op="write", key=key, value=value, expires=expires))
        return state.plain(value)

    def delete(self, scope: str, key: str) -> bool:
        """Delete `key`; return False if there was no value."""
        check_scope(scope)
        if self._live(scope, key) is None:
            return False
        self._change(MemoryChange(scope=scope, op="delete", key=key))
        return True

    def clear(self, scope: str) -> None:
        """Delete everything in `scope`."""
        check_scope(scope)
        self._change(MemoryChange(scope=scope, op="clear"))

    def apply(self, change: MemoryChange) -> list[MemoryChange]:
        """Apply one recorded change and return its inverse, in the order to apply it."""
        entries = self._entries(change.scope)
        self._forget_expired()
        if change.scope == LORE:
            self.lore_edits += 1
        if change.op == "clear":
            inverse = [undo for key, entry in entries.items() for undo in writes(change.scope, key, entry)]
            entries.clear()
            return inverse
        old = entries.get(change.key)
        if change.scope == EPISODIC and (change.op == "write" or change.value is not None):
            return self._apply_episode(entries, change)
        entries.pop(change.key, None)  # also before a write: a rewritten key moves to the end, as the newest
        if change.op == "write":
            entries[change.key] = Entry(change.value, change.expires)
            if change.expires is not None:
                heapq.heappush(self._timers, (change.expires, change.scope, change.key))
        if old is None:
            return (
                [MemoryChange(scope=change.scope, op="delete", key=change.key)]
                if change.op == "write"
                else []
            )
        return writes(change.scope, change.key, old)

    def _apply_episode(self, entries: dict[str, Entry], change: MemoryChange) -> list[MemoryChange]:
        """Add one entry, or (a delete that names its value) remove one: each is the other's inverse."""
        old = entries.pop(change.key, None)
        episodes: list[Any] = [] if old is None else old.value
        if change.op == "write":
            episodes.append(change.value)
        elif not remove_last(episodes, change.value):
            if old is not None:
                entries[change.key] = old
            return []
        if episodes:
            entries[change.key] = Entry(episodes)
        op: Literal["write", "delete"] = "delete" if change.op == "write" else "write"
        return [MemoryChange(scope=change.scope, op=op, key=change.key, value=change.value)]

    # --- keeping ----------------------------------------------------------------------------------

    def export(self) -> JsonObject:
        """Return the whole memory, as JSON data for `load`."""
        return {
            scope: {
                key: {
                    "value": state.plain(entry.value),
                    **({} if entry.expires is None else {"expires": entry.expires}),
                }
                for key, entry in self._living(scope)
            }
            for scope in _KEPT
            if scope != LORE or self.keys(LORE)
        }

    def changes(self) -> list[MemoryChange]:
        """Return the changes that make an empty memory into this one."""
        return [
            change
            for scope in _KEPT
            for key, entry in self._living(scope)
            for change in writes(scope, key, entry)
        ]

    def load(self, data: Mapping[str, Any]) -> None:
        """Replace the memory by an `export`."""
        try:
            stored = convert(data, dict[_KeptScope, dict[str, _Stored]])
        except msgspec.ValidationError as problem:
            raise MemoryAccessError(f"memory cannot be loaded: {problem}") from None
        self._scopes = {
            scope: {
                key: Entry(as_json(one.value, f"memory {scope}/{key}"), one.expires)
                for key, one in stored.get(scope, {}).items()
            }
            for scope in _KEPT
        }
        self._timers = [
            (entry.expires, scope, key)
            for scope, entries in self._scopes.items()
            for key, entry in entries.items()
            if entry.expires is not None
        ]
        heapq.heapify(self._timers)
        self.lore_edits += 1

    # --- what a draft does differently ------------------------------------------------------------

    def find_entry(self, scope: str, key: str) -> Entry | None:
        """Return the entry of a key, expired or not."""
        return self._entries(scope).get(key)

    def scan_entries(self, scope: str) -> list[tuple[str, Entry]]:
        """Return all entries of a scope, expired or not."""
        # A list made in one step: a handler's worker thread may read while another call commits.
        return list(self._entries(scope).items())

    def _change(self, change: MemoryChange) -> None:
        self.apply(change)

    # --- shared -----------------------------------------------------------------------------------

    def _entries(self, scope: str) -> dict[str, Entry]:
        entries = self._scopes.get(scope)
        if entries is None:
            raise _unknown(scope)
        return entries

    def _live(self, scope: str, key: str) -> Entry | None:
        entry = self.find_entry(scope, key)
        return entry if entry is None or entry.expires is None or entry.expires > self.clock() else None

    def _living(self, scope: str) -> list[tuple[str, Entry]]:
        now = self.clock()
        return [item for item in self.scan_entries(scope) if item[1].expires is None or item[1].expires > now]

    def _expiry(self, scope: str, key: str, ttl: float | None) -> float | None:
        if ttl is None:
            return self.clock() + self.short_term_ttl if scope == "short-term" else None
        if scope not in _EXPIRING:
            raise MemoryAccessError(
                f"memory {scope}/{key}: {scope} memory has no time to live; use short-term"
            )
        if not ttl > 0:
            raise MemoryAccessError(f"memory {scope}/{key}: ttl must be more than 0 seconds, got {ttl!r}")
        return self.clock() + ttl

    def _forget_expired(self) -> None:
        """Drop expired entries, each once, so that memory does not grow with them."""
        while self._timers and self._timers[0][0] <= self.clock():
            expires, scope, key = heapq.heappop(self._timers)
            entry = self._scopes[scope].get(key)
            if entry is not None and entry.expires == expires:
                del self._scopes[scope][key]


def remove_last(episodes: list[Any], value: Any) -> bool:
    for index in range(len(episodes) - 1, -1, -1):
        if episodes[index] == value:
            del episodes[index]
            return True
    return False


def writes(scope: str, key: str, entry: Entry) -> list[MemoryChange]:
    """Return the changes that put `entry` back."""
    values: Sequence[Any] = list(entry.value) if scope == EPISODIC else (entry.value,)
    return [
        MemoryChange(scope=scope, op="write", key=key, value=value, expires=entry.expires) for value in values
    ]


def changes_between(then: Memory, now: Memory, scope: str) -> list[MemoryChange]:
    """Return the changes that make the keys of `scope` in one memory into those of another; not for `episodic`."""
    before, after = dict(then.scan_entries(scope)), dict(now.scan_entries(scope))
    gone = [MemoryChange(scope=scope, op="delete", key=key) for key in before if key not in after]
    changed = [(key, entry) for key, entry in after.items() if before.get(key) != entry]
    return [*gone, *(change for key, entry in changed for change in writes(scope, key, entry))]


def as_json(value: Any, where: str) -> Any:
    """Return a copy of `value` as plain JSON data; raise `MemoryAccessError`, naming the part that is not."""
    return _as_json(value, where, 0)


def _as_json(value: Any, where: str, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise MemoryAccessError(f"{where}: the number has more than 64 bits; keep it as text")
        return int(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise MemoryAccessError(f"{where}: {value!r} is not a JSON number")
        return float(value)
    if depth >= MAX_DEPTH:
        raise MemoryAccessError(f"{where}: nested deeper than {MAX_DEPTH} levels, or holding itself")
    if isinstance(value, Mapping):
        return {
            _json_key(key, where): _as_json(item, f"{where}.{key}", depth + 1) for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_as_json(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
    raise MemoryAccessError(
        f"{where}: {type(value).__name__} is not JSON data; use objects, arrays, text and numbers"
    )


def _json_key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise MemoryAccessError(
            f"{where}: the key {key!r} is {type(key).__name__}; keys of an object are text"
        )
    return _text(key, f"{where}: a key")


def _text(value: str, where: str) -> str:
    try:
        return check_text(value, where)
    except ValueError as error:
        raise MemoryAccessError(str(error)) from None


def check_scope(scope: str) -> None:
    if scope == LORE:
        raise MemoryAccessError(
            "memory lore: it is the player's; a tool reads it and writes to another scope"
        )
    if scope not in SCOPES:
        raise _unknown(scope)


def _check_key(scope: str, key: str) -> None:
    check_scope(scope)
    if not isinstance(key, str) or not key:
        raise MemoryAccessError(f"memory {scope}: a key is text of at least one character, got {key!r}")
    _text(key, f"memory {scope}: a key")


def _unknown(scope: str) -> MemoryAccessError:
    return MemoryAccessError(f"there is no memory scope {scope!r}; the scopes are {', '.join(SCOPES)}")
