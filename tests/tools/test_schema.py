"""What arguments may be: the schema a tool shows, and the parser that holds callers to it (002, 004)."""

from __future__ import annotations

import datetime
import enum
import json
import sys
import time
import types
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.state import StateView
from narratoria.tools.schema import dump, dump_json, parser_for, parser_for_schema, schema_for


@dataclass(frozen=True)
class Light:
    target: str
    brightness: int = 1


@dataclass
class Inner:
    count: int


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Deep:
    """A bit of everything."""

    inner: Inner
    maybe: Inner | None = None
    many: list[Inner] = field(default_factory=list)
    by_name: dict[str, Inner] = field(default_factory=dict)
    share: float = 0.5
    kind: Literal["x", "y"] = field(default="x", metadata={"description": "Which of the two."})
    level: Annotated[int, msgspec.Meta(ge=0, le=9, description="How much.")] = 3
    when: datetime.datetime | None = None
    either: int | str | None = None
    colour: Colour = Colour.RED
    free: dict[str, Any] = field(default_factory=dict)


class Point(msgspec.Struct, frozen=True):
    x: int
    y: int = 0


class Circle(msgspec.Struct, tag="circle"):
    radius: int


class Square(msgspec.Struct, tag="square"):
    side: int
    centre: Point | None = None


@dataclass
class Drawing:
    shape: Circle | Square


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


class Options(TypedDict, total=False):
    loud: bool


@dataclass
class WithTypedDict:
    options: Options


@dataclass(frozen=True, slots=True)
class Slotted:
    a: int
    b: int = 2


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("number must be even")


@dataclass
class Empty:
    pass


@dataclass
class Free:
    free: dict[str, Any]


class FreeStruct(msgspec.Struct):
    free: dict[str, Any]


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    content: T


def problems(parse: Callable[[Any], Any], arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ArgumentsInvalid) as caught:
        parse(arguments)
    return caught.value.problems


# --- types → schema ------------------------------------------------------------------------------------


def test_a_dataclass_becomes_a_closed_object_schema() -> None:
    assert schema_for(Light) == {
        "title": "Light",
        "type": "object",
        "properties": {"target": {"type": "string"}, "brightness": {"type": "integer", "default": 1}},
        "required": ["target"],
        "additionalProperties": False,
    }


def test_no_parameters_are_an_object_without_keys() -> None:
    for nothing in (None, type(None)):
        assert schema_for(nothing) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_nested_objects_are_closed_too_and_a_free_form_one_stays_free() -> None:
    schema = schema_for(Deep)
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Inner"]["additionalProperties"] is False
    assert schema["properties"]["by_name"]["additionalProperties"] == {"$ref": "#/$defs/Inner"}
    assert "additionalProperties" not in schema["properties"]["free"]


def test_descriptions_come_from_docstrings_metadata_and_annotations() -> None:
    schema = schema_for(Deep)
    assert schema["description"] == "A bit of everything."
    assert schema["properties"]["kind"]["description"] == "Which of the two."
    level = schema["properties"]["level"]
    assert (level["description"], level["minimum"], level["maximum"]) == ("How much.", 0, 9)


@pytest.mark.parametrize("type_", [Light, Deep, Point, Drawing, Tree, WithTypedDict, Box[int], Empty, None])
def test_every_schema_is_valid_draft_2020_12(type_: Any) -> None:
    jsonschema_rs.meta.validate(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema_for(type_)}
    )


def test_a_type_that_contains_itself_keeps_its_definition() -> None:
    schema = schema_for(Tree)
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert parser_for(Tree)({"name": "a", "children": [{"name": "b"}]}).children[0] == Tree("b")


@pytest.mark.parametrize("type_", [int, dict[str, Any], Options, list[Light], "Light", Any])
def test_only_dataclasses_structs_and_none_are_parameters(type_: Any) -> None:
    with pytest.raises(ToolValidationError, match=r"tool 'lamp'.*dataclass.*JSON Schema"):
        schema_for(type_, name="lamp")


def test_a_field_json_cannot_carry_is_refused_when_the_tool_is_made() -> None:
    @dataclass
    class Odd:
        call: types.FunctionType

    with pytest.raises(ToolValidationError, match=r"tool 'lamp'.*Odd.*has no JSON Schema"):
        schema_for(Odd, name="lamp")


# --- arguments → parameters ----------------------------------------------------------------------------


