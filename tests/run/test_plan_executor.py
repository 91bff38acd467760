"""Executing plans: each rule of 000 §13.4, and a trace that is complete however the plan ends."""

import asyncio
import gc
import math
import os
import stat
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from narratoria.errors import (
    PlanRejected,
    PromptEvaluationError,
    ToolValidationError,
    VisibilityExpansionRequired,
)
from narratoria.events import CallEmitted, CallFinished, CallStarted, Committed, Log, PlanFinished, UiEvent
from narratoria.kinds.compose import parallel, sequence
from narratoria.kinds.function import tool
from narratoria.run.call_record import Call
from narratoria.run.cores import cgroup_quota, usable_cores
from narratoria.run.lint import lint_plan
from narratoria.run.plan import CallResult, PlanDocument, PlanMetadata, PlannedCall, PlanRetry
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.run.resolve import ToolResolver
from narratoria.session import Session
from narratoria.session.assets import AssetStore
from narratoria.tools.retry import no_waiting
from narratoria.tools.tool import Tool, ToolContext, ToolResult

ONE_RETRY = {"maxRetries": 1, "backoffMs": 0}


@dataclass(frozen=True)
class Job:
    """What the test tool is asked to do."""

    patch: dict = field(default_factory=dict)
    fail: str = ""
    fail_times: int = 1000
    value: Any = None
    seconds: float = 0.0
    slow_times: int = 1000


class Workshop:
    """One tool, `work`, that does as it is told and notes when."""

    def __init__(self):
        self.order = []
        self.running = 0
        self.peak = 0
        self.attempts = {}
        self.seen = {}
        self.gates = {}

        @tool(description="Works.", name="work")
        async def work(params: Job, *, context: ToolContext) -> ToolResult[Any]:
            name = context.call_id.rpartition(":")[2]
            self.order.append(name)
            self.attempts[name] = self.attempts.get(name, 0) + 1
            self.seen[name] = context.dependencies
            self.running += 1
            self.peak = max(self.peak, self.running)
            try:
                context.log(f"{name} at work")
                if params.patch:
                    context.patch(params.patch)
                if name in self.gates:
                    await self.gates[name].wait()
                elif params.seconds and self.attempts[name] <= params.slow_times:
                    await asyncio.sleep(params.seconds)
                if params.fail and self.attempts[name] <= params.fail_times:
                    return ToolResult.error(f"{name} failed", code=params.fail)
                return ToolResult.ok(params.value)
            finally:
                self.running -= 1

        self.registry = ToolRegistry([work])


class Heard:
    """Everything a session records."""

    full = False

    def __init__(self, session):
        self.events = []
        session.attach(self)

    def push(self, record):
        self.events.append(record.event)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def call(tool_id, *dependencies, **fields):
    job = {key: fields.pop(key) for key in list(fields) if key in Job.__dataclass_fields__}
    fields.setdefault("retryPolicy", {"maxRetries": 0})
    return {"toolId": tool_id, "toolPath": "work", "dependencies": list(dependencies), "input": job, **fields}


def plan(*calls, **fields):
    return PlanDocument.from_data({"requestId": "p", "tools": list(calls), **fields})


async def run(shop, document, session=None, **options):
    executor = PlanExecutor(shop.registry, session or Session(), **options)
    return await asyncio.wait_for(executor.execute(document), 30)


def states(result):
    return {one.tool_id: one.state for one in result.tool_results}


# --- the rules --------------------------------------------------------------------------------------------


async def test_rule_1_a_plan_with_a_cycle_is_rejected_before_anything_runs():
    shop = Workshop()
    document = msgspec.convert(
        {"requestId": "p", "tools": [call("a", "b"), call("b", "a"), call("c")]}, PlanDocument
    )
    with pytest.raises(PlanRejected, match="circular"):
        await run(shop, document)
    assert shop.order == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"tool_path": None},
        {"tool_id": None},
        {"tool_id": ["b"]},
        {"dependencies": None},
        {"dependencies": [None]},
        {"dependencies": "a"},
        {"retry_policy": None},
        {"retry_policy": PlanRetry(max_retries=-1)},
        {"retry_policy": PlanRetry(backoff_ms="1")},
        {"required": "yes"},
        {"input": None},
        {"input": 5},
    ],
)
async def test_a_plan_made_in_python_is_checked_whole_before_anything_runs(wrong):
    shop = Workshop()
    sound = PlannedCall(tool_id="a", tool_path="work")
    document = PlanDocument(
        tools=[sound, PlannedCall(**{"tool_id": "b", "tool_path": "work", **wrong})], request_id="p"
    )
    with pytest.raises(PlanRejected) as caught:
        await run(shop, document)
    assert shop.order == [] and caught.value.plan_id == "p"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": None},
        {"tools": [1]},
        {"metadata": None},
        {"metadata": PlanMetadata(generation_attempt="1")},
        {"disabled_skills": None},
        {"disabled_skills": [1]},
        {"request_id": None},
        {"request_id": ""},
        {"narrative": 5},
        {"parallel": "no"},
    ],
)
async def test_the_fields_of_a_plan_made_in_python_are_checked_too(wrong):
    shop = Workshop()
    document = PlanDocument(**{"tools": [PlannedCall(tool_id="a", tool_path="work")], **wrong})
    with pytest.raises(PlanRejected):
        await run(shop, document)
    assert shop.order == []


async def test_a_plan_is_checked_whole_only_once(monkeypatch):
    read = plan(call("a"))
    made = PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="work")])
    assert (await run(Workshop(), made)).success
    monkeypatch.setattr(PlanDocument, "from_data", None)
    for document in (read, made):
        assert (await run(Workshop(), document)).success


async def test_rule_2_no_call_begins_before_its_dependencies_have_completed():
    shop = Workshop()
    await run(shop, plan(call("c", "b"), call("b", "a"), call("a"), parallel=True))
    assert shop.order == ["a", "b", "c"]


