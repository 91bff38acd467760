"""Composed calls in a plan: what their parts say and change is said and given by the whole."""

import asyncio
import copy
from typing import Any

import pytest

from narratoria.events import Done, Log, StatePatch, UiEvent
from narratoria.kinds.compose import Branch, conditional, parallel, sequence
from narratoria.kinds.function import tool
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.turn import TurnSettings, take_turn
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.contract import CascadeEffect
from narratoria.tools.retry import FixedBackoff, RetryPolicies, RetryPolicy
from narratoria.tools.tool import ToolContext, ToolResult

QUICK = TurnSettings(generation_timeout=0.1)


def lighter(name="light", *, fails=False, patch=None, effects=(), retry=RetryPolicies.NONE):
    @tool(description="Lights.", name=name, effects=effects, retry=retry)
    async def light(params: None, *, context: ToolContext) -> ToolResult[dict]:
        context.log(name)
        context.patch(patch or {"torch": {"lit": True}})
        context.choices("Open", "Leave")
        return ToolResult.error("wet") if fails else ToolResult.ok({"by": name})

    return light


def caller(*parts, waits=False):
    @tool(description="Calls.", name="caller")
    async def call(params: None, *, context: ToolContext) -> ToolResult[Any]:
        if waits:
            await asyncio.sleep(0)
        results = [await context.call(one, {}) for one in parts]
        return results[-1]

    return call


def ok(result, context):
    return result.success


async def execute(*calls, tools, session=None):
    data = {"requestId": "p", "tools": [{"retryPolicy": {"maxRetries": 0}, **one} for one in calls]}
    executor = PlanExecutor(ToolRegistry(tools), session or Session())
    return (await executor.execute(PlanDocument.from_data(data))).tool_results


class Plans:
    """A narrator that plans one call of a tool."""

    name = "plans"

    def __init__(self, whole):
        self.whole = whole

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        call = {"toolId": "a", "toolPath": self.whole.name, "retryPolicy": {"maxRetries": 0}}
        return PlanDocument.from_data({"requestId": "p", "tools": [call]})


COMPOSED = {
    "sequence": lambda part: sequence([part]),
    "parallel": lambda part: parallel([part]),
    "conditional": lambda part: conditional([Branch(lambda result, context: True, [part])]),
    "fallback": lambda part: conditional([], [part]),
    "caller": lambda part: caller(part),
    "waiting caller": lambda part: caller(part, waits=True),
    "nested": lambda part: sequence([parallel([caller(part)])]),
}


@pytest.mark.parametrize("kind", COMPOSED)
async def test_a_composed_call_has_the_events_and_the_output_of_its_parts(kind):
    whole = COMPOSED[kind](lighter())
    (bare,) = await execute({"toolId": "a", "toolPath": "light"}, tools=[lighter()])
    (one,) = await execute({"toolId": "a", "toolPath": whole.name}, tools=[whole])
    assert [type(event) for event in one.events] == [Log, StatePatch, UiEvent]
    assert one.ok and one.events == bare.events and one.output == bare.output == {"torch": {"lit": True}}


@pytest.mark.parametrize("kind", COMPOSED)
async def test_a_composed_call_that_fails_has_the_events_of_its_parts(kind):
    whole = COMPOSED[kind](lighter(fails=True))
    (one,) = await execute({"toolId": "a", "toolPath": whole.name}, tools=[whole])
    assert not one.ok and one.output == {}
    assert [type(event) for event in one.events] == [Log, StatePatch, UiEvent]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", COMPOSED)
async def test_choices_of_parts_are_offered(kind, fails):
    whole = COMPOSED[kind](lighter(fails=fails))

    result = await take_turn(
        Session(), "light it", narrator=Plans(whole), registry=ToolRegistry([whole]), settings=QUICK
    )
    assert result.choices == ["Open", "Leave"]


async def test_a_reference_reads_what_a_part_changed():
    seen = []

    @tool(description="Reads.", parameters={"type": "object", "properties": {"lit": {}}})
    async def read(params: dict, *, context: ToolContext) -> ToolResult[None]:
        seen.append(params["lit"])
        return ToolResult.ok(None)

    whole = sequence([lighter()], name="whole")
    await execute(
        {"toolId": "a", "toolPath": "whole"},
        {"toolId": "b", "toolPath": "read", "input": {"lit": {"$from": "a", "path": "torch.lit"}}},
        tools=[whole, read],
    )
    assert seen == [True]


