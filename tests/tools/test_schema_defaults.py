"""Defaults that bring in other defaults end, however a schema doubles them."""

from __future__ import annotations

from typing import Any

import pytest

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema import parser_for_schema


def doubling(levels: int) -> dict[str, Any]:
    """Each definition refers twice to the one below it, both times with a default."""
    definitions: dict[str, Any] = {
        "D0": {"type": "object", "properties": {"v": {"type": "integer", "default": 1}}}
    }
    for level in range(1, levels):
        below = {"$ref": f"#/$defs/D{level - 1}", "default": {}}
        definitions[f"D{level}"] = {"type": "object", "properties": {"left": below, "right": dict(below)}}
    top = {"x": {"$ref": f"#/$defs/D{levels - 1}"}}
    return {"type": "object", "$defs": definitions, "properties": top}


def test_defaults_that_double_at_each_level_are_refused_when_the_tool_is_defined() -> None:
    with pytest.raises(ToolValidationError, match=r"tool 'lamp': the default of .* brings in other defaults"):
        parser_for_schema(doubling(40), name="lamp")


def test_a_few_levels_of_defaults_are_filled_in() -> None:
    leaf = {"v": 1}
    pair = {"left": leaf, "right": leaf}
    assert parser_for_schema(doubling(3))({"x": {}}) == {"x": {"left": pair, "right": pair}}


def test_a_long_chain_of_defaults_is_refused() -> None:
    definitions: dict[str, Any] = {f"D{level}": {
        "type": "object", "properties": {"next": {"$ref": f"#/$defs/D{level + 1}", "default": {}}}
    } for level in range(3_000)}  # fmt: skip
    definitions["D3000"] = {"type": "object"}
    schema = {"type": "object", "$defs": definitions, "properties": {"x": {"$ref": "#/$defs/D0"}}}
    with pytest.raises(ToolValidationError, match="more than 100 deep"):
        parser_for_schema(schema)


def test_a_value_that_two_parts_describe_is_filled_in_once_at_each_level() -> None:
    part = {"properties": {"x": {"$ref": "#/$defs/node"}}}
    node = {"type": "object", "allOf": [part, dict(part)], "properties": {"v": {"default": 1}}}
    parse = parser_for_schema(
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    )
    given: dict[str, Any] = {}
    for _ in range(15):
        given = {"x": given}
    filled = parse(given)["x"]
    for _ in range(13):
        assert filled["v"] == 1
        filled = filled["x"]


def test_defaults_add_only_so_much_to_one_call() -> None:
    item = {"type": "object", "properties": {"all": {"default": [0] * 4_000}}}
    parse = parser_for_schema({"type": "object", "properties": {"items": {"type": "array", "items": item}}})
    assert len(parse({"items": [{}] * 9})["items"][8]["all"]) == 4_000
    with pytest.raises(ArgumentsInvalid, match="defaults would add more than 200,000 values"):
        parse({"items": [{}] * 100})