async def test_rule_2_a_call_starts_when_its_last_dependency_ends_and_not_with_a_wave():
    shop = Workshop()
    shop.gates["slow"] = asyncio.Event()
    document = plan(
        call("slow", **{"async": True}),
        call("a", **{"async": True}),
        call("b", "a", **{"async": True}),
        parallel=True,
    )
    task = asyncio.create_task(run(shop, document, limit=2))
    while "b" not in shop.order:
        await asyncio.sleep(0)
    assert shop.running >= 1 and not shop.gates["slow"].is_set()
    shop.gates["slow"].set()
    assert (await task).success


async def test_rule_3_async_calls_of_a_parallel_plan_run_at_once_up_to_the_limit():
    shop = Workshop()
    document = plan(*(call(str(n), seconds=0.01, **{"async": True}) for n in range(8)), parallel=True)
    assert (await run(shop, document, limit=3)).success
    assert shop.peak == 3


async def test_rule_3_the_limit_is_the_number_of_usable_cores_unless_told():
    assert PlanExecutor(ToolRegistry(), Session()).limit == usable_cores() <= len(os.sched_getaffinity(0))


async def test_rule_3_a_call_that_is_not_async_runs_alone():
    shop = Workshop()
    overlaps = []

    @tool(description="Must be alone.", name="alone")
    async def alone(params: Job, *, context: ToolContext) -> ToolResult[None]:
        overlaps.append(shop.running)
        await asyncio.sleep(0.01)
        overlaps.append(shop.running)
        return ToolResult.ok(None)

    shop.registry.register(alone)
    together = [call(str(n), seconds=0.005, **{"async": True}) for n in range(6)]
    together.insert(3, {"toolId": "x", "toolPath": "alone"})
    assert (await run(shop, plan(*together, parallel=True), limit=4)).success
    assert overlaps == [0, 0] and shop.peak > 1


async def test_rule_4_a_sequential_plan_runs_one_at_a_time_in_topological_order():
    shop = Workshop()
    document = plan(
        call("a", **{"async": True}),
        call("b", seconds=0.001, **{"async": True}),
        call("c", **{"async": True}),
    )
    await run(shop, document)
    assert shop.order == ["a", "b", "c"] and shop.peak == 1


async def test_rule_5_a_failing_call_is_retried_and_the_count_recorded():
    shop = Workshop()
    with no_waiting():
        result = await run(shop, plan(call("a", fail="FLAKY", fail_times=2, retryPolicy={"maxRetries": 3})))
    (one,) = result.tool_results
    assert one.ok and one.retry_count == 2 and shop.attempts["a"] == 3


async def test_rule_5_after_the_last_retry_the_call_has_failed():
    shop = Workshop()
    with no_waiting():
        result = await run(shop, plan(call("a", fail="BROKEN", retryPolicy={"maxRetries": 2})))
    (one,) = result.tool_results
    assert (one.ok, one.state, one.retry_count, one.error_code) == (False, "failed", 2, "BROKEN")
    assert shop.attempts["a"] == 3 and result.failed_tools == ["a"]


async def test_rule_6_a_required_failure_skips_its_dependants_and_theirs_and_fails_the_plan():
    shop = Workshop()
    document = plan(
        call("a", fail="X"), call("b", "a"), call("c", "b", required=False), call("d"), parallel=True
    )
    result = await run(shop, document)
    assert states(result) == {"a": "failed", "b": "skipped", "c": "skipped", "d": "completed"}
    assert not result.success and result.can_replan and result.failed_tools == ["a"]
    assert "'a', which it needs, failed" in result.result_of("b").error


async def test_rule_6_an_optional_failure_lets_its_dependants_run_with_null():
    shop = Workshop()
    document = plan(
        call("a", fail="X", required=False, patch={"lost": 1}),
        call("b", patch={"kept": 1}),
        call("c", "a", "b"),
    )
    session = Session()
    result = await run(shop, document, session)
    assert result.success and states(result)["c"] == "completed"
    assert shop.seen["c"] == {"a": None, "b": {"kept": 1}}
    assert session.state == {"kept": 1}


async def test_rule_6_an_independent_call_goes_on_when_its_sibling_fails():
    shop = Workshop()
    session = Session()
    document = plan(
        call("bad", fail="X", patch={"bad": 1}, **{"async": True}),
        call("good", seconds=0.01, patch={"good": 1}, **{"async": True}),
        parallel=True,
    )
    result = await run(shop, document, session)
    assert states(result) == {"bad": "failed", "good": "completed"} and session.state == {"good": 1}


async def test_rule_6_only_passing_failures_are_executed_again_and_completed_calls_are_not():
    shop = Workshop()
    document = plan(
        call("done", patch={"n": 1}),
        call("flaky", "done", seconds=60, slow_times=4, retryPolicy=ONE_RETRY),
        call("after", "flaky"),
    )
    result = await run(shop, document, call_timeout=0.05)
    assert result.success and shop.attempts == {"done": 1, "flaky": 5, "after": 1}


async def test_rule_6_a_plan_is_executed_three_times_at_most():
    shop = Workshop()
    result = await run(shop, plan(call("flaky", seconds=60, retryPolicy=ONE_RETRY)), call_timeout=0.02)
    assert not result.success and shop.attempts["flaky"] == 6


async def test_rule_7_every_event_is_aggregated_live_and_in_order():
    shop = Workshop()
    session = Session()
    seen = []

    class Sink:
        full = False

        def push(self, record):
            seen.append(record.event)

        async def wait(self):
            return None

    session.attach(Sink())
    await run(shop, plan(call("a", patch={"x": 1}), call("b", "a", patch={"x": 2})), session)
    logs = [one.event.message for one in seen if isinstance(one, CallEmitted) and isinstance(one.event, Log)]
    assert logs == ["a at work", "b at work"] and session.state == {"x": 2}
    assert [one.tool_id for one in seen if isinstance(one, CallFinished)] == ["a", "b"]
    assert isinstance(seen[-1], PlanFinished) and seen[-1].success


