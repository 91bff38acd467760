"""Names that the specifications spell differently, and the errors that give the name to use here.

For example, `sessionId` is `session_id` here. `docs/decisions.md` has the whole table.
"""
# 004 is written in TypeScript, hence camelCase.

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

ELSEWHERE: Final[Mapping[str, str]] = {
    # 002
    "AddStep": "narratoria.agent.planning.AddStep",
    "BudgetTracker": "narratoria.tools.deadline.BudgetTracker",
    "Deadline": "narratoria.tools.deadline.Deadline",
    "DeadlineExceededError": "narratoria.errors.DeadlineExceededError",
    "Filesystem": "narratoria.session.resources.filesystem.Filesystem",
    "MarkdownSection": "narratoria.agent.prompt.MarkdownSection",
    "Plan": "PlanDocument, or narratoria.agent.planning.Plan for a model's todo list",
    "PlanStatus": "narratoria.agent.planning.PlanStatus",
    "PlanStep": "narratoria.agent.planning.PlanStep",
    "PlanningStrategy": "narratoria.agent.planning.PlanningStrategy",
    "PlanningToolsSection": "narratoria.agent.planning.PlanningToolsSection",
    "Prompt": "narratoria.agent.prompt.Prompt",
    "PromptEvaluationError": "narratoria.errors.PromptEvaluationError",
    "PromptValidationError": "narratoria.errors.PromptValidationError",
    "ReadPlan": "narratoria.agent.planning.ReadPlan",
    "RenderedPrompt": "narratoria.agent.prompt.RenderedPrompt",
    "SetupPlan": "narratoria.agent.planning.SetupPlan",
    "StepStatus": "narratoria.agent.planning.StepStatus",
    "ToolHandler": "narratoria.tools.tool.ToolHandler",
    "ToolInvoked": "narratoria.session.ToolInvoked",
    "ToolValidationError": "narratoria.errors.ToolValidationError",
    "UpdateStep": "narratoria.agent.planning.UpdateStep",
    "VisibilityExpansionRequired": "narratoria.errors.VisibilityExpansionRequired",
    "serde": "narratoria.tools.schema",
    # 004
    "AbortSignal": "context.cancelled",
    "BackoffStrategy": "narratoria.tools.retry.Backoff",
    "BaseEffect": "narratoria.tools.contract.Effect",
    "BasePreCondition": "narratoria.tools.contract.Precondition",
    "BasePrecondition": "narratoria.tools.contract.Precondition",
    "CascadeEffect": "narratoria.tools.contract.CascadeEffect",
    "ComposedTool": "Tool: a composition is one like any other",
    "ConditionalBranch": "Branch",
    "CustomPrecondition": "narratoria.tools.contract.CustomPrecondition",
    "DependencyPrecondition": "narratoria.tools.contract.DependencyPrecondition",
    "Effect": "narratoria.tools.contract.Effect",
    "EffectManager": "narratoria.tools.contract.apply_effects and rollback_effects",
    "ExponentialBackoff": "narratoria.tools.retry.ExponentialBackoff",
    "FixedBackoff": "narratoria.tools.retry.FixedBackoff",
    "JitteredBackoff": "narratoria.tools.retry.JitteredBackoff",
    "LinearBackoff": "narratoria.tools.retry.LinearBackoff",
    "MemoryEffect": "narratoria.tools.contract.MemoryEffect",
    "MemoryManager": "narratoria.session.memory.Memory, in a handler context.memory",
    "MemoryScope": "narratoria.session.memory.MemoryScope",
    "NoBackoff": "narratoria.tools.retry.NoBackoff",
    "NotificationEffect": "narratoria.tools.contract.NotificationEffect",
    "ParallelOptions": "the keyword arguments of parallel: max_concurrency, stop_on_error, timeout",
    "PermissionPrecondition": "narratoria.tools.contract.PermissionPrecondition",
    "Precondition": "narratoria.tools.contract.Precondition",
    "PreconditionCheck": "narratoria.tools.contract.PreconditionCheck",
    "PreconditionResult": "narratoria.tools.contract.PreconditionResult",
    "PreconditionValidator": "narratoria.tools.contract.validate",
    "PropertySchema": "a params dataclass, or any JSON Schema as parameters=",
    "ResourcePrecondition": "narratoria.tools.contract.ResourcePrecondition",
    "RetryExecutor": "ToolExecutor",
    "Schema": "a params dataclass, or any JSON Schema as parameters=",
    "SequenceOptions": "the keyword arguments of sequence: stop_on_error, transform_output",
    "StateChangeEffect": "narratoria.tools.contract.StateChangeEffect",
    "StatePrecondition": "narratoria.tools.contract.StatePrecondition",
    "ToolComposer": "sequence, parallel and conditional",
    "ToolConfig": "narratoria.tools.context.ToolConfig",
    "ToolRegistryImpl": "ToolRegistry",
    "ToolValidator": "Tool(…), which checks itself; tool.parse(args) checks arguments",
}


