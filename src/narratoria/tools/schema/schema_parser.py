"""Parameters declared by a JSON Schema: processes with a manifest, tools of other servers."""
# 004 `Schema`.

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import jsonschema_rs

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema.copying import copied, has_scalars_alone
from narratoria.tools.schema.defaults import Defaults
from narratoria.tools.schema.drafts import RECURSION, as_2020_12
from narratoria.tools.schema.endless import endless_references
from narratoria.tools.schema.excerpts import show
from narratoria.tools.schema.narrowing import check_visits, narrowed, unfolds
from narratoria.tools.schema.problems import (
    KeyRules,
    KnownKeys,
    Schema,
    UnknownKeys,
    as_json,
    as_object,
    compile_schema,
    find_problems,
    fits,
    known_keys,
    of_tool,
    types_of,
)
from narratoria.tools.schema.references import HOMES, Place, References, children
from narratoria.tools.schema.unknown_keys import KeyFinder

# What may stand beside a `$ref` or alternatives without judging the value itself.
_REMARKS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
     "$comment", "$defs", "definitions", "$schema", "$anchor", "type")
)  # fmt: skip
_COMBINING: Final = frozenset(
    ("$dynamicRef", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "contains",
     "unevaluatedProperties", "unevaluatedItems", "$id")
)  # fmt: skip
_CONTAINERS: Final = frozenset(("object", "array"))


