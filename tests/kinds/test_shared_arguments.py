"""The arguments of a composition: each part gets those it knows, and nothing is lost."""

from dataclasses import dataclass, field, make_dataclass

import pytest

from narratoria.kinds.compose import Branch, conditional, parallel, sequence
from narratoria.kinds.function import tool
from narratoria.run.registry import ToolRegistry
from narratoria.tools.schema import parser_for_schema
from narratoria.tools.tool import Tool, ToolContext, ToolKind, ToolResult


def by_schema(name, schema, change=None):
    """A tool that returns the arguments it got."""

    async def handle(params, *, context: ToolContext) -> ToolResult[dict]:
        seen = dict(params)
        if change is not None:
            change(params)
        return ToolResult.ok(seen)

    return Tool(name, "Echo.", handle, parameters={"type": "object", **schema})


def typed(name, type_):
    async def handle(params, *, context: ToolContext) -> ToolResult[type_]:
        return ToolResult.ok(params)

    handle.__annotations__["params"] = type_
    return tool(description="Echo.", name=name)(handle)


@dataclass(frozen=True)
class Count:
    n: int = 5


COUNT = by_schema("count", {"properties": {"n": {"type": "integer"}}})
NONE = by_schema("none", {"properties": {}})


async def shares(whole, args):
    result = await ToolRegistry([whole]).execute(whole.name, args)
    assert result.success, result.message
    parts = result.value["results"] if "results" in result.value else result.value.values()
    return [part.value for part in parts]


async def refusal(whole, args):
    result = await ToolRegistry([whole]).execute(whole.name, args)
    assert result.error.code == "INVALID_ARGUMENTS", result
    return result.message


async def test_types_of_one_name_do_not_overwrite_each_other():
    def made(name, kind):
        @dataclass(frozen=True)
        class Opts:
            size: kind

        return typed(name, make_dataclass("Params", [(name, Opts)], frozen=True))

    whole = parallel([made("one", int), made("two", str)])
    one, two = await shares(whole, {"one": {"size": 1}, "two": {"size": "big"}})
    assert (one.one.size, two.two.size) == (1, "big")
    parser_for_schema(whole.parameters)({"one": {"size": 1}, "two": {"size": "big"}})
    assert "expected int" in await refusal(whole, {"one": {"size": "big"}, "two": {"size": "big"}})


SIZES = {"type": "integer", "minimum": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"size": {"$ref": "#/definitions/Size"}}, "definitions": {"Size": SIZES}},
        {"properties": {"size": {"$ref": "#/$defs/Size"}}, "$defs": {"Size": SIZES}},
        {"$id": "https://example.org/x", "properties": {"size": {"$ref": "https://example.org/x#/$defs/Size"}},
         "$defs": {"Size": SIZES}},
        {"$id": "https://example.org/x", "properties": {"size": {"$ref": "size"}},
         "$defs": {"Size": {"$id": "size", **SIZES}}},
        {"properties": {"size": {"$ref": "#size"}}, "$defs": {"Size": {"$anchor": "size", **SIZES}}},
        {"properties": {"size": {"$ref": "#/x-own/Size"}}, "x-own": {"Size": SIZES}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"size": {"$ref": "#size"}},
         "definitions": {"Size": {"$id": "#size", **SIZES}}},
        {"$ref": "#/$defs/All", "$defs": {"All": {"properties": {"size": SIZES}}}},
        {"allOf": [{"properties": {"size": SIZES}}]},
        {"properties": {"size": {"$dynamicRef": "#size"}}, "$defs": {"Size": {"$dynamicAnchor": "size", **SIZES}}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [sequence, parallel])
async def test_references_of_a_part_keep_their_meaning(make, schema):
    first, second = by_schema("first", schema), by_schema("second", schema)
    whole = make([first, second, COUNT])
    assert await shares(whole, {"size": 2, "n": 1}) == [{"size": 2}, {"size": 2}, {"n": 1}]
    assert "size: expected 1 or more" in await refusal(whole, {"size": 0})
    assert parser_for_schema(whole.parameters)({"size": 2, "n": 1})


