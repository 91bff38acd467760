"""A supplied schema is read by the draft that it names; one that names none is read as 2020-12."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema import parser_for_schema

D4 = "http://json-schema.org/draft-04/schema#"
D6 = "http://json-schema.org/draft-06/schema#"
D7 = "http://json-schema.org/draft-07/schema#"
D2019 = "https://json-schema.org/draft/2019-09/schema"
D2020 = "https://json-schema.org/draft/2020-12/schema"
INTEGER = {"type": "integer"}
TEXT = {"type": "string"}


def reading(draft: str | None, **schema: Any) -> Any:
    return parser_for_schema({**({"$schema": draft} if draft else {}), "type": "object", **schema})


def problems(parse: Any, arguments: Any) -> list[str]:
    """What is wrong with the arguments; nothing if they are taken."""
    try:
        parse(arguments)
    except ArgumentsInvalid as error:
        return list(error.problems)
    return []


# --- tuples ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draft", [D4, D6, D7, D2019, None])
def test_items_as_an_array_are_a_tuple(draft: str | None) -> None:
    at = {"type": "array", "items": [INTEGER, {"type": "object", "properties": {"b": TEXT}}]}
    parse = reading(draft, properties={"at": at})
    assert parse({"at": [1, {"b": "x"}, "anything"]})
    assert problems(parse, {"at": ["x"]}) == ['at[0]: expected int, got "x"']
    assert problems(parse, {"at": [1, {"c": 1}]}) == ["at[1].c: unknown key; known: b"]


@pytest.mark.parametrize("draft", [D4, D6, D7, D2019, None])
def test_additional_items_judge_what_comes_after_the_tuple(draft: str | None) -> None:
    rest = {"type": "object", "properties": {"n": {**INTEGER, "default": 7}}}
    parse = reading(
        draft,
        properties={
            "pair": {"type": "array", "items": [INTEGER, INTEGER], "additionalItems": False},
            "open": {"type": "array", "items": [INTEGER], "additionalItems": rest},
            "list": {"type": "array", "items": INTEGER, "additionalItems": False},
        },
    )
    assert parse({"pair": [1, 2], "open": [1, {}], "list": [1, 2, 3]})["open"] == [1, {"n": 7}]
    assert problems(parse, {"pair": [1, 2, 3]})
    assert problems(parse, {"open": [1, {"m": 1}]}) == ["open[1].m: unknown key; known: n"]


def test_a_reference_into_a_tuple_finds_its_item() -> None:
    parse = reading(
        D7,
        properties={
            "at": {"type": "array", "items": [INTEGER, {"type": "object", "properties": {"b": TEXT}}]},
            "same": {"$ref": "#/properties/at/items/1"},
            "rest": {"$ref": "#/properties/more/additionalItems"},
            "more": {"items": [True], "additionalItems": TEXT},
        },
    )
    assert parse({"same": {"b": "x"}, "rest": "x"})
    assert problems(parse, {"same": {"b": 1}}) == ["same.b: expected string, got 1"]
    assert problems(parse, {"same": {"c": 1}}) == ["same.c: unknown key; known: b"]
    assert problems(parse, {"rest": 1}) == ["rest: expected string, got 1"]


# --- dependencies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draft", [D4, D6, D7, D2019, D2020, None])
def test_a_dependency_with_a_schema_can_be_satisfied(draft: str | None) -> None:
    depends = {"a": {"type": "object", "properties": {"b": INTEGER}, "required": ["b"]}}
    parse = reading(draft, properties={"a": INTEGER}, dependencies=depends)
    assert parse({"a": 1, "b": 1})
    assert problems(parse, {"a": 1}) == ["b: missing; it is required"]
    assert problems(parse, {"a": 1, "b": 1, "c": 1}) == ["c: unknown key; known: a, b"]
    assert problems(parse, {"b": 1}) == ["b: unknown key; known: a"]


@pytest.mark.parametrize("draft", [D4, D7, None])
def test_a_dependency_with_keys_asks_for_them(draft: str | None) -> None:
    parse = reading(draft, properties={"a": INTEGER}, dependencies={"a": ["b"]})
    assert parse({"a": 1, "b": 1})
    assert problems(parse, {"a": 1})
    assert problems(parse, {"a": 1, "b": 1, "c": 1})


# --- names and references --------------------------------------------------------------------------------


@pytest.mark.parametrize(("draft", "key"), [(D4, "id"), (D6, "$id"), (D7, "$id")])
@pytest.mark.parametrize("name", ["pt", "p:t"])
def test_an_anchor_is_written_as_an_id(draft: str, key: str, name: str) -> None:
    point = {key: f"#{name}", "type": "object", "properties": {"x": INTEGER}}
    parse = reading(draft, properties={"at": {"$ref": f"#{name}"}}, definitions={"pt": point})
    assert parse({"at": {"x": 1}})
    assert problems(parse, {"at": {"x": "1"}}) == ['at.x: expected int, got "1"']
    assert problems(parse, {"at": {"y": 1}}) == ["at.y: unknown key; known: x"]


def test_draft_04_has_ids_and_exclusive_bounds() -> None:
    parse = reading(
        D4,
        id="http://example.com/root.json",
        properties={
            "id": TEXT,
            "n": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
            "at": {"$ref": "point.json"},
        },
        definitions={"p": {"id": "point.json", "type": "object", "properties": {"x": INTEGER}}},
    )  # fmt: skip
    assert parse({"id": "x", "n": 9, "at": {"x": 1}})
    assert problems(parse, {"n": 0}) == ["n: expected more than 0, got 0"]
    assert problems(parse, {"n": 10}) == ["n: expected 9 or less, got 10"]
    assert problems(parse, {"at": {"y": 1}}) == ["at.y: unknown key; known: x"]


@pytest.mark.parametrize("draft", [D4, D6, D7])
def test_what_stands_beside_a_reference_is_ignored_in_old_drafts(draft: str) -> None:
    said = {"$ref": "#/definitions/n", "maximum": 1, "description": "A number.", "default": 3}
    parse = reading(draft, properties={"n": said}, definitions={"n": INTEGER})
    assert parse({}) == {"n": 3}
    assert parse({"n": 5})
    assert problems(
        reading(D2019, properties={"n": {**said, "default": 0}}, definitions={"n": INTEGER}), {"n": 5}
    )


def test_2019_09_recurs() -> None:
    tree = {"properties": {"value": INTEGER, "down": {"type": "array", "items": {"$recursiveRef": "#"}}}}
    for anchor in ({}, {"$recursiveAnchor": True}, {"$recursiveAnchor": False}):
        parse = reading(D2019, **tree, **anchor)
        assert parse({"value": 1, "down": [{"down": [{"value": 2}]}]})
        assert problems(parse, {"down": [{"value": "x"}]}) == ['down[0].value: expected int, got "x"']
        assert problems(parse, {"down": [{"up": 1}]}) == ["down[0].up: unknown key; known: value, down"]


def test_2019_09_recurs_to_the_outermost_anchor() -> None:
    tree = {
        "$id": "tree", "$recursiveAnchor": True, "type": "object",
        "properties": {"down": {"type": "array", "items": {"$recursiveRef": "#"}}},
    }  # fmt: skip
    parse = reading(
        D2019, **{"$id": "http://example.com/coloured", "$recursiveAnchor": True, "$ref": "tree"},
        properties={"colour": TEXT}, **{"$defs": {"tree": tree}},
    )  # fmt: skip
    assert parse({"colour": "red", "down": [{"colour": "blue"}]})
    assert problems(parse, {"down": [{"colour": 1}]}) == ["down[0].colour: expected string, got 1"]


def test_a_part_may_name_a_draft_of_its_own() -> None:
    pair = {"$id": "http://example.com/pair", "$schema": D7, "type": "array", "items": [INTEGER, TEXT]}
    parse = reading(D2020, properties={"p": {"$ref": "http://example.com/pair"}}, **{"$defs": {"pair": pair}})
    assert parse({"p": [1, "x"]})
    assert problems(parse, {"p": [1, 2]}) == ["p[1]: expected string, got 2"]


# --- the edges -------------------------------------------------------------------------------------------


def test_keywords_that_a_draft_does_not_have_say_nothing_in_it() -> None:
    parse = reading(D4, properties={"n": {"const": 1}})
    assert parse({"n": 2})
    assert reading(D7, properties={"a": INTEGER}, dependentRequired={"a": ["b"]})({"a": 1})


def test_a_property_is_never_taken_for_a_keyword() -> None:
    names = ("items", "dependencies", "id", "$ref", "const", "exclusiveMinimum", "additionalItems")
    parse = reading(D4, properties={name: {"type": "array", "items": [INTEGER]} for name in names})
    assert parse({name: [1] for name in names})
    assert all(problems(parse, {name: ["x"]}) == [f'{name}[0]: expected int, got "x"'] for name in names)


def test_values_are_left_alone() -> None:
    value = {"items": [1], "dependencies": {"a": 1}, "id": "#x", "$ref": "nowhere"}
    parse = reading(D4, properties={"a": {"enum": [value]}, "b": {"default": value}})
    assert parse({"a": value}) == {"a": value, "b": value}


def test_a_schema_of_another_draft_that_does_not_say_so_is_told_how() -> None:
    with pytest.raises(ToolValidationError, match=r"properties\.n.*\$schema"):
        reading(None, properties={"n": {"minimum": 0, "exclusiveMinimum": True}})
    with pytest.raises(ToolValidationError, match=r"properties\.n"):
        reading(D7, properties={"n": {"minimum": 0, "exclusiveMinimum": True}})


CLASSES = {
    D4: jsonschema_rs.Draft4Validator,
    D6: jsonschema_rs.Draft6Validator,
    D7: jsonschema_rs.Draft7Validator,
    D2019: jsonschema_rs.Draft201909Validator,
}
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"items": [INTEGER, TEXT]}, {"items": [INTEGER], "additionalItems": TEXT},
    {"items": INTEGER, "additionalItems": TEXT},
    {"additionalItems": False},
    {"items": [{"minimum": 1}], "uniqueItems": True}, {"allOf": [{"items": [INTEGER]}, {"additionalItems": False}]},
    {"dependencies": {"a": ["b"], "b": {"minProperties": 3}}}, {"dependencies": {"a": {"not": {}}}},
    {"$ref": "#/definitions/n", "maximum": 1}, {"allOf": [{"$ref": "#/definitions/n"}], "maximum": 1},
    {"not": {"items": [INTEGER, TEXT]}}, {"anyOf": [{"items": [TEXT]}, {"items": [INTEGER, INTEGER]}]},
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    [], [1], ["x"], [1, "x"], [1, 1], [1, "x", "y"], [0, 2, "x"], 0, 5, "x",
    {}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1},
)  # fmt: skip


@pytest.mark.parametrize("draft", CLASSES)
def test_the_drafts_own_validator_agrees(draft: str) -> None:
    for schema in SCHEMAS:
        whole = {
            "$schema": draft, "type": "object", "definitions": {"n": INTEGER}, "properties": {"v": schema}
        }  # fmt: skip
        parse, judge = parser_for_schema(whole), CLASSES[draft](whole)
        for value in VALUES:
            assert (not problems(parse, {"v": value})) == judge.is_valid({"v": value}), (schema, value)
