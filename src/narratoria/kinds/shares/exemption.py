"""Calls that no quota stops: those that take an effect back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

exempt: Final = ContextVar("exempt", default=False)
"""True inside a call that takes an effect back."""


@contextlib.contextmanager
def exempted() -> Iterator[None]:
    """Let the calls inside the block begin at once, whatever is used up."""
    before = exempt.set(True)
    try:
        yield
    finally:
        exempt.reset(before)
