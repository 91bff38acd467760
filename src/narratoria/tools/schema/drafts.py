"""Older drafts of JSON Schema, brought to 2020-12, the one that the rest of this folder speaks.

A schema is first held to the draft that it names, by that draft's own validator. Then it is said again: tuples as
`prefixItems`, `dependencies` as `dependentSchemas` and `dependentRequired`, `id` as `$id`, `$recursiveRef` as
`$dynamicRef`. A reference into what moved follows it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import jsonschema_rs

from narratoria.errors import ToolValidationError
from narratoria.tools.schema.problems import Schema, compile_schema
from narratoria.tools.schema.references import Place, References, children

_DIALECT: Final = "json-schema.org/"
RECURSION: Final = "narratoria-recursion"
"""The anchor that stands for `$recursiveAnchor`."""
_ANCHOR: Final = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_SINCE_6: Final = frozenset(("const", "contains", "propertyNames", "examples"))
_SINCE_7: Final = frozenset(("if", "then", "else"))
_SINCE_2019: Final = frozenset(
    ("$anchor", "$recursiveRef", "$recursiveAnchor", "dependentSchemas", "dependentRequired", "unevaluatedItems",
     "unevaluatedProperties", "minContains", "maxContains", "contentSchema")
)  # fmt: skip
_SINCE_2020: Final = frozenset(("prefixItems", "$dynamicRef", "$dynamicAnchor"))
# What old drafts may have beside a `$ref`: it says nothing about the value, or is only referred to.
_BESIDE_REF: Final = frozenset(
    ("$ref", "$schema", "title", "description", "default", "examples", "deprecated", "$comment", "$defs", "definitions")
)  # fmt: skip


class _Draft(NamedTuple):
    uri: str
    validator: Any
    lacks: frozenset[str] = frozenset()
    ref_stands_alone: bool = False


_2020: Final = _Draft("https://json-schema.org/draft/2020-12/schema", jsonschema_rs.Draft202012Validator)
_2019: Final = _Draft(
    "https://json-schema.org/draft/2019-09/schema", jsonschema_rs.Draft201909Validator, _SINCE_2020
)
_7: Final = _Draft(
    "http://json-schema.org/draft-07/schema#", jsonschema_rs.Draft7Validator, _SINCE_2019 | _2019.lacks, True
)
_6: Final = _Draft(
    "http://json-schema.org/draft-06/schema#", jsonschema_rs.Draft6Validator, _SINCE_7 | _7.lacks, True
)
_4: Final = _Draft(
    "http://json-schema.org/draft-04/schema#",
    jsonschema_rs.Draft4Validator,
    _SINCE_6 | _6.lacks | {"$id"},
    True,
)
_NAMED: Final[Mapping[str, _Draft]] = {"2019-09": _2019, "draft-07": _7, "draft-06": _6, "draft-04": _4}


def as_2020_12(schema: Mapping[str, Any], name: str = "") -> Schema:
    """A copy of the schema in 2020-12. Raises `ToolValidationError` for one that its own draft refuses."""
    read: Schema = dict(schema)
    draft = _named(read)
    if draft is None:
        draft = _guessed(read, name)
    else:
        del read["$schema"]
        compile_schema(read, name, draft.validator)
    read = copy.deepcopy(read)  # only now: the validator has refused a bottomless one
    _Upgrade(read, draft).run()
    return read


def _named(node: Schema) -> _Draft | None:
    uri = node.get("$schema")
    if not isinstance(uri, str) or _DIALECT not in uri:
        return None
    return next((draft for sign, draft in _NAMED.items() if sign in uri), _2020)


def _guessed(schema: Schema, name: str) -> _Draft:
    """2020-12, or the draft before it for a schema with tuples as arrays of `items`, which many forget to name."""
    try:
        compile_schema(schema, name)
        return _2020
    except ToolValidationError as error:
        for draft in (_2019, _7, _6, _4):
            try:
                compile_schema(schema, name, draft.validator)
            except ToolValidationError:
                continue
            if draft is _2019:
                return draft
            raise ToolValidationError(
                f'{error}; if it is of an older draft, name it: "$schema": "{draft.uri}"'
            ) from None
        raise


class _Upgrade:
    """One document on its way to 2020-12, changed in place, so that a subschema stays the same object."""

    def __init__(self, root: Schema, draft: _Draft) -> None:
        self._root = root
        self._nodes: dict[int, tuple[Schema, _Draft]] = {}
        self._draft = draft

    def run(self) -> None:
        self._spell(self._root, self._draft)
        before = References(self._root)
        targets = list(self._targets(before))
        for node, _ in self._nodes.values():
            self._recur(node, before)
        for node, _ in self._nodes.values():
            _move(node)
        after = References(self._root)
        for node, target in targets:
            place = Place(node, ())
            if after.find(node["$ref"], place) is not target:
                node["$ref"] = after.address(target, place)

    def _spell(self, top: Any, draft: _Draft) -> None:
        """Every subschema in the spelling of 2020-12, as far as nothing moves."""
        waiting = [(top, draft)]
        while waiting:
            node, draft = waiting.pop()
            if not isinstance(node, dict) or id(node) in self._nodes:
                continue
            if (own := _named(node)) is not None:
                draft = own
                del node["$schema"]
            self._nodes[id(node)] = (node, draft)
            _respell(node, draft)
            waiting += [(child, draft) for _, _, child in children(node)]

    def _targets(self, references: References) -> Iterator[tuple[Schema, Schema]]:
        """The subschemas with a reference, and what it means."""
        done = 0
        while done < len(self._nodes):
            for node, draft in list(self._nodes.values())[done:]:
                done += 1
                if not isinstance(node.get("$ref"), str):
                    continue
                target = references.find(node["$ref"], Place(node, ()))
                if isinstance(target, dict):
                    self._spell(target, draft)  # it may stand under a keyword of the author's own
                    yield node, target

    def _recur(self, node: Schema, references: References) -> None:
        reference, anchored = node.pop("$recursiveRef", None), node.get("$recursiveAnchor")
        resource = references.resource_of(node)
        if anchored is True and resource is node:
            node["$dynamicAnchor"] = RECURSION
        if reference is None:
            return
        if resource.get("$recursiveAnchor") is True:
            node["$dynamicRef"] = f"#{RECURSION}"
        elif "$ref" in node:
            node["allOf"] = [*node.get("allOf", ()), {"$ref": "#"}]
        else:
            node["$ref"] = "#"


def _respell(node: Schema, draft: _Draft) -> None:
    if draft is _2020:
        return
    alone = draft.ref_stands_alone and isinstance(node.get("$ref"), str)
    for keyword in [key for key in node if key in draft.lacks or (alone and key not in _BESIDE_REF)]:
        del node[keyword]
    if draft is _4:
        if isinstance(node.get("id"), str):
            node["$id"] = node.pop("id")
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if node.pop(exclusive, False) is True and bound in node:
                node[exclusive] = node.pop(bound)
    if draft is not _2019 and isinstance(node.get("$id"), str):
        address, _, anchor = node.pop("$id").partition("#")
        if address:
            node["$id"] = address
        if anchor:
            node["$anchor"] = anchor


def _move(node: Schema) -> None:
    """Tuples and dependencies, at their places in 2020-12."""
    node.pop("$recursiveAnchor", None)
    if isinstance(node.get("items"), list):
        node["prefixItems"], rest = node.pop("items"), node.pop("additionalItems", None)
        if rest is not None:
            node["items"] = rest
    if isinstance(node.get("dependencies"), dict):
        for key, needed in node.pop("dependencies").items():
            keyword = "dependentRequired" if isinstance(needed, list) else "dependentSchemas"
            known = node[keyword] = dict(node.get(keyword, {}))
            if key not in known:
                known[key] = needed
            elif isinstance(needed, list):
                known[key] = [*dict.fromkeys([*known[key], *needed])]
            else:
                known[key] = {"allOf": [known[key], needed]}
    if isinstance(anchor := node.get("$anchor"), str) and not _ANCHOR.fullmatch(anchor):
        del node["$anchor"]  # whatever refers to it gets its pointer
