"""What a narrator is: it reads the situation and answers with a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from narratoria.errors import NarratoriaError
from narratoria.plan import ExecutionResult, PlanDocument


class NoMatch(NarratoriaError):
    """This narrator has nothing to say to this prompt; the next one in the chain may."""


class Refusal(NoMatch):
    """Understood, and honestly answered: nothing here can do that, but these could be tried."""

    def __init__(self, narrative: str, choices: Sequence[str] = ()) -> None:
        super().__init__(narrative)
        self.narrative = narrative
        self.choices = tuple(choices)


@dataclass(frozen=True, slots=True)
class ToolCard:
    """What a narrator knows of a tool: enough to choose it and to fill its input."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)  # a JSON Schema
    examples: Sequence[Mapping[str, Any]] = ()  # {"description": …, "input": {…}}
    skill: str | None = None
    path: str | None = None  # what goes into `toolPath`; the name where None


@dataclass(frozen=True, slots=True)
class PastTurn:
    prompt: str
    narrative: str


@dataclass(frozen=True, slots=True)
class NarratorRequest:
    """The situation: everything a narrator may look at, and where it may write while it thinks."""

    prompt: str
    state: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[PastTurn] = ()
    tools: Sequence[ToolCard] = ()
    disabled_skills: frozenset[str] = frozenset()
    attempt: int = 1
    generations: int = (
        1  # how many attempts there are; asked only once, a chain does not wait for a better one
    )
    parent_plan: PlanDocument | None = (
        None  # the one before, which failed or was rejected, if it could be read
    )
    problems: Sequence[str] = ()  # why the plan before was rejected; empty where it ran
    last_trace: ExecutionResult | None = None
    memories: Sequence[str] = ()  # for a narrator with `reads_memories`, which always gets them
    recall: Callable[[], Sequence[str]] = lambda: ()  # the same for one that seldom wants them; it may block
    premise: str = ""
    choices: Sequence[str] = ()  # what the player is offered now
    say: Callable[[str], None] = lambda text: None  # a piece of narration, as it is being written
    unsay: Callable[[], None] = lambda: None  # what was said in this attempt does not stand
    note: Callable[[str], None] = lambda text: None  # for the trace: what was done to this answer


@runtime_checkable
class Narrator(Protocol):
    """000 §13.6: prompt in, Plan JSON out."""

    @property
    def name(self) -> str: ...

    async def plan(self, request: NarratorRequest) -> PlanDocument: ...


@runtime_checkable
class Learner(Protocol):
    """A narrator that may do better when it is asked again in the turn's next generation."""

    def learns_from(self, error: BaseException) -> bool:
        """After `plan` raised `error`: True where asking again is worth an attempt."""
        ...
