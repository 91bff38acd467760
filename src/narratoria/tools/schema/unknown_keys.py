"""Unknown keys of arguments under a JSON Schema that combines parts.

A key is known when a schema that applies to its object names it: through `$ref`, `allOf`, the alternatives of `anyOf`
and `oneOf` that accept the object, the branch of `if` that holds. No closed schema can say that for every schema:
closing one alternative of a `oneOf` lets a value fit that fitted two, and an object that two parts describe is torn
apart by closing either. So the schema stays as it is, and the keys are looked up beside it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from narratoria.tools.schema.bounded_patterns import key_matcher
from narratoria.tools.schema.problems import Schema, UnknownKeys, known_keys, types_of
from narratoria.tools.schema.references import REFERENCES, Place, References, Scope


class _Declares(enum.IntEnum):
    """The certainty with which the schemas of an object list its keys."""

    NOTHING = 0  # free-form
    PERHAPS = 1  # one alternative declares keys, another that fits too does not: free-form
    SURELY = 2


class Others(enum.IntEnum):
    """The keys that an object accepts besides those it names."""

    NONE = 0
    SOME = 1  # those whose value fits a schema
    ALL = 2


class KeysOfTop(NamedTuple):
    """The keys of a value that a schema names, and which others it accepts."""

    named: set[str]
    others: Others


class _Part(NamedTuple):
    """A schema that applies to a value; the parts up to `end` apply because of it.

    One under an `if` only asks: the keys it names are known, but it describes no object.
    """

    node: Schema
    place: Place
    asks: bool
    end: int


_KINDS: Final[dict[type, str]] = {dict: "object", str: "string"}
_IN_PLACE: Final = frozenset((*REFERENCES, "allOf", "anyOf", "oneOf", "if", "dependentSchemas"))

_Judging: TypeAlias = tuple[Place, bool]  # a place, and whether it only asks
_Seen: TypeAlias = dict[tuple[int, Scope, bool], _Declares]


class KeyFinder:
    """Looks for unknown keys of values, by one schema document."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._patterns: dict[str, Callable[[str], bool]] = {}

    def find(self, value: Any, place: Place) -> Iterator[UnknownKeys]:
        """Unknown keys of a value at every depth."""
        return self._find(value, [(place, False)], ())

    def _find(
        self, value: Any, judging: list[_Judging], path: tuple[str | int, ...]
    ) -> Iterator[UnknownKeys]:
        parts, declares = self._applying(value, judging)
        if not parts or not isinstance(value, dict | list | tuple):
            return
        if not isinstance(value, dict):
            for index, item in enumerate(value):
                if isinstance(item, dict | list | tuple):
                    yield from self._find(item, self._below_index(parts, index, item), (*path, index))
            return
        if declares is _Declares.SURELY and (unknown := self._unknown(value, parts)):
            yield UnknownKeys(path, unknown, known_keys(*(part.node for part in parts)))
        for key, child in value.items():
            if isinstance(child, dict | list | tuple):
                yield from self._find(child, self._below_key(parts, key), (*path, key))

    def known_to(self, place: Place, value: Any) -> list[str]:
        """Return the keys that a place and its applying parts know for this value."""
        return known_keys(*(part.node for part in self._applying(value, [(place, False)])[0]))

    def sort(self, value: dict[str, Any]) -> KeysOfTop:
        """Return the keys of arguments that the schema names for them, and which others it accepts."""
        parts, declares = self._applying(value, [(self._references.top, False)])
        nodes = [part.node for part in parts]
        named = {key for key in value if any(self._names(node, key) for node in nodes)}
        if declares is not _Declares.SURELY:
            return KeysOfTop(named, Others.ALL)
        return KeysOfTop(named, max((others_of(node) for node in nodes), default=Others.NONE))

    def _names(self, node: Schema, key: str) -> bool:
        return key in node.get("properties", ()) or key in _required(node) or bool(self._matching(node, key))

    # --- the schemas of one value ----------------------------------------------------------------------

    def _applying(self, value: Any, judging: list[_Judging]) -> tuple[list[_Part], _Declares]:
        parts: list[_Part] = []
        seen: _Seen = {}
        said = [_Declares.NOTHING]
        for place, asks in judging:
            declares = self._gather(place, asks, value, parts, seen)
            said.append(_Declares.NOTHING if asks else declares)
        return parts, max(said)

    def _gather(self, place: Place, asks: bool, value: Any, parts: list[_Part], seen: _Seen) -> _Declares:
        """Add the place and every place that applies with it; return whether they declare keys."""
        node = place.node
        if not isinstance(node, dict):
            return _Declares.NOTHING
        if _IN_PLACE.isdisjoint(node):  # most are
            parts.append(_Part(node, place, asks, len(parts) + 1))
            return _declared(node)
        if (before := seen.get(visit := (id(node), place.scope, asks))) is not None:
            return before
        seen[visit] = _Declares.NOTHING
        index = len(parts)
        parts.append(_Part(node, place, asks, 0))
        enter = self._references.enter
        found = [_declared(node)]
        for one in [
            *self._references.referred(place),
            *(enter(place, part) for part in node.get("allOf", ())),
        ]:
            found.append(self._gather(one, asks, value, parts, seen))
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                chosen = self._chosen([enter(place, branch) for branch in node[keyword]], value)
                found.append(_either([self._gather(one, asks, value, parts, seen) for one in chosen]))
        if "if" in node:
            condition = enter(place, node["if"])
            holds = self._references.accepts(condition, value)
            if holds:
                self._gather(condition, True, value, parts, seen)
            branch = node.get("then" if holds else "else", True)
            found.append(self._gather(enter(place, branch), asks, value, parts, seen))
        for key, dependent in node.get("dependentSchemas", {}).items():
            if isinstance(value, dict) and key in value:
                found.append(self._gather(enter(place, dependent), asks, value, parts, seen))
        parts[index] = _Part(node, place, asks, len(parts))
        seen[visit] = max(found)
        return max(found)

    def _chosen(self, branches: list[Place], value: Any) -> list[Place]:
        """Return the alternatives that accept a value; for a value that fits none, those it may have meant."""
        accepting = [one for one in branches if self._references.accepts(one, value)]
        return accepting or [one for one in branches if self.is_meant(one, value)] or branches

    def is_meant(self, branch: Place, value: Any) -> bool:
        """Tell if a value is of the same type, and has no tag of another alternative."""
        for part in (branch, *self._references.referred(branch)) if isinstance(branch.node, dict) else ():
            if isinstance(part.node, bool):
                continue
            if not types_of(part.node) & {_KINDS.get(type(value), "array")}:
                return False
            for key, child in part.node.get("properties", {}).items() if isinstance(value, dict) else ():
                tag = isinstance(child, dict) and ("const" in child or len(child.get("enum", ())) == 1)
                if tag and key in value and not self._accepts(part, child, value[key]):
                    return False
        return branch.node is not False

    def _accepts(self, place: Place, child: Any, value: Any) -> bool:
        return self._references.accepts(self._references.enter(place, child), value)

    # --- keys ------------------------------------------------------------------------------------------

    def _unknown(self, value: dict[str, Any], parts: list[_Part]) -> list[str]:
        left = list(value)
        for part in parts:
            node = part.node
            if not left or _is_open(node):
                return []
            if declared := node.get("properties"):
                left = [key for key in left if key not in declared]
            if left and (asked := _required(node)):
                left = [key for key in left if key not in asked]
            if "patternProperties" in node:
                left = [key for key in left if not self._matching(node, key)]
        return left

    def _matching(self, node: Schema, key: str) -> list[Any]:
        patterns = node.get("patternProperties")
        return (
            [child for pattern, child in patterns.items() if self._matches(pattern, key)] if patterns else []
        )

    def _matches(self, pattern: str, key: str) -> bool:
        # by the validator's own engine: another one would read some patterns otherwise, and could hang on them
        if pattern not in self._patterns:
            self._patterns[pattern] = key_matcher(pattern)
        return self._patterns[pattern](key)

    # --- what applies below ----------------------------------------------------------------------------

    def _below_key(self, parts: list[_Part], key: str) -> list[_Judging]:
        found: list[_Judging] = []
        for index, part in enumerate(parts):
            node, enter = part.node, self._references.enter
            said = self._judging_key(node, key)
            rest = node.get("unevaluatedProperties")
            if (
                not said
                and isinstance(rest, dict)
                and not any(self._judging_key(one.node, key) for one in parts[index : part.end])
            ):
                said = [rest]
            found += [(enter(part.place, child), part.asks) for child in said]
        return found

    def _judging_key(self, node: Schema, key: str) -> list[Any]:
        said = [node["properties"][key]] if key in node.get("properties", ()) else []
        said += self._matching(node, key)
        return said or ([node["additionalProperties"]] if "additionalProperties" in node else [])

    def _below_index(self, parts: list[_Part], index: int, item: Any) -> list[_Judging]:
        found: list[_Judging] = []
        for number, part in enumerate(parts):
            said = self._judging_item(part, index, item)
            rest = part.node.get("unevaluatedItems")
            if (
                not said
                and isinstance(rest, dict)
                and not any(self._judging_item(one, index, item) for one in parts[number : part.end])
            ):
                said = [rest]
            found += [(self._references.enter(part.place, child), part.asks) for child in said]
        return found

    def _judging_item(self, part: _Part, index: int, item: Any) -> list[Any]:
        node = part.node
        first = node.get("prefixItems", ())
        said = [first[index]] if index < len(first) else [node["items"]] if "items" in node else []
        wanted = node.get("contains")
        if wanted is not None and self._accepts(part.place, wanted, item):
            said.append(wanted)
        return said


