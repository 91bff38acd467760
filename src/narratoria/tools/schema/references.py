"""References inside one JSON Schema document: `$ref` and `$dynamicRef`, by pointer, `$id` and anchor.

The validator follows references itself. Filling in defaults and looking for unknown keys need the schema that a
reference means, so they ask here. Nothing is ever fetched.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urljoin

import jsonschema_rs

from narratoria.tools.schema.bounded_patterns import Validator, with_bounded_patterns
from narratoria.tools.schema.problems import Schema

BASE: Final = "json-schema:///"  # the validator's own base for a schema without `$id`
# `dependencies`, a list of `items` and `additionalItems` are of older drafts; `drafts` moves them.
MAPS: Final = (
    "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"
)  # fmt: skip
LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
SINGLES: Final = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "additionalItems",
    "unevaluatedItems", "contains", "not", "if", "then", "else", "contentSchema",
)  # fmt: skip
HOMES: Final = ("$defs", "definitions")  # of subschemas that judge only where they are referred to
REFERENCES: Final = ("$ref", "$dynamicRef")
_PROBE: Final = "x-narratoria-probe"

Scope: TypeAlias = tuple[str, ...]  # the resources entered on the way, outermost first


class Place(NamedTuple):
    """A subschema, and the way to it as far as `$dynamicRef` cares."""

    node: Any
    scope: Scope


class _Position(NamedTuple):
    resource: str
    pointer: str


class References:
    """The subschemas of one document, by address."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self._resources: dict[str, Any] = {}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._dynamic: dict[tuple[str, str], Any] = {}
        self._positions: dict[int, _Position] = {}
        self._validators: dict[tuple[int, Scope], Validator] = {}
        self._index(root, _Position(BASE, ""))
        self._resources.setdefault(BASE, root)
        self.top = Place(root, (self._positions[id(root)].resource,))
        # A dynamic anchor can be overridden only where one resource is inside another.
        self._by_scope = len(set(map(id, self._resources.values()))) > 1 and bool(self._dynamic)

    def _index(self, node: Any, position: _Position) -> None:
        waiting = [(node, position)]
        while waiting:
            part, (resource, pointer) = waiting.pop()
            if not isinstance(part, dict) or id(part) in self._positions:
                continue
            if isinstance(part.get("$id"), str):
                resource, pointer = _join(resource, part["$id"].partition("#")[0]), ""
                self._resources.setdefault(resource, part)
            self._positions[id(part)] = _Position(resource, pointer)
            for keyword, names in (("$anchor", (self._anchors,)),
                                   ("$dynamicAnchor", (self._anchors, self._dynamic))):  # fmt: skip
                if isinstance(part.get(keyword), str):
                    for known in names:
                        known.setdefault((resource, part[keyword]), part)
            waiting += [
                (child, _Position(resource, f"{pointer}/{keyword}{'' if key is None else _step(key)}"))
                for keyword, key, child in children(part)
            ]

    def enter(self, place: Place, node: Any) -> Place:
        """The place of a subschema that is reached from another one."""
        position = self._positions.get(id(node))
        if position is None or position.resource in place.scope:
            return Place(node, place.scope)
        return Place(node, (*place.scope, position.resource))

    def referred(self, place: Place) -> list[Place]:
        """Return the places that the references of a place lead to; the validator refuses one that leads nowhere."""
        return [
            target
            for keyword in REFERENCES
            if keyword in place.node and (target := self.follow(place, keyword)) is not None
        ]

    def follow(self, place: Place, keyword: str) -> Place | None:
        """Return the place that one reference of a place leads to."""
        reference = place.node[keyword]
        if not isinstance(reference, str):
            return None
        target, name = self.find(reference, place), reference.partition("#")[2]
        if keyword == "$dynamicRef" and isinstance(target, dict) and target.get("$dynamicAnchor") == name:
            dynamic = (self._dynamic.get((resource, name)) for resource in place.scope)
            target = next((one for one in dynamic if one is not None), target)
        return None if target is None else self.enter(place, target)

    def find(self, reference: str, place: Place) -> Any:
        """The subschema that a `$ref` at a place means; None if it leads nowhere."""
        address, _, fragment = reference.partition("#")
        home = self._positions[id(place.node)].resource
        resource = _join(home, address) if address else home
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._anchors.get((resource, fragment))
        node, position = self._resources.get(resource), _Position(resource, "")
        for part in fragment.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, dict) and key in node:
                node = node[key]
            else:
                return None
            position = self._positions.get(id(node)) or position._replace(
                pointer=f"{position.pointer}/{part}"
            )
        self._index(node, position)  # it may stand under a keyword of the author's own
        return node

    def at(self, evaluation_path: Sequence[str | int], start: Place) -> Place | None:
        """The place an error speaks of: a way through the schema that steps over references."""
        place: Place | None = start
        for part in evaluation_path:
            if place is None or not isinstance(place.node, dict | list):
                return None
            if part in REFERENCES and isinstance(place.node, dict) and isinstance(place.node.get(part), str):
                place = self.follow(place, str(part))
                continue
            try:
                place = self.enter(place, place.node[part])
            except (LookupError, TypeError):
                return None
        return place

    # --- judging by a part of the schema ---------------------------------------------------------------

    def accepts(self, place: Place, value: Any) -> bool:
        return place.node if isinstance(place.node, bool) else self.validator(place).is_valid(value)

    def steps_to(self, place: Place) -> int:
        """Return the number of references that `validator(place)` follows on its way."""
        return 1 + (len(place.scope) if self._by_scope else 0)

    def validator(self, place: Place) -> Validator:
        """Return a validator of one subschema, in which every reference means the same as in the whole."""
        key = (id(place.node), place.scope if self._by_scope else ())
        if key not in self._validators:
            self._validators[key] = self._compile(place)
        return self._validators[key]

    def _compile(self, place: Place) -> Validator:
        root, address = self.root, self.address(place.node)
        if self._by_scope:  # enter the resources one after the other, as a validator of the whole would
            root = copy.deepcopy(root)
            resources = References(root)._resources
            for resource in reversed(place.scope):
                resources[resource].setdefault("$defs", {})[_PROBE] = {"$ref": address}
                address = f"{resource}#/$defs/{_PROBE}"
        registry = jsonschema_rs.Registry([(BASE, root)], draft=jsonschema_rs.Draft202012)
        build = partial(
            jsonschema_rs.Draft202012Validator,
            {"$ref": address},
            validate_formats=True,
            registry=registry,
            base_uri=f"{BASE}{_PROBE}",
        )
        return with_bounded_patterns(root, build)

    def resource_of(self, node: Any) -> Any:
        """The schema with the `$id` that holds for a subschema; the whole document if there is none."""
        return self._resources[self._positions[id(node)].resource]

    def address(self, node: Any, seen_from: Place | None = None) -> str:
        """The address of a subschema; of one in the same resource as `seen_from`, its pointer there."""
        resource, pointer = self._positions[id(node)]
        if seen_from is not None and self._positions[id(seen_from.node)].resource == resource:
            resource = ""
        return f"{resource}#{quote(pointer, safe='/~')}"


def children(node: Schema) -> Iterator[tuple[str, str | int | None, Any]]:
    """Every subschema directly inside: its keyword, its key or index there, and itself."""
    for keyword in MAPS:
        if isinstance(node.get(keyword), dict):
            yield from ((keyword, key, child) for key, child in node[keyword].items())
    for keyword in LISTS:
        if isinstance(node.get(keyword), list):
            yield from ((keyword, index, child) for index, child in enumerate(node[keyword]))
    yield from (
        (keyword, None, node[keyword])
        for keyword in SINGLES
        if keyword in node and not isinstance(node[keyword], list)
    )


def _step(key: str | int) -> str:
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def _join(base: str, address: str) -> str:
    """Join addresses like `urljoin`, but for every scheme."""
    scheme, colon, rest = base.partition(":")
    if not rest.startswith("//") or ":" in address.partition("/")[0]:
        return address
    joined = urljoin(f"http:{rest}", address)
    return scheme + colon + joined.partition(":")[2]
