"""Patterns of JSON Schemas: their time is bounded, whatever the pattern and the text."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from narratoria.errors import ArgumentsInvalid
from narratoria.tools.schema import parser_for, parser_for_schema

LARGE = "(.{0,300}){0,20}x$"
LETTERS = r"^\p{L}{1,100}$"
PASSWORD = r"^(?=.*[A-Z])(?=.*\d).{8,}$"


def holding(pattern: str, place: str) -> tuple[dict[str, Any], Any]:
    """A schema with the pattern at a place, and a function from a text to arguments that meet it there."""
    text: dict[str, Any] = {"type": "string", "pattern": pattern}
    top: dict[str, Any] = {"type": "object", "properties": {"x": text}}
    if place == "properties":
        return top, lambda one: {"x": one}
    if place == "items":
        top["properties"]["x"] = {"type": "array", "items": text}
        return top, lambda one: {"x": ["short", one]}
    if place == "$defs":
        return {**top, "properties": {"x": {"$ref": "#/$defs/t"}}, "$defs": {"t": text}}, lambda one: {
            "x": one
        }
    if place == "anyOf":
        top["properties"]["x"] = {"anyOf": [{"type": "integer"}, text]}
        return top, lambda one: {"x": one}
    if place == "not":
        top["properties"]["x"] = {"not": text}
        return top, lambda one: {"x": one}
    if place == "propertyNames":
        return {"type": "object", "propertyNames": {"pattern": pattern}}, lambda one: {one: 1}
    if place == "patternProperties":
        return {"type": "object", "patternProperties": {pattern: {}}}, lambda one: {one: 1}
    assert place == "draft-07 definitions"
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **top,
        "properties": {"x": {"$ref": "#/definitions/t"}},
        "definitions": {"t": text},
    }, lambda one: {"x": one}


@pytest.mark.parametrize(
    "place",
    [
        "properties",
        "items",
        "$defs",
        "anyOf",
        "not",
        "propertyNames",
        "patternProperties",
        "draft-07 definitions",
    ],
)
@pytest.mark.parametrize("pattern", [LARGE, "(?=a)(.{0,300}){0,5}x$", "(([ab]?){100}){100}[0-9]"])
def test_a_large_pattern_refuses_a_long_text_at_once(pattern: str, place: str) -> None:
    schema, arguments = holding(pattern, place)
    parse = parser_for_schema(schema)
    began = time.thread_time()
    with pytest.raises(ArgumentsInvalid, match="too long to match"):
        parse(arguments("a" * 1_000_000))
    assert time.thread_time() - began < 0.5


@pytest.mark.parametrize(
    ("pattern", "fitting", "wrong"),
    [
        (LARGE, "a" * 200 + "x", "a" * 200),
        (LETTERS, "é" * 100, "é" * 101),
        (PASSWORD, "Passw0rd" * 1000, "password" * 1000),
        (r"^(?!.*\.\.)[a-z.]+$", "a.b" * 10_000, "a..b" * 10_000),
        ("^[a-z]+$", "a" * 200_000, "a" * 200_000 + "!"),
        (r"(\w+) \1", "again again", "again once"),
    ],
)
def test_a_pattern_is_matched_within_its_bounds(pattern: str, fitting: str, wrong: str) -> None:
    parse = parser_for_schema({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}})
    assert parse({"x": fitting}) == {"x": fitting}
    with pytest.raises(ArgumentsInvalid) as caught:
        parse({"x": wrong})
    assert caught.value.problems[0].startswith(f"x: expected text matching {pattern}, got ")
    assert len(str(caught.value)) < 300


def test_a_long_text_beside_a_large_pattern_is_no_matter_of_it() -> None:
    parse = parser_for_schema(
        {
            "type": "object",
            "properties": {"name": {"type": "string", "pattern": LETTERS}, "page": {"type": "string"}},
        }
    )
    arguments = {"name": "Zoë", "page": "a" * 5_000_000}
    assert parse(arguments) == arguments


def test_many_short_texts_are_matched() -> None:
    parse = parser_for_schema(
        {
            "type": "object",
            "properties": {"xs": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+[0-9]*$"}}},
        }
    )
    arguments = {"xs": [f"name{n}" for n in range(100_000)]}
    assert parse(arguments) == arguments


def test_many_patterns_of_keys_are_matched() -> None:
    parse = parser_for_schema({"type": "object", "patternProperties": {f"^k{n}_": {} for n in range(200)}})
    arguments = {f"k{n % 200}_{n}": 1 for n in range(3000)}
    assert parse(arguments) == arguments


def test_what_looks_like_a_pattern_in_a_value_is_none() -> None:
    value = {"pattern": "(", "patternProperties": {"[": 1}, "format": "regex"}
    parse = parser_for_schema({"type": "object", "properties": {"x": {"const": value}, "pattern": {}}})
    assert parse({"x": value, "pattern": "("}) == {"x": value, "pattern": "("}


@pytest.mark.parametrize("place", ["items", "patternProperties"])
def test_many_texts_that_step_back_end_in_time(place: str) -> None:
    pattern = "^(.*a.*)*(?=b)c"
    texts = [f"{'a' * 40}{n}" for n in range(2000)]
    if place == "items":
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {"x": {"type": "array", "items": {"pattern": pattern}}},
        }
        arguments: dict[str, Any] = {"x": texts}
    else:
        schema = {"type": "object", "patternProperties": {pattern: {}}}
        arguments = dict.fromkeys(texts, 1)
    parse = parser_for_schema(schema)
    began = time.thread_time()
    with pytest.raises(ArgumentsInvalid):
        parse(arguments)
    assert time.thread_time() - began < 4


def test_a_text_on_which_a_pattern_steps_back_too_often_is_a_problem_of_the_caller() -> None:
    parse = parser_for_schema(
        {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(.*a.*)*(?=b)c"}}}
    )
    with pytest.raises(ArgumentsInvalid, match="x: takes too many steps to match; give a shorter text, got"):
        parse({"x": "a" * 100})


def test_texts_that_have_to_be_expressions_are_bounded() -> None:
    parse = parser_for_schema(
        {
            "type": "object",
            "properties": {"xs": {"type": "array", "items": {"type": "string", "format": "regex"}}},
        }
    )
    assert parse({"xs": ["^a+$", "(?=b)"]}) == {"xs": ["^a+$", "(?=b)"]}
    with pytest.raises(ArgumentsInvalid, match=r"xs\[0\]: expected a regex, got"):
        parse({"xs": ["("]})
    began = time.thread_time()
    with pytest.raises(ArgumentsInvalid):
        parse({"xs": [LARGE + str(n) for n in range(5000)]})
    assert time.thread_time() - began < 4


def test_bytes_of_any_length_are_base64() -> None:
    class Upload(msgspec.Struct):
        content: bytes

    assert len(parser_for(Upload)({"content": "QUFB" * 1_000_000}).content) == 3_000_000
