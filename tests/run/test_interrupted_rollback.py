"""A failed attempt is taken back once and completely, whatever happens to the call meanwhile."""

import asyncio
from dataclasses import dataclass

import pytest

from narratoria.events import Notice
from narratoria.kinds.compose import Branch, conditional, parallel, sequence
from narratoria.kinds.function import tool
from narratoria.run import handlers
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.session.resources.resources import Filesystem
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import ToolContext, ToolResult


@dataclass(frozen=True)
class Nothing:
    pass


class Notices:
    """A sink that keeps what the session reports."""

    full = False

    def __init__(self, session):
        self.messages = []
        session.attach(self)

    def push(self, record):
        if isinstance(record.event, Notice):
            self.messages.append(record.event.message)

    async def wait(self): ...


class Outside:
    """The world outside: what was done to it, and rollbacks that wait for `go_on`."""

    def __init__(self):
        self.done = []
        self.rolling, self.go_on = asyncio.Event(), asyncio.Event()

    def effect(self, name):
        async def take_back():
            self.rolling.set()
            await self.go_on.wait()
            self.done.append(f"-{name}")

        return StateChangeEffect(
            state=name, apply=lambda: self.done.append(f"+{name}"), rollback=take_back, description=name
        )

    def tool(self, name, *, fails=False, after=None):
        @tool(name=name, description=name, effects=[] if fails else [self.effect(name)])
        async def act(params: Nothing, *, context: ToolContext) -> ToolResult[dict]:
            if after is not None:
                await after.wait()
            return ToolResult.error("no", code="BROKEN") if fails else ToolResult.ok({})

        return act

    def not_taken(self, name="either"):
        """A conditional whose branch, a sequence of a and b, is abandoned."""
        inner = sequence([self.tool("a"), self.tool("b")])
        return conditional([Branch(lambda result, context: False, [inner])], name=name)


def full_disk():
    raise OSError("disk full")


async def cancelled_while_rolling_back(outside, called, session=None, *, times=1):
    task = asyncio.create_task(ToolRegistry([called]).execute(called.name, {}, session=session or Session()))
    await outside.rolling.wait()
    for _ in range(times):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    outside.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_rollback_takes_everything_back_and_discards_the_draft(tmp_path):
    outside = Outside()
    session = Session()
    session.resources.provide(Filesystem, HostFilesystem(tmp_path))
    failing = StateChangeEffect(state="c", apply=full_disk, description="c")

    @tool(description="Writes.", effects=[outside.effect("a"), outside.effect("b"), failing])
    async def write(params: Nothing, *, context: ToolContext) -> ToolResult[dict]:
        context.filesystem.write_text("left.txt", "x")
        return ToolResult.ok({})

    await cancelled_while_rolling_back(outside, write, session)
    assert outside.done == ["+a", "+b", "-b", "-a"] and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_cancelling_a_failed_sequence_takes_each_effect_back_once(times):
    outside = Outside()
    whole = sequence([outside.tool("a"), outside.tool("b"), outside.tool("f", fails=True)])
    await cancelled_while_rolling_back(outside, whole, times=times)
    assert outside.done == ["+a", "+b", "-b", "-a"]


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_cancelling_while_a_branch_is_abandoned_takes_all_of_it_back(times):
    outside = Outside()
    whole = sequence([outside.tool("first"), outside.not_taken()])
    await cancelled_while_rolling_back(outside, whole, times=times)
    assert outside.done == ["+first", "+a", "+b", "-b", "-a", "-first"]


async def test_a_timeout_while_a_branch_is_abandoned_waits_until_it_is_taken_back(monkeypatch):
    monkeypatch.setattr(handlers, "STUBBORN", 0.02)
    outside = Outside()
    whole = outside.not_taken()
    whole.timeout = 0.02
    task = asyncio.create_task(ToolRegistry([whole]).execute("either", {}, session=Session()))
    await outside.rolling.wait()
    await asyncio.wait([task], timeout=0.2)  # past the timeout, and past the time to tidy up
    assert not task.done()
    outside.go_on.set()
    result = await task
    assert result.error.code == "TIMEOUT" and outside.done == ["+a", "+b", "-b", "-a"]


async def test_a_sibling_that_stops_the_rest_does_not_stop_their_rollbacks():
    outside = Outside()
    failing = outside.tool("f", fails=True, after=outside.rolling)
    whole = parallel([outside.not_taken("q"), failing], stop_on_error=True)
    task = asyncio.create_task(ToolRegistry([whole]).execute(whole.name, {}, session=Session()))
    await outside.rolling.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    outside.go_on.set()
    result = await task
    assert result.error.code == "BROKEN" and outside.done == ["+a", "+b", "-b", "-a"]


async def test_a_rollback_that_cancels_itself_is_reported_and_the_others_go_on():
    outside = Outside()
    outside.go_on.set()

    async def cancels_itself():
        task = asyncio.create_task(asyncio.Event().wait())
        task.cancel()
        await task

    @tool(
        description="Acts.",
        effects=[
            outside.effect("a"),
            StateChangeEffect(state="b", apply=lambda: None, rollback=cancels_itself, description="b"),
            StateChangeEffect(state="c", apply=full_disk, description="c"),
        ],
    )
    async def act(params: Nothing, *, context: ToolContext) -> ToolResult[dict]:
        return ToolResult.ok({})

    session = Session()
    notices = Notices(session)
    result = await ToolRegistry([act]).execute("act", {}, session=session)
    assert result.error.code == "EFFECT_FAILED" and outside.done == ["+a", "-a"]
    assert notices.messages == ["effects[1] (b) was not taken back: CancelledError"]


async def test_an_effect_that_no_longer_fits_at_the_commit_is_a_failed_effect_and_runs_nothing_again():
    session = Session(state={"keys": 1})
    notices = Notices(session)
    runs = []

    @tool(
        description="Counts a key.",
        effects=[
            StateChangeEffect(state="keys", change="increment"),
            StateChangeEffect(
                state="door",
                apply=lambda: session.patch({"keys": "none"}),
                rollback=lambda: session.patch({"keys": 1}),
            ),
        ],
    )
    async def take(params: Nothing, *, context: ToolContext) -> ToolResult[dict]:
        runs.append(1)
        return ToolResult.ok({})

    retry = PlanRetry(max_retries=3, backoff_ms=1)
    for called in (take, sequence([take], name="take")):
        runs.clear()
        plan = PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="take", retry_policy=retry)])
        done = await PlanExecutor(ToolRegistry([called]), session).execute(plan)
        outcome = done.tool_results[0]
        assert (len(runs), outcome.error_code) == (1, "EFFECT_FAILED")
        assert "cannot increment 'keys'" in outcome.error
        assert session.state == {"keys": 1} and not notices.messages


async def test_a_handler_that_cancels_itself_has_failed_and_is_retried_by_a_plan():
    runs = []

    @tool(description="Awaits a task of its own that was cancelled.")
    async def stumble(params: Nothing, *, context: ToolContext) -> ToolResult[dict]:
        runs.append(1)
        task = asyncio.create_task(asyncio.Event().wait())
        task.cancel()
        await task
        return ToolResult.ok({})

    retry = PlanRetry(max_retries=2, backoff_ms=1)
    plan = PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="stumble", retry_policy=retry)])
    done = await PlanExecutor(ToolRegistry([stumble]), Session()).execute(plan)
    outcome = done.tool_results[0]
    assert (len(runs), outcome.retry_count, outcome.state) == (3, 2, "failed")
    assert (outcome.error_code, outcome.error_source) == ("CANCELLED", "tool")
