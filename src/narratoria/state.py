"""The state tree: merging, comparing and looking up. Pure functions over JSON data, and a read-only view.

`merge` is JSON Merge Patch (RFC 7396) on objects. A state never holds a null member: nulls remove keys, also inside
an object that is newly added. So the inverse of any change is itself a merge patch, which is how a turn is undone.

Objects are exactly `dict` here: a process's output is decoded so, and a handler's values are converted at the edge.
"""
# 000 §4.2.

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, overload

from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject

MISSING: Final = object()
_INDEX: Final = re.compile(
    r"0|[1-9][0-9]{0,17}"
)  # `int` reads " 1", "1_0" and the digits of other scripts too

StateChange: TypeAlias = Literal["set", "clear", "increment", "decrement"]


class StateError(NarratoriaError):
    """A change does not fit the state it meets."""


class StateMovedOn(StateError):
    """A state effect fitted when it was tried, and no longer does when its call is committed."""


def merge(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` merged into it (RFC 7396). Neither is changed; untouched parts are shared."""
    if not isinstance(patch, dict):
        return patch
    return _merged(target, patch) if isinstance(target, dict) else _without_nulls(patch)


def _merged(target: JsonObject, patch: JsonObject) -> JsonObject:
    result = target.copy()
    for key in patch:  # these loops are the floor of every merge; a key at a time is their fastest form
        value = patch[key]
        if type(value) is not dict:
            if value is None:
                result.pop(key, None)
            else:
                result[key] = value
        elif key in target and type(target[key]) is dict:
            result[key] = _merged(target[key], value)
        else:
            result[key] = _without_nulls(value)
    return result


def merge_into(target: JsonObject, patch: JsonObject) -> None:
    """Merge `patch` into `target` in place, at the cost of the patch alone; nobody else may hold `target`."""
    for key in patch:
        value = patch[key]
        if type(value) is not dict:
            if value is None:
                target.pop(key, None)
            else:
                target[key] = value
        elif key in target and type(target[key]) is dict:
            merge_into(target[key], value)
        else:
            target[key] = _without_nulls(value)


def _without_nulls(patch: JsonObject) -> JsonObject:
    """Return a patch that is merged into nothing (RFC 7396, appendix A, last vector)."""
    result: JsonObject = {}
    for key, value in patch.items():
        if type(value) is dict:
            result[key] = _without_nulls(value)
        elif value is not None:
            result[key] = value
    return result


def diff(before: Any, after: Any) -> Any:
    """Return the smallest patch with `merge(before, patch) == after`, for objects without null members."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    patch: JsonObject = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key, MISSING)
        if isinstance(old, dict) and isinstance(value, dict):
            nested = diff(old, value)
            if nested:
                patch[key] = nested
        elif old is MISSING or not _same(old, value):
            patch[key] = value
    return patch


def _same(one: Any, other: Any) -> bool:
    """Tell if two values are equal as JSON: 1, 1.0 and true are three values, also inside arrays."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def compose(first: JsonObject, second: JsonObject) -> bool:
    """Change `first` into the one patch that does what `first` and then `second` do; nobody else may hold `first`.

    Return False, with `first` unchanged, if no such patch exists: an object that replaces what `first` set or removed
    would be merged into the value from before `first`.
    """
    return _composable(first, second) and _compose(first, second)


def _composable(first: JsonObject, second: JsonObject) -> bool:
    for key in second:
        value = second[key]
        if type(value) is dict and key in first:
            earlier = first[key]
            if type(earlier) is not dict or not _composable(earlier, value):
                return False
    return True


def _compose(first: JsonObject, second: JsonObject) -> Literal[True]:
    for key in second:
        value = second[key]
        if type(value) is not dict:
            first[key] = value
        elif key in first:
            _compose(first[key], value)
        else:
            first[key] = copy_patch(value)
    return True


def copy_patch(patch: JsonObject) -> JsonObject:
    """Copy the objects of a patch, nulls included, so that the copy can be composed with others."""
    return {key: copy_patch(value) if type(value) is dict else value for key, value in patch.items()}


def apply(root: JsonObject, patch: JsonObject, inverse: JsonObject | None = None) -> JsonObject:
    """Merge `patch` into `root` in place and return the inverse patch, at the cost of the patch alone.

    Nothing else of the tree is copied; the inverse holds the replaced values by reference. Given the `inverse` of the
    change just before, that one is extended until it takes back both: it holds one old value per place, however often
    the place changed.
    """
    if inverse is None:
        inverse = {}
    for key, value in patch.items():
        old = root.get(key, MISSING)
        if type(value) is dict:
            if type(old) is dict:
                _apply_within(old, value, inverse, key)
                continue
            new: Any = _without_nulls(value)
        else:
            new = value
        if key in inverse:
            _rewrite(inverse, key, old, new)
        elif old is not MISSING:
            inverse[key] = old
        elif new is not None:
            inverse[key] = None
        if new is not None:
            root[key] = new
        elif old is not MISSING:
            del root[key]
    return inverse


def _apply_within(old: JsonObject, patch: JsonObject, inverse: JsonObject, key: str) -> None:
    if key not in inverse:
        nested = apply(old, patch)
        if nested:
            inverse[key] = nested
    elif type(inverse[key]) is dict:
        apply(old, patch, inverse[key])
    else:
        merge_into(old, patch)  # no object stood there at first: whatever becomes of this one, it goes


def _rewrite(inverse: JsonObject, key: str, old: Any, new: Any) -> None:
    """Update an inverse at `key`: it holds a patch while an object stands there, and the whole old value while none
    does.
    """
    before = inverse[key]
    if type(before) is not dict:
        return
    if type(old) is dict:
        inverse[key] = merge(old, before)
    elif type(new) is dict:
        inverse[key] = diff(new, before)


def revert(root: JsonObject, inverse: JsonObject) -> None:
    """Take back an `apply` that was the last change to `root`; replaced subtrees are put back, not copied."""
    for key, old in inverse.items():
        if old is None:
            root.pop(key, None)
        elif isinstance(old, dict) and isinstance(current := root.get(key), dict):
            revert(current, old)
        else:
            root[key] = old


def split_path(path: str | Sequence[str | int]) -> list[str | int]:
    """Split `inventory.torch.lit` into its parts; a key that itself holds a dot is given by a sequence."""
    return list(path.split(".")) if isinstance(path, str) else list(path)


def lookup(data: Any, path: str | Sequence[str | int], default: Any = None) -> Any:
    """Return the value at `path` in `data`, or `default`. Array elements are named by their index, from 0."""
    node = data
    for part in split_path(path):
        if isinstance(node, Mapping):
            node = node.get(part, MISSING)
        elif isinstance(node, Sequence) and not isinstance(node, str | bytes):
            if isinstance(part, str) and not _INDEX.fullmatch(part):
                return default
            index = int(part)  # a whole number may be written 1.0
            if not 0 <= index < len(node):
                return default
            node = node[index]
        else:
            return default
        if node is MISSING:
            return default
    return node


def patch_at(path: str | Sequence[str | int], value: Any) -> JsonObject:
    """Return the patch that sets (or with None removes) the one value at `path`."""
    parts = split_path(path)
    patch: Any = value
    for part in reversed(parts):
        patch = {str(part): patch}
    if not isinstance(patch, dict):
        raise StateError("an empty path names no value")
    return patch


def change_to_patch(data: Any, path: str, change: StateChange, value: Any = None) -> JsonObject:
    """Return the patch that a state effect amounts to on `data` as it is now."""
    if change == "set":
        return patch_at(path, value)
    if change == "clear":
        return patch_at(path, None)
    current = lookup(data, path, 0)
    step = 1 if value is None else value
    if not _is_number(current) or not _is_number(step):
        raise StateError(
            f"cannot {change} {path!r}: it holds {current!r} and the step is {step!r}; both must be numbers"
        )
    result = current + step if change == "increment" else current - step
    if isinstance(result, float) and not math.isfinite(result):
        raise StateError(
            f"cannot {change} {path!r}: it holds {current!r} and the step is {step!r}, which gives no JSON number"
        )
    return patch_at(path, result)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- reading without copying ------------------------------------------------------------------------------


class StateView(Mapping[str, Any]):
    """A read-only view of a tree with patches laid over it: the state inside a draft that is not committed yet.

    Lookups walk the layers, so a draft of a state of any width costs nothing to open and nothing to drop.
    """

    __slots__ = ("_base", "_layers")

    def __init__(self, base: JsonObject, layers: Sequence[JsonObject] = ()) -> None:
        self._base = base
        self._layers = layers

    def __getitem__(self, key: str) -> Any:
        value = self._base.get(key, MISSING)
        layers: list[JsonObject] = []
        for layer in self._layers:
            change = layer.get(key, MISSING)
            if change is MISSING:
                continue
            if isinstance(change, dict):
                if not isinstance(value, dict):
                    value, layers = {}, []
                layers.append(change)
            else:
                value, layers = (MISSING if change is None else change), []
        if value is MISSING:
            raise KeyError(key)
        return StateView(value, layers) if isinstance(value, dict) else _read_only(value)

    def __iter__(self) -> Iterator[str]:
        if not self._layers:
            yield from self._base
            return
        seen = dict.fromkeys(self._base)
        for layer in self._layers:
            seen.update(dict.fromkeys(layer))
        yield from (key for key in seen if key in self)

    def __contains__(self, key: object) -> bool:
        for layer in reversed(self._layers):
            if key in layer:
                return layer[key] is not None
        return key in self._base

    def __len__(self) -> int:
        return len(self._base) if not self._layers else sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(plain(self))


class ListView(Sequence[Any]):
    """A read-only array inside a `StateView`."""

    __slots__ = ("_items",)

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> ListView: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ListView(self._items[index])
        return _read_only(self._items[index])

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ListView):
            return self._items == other._items
        return self._items == other

    __hash__ = None  # type: ignore[assignment]  # compares by content, like a list

    def __repr__(self) -> str:
        return repr(self._items)


def _read_only(value: Any) -> Any:
    if isinstance(value, dict):
        return StateView(value)
    if isinstance(value, list):
        return ListView(value)
    return value


def plain(value: Any) -> Any:
    """Return ordinary JSON data from a view: a copy that may be changed."""
    if isinstance(value, StateView):
        return {key: plain(value[key]) for key in value}
    if isinstance(value, ListView):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