def test_arguments_become_the_dataclass_with_its_defaults() -> None:
    assert parser_for(Light)({"target": "torch"}) == Light("torch", 1)
    assert parser_for(Slotted)({"a": 1}) == Slotted(1, 2)
    assert parser_for(Point)({"x": 1}) == Point(1, 0)
    assert parser_for(Empty)({}) == Empty()
    assert parser_for(Box[int])({"content": 3}) == Box(3)
    assert parser_for(type(None))({}) is None


def test_mutable_defaults_are_not_shared_between_calls() -> None:
    @dataclass
    class Bag:
        things: list[str] = field(default_factory=list)

    parse = parser_for(Bag)
    parse({}).things.append("rope")
    assert parse({}).things == []


def test_any_mapping_will_do() -> None:
    proxy = types.MappingProxyType({"target": "torch"})
    assert parser_for(Light)(proxy) == Light("torch")
    nested = types.MappingProxyType({"inner": {"count": 1}})
    assert parser_for(Deep)(nested).inner == Inner(1)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"target": "t", "brightness": "5"}, 'brightness: expected int, got "5"'),
        ({"target": "t", "brightness": True}, "brightness: expected int, got true"),
        ({"target": "t", "brightness": 1.0}, "brightness: expected int, got 1.0"),
        ({"target": "t", "brightness": None}, "brightness: expected int, got null"),
        ({"target": 5}, "target: expected string, got 5"),
        ({}, "target: missing; it is required"),
        ({"target": "t", "colour": "red"}, "colour: unknown key; known: target, brightness"),
    ],
)
def test_nothing_is_coerced_and_the_problem_names_the_path(arguments: Any, problem: str) -> None:
    assert problems(parser_for(Light), arguments) == (problem,)


def test_an_int_is_fine_where_a_float_is_declared() -> None:
    share = parser_for(Deep)({"inner": {"count": 1}, "share": 1}).share
    assert share == 1.0
    assert type(share) is float


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"inner": {"count": "x"}}, 'inner.count: expected int, got "x"'),
        ({"inner": {"count": 1, "colour": 2}}, "inner.colour: unknown key; known: count"),
        ({"inner": {"count": 1}, "maybe": {"count": "x"}}, 'maybe.count: expected int, got "x"'),
        ({"inner": {"count": 1}, "maybe": {"count": 1, "z": 1}}, "maybe.z: unknown key; known: count"),
        ({"inner": {"count": 1}, "maybe": 3}, "maybe: expected null or object, got 3"),
        ({"inner": {"count": 1}, "many": [{"count": 1}, {}]}, "many[1].count: missing; it is required"),
        ({"inner": {"count": 1}, "many": [{"count": 1, "z": 2}]}, "many[0].z: unknown key; known: count"),
        (
            {"inner": {"count": 1}, "by_name": {"k": {"count": 1, "z": 2}}},
            "by_name.k.z: unknown key; known: count",
        ),
        ({"inner": {"count": 1}, "kind": "z"}, 'kind: expected one of "x", "y", got "z"'),
        ({"inner": {"count": 1}, "level": 10}, "level: expected 9 or less, got 10"),
        ({"inner": {"count": 1}, "either": [1]}, "either: expected int or null or string, got [1]"),
        (
            {"inner": {"count": 1}, "when": "soon"},
            'when: expected a date-time with an offset (2026-03-01T12:00:00Z), got "soon"',
        ),
        ({"inner": {"count": 2.0}}, "inner.count: expected int, got 2.0"),
    ],
)
def test_depth_changes_nothing(arguments: Any, problem: str) -> None:
    assert problems(parser_for(Deep), arguments) == (problem,)


def test_every_problem_is_told_at_once() -> None:
    found = problems(parser_for(Deep), {"inner": {"count": "x"}, "level": -1, "share": "half", "extra": 1})
    assert set(found) == {
        'inner.count: expected int, got "x"',
        "level: expected 0 or more, got -1",
        'share: expected number, got "half"',
        "extra: unknown key; known: inner, maybe, many, by_name, share, kind, level, when, either, colour, "
        "free",
    }


