"""The planning tools: a todo list that belongs to the session.

The params are also the events: a handler dispatches its params, and the reducers hold every rule. So a plan changed
by code (`session.dispatch(AddStep(…))`) obeys the same rules as one changed by a model.
"""
# 002, "Planning Tool Suite".

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from narratoria.agent.prompt.section import MarkdownSection
from narratoria.errors import ToolValidationError
from narratoria.tools.tool import Tool, ToolContext, ToolExample, ToolResult

if TYPE_CHECKING:
    from narratoria.session.session import Session

StepStatus: TypeAlias = Literal["pending", "in_progress", "done"]
PlanStatus: TypeAlias = Literal["active", "completed"]
MAX_TITLE: Final = 500


@dataclass(frozen=True)
class PlanStep:
    step_id: int
    title: str
    status: StepStatus = "pending"


@dataclass(frozen=True)
class Plan:
    """The todo list. `last_step_id` outlives the steps, so that no id is ever given twice in a session."""

    objective: str
    status: PlanStatus = "active"
    steps: tuple[PlanStep, ...] = ()
    last_step_id: int = 0


@dataclass(frozen=True)
class SetupPlan:
    """Create the plan, or replace it."""

    objective: str
    initial_steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class AddStep:
    """Append steps, in this order."""

    steps: tuple[str, ...]


@dataclass(frozen=True)
class UpdateStep:
    """Change a step's title, its status, or both."""

    step_id: int
    title: str | None = None
    status: StepStatus | None = None


@dataclass(frozen=True)
class ReadPlan:
    """Read the plan; takes no arguments."""


# --- the rules -----------------------------------------------------------------------------------------


def _set_up(plans: tuple[Plan, ...], event: SetupPlan) -> tuple[Plan, ...]:
    objective = _text(event.objective, "objective")
    last = plans[-1].last_step_id if plans else 0
    return (_with_steps(Plan(objective, last_step_id=last), event.initial_steps, "initial_steps"),)


def _add(plans: tuple[Plan, ...], event: AddStep) -> tuple[Plan, ...]:
    plan = _existing(plans)
    if not event.steps:
        raise ToolValidationError("steps: give at least one title")
    return (_with_steps(plan, event.steps, "steps"),)


def _update(plans: tuple[Plan, ...], event: UpdateStep) -> tuple[Plan, ...]:
    plan = _existing(plans)
    if event.title is None and event.status is None:
        raise ToolValidationError(f"step {event.step_id}: give a title, a status, or both")
    known = [step.step_id for step in plan.steps]
    if event.step_id not in known:
        raise ToolValidationError(
            f"step_id: there is no step {event.step_id}; the plan has {known or 'no steps'}"
        )
    changes: dict[str, Any] = {} if event.status is None else {"status": event.status}
    if event.title is not None:
        changes["title"] = _text(event.title, "title")
    steps = tuple(
        dataclasses.replace(step, **changes) if step.step_id == event.step_id else step for step in plan.steps
    )
    return (_judged(dataclasses.replace(plan, steps=steps)),)


def _replace(plans: tuple[Plan, ...], event: Plan) -> tuple[Plan, ...]:
    """Replace the whole plan, from code: its ids are kept, and count as given."""
    last = max(
        [event.last_step_id, *(plan.last_step_id for plan in plans), *(step.step_id for step in event.steps)]
    )
    return (_judged(dataclasses.replace(event, last_step_id=last)),)


def _with_steps(plan: Plan, titles: Sequence[str], where: str) -> Plan:
    first = plan.last_step_id + 1
    added = tuple(
        PlanStep(first + index, _text(title, f"{where}[{index}]")) for index, title in enumerate(titles)
    )
    steps = plan.steps + added
    return _judged(dataclasses.replace(plan, steps=steps, last_step_id=plan.last_step_id + len(added)))


def _judged(plan: Plan) -> Plan:
    """Return the plan with its status: completed if all steps are done; a plan without steps is still to be made."""
    done = bool(plan.steps) and all(step.status == "done" for step in plan.steps)
    return dataclasses.replace(plan, status="completed" if done else "active")


def _existing(plans: tuple[Plan, ...]) -> Plan:
    if not plans:
        raise ToolValidationError("there is no plan yet; call planning_setup_plan first")
    return plans[-1]


def _text(text: str, where: str) -> str:
    stripped = text.strip()
    if not stripped:
        raise ToolValidationError(f"{where}: it is empty; give 1-{MAX_TITLE} characters")
    if len(stripped) > MAX_TITLE:
        raise ToolValidationError(f"{where}: it has {len(stripped)} characters; the most is {MAX_TITLE}")
    return stripped


def register_planning(session: Session) -> None:
    """Register the slices and reducers of the plan in a session. A second call changes nothing."""
    for event_type, reducer in (
        (Plan, _replace),
        (SetupPlan, _set_up),
        (AddStep, _add),
        (UpdateStep, _update),
    ):
        session.register_reducer(event_type, reducer, slice_type=Plan)


