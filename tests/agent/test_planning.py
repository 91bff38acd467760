"""The planning tool suite of 002: data model, tools, parameters, behaviour, sessions, strategies."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from narratoria.agent.planning import (
    PLANNING_TOOLS,
    AddStep,
    Plan,
    PlanningStrategy,
    PlanningToolsSection,
    PlanStatus,
    PlanStep,
    ReadPlan,
    SetupPlan,
    StepStatus,
    UpdateStep,
)
from narratoria.agent.prompt import Prompt
from narratoria.errors import ToolValidationError
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.tool import ToolResult


class Desk:
    """A session that plans, and its tools."""

    def __init__(self) -> None:
        self.session = Session()
        self.registry = ToolRegistry(PlanningToolsSection(self.session).tools)

    async def call(self, name: str, **args: Any) -> ToolResult[Plan]:
        return await self.registry.execute(f"planning_{name}", args, session=self.session)

    @property
    def plan(self) -> Plan | None:
        return self.session[Plan].latest()

    @property
    def steps(self) -> list[tuple[int, str, str]]:
        return [(step.step_id, step.title, step.status) for step in self.plan.steps] if self.plan else []


@pytest.fixture
def desk() -> Desk:
    return Desk()


def field_names(cls: type) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


def test_002_the_data_model() -> None:
    assert get_args(StepStatus) == ("pending", "in_progress", "done")
    assert get_args(PlanStatus) == ("active", "completed")
    assert field_names(PlanStep) == ["step_id", "title", "status"]
    assert field_names(Plan)[:3] == ["objective", "status", "steps"]


def test_002_the_four_tools() -> None:
    assert [tool.name for tool in PLANNING_TOOLS] == [
        "planning_setup_plan",
        "planning_add_step",
        "planning_update_step",
        "planning_read_plan",
    ]


def test_002_the_parameters() -> None:
    assert field_names(SetupPlan) == ["objective", "initial_steps"]
    assert field_names(AddStep) == ["steps"]
    assert field_names(UpdateStep) == ["step_id", "title", "status"]
    assert field_names(ReadPlan) == []


async def test_setup_plan_creates_a_plan_with_numbered_pending_steps(desk: Desk) -> None:
    result = await desk.call("setup_plan", objective="Cross the river", initial_steps=["Find a boat", "Row"])
    assert result.success
    assert result.value == desk.plan
    assert desk.plan is not None
    assert (desk.plan.objective, desk.plan.status) == ("Cross the river", "active")
    assert desk.steps == [(1, "Find a boat", "pending"), (2, "Row", "pending")]


async def test_setup_plan_replaces_the_plan_there_is(desk: Desk) -> None:
    await desk.call("setup_plan", objective="First", initial_steps=["a"])
    await desk.call("setup_plan", objective="Second")
    assert [plan.objective for plan in desk.session[Plan].all()] == ["Second"]
    assert desk.steps == []


@pytest.mark.parametrize(
    ("name", "args"),
    [("add_step", {"steps": ["a"]}), ("update_step", {"step_id": 1, "status": "done"}), ("read_plan", {})],
)
async def test_the_other_tools_require_an_existing_plan(desk: Desk, name: str, args: dict[str, Any]) -> None:
    result = await desk.call(name, **args)
    assert not result.success
    assert "call planning_setup_plan first" in result.message


async def test_step_ids_are_incrementing_integers(desk: Desk) -> None:
    await desk.call("setup_plan", objective="o", initial_steps=["a"])
    result = await desk.call("add_step", steps=["b", "c"])
    assert [step[0] for step in desk.steps] == [1, 2, 3]
    assert result.message == "Added 2 steps: 2, 3."


async def test_step_ids_are_never_reused_not_even_after_the_plan_is_replaced(desk: Desk) -> None:
    await desk.call("setup_plan", objective="one", initial_steps=["a", "b"])
    await desk.call("setup_plan", objective="two")
    await desk.call("setup_plan", objective="three", initial_steps=["c"])
    await desk.call("add_step", steps=["d"])
    assert [step[0] for step in desk.steps] == [3, 4]


async def test_a_failed_call_uses_up_no_id_and_leaves_the_plan(desk: Desk) -> None:
    await desk.call("setup_plan", objective="o", initial_steps=["a"])
    before = desk.plan
    assert not (await desk.call("add_step", steps=["b", "  "])).success
    assert desk.plan == before
    await desk.call("add_step", steps=["b"])
    assert [step[0] for step in desk.steps] == [1, 2]


async def test_update_step_modifies_title_and_status(desk: Desk) -> None:
    await desk.call("setup_plan", objective="o", initial_steps=["a", "b"])
    await desk.call("update_step", step_id=1, title="A")
    await desk.call("update_step", step_id=2, status="in_progress")
    await desk.call("update_step", step_id=2, title="B", status="done")
    assert desk.steps == [(1, "A", "pending"), (2, "B", "done")]


async def test_all_steps_done_completes_the_plan_and_a_new_or_reopened_step_does_not(desk: Desk) -> None:
    await desk.call("setup_plan", objective="o", initial_steps=["a", "b"])
    await desk.call("update_step", step_id=1, status="done")
    assert desk.plan is not None
    assert desk.plan.status == "active"
    result = await desk.call("update_step", step_id=2, status="done")
    assert desk.plan.status == "completed"
    assert result.message.endswith("The plan is completed.")
    await desk.call("add_step", steps=["c"])
    assert desk.plan.status == "active"
    await desk.call("update_step", step_id=3, status="done")
    await desk.call("update_step", step_id=1, status="pending")
    assert desk.plan.status == "active"


async def test_a_plan_without_steps_is_not_completed(desk: Desk) -> None:
    await desk.call("setup_plan", objective="o")
    assert desk.plan is not None
    assert desk.plan.status == "active"


@pytest.mark.parametrize("title", ["", "   ", "\n", "x" * 501])
@pytest.mark.parametrize("where", ["setup", "add", "update", "objective"])
async def test_titles_are_non_empty_and_at_most_500_characters(desk: Desk, title: str, where: str) -> None:
    await desk.call("setup_plan", objective="o", initial_steps=["a"])
    before = desk.plan
    result = await {
        "setup": lambda: desk.call("setup_plan", objective="o", initial_steps=["ok", title]),
        "add": lambda: desk.call("add_step", steps=[title]),
        "update": lambda: desk.call("update_step", step_id=1, title=title),
        "objective": lambda: desk.call("setup_plan", objective=title),
    }[where]()
    assert not result.success
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENTS"
    assert "500" in result.message
    assert desk.plan == before


async def test_a_title_of_500_characters_is_kept_without_the_space_around_it(desk: Desk) -> None:
    result = await desk.call("setup_plan", objective="o", initial_steps=[" " + "x" * 500 + " "])
    assert result.success
    assert desk.steps[0][1] == "x" * 500


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"step_id": 9, "status": "done"}, r"there is no step 9; the plan has \[1\]"),
        ({"step_id": 1}, "give a title, a status, or both"),
        ({"step_id": 1, "status": "finished"}, "status"),
        ({"step_id": "1", "status": "done"}, "step_id"),
        ({"step_id": 1, "state": "done"}, "state"),
    ],
)
async def test_an_update_that_cannot_be_is_refused(desk: Desk, args: dict[str, Any], says: str) -> None:
    await desk.call("setup_plan", objective="o", initial_steps=["a"])
    result = await desk.call("update_step", **args)
    assert not result.success
    assert desk.steps == [(1, "a", "pending")]
    assert re.search(says, result.message)


async def test_adding_no_steps_is_refused(desk: Desk) -> None:
    await desk.call("setup_plan", objective="o")
    assert "at least one" in (await desk.call("add_step", steps=[])).message


async def test_read_plan_gives_the_current_state_as_text_and_value(desk: Desk) -> None:
    await desk.call("setup_plan", objective="o", initial_steps=["a", "b"])
    await desk.call("update_step", step_id=1, status="done")
    result = await desk.call("read_plan")
    assert result.value == desk.plan
    assert result.message == "The plan is active: 1 of 2 steps done."
    assert '"title":"a"' in result.render()


async def test_a_session_without_the_section_is_told_so() -> None:
    registry = ToolRegistry(PLANNING_TOOLS)
    result = await registry.execute("planning_setup_plan", {"objective": "o"}, session=Session())
    assert not result.success
    assert "PlanningToolsSection" in result.message


# --- session integration ---------------------------------------------------------------------------------


def test_002_the_section_registers_reducers_for_all_four_events() -> None:
    session = Session()
    PlanningToolsSection(session)
    session.dispatch(SetupPlan("o", ("a",)))
    session.dispatch(AddStep(("b",)))
    session.dispatch(UpdateStep(1, status="done"))
    assert session[Plan].latest() == Plan("o", "active", (PlanStep(1, "a", "done"), PlanStep(2, "b")), 2)
    session.dispatch(Plan("whole", steps=(PlanStep(7, "x", "done"),)))
    assert session[Plan].all() == (Plan("whole", "completed", (PlanStep(7, "x", "done"),), 7),)
    session.dispatch(AddStep(("next",)))
    assert [step.step_id for step in session[Plan].all()[0].steps] == [7, 8]


def test_code_obeys_the_same_rules_as_a_model() -> None:
    session = Session()
    PlanningToolsSection(session)
    with pytest.raises(ToolValidationError, match="no plan yet"):
        session.dispatch(AddStep(("a",)))
    assert session[Plan].all() == ()


def test_two_sections_for_one_session_count_each_step_once() -> None:
    session = Session()
    PlanningToolsSection(session)
    PlanningToolsSection(session)
    session.dispatch(SetupPlan("o"))
    session.dispatch(AddStep(("a",)))
    plan = session[Plan].latest()
    assert plan is not None
    assert len(plan.steps) == 1


def test_the_section_is_one_of_a_prompt_and_brings_its_tools() -> None:
    rendered = Prompt(ns="t", key="p", sections=[PlanningToolsSection(Session())]).render()
    assert rendered.tools == PLANNING_TOOLS
    assert rendered.text.startswith("## Planning\n")


# --- strategies ------------------------------------------------------------------------------------------


def test_002_the_three_strategies() -> None:
    assert [one.name for one in PlanningStrategy] == [
        "REACT",
        "PLAN_ACT_REFLECT",
        "GOAL_DECOMPOSE_ROUTE_SYNTHESISE",
    ]


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        (PlanningStrategy.REACT, ["Alternate", "reasoning", "observe"]),
        (PlanningStrategy.PLAN_ACT_REFLECT, ["Outline", "before", "reflect"]),
        (PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE, ["Restate", "Decompose", "Route", "synthesise"]),
    ],
)
def test_each_strategy_has_its_mindset(strategy: PlanningStrategy, words: list[str]) -> None:
    text = (
        Prompt(ns="t", key="p", sections=[PlanningToolsSection(Session(), strategy=strategy)]).render().text
    )
    assert all(word in text for word in words)


def test_002_same_markdown_structure_only_the_mindset_paragraph_varies() -> None:
    def paragraphs(strategy: PlanningStrategy) -> list[str]:
        section = PlanningToolsSection(Session(), strategy=strategy)
        return Prompt(ns="t", key="p", sections=[section]).render().text.split("\n\n")

    first, *others = [paragraphs(one) for one in PlanningStrategy]
    for other in others:
        differing = [index for index, (one, two) in enumerate(zip(first, other, strict=True)) if one != two]
        assert differing == [2]


async def test_a_plan_is_saved_and_restored_with_its_session(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(Session("planner"))
    registry = ToolRegistry(PlanningToolsSection(journal.session).tools)
    args = {"objective": "o", "initial_steps": ["a", "b"]}
    await registry.execute("planning_setup_plan", args, session=journal.session)
    await registry.execute("planning_update_step", {"step_id": 1, "status": "done"}, session=journal.session)
    kept = journal.session[Plan].all()
    await journal.close()

    again = store.restore("planner")
    PlanningToolsSection(again)
    assert again[Plan].all() == kept
    again.dispatch(SetupPlan("anew", ("c",)))
    assert [step.step_id for step in again[Plan].all()[0].steps] == [3]
    store.close()