def test_a_tagged_union_is_judged_by_its_tag() -> None:
    parse = parser_for(Drawing)
    assert parse({"shape": {"type": "circle", "radius": 2}}).shape == Circle(2)
    assert problems(parse, {"shape": {"type": "circle", "radius": "x"}}) == (
        'shape.radius: expected int, got "x"',
    )
    assert problems(parse, {"shape": {"type": "square", "side": 1, "radius": 2}}) == (
        "shape.radius: unknown key; known: type, side, centre",
    )
    nested = {"shape": {"type": "square", "side": 1, "centre": {"x": 1, "z": 2}}}
    assert problems(parse, nested) == ("shape.centre.z: unknown key; known: x, y",)


def test_a_typed_dict_inside_is_closed_too() -> None:
    parse = parser_for(WithTypedDict)
    assert parse({"options": {"loud": True}}).options == {"loud": True}
    assert problems(parse, {"options": {"lout": True}}) == ("options.lout: unknown key; known: loud",)


def test_a_refusal_of_post_init_is_a_problem_of_the_arguments() -> None:
    assert parser_for(Even)({"number": 2}) == Even(2)
    assert problems(parser_for(Even), {"number": 3}) == ("arguments: number must be even",)


def test_python_callers_may_pass_dates_and_they_are_still_closed() -> None:
    noon = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    assert parser_for(Deep)({"inner": {"count": 1}, "when": noon}).when == noon
    assert problems(parser_for(Deep), {"inner": {"count": 1, "z": 1}, "when": noon}) == (
        "inner.z: unknown key; known: count",
    )


@pytest.mark.parametrize("given_", [None, [], [1], "text", 5, True, object()])
@pytest.mark.parametrize(
    "parse", [parser_for(Light), parser_for(Deep), parser_for(None), parser_for_schema({"type": "object"})]
)
def test_what_is_not_an_object_is_refused(parse: Callable[[Any], Any], given_: Any) -> None:
    (problem,) = problems(parse, given_)
    assert problem.startswith("arguments: expected an object, got ")


@pytest.mark.parametrize(
    "parse", [parser_for(Light), parser_for(Deep), parser_for_schema({"type": "object", "properties": {}})]
)
def test_a_hundred_thousand_keys_give_a_short_error_soon(parse: Callable[[Any], Any]) -> None:
    began = time.perf_counter()
    found = problems(parse, {f"key{index}": index for index in range(100_000)})
    assert time.perf_counter() - began < 5
    assert any("99990 more unknown keys" in line for line in found)
    assert len("; ".join(found)) < 3000


def test_a_long_list_of_bad_items_gives_a_short_error() -> None:
    found = problems(parser_for(Deep), {"inner": {"count": 1}, "many": [{"count": "x" * 10_000}] * 10_000})
    assert found[-1] == "and more"
    assert len("; ".join(found)) < 3000


@pytest.mark.parametrize("depth", [5_000, 200_000])
def test_bottomless_arguments_are_refused_not_a_crash(depth: int) -> None:
    arguments: dict[str, Any] = {"name": "leaf"}
    for _ in range(depth):
        arguments = {"name": "node", "children": [arguments]}
    schema = schema_for(Tree)
    for parse in (parser_for(Tree), parser_for_schema(schema), parser_for(Light)):
        assert problems(parse, arguments)


@pytest.mark.parametrize("type_", [Free, FreeStruct])
def test_free_form_fields_are_not_bottomless_either(type_: Any) -> None:
    arguments: dict[str, Any] = {}
    for _ in range(200):
        arguments = {"free": arguments}
    assert problems(parser_for(type_), arguments) == ("arguments: nested more than 100 deep",)
    assert parser_for(type_)({"free": {"a": [{"b": 1}]}}).free == {"a": [{"b": 1}]}


def test_keys_that_are_not_text_and_values_that_are_not_json_are_refused() -> None:
    for parse in (parser_for(Light), parser_for(Deep), parser_for_schema(schema_for(Light))):
        assert problems(parse, {1: 2})
    assert problems(parser_for(Light), {"target": object()}) == ("target: expected str, got object",)
    assert problems(parser_for_schema(schema_for(Light)), {"target": object()})[0].startswith(
        "arguments: not JSON"
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
        max_leaves=12,
    )
)
def test_whatever_comes_it_is_parsed_or_refused_with_a_reason(value: Any) -> None:
    for parse in (parser_for(Light), parser_for(Deep), parser_for_schema(schema_for(Deep))):
        for arguments in (value, {"target": value}, {"inner": value, "many": [value], "free": {"k": value}}):
            try:
                parse(arguments)
            except ArgumentsInvalid as error:
                assert error.problems
                assert all(": " in problem or problem == "and more" for problem in error.problems)


