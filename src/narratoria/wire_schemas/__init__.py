"""The wire formats as files for other languages, generated from the types that decode them.

`documents()` returns each file's text; `python -m narratoria.wire_schemas DIR` writes them. The types give the fields
and which of them are required; `beyond_types` adds the checks a type cannot declare, `descriptions` the text for each
field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from narratoria.events import Asset, Done, JsonObject, Log, StatePatch, ToolErrorEvent, UiEvent
from narratoria.kinds.manifest import Manifest
from narratoria.kinds.mcp.server_file import ServerSettings
from narratoria.kinds.openapi.api_file import ApiSettings
from narratoria.narrator.rules.rule_tables import RulesTable
from narratoria.play.story_keys import StoryTable
from narratoria.run.plan import ExecutionResult, PlanDocument
from narratoria.tools.retry import RetryData
from narratoria.wire_schemas import beyond_types as rules
from narratoria.wire_schemas import descriptions as words
from narratoria.wire_schemas import story_words, yaml

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_NAMES: Final = {
    "Log": "LogEvent",
    "StatePatch": "StatePatchEvent",
    "Asset": "AssetEvent",
    "UiEvent": "UiEvent",
    "ToolErrorEvent": "ErrorEvent",
    "Done": "DoneEvent",
    "RetryData": "Retry",
    "ManifestExample": "Example",
    "StoryTable": "Story",
    "OpeningTable": "Opening",
    "CoverTable": "Cover",
    "PanelTable": "Panel",
    "FactTable": "Fact",
    "RulesTable": "Rules",
    "RuleTable": "Rule",
    "CaseTable": "Case",
    "ApiSettings": "Api",
    "CallTemplate": "RuleCall",
    "LanguageTable": "Language",
}
_EVENTS: Final = (Log, StatePatch, Asset, UiEvent, ToolErrorEvent, Done)


# --- the documents -------------------------------------------------------------------------------------


def tool_protocol() -> JsonObject:
    """OpenAPI 3.1: the request on a tool's standard input, and the six events on its standard output."""
    prefix = "#/components/schemas/"
    schemas = _components(_EVENTS, prefix)
    tags = {str(cls.__struct_config__.tag): _NAMES[cls.__name__] for cls in _EVENTS}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Narratoria tool protocol", "version": "0", "description": words.PROTOCOL},
        "jsonSchemaDialect": _DIALECT,
        "paths": {},
        "components": {
            "schemas": {
                "Request": rules.request(),
                "Envelope": rules.envelope(list(tags)),
                "Event": {
                    "title": "Event",
                    "description": words.TITLES["Event"],
                    "oneOf": [{"$ref": prefix + name} for name in tags.values()],
                    "discriminator": {
                        "propertyName": "type",
                        "mapping": {tag: prefix + name for tag, name in tags.items()},
                    },
                },
                **schemas,
            }
        },
    }


def plan_json() -> JsonObject:
    document = _document("plan-json", PlanDocument)
    rules.restrict_plan(document)
    document["examples"] = [words.PLAN_EXAMPLE]
    return document


def execution_result() -> JsonObject:
    document = _document("execution-result", ExecutionResult)
    rules.complete_result(document)
    return document


def tool_manifest() -> JsonObject:
    document = _document("tool-manifest", Manifest)
    document["$defs"].update(_components([RetryData], "#/$defs/"))
    rules.restrict_manifest(document)
    document["examples"] = [words.MANIFEST_EXAMPLE]
    return document


def story_toml() -> JsonObject:
    document = _document("story-toml", StoryTable)
    document["$defs"].update(_components([ServerSettings, ApiSettings], "#/$defs/"))
    rules.restrict_story(document)
    document["examples"] = [story_words.STORY_EXAMPLE]
    return document


def narrator_toml() -> JsonObject:
    document = _document("narrator-toml", RulesTable)
    rules.restrict_rules(document)
    document["examples"] = [story_words.RULES_EXAMPLE]
    return document


