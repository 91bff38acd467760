"""The kinds of precondition: a resource, a state, a permission, another tool, or a check of the author's."""
# 004.

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

from narratoria.errors import ToolValidationError
from narratoria.events import JsonObject
from narratoria.spelling import keywords_spelled, spelled
from narratoria.state import MISSING, lookup
from narratoria.tools.contract.expectations import ConditionError, check_expectation, matches
from narratoria.tools.contract.keys import TEXT
from narratoria.tools.contract.preconditions import Checks, Precondition
from narratoria.tools.tool import fold_name

if TYPE_CHECKING:
    from narratoria.tools.tool import ToolContext

ResourceName: TypeAlias = str | type[Any]


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class ResourcePrecondition(Precondition):
    """A resource of that name or type is available. A `preferred` one is not critical unless you say so."""

    type: ClassVar[str] = "resource"
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "resource": TEXT,
        "availability": {"enum": ["required", "preferred"]},
    }
    required_keys: ClassVar[tuple[str, ...]] = ("resource",)
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

    def resources(self) -> Sequence[str]:
        return (self.resource,) if isinstance(self.resource, str) else ()


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class StatePrecondition(Precondition):
    """The state at a path is as expected; without an expectation, it exists."""

    type: ClassVar[str] = "state"
    keys: ClassVar[Mapping[str, JsonObject]] = {"state": TEXT, "expectedValue": {}}
    required_keys: ClassVar[tuple[str, ...]] = ("state",)
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
class PermissionPrecondition(Precondition):
    """The session has a permission."""

    type: ClassVar[str] = "permission"
    keys: ClassVar[Mapping[str, JsonObject]] = {"permission": TEXT}
    required_keys: ClassVar[tuple[str, ...]] = ("permission",)
    permission: str

    def requirement(self) -> str:
        return f"permission {self.permission!r} must be granted"

    def holds(self, context: ToolContext) -> bool:
        return context.session.has_permission(self.permission)

    def permissions(self) -> Sequence[str]:
        return (self.permission,)


@keywords_spelled()
@spelled()
@dataclass(frozen=True, kw_only=True)
class DependencyPrecondition(Precondition):
    """Another tool has completed in this session, or can be called at all."""

    type: ClassVar[str] = "dependency"
    keys: ClassVar[Mapping[str, JsonObject]] = {"tool": TEXT, "status": {"enum": ["completed", "available"]}}
    required_keys: ClassVar[tuple[str, ...]] = ("tool",)
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
class CustomPrecondition(Precondition):
    """A check that the author wrote."""

    type: ClassVar[str] = "custom"
    keys: ClassVar[Mapping[str, JsonObject]] = {"id": TEXT}
    required_keys: ClassVar[tuple[str, ...]] = ("id",)
    id: str

    @classmethod
    def from_manifest(cls, fields: dict[str, Any], checks: Checks) -> Self:
        id_ = fields["id"]
        if id_ not in checks:
            known = ", ".join(sorted(checks)) or "none"
            raise ToolValidationError(f"no check is registered for the id {id_!r}; registered: {known}")
        return cls(**fields, check=checks[id_])

    def __post_init__(self) -> None:
        if self.check is None:
            raise ToolValidationError(
                f"custom precondition {self.id!r}: needs a check; there is no default for it"
            )
        super().__post_init__()

    def requirement(self) -> str:
        return f"{self.id} must hold"