async def test_rule_8_the_trace_has_every_field_of_13_5():
    shop = Workshop()
    result = await run(shop, plan(call("a", patch={"x": {"y": 1}}), call("b", fail="X"), narrative="Once."))
    data = msgspec.to_builtins(result)
    assert set(data) >= {
        "planId", "success", "narrative", "executionTime", "toolResults", "failedTools", "generationAttempt",
        "canReplan",
    }  # fmt: skip
    first, second = data["toolResults"]
    assert set(first) >= {"toolId", "ok", "state", "output", "executionTime", "retryCount", "error", "events"}
    assert first["output"] == {"x": {"y": 1}} and first["error"] is None
    assert [event["type"] for event in first["events"]] == ["log", "state_patch"]
    assert second["error"] == "b failed" and second["errorCode"] == "X"
    assert (data["planId"], data["narrative"], data["generationAttempt"]) == ("p", "Once.", 1)


# --- time, cancellation, resuming -------------------------------------------------------------------------


async def test_a_plan_past_its_time_ends_and_every_call_has_a_result():
    shop = Workshop()
    shop.gates["stuck"] = asyncio.Event()
    document = plan(call("a", patch={"a": 1}), call("stuck", "a", patch={"stuck": 1}), call("never", "stuck"))
    session = Session()
    result = await run(shop, document, session, plan_timeout=0.1)
    assert states(result) == {"a": "completed", "stuck": "timeout", "never": "skipped"}
    assert session.state == {"a": 1} and not result.success


async def test_a_call_past_its_time_is_a_timeout():
    shop = Workshop()
    shop.gates["stuck"] = asyncio.Event()
    result = await run(shop, plan(call("stuck")), call_timeout=0.03)
    assert result.tool_results[0].state == "timeout" and result.tool_results[0].error_code == "TIMEOUT"


async def _pool(params: Job, *, context: ToolContext) -> ToolResult[None]:
    if params.seconds:
        await asyncio.sleep(params.seconds)
    raise TimeoutError("db pool exhausted")


async def _inner(params: Job, *, context: ToolContext) -> ToolResult[None]:
    async with asyncio.timeout(params.seconds):
        await asyncio.sleep(5)
    raise AssertionError


def _plain(params: Job, *, context: ToolContext) -> ToolResult[None]:
    time.sleep(params.seconds)
    raise TimeoutError("db pool exhausted")


@pytest.mark.parametrize("seconds", [0.0, 0.01])
@pytest.mark.parametrize("handler", [_pool, _inner, _plain])
async def test_a_timeout_of_the_handlers_own_is_a_failure_like_any_other(handler, seconds):
    registry = ToolRegistry([tool(description="Times out.", name="own")(handler)])
    document = plan(call("a", toolPath="own", seconds=seconds))
    session = Session()
    heard = Heard(session)
    failed = (await PlanExecutor(registry, session).execute(document)).result_of("a")
    assert (failed.state, failed.error_code) == ("failed", "EXECUTION_FAILED")
    assert "TimeoutError" in failed.error and (handler is _inner or "db pool exhausted" in failed.error)
    assert len(heard.of(CallStarted)) == 1


@pytest.mark.parametrize("handler", [_pool, _inner, _plain])
async def test_the_pipelines_timer_is_told_from_the_handlers(handler):
    registry = ToolRegistry([tool(description="Too slow.", name="own")(handler)])
    document = plan(call("a", toolPath="own", seconds=0.3))
    failed = await PlanExecutor(registry, Session(), call_timeout=0.05, max_executions=1).execute(document)
    assert failed.result_of("a").error_code == "TIMEOUT" and "0.05 s" in failed.result_of("a").error


async def test_cancelling_a_plan_settles_every_call_and_passes_on():
    shop = Workshop()
    shop.gates["stuck"] = asyncio.Event()
    session = Session()
    task = asyncio.create_task(
        run(shop, plan(call("a", patch={"a": 1}), call("stuck", "a"), call("b", "stuck")), session)
    )
    while "stuck" not in shop.order:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shop.running == 0 and session.state == {"a": 1}


async def test_completed_results_of_an_interrupted_run_are_kept():
    shop = Workshop()
    kept = CallResult(tool_id="a", ok=True, state="completed", output={"x": 7})
    document = plan(call("a"), call("b", "a"))
    executor = PlanExecutor(shop.registry, Session())
    result = await executor.execute(document, completed={"a": kept})
    assert result.success and shop.order == ["b"] and shop.seen["b"] == {"a": {"x": 7}}
    assert result.tool_results[0] is kept


# --- references -------------------------------------------------------------------------------------------


async def test_a_reference_is_replaced_by_the_output_of_its_call():
    shop = Workshop()
    session = Session()
    document = plan(
        call("light1", patch={"inventory": {"torch": {"lit": True}}}),
        call("b", value={"$from": "light1", "path": "inventory.torch.lit"}),
        call("c", patch={"copy": {"$from": "light1", "path": "inventory"}}),
        call("d", value={"$from": "b", "path": "value"}),
    )
    result = await run(shop, document, session)
    assert result.success
    assert result.result_of("b").output == {"value": True}, (
        "a tool that only returns a value has it as output"
    )
    assert session.state["copy"] == {"torch": {"lit": True}}
    assert result.result_of("d").output == {"value": True}


async def test_a_reference_to_a_failed_optional_call_is_null():
    shop = Workshop()
    document = plan(call("a", fail="X", required=False), call("b", value=[{"$from": "a", "path": "x"}]))
    assert (await run(shop, document)).result_of("b").output == {"value": [None]}


