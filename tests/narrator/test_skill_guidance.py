"""Skills and a model: told by name and purpose first, read when they are chosen, page by page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from narratoria.agent.adapters.openai_compatible import OpenAIAdapter
from narratoria.narrator.llm.llm_narrator import LLMNarrator
from narratoria.narrator.protocol import NarratorRequest, ToolCard
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.skills.skill import Skill, read_skill
from narratoria.testing import Says, ScriptedModel

ROLL = ToolCard("dice.roll", "Rolls dice.", skill="dice")


@pytest.fixture
def skills(tmp_path: Path) -> list[Skill]:
    root = tmp_path / "dice"
    (root / "references").mkdir(parents=True)
    (root / "SKILL.md").write_text(
        "---\nname: dice\ndescription: Decides by chance.\n---\nNever roll twice.\n"
    )
    (root / "references" / "odds.md").write_text("Seven is even odds.")
    return [read_skill(root), Skill("dice", "", "In this story chance is cruel.")]


def reply(**more: Any) -> str:
    return json.dumps({"narrative": "It falls.", "calls": [], "order": "together", **more})


async def said(request: NarratorRequest, *replies: str) -> list[str]:
    """The system messages of all requests to the model."""
    async with ScriptedModel(*map(Says, replies)) as server:
        llm = LLMNarrator(OpenAIAdapter(base_url=server.url, model="m"))
        await llm.plan(request)
        return [one["messages"][0]["content"] for one in server.requests]


async def test_a_skill_is_told_by_name_and_purpose_first(skills: list[Skill]) -> None:
    [system] = await said(NarratorRequest("jump over it", tools=[ROLL], skills=skills), reply())
    assert "- dice: Decides by chance." in system
    assert "In this story chance is cruel." in system, "a guide of the story is always told"
    assert "Never roll twice." not in system
    assert "odds.md" not in system


async def test_a_model_reads_a_skill_and_then_a_page_before_it_answers(skills: list[Skill]) -> None:
    notes: list[str] = []
    request = NarratorRequest("jump over it", tools=[ROLL], skills=skills, note=notes.append)
    first, second, third = await said(
        request, reply(consult=["dice"]), reply(consult=["dice/references/odds.md"]), reply(consult=["dice"])
    )
    assert "Never roll twice." not in first
    assert "Never roll twice." in second
    assert "- dice/references/odds.md: a page of dice" in second
    assert "Seven is even odds." not in second
    assert "Seven is even odds." in third
    assert "consult" not in third, "it may not read for ever"
    assert notes == ["it reads dice", "it reads dice/references/odds.md"]


async def test_what_was_read_is_remembered_in_the_next_turn(skills: list[Skill]) -> None:
    request = NarratorRequest("jump over it", tools=[ROLL], skills=skills)
    async with ScriptedModel(Says(reply(consult=["dice"])), Says(reply()), Says(reply())) as server:
        llm = LLMNarrator(OpenAIAdapter(base_url=server.url, model="m"))
        await llm.plan(request)
        await llm.plan(request)
        assert len(server.requests) == 3
        assert "Never roll twice." in server.requests[2]["messages"][0]["content"]
        form = server.requests[0]["response_format"]["json_schema"]["schema"]
        assert form["properties"]["consult"]["items"]["enum"] == ["dice"]


async def test_a_skill_that_the_player_names_or_the_last_plan_called_is_told_at_once(
    skills: list[Skill],
) -> None:
    [named] = await said(NarratorRequest("Roll the dice!", tools=[ROLL], skills=skills), reply())
    assert "Never roll twice." in named
    call = PlannedCall(tool_id="a", tool_path="dice.roll")
    failed = NarratorRequest("jump", tools=[ROLL], skills=skills, parent_plan=PlanDocument(tools=[call]))
    [again] = await said(failed, reply())
    assert "Never roll twice." in again


async def test_a_request_without_skills_says_nothing_of_reading(skills: list[Skill]) -> None:
    [system] = await said(NarratorRequest("jump", tools=[ROLL], skills=skills[1:]), reply())
    assert "consult" not in system
