"""Values of types, from JSON and from plain data; the only place that asks msgspec for them.

msgspec reads a type when the first value is decoded into it. Two threads that do so at the same moment end the whole
process: the second finds a type that is half read (seen with msgspec 0.22). So a type is read here first, by one thread
at a time.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")
_reading = threading.RLock()


def _renew() -> None:
    global _reading
    _reading = threading.RLock()


os.register_at_fork(after_in_child=_renew)  # another thread may have held it


@overload
def decoder(type_: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def decoder(type_: Any) -> msgspec.json.Decoder[Any]: ...
def decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder of JSON into a type."""
    with _reading:
        return msgspec.json.Decoder(type_)


@overload
def converter(type_: type[T], **options: Any) -> Callable[[Any], T]: ...
@overload
def converter(type_: Any, **options: Any) -> Callable[[Any], Any]: ...
def converter(type_: Any, **options: Any) -> Callable[[Any], Any]:
    """Return a function from plain data to a type; the options are those of `msgspec.convert`."""
    with _reading, contextlib.suppress(msgspec.ValidationError):
        # whatever it says of None, it has read the type then
        msgspec.convert(None, type_, str_keys=options.get("str_keys", False))
    return partial(msgspec.convert, type=type_, **options)


@overload
def convert(value: Any, type_: type[T], **options: Any) -> T: ...
@overload
def convert(value: Any, type_: Any, **options: Any) -> Any: ...
def convert(value: Any, type_: Any, **options: Any) -> Any:
    """Return plain data as a value of a type that is not known before; `converter` is faster for one that is."""
    return converter(type_, **options)(value)
