"""Tools from typed Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from narratoria.tools.retry import RetryPolicy
from narratoria.tools.tool import Tool, ToolExample

if TYPE_CHECKING:
    from narratoria.tools.contract import Effect, Precondition


class ToolOptions(TypedDict, total=False):
    """Options of a tool beside its handler; the defaults are those of `Tool`."""

    examples: Sequence[ToolExample[Any, Any]]
    accepts_overrides: bool
    timeout: float | None
    retry: RetryPolicy
    preconditions: Sequence[Precondition]
    effects: Sequence[Effect]
    inline: bool
    skill: str | None


def function_tool(
    handler: Callable[..., Any],
    *,
    description: str | None = None,
    name: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool[Any, Any]:
    """A tool whose params and result types are the handler's annotations.

    Name and description default to the function's name and the first line of its docstring.
    """
    return Tool(
        name or str(getattr(handler, "__name__", type(handler).__name__)),
        description or (inspect.getdoc(handler) or "").partition("\n")[0],
        handler,
        **options,
    )


def tool(
    *, description: str | None = None, name: str | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[..., Any]], Tool[Any, Any]]:
    """Decorate a handler to make it a tool: `@tool(description="Light something that burns.")`."""

    def decorate(handler: Callable[..., Any]) -> Tool[Any, Any]:
        return function_tool(handler, description=description, name=name, **options)

    return decorate
