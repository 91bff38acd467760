"""The tools as MCP lists them. Each is rendered once, and the whole list once for each revision of the protocol."""

from __future__ import annotations

from typing import Any, Final

import jsonschema_rs
import msgspec

from narratoria.errors import ToolValidationError
from narratoria.events import JsonObject
from narratoria.mcp_server.annotations import annotations_of
from narratoria.run.registry import ToolRegistry
from narratoria.tools import schema
from narratoria.tools.tool import Tool

WRAPPED: Final = "result"
"""The key under which a result that is no object is given: structured content is an object in 2025-11-25."""


class Listed(msgspec.Struct, frozen=True):
    """One tool as it is listed."""

    tool: Tool[Any, Any]
    data: JsonObject
    structured: bool
    """True if it has an output schema, so that every result has structured content."""
    wrapped: bool
    may_be_empty: bool
    """True if its output schema is kept by a result without a value."""


class Catalogue:
    """The tools of a registry in the order of their names, and those of the server itself behind them."""

    def __init__(self, registry: ToolRegistry, own: tuple[JsonObject, ...] = ()) -> None:
        self._registry = registry
        self._own = own
        self._listed: dict[str, Listed] = {}
        self._made_of: tuple[Tool[Any, Any], ...] = ()
        self._pages: dict[str, JsonObject] = {}

    def get(self, name: str) -> Listed | None:
        """The tool of that name as it is listed."""
        tool = self._registry.tools.get(name)
        if tool is None:
            return None
        known = self._listed.get(name)
        if known is None or known.tool is not tool:
            known = self._listed[name] = listed(tool)
        return known

    def tools(self) -> list[JsonObject]:
        """All tools: the same list, in the same order, as long as the registry does not change."""
        tools = self._registry.tools
        return [*(self.get(name).data for name in sorted(tools)), *self._own]  # type: ignore[union-attr]

    def page(self, version: str) -> JsonObject | None:
        """The answer that was given last to a client of this revision, if it still holds."""
        if self._made_of != tuple(self._registry.tools.values()):
            return None
        return self._pages.get(version)

    def keep(self, version: str, page: JsonObject) -> None:
        """Keep an answer, to give it again."""
        made_of = tuple(self._registry.tools.values())
        if made_of != self._made_of:
            self._pages.clear()
            self._made_of = made_of
        self._pages[version] = page


def listed(tool: Tool[Any, Any]) -> Listed:
    """Render a tool. Its description is passed on whole."""
    data: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.parameters),
    }
    if tool.title is not None:
        data["title"] = tool.title
    output, wrapped = output_schema(tool)
    if output is not None:
        data["outputSchema"] = output
    if hints := annotations_of(tool):
        data["annotations"] = hints
    contract: JsonObject = {
        "preconditions": [one.description for one in tool.preconditions],
        "effects": [one.description for one in tool.effects],
    }
    if told := {f"narratoria/{key}": value for key, value in contract.items() if value}:
        data["_meta"] = told
    nothing: JsonObject = {WRAPPED: None} if wrapped else {}
    may_be_empty = output is None or jsonschema_rs.is_valid(output, nothing)
    return Listed(tool, data, output is not None, wrapped, may_be_empty)


def output_schema(tool: Tool[Any, Any]) -> tuple[JsonObject | None, bool]:
    """The schema of the declared result, and whether results are wrapped; None where no type is declared."""
    declared = tool.result_type
    if declared is Any or declared is None or declared is type(None):
        return None, False
    try:
        made: JsonObject = schema.schema_for(declared)
    except ToolValidationError:
        try:
            made = msgspec.json.schema(declared)
        except (TypeError, NameError, ValueError, AttributeError):
            return None, False
    if not made:
        return None, False
    if made.get("type") == "object":
        return made, False
    definitions = made.pop("$defs", None)
    whole: JsonObject = {
        "type": "object",
        "properties": {WRAPPED: made},
        "required": [WRAPPED],
        "additionalProperties": False,
    }
    if definitions:
        whole["$defs"] = definitions
    return whole, True
