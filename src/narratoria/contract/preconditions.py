"""What must hold before a call: the five kinds of 004, and the check of them all."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from narratoria.contract.calls import arity, call
from narratoria.contract.expectations import ConditionError, check_expectation, matches
from narratoria.errors import (
    DeadlineExceededError,
    PromptEvaluationError,
    ToolValidationError,
    VisibilityExpansionRequired,
    advice,
)
from narratoria.spelling import keywords_spelled, spelled
from narratoria.state import MISSING, lookup
from narratoria.tool import fold_name

if TYPE_CHECKING:
    from narratoria.tool import Tool, ToolContext

ResourceName: TypeAlias = str | type[Any]
Check: TypeAlias = Callable[..., bool | Awaitable[bool]]


@dataclass(frozen=True, kw_only=True)
class _Precondition:
    """What the five share. `check`, plain or async, takes the context or nothing and replaces the default."""

    description: str = ""
    critical: bool = True  # 004: if false, the tool can proceed with degraded functionality
    check: Check | None = None

    type: ClassVar[str]

    def __post_init__(self) -> None:
        if self.check is not None:
            object.__setattr__(self, "_takes", arity(self.check, 1, f"{self.type} precondition: check"))
        if not self.description:
            object.__setattr__(self, "description", self.requirement())

    def requirement(self) -> str:
        """The requirement in words, for where the author gave none."""
        raise NotImplementedError

    def holds(self, context: ToolContext) -> bool:
        """The declarative check."""
        raise NotImplementedError

    async def evaluate(self, context: ToolContext) -> bool:
        if self.check is None:
            return self.holds(context)
        takes: int = getattr(self, "_takes", 1)
        return bool(await call(self.check, *(context,)[:takes], within=context.tool.timeout))


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class ResourcePrecondition(_Precondition):
    """A resource of that name or type is there. A `preferred` one is not critical unless you say so."""

    type: ClassVar[str] = "resource"
    resource: ResourceName
    availability: Literal["required", "preferred"] = "required"
    critical: Any = None  # a bool; unless given, it follows from the availability

    def __post_init__(self) -> None:
        if self.availability not in ("required", "preferred"):
            raise ToolValidationError(
                f"resource precondition: availability is required or preferred, got {self.availability!r}"
            )
        if self.critical is None:
            object.__setattr__(self, "critical", self.availability == "required")
        super().__post_init__()

    def requirement(self) -> str:
        name = self.resource if isinstance(self.resource, str) else self.resource.__qualname__
        return f"resource {name!r} must be available"

    def holds(self, context: ToolContext) -> bool:
        return bool(context.resources.has(self.resource))


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class StatePrecondition(_Precondition):
    """What the state holds at a path is as expected; without an expectation, it is there at all."""

    type: ClassVar[str] = "state"
    state: str
    expected_value: Any = field(default_factory=lambda: {"$exists": True})

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.expected_value):
            raise ToolValidationError(
                "state precondition: expected_value is async, and is not awaited; give it as check=, which is"
            )
        try:
            check_expectation(self.expected_value, "expectedValue")
        except ConditionError as error:
            raise ToolValidationError(f"state precondition: {error}") from None
        super().__post_init__()

    def requirement(self) -> str:
        expected = "as expected" if callable(self.expected_value) else f"{self.expected_value!r}"
        return f"state {self.state!r} must be {expected}"

    def holds(self, context: ToolContext) -> bool:
        return matches(lookup(context.session.state, self.state, MISSING), self.expected_value)


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class PermissionPrecondition(_Precondition):
    """The session was granted a permission."""

    type: ClassVar[str] = "permission"
    permission: str

    def requirement(self) -> str:
        return f"permission {self.permission!r} must be granted"

    def holds(self, context: ToolContext) -> bool:
        return context.session.has_permission(self.permission)


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class DependencyPrecondition(_Precondition):
    """Another tool has completed in this session, or can be called at all."""

    type: ClassVar[str] = "dependency"
    tool: str
    status: Literal["completed", "available"] = "completed"

    def __post_init__(self) -> None:
        if self.status not in ("completed", "available"):
            raise ToolValidationError(
                f"dependency precondition: status is completed or available, got {self.status!r}"
            )
        super().__post_init__()

    def requirement(self) -> str:
        return f"tool {self.tool!r} must {'have completed' if self.status == 'completed' else 'be available'}"

    def holds(self, context: ToolContext) -> bool:
        if self.status == "completed":
            return fold_name(self.tool) in context.session.completed_tools
        return context.executor.has_tool(self.tool)


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class CustomPrecondition(_Precondition):
    """Whatever the author's check says."""

    type: ClassVar[str] = "custom"
    id: str

    def __post_init__(self) -> None:
        if self.check is None:
            raise ToolValidationError(
                f"custom precondition {self.id!r}: needs a check; there is no default for it"
            )
        super().__post_init__()

    def requirement(self) -> str:
        return f"{self.id} must hold"


Precondition: TypeAlias = (
    ResourcePrecondition
    | StatePrecondition
    | PermissionPrecondition
    | DependencyPrecondition
    | CustomPrecondition
)


@dataclass(frozen=True, slots=True)
class PreconditionCheck:
    precondition: Precondition
    passed: bool
    error: Exception | None = None

    @property
    def reason(self) -> str:
        """What was not met, with the error of a check that could not tell."""
        text = self.precondition.description
        return text if self.error is None else f"{text} (the check failed: {self.error}{advice(self.error)})"


@spelled()
@dataclass(frozen=True, slots=True)
class PreconditionResult:
    """004 `PreconditionResult`."""

    results: tuple[PreconditionCheck, ...] = ()

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.results)

    @property
    def critical_failed(self) -> bool:
        return any(one.precondition.critical for one in self.failures)

    @property
    def can_proceed(self) -> bool:
        return not self.critical_failed

    @property
    def degraded_mode(self) -> bool:
        return self.can_proceed and not self.passed

    @property
    def failures(self) -> tuple[PreconditionCheck, ...]:
        return tuple(one for one in self.results if not one.passed)

    @property
    def suggestions(self) -> tuple[str, ...]:
        """What a caller can do: meet these."""
        return tuple(one.reason for one in self.failures)


ALL_MET = PreconditionResult()


async def validate(tool: Tool[Any, Any], context: ToolContext) -> PreconditionResult:
    """Check every precondition of the tool, in order, and report on each of them."""
    if not tool.preconditions:
        return ALL_MET
    results: list[PreconditionCheck] = []
    for precondition in tool.preconditions:
        try:
            results.append(PreconditionCheck(precondition, await precondition.evaluate(context)))
        except (PromptEvaluationError, VisibilityExpansionRequired, DeadlineExceededError):
            raise  # 002, failure table: these end or redirect the evaluation
        except Exception as error:  # 004: a check that throws is a failed check; the others are still made
            results.append(PreconditionCheck(precondition, False, error))
    return PreconditionResult(tuple(results))
