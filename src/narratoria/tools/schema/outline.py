"""The outline of a schema: the keys of its top object, each with its own schema.

A tool that is made of tools describes its parameters by the outlines of its parts. An outline is looser than its
schema: it does not tell which keys exclude each other. The parts check their arguments by the schema itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from narratoria.tools.schema.drafts import as_2020_12
from narratoria.tools.schema.problems import Schema
from narratoria.tools.schema.references import Place, References, children
from narratoria.tools.schema.unknown_keys import KeyFinder, KeysOfTop, Others, others_of

# What describes a value without judging it.
_REMARKS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
)
_DECLARING: Final = frozenset(
    ("properties", "patternProperties", "additionalProperties", "unevaluatedProperties")
)
_HOMES: Final = frozenset(("$id", "$anchor", "$dynamicAnchor", "$defs", "definitions", "$schema"))


class Outline:
    """The keys that a schema may know, whatever the arguments; `sort` tells which it knows for given ones."""

    def __init__(self, schema: Mapping[str, Any], label: str) -> None:
        read = as_2020_12(schema)
        self._keys = KeyFinder(References(as_2020_12(schema)))
        references = References(read)
        places = list(_applying(references.top, references, True, set()))
        self.required = {key for place, surely in places if surely for key in place.node.get("required", ())}
        self.is_open = not _is_closed(references.top, references, ()) or any(
            others_of(place.node) is not Others.NONE for place, _ in places
        )
        self.definitions = _move_definitions(read, references, label)
        self.properties = _declared("properties", places)
        self.patterns = _declared("patternProperties", places)

    def sort(self, arguments: dict[str, Any]) -> KeysOfTop:
        return self._keys.sort(arguments)


def _applying(
    place: Place, references: References, surely: bool, seen: set[int]
) -> Iterator[tuple[Place, bool]]:
    """The places that may describe the same value, and whether they surely do."""
    node = place.node
    if not isinstance(node, dict) or id(node) in seen:
        return
    seen.add(id(node))
    yield place, surely
    below = [(one, surely) for one in references.referred(place)]
    below += [(references.enter(place, one), surely) for one in node.get("allOf", ())]
    for keyword in ("anyOf", "oneOf"):
        below += [(references.enter(place, one), False) for one in node.get(keyword, ())]
    below += [(references.enter(place, node[key]), False) for key in ("then", "else") if key in node]
    below += [(references.enter(place, one), False) for one in node.get("dependentSchemas", {}).values()]
    for one, certain in below:
        yield from _applying(one, references, certain, seen)


def _is_closed(place: Place, references: References, within: tuple[int, ...]) -> bool:
    """Tell if the keys are surely declared, whatever the value."""
    node = place.node
    if not isinstance(node, dict) or id(node) in within:
        return False
    if not _DECLARING.isdisjoint(node):
        return True

    def closed(one: Any) -> bool:
        return _is_closed(references.enter(place, one), references, (*within, id(node)))

    return (
        any(closed(one.node) for one in references.referred(place))
        or any(map(closed, node.get("allOf", ())))
        or any(all(map(closed, node[keyword])) for keyword in ("anyOf", "oneOf") if node.get(keyword))
        or all(closed(node.get(keyword, True)) for keyword in ("then", "else"))
    )


def _declared(keyword: str, places: list[tuple[Place, bool]]) -> dict[str, Any]:
    """The schema of each key: all that surely apply; if none does, those of the alternatives."""
    sure: dict[str, list[Any]] = {}
    possible: dict[str, list[Any]] = {}
    for place, surely in places:
        for key, child in place.node.get(keyword, {}).items():
            (sure if surely else possible).setdefault(key, []).append(child)
    found = {key: together("anyOf", children) for key, children in possible.items()}
    return found | {key: together("allOf", children) for key, children in sure.items()}


def together(keyword: str, schemas: list[Any]) -> Any:
    """Several schemas of one key as one; the first alone if the others differ only in their remarks."""
    different: list[Any] = []
    for schema in schemas:
        if all(_judgement(schema) != _judgement(other) for other in different):
            different.append(schema)
    return different[0] if len(different) == 1 else {keyword: different}


def _judgement(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key not in _REMARKS}


# --- references --------------------------------------------------------------------------------------------


def _move_definitions(root: Schema, references: References, label: str) -> dict[str, Any]:
    """Make every subschema that something refers to a definition named after the label, so that the rest can be taken
    out of its document. Return the definitions by name.
    """
    names: dict[int, str] = {}
    definitions: dict[str, Any] = {}
    nodes: dict[int, Schema] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict) or id(node) in nodes:
            continue
        nodes[id(node)] = node
        waiting += [child for _, _, child in children(node)]
        # A `$dynamicRef` means another subschema for another caller: here it judges nothing, the part does.
        node.pop("$dynamicRef", None)
        target = references.find(node["$ref"], Place(node, ())) if isinstance(node.get("$ref"), str) else None
        if target is None:
            continue
        if id(target) not in names:
            names[id(target)] = name = _free_name(label, node["$ref"], definitions)
            definitions[name] = target
            waiting.append(target)  # it may stand under a keyword of the author's own
        node["$ref"] = f"#/$defs/{names[id(target)]}"
    for node in nodes.values():
        for keyword in _HOMES & node.keys():
            del node[keyword]
    return definitions


def _free_name(label: str, reference: str, taken: Mapping[str, Any]) -> str:
    last = reference.rpartition("/")[2].strip("#") or "all"
    first = name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{label}.{last}")
    number = 1
    while name in taken:
        number += 1
        name = f"{first}.{number}"
    return name