# --- where tools may lie ----------------------------------------------------------------------------------


def script(path, text='print(\'{"version":"0","type":"done","ok":true}\')'):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env python3\n{textwrap.dedent(text)}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("form", ["relative", "absolute"])
async def test_a_tool_inside_an_allowed_root_runs(tmp_path, form):
    tool_file = script(tmp_path / "tools" / "hello")
    path = "tools/hello" if form == "relative" else str(tool_file)
    result = await run(Workshop(), plan({"toolId": "a", "toolPath": path}), roots=[tmp_path])
    assert result.success


@pytest.mark.parametrize("form", ["parent", "absolute", "symlink"])
async def test_a_tool_outside_the_roots_is_refused_before_a_process_starts(tmp_path, form):
    marker = tmp_path / "ran"
    outside = script(tmp_path / "outside" / "evil", f"open({str(marker)!r}, 'w')")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside)
    path = {"parent": "../outside/evil", "absolute": str(outside), "symlink": "link"}[form]
    result = await run(Workshop(), plan({"toolId": "a", "toolPath": path}), roots=[root])
    assert not result.success and "outside the folders" in result.tool_results[0].error
    assert not marker.exists()


async def test_a_tool_that_does_not_exist_fails_its_call_only():
    shop = Workshop()
    result = await run(shop, plan({"toolId": "a", "toolPath": "nope", "required": False}, call("b")))
    assert result.success and result.result_of("a").error_code == "TOOL_NOT_FOUND"


async def test_a_symlink_loop_is_not_found(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    result = await run(Workshop(), plan({"toolId": "a", "toolPath": "loop"}), roots=[tmp_path])
    assert result.tool_results[0].error_code == "TOOL_NOT_FOUND"


@pytest.mark.parametrize("path", ["x" * 300, "a/" * 2047, "x" * 250 + "/y", "../" * 1365])
async def test_a_path_no_file_system_knows_fails_its_call_only(tmp_path, path):
    document = plan(call("a"), call("b", toolPath=path), call("c"))
    result = await run(Workshop(), document, roots=[tmp_path])
    assert states(result) == {"a": "completed", "b": "failed", "c": "completed"}
    failed = result.result_of("b")
    assert failed.error_code in ("TOOL_NOT_FOUND", "NOT_EXECUTABLE") and len(failed.error) < 600


async def test_a_file_whose_manifest_could_not_be_named_runs_without_one(tmp_path):
    name = "t" * 250
    script(tmp_path / name)
    result = await run(Workshop(), plan(call("a", toolPath=name)), roots=[tmp_path])
    assert states(result) == {"a": "completed"}


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ('{"name": "t", "description": "T.", "timeout": 30000}', "seconds"),
        ('{"name": "t", "name": "t", "description": "T."}', "twice"),
        ('{"name": "t"', "not JSON"),
        ('{"name": "t"}', "description"),
        ('{"name": "t", "description": "T.", "kind": "oracle"}', "kind of tool"),
    ],
)
async def test_a_tool_with_a_broken_manifest_fails_its_call_only(tmp_path, manifest, told):
    script(tmp_path / "t")
    (tmp_path / "t.tool.json").write_text(manifest)
    document = plan(call("a"), call("b", toolPath="t"), call("c"))
    result = await run(Workshop(), document, roots=[tmp_path])
    assert states(result) == {"a": "completed", "b": "failed", "c": "completed"}
    assert result.result_of("b").error_code == "NOT_EXECUTABLE" and told in result.result_of("b").error
    report = lint_plan(document.to_json(), ToolResolver(ToolRegistry(), [tmp_path]))
    assert any("$.tools[1].toolPath" in one and told in one for one in report.problems)


async def test_a_disabled_skill_is_not_run():
    shop = Workshop()
    result = await run(shop, plan(call("a"), disabledSkills=["work"]))
    assert shop.order == [] and result.tool_results[0].error_code == "SKILL_DISABLED"


async def test_ten_thousand_calls_run():
    shop = Workshop()
    document = plan(
        *(call(str(n), *([str(n - 1)] if n % 10 else []), **{"async": True}) for n in range(10_000)),
        parallel=True,
    )
    result = await run(shop, document)
    assert result.success and len(shop.order) == 10_000


async def test_a_plan_lets_go_of_the_record_of_a_call_that_has_ended():
    """Kept, they cost a long plan a fifth more time: the collector walks through them again and again."""
    shop, kept = Workshop(), []

    @tool(description="Counts the records that are alive.")
    async def count(params: Job, *, context: ToolContext) -> ToolResult[None]:
        kept.append(sum(isinstance(one, Call) for one in gc.get_objects()))
        return ToolResult.ok(None)

    shop.registry.register(count)
    names = [str(number) for number in range(100)]
    result = await run(shop, plan(*map(call, names), call("last", *names, toolPath="count")))
    assert result.success and kept[0] < 10


async def test_the_loop_is_not_starved_by_calls_that_never_wait():
    shop = Workshop()
    turns = 0

    async def clock():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(clock())
    await run(shop, plan(*(call(str(n)) for n in range(2_000))))
    ticking.cancel()
    assert turns > 20


async def test_a_call_cut_short_by_the_plans_time_tells_what_it_had_said():
    shop = Workshop()
    shop.gates["stuck"] = asyncio.Event()
    result = await run(shop, plan(call("stuck", patch={"x": 1})), plan_timeout=0.1)
    (one,) = result.tool_results
    assert one.execution_time >= 50 and [type(event).__name__ for event in one.events] == [
        "Log",
        "StatePatch",
    ]


async def test_a_call_that_will_not_stop_does_not_hold_the_plan():
    @tool(description="Never stops.", name="never")
    async def never(params: Job, *, context: ToolContext) -> ToolResult[None]:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    shop = Workshop()
    shop.registry.register(never)
    result = await asyncio.wait_for(
        run(shop, plan({"toolId": "a", "toolPath": "never"}), plan_timeout=0.1), 10
    )
    assert not result.success and result.tool_results[0].state == "timeout"


