"""SmolLM2-135M behind a real server. What so small a model chooses is never asserted, only that the rules hold."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, tool
from narratoria.agent import chosen_model, model_servers
from narratoria.agent.adapters import ContextOverflow, ModelRequest, ModelTimedOut, evaluate
from narratoria.agent.adapters.openai_compatible import OpenAIAdapter
from narratoria.agent.chosen_model import ModelChoice
from narratoria.agent.prompt import MarkdownSection, Prompt
from narratoria.errors import PlanRejected, PromptEvaluationError
from narratoria.events import ModelAsked
from narratoria.narrator.llm.llm_narrator import LLMNarrator
from narratoria.narrator.llm.prompting import Bounds, Prompting
from narratoria.narrator.protocol import NarratorRequest, ToolCard
from narratoria.play.turn import TurnSettings, card, take_turn
from narratoria.tools.deadline import Budget, BudgetTracker, Deadline
from narratoria.tools.schema import parser_for_schema

from .conftest import ModelServer

pytestmark = pytest.mark.model
PATIENCE = 90.0  # seconds; two shared cores may be busy


@dataclass
class Item:
    item: str


@tool(description="Light something.")
async def light(params: Item, *, context: ToolContext) -> ToolResult[None]:
    context.patch({"lit": params.item})
    return ToolResult("it burns")


@tool(description="Go somewhere.")
async def go(params: Item, *, context: ToolContext) -> ToolResult[None]:
    context.patch({"place": params.item})
    return ToolResult("you are there")


CARDS = [card(light), card(go)]


def adapter(model: ModelServer) -> OpenAIAdapter:
    return OpenAIAdapter(base_url=model.url, temperature=0)


def narrator(model: ModelServer, **options: Any) -> LLMNarrator:
    options = {"time_limit": PATIENCE, "max_tokens": 160, "max_narrative": 60, **options}
    return LLMNarrator(adapter(model), **options)


def check(calls: list[Any], cards: list[ToolCard]) -> None:
    known = {one.name: one for one in cards}
    for call in calls:
        parser_for_schema(known[call.tool_path].parameters)(call.input)


@pytest.mark.slow
async def test_a_plan_is_valid_and_was_heard_as_it_was_written(model: ModelServer) -> None:
    heard: list[str] = []
    tracker = BudgetTracker(Budget(max_tokens=100_000))
    llm = narrator(model, budget=tracker)
    plan = await llm.plan(NarratorRequest("light the lamp", tools=CARDS, say=heard.append))
    plan.check()
    check(plan.tools, CARDS)
    assert plan.narrative
    assert len(plan.narrative) <= 60
    assert "".join(heard).strip() == plan.narrative
    assert len(heard) > 1
    assert tracker.used.input_tokens > 100
    assert tracker.used.output_tokens > 10


async def test_a_model_that_a_person_chose_is_listed_tested_and_accounted_for(
    model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    (name,) = (await model_servers.list_models(model.url, None, seconds=PATIENCE)).models
    chosen = chosen_model.choose(ModelChoice(address=model.url, model=name, timeout=PATIENCE, input_price=1))
    trial = await model_servers.try_model(chosen, None)
    assert trial.problem is None and trial.words and trial.streamed and trial.output_tokens > 1
    adapter = chosen_model.adapter({"NARRATORIA_LLM_TEMPERATURE": "0"})  # else it may say nothing
    assert adapter is not None
    heard: list[str] = []
    asked: list[ModelAsked] = []
    llm = LLMNarrator(adapter, time_limit=PATIENCE, max_tokens=160, max_narrative=60)
    await llm.plan(NarratorRequest("light the lamp", tools=CARDS, say=heard.append, spent=asked.append))
    assert len(heard) > 1  # as it was written
    assert asked[0].input_tokens > 100 and asked[0].output_tokens > 10 and not asked[0].estimated
    assert asked[0].cost == pytest.approx(asked[0].input_tokens / 1e6)


async def test_a_turn_ends_well_whatever_the_model_says(model: ModelServer) -> None:
    session = Session(state={"inventory": {"lamp": True}})
    result = await take_turn(
        session,
        "go up and light the lamp",
        narrator=narrator(model),
        registry=ToolRegistry([light, go]),
        settings=TurnSettings(generations=2, generation_timeout=PATIENCE),
    )
    assert result.outcome in ("completed", "fallback")
    assert result.narrative
    for plan in result.plans:
        check(plan.tools, CARDS)
    assert set(session.snapshot()) <= {"inventory", "lit", "place"}


@pytest.mark.slow
async def test_an_answer_cut_short_is_refused_and_the_next_attempt_is_told(model: ModelServer) -> None:
    llm = narrator(model, max_tokens=6)
    with pytest.raises(PlanRejected):
        await llm.plan(NarratorRequest("light the lamp", tools=CARDS))
    llm.max_tokens = 160
    plan = await llm.plan(NarratorRequest("light the lamp", tools=CARDS, attempt=2))
    check(plan.tools, CARDS)


@pytest.mark.slow
async def test_a_cancelled_generation_leaves_the_server_free_for_the_next(model: ModelServer) -> None:
    begun = asyncio.Event()
    long = ModelRequest([{"role": "user", "content": "Tell me a long story."}], max_tokens=900)
    asking = asyncio.create_task(adapter(model).complete(long, lambda piece: begun.set()))
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        short = ModelRequest([{"role": "user", "content": "hello"}], max_tokens=4)
        reply = await adapter(model).complete(short)
    assert reply.usage.output_tokens <= 4
    assert reply.finish in ("length", "stop")


async def test_a_server_that_stops_in_its_tracks_is_left_in_time_and_works_again_later(
    model: ModelServer,
) -> None:
    hello = [{"role": "user", "content": "hello"}]
    await adapter(model).complete(ModelRequest(hello, max_tokens=2, timeout=PATIENCE))
    os.kill(model.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ModelTimedOut):
            await OpenAIAdapter(base_url=model.url, model="m").complete(
                ModelRequest(hello, max_tokens=2, timeout=0.5)
            )
    finally:
        os.kill(model.process.pid, signal.SIGCONT)
    await adapter(model).complete(ModelRequest(hello, max_tokens=2, timeout=PATIENCE))


@pytest.mark.slow
async def test_a_context_that_overflows_is_made_smaller_until_it_fits(model: ModelServer) -> None:
    state = {f"thing {index}": f"lies at the place with the number {index}" for index in range(400)}
    bounds = Bounds(state_nodes=4_000, state_characters=16_000)
    llm = narrator(model, prompting=Prompting(bounds=bounds), max_tokens=8)
    overflows = 0
    for attempt in range(1, 6):
        try:
            plan = await llm.plan(
                NarratorRequest("light the lamp", state=state, tools=CARDS, attempt=attempt)
            )
        except ContextOverflow:
            overflows += 1
        except PlanRejected:
            break  # it fitted; what the model made of it is not our subject
        else:
            check(plan.tools, CARDS)
            break
    assert 1 <= overflows <= 4


@dataclass
class Room:
    name: str
    doors: int


@pytest.mark.slow
async def test_the_agent_loop_answers_every_call_and_types_the_answer(model: ModelServer) -> None:
    def example(item: str) -> list[dict[str, Any]]:
        call = {"name": "light", "arguments": json.dumps({"item": item})}
        calls = [{"id": f"call_{item}", "type": "function", "function": call}]
        return [
            {"role": "user", "content": f"light the {item}"},
            {"role": "assistant", "content": None, "tool_calls": calls},
        ]

    session = Session()
    section = MarkdownSection(title="Work", key="work", template="Use tools.", tools=[light])
    try:
        found = await evaluate(
            Prompt(ns="test", key="model", sections=[section]),
            adapter(model),
            session,
            request="light the torch",
            history=[*example("lamp"), *example("candle")],
            tool_choice="required",
            max_tokens=40,
            max_rounds=2,
            deadline=Deadline.after(PATIENCE),
        )
    except PromptEvaluationError as error:
        assert "no answer after 2 rounds" in str(error)
        return
    asked = [call["id"] for one in found.messages[6:] for call in one.get("tool_calls", ())]
    answered = [one["tool_call_id"] for one in found.messages if one["role"] == "tool"]
    assert asked == answered
    assert len(found.calls) == len(asked)
    made = [one for one in found.calls if one.result is not None and one.result.success]
    assert ("lit" in session.snapshot()) == bool(made)


async def test_a_typed_answer_is_of_its_type(model: ModelServer) -> None:
    section = MarkdownSection(title="Room", key="room", template="Describe a room as JSON: name, doors.")
    found = await evaluate(
        Prompt(ns="test", key="model", sections=[section]),
        adapter(model),
        Session(),
        output=Room,
        max_tokens=60,
        max_rounds=1,
        deadline=Deadline.after(PATIENCE),
    )
    assert isinstance(found.output, Room)
    assert type(found.output.doors) is int