async def test_a_schema_that_contains_itself_can_be_part():
    tree = {"properties": {"left": {"$ref": "#"}, "leaf": {"type": "integer"}}, "additionalProperties": False}
    whole = parallel([by_schema("tree", tree), COUNT])
    grown = {"left": {"left": {"leaf": 1}}}
    assert await shares(whole, {**grown, "n": 1}) == [grown, {"n": 1}]
    assert "left.leaf" in await refusal(whole, {"left": {"leaf": "x"}})
    assert parser_for_schema(whole.parameters)(grown) == grown


@pytest.mark.parametrize("make", [sequence, parallel])
@pytest.mark.parametrize(
    "schema, given, other",
    [
        ({"properties": {"a": {}}, "additionalProperties": True}, {"a": 1, "n": 1, "b": 2}, {"n": 1}),
        ({}, {"n": 1, "b": 2}, {"n": 1}),
        ({"properties": {}, "additionalProperties": {"type": "string"}}, {"b": "x"}, {"n": 1}),
        ({"patternProperties": {"^x-": {"type": "integer"}}}, {"x-a": 1, "x-b": 2}, {"n": 1}),
        ({"oneOf": [{"properties": {"kind": {"const": "a"}, "r": {}}, "additionalProperties": False},
                    {"properties": {"kind": {"const": "b"}, "n": {}}, "additionalProperties": False}]},
         {"kind": "a", "r": 1}, {"n": 1}),
        ({"anyOf": [{"properties": {"p": {}}, "required": ["p"]}, {"properties": {"q": {}}, "required": ["q"]}]},
         {"q": 1}, {"n": 1}),
        ({"properties": {"a": {}}, "unevaluatedProperties": False, "if": {"required": ["a"]},
          "then": {"properties": {"b": {}}}}, {"a": 1, "b": 2}, {"n": 1}),
    ],
)  # fmt: skip
async def test_a_part_gets_every_key_that_it_knows(make, schema, given, other):
    whole = make([by_schema("part", schema), COUNT])
    assert await shares(whole, {**given, **other}) == [given, other]
    assert parser_for_schema(whole.parameters)({**given, **other})


@pytest.mark.parametrize("make", [sequence, parallel, lambda tools: conditional([Branch(bool, tools)])])
async def test_a_key_that_no_part_knows_is_refused(make):
    whole = make([COUNT, typed("typed", Count)])
    assert "m: unknown key; known: n" in await refusal(whole, {"n": 1, "m": 2})
    assert await refusal(whole, {1: 2})


async def test_a_key_of_an_alternative_not_chosen_is_refused_in_the_words_of_its_part():
    shapes = {
        "oneOf": [
            {"properties": {"kind": {"const": "round"}, "radius": {}}, "required": ["kind"]},
            {"properties": {"kind": {"const": "square"}, "side": {}}, "required": ["kind"]},
        ]
    }
    whole = parallel([by_schema("shape", shapes), COUNT])
    assert "side: unknown key; known: kind, radius" in await refusal(whole, {"kind": "round", "side": 1})


async def test_arguments_are_checked_before_any_part_runs():
    ran = []
    first = by_schema("first", {"properties": {"n": {}}}, ran.append)
    second = by_schema("second", {"properties": {"word": {"type": "string"}}, "required": ["word"]})
    for make in (sequence, parallel):
        assert "word: missing" in await refusal(make([first, second]), {"n": 1})
    assert ran == []
    assert parallel([first, second]).parameters["required"] == ["word"]