@given(st.integers(), st.integers(), st.booleans())
def test_the_typed_parser_and_the_schema_it_shows_agree(count: int, level: int, extra: bool) -> None:
    arguments: dict[str, Any] = {"inner": {"count": count}, "level": level}
    if extra:
        arguments["inner"]["extra"] = 1
    valid = jsonschema_rs.is_valid(schema_for(Deep), arguments)
    try:
        parser_for(Deep)(arguments)
    except ArgumentsInvalid:
        assert not valid
    else:
        assert valid


def test_two_integers_are_parsed_in_half_a_microsecond() -> None:
    """Measured against msgspec alone, so that a loaded machine does not fail the test."""

    class Bare(msgspec.Struct, forbid_unknown_fields=True):
        a: int
        b: int = 1

    @dataclass(frozen=True)
    class Two:
        a: int
        b: int = 1

    def fastest(function: Callable[[], Any]) -> float:
        best = sys.float_info.max
        for _ in range(30):
            began = time.perf_counter()
            for _ in range(1000):
                function()
            best = min(best, time.perf_counter() - began)
        return best

    parse, arguments = parser_for(Two), {"a": 1, "b": 2}
    ours = fastest(lambda: parse(arguments))
    bare = fastest(lambda: msgspec.convert(arguments, Bare))
    assert ours < 4 * bare, f"{ours * 1000:.3f} µs against {bare * 1000:.3f} µs"


# --- arguments checked by a supplied schema ------------------------------------------------------------

SCRAPE = {  # the parameters of 004's web:scrape
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "URL to scrape", "pattern": "^https?://"},
        "selector": {"type": "string"},
        "waitFor": {"type": "number", "default": 0},
    },
    "required": ["url"],
}
WRITE = {  # the parameters of 004's file:write
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "encoding": {"type": "string", "enum": ["utf-8", "ascii", "base64"], "default": "utf-8"},
        "overwrite": {"type": "boolean", "default": False},
    },
    "required": ["path", "content"],
}


def test_defaults_of_004s_examples_are_filled_in() -> None:
    assert parser_for_schema(SCRAPE)({"url": "https://a.example"}) == {
        "url": "https://a.example",
        "waitFor": 0,
    }
    assert parser_for_schema(WRITE)({"path": "a", "content": ""}) == {
        "path": "a",
        "content": "",
        "encoding": "utf-8",
        "overwrite": False,
    }


def test_004s_examples_refuse_what_they_must() -> None:
    assert problems(parser_for_schema(SCRAPE), {"url": "ftp://a", "waitFor": "1"}) == (
        'url: expected text matching ^https?://, got "ftp://a"',
        'waitFor: expected number, got "1"',
    )
    assert set(problems(parser_for_schema(WRITE), {"path": "a", "encoding": "x", "mode": 1})) == {
        "content: missing; it is required",
        'encoding: expected one of "utf-8", "ascii", "base64", got "x"',
        "mode: unknown key; known: path, content, encoding, overwrite",
    }


@pytest.mark.parametrize(
    ("property_schema", "bad", "problem"),
    [
        ({"type": "string", "minLength": 2}, "a", 'v: expected at least 2 characters, got "a"'),
        ({"type": "string", "maxLength": 1}, "ab", 'v: expected at most 1 characters, got "ab"'),
        ({"type": "number", "minimum": 3}, 2, "v: expected 3 or more, got 2"),
        ({"type": "number", "exclusiveMaximum": 3}, 3, "v: expected less than 3, got 3"),
        ({"type": "array", "items": {"type": "number"}}, [1, "x"], 'v[1]: expected number, got "x"'),
        ({"type": "array", "maxItems": 1}, [1, 2], "v: expected at most 1 items, got [1,2]"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "v: expected no item twice"),
        ({"type": "integer", "multipleOf": 5}, 6, "v: expected a multiple of 5, got 6"),
        (
            {"type": "string", "format": "date-time"},
            "x",
            'v: expected a date-time with an offset (2026-03-01T12:00:00Z), got "x"',
        ),
        ({"const": 1}, True, "v: expected 1, got true"),
        (
            {"type": "object", "properties": {"w": {"type": "boolean"}}},
            {"w": 1, "z": 2},
            "v.w: expected boolean, got 1; v.z: unknown key; known: w",
        ),
    ],
)
def test_each_rule_of_a_property_schema_is_enforced(property_schema: Any, bad: Any, problem: str) -> None:
    parse = parser_for_schema({"type": "object", "properties": {"v": property_schema}})
    assert "; ".join(problems(parse, {"v": bad})) == problem


