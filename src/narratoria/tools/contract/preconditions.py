"""Preconditions: requirements that must hold before a call, and their check. `precondition_kinds` has the kinds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from narratoria.errors import (
    DeadlineExceededError,
    PromptEvaluationError,
    VisibilityExpansionRequired,
    advice,
    unwritten,
)
from narratoria.events import JsonObject
from narratoria.spelling import spelled
from narratoria.tools.cancellation import contained
from narratoria.tools.contract.author_functions import arity, call, check_declared

if TYPE_CHECKING:
    from narratoria.tools.tool import Tool, ToolContext

Check: TypeAlias = Callable[..., bool | Awaitable[bool]]
Checks: TypeAlias = Mapping[str, Check]


@dataclass(frozen=True, kw_only=True)
class Precondition:
    """One precondition. `check`, plain or async, takes the context or nothing and replaces the default."""

    description: str = ""
    critical: bool = True  # 004: if false, the tool can proceed with degraded functionality
    check: Check | None = None

    type: ClassVar[str]
    """Its `type` in a manifest."""
    keys: ClassVar[Mapping[str, JsonObject]] = {}
    """The keys of its own that it has in a manifest, each with its JSON Schema."""
    required_keys: ClassVar[tuple[str, ...]] = ()
    """Those of them that a manifest must have."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not isinstance(getattr(cls, "type", None), str):
            raise TypeError(f"{cls.__name__} has no type: say the word for it in a manifest")

    @classmethod
    def from_manifest(cls, fields: dict[str, Any], checks: Checks) -> Self:
        """Make the precondition of what a manifest says, by the names of the fields. `checks` are functions of the
        embedding program, by id.
        """
        return cls(**fields)

    def __post_init__(self) -> None:
        check_declared(self, f"{self.type} precondition")
        if self.check is not None:
            object.__setattr__(self, "_takes", arity(self.check, 1, f"{self.type} precondition: check"))
        if not self.description:
            object.__setattr__(self, "description", self.requirement())

    def requirement(self) -> str:
        """Return a description of the requirement, for an author who gave none."""
        raise unwritten(self, "requirement")

    def holds(self, context: ToolContext) -> bool:
        """Tell if the precondition holds, by its data alone."""
        raise unwritten(self, "holds")

    def permissions(self) -> Sequence[str]:
        """Return the permissions it asks for."""
        return ()

    def resources(self) -> Sequence[str]:
        """Return the names of the resources it asks for."""
        return ()

    async def evaluate(self, context: ToolContext) -> bool:
        """Tell if the precondition holds."""
        if self.check is None:
            return self.holds(context)
        takes: int = getattr(self, "_takes", 1)
        return bool(await call(self.check, *(context,)[:takes], within=context.tool.timeout))


@dataclass(frozen=True, slots=True)
class PreconditionCheck:
    """A precondition, and the outcome of its check."""

    precondition: Precondition
    passed: bool
    error: Exception | None = None

    @property
    def reason(self) -> str:
        """The unmet requirement, with the error of a check that failed."""
        text = self.precondition.description
        return text if self.error is None else f"{text} (the check failed: {self.error}{advice(self.error)})"


@spelled()
@dataclass(frozen=True, slots=True)
class PreconditionResult:
    """The result of checking a tool's preconditions."""

    # 004 `PreconditionResult`.

    results: tuple[PreconditionCheck, ...] = ()

    @property
    def passed(self) -> bool:
        """True if all preconditions hold."""
        return all(one.passed for one in self.results)

    @property
    def critical_failed(self) -> bool:
        """True if a critical one does not hold."""
        return any(one.precondition.critical for one in self.failures)

    @property
    def can_proceed(self) -> bool:
        """True if the tool may run."""
        return not self.critical_failed

    @property
    def degraded_mode(self) -> bool:
        """True if the tool may run although a precondition does not hold."""
        return self.can_proceed and not self.passed

    @property
    def failures(self) -> tuple[PreconditionCheck, ...]:
        """The preconditions that do not hold."""
        return tuple(one for one in self.results if not one.passed)

    @property
    def suggestions(self) -> tuple[str, ...]:
        """The requirements a caller has to meet."""
        return tuple(one.reason for one in self.failures)


ALL_MET = PreconditionResult()


async def validate(tool: Tool[Any, Any], context: ToolContext) -> PreconditionResult:
    """Check every precondition of the tool, in order, and report on each of them."""
    if not tool.preconditions:
        return ALL_MET
    results: list[PreconditionCheck] = []
    for precondition in tool.preconditions:
        try:
            results.append(PreconditionCheck(precondition, await contained(precondition.evaluate(context))))
        except (PromptEvaluationError, VisibilityExpansionRequired, DeadlineExceededError):
            raise  # 002, failure table: these end or redirect the evaluation
        except Exception as error:  # 004: a check that throws is a failed check; the others are still made
            results.append(PreconditionCheck(precondition, False, error))
    return PreconditionResult(tuple(results))