@pytest.mark.parametrize("make", [sequence, parallel])
async def test_each_part_fills_in_its_own_defaults(make):
    @dataclass(frozen=True)
    class Other:
        n: int = 7

    supplied = by_schema("supplied", {"properties": {"n": {"type": "integer", "default": 9}}})
    tools = [typed("a", Count), NONE, typed("b", Other), supplied]
    assert await shares(make(tools), {}) == [Count(5), {}, Other(7), {"n": 9}]
    assert await shares(make(tools), {"n": 1}) == [Count(1), {}, Other(1), {"n": 1}]


async def test_a_nested_composition_knows_the_keys_of_its_parts():
    inner = parallel([COUNT, by_schema("word", {"properties": {"word": {"type": "string"}}})], name="inner")
    whole = sequence([inner, NONE, COUNT], name="outer")
    value = await shares(whole, {"n": 1, "word": "hi"})
    assert [one.value for one in value[0].values()] == [{"n": 1}, {"word": "hi"}]
    assert value[1:] == [{}, {"n": 1}]
    assert "wrod: unknown key; known: n, word" in await refusal(whole, {"wrod": "hi"})


async def test_no_part_can_change_the_arguments_of_another():
    items = {"properties": {"items": {"type": "array"}}}
    eats = by_schema("eats", items, lambda params: params["items"].clear())
    given = {"items": [1, 2]}
    kept = by_schema("kept", items)
    assert (await shares(sequence([eats, kept]), given))[1] == {"items": [1, 2]}
    assert given == {"items": [1, 2]}


async def test_a_key_that_two_parts_know_must_fit_both():
    small = by_schema("small", {"properties": {"n": {"type": "integer", "maximum": 3, "description": "s"}}})
    assert await shares(parallel([COUNT, small]), {"n": 3}) == [{"n": 3}, {"n": 3}]
    assert "expected 3 or less" in await refusal(parallel([COUNT, small]), {"n": 4})
    told = by_schema("told", {"properties": {"n": {"type": "integer", "description": "How many."}}})
    assert parallel([told, COUNT]).parameters["properties"]["n"] == {
        "type": "integer",
        "description": "How many.",
    }


async def test_a_branch_gets_the_arguments_it_knows():
    word = by_schema("word", {"properties": {"word": {"type": "string"}}})
    whole = conditional([Branch(lambda result, context: False, [COUNT])], [word])
    result = await ToolRegistry([whole]).execute(whole.name, {"n": 1, "word": "hi"})
    assert result.value == {"word": "hi"}


async def test_a_property_named_like_a_keyword_survives():
    odd = {
        "properties": {
            "$id": {"type": "string"},
            "definitions": {"type": "integer"},
            "$ref": {"type": "string"},
        }
    }
    whole = parallel([by_schema("odd", odd), COUNT])
    given = {"$id": "x", "definitions": 1, "$ref": "y"}
    assert (await shares(whole, given))[0] == given
    assert set(whole.parameters["properties"]) == {"$id", "definitions", "$ref", "n"}


@dataclass(frozen=True)
class Nested:
    counts: list[Count] = field(default_factory=list)


async def test_a_typed_part_publishes_its_types():
    whole = parallel([typed("nested", Nested), COUNT])
    assert whole.parameters["properties"]["counts"]["items"] == {"$ref": "#/$defs/nested.Count"}
    assert whole.parameters["$defs"]["nested.Count"]["properties"]["n"]["type"] == "integer"
    assert (await shares(whole, {"counts": [{"n": 1}]}))[0] == Nested([Count(1)])


async def test_tools_of_a_server_can_be_parts():
    far = ToolKind("mcp", foreign=True)
    schema = {"properties": {"size": {"$ref": "#/$defs/Size"}}, "$defs": {"Size": SIZES}}
    one = Tool("box.measure", "Far.", COUNT.handler, parameters={"type": "object", **schema}, kind=far)
    whole = sequence([one, COUNT])
    assert whole.name.startswith("sequence_box_measure_count_")
    assert await shares(whole, {"size": 2, "n": 1}) == [{"size": 2}, {"n": 1}]
