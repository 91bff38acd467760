"""Backoffs: how long to wait before a retry. Here are their base and the table of them; `backoff_kinds` has our own.

A new one is a module with a subclass of `Backoff`, and a line in `BACKOFFS`.
"""
# The strategies are 004's.

from __future__ import annotations

import functools
import math
import operator
import pkgutil
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec

from narratoria.errors import ToolValidationError, unwritten
from narratoria.spelling import StructSpelled
from narratoria.tools.deadline import LONGEST_DELAY, LONGEST_WAIT, check_seconds

# Where each backoff is. They are loaded when the first manifest with a `retry` is read.
BACKOFFS: Final = (
    "narratoria.tools.backoff_kinds:NoBackoff",
    "narratoria.tools.backoff_kinds:FixedBackoff",
    "narratoria.tools.backoff_kinds:LinearBackoff",
    "narratoria.tools.backoff_kinds:ExponentialBackoff",
    "narratoria.tools.backoff_kinds:JitteredBackoff",
)

# The largest values stand in the schema; `check_waits` holds to them, and says that these are seconds.
Seconds: TypeAlias = Annotated[
    float,
    msgspec.Meta(
        ge=0, description="Seconds, not milliseconds.", extra_json_schema={"maximum": int(LONGEST_WAIT)}
    ),
]
LongSeconds: TypeAlias = Annotated[
    float,
    msgspec.Meta(
        ge=0, description="Seconds, not milliseconds.", extra_json_schema={"maximum": int(LONGEST_DELAY)}
    ),
]


class Backoff(
    msgspec.Struct,
    metaclass=StructSpelled,
    frozen=True,
    rename="camel",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """The base of the backoffs. Their numbers are finite and not negative, in Python as in a manifest.

    A field of the type `Seconds` or `LongSeconds` has a cap, so that milliseconds are noticed.
    """

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(type(self)):
            number = getattr(self, field.name)
            if isinstance(number, int | float) and not (math.isfinite(number) and number >= 0):
                raise ToolValidationError(f"backoff {field.encode_name}: expected 0 or more, got {number!r}")

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        """Return the seconds to wait before retry number `attempt`, counted from 1."""
        raise unwritten(self, "delay")

    def longest(self, attempt: int) -> float:
        """Return the longest that wait can be."""
        return self.delay(attempt)


if TYPE_CHECKING:
    AnyBackoff: TypeAlias = Backoff
    """A field for any backoff, where data is decoded: write it `backoff.AnyBackoff`, since it is made of the table."""


def __getattr__(name: str) -> Any:
    if name == "AnyBackoff":
        return any_backoff()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def any_backoff() -> Any:
    """Return the union of the backoffs in the table."""
    found: dict[Any, type[Backoff]] = {}
    for cls in map(pkgutil.resolve_name, BACKOFFS):
        tag = cls.__struct_config__.tag
        other = found.setdefault(tag, cls)
        if other is not cls:
            raise ToolValidationError(
                f"backoff: {other.__name__} and {cls.__name__} both have the tag {tag!r}; rename one"
            )
    return functools.reduce(operator.or_, found.values())


def check_waits(where: str, backoff: Backoff, retries: int) -> None:
    """Refuse waits that can only be meant in milliseconds, by the fields in seconds and by the waits themselves."""
    for key, seconds, longest in _capped(backoff, where):
        check_seconds(key, seconds, longest)
    # The fields have their caps; these are for backoffs that reckon from other fields. Jitter may double a wait.
    check_seconds(f"{where}: the wait before the first retry", backoff.longest(1), 2 * LONGEST_WAIT)
    if retries > 1:
        check_seconds(
            f"{where}: the wait before retry {retries}", backoff.longest(retries), 2 * LONGEST_DELAY
        )


def _capped(backoff: Backoff, where: str) -> Iterator[tuple[str, float, float]]:
    """Yield the fields in seconds, those of backoffs inside this one too, each with its value and its cap."""
    for field in msgspec.structs.fields(type(backoff)):
        value = getattr(backoff, field.name)
        if isinstance(value, Backoff):
            yield from _capped(value, where)
        elif (cap := _cap(field.type)) is not None:
            yield f"{where}.{field.encode_name}", value, cap


def _cap(type_: Any) -> float | None:
    for one in getattr(type_, "__metadata__", ()):
        if isinstance(one, msgspec.Meta) and one.extra_json_schema is not None:
            cap: float | None = one.extra_json_schema.get("maximum")
            return cap
    return None
