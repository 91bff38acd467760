"""Middleware: what lies around a call sees, changes, refuses, times and caches it, and the whole is one transaction."""

import asyncio
from dataclasses import dataclass

import pytest
from tests.recorder import Recorder

from narratoria.errors import ToolValidationError
from narratoria.events import CallFinished, CallStarted
from narratoria.kinds.compose import sequence
from narratoria.kinds.function import tool
from narratoria.run.executor import ToolExecutor
from narratoria.run.middleware import ToolCall
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session, ToolInvoked
from narratoria.tools.contract import CascadeEffect, NotificationEffect, PermissionPrecondition
from narratoria.tools.retry import FixedBackoff, RetryPolicy
from narratoria.tools.tool import ToolResult


@dataclass(frozen=True)
class Light:
    target: str
    brightness: int = 1


def lamp(runs=None):
    @tool(description="Light something.")
    async def light(params: Light, *, context) -> ToolResult[int]:
        if runs is not None:
            runs.append(params)
        context.patch({params.target: params.brightness})
        return ToolResult.ok(params.brightness, "lit")

    return light


async def test_they_run_in_order_and_see_the_call_and_its_result():
    seen = []

    def named(name):
        async def around(call, proceed):
            seen.append((name, call.tool.name, dict(call.args)))
            result = await proceed(call)
            seen.append((name, result.value))
            return result

        return around

    registry = ToolRegistry([lamp()], around=[named("outer"), named("inner")])
    result = await registry.execute("light", {"target": "lamp"})
    assert result.value == 1
    assert seen == [
        ("outer", "light", {"target": "lamp"}),
        ("inner", "light", {"target": "lamp"}),
        ("inner", 1),
        ("outer", 1),
    ]


async def test_arguments_are_changed_before_they_are_checked_and_recorded():
    async def brighter(call, proceed):
        return await proceed(call.changed(brightness=call.args.get("brightness", 1) + 1))

    session = Session()
    heard = Recorder(session)
    registry = ToolRegistry([lamp()], around=[brighter])
    result = await registry.execute("light", {"target": "lamp"}, session=session)
    assert result.value == 2
    assert session.state["lamp"] == 2
    assert [one.input for one in heard.of(CallStarted)] == [{"target": "lamp", "brightness": 2}]

    async def spoils(call, proceed):
        return await proceed(call.changed(brightness="much"))

    result = await ToolRegistry([lamp()], around=[spoils]).execute("light", {"target": "lamp"})
    assert result.failure.code == "INVALID_ARGUMENTS"
    assert "brightness: expected int" in result.message


async def test_a_refused_call_runs_nothing_and_is_recorded_once():
    runs = []

    async def refuses(call, proceed):
        return ToolResult.failed("not at night", code="REFUSED", recoverable=False)

    session = Session()
    heard = Recorder(session)
    registry = ToolRegistry([lamp(runs)], around=[refuses])
    result = await registry.execute("light", {"target": "lamp"}, session=session)
    assert (result.success, result.failure.code, result.message) == (False, "REFUSED", "not at night")
    assert result.metadata.tool_name == "light"
    assert runs == []
    assert [one.ok for one in heard.of(CallFinished)] == [False]


async def test_what_was_done_is_taken_back_if_the_middleware_refuses_afterwards():
    undone = []

    @tool(
        description="Light something.",
        effects=[
            NotificationEffect(
                event="lit",
                reversible=True,
                apply=lambda context, result: "x",
                rollback=lambda context: undone.append(1),
            )
        ],
    )
    async def light(params: Light, *, context) -> ToolResult[int]:
        context.patch({params.target: 1})
        return ToolResult.ok(1)

    async def second_thoughts(call, proceed):
        await proceed(call)
        return ToolResult.failed("on second thoughts, no")

    session = Session()
    registry = ToolRegistry([light], around=[second_thoughts])
    result = await registry.execute("light", {"target": "lamp"}, session=session)
    assert not result.success
    assert dict(session.state) == {}
    assert "light" not in session.completed_tools
    assert undone == [1]


async def test_a_cache_answers_without_the_tool():
    runs, kept = [], {}

    async def cached(call, proceed):
        key = call.tool.name, str(sorted(call.args.items()))
        if key not in kept:
            kept[key] = await proceed(call)
        return kept[key]

    registry = ToolRegistry([lamp(runs)], around=[cached])
    first = await registry.execute("light", {"target": "lamp"})
    second = await registry.execute("light", {"target": "lamp"})
    assert (first.value, second.value, len(runs)) == (1, 1, 1)
    assert first.metadata.call_id != second.metadata.call_id


async def test_a_retry_of_its_own_counts_attempts_on():
    tries = []

    @tool(description="Fails twice.", retry=RetryPolicy(max_retries=1, backoff=FixedBackoff(seconds=0.001)))
    async def shaky(params: None, *, context) -> ToolResult[int]:
        tries.append(1)
        return ToolResult.ok(len(tries)) if len(tries) > 2 else ToolResult.failed("not yet")

    async def again(call, proceed):
        result = await proceed(call)
        return result if result.success else await proceed(call)

    session = Session()
    heard = Recorder(session)
    result = await ToolRegistry([shaky], around=[again]).execute("shaky", {}, session=session)
    assert result.value == 3
    assert result.metadata.attempts == 3
    assert [one.attempt for one in heard.of(CallStarted)] == [1, 2, 3]


