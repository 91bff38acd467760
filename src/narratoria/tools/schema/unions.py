"""Unions of types, taken apart and put together."""

from __future__ import annotations

import types
import typing
from typing import Any


def is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def members_of(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the type alone."""
    return typing.get_args(hint) if is_union(hint) else (hint,)


def union_of(members: list[Any]) -> Any:
    """The union of some types, or the one that there is."""
    return typing.Union[tuple(members)]  # noqa: UP007 - made from a tuple
