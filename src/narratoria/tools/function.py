"""Tools from typed Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from narratoria.retry import RetryPolicies, RetryPolicy
from narratoria.tool import DEFAULT_TIMEOUT, Tool, ToolExample

if TYPE_CHECKING:
    from narratoria.contract import Effect, Precondition


def function_tool(
    handler: Callable[..., Any],
    *,
    description: str | None = None,
    name: str | None = None,
    examples: Sequence[ToolExample[Any, Any]] = (),
    accepts_overrides: bool = True,
    timeout: float | None = DEFAULT_TIMEOUT,
    retry: RetryPolicy = RetryPolicies.NONE,
    preconditions: Sequence[Precondition] = (),
    effects: Sequence[Effect] = (),
    inline: bool = False,
    skill: str | None = None,
) -> Tool[Any, Any]:
    """A tool whose params and result types are the handler's annotations.

    Name and description default to the function's name and the first line of its docstring.
    """
    return Tool(
        name or str(getattr(handler, "__name__", type(handler).__name__)),
        description or (inspect.getdoc(handler) or "").partition("\n")[0],
        handler,
        examples,
        accepts_overrides,
        timeout=timeout,
        retry=retry,
        preconditions=preconditions,
        effects=effects,
        inline=inline,
        skill=skill,
    )


def tool(
    *,
    description: str | None = None,
    name: str | None = None,
    examples: Sequence[ToolExample[Any, Any]] = (),
    accepts_overrides: bool = True,
    timeout: float | None = DEFAULT_TIMEOUT,
    retry: RetryPolicy = RetryPolicies.NONE,
    preconditions: Sequence[Precondition] = (),
    effects: Sequence[Effect] = (),
    inline: bool = False,
    skill: str | None = None,
) -> Callable[[Callable[..., Any]], Tool[Any, Any]]:
    """Decorate a handler to make it a tool: `@tool(description="Light something that burns.")`."""

    def decorate(handler: Callable[..., Any]) -> Tool[Any, Any]:
        return function_tool(
            handler,
            description=description,
            name=name,
            examples=examples,
            accepts_overrides=accepts_overrides,
            timeout=timeout,
            retry=retry,
            preconditions=preconditions,
            effects=effects,
            inline=inline,
            skill=skill,
        )

    return decorate