def test_defaults_are_filled_in_at_every_depth() -> None:
    schema = {
        "type": "object",
        "properties": {
            "options": {
                "type": "object",
                "default": {},
                "properties": {"loud": {"type": "boolean", "default": False}},
            },
            "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
        },
        "allOf": [{"properties": {"mode": {"type": "string", "default": "fast"}}}],
        "$defs": {
            "step": {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"default": [1]}}}
        },
    }
    given_ = {"steps": [{"n": 1}, {"n": 2, "m": []}]}
    assert parser_for_schema(schema)(given_) == {
        "options": {"loud": False},
        "steps": [{"n": 1, "m": [1]}, {"n": 2, "m": []}],
        "mode": "fast",
    }
    assert given_ == {"steps": [{"n": 1}, {"n": 2, "m": []}]}, "the caller's arguments are left as they were"


def test_a_default_is_a_fresh_copy_each_time() -> None:
    parse = parser_for_schema({"type": "object", "properties": {"tags": {"default": {"all": [[]]}}}})
    parse({})["tags"]["all"][0].append("x")
    assert parse({}) == {"tags": {"all": [[]]}}


def test_a_default_that_contains_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node", "default": {}}}}
    parse = parser_for_schema(
        {"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    )
    assert parse({"n": {}}) == {"n": {"next": {}}}


def test_a_default_that_does_not_fit_is_a_mistake_of_the_tool() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}}},
    }
    with pytest.raises(ToolValidationError, match=r"tool 'lamp': the default of a\.n does not fit"):
        parser_for_schema(schema, name="lamp")


def test_a_property_named_default_is_just_a_property() -> None:
    parse = parser_for_schema({"type": "object", "properties": {"default": {"type": "integer"}}})
    assert parse({}) == {}
    assert parse({"default": 3}) == {"default": 3}


def test_undeclared_keys_are_allowed_only_where_the_schema_says_so() -> None:
    inner = {"type": "object", "properties": {"a": {}}}
    inside = {
        "shut": inner,
        "open": {**inner, "additionalProperties": True},
        "typed": {**inner, "additionalProperties": {"type": "integer"}},
        "free": {"type": "object"},
    }
    parse = parser_for_schema({"type": "object", "properties": inside})
    fine = {"open": {"z": 1}, "typed": {"z": 1}, "free": {"z": {"y": 1}}, "shut": {"a": 1}}
    assert parse(fine) == fine
    assert problems(parse, {"shut": {"z": 1}}) == ("shut.z: unknown key; known: a",)
    assert problems(parse, {"typed": {"z": "x"}}) == ('typed.z: expected int, got "x"',)


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_keys_declared_in_parts_of_a_schema_count_together(keyword: str) -> None:
    part = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    schema = {"type": "object", "properties": {"a": {}}, keyword: [part]}
    parse = parser_for_schema(schema)
    assert parse({"a": 1, "x": 2}) == {"a": 1, "x": 2}
    assert problems(parse, {"x": 2, "z": 3}) == ("z: unknown key; known: a, x",)


def test_an_alternative_that_declares_no_keys_stays_free_form() -> None:
    tagged = {"type": "object", "properties": {"kind": {"const": "door"}}, "required": ["kind"]}
    free = {"type": "object", "not": {"required": ["kind"]}}
    parse = parser_for_schema({"type": "object", "properties": {"v": {"anyOf": [tagged, free]}}})
    assert parse({"v": {"whatever": 1}}) == {"v": {"whatever": 1}}
    assert problems(parse, {"v": {"kind": "door", "whatever": 1}})


def test_an_object_declared_in_pieces_is_not_torn_apart() -> None:
    """Closing either piece by itself would refuse what the other declares."""
    one = {"properties": {"v": {"type": "object", "properties": {"x": {}}}}}
    two = {"properties": {"v": {"type": "object", "properties": {"y": {}}}}}
    parse = parser_for_schema({"type": "object", "allOf": [one, two]})
    assert parse({"v": {"x": 1, "y": 2}}) == {"v": {"x": 1, "y": 2}}


