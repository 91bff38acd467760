"""A cancellation that an author's code swallows holds all the same: nothing starts after it, and nothing is kept."""

import asyncio
import contextlib
import time

import pytest

from narratoria.kinds.compose import Branch, conditional, parallel, sequence
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.contract import CustomPrecondition, NotificationEffect
from narratoria.tools.retry import RetryPolicy
from narratoria.tools.tool import Tool, ToolResult

ANY = {"type": "object"}


async def swallow() -> None:
    """Wait; forget to raise the cancellation again."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(3)


class House:
    """Tools that note when they start."""

    def __init__(self):
        self.started = []
        self.waiting = asyncio.Event()

    def stub(self, name="stub", *, wrong=None, **options):
        async def handler(args, *, context):
            self.started.append(name)
            context.patch({name: True})
            self.waiting.set()
            await swallow()
            if wrong is not None:
                raise wrong
            return ToolResult.ok(None)

        return Tool(name, name, handler, parameters=ANY, **options)

    def quick(self, name="late", *, fails=False, after=None, **options):
        async def handler(args, *, context):
            self.started.append(name)
            context.patch({name: True})
            if after is not None:
                await after.wait()
            return ToolResult.error("no") if fails else ToolResult.ok(None)

        return Tool(name, name, handler, parameters=ANY, **options)

    async def cancelled(self, running):
        """Tell if the task ends as cancelled, once it waits and is cancelled."""
        task = asyncio.ensure_future(running)
        await self.waiting.wait()
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()


def chain(*names, parallel):
    calls = [
        PlannedCall(tool_id=name, tool_path=name, dependencies=[names[index - 1]] if index else [])
        for index, name in enumerate(names)
    ]
    return PlanDocument(tools=calls, parallel=parallel)


@pytest.mark.parametrize("side_by_side", [False, True])
async def test_a_plan_whose_time_is_over_starts_no_other_call(side_by_side):
    house, session = House(), Session()
    registry = ToolRegistry([house.stub("a"), house.stub("b"), house.quick("c")])
    began = time.perf_counter()
    plan = chain("a", "b", "c", parallel=side_by_side)
    result = await PlanExecutor(registry, session, plan_timeout=0.05).execute(plan)
    assert not result.success and house.started == ["a"] and session.state == {}
    assert [one.state for one in result.tool_results] == ["timeout", "skipped", "skipped"]
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize("side_by_side", [False, True])
async def test_a_cancelled_plan_starts_no_other_call_and_ends_as_cancelled(side_by_side):
    house, session = House(), Session()
    registry = ToolRegistry([house.stub("a"), house.quick("b")])
    running = PlanExecutor(registry, session).execute(chain("a", "b", parallel=side_by_side))
    assert await house.cancelled(running) and house.started == ["a"] and session.state == {}


WHOLES = {
    "alone": lambda house: house.stub(),
    "without a time limit": lambda house: house.stub(timeout=None),
    "with retries": lambda house: house.stub(wrong=OSError("tidying"), retry=RetryPolicy(2)),
    "without a limit, with retries": lambda house: house.stub(
        wrong=OSError("tidying"), timeout=None, retry=RetryPolicy(2)
    ),
    "sequence": lambda house: sequence([house.stub(), house.quick()]),
    "nested": lambda house: sequence([sequence([house.stub(), house.quick("x")]), house.quick()]),
    "probe": lambda house: conditional([Branch(lambda result, context: True, [house.stub(), house.quick()])]),
    "branch": lambda house: conditional(
        [Branch(lambda result, context: True, [house.quick("stub"), house.stub("b"), house.quick()])]
    ),
    "fallback": lambda house: conditional([], [house.stub(), house.quick()]),
    "parallel": lambda house: parallel([house.stub(), house.quick()], max_concurrency=1),
}


@pytest.mark.parametrize("whole", WHOLES.values(), ids=WHOLES)
async def test_a_cancelled_call_starts_no_other_tool_and_keeps_nothing(whole):
    house, session = House(), Session()
    one = whole(house)
    assert await house.cancelled(ToolRegistry([one]).execute(one.name, {}, session=session))
    assert house.started in (["stub"], ["stub", "b"]) and session.state == {}


@pytest.mark.parametrize("what", ["condition", "transform", "effect", "precondition", "middleware", "policy"])
async def test_a_cancellation_swallowed_by_another_function_of_an_author_holds_too(what):
    house, session = House(), Session()

    async def stubborn(*given):
        house.waiting.set()
        await swallow()
        if what == "middleware":
            return await given[1](given[0])
        return {} if what == "transform" else None if what == "policy" else True

    around, approval = (), None
    if what == "condition":
        one = conditional([Branch(stubborn, [house.quick("first"), house.quick()])])
    elif what == "transform":
        one = sequence([house.quick("first"), house.quick()], transform_output=stubborn)
    elif what == "effect":
        effect = NotificationEffect(event="x", apply=stubborn, reversible=False)
        one = sequence([house.quick("first", effects=[effect]), house.quick()])
    elif what == "precondition":
        one = house.quick(preconditions=[CustomPrecondition(id="x", check=stubborn)])
    else:
        one = house.quick()
        around, approval = ((stubborn,), None) if what == "middleware" else ((), stubborn)
    registry = ToolRegistry([one], around=around, approval=approval)
    assert await house.cancelled(registry.execute(one.name, {}, session=session))
    assert house.started in ([], ["first"]) or what == "middleware"
    assert session.state == {}


async def test_nothing_starts_after_the_failure_that_stops_a_parallel():
    house, session = House(), Session()
    fails = house.quick("fails", fails=True, after=house.waiting)
    one = parallel([fails, sequence([house.stub(), house.quick()])], stop_on_error=True)
    result = await ToolRegistry([one]).execute(one.name, {}, session=session)
    assert not result.success and "late" not in house.started
    assert [part.failure.code for part in result.value.values()] == ["EXECUTION_FAILED", "CANCELLED"]


async def test_an_effect_that_swallows_the_end_of_its_time_has_failed():
    house = House()
    effect = NotificationEffect(event="x", apply=lambda *given: swallow(), reversible=False)
    one = house.quick(effects=[effect], timeout=0.05)
    result = await ToolRegistry([one]).execute(one.name, {})
    assert result.failure.code == "EFFECT_FAILED" and "not finished within 0.05 s" in result.message


async def test_timeouts_that_a_handler_swallows_within_itself_are_its_own_affair():
    async def handler(args, *, context):
        async with asyncio.timeout(0.01):
            await swallow()
        return ToolResult.ok("in time")

    for timeout in (None, 5.0):
        one = Tool("one", "one", handler, parameters=ANY, timeout=timeout)
        assert (await ToolRegistry([one]).execute("one", {})).value == "in time"
