"""The settings and the result of a turn, and a turn that a crash left open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from narratoria.events import ApprovalGiven, ApprovalRequested, RecalledMemory
from narratoria.narrator.protocol import Narrator, Receipt
from narratoria.play.earlier_plans import FutileCall
from narratoria.play.last_resort import PlainNarrator, plain_list
from narratoria.play.offering import same_words
from narratoria.run.plan import CallResult, ExecutionResult, PlanDocument
from narratoria.run.plan_executor import GENERATION_TIMEOUT, MAX_GENERATIONS
from narratoria.skills.skill import Skill
from narratoria.tools.deadline import check_seconds

LONGEST_GENERATION: Final = 4500.0  # an hour for a model, and a quarter for the narrators behind it
PLAIN: Final = PlainNarrator()

Origin = Literal["player", "choice", "opening", "retry", "continue"]
Outcome = Literal["completed", "fallback", "cancelled"]


class Interrupted(Protocol):
    """A turn that a crash left open, with the decisions and calls made so far."""

    turn: int
    prompt: str
    plan: PlanDocument | None
    completed: dict[str, CallResult]
    disabled: set[str]
    attempt: int
    narrator: str
    told: dict[str, str]
    parent: str | None
    problems: tuple[str, ...]
    ids: set[str]
    futile: list[tuple[PlanDocument, FutileCall]]
    approvals: list[ApprovalRequested | ApprovalGiven]


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """The bounds of a turn, and what the player switched off."""

    generations: int = MAX_GENERATIONS
    generation_timeout: float = GENERATION_TIMEOUT
    disabled_skills: frozenset[str] = frozenset()
    story: str = ""  # its name in telemetry
    premise: str = ""
    going_on: str = ""  # the prompt for narrators where the player says nothing and the story goes on
    skills: Sequence[Skill] = ()  # whose instructions narrators may read
    memories: Sequence[str] = ()
    recalled: Sequence[RecalledMemory] = ()  # what was remembered for this turn, and why, for its record
    authors_note: str = ""
    lore: Sequence[str] = ()  # the player's own that the prompt names
    recall: Callable[[str, Mapping[str, Any]], Sequence[str]] = lambda prompt, state: ()
    takes_choice: Callable[[str, str], bool] = same_words  # tells if a prompt is that choice, taken
    last_resort: Narrator = PLAIN  # speaks after the last attempt
    list_calls: Callable[[Sequence[str]], str] = plain_list  # a line of the tools whose work nobody told of

    def __post_init__(self) -> None:
        check_seconds("generation_timeout", self.generation_timeout, LONGEST_GENERATION)


@dataclass(slots=True)
class TurnResult:
    """The outcome of a turn: what the player sees, its plans and traces."""

    turn: int
    prompt: str
    narrative: str = ""
    choices: list[str] = field(default_factory=list)
    outcome: Outcome = "completed"
    narrator: str = ""
    plans: list[PlanDocument] = field(default_factory=list)
    traces: list[ExecutionResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)  # what the narration claims, and what makes it true
    unsaved: str | None = None
