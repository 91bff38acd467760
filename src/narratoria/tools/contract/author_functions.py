"""Calls of functions that a tool's author wrote: plain or async, with as many of the arguments as they take."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from narratoria.errors import NarratoriaError, ToolValidationError
from narratoria.unicode_text import check_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def check_declared(declared: DataclassInstance, where: str) -> None:
    """Refuse a field annotated `str` or `bool` that holds something else; a dataclass does not look."""
    for one in fields(declared):
        value = getattr(declared, one.name)
        if one.type == "str" and (
            value or one.name != "description"
        ):  # None and "" get the default description
            try:
                check_text(value, f"{where}: {one.name}")
            except (TypeError, ValueError) as error:
                raise ToolValidationError(str(error)) from None
        elif one.type == "bool" and type(value) is not bool:
            raise ToolValidationError(
                f"{where}: {one.name} must be True or False, got {type(value).__name__}"
            )


def arity(function: Callable[..., Any], most: int, where: str) -> int:
    """Return the number of the `most` positional arguments that `function` takes: `check()` and `check(context)` both
    work.
    """
    # 004 writes both.
    if not callable(function):
        raise ToolValidationError(f"{where}: expected a function, got {function!r}")
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a built-in without a signature
        return most
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return most
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = sum(one.default is one.empty for one in positional)
    by_name = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if required > most or by_name:
        raise ToolValidationError(f"{where}: takes more than the {most} positional arguments it is given")
    return min(len(positional), most)


async def call(function: Callable[..., Any], *arguments: Any, within: float | None) -> Any:
    """Return the outcome, awaited for at most `within` seconds. A plain function runs on the loop: keep it quick."""
    outcome = function(*arguments)
    if not inspect.isawaitable(outcome):
        return outcome
    try:
        async with asyncio.timeout(within) as limit:
            result = await outcome
    except TimeoutError:
        if not limit.expired():
            raise
    if limit.expired():  # also if it swallowed that: its outcome is too late
        raise NarratoriaError(f"not finished within {within:g} s")
    return result