def test_a_referred_object_is_closed_where_it_is_used_and_can_be_extended() -> None:
    schema = {
        "type": "object",
        "properties": {
            "plain": {"$ref": "#/$defs/base"},
            "more": {"$ref": "#/$defs/base", "properties": {"y": {}}},
        },
        "$defs": {"base": {"type": "object", "properties": {"x": {}}}},
    }
    parse = parser_for_schema(schema)
    assert parse({"plain": {"x": 1}, "more": {"x": 1, "y": 2}})
    assert problems(parse, {"plain": {"y": 1}}) == ("plain.y: unknown key; known: x",)
    assert problems(parse, {"more": {"z": 1}}) == ("more.z: unknown key; known: y, x",)


@pytest.mark.parametrize("reference", ["#/$defs/node", "#node"])
def test_a_schema_that_refers_to_itself_is_closed_all_the_way_down(reference: str) -> None:
    node = {
        "$anchor": "node",
        "type": "object",
        "properties": {"next": {"$ref": reference}, "v": {"default": 1}},
    }
    parse = parser_for_schema(
        {"type": "object", "properties": {"first": {"$ref": reference}}, "$defs": {"node": node}}
    )
    assert parse({"first": {"next": {"v": 2}}}) == {"first": {"v": 1, "next": {"v": 2}}}
    assert problems(parse, {"first": {"next": {"next": {"z": 1}}}}) == (
        "first.next.next.z: unknown key; known: next, v",
    )


@pytest.mark.parametrize(
    "loop",
    [
        {
            "$ref": "#x",
            "$defs": {"a": {"$anchor": "x", "$ref": "#y"}, "b": {"$anchor": "y", "allOf": [{"$ref": "#x"}]}},
        },
        {"$anchor": "x", "allOf": [{"$ref": "#x"}], "properties": {"v": {"default": 1}}},
    ],
)
def test_a_circle_by_names_is_refused(loop: dict[str, Any]) -> None:
    with pytest.raises(ToolValidationError, match="comes back to itself"):
        parser_for_schema({"type": "object", **loop})


def test_a_schema_of_thousands_of_keys_is_read_soon() -> None:
    one = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
    began = time.perf_counter()
    parse = parser_for_schema({"type": "object", "properties": {f"key{index}": one for index in range(3000)}})
    assert time.perf_counter() - began < 5
    assert parse({"key7": {}}) == {"key7": {"a": 1}}


def test_closing_leaves_the_given_schema_alone() -> None:
    given_ = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
    before = json.dumps(given_)
    assert problems(parser_for_schema(given_), {"a": {"z": 1}})
    assert json.dumps(given_) == before


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": {"type": "integr"}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "properties.a.pattern"),
        ({"type": "object", "properties": [1]}, "properties"),
        ({"type": "array"}, '"type": "object"'),
        ({}, '"type": "object"'),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.invalid/s"}}},
            "outside the schema",
        ),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}, "outside the schema"),
        ({"type": "object", "$ref": "#/$defs/nowhere"}, "nowhere"),
    ],
)
def test_a_bad_schema_is_refused_when_the_tool_is_made_and_names_it(schema: Any, reason: str) -> None:
    with pytest.raises(ToolValidationError, match="tool 'lamp'") as caught:
        parser_for_schema(schema, name="lamp")
    assert reason in str(caught.value)


def test_schemas_of_an_older_draft_are_read() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": {}}}
    assert problems(parser_for_schema(schema), {"b": 1}) == ("b: unknown key; known: a",)


def test_a_pattern_cannot_hang_the_runtime() -> None:
    parse = parser_for_schema(
        {"type": "object", "properties": {"v": {"type": "string", "pattern": "^(a|a)*$"}}}
    )
    began = time.perf_counter()
    problems(parse, {"v": "a" * 5000 + "b"})
    assert time.perf_counter() - began < 2


# --- values → JSON -------------------------------------------------------------------------------------


def test_values_are_dumped_as_json_knows_them() -> None:
    key = uuid.UUID(int=5)
    value = {"light": Light("t"), "point": Point(1), "colour": Colour.BLUE, "at": datetime.date(2026, 3, 1),
             "path": PurePosixPath("a/b"), "set": {1}, "id": key, 3: (1, 2)}  # fmt: skip
    expected = {
        "light": {"target": "t", "brightness": 1}, "point": {"x": 1, "y": 0}, "colour": "blue",
        "at": "2026-03-01", "path": "a/b", "set": [1], "id": str(key), "3": [1, 2],
    }  # fmt: skip
    assert dump(value) == expected
    assert json.loads(dump_json(value)) == expected