# --- the tools -----------------------------------------------------------------------------------------


async def _setup_plan(params: SetupPlan, *, context: ToolContext) -> ToolResult[Plan]:
    plan = _dispatched(params, context)
    return ToolResult.ok(plan, f"The plan is set up with {_count(plan.steps)}.")


async def _add_step(params: AddStep, *, context: ToolContext) -> ToolResult[Plan]:
    _current(context)
    plan = _dispatched(params, context)
    ids = ", ".join(str(step.step_id) for step in plan.steps[-len(params.steps) :])
    return ToolResult.ok(plan, f"Added {_count(params.steps)}: {ids}.")


async def _update_step(params: UpdateStep, *, context: ToolContext) -> ToolResult[Plan]:
    _current(context)
    plan = _dispatched(params, context)
    ending = " The plan is completed." if plan.status == "completed" else ""
    return ToolResult.ok(plan, f"Step {params.step_id} is updated.{ending}")


async def _read_plan(params: ReadPlan, *, context: ToolContext) -> ToolResult[Plan]:
    plan = _current(context)
    done = sum(step.status == "done" for step in plan.steps)
    return ToolResult.ok(plan, f"The plan is {plan.status}: {done} of {_count(plan.steps)} done.")


def _current(context: ToolContext) -> Plan:
    return _existing(context.session[Plan].all())


def _dispatched(event: SetupPlan | AddStep | UpdateStep, context: ToolContext) -> Plan:
    context.session.dispatch(event)
    plan = context.session[Plan].latest()
    if plan is None:
        raise ToolValidationError(
            "this session keeps no plans; make a PlanningToolsSection(session) for it first"
        )
    return plan


def _count(steps: Sequence[Any]) -> str:
    return f"{len(steps)} step{'' if len(steps) == 1 else 's'}"


_LAMP: Final = Plan(
    "Light the lamp", steps=(PlanStep(1, "Find oil"), PlanStep(2, "Strike flint")), last_step_id=2
)

setup_plan: Final = Tool[SetupPlan, Plan](
    name="planning_setup_plan",
    description="Create the session's plan from an objective and first steps, or replace it.",
    handler=_setup_plan,
    examples=(
        ToolExample("plan two steps", SetupPlan("Light the lamp", ("Find oil", "Strike flint")), _LAMP),
    ),
)
add_step: Final = Tool[AddStep, Plan](
    name="planning_add_step",
    description="Append one or more steps to the plan; each gets a new id.",
    handler=_add_step,
)
update_step: Final = Tool[UpdateStep, Plan](
    name="planning_update_step",
    description="Change the title or the status (pending, in_progress, done) of one step.",
    handler=_update_step,
)
read_plan: Final = Tool[ReadPlan, Plan](
    name="planning_read_plan",
    description="Read the plan: its objective, its status and all steps with their ids.",
    handler=_read_plan,
)
PLANNING_TOOLS: Final[tuple[Tool[Any, Any], ...]] = (setup_plan, add_step, update_step, read_plan)


# --- the section ---------------------------------------------------------------------------------------


class PlanningStrategy(Enum):
    """Ways to reason while planning. The value is the paragraph a model reads."""

    REACT = (
        "Alternate between reasoning and acting. Say what you know and what is missing, call the one tool "
        "that brings you further, observe what came back, and decide the next step from it. Change the plan "
        "as soon as an observation contradicts it."
    )
    PLAN_ACT_REFLECT = (
        "Outline the whole plan before you act. Then carry out one step at a time, and after each step "
        "reflect: did it reach what it was for, and do the remaining steps still lead to the objective? "
        "Note what you learned by changing the steps."
    )
    GOAL_DECOMPOSE_ROUTE_SYNTHESISE = (
        "Restate the goal in your own words. Decompose it into parts that can be done on their own, and make "
        "each a step. Route every step to the tool that serves it best. When all are done, synthesise their "
        "results into one answer to the goal."
    )


_TEMPLATE: Final = """
Keep a plan for work that takes more than two steps; for less, just do it.

{mindset}

- `planning_setup_plan` creates the plan, or replaces it: an objective and the first steps.
- `planning_add_step` appends steps. Their ids are numbers that are never used again.
- `planning_update_step` changes a step: mark it `in_progress` when you begin and `done` when it is done.
- `planning_read_plan` shows the plan as it is.

The plan is completed when all of its steps are done.
"""


class PlanningToolsSection(MarkdownSection[Any]):
    """The prompt section with the four planning tools, for one session."""

    def __init__(
        self,
        session: Session,
        *,
        strategy: PlanningStrategy = PlanningStrategy.REACT,
        accepts_overrides: bool = False,
    ) -> None:
        register_planning(session)
        self.session = session
        self.strategy = strategy
        super().__init__(
            title="Planning",
            key="planning",
            template=_TEMPLATE.format(mindset=strategy.value),
            tools=PLANNING_TOOLS,
            accepts_overrides=accepts_overrides,
        )
