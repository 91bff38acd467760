"""Closing a supplied schema: it refuses unknown keys, changes nothing else, and never contradicts itself."""

from __future__ import annotations

import json
import random
import re
import time
from typing import Any

import jsonschema_rs
import pytest

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema import parser_for_schema

KEYS = ("a", "b", "kind", "x1")
DEFS = ("one", "two/x", "thr~ee", "four%")
POINTERS = ("root#/$defs/one", "root#/$defs/two~1x", "root#/$defs/thr%7E0ee", "root#/%24defs/four%25")


def problems(parse: Any, arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ArgumentsInvalid) as caught:
        parse(arguments)
    return caught.value.problems


def in_object(schema: dict[str, Any], **more: Any) -> Any:
    """A parser of the schema under the key `v`."""
    return parser_for_schema({"type": "object", "properties": {"v": schema}, **more})


# --- schemas and values, made up -----------------------------------------------------------------------

SCALARS = (
    {}, True, {"type": "integer"}, {"type": "string"}, {"const": "c"}, {"const": "s"}, {"enum": [1, "c"]},
    {"type": ["integer", "null"], "minimum": 1},
)  # fmt: skip


class Maker:
    """Schemas and values from a seed: thousands a second, where a strategy would make dozens."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.combines = seed % 4 != 0

    def document(self) -> dict[str, Any]:
        definitions = {
            name: self.object(2, number + 1)
            | {"$id": f"item{number}", "$anchor": f"a{number}", "$dynamicAnchor": f"d{number}"}
            for number, name in enumerate(DEFS)
        }
        whole = {**self.object(3, 0), "$id": "http://s/root", "$defs": definitions}
        return whole if self.combines and self.random.random() < 0.5 else in_one_resource(whole)

    def object(self, depth: int, first: int) -> dict[str, Any]:
        """An object schema that always declares keys; references in place go forward only, so that they end."""
        pick = self.random
        declared = {key: self.value(depth - 1) for key in pick.sample(KEYS, pick.randint(0, 3))}
        schema: dict[str, Any] = {"type": "object", "properties": declared}
        if declared and pick.random() < 0.3:
            schema["required"] = pick.sample(sorted(declared), 1)
        if pick.random() < 0.1:
            schema["additionalProperties"] = pick.choice([False, True, {"type": "integer"}])
        elif self.combines and pick.random() < 0.1:
            schema["unevaluatedProperties"] = pick.choice([False, True, {"type": "integer"}])
        elif pick.random() < 0.1:
            schema["patternProperties"] = {"^x": self.value(depth - 1)}
        if depth > 0 and self.combines and pick.random() < 0.6:
            self.combine(schema, depth, first)
        return schema

    def combine(self, schema: dict[str, Any], depth: int, first: int) -> None:
        pick = self.random

        def part() -> dict[str, Any]:
            if first < len(DEFS) and pick.random() < 0.4:
                return self.reference(first)
            return self.object(depth - 1, first)

        keyword = pick.choice(["allOf", "anyOf", "oneOf", "oneOf", "if", "dependentSchemas", "not", "$ref"])
        if keyword in ("allOf", "anyOf", "oneOf"):
            schema[keyword] = [part() for _ in range(pick.randint(1, 3))]
            if pick.random() < 0.5 and "patternProperties" not in schema:
                schema.pop("properties")
                schema.pop("required", None)
        elif keyword == "if":
            schema |= {"if": part(), "then": part(), "else": part()}
        elif keyword == "dependentSchemas" and schema["properties"]:
            schema[keyword] = {pick.choice(sorted(schema["properties"])): part()}
        elif keyword == "not":
            schema[keyword] = part()
        elif first < len(DEFS):
            schema |= self.reference(first)

    def value(self, depth: int) -> Any:
        """What may stand below a key, where any definition may be referred to: the value gets smaller."""
        pick = self.random
        if depth < 0 or pick.random() < 0.4:
            return pick.choice(SCALARS)
        one = self.object(depth, 0) if pick.random() < 0.6 else self.reference(0)
        return pick.choice(
            [one, one, one, {"type": "array", "items": one}, {"anyOf": [one, {"type": "null"}]},
             {"prefixItems": [one], "contains": one} if self.combines else one]
        )  # fmt: skip

    def reference(self, first: int) -> dict[str, Any]:
        """A reference to one of the definitions from `first` on, spelt in one of the ways there are."""
        number = self.random.randrange(first, len(DEFS))
        ways = [{"$ref": POINTERS[number]}, {"$ref": f"item{number}"}]
        if self.combines:
            ways += [{"$ref": f"item{number}#a{number}"}, {"$dynamicRef": f"item{number}#d{number}"}]
        return self.random.choice(ways)

    def arguments(self, depth: int = 4) -> dict[str, Any]:
        pick = self.random
        return {
            key: self.instance(depth - 1) for key in pick.sample((*KEYS, "z"), pick.choice((0, 1, 1, 2, 3)))
        }

    def instance(self, depth: int) -> Any:
        pick = self.random
        if depth < 0 or pick.random() < 0.4:
            return pick.choice((None, True, 0, 1, 5, "c", "s", 1.5))
        if pick.random() < 0.8:
            return self.arguments(depth)
        return [self.instance(depth - 1) for _ in range(pick.randint(0, 2))]


def in_one_resource(part: Any) -> Any:
    """The same without `$id`: references are pointers and anchors of the one document."""
    if isinstance(part, list):
        return [in_one_resource(one) for one in part]
    if not isinstance(part, dict):
        return part
    made = {key: in_one_resource(child) for key, child in part.items() if key != "$id"}
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in made:
            address, _, fragment = made[keyword].partition("#")
            made[keyword] = f"#{fragment}" if fragment else POINTERS[int(address[-1])].removeprefix("root")
    return made


def pointer(path: tuple[Any, ...]) -> str:
    return "".join(f"/{part}" for part in path)


def objects_in(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, dict):
        yield pointer(path), value
        for key, child in value.items():
            yield from objects_in(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from objects_in(child, (*path, index))


def has_unknown_keys(validator: Any, value: Any) -> bool:
    """By the validator's own report of what it looked at: a second opinion, as slow as it is sure.

    Every combined object here declares keys. `additionalProperties: true` and `required` leave no trace in the
    report, so the schemas say `{}` for it, and ask only for declared keys.
    """
    looked_at: set[str] = set()
    declaring: set[str] = set()
    for unit in validator.evaluate(value).list()["details"]:
        steps = unit["evaluationPath"].split("/")
        assert unit["valid"] or "not" in steps, unit
        if not unit["valid"] or "not" in steps:
            continue
        looked_at.add(unit["instanceLocation"])
        in_condition = any(
            step == "if" and steps[index - 1] not in ("properties",) for index, step in enumerate(steps)
        )
        if steps[-1] in ("properties", "patternProperties") and not in_condition:
            declaring.add(unit["instanceLocation"])
    return any(
        f"{place}/{key}" not in looked_at
        for place, one in objects_in(value)
        if place in declaring
        for key in one
    )


def contradiction(line: str) -> str | None:
    """Why a problem cannot be meant as it is said."""
    for text in re.split(" / |; (?!known|it is)", line):
        found = re.search(r"(?:^|[ .\]])([^ .:]+): unknown key; known: ([^/]*)", text)
        if found and found[1] in found[2].split(", "):
            return "a known key is unknown"
        found = re.search(r"expected (?:one of )?(.*), got (.*)$", text)
        if found and found[2] in found[1].split(", "):
            return "what is expected was got"
    return "one fits, and one must" if re.search(r"fits [01] of \d+ alternatives", line) else None


def plain(schema: Any) -> Any:
    """`true` as `{}`, which leaves a trace."""
    return json.loads(re.sub(r'("\w+Properties": )true', r"\1{}", json.dumps(schema)))


@pytest.mark.parametrize("seeds", [range(start, start + 100) for start in range(0, 400, 100)], ids=str)
def test_closing_refuses_unknown_keys_and_changes_nothing_else(seeds: range) -> None:
    accepted = refused = 0
    for seed in seeds:
        maker = Maker(seed)
        schema = maker.document()
        original = jsonschema_rs.Draft202012Validator(plain(schema), validate_formats=True)
        parse = parser_for_schema(schema)
        for value in [maker.arguments() for _ in range(12)]:
            about = (seed, schema, value)
            try:
                assert parse(value) == value
                fits = True
            except ArgumentsInvalid as error:
                fits = False
                assert error.problems, about
                assert not [line for line in error.problems if contradiction(line)], (error.problems, about)
            if original.is_valid(value):
                assert fits is not has_unknown_keys(original, value), about
                accepted += fits
                refused += not fits
            else:
                assert not fits, ("closing loosened it", about)
    assert accepted > 100, "the test tests nothing"
    assert refused > 100, "the test tests nothing"


# --- messages ------------------------------------------------------------------------------------------

CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle"}, "r": {"type": "integer"}},
    "required": ["kind", "r"],
}
SQUARE = {
    "type": "object",
    "properties": {"kind": {"const": "square"}, "side": {"type": "integer"}},
    "required": ["kind"],
}


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
@pytest.mark.parametrize("shut", [{}, {"unevaluatedProperties": False}])
@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ({"kind": "circle", "r": "x"}, 'v.r: expected int, got "x"'),
        ({"kind": "circle"}, "v.r: missing; it is required"),
        ({"kind": "circle", "r": 1, "side": 2}, "v.side: unknown key; known: kind, r"),
        (
            {"kind": "circle", "r": "x", "side": 2},
            'v.r: expected int, got "x"; v.side: unknown key; known: kind, r',
        ),
        ({"kind": "cube"}, 'v.kind: expected one of "circle", "square", got "cube"'),
        ({"kind": "square", "z": 1}, "v.z: unknown key; known: kind, side"),
        (5, "v: expected object, got 5"),
    ],
)
def test_alternatives_are_told_apart_by_their_tag(keyword: str, shut: Any, shape: Any, problem: str) -> None:
    parse = in_object({keyword: [CIRCLE, SQUARE], **shut})
    assert "; ".join(problems(parse, {"v": shape})) == problem
    assert parse({"v": {"kind": "square", "side": 1}})


def test_a_value_that_fits_two_alternatives_is_told_so() -> None:
    parse = in_object(
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]}
    )
    assert problems(parse, {"v": {}}) == ("v: fits 2 of 2 alternatives, must fit exactly one; got {}",)


def test_closing_an_alternative_does_not_let_a_value_fit_that_fitted_two() -> None:
    parse = in_object(
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]}
    )
    assert problems(parse, {"v": {"a": 1}}), "both alternatives accept it, so the schema refuses it"


def test_a_tag_is_told_by_its_own_path() -> None:
    def shape(kind: str, mode: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": kind}, "mode": {"const": mode}}}

    parse = in_object({"oneOf": [shape("a", "x"), shape("b", "y")]})
    (problem,) = problems(parse, {"v": {"kind": "a", "mode": "y"}})
    assert contradiction(problem) is None
    assert '"x", "b"' not in problem


def test_the_rule_for_other_keys_speaks_of_their_values() -> None:
    shape = {
        "allOf": [{"properties": {"a": {}}}],
        "type": "object",
        "unevaluatedProperties": {"type": "integer"},
    }
    parse = in_object(shape)
    assert parse({"v": {"a": "x", "other": 1}})
    assert problems(parse, {"v": {"other": "x"}}) == ('v.other: expected int, got "x"',)


def test_an_object_that_takes_no_keys_names_the_one_it_got() -> None:
    parse = in_object({"type": "object", "additionalProperties": False})
    assert problems(parse, {"v": {"z": 1}}) == ("v.z: unknown key; none is expected here",)


def test_keys_given_by_a_pattern_are_known() -> None:
    parse = in_object({"type": "object", "patternProperties": {"^x-": {}}})
    assert parse({"v": {"x-a": 1}})
    assert problems(parse, {"v": {"y": 1}}) == ("v.y: unknown key; known: keys matching ^x-",)


def test_a_key_that_is_asked_for_is_known_even_if_nothing_declares_it() -> None:
    parse = in_object({"type": "object", "properties": {"a": {}}, "required": ["b"]})
    assert parse({"v": {"b": 1}})
    assert problems(parse, {"v": {}}) == ("v.b: missing; it is required",)
    assert problems(parse, {"v": {"b": 1, "c": 1}}) == ("v.c: unknown key; known: a, b",)


def test_a_key_that_the_schema_forbids_is_not_listed_as_known() -> None:
    parse = in_object({"type": "object", "properties": {"a": {}, "b": False}})
    assert problems(parse, {"v": {"b": 1}}) == ("v.b: the schema allows nothing here, got 1",)


def test_unknown_keys_of_an_object_described_in_pieces_are_refused() -> None:
    one = {"properties": {"v": {"type": "object", "properties": {"x": {}}}}}
    two = {"properties": {"v": {"type": "object", "properties": {"y": {}}}}}
    parse = parser_for_schema({"type": "object", "allOf": [one, two]})
    assert parse({"v": {"x": 1, "y": 2}})
    assert problems(parse, {"v": {"x": 1, "y": 2, "z": 3}}) == ("v.z: unknown key; known: x, y",)


def test_branches_of_a_condition_know_their_keys() -> None:
    parse = parser_for_schema(
        {
            "type": "object",
            "properties": {"kind": {"type": "string"}},
            "if": {"properties": {"kind": {"const": "lamp"}}, "required": ["kind"]},
            "then": {"properties": {"watts": {"type": "integer"}}},
            "else": {"properties": {"size": {"type": "object", "properties": {"w": {}}}}},
        }
    )
    assert parse({"kind": "lamp", "watts": 5})
    assert problems(parse, {"kind": "lamp", "size": {}}) == ("size: unknown key; known: kind, watts",)
    assert problems(parse, {"kind": "box", "size": {"w": 1, "h": 2}}) == ("size.h: unknown key; known: w",)


def test_an_alternative_without_keys_opens_only_what_nothing_else_declares() -> None:
    declared = {"type": "object", "properties": {"a": {}, "b": {}}}
    either = {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]}
    assert problems(in_object({**declared, **either}), {"v": {"a": 1, "z": 2}}) == (
        "v.z: unknown key; known: a, b",
    )
    free = in_object({"anyOf": [declared, {"type": "object"}]})
    assert free({"v": {"z": 1}})


# --- references ----------------------------------------------------------------------------------------

NODE = {
    "type": "object",
    "properties": {"x": {"default": 1}, "y": {"type": "object", "properties": {"z": {}}}},
}


@pytest.mark.parametrize(
    ("reference", "definition"),
    [
        ({"$ref": "#/$defs/a~1b"}, {"a/b": NODE}),
        ({"$ref": "#/$defs/a%7E1b"}, {"a/b": NODE}),
        ({"$ref": "#/$defs/a~0b"}, {"a~b": NODE}),
        ({"$ref": "#/%24defs/a%25b"}, {"a%b": NODE}),
        ({"$ref": "#node"}, {"n": {**NODE, "$anchor": "node"}}),
        ({"$ref": "node.json"}, {"n": {**NODE, "$id": "node.json"}}),
        ({"$ref": "urn:x:node"}, {"n": {**NODE, "$id": "urn:x:node"}}),
        ({"$ref": "https://e.invalid/n#here"}, {"n": {**NODE, "$id": "https://e.invalid/n", "$anchor": "here"}}),
        ({"$ref": "https://e.invalid/n"}, {"n": {"$id": "https://e.invalid/", "$defs": {"m": {**NODE, "$id": "n"}}}}),
        ({"$dynamicRef": "#node"}, {"n": {**NODE, "$dynamicAnchor": "node"}}),
        ({"$dynamicRef": "#node"}, {"n": {**NODE, "$anchor": "node"}}),
        ({"allOf": [{"$ref": "#/$defs/m"}]}, {"m": {"$ref": "#/$defs/n"}, "n": NODE}),
    ],
)  # fmt: skip
def test_every_kind_of_reference_is_followed(reference: Any, definition: Any) -> None:
    parse = in_object(reference, **{"$defs": definition})
    assert parse({"v": {"y": {"z": 1}}}) == {"v": {"x": 1, "y": {"z": 1}}}, "its defaults are filled in"
    assert problems(parse, {"v": {"q": 1}}) == ("v.q: unknown key; known: x, y",)
    assert problems(parse, {"v": {"y": {"q": 1}}}) == ("v.y.q: unknown key; known: z",)


def test_a_reference_may_lead_to_a_keyword_of_the_authors_own() -> None:
    parse = in_object({"$ref": "#/components/n"}, components={"n": NODE})
    assert problems(parse, {"v": {"y": {"q": 1}}}) == ("v.y.q: unknown key; known: z",)


def test_a_dynamic_reference_means_the_outermost_anchor() -> None:
    """The tree of the specification, extended by a schema that adds `label` to every node."""
    tree = {
        "$id": "tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"data": {}, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
    }
    labelled = {
        "$id": "https://e.invalid/labelled",
        "$dynamicAnchor": "node",
        "type": "object",
        "$ref": "tree",
        "properties": {"label": {"type": "string", "default": "?"}},
        "$defs": {"tree": tree},
    }
    parse = parser_for_schema(labelled)
    assert parse({"children": [{"label": "a", "data": 1}]}) == {
        "label": "?",
        "children": [{"label": "a", "data": 1}],
    }
    assert parse({"children": [{"children": [{}]}]})["children"][0]["children"] == [{"label": "?"}]
    assert problems(parse, {"children": [{"lable": "a"}]}) == (
        "children[0].lable: unknown key; known: label, data, children",
    )
    assert problems(parse, {"children": [{"label": 5}]}) == ("children[0].label: expected string, got 5",)


def test_a_reference_to_the_whole_is_closed_all_the_way_down() -> None:
    parse = parser_for_schema(
        {"type": "object", "properties": {"next": {"$ref": "#"}, "v": {"anyOf": [{}, {"$ref": "#"}]}}}
    )
    assert parse({"next": {"next": {}}})
    assert problems(parse, {"next": {"next": {"z": 1}}}) == ("next.next.z: unknown key; known: next, v",)


def test_a_bottomless_schema_is_refused_when_the_tool_is_made() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(ToolValidationError, match="not a JSON Schema"):
        parser_for_schema(schema)


def test_a_hundred_thousand_objects_under_alternatives_are_judged_soon() -> None:
    parse = parser_for_schema(
        {"type": "object", "properties": {"v": {"type": "array", "items": {"oneOf": [CIRCLE, SQUARE]}}}}
    )
    many = {"v": [{"kind": "square", "side": index} for index in range(100_000)]}
    began = time.process_time()
    assert parse(many) == many
    assert time.process_time() - began < 8


OPERATIONS = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"op": {"enum": ["a", "b"]}, "x": {"type": "integer"}},
            "required": ["op"],
        },
        {
            "type": "object",
            "properties": {"op": {"const": "c"}, "y": {"type": "integer"}},
            "required": ["op"],
        },
    ]
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"op": "z"}, 'v.op: expected one of "a", "b", "c", got "z"'),
        ({"op": "c", "y": "s"}, 'v.y: expected int, got "s"'),
        ({"op": "b", "x": "s"}, 'v.x: expected int, got "s"'),
        ({"op": "b", "y": 1}, "v.y: unknown key; known: op, x"),
    ],
)
def test_a_tag_with_several_options_tells_alternatives_apart(value: Any, expected: str) -> None:
    assert problems(in_object(OPERATIONS), {"v": value}) == (expected,)


@pytest.mark.parametrize(
    ("more", "value", "expected"),
    [
        ({"maxContains": 1}, [1, 2], "fewer items"),
        ({"minContains": 2}, [1, "a"], "more items"),
        ({}, ["a"], "an item"),
    ],
)
def test_contains_says_which_way_it_failed(more: Any, value: Any, expected: str) -> None:
    found = problems(in_object({"type": "array", "contains": {"type": "integer"}, **more}), {"v": value})
    assert found[0].startswith(f"v: expected {expected} of the kind that the schema asks for, got ")