def _either(alternatives: list[_Declares]) -> _Declares:
    """Combine the certainties of alternatives that all fit."""
    if not alternatives or max(alternatives) is _Declares.NOTHING:
        return _Declares.NOTHING
    return _Declares.SURELY if min(alternatives) is _Declares.SURELY else _Declares.PERHAPS


def _declared(node: Schema) -> _Declares:
    shut = node.get("additionalProperties") is False or node.get("unevaluatedProperties") is False
    said = "properties" in node or "patternProperties" in node or shut
    return _Declares.SURELY if said else _Declares.NOTHING


def _is_open(node: Schema) -> bool:
    """Tell if the node itself covers all other keys: `additionalProperties: true`, or a schema for them."""
    return others_of(node) is not Others.NONE


def others_of(node: Schema) -> Others:
    """Return which keys a node itself accepts besides those it names."""
    rest = [node.get(keyword, False) for keyword in ("additionalProperties", "unevaluatedProperties")]
    if True in rest or {} in rest:
        return Others.ALL
    return Others.NONE if rest == [False, False] else Others.SOME


def _required(node: Schema) -> set[str]:
    """Return keys that a node requires without declaring them: refusing them would refuse every object."""
    asked = {*node.get("required", ()), *node.get("dependentSchemas", ())}
    if "dependentRequired" in node:
        for key, others in node["dependentRequired"].items():
            asked |= {key, *others}
    return asked
