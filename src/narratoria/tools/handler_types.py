"""The types of a handler: its params and its result, by its annotations."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Awaitable, Callable
from typing import Any

from narratoria.errors import ToolValidationError


def handler_types(handler: Callable[..., Any], result: type[Any]) -> tuple[Any, Any]:
    """Return (params, value) of a handler that returns a `result`; `Any` where it has no annotations."""
    hints = annotations_of(handler)
    function = _function_of(handler)
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "context")]
    params = hints.get(names[0], Any) if names else Any
    if typing.get_origin(params) is typing.Annotated:
        params = typing.get_args(params)[0]
    return (type(None) if params is None else params), value_type(hints.get("return", Any), result)


def annotations_of(handler: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function, a method or an object that can be called, evaluated."""
    function = _function_of(handler)
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:  # a name known only to the type checker: try the locals of the definition
        return _local_hints(function)


def value_type(returned: Any, result: type[Any], *, plain: bool = False) -> Any:
    """Return R of an annotated `ToolResult[R]`, of a union of them or of an awaitable of one; else `Any`, or the type
    itself where a `plain` value may be returned.
    """
    origin, arguments = typing.get_origin(returned), typing.get_args(returned)
    if origin is result:
        return arguments[0]
    if returned is result:
        return Any
    if origin is typing.Union or origin is types.UnionType:
        values = [value_type(one, result, plain=plain) for one in arguments]
        return typing.Union[tuple(values)]  # noqa: UP007 - made from a tuple
    if isinstance(origin, type) and issubclass(origin, Awaitable):
        return value_type(arguments[-1], result, plain=plain)
    return returned if plain else Any


def _function_of(handler: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(handler, functools.partial):
        handler = handler.func
    return handler if inspect.isroutine(handler) else type(handler).__call__


def _local_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations that can be evaluated one by one, with the names of the closure and of the caller."""
    frame = inspect.currentframe()
    scopes: dict[str, Any] = dict(getattr(function, "__globals__", {}))
    while frame is not None:
        scopes = (
            {**frame.f_locals, **scopes}
            if frame.f_globals is getattr(function, "__globals__", None)
            else scopes
        )
        frame = frame.f_back
    hints: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        if not isinstance(annotation, str):
            hints[name] = annotation
            continue
        try:
            hints[name] = eval(annotation, scopes)  # noqa: S307 - the author's own annotation
        except NameError as error:
            if name != "context":
                raise ToolValidationError(
                    f"{function.__qualname__}: {_place(name)} has the type {annotation}, but {error.name!r} is not "
                    f"known there; correct the name, or import it outside of `if TYPE_CHECKING`"
                ) from None
            hints[name] = Any
    return hints


def _place(name: str) -> str:
    return "the result" if name == "return" else f"parameter {name!r}"