# --- a tool's own code -------------------------------------------------------------------------------------


RUNTIME_CODES = ["TIMEOUT", "CANCELLED", "INVALID_ARGUMENTS", "TOOL_NOT_FOUND", "NOT_EXECUTABLE", "NETWORK"]


@pytest.mark.parametrize("code", RUNTIME_CODES)
async def test_a_tools_own_code_is_retried_and_reported_like_any_other(code):
    shop = Workshop()
    with no_waiting():
        result = await run(shop, plan(call("a", fail=code, retryPolicy={"maxRetries": 2})))
    (one,) = result.tool_results
    assert (one.state, one.error_code, one.error_source, one.retry_count) == ("failed", code, "tool", 2)
    assert shop.attempts["a"] == 3, "neither fewer, as if it were hopeless, nor more, as if it were passing"


@pytest.mark.parametrize("code", RUNTIME_CODES)
async def test_a_processes_own_code_is_retried_and_reported_like_any_other(tmp_path, code):
    script(
        tmp_path / "fails",
        f"""
        with open({str(tmp_path / "ran")!r}, "a") as file:
            file.write("x")
        print('{{"version":"0","type":"error","errorCode":"{code}","errorMessage":"says the tool"}}')
        print('{{"version":"0","type":"done","ok":false}}')
        """,
    )
    document = plan({"toolId": "a", "toolPath": "fails", "retryPolicy": {"maxRetries": 1}})
    with no_waiting():
        result = await run(Workshop(), document, roots=[tmp_path])
    (one,) = result.tool_results
    assert (one.state, one.error_code, one.error_source, one.retry_count) == ("failed", code, "tool", 1)
    assert (tmp_path / "ran").read_text() == "xx"


async def test_what_became_of_an_inner_call_is_the_word_of_the_tool_that_hands_it_on():
    @tool(description="Asks for a tool that is not there.", name="asks")
    async def asks(params: Job, *, context: ToolContext) -> ToolResult[Any]:
        return await context.call("nobody", {})

    shop = Workshop()
    shop.registry.register(asks)
    with no_waiting():
        result = await run(shop, plan(call("a", toolPath="asks", retryPolicy={"maxRetries": 1})))
    (one,) = result.tool_results
    assert (one.error_code, one.error_source, one.retry_count) == ("TOOL_NOT_FOUND", "tool", 1)


async def test_a_part_of_a_composed_call_that_runs_out_of_time_is_the_runtimes_word():
    @tool(description="Never ends.", name="endless", timeout=0.02)
    async def endless(params: Job, *, context: ToolContext) -> ToolResult[Any]:
        await asyncio.Event().wait()
        return ToolResult.ok(None)

    for composed in (sequence([endless], name="whole"), parallel([endless], name="whole")):
        result = await run(
            Workshop(),
            plan(call("a", toolPath="whole")),
            resolver=ToolResolver(ToolRegistry([composed]), ()),
            max_executions=1,
        )
        (one,) = result.tool_results
        assert (one.state, one.error_source) == ("timeout", "runtime")


# --- executed again -----------------------------------------------------------------------------------------


async def test_a_plan_that_is_executed_again_keeps_the_whole_trace():
    shop = Workshop()
    document = plan(
        call("done", patch={"n": 1}),
        call("slow", "done", seconds=60, slow_times=4, retryPolicy={"maxRetries": 1}),
        call("odd", fail="X", required=False, retryPolicy=ONE_RETRY),
        call("after", "slow"),
    )
    session = Session()
    heard = Heard(session)
    with no_waiting():
        result = await run(shop, document, session, call_timeout=0.02)
    slow, odd = result.result_of("slow"), result.result_of("odd")
    assert result.success and shop.attempts == {"done": 1, "slow": 5, "odd": 6, "after": 1}
    assert slow.ok and slow.retry_count == 4 and len(slow.events) == 5
    assert slow.execution_time >= 80, "the time of every run counts"
    assert odd.retry_count == 5 and len(odd.events) == 6
    assert [one.attempt for one in heard.of(CallStarted) if one.tool_id == "slow"] == [1, 2, 3, 4, 5]
    assert [one.attempts for one in heard.of(CallFinished) if one.tool_id == "slow"] == [2, 4, 5]


async def test_a_plan_that_runs_out_of_time_in_its_second_execution_tells_of_the_first():
    shop = Workshop()
    document = plan(
        call("a", seconds=60, retryPolicy=ONE_RETRY), call("b", seconds=60, retryPolicy=ONE_RETRY)
    )
    result = await run(shop, document, call_timeout=0.4, plan_timeout=1.8)
    assert states(result) == {"a": "timeout", "b": "timeout"}
    assert result.result_of("a").retry_count == 2 and len(result.result_of("a").events) == 3
    assert result.result_of("b").retry_count == 1 and len(result.result_of("b").events) == 2


# --- bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "given", "expected"), [(45, None, 45), (None, None, 30), (45, 5, 5), (5, 60, 60)]
)
async def test_a_call_has_the_time_its_tool_declares_unless_told_otherwise(declared, given, expected):
    limits = []

    @tool(description="Tells its limit.", name="tells", timeout=declared)
    async def tells(params: Job, *, context: ToolContext) -> ToolResult[None]:
        limits.append(context.time_limit)
        return ToolResult.ok(None)

    shop = Workshop()
    shop.registry.register(tells)
    await run(shop, plan(call("a", toolPath="tells")), call_timeout=given)
    assert limits == [expected]


@pytest.mark.parametrize("given", [30_000, float("inf"), float("nan"), 0, -1])
def test_a_time_that_cannot_be_meant_is_refused(given):
    for name, value in (("call_timeout", given), ("plan_timeout", given)):
        with pytest.raises(ToolValidationError, match=rf"{name}: .*seconds"):
            PlanExecutor(ToolRegistry(), Session(), **{name: value})


