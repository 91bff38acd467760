"""Effects, preconditions and rollbacks end nothing but themselves, however they end."""

import asyncio

import pytest

from narratoria.kinds.compose import Branch, conditional, sequence
from narratoria.kinds.function import tool
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.contract import CustomPrecondition, NotificationEffect
from narratoria.tools.retry import RetryPolicy
from narratoria.tools.tool import ToolContext, ToolResult


async def a_cancelled_task(*given):
    task = asyncio.ensure_future(asyncio.sleep(9))
    task.cancel()
    await task


def raises(error, *, plain=False):
    def plainly(*given):
        raise error

    async def later(*given):
        await asyncio.sleep(0)
        raise error

    return plainly if plain else later


ENDS = {
    "awaits a cancelled task": a_cancelled_task,
    "CancelledError": raises(asyncio.CancelledError()),
    "SystemExit": raises(SystemExit(3)),
    "GeneratorExit": raises(GeneratorExit()),
    "plain CancelledError": raises(asyncio.CancelledError(), plain=True),
    "plain SystemExit": raises(SystemExit(3), plain=True),
    "plain GeneratorExit": raises(GeneratorExit(), plain=True),
}


def worker(runs, **options):
    @tool(description="Works.", name="work", retry=RetryPolicy(2), **options)
    async def work(params: None, *, context: ToolContext) -> ToolResult[None]:
        runs.append(1)
        context.patch({"worked": True})
        return ToolResult.ok(None)

    return work


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_an_effect_that_ends_so_has_failed_and_the_handler_ran_once(end):
    runs, session = [], Session()
    work = worker(runs, effects=[NotificationEffect(event="x", apply=end, reversible=False)])
    result = await ToolRegistry([work]).execute("work", {}, session=session)
    assert result.failure.code == "EFFECT_FAILED" and runs == [1] and session.state == {}
    plan = PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="work")])
    result = await PlanExecutor(ToolRegistry([work]), session).execute(plan)
    assert result.tool_results[0].error_code == "EFFECT_FAILED" and runs == [1, 1]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_a_check_that_ends_so_is_an_unmet_precondition(end):
    runs = []
    work = worker(runs, preconditions=[CustomPrecondition(id="x", check=end, description="a check")])
    result = await ToolRegistry([work]).execute("work", {})
    assert result.failure.code == "PRECONDITION_FAILED" and runs == []
    assert "a check (the check failed: " in result.message and "handler" not in result.message


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_a_rollback_that_ends_so_is_reported_and_the_others_are_taken_back(end):
    taken = []
    effects = [
        NotificationEffect(
            event="a", apply=lambda: None, rollback=lambda: taken.append("a"), reversible=True
        ),
        NotificationEffect(event="b", apply=lambda: None, rollback=end, reversible=True),
        NotificationEffect(event="c", apply=raises(ValueError("no")), reversible=False),
    ]
    result = await ToolRegistry([worker([], effects=effects)]).execute("work", {})
    assert result.failure.code == "EFFECT_FAILED" and taken == ["a"]


async def test_a_handler_whose_effect_failed_is_not_run_again_though_the_call_around_it_went_on():
    runs = []
    effect = NotificationEffect(event="x", apply=raises(ValueError("full")), reversible=False)
    work, ok, bad = worker(runs, effects=[effect]), worker([]), failing("bad")
    recovers = conditional([Branch(lambda result, context: not result.success, [work, ok])])

    @tool(description="Goes on.", name="goes_on", retry=RetryPolicy(2))
    async def goes_on(params: None, *, context: ToolContext) -> ToolResult[None]:
        await context.call(work, {})
        raise ValueError("later")

    @tool(description="Goes on.", name="answers", retry=RetryPolicy(2))
    async def answers(params: None, *, context: ToolContext) -> ToolResult[None]:
        async with context.attempt() as trial:
            await trial.call(work, {})
        return ToolResult.error("later", code="BROKEN")

    for one in (sequence([recovers, bad], retry=RetryPolicy(2)), goes_on, answers, sequence([goes_on])):
        runs.clear()
        registry = ToolRegistry([one])
        result = await registry.execute(one.name, {})
        assert result.failure.code == "EFFECT_FAILED" and runs == [1]
        plan = PlanDocument(tools=[PlannedCall(tool_id="a", tool_path=one.name)])
        await PlanExecutor(registry, Session()).execute(plan)
        assert runs == [1, 1]


def failing(name):
    @tool(description="Fails.", name=name)
    async def fail(params: None, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.error("no")

    return fail
