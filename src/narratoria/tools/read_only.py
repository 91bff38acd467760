"""Tools that declare to change nothing are held to it: a call that would change the session fails."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from narratoria.errors import EXECUTION_FAILED, CallFailure


def held_to_reading(handler: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """Return a handler that fails where its call has changed something at the end. Assets are results, not changes."""
    if is_async:

        @functools.wraps(handler)
        async def reading(params: Any, *, context: Any) -> Any:
            return _checked(await handler(params, context=context), context)

        return reading

    @functools.wraps(handler)
    def reading_at_once(params: Any, *, context: Any) -> Any:
        return _checked(handler(params, context=context), context)

    return reading_at_once


def _checked(result: Any, context: Any) -> Any:
    changed = context.session.changed_part()
    if changed is None:
        return result
    raise CallFailure(
        EXECUTION_FAILED,
        f"{context.tool.name} is declared as one that changes nothing, but it would change {changed}; nothing was kept",
        recoverable=False,
        suggestions=[
            "say it in the summary or in the result instead, or take `readOnly` (in Python `read_only`) out"
        ],
    )
