"""Constraints of an annotation, checked on a Python value: `Annotated[int, Meta(ge=1)]` is broken by 0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sized
from functools import lru_cache
from typing import Any, Final

import msgspec

from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.tools.schema import constraints
from narratoria.tools.schema.bounded_patterns import Validator
from narratoria.tools.schema.excerpts import show
from narratoria.tools.schema.problems import compile_schema

_NAMES: Final = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")


def read(metadata: Iterable[Any]) -> dict[str, Any]:
    """Return the constraints that the metadata of an annotation states, by their names in `msgspec.Meta`."""
    found: dict[str, Any] = {}
    for one in metadata:
        if isinstance(one, msgspec.Meta):
            found |= {name: value for name in _NAMES if (value := getattr(one, name)) is not None}
        elif constraints.is_foreign(one):
            try:
                found |= constraints.read([one]).constraints
            except TypeError:  # what no schema can express is not published either
                continue
    return found


def broken(value: Any, rules: dict[str, Any]) -> str | None:
    """Return the value and the constraint it breaks, in words; None if it keeps all."""
    for name, bound in rules.items():
        if (told := _broken(value, name, bound)) is not None:
            return f"{show(value)}, {told}"
    return None


def _broken(value: Any, name: str, bound: Any) -> str | None:
    if name == "pattern":
        return _unmatched(value, bound) if isinstance(value, str) else None
    if name in ("min_length", "max_length"):
        if not isinstance(value, Sized):
            return None
        few = name == "min_length"
        wrong = len(value) < bound if few else len(value) > bound
        return f"of the length {len(value):,}, {'less' if few else 'more'} than {bound:,}" if wrong else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if name == "multiple_of":
        return None if value % bound == 0 else f"which is no multiple of {bound}"
    keeps = {"ge": value >= bound, "gt": value > bound, "le": value <= bound, "lt": value < bound}
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    return None if keeps.get(name, True) else f"which is not {words[name]} {bound}"


def _unmatched(text: str, pattern: str) -> str | None:
    """Match as arguments are matched: in linear time, whoever wrote the text."""
    validator = _validator(pattern)
    try:
        fits = re.search(pattern, text) is not None if validator is None else validator.is_valid(text)
    except ArgumentsInvalid as error:
        return f"of which the pattern {pattern} is not tried: {'; '.join(error.problems)}"
    return None if fits else f"which does not match {pattern}"


@lru_cache(256)
def _validator(pattern: str) -> Validator | None:
    try:
        return compile_schema({"pattern": pattern}, "")
    except ToolValidationError:  # one that Python alone reads; no schema can publish it
        return None
