"""Plain functions as handlers: their parameters as a dataclass, their return value as the value of a result.

`async def weather(city: str, days: int = 3) -> Forecast` takes `{"city": …, "days": …}` as a tool. A parameter named
`context` gets the context of the call and is no argument.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from narratoria.errors import ToolValidationError
from narratoria.tools.handler_types import annotations_of, value_type
from narratoria.tools.schema import is_params_type, with_default_of
from narratoria.tools.tool import ToolContext, ToolResult
from narratoria.tools.value_types import mismatch

CONTEXT: Final = "context"
_BY_PLACE: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_SEVERAL: Final[Mapping[Any, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def is_handler(function: Callable[..., Any], name: str) -> bool:
    """Tell if a function is a handler, `(params, *, context)`, and not a plain function.

    Raise `ToolValidationError` for one that is most likely a handler without its `context`.
    """
    parameters = inspect.signature(function).parameters
    others = [one for one in parameters.values() if one.name != CONTEXT]
    if len(others) != 1 or others[0].kind not in _BY_PLACE:
        return False
    hint = annotations_of(function).get(others[0].name, inspect.Parameter.empty)
    if not is_params_type(hint):
        if others[0].name == "params" and CONTEXT in parameters:
            raise ToolValidationError(
                f"tool {name!r}: params must be a dataclass, a Struct or None, got {_name_of(hint)}; declare a frozen "
                f"dataclass, or write a plain function, whose parameters have the names of the arguments"
            )
        return False
    if CONTEXT not in parameters:
        raise ToolValidationError(
            f"tool {name!r}: a handler of {_name_of(hint)} takes the context too; write "
            f"({others[0].name}: {_name_of(hint)}, *, context: ToolContext). A plain function has a parameter for each "
            f"argument instead of one object"
        )
    return True


def as_handler(function: Callable[..., Any], name: str) -> tuple[Callable[..., Any], Any, Any]:
    """Return a handler that calls a plain function, the dataclass made of its parameters, and its result type."""
    hints = annotations_of(function)
    parameters = dict(inspect.signature(function).parameters)
    with_context = parameters.pop(CONTEXT, None) is not None
    fields = [_field(parameter, hints, name) for parameter in parameters.values()]
    params = dataclasses.make_dataclass(_class_name(name), fields, frozen=True, kw_only=True)
    params.__module__, params.__doc__ = function.__module__, None
    places = tuple(one.name for one in parameters.values() if one.kind is inspect.Parameter.POSITIONAL_ONLY)
    call = _by_keyword(function, with_context) if not places else _by_place(function, places, with_context)

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    ):

        async def handle(params: Any, *, context: ToolContext) -> ToolResult[Any]:
            return _as_result(await call(params, context))

    else:

        def handle(params: Any, *, context: ToolContext) -> ToolResult[Any]:  # type: ignore[misc]
            return _as_result(call(params, context))

    functools.update_wrapper(handle, function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    del handle.__wrapped__  # type: ignore[attr-defined]  # the signature is a handler's
    return handle, params, value_type(hints.get("return", Any), ToolResult, plain=True)


def _by_keyword(function: Callable[..., Any], with_context: bool) -> Callable[[Any, ToolContext], Any]:
    if with_context:
        return lambda params, context: function(**vars(params), context=context)
    return lambda params, context: function(**vars(params))


def _by_place(
    function: Callable[..., Any], places: tuple[str, ...], with_context: bool
) -> Callable[[Any, ToolContext], Any]:
    def call(params: Any, context: ToolContext) -> Any:
        named = dict(vars(params))
        placed = [named.pop(name) for name in places]
        if with_context:
            named[CONTEXT] = context
        return function(*placed, **named)

    return call


def _as_result(returned: Any) -> ToolResult[Any]:
    return returned if type(returned) is ToolResult else ToolResult("", returned)


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> tuple[str, Any, Any]:
    where = f"tool {name!r}: parameter {parameter.name!r}"
    if (stars := _SEVERAL.get(parameter.kind)) is not None:
        raise ToolValidationError(
            f"{where}: {stars}{parameter.name} says nothing of the arguments; name each of them, or take a "
            f"list or a dict"
        )
    hint = hints.get(parameter.name)
    if parameter.name not in hints:
        raise ToolValidationError(
            f"{where}: annotate it, as in {parameter.name}: str; a handler takes one dataclass and the context"
        )
    try:
        hint, default = with_default_of(hint, parameter.default, inspect.Parameter.empty)
    except TypeError as error:
        raise ToolValidationError(f"{where}: {error}") from None
    if default is inspect.Parameter.empty:
        return parameter.name, hint, dataclasses.field()
    if (wrong := mismatch(default, hint)) is not None:
        raise ToolValidationError(f"{where}: its default does not fit: expected {wrong}")
    if type(default).__hash__ is None:  # a list of its own for each call
        return (
            parameter.name,
            hint,
            dataclasses.field(default_factory=functools.partial(copy.deepcopy, default)),
        )
    return parameter.name, hint, dataclasses.field(default=default)


def _class_name(name: str) -> str:
    return "".join(word.title() for word in name.replace("-", "_").split("_")) or "Params"


def _name_of(hint: Any) -> str:
    return "None" if hint in (None, type(None)) else str(getattr(hint, "__name__", hint))
