"""The result of a call: a value or a failure, both as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar, overload

import msgspec

from narratoria.errors import EXECUTION_FAILED, ErrorSource
from narratoria.events import JsonObject
from narratoria.spelling import spelled
from narratoria.tools import schema

R = TypeVar("R")
V = TypeVar("V")  # of `ok` and `failed`, which are called on the bare class


class ToolError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The failure of a call, as data."""

    # 004.

    code: str
    message: str
    recoverable: bool = True
    suggestions: tuple[str, ...] = ()
    details: JsonObject | None = None
    source: ErrorSource = "tool"

    @property
    def verdict(self) -> str:
        """The runtime's own code for the failure: `EXECUTION_FAILED` where the tool itself said that it failed."""
        return self.code if self.source == "runtime" else EXECUTION_FAILED


@spelled()
class ResultMetadata(msgspec.Struct, frozen=True):
    """The duration and the timestamp of a result, in seconds; milliseconds live only on the wire."""

    # 004.

    duration: float
    timestamp: float
    tool_name: str
    attempts: int = 1
    call_id: str = ""
    degraded: tuple[str, ...] = ()  # descriptions of the non-critical preconditions that did not hold


class _ErrorAccess:
    """The attribute `error` with two uses: `ToolResult.error("…")` makes a failure; `result.error` is its reason."""

    # 002 has the factory and 004 the field, both by this name.

    @overload
    def __get__(self, instance: None, owner: type[ToolResult[Any]]) -> Callable[..., ToolResult[Any]]: ...
    @overload
    def __get__(self, instance: ToolResult[Any], owner: type[ToolResult[Any]]) -> ToolError | None: ...
    def __get__(
        self, instance: ToolResult[Any] | None, owner: type[ToolResult[Any]]
    ) -> Callable[..., ToolResult[Any]] | ToolError | None:
        return owner.failed if instance is None else instance.failure


@spelled()
class ToolResult(msgspec.Struct, Generic[R], frozen=True):
    """The outcome of a call: never an exception."""

    # 002, "Predictable failures".

    message: str
    value: R | None = None
    success: bool = True
    exclude_value_from_context: bool = False
    failure: ToolError | None = None
    metadata: ResultMetadata | None = None

    error: ClassVar[_ErrorAccess] = _ErrorAccess()

    @property
    def data(self) -> R | None:
        """Another name for `value`."""
        # 004's name.
        return self.value

    @classmethod
    def ok(cls, value: V, message: str = "", *, exclude_value_from_context: bool = False) -> ToolResult[V]:
        """Make a successful result."""
        return ToolResult(message, value, True, exclude_value_from_context)

    @classmethod
    def failed(
        cls,
        message: str,
        *,
        code: str = EXECUTION_FAILED,
        recoverable: bool = True,
        suggestions: Sequence[str] = (),
        details: JsonObject | None = None,
        value: V | None = None,
        source: ErrorSource = "tool",
    ) -> ToolResult[V]:
        """Make a failed result; also reached as `ToolResult.error(…)`."""
        error = ToolError(
            code=code,
            message=message,
            recoverable=recoverable,
            suggestions=(suggestions,) if isinstance(suggestions, str) else tuple(suggestions),
            details=details,
            source=source,
        )
        return ToolResult(message, value, False, False, error)

    def render(self) -> str:
        """Return the text a model is shown: the message, then the value unless it is excluded."""
        if self.value is None or self.exclude_value_from_context:
            return self.message
        value = schema.dump_json(self.value)
        return f"{self.message}\n{value}" if self.message else value
