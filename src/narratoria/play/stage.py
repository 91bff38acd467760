"""The tool that carries out `set` and `choices` of a story's rules. It comes with the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from narratoria.tools.context import ToolContext
from narratoria.tools.tool import Tool, ToolResult

NAME: Final = "stage"


def _carry_out(params: Mapping[str, Any], *, context: ToolContext) -> ToolResult[None]:
    if params.get("patch"):
        context.patch(params["patch"])
    if params.get("choices"):
        context.choices(*params["choices"])
    return ToolResult.ok(None)


stage: Final[Tool[Any, None]] = Tool(
    name=NAME,
    description="Carries out what a rule of the story says itself: changes state, offers choices.",
    handler=_carry_out,
    parameters={
        "type": "object",
        "properties": {
            "patch": {"type": "object", "description": "A merge patch."},
            "choices": {"type": "array", "items": {"type": "string"}, "description": "What to offer."},
        },
        "additionalProperties": False,
    },
    timeout=10.0,
    approval="never",  # it is a part of the rule; a story that wants to be asked names it
)