CONTRACTS: Final[Mapping[str, tuple[str, Callable[[], JsonObject]]]] = {
    "tool-protocol": ("tool-protocol.openapi.yaml", tool_protocol),
    "plan-json": ("plan-json.schema.json", plan_json),
    "execution-result": ("execution-result.schema.json", execution_result),
    "tool-manifest": ("tool-manifest.schema.json", tool_manifest),
    "story-toml": ("story-toml.schema.json", story_toml),
    "narrator-toml": ("narrator-toml.schema.json", narrator_toml),
}


def text_of(name: str) -> str:
    """The text of a contract by its short name; raises `KeyError` for another."""
    file, make = CONTRACTS[name]
    data = make()
    if file.endswith(".yaml"):
        return yaml.dump(data)
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def documents() -> dict[str, str]:
    """Every contract: file name → text."""
    return {file: text_of(name) for name, (file, _) in CONTRACTS.items()}


# --- from types to schemas -----------------------------------------------------------------------------


def _document(name: str, cls: type[Any]) -> JsonObject:
    """A JSON Schema whose root is `cls` itself, with what it refers to in `$defs`."""
    components = _components([cls], "#/$defs/")
    root = components.pop(_name(cls.__name__))
    return {
        "$schema": _DIALECT,
        "$id": f"urn:narratoria:contract:{name}:0",
        **root,
        "$defs": components,
    }


def _components(classes: Any, prefix: str) -> dict[str, JsonObject]:
    _, found = msgspec.json.schema_components(classes, ref_template=prefix + "{name}")
    return {_name(name): _rewritten(schema, _name(name), prefix) for name, schema in found.items()}


def _name(name: str) -> str:
    return _NAMES.get(name, name)


def _rewritten(schema: JsonObject, name: str, prefix: str) -> JsonObject:
    """Return a schema of msgspec's in the form people write them, with a description for every field."""
    made: JsonObject = _simplified(schema, prefix)
    made["title"] = name
    made["description"] = words.TITLES.get(name) or _first_line(schema) or _undescribed(name)
    for field, inner in made.get("properties", {}).items():
        said = words.FIELDS.get(f"{name}.{field}") or words.FIELDS.get(field) or inner.get("description")
        said = said or _undescribed(f"{name}.{field}")
        made["properties"][field] = {
            "description": said,
            **{k: v for k, v in inner.items() if k != "description"},
        }
    if name in words.EXAMPLES:
        made["examples"] = words.EXAMPLES[name]
    if not made.get("required", True):
        del made["required"]
    return made


def _first_line(schema: JsonObject) -> str:
    """The first sentence of a class's docstring, which msgspec puts into its schema."""
    return str(schema.get("description", "")).partition("\n")[0]


def _undescribed(what: str) -> str:
    raise LookupError(
        f"the contracts do not say what {what} is: add it to {words.__name__}, or describe it where it is defined "
        f"(a docstring, or msgspec.Meta(description=…))"
    )


def _simplified(node: Any, prefix: str) -> Any:
    if isinstance(node, list):
        return [_simplified(item, prefix) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: _simplified(value, prefix) for key, value in node.items() if key != "discriminator"}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = prefix + _name(made["$ref"].removeprefix(prefix))
    if isinstance(made.get("enum"), list) and len(made["enum"]) == 1:
        made["const"] = made.pop("enum")[0]
    if "default" in made and made["default"] is None:
        del made["default"]
    return _with_null_in_type(made)


def _with_null_in_type(schema: JsonObject) -> JsonObject:
    """`anyOf: [{type: string}, {type: null}]` as `type: [string, null]`."""
    options = schema.get("anyOf")
    if isinstance(options, list) and len(options) == 2 and options[1] == {"type": "null"}:
        first = options[0]
        if isinstance(first, dict) and isinstance(first.get("type"), str):
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return {**rest, **first, "type": [first["type"], "null"]}
    return schema
