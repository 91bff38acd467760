"""The pipeline: nine steps, the failure table of 002, and what a bad handler cannot do."""

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

import anyio
import pytest
from tests.recorder import Recorder

from narratoria.errors import (
    DeadlineExceededError,
    PromptEvaluationError,
    ToolFailure,
    ToolValidationError,
    VisibilityExpansionRequired,
)
from narratoria.events import (
    CallFinished,
    CallRetrying,
    CallStarted,
    Committed,
    Notice,
    Notification,
    StatePatch,
)
from narratoria.kinds.function import tool
from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.call_record import Call
from narratoria.run.executor import ToolExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session, ToolInvoked
from narratoria.session.dispatcher import SubscriberFailed
from narratoria.session.draft_operations import Dispatched
from narratoria.tools.contract import (
    CascadeEffect,
    CustomPrecondition,
    NotificationEffect,
    PermissionPrecondition,
    StateChangeEffect,
)
from narratoria.tools.deadline import Budget, BudgetTracker, Deadline
from narratoria.tools.retry import FixedBackoff, RetryPolicy, no_waiting
from narratoria.tools.tool import CallScope, Tool, ToolContext, ToolExample, ToolResult


@dataclass(frozen=True)
class Light:
    target: str
    brightness: int = 1


@dataclass(frozen=True)
class Lit:
    target: str
    lit: bool


@dataclass(frozen=True)
class Nothing:
    pass


def failing(error):
    """A tool that changes state, then raises."""

    @tool(description="Changes state, then raises.", name="failing")
    async def handler(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        context.memory.write("working", "touched", True)
        context.session.grant("touched")
        raise error

    return handler


async def run(one, args=None, session=None, **kwargs):
    registry = ToolRegistry([one])
    return await registry.executor.execute(one.name, args or {}, session=session, **kwargs)


# --- the first promise -----------------------------------------------------------------------------------


async def test_the_example_of_the_readme_runs_as_written():
    @tool(description="Light something that burns.")
    async def light_torch(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
        context.log("striking flint")
        context.patch({"inventory": {params.target: {"lit": True}}})
        return ToolResult.ok(Lit(params.target, True), message="The torch catches.")

    registry = ToolRegistry([light_torch])
    session = Session()
    result = await registry.execute("light_torch", {"target": "torch"}, session=session)
    assert result.success and session.state["inventory"]["torch"]["lit"] is True
    assert result.value == Lit("torch", True)
    assert result.metadata.tool_name == "light_torch" and result.metadata.duration > 0
    assert result.metadata.timestamp == pytest.approx(time.time(), abs=5)


async def test_a_tool_can_be_made_from_its_types_and_a_handler():
    async def light(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
        return ToolResult.ok(Lit(params.target, True), message="It burns.")

    made = Tool[Light, Lit](
        name="light_torch",
        description="Light something that burns.",
        handler=light,
        examples=(ToolExample("Light the torch", Light("torch"), Lit("torch", True)),),
    )
    assert (await run(made, {"target": "torch"})).value == Lit("torch", True)
    assert made.params_type is Light and made.result_type is Lit


# --- definitions are checked when a tool is made ----------------------------------------------------------


def handler_of_light(params: Light, *, context: ToolContext) -> ToolResult[Lit]:
    return ToolResult.ok(Lit(params.target, True))


@pytest.mark.parametrize("name", ["", "Torch", "web:scrape", "a" * 65, "a b", "tür", None])
def test_names_outside_the_pattern_of_002_are_refused(name):
    with pytest.raises(ToolValidationError, match="a-z 0-9 _ -"):
        Tool[Light, Lit](name=name, description="x", handler=handler_of_light)


@pytest.mark.parametrize("description", ["", "   ", "x" * 201])
def test_descriptions_have_1_to_200_characters(description):
    with pytest.raises(ToolValidationError, match="1-200"):
        Tool[Light, Lit](name="light", description=description, handler=handler_of_light)


def test_examples_must_be_of_the_declared_types():
    with pytest.raises(ToolValidationError, match=r"examples\[0\].input: expected Light, got Lit"):
        Tool[Light, Lit](
            name="light",
            description="x",
            handler=handler_of_light,
            examples=(ToolExample("wrong", Lit("torch", True), Lit("torch", True)),),
        )
    with pytest.raises(ToolValidationError, match=r"examples\[0\].description"):
        Tool[Light, Lit](
            name="light",
            description="x",
            handler=handler_of_light,
            examples=(ToolExample("x" * 201, Light("torch"), Lit("torch", True)),),
        )


def test_an_example_whose_values_do_not_fit_is_refused():
    with pytest.raises(ToolValidationError, match=r"examples\[0\].input: target"):
        Tool[Light, Lit](
            name="light",
            description="x",
            handler=handler_of_light,
            examples=(ToolExample("wrong", Light(5)),),
        )


def test_a_handler_without_types_is_refused_with_the_way_out():
    with pytest.raises(ToolValidationError, match="annotate the handler"):
        Tool(name="light", description="x", handler=lambda params, *, context: None)


# --- steps 1 to 4: refused before anything runs -----------------------------------------------------------


async def test_an_unknown_tool_is_a_structured_failure_with_a_suggestion():
    result = await ToolRegistry([failing(ValueError())]).execute("failin", {})
    assert result.error.code == "TOOL_NOT_FOUND" and not result.error.recoverable
    assert result.error.suggestions == ("did you mean 'failing'?",)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "target"),
        ({"target": 5}, "target"),
        ({"target": "torch", "brightness": True}, "brightness"),
        ({"target": "torch", "brightness": "5"}, "brightness"),
        ({"target": "torch", "colour": "red"}, "colour"),
        (None, "object"),
        ([], "object"),
    ],
)
async def test_arguments_are_never_coerced_and_unknown_keys_are_refused(args, problem):
    made = Tool[Light, Lit](name="light", description="x", handler=handler_of_light)
    result = await ToolRegistry([made]).execute("light", args)
    assert result.error.code == "INVALID_ARGUMENTS"
    assert problem in result.message