def test_a_view_of_the_state_is_dumped_as_plain_data() -> None:
    view = StateView({"a": {"b": [1, {"c": 2}]}}, [{"a": {"d": 3}}])
    assert dump({"state": view}) == {"state": {"a": {"b": [1, {"c": 2}], "d": 3}}}


def test_what_json_cannot_carry_is_named() -> None:
    bottomless: list[Any] = []
    bottomless.append(bottomless)
    for odd, named in (({"s": type("socket", (), {})()}, "socket"), (bottomless, "list")):
        for write in (dump, dump_json):
            with pytest.raises(
                ToolValidationError, match=f"{named}.* cannot be written as JSON|no JSON for {named}"
            ):
                write(odd)


def test_what_was_dumped_can_be_parsed_again() -> None:
    deep = Deep(Inner(1), Inner(2), [Inner(3)], {"k": Inner(4)}, colour=Colour.BLUE, free={"any": [1]})
    assert parser_for(Deep)(dump(deep)) == deep


@pytest.mark.parametrize("refs", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}])
def test_references_that_lead_to_each_other_alone_are_refused(refs: dict[str, str]) -> None:
    definitions = {name: {"$ref": f"#/$defs/{other}"} for name, other in refs.items()}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": definitions}
    with pytest.raises(ToolValidationError, match=r"\$ref #/\$defs/. → .* comes back to itself"):
        parser_for_schema(schema, name="t")


def _defined(**definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": definitions}


@pytest.mark.parametrize(
    "schema",
    [
        _defined(a={"allOf": [{"$ref": "#/$defs/b"}]}, b={"allOf": [{"$ref": "#/$defs/a"}]}),
        _defined(a={"type": "object", "allOf": [{"$ref": "#/$defs/a"}]}),
        _defined(a={"anyOf": [{"type": "null"}, {"oneOf": [{"$ref": "#/$defs/a"}]}]}),
        _defined(a={"not": {"$ref": "#/$defs/a"}}),
        _defined(a={"if": {"$ref": "#/$defs/a"}, "then": {"type": "null"}}),
        _defined(a={"dependentSchemas": {"y": {"$ref": "#/$defs/a"}}}),
        {"type": "object", "allOf": [{"$ref": "#"}]},
        {"type": "object", "allOf": [{"$ref": "#/allOf/0"}]},
    ],
)
def test_references_that_come_back_to_the_same_value_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ToolValidationError, match=r"\$ref #\S* → .*#\S* comes back to itself"):
        parser_for_schema(schema, name="t")


@pytest.mark.parametrize(
    "tree",
    [
        {"type": "object", "properties": {"left": {"$ref": "#/$defs/a"}, "not": {"$ref": "#/$defs/a"}}},
        {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/a"}}]},
        {"type": "object", "additionalProperties": {"allOf": [{"$ref": "#/$defs/a"}]}},
    ],
)
def test_references_that_come_back_to_a_part_of_the_value_are_fine(tree: dict[str, Any]) -> None:
    parser_for_schema(_defined(a=tree), name="t")


def test_an_empty_key_is_quoted_wherever_it_is_told_of() -> None:
    parse = parser_for_schema({"type": "object", "properties": {"a": {"type": "integer"}}}, name="t")
    with pytest.raises(ArgumentsInvalid, match=r"^'': unknown key; known: a$"):
        parse({"": 1})
    named = {"type": "object", "properties": {"": {"type": "integer"}, " ": {"type": "integer"}}}
    with pytest.raises(ArgumentsInvalid, match=r"^' ': expected int, got .x.$"):
        parser_for_schema(named, name="t")({" ": "x"})
    with pytest.raises(ArgumentsInvalid, match=r"^b: unknown key; known: '', ' '$"):
        parser_for_schema(named, name="t")({"b": 1})


@dataclass
class Waits:
    wait: datetime.timedelta
    waits: list[datetime.timedelta]
    price: Decimal | None = None


def test_a_mistake_in_a_duration_is_told_once() -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        parser_for(Waits)({"wait": "5 s", "waits": ["PT1S", "5 s"], "price": "much"})
    assert [line.partition(":")[0] for line in refused.value.problems] == ["wait", "waits[1]", "price"]
    with pytest.raises(ArgumentsInvalid, match=r"^wait: expected a duration \(P1DT2H30M\), got \"PT\"$"):
        parser_for(Waits)({"wait": "PT", "waits": []})
