"""Large wrong arguments: they are refused at once, with a message as short and as good as that of small ones."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from narratoria.errors import ArgumentsInvalid
from narratoria.tools.schema import parser_for, parser_for_schema


@dataclass
class Item:
    n: int


@dataclass
class Items:
    many: list[Item]


@dataclass
class Strict:
    name: str

    def __post_init__(self) -> None:
        raise ValueError(f"no such name: {self.name}")


def refusal(parse: Any, arguments: Any) -> tuple[str, ...]:
    began = time.thread_time()
    with pytest.raises(ArgumentsInvalid) as caught:
        parse(arguments)
    assert time.thread_time() - began < 2
    assert len(str(caught.value)) < 5000
    return caught.value.problems


def tree(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"op": "and", "left": leaf, "right": 1}
    return leaf


EXPRESSION = {
    "oneOf": [
        {"type": "integer"},
        *(
            {
                "type": "object",
                "properties": {
                    "op": {"const": op},
                    "left": {"$ref": "#/$defs/expression"},
                    "right": {"$ref": "#/$defs/expression"},
                },
                "required": ["op", "left", "right"],
            }
            for op in ("and", "or")
        ),
    ]
}


def test_a_wrong_leaf_of_a_deep_tree_of_alternatives_is_found_at_once() -> None:
    parse = parser_for_schema(
        {
            "type": "object",
            "properties": {"e": {"$ref": "#/$defs/expression"}},
            "$defs": {"expression": EXPRESSION},
        }
    )
    assert parse({"e": tree(45, 1)})
    assert refusal(parse, {"e": tree(45, "x")}) == ("e" + ".left" * 45 + ': expected int or object, got "x"',)


def test_alternatives_without_a_tag_end_in_time_too() -> None:
    node = {
        "type": "object",
        "properties": {"c": {"$ref": "#/$defs/n"}, "k": {"const": 1}},
        "anyOf": [
            {"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["z"]},
            {"properties": {"c": {"$ref": "#/$defs/n"}}},
        ],
    }
    parse = parser_for_schema(
        {"type": "object", "properties": {"v": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}
    )
    value: Any = {"k": 2}
    for _ in range(80):
        value = {"c": value}
    assert refusal(parse, {"v": value})[0] == "v" + ".c" * 80 + ".k: expected 1, got 2"


@pytest.mark.parametrize("inside", [False, True])
def test_parts_that_refer_to_their_parts_twice_end_in_time(inside: bool) -> None:
    def twice(number: int) -> dict[str, Any]:
        part = {"$ref": f"#/$defs/n{number}"}
        return {"allOf": [{"properties": {"c": part}} if inside else part] * 2}

    definitions = {f"n{number}": twice(number + 1) for number in range(40)} | {"n40": {"type": "object"}}
    parse = parser_for_schema(
        {"type": "object", "properties": {"v": {"$ref": "#/$defs/n0"}}, "$defs": definitions}
    )
    value: Any = {}
    for _ in range(40):
        value = {"c": value}
    assert refusal(parse, {"v": value})[0].startswith("arguments: the schema has more than")
    if inside:
        assert parse({"v": {"c": {}}}) == {"v": {"c": {}}}


def test_a_large_value_with_an_unknown_key_has_no_other_problem() -> None:
    alternatives = [{"type": "object", "properties": {key: {"type": "integer"}}} for key in ("a", "b")]
    parse = parser_for_schema(
        {"type": "object", "properties": {"xs": {"type": "array", "items": {"anyOf": alternatives}}}}
    )
    assert refusal(parse, {"xs": [{"a": 1}] * 9000 + [{"z": 1}]}) == ("xs[9000].z: unknown key; known: a, b",)


@pytest.mark.parametrize(
    "items",
    [
        {"type": "integer"},
        {"enum": [f"v{n}" for n in range(3000)]},
        {"anyOf": [{"type": "integer"}, {"const": True}]},
    ],
)
def test_a_long_array_of_wrong_items_is_told_by_its_first(items: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"xs": {"type": "array", "items": items}}}
    found = refusal(parser_for_schema(schema), {"xs": ["zz"] * 200_000})
    assert found[0].startswith("xs[0]: expected ")
    small = refusal(parser_for_schema(schema), {"xs": ["zz"] * 3})
    assert found[:3] == small


def test_a_long_array_in_alternatives_ends_in_time() -> None:
    lists = [{"type": "array", "items": {"type": one}} for one in ("integer", "boolean")]
    parse = parser_for_schema({"type": "object", "properties": {"xs": {"anyOf": lists}}})
    assert refusal(parse, {"xs": ["zz"] * 200_000}) == (
        "xs: fits none of 2 alternatives, got an array of 200000 items",
    )


def test_a_typed_tool_refuses_a_large_wrong_argument_at_once() -> None:
    found = refusal(parser_for(Items), {"many": [{"n": 1}] * 100_000 + [{"n": "x", "m": 1}]})
    assert found == (
        'many[100000].n: expected int, got "x"',
        "many[100000].m: unknown key; known: n",
    )


def test_own_rules_of_a_large_value_are_told() -> None:
    schema = {
        "type": "object",
        "properties": {
            "xs": {"type": "array", "maxItems": 10, "uniqueItems": True},
            "o": {
                "type": "object",
                "properties": {"a": {}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "s": {"type": "string"},
        },
        "required": ["q"],
        "additionalProperties": False,
    }
    found = refusal(
        parser_for_schema(schema),
        {"xs": [0] * 100_000, "o": {f"k{n}": n for n in range(50_000)}, "s": [[]] * 50_000, "z": 1},
    )
    assert "xs: expected at most 10 items, got an array of 100000 items" in found
    assert "xs: expected no item twice" in found
    assert "o.a: missing; it is required" in found
    assert "s: expected string, got an array of 50000 items" in found
    assert "q: missing; it is required" in found
    assert "z: unknown key; known: xs, o, s, q" in found or "z: unknown key; known: xs, o, s" in found


@pytest.mark.parametrize(
    "part",
    [
        {"type": "integer"},
        {"const": "b"},
        {"enum": ["b", "c"]},
        {"type": "string", "maxLength": 5},
        {"type": "string", "format": "date"},
        {"type": "string", "pattern": "^b"},
        {"not": {"type": "string"}},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"oneOf": [{"type": "string"}, {"minLength": 1}]},
        {"type": "array", "contains": {"type": "integer"}},
        {"allOf": [{"type": "string"}, {"maxLength": 3}]},
        False,
    ],
)
def test_a_megabyte_of_text_does_not_come_back_in_the_message(part: Any) -> None:
    text = "a" * 5_000_000
    parse = parser_for_schema({"type": "object", "properties": {"x": part}})
    for wrong in (text, [text], {text: text}):
        found = refusal(parse, {"x": wrong}) if not _fits(parse, wrong) else ()
        assert all(len(line) < 400 for line in found), found
    assert len(refusal(parse, {text: 1})[0]) < 400


def test_long_keys_and_words_of_the_author_are_cut() -> None:
    text = "a" * 1_000_000
    parse = parser_for_schema({"type": "object", "additionalProperties": {"type": "integer"}})
    assert len(str(refusal(parse, {text: "x"})[0])) < 400
    parse = parser_for_schema({"type": "object", "propertyNames": {"maxLength": 5}})
    assert len(str(refusal(parse, {text: "x"})[0])) < 400
    assert refusal(parser_for(Strict), {"name": text})[0].startswith("arguments: no such name: aaa")


def _fits(parse: Any, value: Any) -> bool:
    try:
        parse({"x": value})
    except ArgumentsInvalid:
        return False
    return True