async def test_a_hundred_thousand_keys_are_refused_quickly_and_briefly():
    made = Tool[Light, Lit](name="light", description="x", handler=handler_of_light)
    result = await ToolRegistry([made]).execute("light", {f"key{n}": n for n in range(100_000)})
    assert result.error.code == "INVALID_ARGUMENTS" and len(result.message) < 20_000


async def test_nothing_begins_after_the_deadline():
    late = ToolExecutor(ToolRegistry([failing(ValueError())]), scope=CallScope(deadline=Deadline.after(-1)))
    result = await late.execute("failing", {})
    assert result.error.code == "DEADLINE_EXCEEDED" and "deadline passed" in result.message


async def test_a_used_up_budget_refuses_the_call():
    @tool(description="Does nothing.")
    async def noop(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    tracker = BudgetTracker(Budget(max_calls=1))
    executor = ToolExecutor(ToolRegistry([noop]), scope=CallScope(budget_tracker=tracker))
    assert (await executor.execute("noop", {})).success
    assert (await executor.execute("noop", {})).error.code == "DEADLINE_EXCEEDED"


async def test_critical_preconditions_refuse_and_all_unmet_ones_are_reported():
    ran = []

    @tool(
        description="Needs much.",
        preconditions=[
            PermissionPrecondition(description="may act", permission="act", critical=True),
            CustomPrecondition(
                description="moon is full", id="moon", check=lambda context: False, critical=True
            ),
        ],
    )
    async def act(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        ran.append(1)
        return ToolResult.ok(None)

    result = await run(act)
    assert result.error.code == "PRECONDITION_FAILED" and result.error.recoverable and not ran
    assert len(result.error.suggestions) == 2


async def test_a_non_critical_precondition_degrades_and_the_result_says_so():
    @tool(
        description="Better with a moon.",
        preconditions=[
            CustomPrecondition(
                description="moon is full", id="moon", check=lambda context: False, critical=False
            )
        ],
    )
    async def act(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None, "done")

    result = await run(act)
    assert result.success and result.metadata.degraded == ("moon is full",)
    assert "degraded: moon is full" in result.message


# --- the failure table of 002 -----------------------------------------------------------------------------


def untouched(session):
    return (
        "touched" not in session.state
        and not session.memory.has("working", "touched")
        and not session.has_permission("touched")
    )


async def test_002_tool_validation_error_becomes_a_failed_result():
    session = Session()
    result = await run(failing(ToolValidationError("no such colour")), session=session)
    assert (
        not result.success and result.error.code == "INVALID_ARGUMENTS" and "no such colour" in result.message
    )
    assert untouched(session)


@pytest.mark.parametrize(
    "error", [VisibilityExpansionRequired("show more"), PromptEvaluationError("give up")]
)
async def test_002_what_redirects_an_evaluation_is_raised_again_after_restoring(error):
    session = Session()
    with pytest.raises(type(error)) as caught:
        await run(failing(error), session=session)
    assert caught.value is error
    assert untouched(session)


async def test_002_deadline_exceeded_becomes_a_prompt_evaluation_error():
    session = Session()
    with pytest.raises(PromptEvaluationError, match="too late"):
        await run(failing(DeadlineExceededError("too late")), session=session)
    assert untouched(session)


async def test_002_type_error_is_wrapped_with_a_descriptive_message():
    session = Session()
    result = await run(failing(TypeError("unsupported operand")), session=session)
    assert result.error.code == "EXECUTION_FAILED"
    assert "TypeError: unsupported operand" in result.message and "handler's signature" in result.message
    assert untouched(session)


async def test_002_any_other_exception_becomes_a_failed_result():
    session = Session()
    result = await run(failing(OSError("disk on fire")), session=session)
    assert result.error.code == "EXECUTION_FAILED" and result.error.recoverable
    assert "disk on fire" in result.message
    assert untouched(session)


class Strange(BaseException):
    pass


@pytest.mark.parametrize("error", [SystemExit(3), Strange("odd"), asyncio.CancelledError()])
async def test_not_even_a_base_exception_escapes_from_a_handler(error):
    session = Session()
    result = await run(failing(error), session=session)
    assert not result.success and untouched(session)


async def test_a_tool_failure_brings_its_own_code():
    result = await run(
        failing(ToolFailure("DARK", "no light", recoverable=False, suggestions=["light a torch"]))
    )
    assert (result.error.code, result.error.recoverable) == ("DARK", False)
    assert result.error.suggestions == ("light a torch",)


@pytest.mark.parametrize("returned", [None, {"success": True}, "done", Lit("torch", True)])
async def test_a_handler_that_returns_something_else_fails_and_says_what_is_expected(returned):
    @tool(description="Returns the wrong thing.")
    async def wrong(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        return returned

    session = Session()
    result = await run(wrong, session=session)
    assert "must return a ToolResult" in result.message and untouched(session)


async def test_a_value_of_the_wrong_type_fails():
    @tool(description="Returns the wrong value.")
    async def wrong(params: Nothing, *, context: ToolContext) -> ToolResult[Lit]:
        return ToolResult.ok("lit")

    assert "value must be Lit, got str" in (await run(wrong)).message


async def test_a_failed_result_discards_what_the_handler_did():
    @tool(description="Fails politely.")
    async def polite(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        return ToolResult.error("not today")

    session = Session()
    result = await run(polite, session=session)
    assert not result.success and result.error.code == "EXECUTION_FAILED" and untouched(session)


async def test_cancelling_a_call_restores_and_passes_on():
    session = Session()
    recorder = Recorder(session)
    entered = asyncio.Event()

    @tool(description="Waits for ever.")
    async def forever(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(run(forever, session=session))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert untouched(session)
    assert recorder.of(CallFinished)[0].error_code == "CANCELLED"
    assert (await run(forever, {"x": 1}, session=session)).error.code == "INVALID_ARGUMENTS", (
        "the next call works"
    )


# --- handlers: async, plain, inline -----------------------------------------------------------------------


async def test_an_async_handler_past_its_timeout_is_a_timeout_and_its_patches_are_gone():
    @tool(description="Too slow.", timeout=0.05)
    async def slow(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        await asyncio.Event().wait()
        raise AssertionError

    session = Session()
    result = await run(slow, session=session)
    assert result.error.code == "TIMEOUT" and "0.05 s" in result.message and untouched(session)


async def test_a_plain_handler_runs_in_a_thread_of_its_own():
    @tool(description="Tells its thread.")
    def where(params: Nothing, *, context: ToolContext) -> ToolResult[int]:
        context.patch({"seen": True})
        assert context.session.state["seen"] is True, "a call sees its own patches"
        return ToolResult.ok(threading.get_ident())

    session = Session()
    result = await run(where, session=session)
    assert result.value != threading.get_ident() and session.state["seen"] is True


async def test_a_plain_handler_that_blocks_past_its_timeout_freezes_nothing_and_leaves_nothing():
    release = threading.Event()
    finished = threading.Event()

    @tool(description="Blocks.", timeout=0.05)
    def block(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        release.wait(10)
        context.patch({"touched": True})
        finished.set()
        return ToolResult.ok(None)

    session = Session()
    result = await run(block, session=session)
    assert result.error.code == "TIMEOUT"
    release.set()
    await asyncio.to_thread(finished.wait, 10)
    assert untouched(session), "a handler nobody waits for cannot speak for the call any more"


async def test_beat_ends_a_plain_handler_whose_call_is_over():
    stopped = threading.Event()

    @tool(description="Beats.", timeout=0.05)
    def work(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        try:
            while True:
                context.beat()
                time.sleep(0.001)
        finally:
            stopped.set()

    session = Session()
    assert (await run(work, session=session)).error.code == "TIMEOUT"
    assert await asyncio.to_thread(stopped.wait, 5)


async def test_an_inline_handler_runs_on_the_loop():
    @tool(description="Quick.", inline=True)
    def quick(params: Nothing, *, context: ToolContext) -> ToolResult[int]:
        return ToolResult.ok(threading.get_ident())

    assert (await run(quick)).value == threading.get_ident()


async def test_a_handler_that_suspends_more_than_once_gets_its_results_and_errors():
    @tool(description="Waits a few times.")
    async def several(params: Nothing, *, context: ToolContext) -> ToolResult[list]:
        seen = []
        for number in range(3):
            seen.append(await asyncio.sleep(0, number))
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("inner timeout")
        return ToolResult.ok(seen)

    assert (await run(several)).value == [0, 1, 2, "inner timeout"]


# --- drafts -----------------------------------------------------------------------------------------------


async def test_a_failed_sibling_keeps_its_neighbours_patch():
    session = Session()
    go = asyncio.Event()

    @tool(description="Succeeds while the other waits.")
    async def good(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"good": 1})
        return ToolResult.ok(None)

    @tool(description="Fails late.")
    async def bad(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"bad": 1})
        await go.wait()
        return ToolResult.error("late")

    registry = ToolRegistry([good, bad])
    task = asyncio.create_task(registry.execute("bad", {}, session=session))
    await asyncio.sleep(0)
    await registry.execute("good", {}, session=session)
    go.set()
    await task
    assert session.state == {"good": 1}


async def test_two_parallel_increments_give_two():
    session = Session()
    both = asyncio.Barrier(2)

    @tool(
        description="Counts.",
        effects=[StateChangeEffect(description="count", state="hits", change="increment", reversible=True)],
    )
    async def count(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        await both.wait()
        return ToolResult.ok(None)

    registry = ToolRegistry([count])
    await asyncio.gather(*(registry.execute("count", {}, session=session) for _ in range(2)))
    assert session.state == {"hits": 2}


async def test_patches_are_committed_in_the_order_they_were_emitted():
    @tool(description="Sets, deletes, sets.")
    async def busy(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"a": {"b": 1, "keep": 1}})
        context.patch({"a": None})
        context.patch({"a": {"c": 2}})
        assert context.session.state == {"old": 1, "a": {"c": 2}}
        return ToolResult.ok(None)

    session = Session(state={"old": 1, "a": {"z": 9}})
    await run(busy, session=session)
    assert session.state == {"old": 1, "a": {"c": 2}}


# --- retry ------------------------------------------------------------------------------------------------


async def test_each_attempt_starts_from_a_clean_draft_and_the_last_one_is_committed():
    session = Session()
    recorder = Recorder(session)
    attempts = []

    @tool(description="Works the third time.", retry=RetryPolicy(5, FixedBackoff(10)))
    async def flaky(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        attempts.append(context.call_id)
        assert "attempt" not in context.session.state
        context.patch({"attempt": len(attempts)})
        if len(attempts) < 3:
            raise OSError("not yet")
        return ToolResult.ok(None)

    with no_waiting():
        result = await run(flaky, session=session)
    assert result.success and result.metadata.attempts == 3 and session.state == {"attempt": 3}
    assert len(set(attempts)) == 1, "the call's id is the same on every attempt"
    assert [event.attempt for event in recorder.of(CallStarted)] == [1, 2, 3]
    assert [event.delay for event in recorder.of(CallRetrying)] == [10, 10]
    (committed,) = recorder.of(Committed)
    assert len(committed.changes) == 1


async def test_waiting_for_a_retry_ends_at_once_on_cancellation():
    @tool(description="Always fails.", retry=RetryPolicy(3, FixedBackoff(300)))
    async def flaky(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        raise OSError

    session = Session()
    recorder = Recorder(session)
    task = asyncio.create_task(run(flaky, session=session))
    while not recorder.of(CallRetrying):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)


async def test_the_callers_policy_overrides_the_tools():
    calls = []

    @tool(description="Always fails.", retry=RetryPolicy(3, FixedBackoff(0)))
    async def flaky(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        calls.append(1)
        raise OSError

    await run(flaky, call=Call(policy=RetryPolicy(1, FixedBackoff(0))))
    assert len(calls) == 2


# --- effects ----------------------------------------------------------------------------------------------


async def test_a_failing_effect_takes_back_the_earlier_ones_in_reverse_and_the_draft():
    order = []

    def effect(name, *, fails=False):
        def apply(context, result):
            if fails:
                raise OSError("boom")
            order.append(f"apply {name}")

        return NotificationEffect(
            description=name,
            event=name,
            reversible=True,
            apply=apply,
            rollback=lambda context: order.append(f"undo {name}"),
        )

    @tool(description="Has effects.", effects=[effect("one"), effect("two"), effect("three", fails=True)])
    async def act(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        return ToolResult.ok(None)

    session = Session()
    result = await run(act, session=session)
    assert result.error.code == "EFFECT_FAILED" and "boom" in result.message
    assert order == ["apply one", "apply two", "undo two", "undo one"]
    assert untouched(session)


async def test_notifications_are_published_only_once_their_call_is_committed():
    session = Session()
    seen = []
    session.dispatcher.subscribe(Notification, lambda event: seen.append((event.event, dict(session.state))))

    @tool(
        description="Notifies.",
        effects=[NotificationEffect(description="tell", event="lit", payload={"x": 1}, reversible=False)],
    )
    async def act(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"lit": True})
        return ToolResult.ok(None)

    await run(act, session=session)
    assert seen == [("lit", {"lit": True})]


async def test_a_cascade_runs_through_the_pipeline_and_is_part_of_the_transaction():
    @tool(description="Rings.")
    async def bell(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"bell": "rung"})
        return ToolResult.ok(None)

    @tool(
        description="Pulls the rope.",
        effects=[CascadeEffect(description="the bell rings", trigger_tool="bell", reversible=True)],
    )
    async def rope(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"rope": "pulled"})
        return ToolResult.ok(None)

    session = Session()
    recorder = Recorder(session)
    assert (await ToolRegistry([bell, rope]).execute("rope", {}, session=session)).success
    assert session.state == {"rope": "pulled", "bell": "rung"}
    assert len(recorder.of(Committed)) == 1, "one transaction"


async def test_a_recursive_cascade_ends_at_the_depth_limit_and_leaves_nothing():
    @tool(
        description="Triggers itself.",
        effects=[CascadeEffect(description="again", trigger_tool="again", reversible=True)],
    )
    async def again(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        return ToolResult.ok(None)

    session = Session()
    result = await run(again, session=session)
    assert result.error.code == "EFFECT_FAILED" and "nested" in result.message and untouched(session)


async def test_a_tool_that_calls_itself_ends_at_the_depth_limit():
    @tool(description="Calls itself.")
    async def again(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        result = await context.call("again", {})
        return ToolResult.ok(None) if result.success else ToolResult.error(result.message)

    result = await run(again)
    assert not result.success and "nested 16 deep" in result.message


# --- sessions ---------------------------------------------------------------------------------------------


async def test_a_subscriber_that_fails_is_reported_and_not_thrown():
    session = Session()
    reported = []

    def broken(event):
        raise ValueError("broken subscriber")

    session.dispatcher.subscribe(ToolInvoked, broken)
    session.dispatcher.subscribe(SubscriberFailed, reported.append)
    made = Tool[Light, Lit](name="light", description="x", handler=handler_of_light)
    assert (await run(made, {"target": "torch"}, session=session)).success
    assert "broken subscriber" in reported[0].error


async def test_telemetry_tells_tool_params_result_and_attempts():
    session = Session()
    seen = []
    session.dispatcher.subscribe(ToolInvoked, seen.append)
    made = Tool[Light, Lit](name="light", description="x", handler=handler_of_light)
    await run(made, {"target": "torch"}, session=session)
    (event,) = seen
    assert (event.tool, event.params, event.result.value) == ("light", Light("torch"), Lit("torch", True))
    assert event.session_id == session.id and event.attempts == 1


async def test_slices_are_reduced_in_the_draft_and_kept_only_on_success():
    session = Session()
    session.register_reducer(Lit, lambda values, event: (*values, event))

    @tool(description="Dispatches.")
    async def act(params: Light, *, context: ToolContext) -> ToolResult[None]:
        context.session.dispatch(Lit(params.target, True))
        assert context.session[Lit].latest() == Lit(params.target, True)
        assert session[Lit].all() == before
        if params.brightness == 0:
            return ToolResult.error("too dark")
        return ToolResult.ok(None)

    before = ()
    assert not (await run(act, {"target": "a", "brightness": 0}, session=session)).success
    assert session[Lit].all() == ()
    assert (await run(act, {"target": "b"}, session=session)).success
    assert session[Lit].all() == (Lit("b", True),)


async def test_a_reducer_that_raises_fails_the_call_and_restores():
    session = Session()

    def broken(values, event):
        raise ValueError("broken reducer")

    session.register_reducer(Lit, broken)

    @tool(description="Dispatches.")
    async def act(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        context.session.dispatch(Lit("torch", True))
        return ToolResult.ok(None)

    result = await run(act, session=session)
    assert "broken reducer" in result.message and untouched(session)


async def test_resources_first_made_inside_a_failing_call_are_discarded():
    made = []

    class Lamp:
        def __init__(self):
            made.append(self)

    session = Session()
    session.resources.bind(Lamp, lambda context: Lamp())

    @tool(description="Uses the lamp.")
    async def use(params: Light, *, context: ToolContext) -> ToolResult[None]:
        context.resources.get(Lamp)
        return ToolResult.ok(None) if params.brightness else ToolResult.error("dark")

    await run(use, {"target": "x", "brightness": 0}, session=session)
    await run(use, {"target": "x"}, session=session)
    await run(use, {"target": "x"}, session=session)
    assert len(made) == 2, "the first was dropped with its call, the second kept"


def test_render_shows_the_message_and_the_value_unless_excluded():
    assert (
        ToolResult.ok(Lit("torch", True), "It burns.").render() == 'It burns.\n{"target":"torch","lit":true}'
    )
    assert ToolResult("It burns.", Lit("torch", True), True, True).render() == "It burns."
    assert ToolResult.error("no").render() == "no"


# --- what the journal is told -----------------------------------------------------------------------------


class Opaque:
    """Something JSON cannot carry."""


async def test_a_value_that_json_cannot_carry_is_returned_and_recorded_as_a_placeholder():
    @tool(description="Opens something.", name="opens")
    async def opens(params: Nothing, *, context: ToolContext) -> ToolResult[Opaque]:
        context.patch({"open": True})
        return ToolResult.ok(Opaque(), message="open")

    session = Session()
    recorder = Recorder(session)
    result = await run(opens, session=session)
    assert result.success and isinstance(result.value, Opaque), "the caller gets the thing itself"
    [finished] = recorder.of(CallFinished)
    assert finished.ok and finished.value == {"notJson": "Opaque"}
    [notice] = recorder.of(Notice)
    assert "opens" in notice.message and "Opaque" in notice.message and notice.level == "warn"
    assert (await run(opens, session=session)).success, "the next call works"


async def test_what_a_process_said_in_patches_is_not_recorded_a_second_time(tmp_path):
    script = tmp_path / "lamp.py"
    script.write_text(
        'print(\'{"version":"0","type":"state_patch","patch":{"lamp":{"lit":true}}}\')\n'
        'print(\'{"version":"0","type":"done","ok":true}\')\n'
    )
    lamp = process_tool(script)
    session = Session()
    recorder = Recorder(session)
    result = await run(lamp, session=session)
    assert result.value == {"lamp": {"lit": True}} and session.state == {"lamp": {"lit": True}}
    [finished] = recorder.of(CallFinished)
    assert finished.ok and finished.value is None


async def test_what_a_function_returned_beside_its_patches_is_recorded():
    made = Tool[Light, Lit](name="light", description="x", handler=handler_of_light)
    session = Session()
    recorder = Recorder(session)
    await run(made, {"target": "torch"}, session=session)
    assert recorder.of(CallFinished)[0].value == {"target": "torch", "lit": True}


async def test_a_plain_handler_that_raises_lets_go_of_the_loop():
    contexts = []

    @tool(description="Raises in its thread.", name="raises")
    def raises(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        contexts.append(context)
        context.log("about to fail")
        raise ValueError("no")

    session = Session()
    recorder = Recorder(session)
    result = await run(raises, session=session)
    assert not result.success and contexts[0].session.loop is None
    kinds = [type(record.event).__name__ for record in recorder.records]
    assert kinds == ["CallStarted", "CallEmitted", "CallFinished"], "the log came before the end"


async def test_cascades_stop_at_eight():
    reached = []

    @tool(
        description="Triggers itself.",
        name="again",
        effects=[CascadeEffect(description="again", trigger_tool="again", reversible=True)],
    )
    async def again(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        reached.append(context.session.depth)
        return ToolResult.ok(None)

    result = await run(again)
    assert not result.success and "cascades are nested 8 deep" in result.message
    assert len(reached) == 9, "the call itself and eight cascades"


async def test_a_chain_of_eight_cascades_runs():
    def link(number):
        effects = [CascadeEffect(description="next", trigger_tool=f"link{number + 1}")] if number < 8 else []

        @tool(description="One of a chain.", name=f"link{number}", effects=effects)
        async def one(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
            context.patch({f"link{number}": True})
            return ToolResult.ok(None)

        return one

    session = Session()
    registry = ToolRegistry([link(number) for number in range(9)])
    assert (await registry.execute("link0", {}, session=session)).success
    assert len(session.state) == 9
    assert (await registry.execute("link0", {}, session=session)).success, "side by side they do not add up"


async def test_a_commit_that_fails_is_a_failed_call_that_leaves_nothing():
    session = Session(state={"lamps": "many"})
    grow = StateChangeEffect(description="one more", state="count", change="increment")

    @tool(description="Counts.", name="counts", effects=[grow])
    async def counts(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        session.patch({"count": 1})
        return ToolResult.ok(None)

    def refuse(values, event):
        raise ValueError("reducer says no")

    session.register_reducer(Lit, refuse)

    @tool(description="Dispatches.", name="dispatches")
    async def dispatches(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"touched": True})
        context.session.operations.append(Dispatched(Lit("torch", True)))
        return ToolResult.ok(None)

    result = await run(dispatches, session=session)
    assert not result.success and "reducer says no" in result.message
    assert session.state == {"lamps": "many"}
    assert (await run(counts, session=session)).success and session.state["count"] == 2


async def test_a_patch_is_taken_as_it_is_when_it_is_made():
    @tool(description="Changes its mind.", name="wavers")
    async def wavers(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        exits = ["north"]
        context.patch(OrderedDict(room=OrderedDict(exits=exits, lamp=None)))
        exits.append("down")
        return ToolResult.ok(None)

    session = Session()
    assert (await run(wavers, session=session)).success
    assert session.snapshot() == {"room": {"exits": ["north"]}}


async def test_a_patch_that_is_not_json_fails_the_call_and_leaves_nothing():
    @tool(description="Patches nonsense.", name="nonsense")
    async def nonsense(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"fine": True})
        context.patch({"page": Opaque()})
        return ToolResult.ok(None)

    session = Session()
    result = await run(nonsense, session=session)
    assert not result.success and "cannot be written as JSON" in result.message
    assert untouched(session)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
async def test_a_number_that_json_does_not_have_is_refused_and_removes_nothing(number):
    @tool(description="Patches.", name="patches")
    async def patches(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"gone": None, "deep": {"hp": [1, number]}})
        return ToolResult.ok(None)

    @tool(description="Emits.", name="emits")
    async def emits(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.emit(StatePatch(version="0", patch={"deep": number}))
        return ToolResult.ok(None)

    async def nothing(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    changes = [
        Tool(name, "Sets.", nothing, effects=[StateChangeEffect(state="deep.hp", change=change, value=value)])
        for name, change, value in (("sets", "set", number), ("adds", "increment", number))
    ]
    for one in (patches, emits, *changes):
        session = Session(state={"gone": 1, "deep": {"hp": 5}})
        result = await run(one, session=session)
        assert not result.success and "is not a JSON number" in result.message, one.name
        assert session.snapshot() == {"gone": 1, "deep": {"hp": 5}}
    with pytest.raises(ToolValidationError, match=r"state\.a\[0\]: .* is not a JSON number"):
        Session(state={"a": [number]})
    with pytest.raises(ToolValidationError, match=r"the patch\.a: .* is not a JSON number"):
        Session().patch({"a": number})


async def test_a_sum_that_is_no_number_is_refused():
    async def nothing(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    effect = StateChangeEffect(state="hp", change="increment", value=1e308)
    session = Session(state={"hp": 1.7e308})
    result = await run(Tool("adds", "Adds.", nothing, effects=[effect]), session=session)
    assert not result.success and "gives no JSON number" in result.message
    assert session.snapshot() == {"hp": 1.7e308}


@pytest.mark.parametrize("ends", ["at once", "later", "failed"])
async def test_a_task_that_outlives_its_handler_calls_no_tool(ends):
    ran, tasks, go_on = [], [], asyncio.Event()

    @tool(description="Marks.", name="mark")
    async def mark(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        ran.append(1)
        context.patch({"marked": True})
        return ToolResult.ok(None)

    @tool(description="Leaves a task behind.", name="leaver")
    async def leaver(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        async def later() -> ToolResult[None]:
            await go_on.wait()
            return await context.call("mark", {})

        tasks.append(asyncio.create_task(later()))
        if ends == "later":
            await asyncio.sleep(0)
        return ToolResult.error("no") if ends == "failed" else ToolResult.ok(None)

    session = Session()
    assert (await ToolRegistry([leaver, mark]).execute("leaver", {}, session=session)).success == (
        ends != "failed"
    )
    go_on.set()
    (result,) = await asyncio.gather(*tasks)
    assert (result.success, result.error.code, ran) == (False, "CANCELLED", [])
    assert "mark: the call that asks for it is over" in result.message
    assert untouched(session)


async def test_a_part_that_ends_after_its_call_fails_and_is_taken_back():
    tasks, begun, go_on, outside = [], asyncio.Event(), asyncio.Event(), []
    rings = StateChangeEffect(
        state="bell", apply=lambda: outside.append("+"), rollback=lambda: outside.append("-"), description="b"
    )

    @tool(description="Marks, slowly.", name="mark", effects=[rings])
    async def mark(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        begun.set()
        await go_on.wait()
        context.patch({"marked": True})
        return ToolResult.ok(None)

    @tool(description="Leaves a call behind.", name="leaver")
    async def leaver(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        tasks.append(asyncio.create_task(context.call("mark", {})))
        await begun.wait()
        return ToolResult.ok(None)

    session = Session()
    assert (await ToolRegistry([leaver, mark]).execute("leaver", {}, session=session)).success
    go_on.set()
    (result,) = await asyncio.gather(*tasks)
    assert not result.success and "the call it is part of is over" in result.message
    assert outside == ["+", "-"]
    assert session.snapshot() == {}


# --- handlers that will not stop, or cannot say why ---------------------------------------------------------


async def test_a_handler_that_swallows_its_cancellation_is_a_timeout_and_its_late_result_is_dropped():
    @tool(description="Goes on.", timeout=0.05)
    async def stubborn(params: Nothing, *, context: ToolContext) -> ToolResult[str]:
        context.patch({"touched": True})
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return ToolResult.ok("late")

    session = Session()
    result = await run(stubborn, session=session)
    assert result.error.code == "TIMEOUT" and untouched(session)


async def _two_timeouts() -> None:
    for _ in range(3):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()


async def _two_groups() -> None:
    async def fail() -> None:
        raise ValueError("a part")

    for _ in range(3):
        with contextlib.suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                await asyncio.Event().wait()


async def _two_futures() -> None:
    for _ in range(3):
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await future


async def _a_scope() -> None:
    """anyio cancels again at each step within a scope that is left."""
    with anyio.move_on_after(0.001):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(4):
                stack.push_async_callback(anyio.sleep, 0.001)
            await anyio.sleep_forever()


async def _scopes_in_a_row() -> None:
    for _ in range(3):
        with anyio.move_on_after(0.001):
            await anyio.sleep_forever()


@pytest.mark.parametrize("wait", [_two_timeouts, _two_groups, _two_futures, _a_scope, _scopes_in_a_row])
async def test_cancellations_of_a_handlers_own_do_not_close_it(wait):
    @tool(description="Waits in its own way.", timeout=10)
    async def patient(params: Nothing, *, context: ToolContext) -> ToolResult[str]:
        await asyncio.sleep(0)
        await wait()
        await asyncio.sleep(0)
        return ToolResult.ok("done")

    result = await run(patient)
    assert (result.success, result.value) == (True, "done"), result.message


async def test_a_handler_that_never_stops_is_closed_after_its_second_cancellation():
    @tool(description="Never stops.", timeout=0.05)
    async def never(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    session = Session()
    result = await asyncio.wait_for(run(never, session=session), 10)
    assert result.error.code == "TIMEOUT"


class Unreadable(Exception):
    def __str__(self):
        raise ValueError("not even this")


@pytest.mark.parametrize("error", [Unreadable(), GeneratorExit()])
async def test_even_an_error_without_words_is_a_structured_failure(error):
    session = Session()
    result = await run(failing(error), session=session)
    assert result.error.code == "EXECUTION_FAILED" and untouched(session)


async def test_a_precondition_that_exits_is_a_structured_failure():
    def leave(context):
        raise SystemExit(1)

    @tool(
        description="Never runs.",
        preconditions=[CustomPrecondition(description="leaves", id="x", check=leave, critical=True)],
    )
    async def act(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        raise AssertionError

    assert not (await run(act)).success


# --- taking back over several levels ------------------------------------------------------------------------


def outside(name, log, *, fails=False):
    def apply(context, result):
        if fails:
            raise OSError("boom")
        log.append(name)

    return NotificationEffect(
        description=name,
        event=name,
        reversible=True,
        apply=apply,
        rollback=lambda context: log.append(f"undo {name}"),
    )


async def test_effects_of_a_cascade_are_taken_back_before_those_that_came_before_it():
    log = []

    @tool(description="Kid.", effects=[outside("kid", log)])
    async def kid(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    @tool(
        description="Parent.",
        effects=[
            outside("first", log),
            CascadeEffect(description="kid", trigger_tool="kid", reversible=True),
            outside("last", log, fails=True),
        ],
    )
    async def parent(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    result = await ToolRegistry([kid, parent]).execute("parent", {})
    assert result.error.code == "EFFECT_FAILED"
    assert log == ["first", "kid", "undo kid", "undo first"]


async def test_a_rollback_in_a_composed_call_can_still_use_resources():
    from narratoria.kinds.compose import sequence

    class Box:
        def __init__(self):
            self.items = []

    box = Box()
    session = Session()
    session.resources.provide(Box, box)

    def put(context, result):
        context.resources.get(Box).items.append("paid")

    def take(context):
        context.resources.get(Box).items.remove("paid")

    paid = NotificationEffect(description="paid", event="paid", reversible=True, apply=put, rollback=take)

    @tool(description="Pays.", effects=[paid])
    async def pay(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    @tool(description="Fails.")
    async def boom(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.error("boom")

    result = await run(sequence([pay, boom], stop_on_error=True), session=session)
    assert not result.success and box.items == []