async def test_an_exception_of_the_middleware_is_a_failure_and_drops_what_was_done():
    async def breaks(call, proceed):
        await proceed(call)
        raise LookupError("the ledger is gone")

    session = Session()
    result = await ToolRegistry([lamp()], around=[breaks]).execute(
        "light", {"target": "lamp"}, session=session
    )
    assert "the ledger is gone" in result.message
    assert dict(session.state) == {}


@pytest.mark.parametrize("returned", [None, 3, "lit"])
async def test_what_is_no_result_is_named(returned):
    async def forgets(call, proceed):
        await proceed(call)
        return returned

    result = await ToolRegistry([lamp()], around=[forgets]).execute("light", {"target": "lamp"})
    assert "forgets around the call must return a ToolResult" in result.message


async def test_a_value_of_another_type_is_refused():
    async def wrong(call, proceed):
        return ToolResult.ok("much")

    result = await ToolRegistry([lamp()], around=[wrong]).execute("light", {"target": "lamp"})
    assert "must be int" in result.message


async def test_a_cancelled_call_is_recorded_and_dropped():
    entered = asyncio.Event()

    async def waits(call, proceed):
        await proceed(call)
        entered.set()
        await asyncio.sleep(60)

    session = Session()
    heard = Recorder(session)
    registry = ToolRegistry([lamp()], around=[waits])
    task = asyncio.ensure_future(registry.execute("light", {"target": "lamp"}, session=session))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert dict(session.state) == {}
    assert [one.error_code for one in heard.of(CallFinished)] == ["CANCELLED"]


async def test_parts_cascades_and_plans_pass_through_it_too():
    seen = []

    async def sees(call, proceed):
        seen.append(call.tool.name)
        return await proceed(call)

    @tool(description="Ring.", effects=[CascadeEffect(trigger_tool="light", input={"target": "bell"})])
    async def ring(params: None, *, context) -> ToolResult[None]:
        return ToolResult.ok(None)

    light = lamp()
    registry = ToolRegistry([light, ring, sequence([light], name="both")], around=[sees])
    session = Session()
    heard = Recorder(session)
    assert (await registry.execute("ring", {}, session=session)).success
    assert (await registry.execute("both", {"target": "lamp"}, session=session)).success
    assert seen == ["ring", "light", "both", "light"]
    assert [one.cascade for one in heard.of(CallStarted)] == [False, True, False, False]
    plan = PlanDocument.from_data(
        {"requestId": "r", "tools": [{"toolId": "a", "toolPath": "light", "input": {"target": "x"}}]}
    )
    outcome = await PlanExecutor(registry, session).execute(plan)
    assert outcome.success
    assert seen[-1] == "light"
    assert session.state["x"] == 1


async def test_a_subscriber_hears_one_invocation_with_its_params():
    session, heard = Session(), []
    session.dispatcher.subscribe(ToolInvoked, heard.append)

    async def sees(call, proceed):
        return await proceed(call)

    await ToolRegistry([lamp()], around=[sees]).execute("light", {"target": "lamp"}, session=session)
    assert [(one.tool, one.params) for one in heard] == [("light", Light("lamp"))]


async def test_the_executors_own_come_instead_of_the_registrys():
    seen = []

    async def mine(call, proceed):
        seen.append(call.call_id)
        return await proceed(call)

    registry = ToolRegistry([lamp()])
    await ToolExecutor(registry, around=[mine]).execute("light", {"target": "lamp"})
    await registry.execute("light", {"target": "lamp"})
    assert len(seen) == 1


async def test_a_precondition_is_not_asked_for_a_refused_call():
    @tool(description="Guarded.", preconditions=[PermissionPrecondition(permission="danger")])
    async def guarded(params: None, *, context) -> ToolResult[None]:
        return ToolResult.ok(None)

    async def refuses(call, proceed):
        return ToolResult.failed("never", code="NEVER")

    assert (await ToolRegistry([guarded], around=[refuses]).execute("guarded", {})).failure.code == "NEVER"
    assert (await ToolRegistry([guarded]).execute("guarded", {})).failure.code != "NEVER"


def test_what_cannot_be_called_is_refused_at_once():
    with pytest.raises(ToolValidationError, match=r"around\[0\] is str"):
        ToolRegistry([], around=["log"])


async def test_proceed_takes_the_call():
    async def wrong(call, proceed):
        return await proceed(call.args)

    async def outer(call, proceed):
        return await proceed(call)

    result = await ToolRegistry([lamp()], around=[outer, wrong]).execute("light", {"target": "lamp"})
    assert "proceed takes the call" in result.message


def test_a_call_is_data():
    assert ToolCall.__dataclass_params__.frozen
