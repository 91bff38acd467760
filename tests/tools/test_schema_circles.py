"""References that come back to the same value are refused, however they are written, and no others are."""

from __future__ import annotations

from typing import Any

import pytest

from narratoria.errors import ToolValidationError
from narratoria.tools.schema import parser_for_schema


def of(x: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": x}, **more}


CIRCLES: dict[str, dict[str, Any]] = {
    "pointer": of({}, allOf=[{"$ref": "#"}]),
    "anchor": of({"$anchor": "a", "$ref": "#a"}),
    "two anchors": of({"$anchor": "a", "anyOf": [{"$ref": "#b"}, {"$anchor": "b", "not": {"$ref": "#a"}}]}),
    "dynamic anchor": of({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}),
    "address": of({"$id": "http://e/x", "not": {"$ref": "http://e/x"}}),
    "relative address": of({}, **{"$id": "http://e/s", "if": {"$ref": "s"}}),
    "root of a resource": of({"$id": "http://e/x", "allOf": [{"$ref": "#"}]}),
    "2019-09": of(
        {},
        **{
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "allOf": [{"$recursiveRef": "#"}],
        },
    ),
    "draft 7": of(
        {"$id": "#a", "allOf": [{"$ref": "#a"}]}, **{"$schema": "http://json-schema.org/draft-07/schema#"}
    ),
    "draft 4": of(
        {"id": "#a", "allOf": [{"$ref": "#a"}]}, **{"$schema": "http://json-schema.org/draft-04/schema#"}
    ),
}


@pytest.mark.parametrize("schema", CIRCLES.values(), ids=CIRCLES.keys())
def test_a_circle_at_the_same_value_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(
        ToolValidationError, match=r"\$ref .* → .* comes back to itself at the same value"
    ) as refused:
        parser_for_schema(schema)
    assert "narratoria-" not in str(refused.value)


LEAF = {"$id": "http://e/leaf", "allOf": [{"$ref": "#/$defs/q"}], "$defs": {"q": {"type": "integer"}}}
DATA = {"$ref": "#/properties/x"}
FINE: dict[str, tuple[dict[str, Any], Any]] = {
    "a part of the value": (of({"$ref": "#r"}, **{"$anchor": "r"}), {}),
    "a resource of its own": (
        of({"$ref": "http://e/leaf"}, **{"$defs": {"l": LEAF, "q": {"$ref": "#/$defs/l"}}}),
        1,
    ),
    "const": (of({"const": DATA}), DATA),
    "enum": (of({"enum": [DATA]}), DATA),
    "default": (of({"type": "object", "default": DATA}), DATA),
    "examples": (of({"type": "object", "examples": [DATA]}), {}),
}


@pytest.mark.parametrize(("schema", "value"), FINE.values(), ids=FINE.keys())
def test_what_only_looks_like_a_circle_is_not_refused(schema: dict[str, Any], value: Any) -> None:
    assert parser_for_schema(schema)({"x": value}) == {"x": value}