def parser_for_schema(
    schema: Mapping[str, Any], *, name: str = ""
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that checks arguments against the schema and fills in its defaults.

    Undeclared keys are refused wherever the schema declares any and does not say otherwise. An object that declares
    no keys at all (`{"type": "object"}`) is free-form. What it returns shares no object or array with the arguments.
    """
    read = _read(schema, name)
    strict = _closed(read)
    judge = _Combined(read, name) if strict is None else _Plain(strict, name)
    defaults = Defaults(judge.references, judge.problems_at, name)

    scalars = strict is not None and has_scalars_alone(strict)

    def parse(arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = as_object(arguments)
        if defaults.exist:
            given = defaults.fill(given)
        if not judge.accepts(given):
            raise ArgumentsInvalid(judge.problems(given))
        return given if scalars else copied(given)

    if not unfolds(judge.references):
        return parse

    def parse_unfolded(arguments: Mapping[str, Any]) -> dict[str, Any]:
        check_visits(judge.references, as_object(arguments))
        return parse(arguments)

    return parse_unfolded


def _read(schema: Mapping[str, Any], name: str) -> Schema:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        got = show(schema.get("type")) if isinstance(schema, Mapping) else show(schema)
        raise ToolValidationError(f'{of_tool(name)}parameters need "type": "object" at the top, got {got}')
    read = as_2020_12(schema, name)
    if (chain := endless_references(References(read))) is not None:
        written = " → ".join(one.removesuffix(RECURSION) for one in chain)
        raise ToolValidationError(
            f"{of_tool(name)}parameters: $ref {written} comes back to itself at the same value; "
            f"let one of them say a type instead"
        )
    return read


# --- two ways to judge -----------------------------------------------------------------------------------


class _Plain:
    """A check by a closed schema: one run of the validator."""

    def __init__(self, strict: Schema, name: str) -> None:
        self.references = References(strict)
        self._validator = compile_schema(strict, name)
        self._keys = KeyFinder(self.references)

    def accepts(self, arguments: dict[str, Any]) -> bool:
        return fits(self._validator, arguments)

    def problems(self, value: Any) -> list[str]:
        return self.problems_at(self.references.top, value)

    def problems_at(self, place: Place, value: Any) -> list[str]:
        """Return the problems of a value by one part of the schema."""
        return self._problems(place, value)

    def _problems(self, place: Place, value: Any, unknown: Iterable[UnknownKeys] = ()) -> list[str]:
        known = self._known_from(place, self.references.steps_to(place))
        lines = narrowed(self.references, place, value, self._listed, self._keys.is_meant)
        return find_problems(self.references.validator(place), known, value, unknown=unknown, lines=lines)

    def _listed(self, place: Place, value: Any) -> list[str]:
        known = self._known_from(place, self.references.steps_to(place))
        return find_problems(self.references.validator(place), known, value)

    def _known_from(self, start: Place, skip: int = 0) -> KnownKeys:
        return lambda error: KeyRules(_declared_at(self.references.at(error.evaluation_path[skip:-1], start)))


def _declared_at(place: Place | None) -> list[str]:
    return known_keys(place.node) if place and isinstance(place.node, dict) else []


class _Combined(_Plain):
    """A check by the schema as it is and, beside it, by the keys that its applying parts know."""

    def accepts(self, arguments: dict[str, Any]) -> bool:
        try:
            valid = self._validator.is_valid(arguments)
        except ValueError:  # a date or a UUID from a Python caller: judge what it is as JSON
            arguments = as_json(arguments)
            valid = self._validator.is_valid(arguments)
        return valid and next(self._keys.find(arguments, self.references.top), None) is None

    def problems_at(self, place: Place, value: Any) -> list[str]:
        value = as_json(value)
        return self._problems(place, value, self._keys.find(value, place))

    def _known_from(self, start: Place, skip: int = 0) -> KnownKeys:
        def known(error: jsonschema_rs.ValidationError) -> KeyRules:
            place = self.references.at(error.evaluation_path[skip:-1], start)
            if error.kind.name != "unevaluatedProperties" or place is None:
                return KeyRules(_declared_at(place))
            rest = self.references.enter(place, place.node["unevaluatedProperties"])
            judge = partial(self.problems_at, rest) if isinstance(rest.node, dict) else None
            return KeyRules(self._keys.known_to(place, error.instance), judge)

        return known


# --- closing -----------------------------------------------------------------------------------------------


def _closed(schema: Schema) -> Schema | None:
    """A closed copy of a schema whose every object is described in one place; None for one that combines parts.

    References and alternatives of different types are fine as long as nothing judges the value beside them: then
    the object they lead to is whole, and closing it there means the same wherever it is used.
    """
    strict = copy.deepcopy(schema)
    references = References(strict)
    waiting, done = [references.top], set()
    while waiting:
        place = waiting.pop()
        node = place.node
        if not isinstance(node, dict) or id(node) in done:
            continue
        done.add(id(node))
        leads_to = _leads_to(place, references)
        if _COMBINING & node.keys() or leads_to is None:
            return None
        if leads_to:
            waiting += leads_to
            continue
        declared, patterns = node.get("properties", {}), node.get("patternProperties", {})
        if "properties" in node or patterns:
            if len(patterns) + bool(declared) > 1 or not {*node.get("required", ())} <= declared.keys():
                return None
            node.setdefault("additionalProperties", False)
        waiting += [Place(child, place.scope) for keyword, _, child in children(node) if keyword not in HOMES]
    return strict


def _leads_to(place: Place, references: References) -> list[Place] | None:
    """Return the places that judge a value instead of this one; None if they judge it together with this one."""
    node = place.node
    combined = [keyword for keyword in ("$ref", "allOf", "anyOf", "oneOf") if keyword in node]
    if not combined:
        return []
    if len(combined) > 1 or not node.keys() - {combined[0]} <= _REMARKS:
        return None
    if combined == ["$ref"]:
        return references.referred(place)
    parts = [Place(part, place.scope) for part in node[combined[0]]]
    if combined == ["allOf"]:
        return parts if len(parts) == 1 else None
    kinds = [_CONTAINERS & _types(part, references) for part in parts]
    return parts if sum(map(len, kinds)) == len(set[str]().union(*kinds)) else None


def _types(place: Place, references: References) -> set[str]:
    """The types a place may accept, as far as it and a lone reference say."""
    for _ in range(9):
        if not isinstance(place.node, dict) or "$ref" not in place.node or "type" in place.node:
            break
        place = next(iter(references.referred(place)), place)
    return types_of(place.node)
