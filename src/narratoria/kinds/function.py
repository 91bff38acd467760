"""Tools from typed Python functions.

A function is a handler, `(params: Light, *, context: ToolContext) -> ToolResult[Lit]`, or a plain function with a
parameter for each argument, `(city: str, days: int = 3) -> Forecast`; both plain or async.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import Field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, overload

import msgspec

from narratoria.kinds.plain_function import as_handler, is_handler
from narratoria.tools.retry import RetryPolicy
from narratoria.tools.tool import Approval, Tool, ToolExample, ToolHandler, ToolResult

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
    read_only: bool
    skill: str | None
    approval: Approval | None


class _Dataclass(Protocol):
    """Any dataclass, to a type checker."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


class _PydanticModel(Protocol):
    """Any model of pydantic, to a type checker."""

    def model_dump_json(self) -> str: ...


class HandlerWithoutContext:
    """To a type checker, the outcome of decorating a handler that has no `context`: no tool. At run time decorating it
    raises `ToolValidationError`.
    """


Arguments: TypeAlias = Mapping[str, Any]
P = TypeVar("P", bound=_Dataclass | msgspec.Struct | _PydanticModel | None)
_P_in = TypeVar("_P_in", bound=_Dataclass | msgspec.Struct | _PydanticModel | None, contravariant=True)
R = TypeVar("R")


class _Lacking(Protocol[_P_in]):
    """A handler whose context was forgotten. It is known by the name of its parameter: a plain function may have a
    parameter of such a type too.
    """

    def __call__(self, params: _P_in) -> Any: ...


_Handler: TypeAlias = ToolHandler[P, R]
_Resulting: TypeAlias = Callable[..., ToolResult[R] | Awaitable[ToolResult[R]]]
_Async: TypeAlias = Callable[..., Coroutine[Any, Any, R]]
_Plain: TypeAlias = Callable[..., R]


class ToolDecorator(Protocol):
    """The decorator that `@tool(…)` returns: it makes a tool of a function."""

    @overload
    def __call__(self, handler: _Handler[P, R], /) -> Tool[P, R]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, handler: _Lacking[P], /) -> HandlerWithoutContext: ...
    @overload
    def __call__(self, handler: _Resulting[R], /) -> Tool[Arguments, R]: ...
    @overload
    def __call__(self, handler: _Async[R], /) -> Tool[Arguments, R]: ...
    @overload
    def __call__(self, handler: _Plain[R], /) -> Tool[Arguments, R]: ...


@overload
def function_tool(  # type: ignore[overload-overlap]
    handler: _Handler[P, R],
    *,
    description: str | None = ...,
    name: str | None = ...,
    **options: Unpack[ToolOptions],
) -> Tool[P, R]: ...
@overload
def function_tool(
    handler: _Lacking[P],
    *,
    description: str | None = ...,
    name: str | None = ...,
    **options: Unpack[ToolOptions],
) -> HandlerWithoutContext: ...
@overload
def function_tool(
    handler: _Resulting[R],
    *,
    description: str | None = ...,
    name: str | None = ...,
    **options: Unpack[ToolOptions],
) -> Tool[Arguments, R]: ...
@overload
def function_tool(
    handler: _Async[R],
    *,
    description: str | None = ...,
    name: str | None = ...,
    **options: Unpack[ToolOptions],
) -> Tool[Arguments, R]: ...
@overload
def function_tool(
    handler: _Plain[R],
    *,
    description: str | None = ...,
    name: str | None = ...,
    **options: Unpack[ToolOptions],
) -> Tool[Arguments, R]: ...
def function_tool(
    handler: Callable[..., Any],
    *,
    description: str | None = None,
    name: str | None = None,
    **options: Unpack[ToolOptions],
) -> Any:
    """A tool whose params and result types are the annotations of a function: a handler or a plain function.

    Name and description default to the function's name and the first line of its docstring.
    """
    name = name or str(getattr(handler, "__name__", type(handler).__name__))
    description = description or (inspect.getdoc(handler) or "").partition("\n")[0]
    if not callable(handler) or "parameters" in options or is_handler(handler, name):
        return Tool(name, description, handler, **options)
    plain, params, value = as_handler(handler, name)
    return Tool[params, value](name, description, plain, **options)  # type: ignore[valid-type]


@overload
def tool(handler: _Handler[P, R], /) -> Tool[P, R]: ...  # type: ignore[overload-overlap]
@overload
def tool(handler: _Lacking[P], /) -> HandlerWithoutContext: ...
@overload
def tool(handler: _Resulting[R], /) -> Tool[Arguments, R]: ...
@overload
def tool(handler: _Async[R], /) -> Tool[Arguments, R]: ...
@overload
def tool(
    *, description: str | None = ..., name: str | None = ..., **options: Unpack[ToolOptions]
) -> ToolDecorator: ...
@overload
def tool(handler: _Plain[R], /) -> Tool[Arguments, R]: ...
def tool(
    handler: Callable[..., Any] | None = None,
    /,
    *,
    description: str | None = None,
    name: str | None = None,
    **options: Unpack[ToolOptions],
) -> Any:
    """Decorate a function to make it a tool: `@tool`, or `@tool(description="Light something that burns.")`."""

    def decorate(handler: Callable[..., Any]) -> Any:
        return function_tool(handler, description=description, name=name, **options)

    return decorate if handler is None else decorate(handler)