def test_the_cores_are_those_this_process_may_use():
    one = min(os.sched_getaffinity(0))
    code = "from narratoria.run.cores import usable_cores; print(usable_cores())"
    code = f"import os; os.sched_setaffinity(0, {{{one}}}); {code}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "1\n"


@pytest.mark.parametrize(
    ("own", "files", "quota"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 1.5),
        ("0::/\n", {"cpu.max": "200000 100000"}, 2),
        ("0::/host/path\n", {"cpu.max": "50000 100000"}, 0.5),
        ("0::/\n", {"cpu.max": "max 100000"}, None),
        ("4:cpu,cpuacct:/x\n", {"cpu/x/cpu.cfs_quota_us": "300000", "cpu/x/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu,cpuacct:/x\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("", {}, None),
        ("nonsense", {}, None),
    ],
)
def test_the_quota_of_a_control_group_is_the_tightest_above_this_process(tmp_path, own, files, quota):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        (tmp_path / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fs" / name).write_text(text)
    assert cgroup_quota(tmp_path / "fs", tmp_path / "own") == quota


async def test_ten_thousand_calls_that_are_stopped_end_at_once():
    shop = Workshop()
    shop.gates["0"] = asyncio.Event()
    document = plan(*(call(str(n)) for n in range(10_000)))
    task = asyncio.create_task(run(shop, document))
    while not shop.order:
        await asyncio.sleep(0)
    begun = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - begun < 2


def numbers(kind: str, *, refuses: bool) -> Tool[Any, Any]:
    """A tool of a long list, which its schema refuses at every element, or takes."""
    items = {"type": "object", "properties": {"k": {"type": "string" if refuses else "integer"}}}

    @tool(
        description="Takes a list.",
        name=kind,
        parameters={"type": "object", "properties": {"all": {"type": "array", "items": items}}},
    )
    async def take(params: dict[str, Any], *, context: ToolContext) -> ToolResult[int]:
        return ToolResult.ok(len(params["all"]))

    return take


@tool(description="Gives a long list.", name="long_list")
async def long_list(*, context: ToolContext) -> ToolResult[None]:
    context.patch({"all": [{"k": number} for number in range(20_000)]})
    return ToolResult.ok(None)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("refuses", [False, True])
async def test_calls_that_never_wait_but_take_long_leave_time_limits_and_the_loop_alone(refuses, together):
    given = {"all": {"$from": "all", "path": "all"}}
    calls = [
        {"toolId": f"c{n}", "toolPath": "takes", "input": given, "required": False, "async": together}
        for n in range(60)
    ]
    document = PlanDocument.from_data(
        {
            "requestId": "p",
            "tools": [{"toolId": "all", "toolPath": "long_list"}, *calls],
            "parallel": together,
        }
    )
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    turning = asyncio.create_task(turn())
    registry = ToolRegistry([long_list, numbers("takes", refuses=refuses)])
    result = await PlanExecutor(registry, Session(), plan_timeout=0.1, limit=8).execute(document)
    turning.cancel()
    ran = sum(one.state != "skipped" for one in result.tool_results)
    assert ran < 50, "the limit is heard between calls"
    assert turns >= ran // 8


class Raises(dict):
    """A mapping of somebody's own."""

    def items(self):
        raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            lambda plan: plan.tools.append(PlannedCall(tool_id="b", tool_path="work", dependencies=["z"])),
            "'z'",
        ),
        (
            lambda plan: plan.tools.append(PlannedCall(tool_id="b", tool_path="work", dependencies=["b"])),
            "circular",
        ),
        (lambda plan: plan.tools.append(PlannedCall(tool_id="a", tool_path="work")), "already used"),
        (lambda plan: plan.tools.append(None), "$.tools[1]: expected object, got null"),
        (lambda plan: plan.tools[0].dependencies.append("z"), "'z'"),
        (lambda plan: plan.tools[0].input.update(value=object()), "not JSON data"),
        (lambda plan: plan.tools[0].input.update(value=[math.nan]), "input.value[0]: nan is not JSON data"),
        (lambda plan: plan.tools[0].input.update(value={"$from": "z"}), "'z'"),
        (lambda plan: plan.tools[0].input.update(value=Raises(a=1)), "not today"),
    ],
)
async def test_a_plan_that_was_changed_after_it_was_read_is_checked_again(changed, problem):
    shop = Workshop()
    document = PlanDocument.from_data(
        {"requestId": "p", "tools": [{"toolId": "a", "toolPath": "work", "input": {}}]}
    )
    assert (await run(shop, document)).success
    changed(document)
    with pytest.raises(PlanRejected) as rejected:
        await run(shop, document)
    assert problem in str(rejected.value) and shop.order == ["a"]


async def test_the_outputs_a_request_carries_have_a_common_limit(tmp_path):
    """Each may be large; together they have the size of an input."""
    path = tmp_path / "reads"
    path.write_text('#!/bin/sh\ncat > /dev/null\necho \'{"version":"0","type":"done","ok":true}\'\n')
    path.chmod(0o755)

    @tool(description="Tells a long story.", name="tells")
    async def tells(*, context: ToolContext) -> ToolResult[str]:
        return ToolResult.ok("x" * 6_000_000)

    document = plan(
        *({"toolId": name, "toolPath": "tells"} for name in "abc"),
        {"toolId": "two", "toolPath": "reads", "dependencies": ["a", "b"], "required": False},
        {"toolId": "three", "toolPath": "reads", "dependencies": ["a", "b", "c"], "required": False},
    )
    executor = PlanExecutor(ToolRegistry([tells]), Session(), roots=[tmp_path])
    result = await executor.execute(document)
    assert result.result_of("two").ok, result.result_of("two").error
    refused = result.result_of("three")
    assert refused.error_code == "INVALID_ARGUMENTS"
    assert "dependencies: their outputs together have more than 16,000,000 characters" in refused.error


