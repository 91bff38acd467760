"""The result of a composition, from the results of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narratoria.errors import EFFECT_FAILED
from narratoria.events import JsonObject
from narratoria.tools.tool import Tool, ToolResult

AnyTool = Tool[Any, Any]


def together(
    tools: Sequence[AnyTool],
    results: Mapping[int, ToolResult[Any]],
    value: JsonObject,
    first: int | None = None,
) -> ToolResult[JsonObject]:
    """The result of the whole. `first` is the part whose failure stopped the others, else the first that failed. Its
    code is that of the whole, unless an effect failed.
    """
    failed = [index for index, result in results.items() if not result.success]
    if not failed:
        messages = "; ".join(result.message for result in results.values() if result.message)
        return ToolResult.ok(value, message=messages)
    index = failed[0] if first is None else first
    message = (
        f"{len(failed)} of {len(results)} tools failed, first {tools[index].name}: {results[index].message}"
    )
    error = results[index].failure
    for other in failed:
        effect = results[other].failure
        if effect is not None and effect.verdict == EFFECT_FAILED:
            if other != index:
                message += f"; then {effect.message}"
            error = effect  # that handler has done its work: no retry of the whole may run it again
            break
    return ToolResult.failed(
        message,
        code=error.code if error else "EXECUTION_FAILED",
        recoverable=error.recoverable if error else True,
        suggestions=error.suggestions if error else (),
        value=value,
        source=error.source if error else "tool",
    )


def labels_of(tools: Sequence[AnyTool]) -> list[str]:
    """The names of the tools; the second of one name is `name#2`."""
    seen: dict[str, int] = {}
    labels = []
    for tool in tools:
        seen[tool.name] = count = seen.get(tool.name, 0) + 1
        labels.append(tool.name if count == 1 else f"{tool.name}#{count}")
    return labels
