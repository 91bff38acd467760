"""Names that the specifications spell differently, and the errors that give the name to use here.

For example, `sessionId` is `session_id` here. `docs/decisions.md` has the whole table.
"""
# 004 is written in TypeScript, hence camelCase.

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

T = TypeVar("T")

ELSEWHERE: Final[Mapping[str, str]] = {
    # 002
    "BudgetTracker": "narratoria.tools.deadline.BudgetTracker",
    "Deadline": "narratoria.tools.deadline.Deadline",
    "Filesystem": "narratoria.session.resources.filesystem.Filesystem",
    "MarkdownSection": "narratoria.agent.prompt.MarkdownSection",
    "Plan": "PlanDocument, or narratoria.agent.planning.Plan for a model's todo list",
    "PlanStatus": "narratoria.agent.planning.PlanStatus",
    "PlanStep": "narratoria.agent.planning.PlanStep",
    "PlanningStrategy": "narratoria.agent.planning.PlanningStrategy",
    "PlanningToolsSection": "narratoria.agent.planning.PlanningToolsSection",
    "Prompt": "narratoria.agent.prompt.Prompt",
    "RenderedPrompt": "narratoria.agent.prompt.RenderedPrompt",
    "StepStatus": "narratoria.agent.planning.StepStatus",
    "ToolHandler": "narratoria.tools.tool.ToolHandler",
    "ToolInvoked": "narratoria.session.ToolInvoked",
    "serde": "narratoria.tools.schema",
    # 004
    "AbortSignal": "context.cancelled",
    "BackoffStrategy": "narratoria.tools.retry.Backoff",
    "ComposedTool": "Tool: a composition is one like any other",
    "ConditionalBranch": "Branch",
    "EffectManager": "narratoria.tools.contract.apply_effects and rollback_effects",
    "MemoryManager": "narratoria.session.memory.Memory, in a handler context.memory",
    "PreconditionResult": "narratoria.tools.contract.PreconditionResult",
    "PreconditionValidator": "narratoria.tools.contract.validate",
    "RetryExecutor": "ToolExecutor",
    "ToolComposer": "sequence, parallel and conditional",
    "ToolConfig": "narratoria.tools.context.ToolConfig",
    "ToolRegistryImpl": "ToolRegistry",
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


def camel_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])_([a-z])", lambda found: found[1].upper(), name)


def snake_case(name: str) -> str:
    """`expectedValue` as `expected_value`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _names(cls: type) -> set[str]:
    """The names of the attributes of a class and of its instances."""
    fields = (*getattr(cls, "__struct_fields__", ()), *getattr(cls, "__dataclass_fields__", ()))
    return {*dir(cls), *fields}
