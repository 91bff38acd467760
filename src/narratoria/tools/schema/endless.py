"""References of a schema that come back to themselves for the same value: judging one by them would never end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from narratoria.tools.schema.references import REFERENCES, Place, References, Scope, children

# The keywords whose schemas judge the value itself, and not a part of it (JSON Schema 2020-12, 10.2).
_SAME_VALUE: Final = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))
_MANY: Final = 20_000  # places told apart by the way to them, which matters to `$dynamicRef`

_Key: TypeAlias = tuple[int, Scope]


def endless_references(references: References) -> list[str] | None:
    """Return the references of the first circle that comes back to the same value, the first one again at its end, or
    None.
    """
    search = _Search(references)
    for start in search.places():
        if (circle := search.from_(start)) is not None:
            return circle
    return None


class _Search:
    """A walk over a schema in 2020-12, depth first."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._finished: set[_Key] = set()

    def places(self) -> Iterator[Place]:
        """Yield every subschema, those included that only a reference leads to."""
        seen: set[int] = set()
        waiting = [self._references.top]
        while waiting:
            place = waiting.pop()
            if not isinstance(place.node, dict) or id(place.node) in seen:
                continue
            seen.add(id(place.node))
            yield place
            waiting += [self._references.enter(place, child) for _, _, child in children(place.node)]
            waiting += self._references.referred(place)

    def from_(self, start: Place) -> list[str] | None:
        if self._key(start) in self._finished:
            return None
        trail = {self._key(start): ""}  # the places under way, each with the reference that led to it
        stack = [self._next(start)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                self._finished.add(trail.popitem()[0])
                continue
            reference, place = step
            key = self._key(place)
            if key in trail:
                circle = [*trail.values()][[*trail].index(key) + 1 :]
                named = [one for one in (*circle, reference) if one]
                return [named[-1], *named]
            if key not in self._finished:
                trail[key] = reference
                stack.append(self._next(place))
        return None

    def _key(self, place: Place) -> _Key:
        return id(place.node), place.scope if len(self._finished) < _MANY else ()

    def _next(self, place: Place) -> Iterator[tuple[str, Place]]:
        """Yield the places that judge the same value, each with the reference that leads to it, if one does."""
        for keyword in REFERENCES:
            target = self._references.follow(place, keyword) if keyword in place.node else None
            if target is not None and isinstance(target.node, dict):
                yield place.node[keyword], target
        for keyword, _, child in children(place.node):
            if keyword in _SAME_VALUE and isinstance(child, dict):
                yield "", self._references.enter(place, child)