class Signpost:
    """A placeholder attribute: reading it raises an `AttributeError` that gives the name to use."""

    __slots__ = ("advice",)

    def __init__(self, advice: str) -> None:
        self.advice = advice

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(self.advice)


def spelled(**others: str) -> Callable[[type[T]], type[T]]:
    """Put a signpost at the camelCase form of each name of a class, and at `others`, which map a foreign name to
    ours.

    Class attributes cost nothing where they are not read, as a `__getattr__` would.
    """

    def decorate(cls: type[T]) -> type[T]:
        known = [name for name in _names(cls) if "_" in name.strip("_") and not name.startswith("_")]
        advice = {camel_case(name): f"is called {name} here" for name in known} | others
        for name, text in advice.items():
            if not hasattr(cls, name):
                setattr(cls, name, Signpost(f"{cls.__name__}.{name} {text}"))
        return cls

    return decorate


def keywords_spelled(**others: str) -> Callable[[type[T]], type[T]]:
    """Refuse a keyword argument in a foreign spelling with an error that gives the name to use."""

    def decorate(cls: type[T]) -> type[T]:
        construct = cls.__init__
        known = inspect.signature(construct).parameters.keys()
        names = {camel_case(name): name for name in known if camel_case(name) != name} | others

        @functools.wraps(construct)
        def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:  # noqa: N807
            for name in keywords.keys() & names.keys():
                raise TypeError(f"{cls.__name__}: {name}= is called {names[name]}= here")
            construct(self, *arguments, **keywords)

        cls.__init__ = __init__  # type: ignore[method-assign]
        return cls

    return decorate


def options_spelled(function: F) -> F:
    """Refuse a keyword argument of a function in camelCase, or options in a mapping, with an error that gives the names
    to use.
    """
    parameters = inspect.signature(function).parameters
    names = {camel_case(name): name for name in parameters if "_" in name}
    positional = sum(one.kind is not one.KEYWORD_ONLY for one in parameters.values())

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for name in keywords.keys() & names.keys():
            raise TypeError(f"{function.__name__}: {name}= is called {names[name]}= here")
        if len(arguments) > positional and isinstance(arguments[positional], Mapping):
            given = arguments[positional].items()
            written = ", ".join(f"{names.get(name, name)}={value!r}" for name, value in given)
            raise TypeError(f"{function.__name__}: options are keyword arguments here; write {written}")
        return function(*arguments, **keywords)

    return cast(F, call)


class StructSpelled(msgspec.StructMeta):
    """The metaclass of Structs that refuse a keyword argument in a foreign spelling, such as the one they have in JSON,
    with an error that gives the name to use. Decoding does not pass through it.
    """

    if not TYPE_CHECKING:

        def __call__(cls, *arguments, **keywords):  # noqa: N805 - of a metaclass
            try:
                return super().__call__(*arguments, **keywords)
            except TypeError:
                fields = cls.__struct_fields__
                names = {camel_case(name): name for name in fields}
                names |= dict(zip(cls.__struct_encode_fields__, fields, strict=True))
                for name in keywords:
                    if names.get(name, name) != name:
                        raise TypeError(f"{cls.__name__}: {name}= is called {names[name]}= here") from None
                raise


def camel_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])_([a-z])", lambda found: found[1].upper(), name)


def snake_case(name: str) -> str:
    """`expectedValue` as `expected_value`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _names(cls: type) -> set[str]:
    """The names of the attributes of a class and of its instances."""
    fields = (*getattr(cls, "__struct_fields__", ()), *getattr(cls, "__dataclass_fields__", ()))
    return {*dir(cls), *fields}