async def test_the_default_limit_of_a_plan_says_how_to_give_it_longer():
    assert (
        PlanExecutor(ToolRegistry(), Session())
        ._hint()
        .endswith("--plan-timeout (in Python plan_timeout) gives it longer")
    )
    shop = Workshop()
    result = await run(shop, plan(call("a", seconds=5)), plan_timeout=0.05)
    assert result.result_of("a").error == "the plan did not finish within 0.05 s"


# --- what ends an evaluation ------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    "error", [PromptEvaluationError("no time"), VisibilityExpansionRequired("more", section_keys=["a"])]
)
async def test_what_ends_an_evaluation_passes_through_once_all_calls_are_settled(error, together):
    shop = Workshop()
    shop.gates["waits"] = asyncio.Event()

    @tool(description="Ends it all.", name="ends")
    async def ends(params: Job, *, context: ToolContext) -> ToolResult[None]:
        context.patch({"dropped": True})
        await asyncio.sleep(0.01)
        raise error

    shop.registry.register(ends)
    session = Session()
    heard = Heard(session)
    waiting = [call("waits", **{"async": True})] if together else []
    document = plan(
        call("a", patch={"a": 1}, **{"async": True}), *waiting, call("ends", toolPath="ends", **{"async": True}),
        call("never", "ends"), parallel=together,
    )  # fmt: skip
    with pytest.raises(type(error)) as raised:
        await run(shop, document, session, limit=4)
    assert raised.value is error and shop.running == 0 and session.state == {"a": 1}
    (finished,) = heard.of(PlanFinished)
    assert not finished.success and "ends" in finished.failed


# --- references, strictly ---------------------------------------------------------------------------------


async def test_a_reference_that_leads_nowhere_fails_its_call_and_says_which():
    shop = Workshop()
    document = plan(
        call("files", patch={"files": {"a.txt": 1, "b": [7]}}),
        call("x", value={"deep": [{"$from": "files", "path": "files.nope"}]}),
        call("y", value={"$from": "files", "path": "files.nope", "default": "none"}),
        call("z", value={"$from": "files", "path": ["files", "a.txt"]}),
        call("w", value={"$from": "files", "path": "files.b.0"}),
        call("after", "x"),
    )
    result = await run(shop, document)
    x = result.result_of("x")
    assert (x.state, x.error_code, x.error_source) == ("failed", "INVALID_ARGUMENTS", "runtime")
    assert (
        "input.value.deep[0]: there is no 'files.nope' in the output of 'files', which has 'files'" in x.error
    )
    assert "x" not in shop.order and result.result_of("after").state == "skipped" and not result.success
    assert [result.result_of(one).output["value"] for one in "yzw"] == ["none", 1, 7]


async def test_an_index_may_be_written_with_a_point():
    document = plan(
        call("a", patch={"list": ["x", "y"]}),
        call("b", value={"$from": "a", "path": ["list", 1.0]}),
        call("c", value={"$from": "a", "path": ["list", 1e300], "default": "none"}),
    )
    result = await run(Workshop(), document)
    assert [one.output.get("value") for one in result.tool_results[1:]] == ["y", "none"]


async def test_a_null_that_stands_in_the_output_is_found():
    shop = Workshop()
    document = plan(call("a", value={"x": None}), call("b", value=[{"$from": "a", "path": "x"}]))
    assert (await run(shop, document)).result_of("b").output == {"value": [None]}


async def test_literal_data_may_have_the_keys_of_a_reference():
    shop = Workshop()
    document = plan(
        call("a", value={"$literal": {"$from": "nobody", "rate": 2}}),
        call("b", value=[{"$literal": {"$literal": 1}}]),
    )
    result = await run(shop, document)
    assert result.result_of("a").output == {"$from": "nobody", "rate": 2}
    assert result.result_of("b").output == {"value": [{"$literal": 1}]}


async def test_an_input_that_is_itself_a_reference_must_give_an_object():
    shop = Workshop()
    document = plan(
        call("a", value={"patch": {"n": 1}}),
        {"toolId": "b", "toolPath": "work", "input": {"$from": "a"}},
        {"toolId": "c", "toolPath": "work", "input": {"$from": "a", "path": "patch.n"}},
        call("gone", fail="X", required=False),
        {"toolId": "d", "toolPath": "work", "input": {"$from": "gone"}},
    )
    result = await run(shop, document)
    assert result.result_of("b").ok and result.result_of("b").output == {"n": 1}
    for one in "cd":
        assert result.result_of(one).error_code == "INVALID_ARGUMENTS"


async def test_outputs_that_make_an_input_too_deep_fail_their_call_only():
    deep = 1
    for _ in range(90):
        deep = {"x": deep}
    shop = Workshop()
    inner = {"$from": "a"}
    for _ in range(90):
        inner = [inner]
    result = await run(shop, plan(call("a", patch=deep), call("b", value=inner), call("c")))
    assert states(result) == {"a": "completed", "b": "failed", "c": "completed"}
    assert "nested more than 100 deep" in result.result_of("b").error


# --- what a failed call leaves ------------------------------------------------------------------------------


