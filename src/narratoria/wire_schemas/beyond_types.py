"""Checks of the runtime that a type cannot declare, as JSON Schema.

`PlanDocument.from_json`, `load_manifest` and `Story.load` check more than a struct can declare; tests hold schema and
reader to the same verdicts. Rules that no schema can express are in the description: unique ids, known dependencies, no
cycles.
"""

from __future__ import annotations

from narratoria.events import JsonObject
from narratoria.narrator.roster import NARRATORS
from narratoria.run.plan_problems import LONGEST, MAX_ATTEMPT, MAX_BACKOFF_MS, MAX_CALLS, MAX_RETRIES
from narratoria.tools.contract import effects_schema, preconditions_schema
from narratoria.wire_schemas import descriptions as words


def request() -> JsonObject:
    """Return the schema of the request that a tool reads on standard input, our own fields included."""
    # 000 §6.
    types: dict[str, JsonObject] = {
        "requestId": {"type": "string"},
        "tool": {"type": "string"},
        "operation": {"type": "string"},
        "input": {"type": "object"},
        "dependencies": {"type": "object", "additionalProperties": {"type": ["object", "null"]}},
        "state": {"type": "object"},
    }
    properties = {
        name: {"description": words.FIELDS[f"Request.{name}"], **kind} for name, kind in types.items()
    }
    return {
        "title": "Request",
        "description": words.TITLES["Request"],
        "type": "object",
        "properties": properties,
        "required": ["requestId", "tool", "operation", "input"],
        "examples": words.EXAMPLES["Request"],
    }


def envelope(tags: list[str]) -> JsonObject:
    """Return the schema of the fields that all events have in common."""
    # 000 §3.
    return {
        "title": "Envelope",
        "description": words.TITLES["Envelope"],
        "type": "object",
        "properties": {
            "version": {"description": words.FIELDS["version"], "const": "0"},
            "type": {"description": words.FIELDS["type"], "enum": tags},
            "requestId": {"description": words.FIELDS["requestId"], "type": ["string", "null"]},
            "timestamp": {"description": words.FIELDS["timestamp"], "type": ["string", "null"]},
        },
        "required": ["version", "type"],
    }


def restrict_plan(document: JsonObject) -> None:
    """Add the bounds of `PlanDocument.from_json`. A plan from outside brings its own id."""
    document["required"] = ["requestId", "tools"]
    document["properties"]["requestId"]["minLength"] = 1
    for field in ("requestId", "narrative"):
        _longest(document["properties"][field], LONGEST[field])
    document["properties"]["tools"].pop("default")
    document["properties"]["tools"]["maxItems"] = MAX_CALLS
    definitions = document["$defs"]
    for field in ("toolId", "toolPath"):
        definitions["PlannedCall"]["properties"][field]["pattern"] = r"\S"
        _longest(definitions["PlannedCall"]["properties"][field], LONGEST[field])
    definitions["PlannedCall"]["properties"]["input"]["allOf"] = [{"$ref": "#/$defs/Value"}]
    definitions["Value"] = _value()
    _bound(definitions["PlanRetry"]["properties"]["maxRetries"], 0, MAX_RETRIES)
    _bound(definitions["PlanRetry"]["properties"]["backoffMs"], 0, MAX_BACKOFF_MS)
    _bound(definitions["PlanMetadata"]["properties"]["generationAttempt"], 1, MAX_ATTEMPT)


def _longest(field: JsonObject, characters: int) -> None:
    field["maxLength"] = characters


def _value() -> JsonObject:
    """Return the schema of an input value: data, in which an object with `$from` is a reference and one with
    `$literal` is data.
    """
    path = {"type": ["string", "array", "null"], "items": {"type": ["string", "integer"]}}
    marks = {
        "$from": {"$from": {"type": "string"}, "path": path, "default": True},
        "$literal": {"$literal": True},
    }
    return {
        "title": "Value",
        "description": words.TITLES["Value"],
        "items": {"$ref": "#/$defs/Value"},
        "if": {"required": ["$from"]},
        "then": {"properties": marks["$from"], "additionalProperties": False},
        "else": {
            "if": {"required": ["$literal"]},
            "then": {"properties": marks["$literal"], "additionalProperties": False},
            "else": {"additionalProperties": {"$ref": "#/$defs/Value"}},
        },
    }


def _bound(field: JsonObject, low: int, high: int) -> None:
    field.update(minimum=low, maximum=high)


def complete_result(document: JsonObject) -> None:
    """Make every specified field of a result required, as we write them all; fields of our own may be missing."""
    for schema, ours in ((document, ()), (document["$defs"]["CallResult"], ("suggestions",))):
        schema["required"] = [name for name in schema["properties"] if name not in ours]
        for field in schema["properties"].values():
            field.pop("default", None)


def restrict_manifest(document: JsonObject) -> None:
    """Replace the bare objects of contract and retry with their own schemas; they have parsers of their own."""
    properties = document["properties"]
    properties["preconditions"].update(preconditions_schema())
    properties["effects"].update(effects_schema())
    properties["parameters"]["$ref"] = document["$schema"]
    said = properties["retry"]["description"]
    properties["retry"] = {"description": said, "anyOf": [{"$ref": "#/$defs/Retry"}, {"type": "null"}]}


def restrict_story(document: JsonObject) -> None:
    """Name the narrators there are, and describe a server of the table `mcp`."""
    properties = document["properties"]
    properties["narrator"]["items"]["enum"] = list(NARRATORS)
    for key, one in (("mcp", "Server"), ("openapi", "Api")):
        for option in properties[key]["anyOf"]:
            if option["type"] == "object":
                option["additionalProperties"] = {"$ref": f"#/$defs/{one}"}
    document["$defs"]["Api"]["properties"]["tools"]["additionalProperties"] = {"$ref": "#/$defs/ToolSettings"}
    texts = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
    types: dict[str, JsonObject] = {
        "command": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
        "env": texts,
        "cwd": {"type": "string"},
        "url": {"type": "string"},
        "headers": texts,
        "type": {"type": "string", "examples": ["stdio", "http", "sse"]},
        "disabled": {"type": "boolean"},
        "narratoria": {"$ref": "#/$defs/ServerSettings"},
    }
    document["$defs"]["Server"] = {
        "title": "Server",
        "description": words.TITLES["Server"],
        "type": "object",
        "properties": {
            name: {"description": words.FIELDS[f"Server.{name}"], **kind} for name, kind in types.items()
        },
    }


def restrict_rules(document: JsonObject) -> None:
    """Require what `Rules.from_toml` requires: a rule, and in each a pattern."""
    document["required"] = ["rule"]
    document["properties"]["rule"].update(minItems=1)
    document["properties"]["rule"].pop("default", None)
    for option in document["$defs"]["Rule"]["properties"]["patterns"]["anyOf"]:
        if option["type"] == "array":
            option["minItems"] = 1
