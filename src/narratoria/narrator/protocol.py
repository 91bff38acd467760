"""The narrator protocol: a situation goes in, a plan comes out. Whatever else the core may ask for is declared here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject, ModelAsked, Notice
from narratoria.run.plan import ExecutionResult, PlanDocument, PlanMetadata, PlannedCall
from narratoria.skills.skill import Skill
from narratoria.tools.tool import Tool


class NoMatch(NarratoriaError):
    """The narrator has no answer to this prompt; the next one in the chain may have."""


class Refusal(NoMatch):
    """The prompt is understood, and no tool or rule can do it. `choices` are things to try instead."""

    def __init__(self, narrative: str, choices: Sequence[str] = ()) -> None:
        super().__init__(narrative)
        self.narrative = narrative
        self.choices = tuple(choices)


@dataclass(frozen=True, slots=True)
class ToolCard:
    """A tool as narrators see it: enough to choose it and to fill its input."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)  # a JSON Schema
    examples: Sequence[Mapping[str, Any]] = ()  # {"description": …, "input": {…}}
    skill: str | None = None


def card(tool: Tool[Any, Any]) -> ToolCard:
    """The tool as narrators see it."""
    examples = [{"description": one.description, "input": one.arguments} for one in tool.examples]
    return ToolCard(tool.name, tool.description, tool.parameters, examples, tool.skill)


@dataclass(frozen=True, slots=True)
class PastTurn:
    prompt: str
    narrative: str


@dataclass(frozen=True, slots=True)
class NarratorRequest:
    """The situation: everything a narrator may look at, and the callbacks it may use while it plans."""

    prompt: str
    state: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[PastTurn] = ()
    tools: Sequence[ToolCard] = ()
    skills: Sequence[Skill] = ()  # those at hand: what they are for, and their instructions
    disabled_skills: frozenset[str] = frozenset()
    attempt: int = 1
    generations: int = 1  # attempts the turn has; with one, a chain does not wait for a better answer
    parent_plan: PlanDocument | None = None  # the last plan, failed or rejected, where it could be read
    parent_plan_id: str | None = None  # its id, also where only that could be read
    problems: Sequence[str] = ()  # why the last plan was rejected; empty where it ran
    last_trace: ExecutionResult | None = None
    memories: Sequence[str] = ()  # for a narrator that declares `reads_memories`
    recall: Callable[[], Sequence[str]] = lambda: ()  # the same for one that seldom wants them; it may block
    premise: str = ""
    authors_note: str = ""  # the player's word on how the story is to be told
    lore: Sequence[str] = ()  # the player's own lore that the prompt names: an answer where nobody has one
    choices: Sequence[str] = ()  # what the player is offered now
    say: Callable[[str], None] = lambda text: None  # a piece of narration, as it is being written
    unsay: Callable[[], None] = lambda: None  # what was said in this attempt does not stand
    note: Callable[[str], None] = lambda text: None  # for the trace: what was done to this answer
    spent: Callable[[ModelAsked], object] = lambda asked: None  # a model was asked, and this is what it took
    # Objections, for one that can plan again.
    check: Callable[[PlanDocument], Sequence[str]] = lambda plan: ()

    def answer(
        self,
        narrative: str | None,
        tools: Sequence[PlannedCall] = (),
        *,
        parallel: bool = False,
        request_id: str | None = None,
    ) -> PlanDocument:
        """A plan for this request: with its disabled skills, its attempt and the plan it replaces."""
        parent = self.parent_plan.request_id if self.parent_plan else self.parent_plan_id
        plan = PlanDocument(
            narrative=narrative,
            tools=list(tools),
            parallel=parallel,
            disabled_skills=sorted(self.disabled_skills),
            metadata=PlanMetadata(generation_attempt=self.attempt, parent_plan_id=parent),
        )
        return plan if request_id is None else msgspec.structs.replace(plan, request_id=request_id)


@runtime_checkable
class Narrator(Protocol):
    """Anything that turns a prompt into a plan."""

    @property
    def name(self) -> str: ...

    async def plan(self, request: NarratorRequest) -> PlanDocument: ...


@dataclass(frozen=True, slots=True)
class Declaration:
    """Facts about a narrator and its last answer. The defaults stand for a narrator that declares nothing."""

    reads_memories: bool = False  # `request.memories` is filled for it in every turn
    # When completed calls without a summary are listed plainly: where nobody said a word, never (an author's silence is
    # meant), or always (the narrator has no words for what it does).
    lists_calls: Literal["if_silent", "never", "always"] = "if_silent"
    narrated_calls: frozenset[str] = frozenset()  # ids of calls that are told of, and so never listed
    told: Mapping[str, str] = field(
        default_factory=dict
    )  # by id of a call, its result in place of the tool's summary
    choices: Sequence[str] = ()  # offered to the player for this moment
    # Narrators asked before the speaker, and why not they.
    passed_over: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)  # those of them that failed


@runtime_checkable
class Declaring(Protocol):
    """A narrator with something to declare."""

    def declare(self, speaker: str = "") -> Declaration:
        """The declaration for an answer of `speaker`: its own name, or that of a narrator it asks."""
        ...


def declaration_of(narrator: Narrator, speaker: str = "") -> Declaration:
    """The narrator's declaration; the defaults for one that makes none."""
    return narrator.declare(speaker) if isinstance(narrator, Declaring) else Declaration()


@runtime_checkable
class Learner(Protocol):
    """A narrator that may do better when it is asked again in the turn's next generation."""

    def learns_from(self, error: BaseException) -> bool:
        """After `plan` raised `error`: True where asking again is worth an attempt."""
        ...


@runtime_checkable
class Reteller(Protocol):
    """A narrator that can write a narrative again after objections to it."""

    async def retell(self, request: NarratorRequest, narrative: str, objections: Sequence[str]) -> str: ...


class Receipt(Protocol):
    """A statement of a narration and the evidence for or against it."""

    def to_data(self) -> JsonObject: ...


@dataclass(frozen=True, slots=True)
class Review:
    """The result of a look at a turn's narration after the calls."""

    narrative: str | None = None  # replaces the plan's narrative; "" drops it, None leaves it
    receipts: Sequence[Receipt] = ()
    problems: Sequence[str] = ()
    notices: Sequence[Notice] = ()


@runtime_checkable
class Reviewer(Protocol):
    """A narrator that looks at a turn's narration once more when the calls are done."""

    async def review(
        self,
        request: NarratorRequest,
        plan: PlanDocument | None,
        traces: Sequence[ExecutionResult],
        seconds: float,
    ) -> Review:
        """Review `plan`'s narrative against `request.state`, the state after the calls, and the tools' own words in
        `traces`. None for a plan whose narrative is not the narrator's: a resumed or a fallback one. A new narrative is
        asked for at most `seconds` at a time."""
        ...