FAILING = """
    import json, os, sys, tempfile
    def say(**event):
        print(json.dumps({{"version": "0", **event}}), flush=True)
    mark = {mark!r}
    tries = int(open(mark).read()) if os.path.exists(mark) else 0
    open(mark, "w").write(str(tries + 1))
    path = os.path.join(tempfile.gettempdir(), "note.txt")
    open(path, "w").write("try " + str(tries))
    say(type="asset", assetId="note", kind="text", mediaType="text/plain", path=path)
    say(type="state_patch", patch={{"tried": True}})
    say(type="ui_event", event="narrative_choice", payload={{"choices": ["Try again", "Leave"]}})
    {ending}
"""
ENDINGS = {
    "ok: false": 'say(type="done", ok=False)',
    "exit 3": "sys.exit(3)",
    "no done": "",
    "protocol": 'print("noise")',
    "timeout": "import time; time.sleep(60)",
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_call_that_fails_keeps_its_assets_and_drops_its_patches(tmp_path, ending):
    script(tmp_path / "fails", FAILING.format(mark=str(tmp_path / "mark"), ending=ENDINGS[ending]))
    session = Session(assets=AssetStore(tmp_path / "assets"))
    heard = Heard(session)
    document = plan({"toolId": "a", "toolPath": "fails", "retryPolicy": {"maxRetries": 1}})
    with no_waiting():
        result = await run(Workshop(), document, session, roots=[tmp_path], call_timeout=3, max_executions=1)
    assert not result.success and session.state == {}
    (kept,) = session.asset_records.values()
    assert session.assets.path_of(kept.hash).read_text() == "try 1", "of the last attempt, and of no other"
    (commit,) = heard.of(Committed)
    assert commit.failed and len(commit.changes) == 1


async def test_a_call_that_succeeds_after_all_leaves_nothing_of_its_failed_attempt(tmp_path):
    ending = 'say(type="done", ok=bool(tries))'
    script(tmp_path / "fails", FAILING.format(mark=str(tmp_path / "mark"), ending=ending))
    session = Session(assets=AssetStore(tmp_path / "assets"))
    with no_waiting():
        result = await run(Workshop(), plan({"toolId": "a", "toolPath": "fails"}), session, roots=[tmp_path])
    assert result.success and session.state == {"tried": True}
    (kept,) = session.asset_records.values()
    assert session.assets.path_of(kept.hash).read_text() == "try 1"


@pytest.mark.parametrize("cut", ["plan_timeout", "cancelled"])
async def test_a_call_that_is_cut_short_keeps_its_assets(tmp_path, cut):
    script(tmp_path / "fails", FAILING.format(mark=str(tmp_path / "mark"), ending=ENDINGS["timeout"]))
    session = Session(assets=AssetStore(tmp_path / "assets"))
    heard = Heard(session)
    executor = PlanExecutor(
        ToolRegistry(), session, roots=[tmp_path], plan_timeout=3 if cut == "plan_timeout" else 60
    )
    running = asyncio.create_task(executor.execute(plan({"toolId": "a", "toolPath": "fails"})))
    if cut == "cancelled":
        while not any(isinstance(one.event, UiEvent) for one in heard.of(CallEmitted)):
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        assert not (await running).success
    assert len(session.asset_records) == 1 and session.state == {}


async def test_the_parts_of_a_composed_call_that_fails_keep_their_assets(tmp_path):
    painted = []

    @tool(description="Paints.", name="paint")
    async def paint(params: Job, *, context: ToolContext) -> ToolResult[Any]:
        file = tmp_path / "picture.txt"
        file.write_text("a picture")
        painted.append(f"picture {len(painted)}")
        context.asset(file, media_type="text/plain", kind="text", asset_id=painted[-1])
        context.patch({"painted": True})
        return ToolResult.ok(None) if len(painted) == 1 else ToolResult.error("no")

    session = Session(assets=AssetStore(tmp_path / "assets"))
    whole = sequence([paint, paint], name="whole")
    result = await ToolRegistry([whole]).execute("whole", {}, session=session)
    assert not result.success and session.state == {}
    assert sorted(one.asset_id for one in session.asset_records.values()) == painted


# --- what is handed on ----------------------------------------------------------------------------------------


async def test_a_value_that_json_cannot_carry_does_not_break_the_plan():
    @dataclass(frozen=True)
    class Nothing:
        pass

    @tool(description="Opens a page.", name="opens")
    async def opens(params: Nothing, *, context: ToolContext) -> ToolResult[object]:
        return ToolResult.ok(object())

    document = PlanDocument.from_data({"requestId": "p", "tools": [{"toolId": "a", "toolPath": "opens"}]})
    result = await PlanExecutor(ToolRegistry([opens]), Session()).execute(document)
    assert result.success and result.result_of("a").output == {"notJson": "object"}


async def test_ten_thousand_patches_of_one_call_make_its_output():
    @dataclass(frozen=True)
    class Nothing:
        pass

    @tool(description="Counts.", name="counts")
    async def counts(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        for number in range(10_000):
            context.patch({"seen": {f"n{number}": number}, "last": number})
        return ToolResult.ok(None)

    document = PlanDocument.from_data({"requestId": "p", "tools": [{"toolId": "a", "toolPath": "counts"}]})
    session = Session()
    result = await PlanExecutor(ToolRegistry([counts]), session).execute(document)
    output = result.result_of("a").output
    assert output["last"] == 9_999 and len(output["seen"]) == 10_000 and session.state == output


async def test_references_that_double_an_input_again_and_again_fail_at_a_limit():
    async def give_back(params: Any, *, context: ToolContext) -> ToolResult[Any]:
        return ToolResult.ok(params)

    take = Tool("take", "Returns its input.", give_back, parameters={"type": "object"})
    doubled = [
        PlannedCall(
            tool_id=f"c{index}",
            tool_path="take",
            input={"v": {"$from": f"c{index - 1}"}, "w": {"$from": f"c{index - 1}"}},
        )
        for index in range(1, 30)
    ]
    plan = PlanDocument(tools=[PlannedCall(tool_id="c0", tool_path="take", input={"v": 1}), *doubled])
    result = await PlanExecutor(ToolRegistry([take]), Session()).execute(plan)
    first = next(one for one in result.tool_results if not one.ok)
    assert first.error_code == "INVALID_ARGUMENTS"
    assert "more than 250,000 values; take the part that is needed with `path`" in first.error