async def test_what_a_part_did_in_vain_is_in_the_trace_and_not_in_the_output():
    failing = lighter("wet", fails=True, patch={"torch": {"wet": True}})
    recovers = conditional(
        [
            Branch(lambda result, context: False, [lighter("dropped", patch={"dropped": True})]),
            Branch(lambda result, context: True, [failing, lighter()]),
        ],
        name="recovers",
    )
    session = Session()
    (one,) = await execute({"toolId": "a", "toolPath": "recovers"}, tools=[recovers], session=session)
    assert [event.message for event in one.events if isinstance(event, Log)] == ["dropped", "wet", "light"]
    assert one.ok and one.output == session.state == {"torch": {"lit": True}}


async def test_every_attempt_of_a_part_is_in_the_trace():
    tries = []

    @tool(description="Fails once.", retry=RetryPolicy(1, FixedBackoff(0.0)))
    async def stubborn(params: None, *, context: ToolContext) -> ToolResult[None]:
        tries.append(1)
        context.log(f"try {len(tries)}")
        context.patch({"tries": {str(len(tries)): True}})
        return ToolResult.ok(None) if len(tries) > 1 else ToolResult.error("once")

    (one,) = await execute({"toolId": "a", "toolPath": "w"}, tools=[sequence([stubborn], name="w")])
    assert [event.message for event in one.events if isinstance(event, Log)] == ["try 1", "try 2"]
    assert one.output == {"tries": {"2": True}}


async def test_what_a_cascade_says_is_in_the_trace_and_the_output_stays_the_tools_own():
    @tool(description="Rolls.", effects=[CascadeEffect(description="then", trigger_tool="light")])
    async def roll(params: None, *, context: ToolContext) -> ToolResult[dict]:
        return ToolResult.ok({"n": 4})

    (one,) = await execute({"toolId": "a", "toolPath": "roll"}, tools=[roll, lighter()])
    assert one.ok and one.output == {"n": 4}
    assert [type(event) for event in one.events] == [Log, StatePatch, UiEvent]


async def test_what_the_parts_of_a_call_that_is_cut_short_said_is_in_the_trace():
    @tool(description="Hangs.")
    async def hang(params: None, *, context: ToolContext) -> ToolResult[None]:
        context.log("hanging")
        await asyncio.sleep(30)
        return ToolResult.ok(None)

    executor = PlanExecutor(ToolRegistry([parallel([hang], name="w")]), Session(), plan_timeout=0.05)
    call = {"toolId": "a", "toolPath": "w"}
    result = await executor.execute(PlanDocument.from_data({"requestId": "p", "tools": [call]}))
    (one,) = result.tool_results
    assert not one.ok and [event.message for event in one.events] == ["hanging"]


async def test_the_summary_of_a_part_that_failed_is_not_told_for_the_whole():
    def ending(name, *, fine):
        @tool(description="Ends.", name=name)
        async def end(params: None, *, context: ToolContext) -> ToolResult[None]:
            context.emit(Done(version="0", ok=fine, summary=f"{name} is over"))
            return ToolResult.ok(None) if fine else ToolResult.error("no")

        return end

    whole = caller(ending("first", fine=True), ending("second", fine=False), lighter())
    result = await take_turn(
        Session(), "go", narrator=Plans(whole), registry=ToolRegistry([whole]), settings=QUICK
    )
    assert "first is over" in result.narrative and "second" not in result.narrative


@pytest.mark.parametrize(
    "make, seconds",
    [
        (sequence, 90.0),
        (parallel, 60.0),
        (lambda tools: parallel(tools, max_concurrency=1), 90.0),
        (lambda tools: conditional([Branch(lambda result, context: True, tools)]), 150.0),
        (lambda tools: sequence([parallel(tools, name="inner"), *tools]), 150.0),
    ],
)
async def test_a_plan_gives_a_composition_the_time_of_its_parts(make, seconds):
    limits = []

    async def slow(params: None, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    async def note(params, *, context: ToolContext) -> ToolResult[Any]:
        limits.append(context.time_limit)
        return await whole.handler(params, context=context)

    declared = tool(description="Slow.", name="declared", timeout=60.0)(slow)
    endless = tool(description="Slow.", name="endless", timeout=None)(slow)
    whole = make([declared, endless])
    assert whole.timeout is None
    seen = copy.copy(whole)
    seen.handler = note
    (result,) = await execute({"toolId": "w", "toolPath": whole.name}, tools=[seen])
    assert result.ok, result.error
    assert limits == [seconds]
