"""The effects of a call that succeeded, applied in order; an effect may trigger another tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import EXECUTION_FAILED
from narratoria.events import JsonObject
from narratoria.run import outcomes, records
from narratoria.tools import contract

if TYPE_CHECKING:
    from narratoria.run.executor import ToolExecutor
    from narratoria.tools.tool import Tool, ToolContext, ToolResult

MAX_CASCADES: Final = 8  # of effects that trigger tools whose effects trigger tools


async def apply_effects(
    executor: ToolExecutor, tool: Tool[Any, Any], params: Any, context: ToolContext, result: ToolResult[Any]
) -> None:
    """Run step 7 of the pipeline. If it raises, dropping the context's draft takes back what was applied."""

    async def cascade(name: str, args: JsonObject) -> ToolResult[Any]:
        draft = context.session
        if draft.cascades >= MAX_CASCADES:
            return outcomes.failure(
                EXECUTION_FAILED,
                f"cascades are nested {MAX_CASCADES} deep, which is the limit. Do they trigger each other?",
                recoverable=False,
            )
        draft.cascading = True
        try:
            return await executor.execute(name, args, session=draft)
        finally:
            draft.cascading = False

    def keep(one: contract.AppliedEffect) -> None:
        if one.effect.reaches_outside:  # the others go with the draft
            context.session.applied.append((one, context))
            context.session.effects.append(records.effect_applied(tool, context, one))

    await contract.apply_effects(tool.effects, context, result, params, cascade, keep)
