"""004, "Tool Composition": sequence, parallel, conditional, each one transaction."""

import asyncio
from dataclasses import dataclass

import pytest

from narratoria.contract import NotificationEffect, StateChangeEffect
from narratoria.errors import ToolValidationError
from narratoria.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tool import ToolContext, ToolResult
from narratoria.tools.compose import Branch, conditional, parallel, sequence
from narratoria.tools.function import tool


@dataclass(frozen=True)
class Number:
    n: int = 0


def adder(name, *, fails=False, effects=(), timeout=30.0):
    @tool(description=f"Adds in {name}.", name=name, effects=effects, timeout=timeout)
    async def add(params: Number, *, context: ToolContext) -> ToolResult[Number]:
        context.patch({name: params.n})
        if fails:
            return ToolResult.error(f"{name} failed", code="BROKEN")
        return ToolResult.ok(Number(params.n + 1), message=name)

    return add


async def run(one, args=None, session=None):
    return await ToolRegistry([one]).execute(one.name, args or {}, session=session)


async def test_a_sequence_passes_each_output_on_as_the_next_input():
    session = Session()
    seen = []

    def transform(value, next_tool):
        seen.append(next_tool.name)
        return {"n": value.n}

    result = await run(
        sequence([adder("a"), adder("b"), adder("c")], transform_output=transform), {"n": 5}, session
    )
    assert result.success and session.state == {"a": 5, "b": 6, "c": 7}
    assert seen == ["b", "c"]
    assert [one.value.n for one in result.value["results"]] == [6, 7, 8]


async def test_without_a_transform_each_tool_gets_the_arguments_of_the_whole():
    session = Session()
    await run(sequence([adder("a"), adder("b")]), {"n": 5}, session)
    assert session.state == {"a": 5, "b": 5}


async def test_stop_on_error_ends_a_sequence_with_that_failure_and_nothing_stays():
    session = Session()
    whole = sequence([adder("a"), adder("bad", fails=True), adder("c")], stop_on_error=True)
    result = await run(whole, {"n": 5}, session)
    assert result.error.code == "BROKEN" and session.state == {}


async def test_without_stop_on_error_the_rest_runs_and_the_whole_fails():
    ran = []

    @tool(description="Last.", name="last")
    async def last(params: Number, *, context: ToolContext) -> ToolResult[None]:
        ran.append(params.n)
        return ToolResult.ok(None)

    session = Session()
    result = await run(sequence([adder("bad", fails=True), last]), {"n": 5}, session)
    assert not result.success and "1 of 2 tools failed" in result.message and ran == [5]
    assert session.state == {}, "one transaction"


async def test_effects_of_the_parts_apply_once():
    hits = StateChangeEffect(description="hit", state="hits", change="increment", reversible=True)
    session = Session()
    await run(sequence([adder("a", effects=[hits]), adder("b", effects=[hits])]), {"n": 1}, session)
    assert session.state["hits"] == 2


async def test_when_the_whole_fails_outside_effects_of_its_parts_are_taken_back_newest_first():
    undone = []

    def outside(name):
        return NotificationEffect(
            description=name,
            event=name,
            reversible=True,
            apply=lambda context, result: None,
            rollback=lambda context: undone.append(name),
        )

    parts = [
        adder("a", effects=[outside("first")]),
        adder("b", effects=[outside("second")]),
        adder("bad", fails=True),
    ]
    assert not (await run(sequence(parts, stop_on_error=True))).success
    assert undone == ["second", "first"]


async def test_parallel_tools_each_get_their_own_arguments_and_are_reported_by_name():
    @dataclass(frozen=True)
    class Word:
        word: str

    @tool(description="Says.", name="say")
    async def say(params: Word, *, context: ToolContext) -> ToolResult[str]:
        return ToolResult.ok(params.word)

    result = await run(parallel([adder("a"), say, adder("a")]), {"n": 1, "word": "hi"})
    assert result.success and list(result.value) == ["a", "say", "a#2"]
    assert result.value["say"].value == "hi"


async def test_concurrency_is_a_limit_and_not_batches():
    running = peak = 0
    first_done = asyncio.Event()

    def worker(name):
        @tool(description="Works.", name=name)
        async def work(params: Number, *, context: ToolContext) -> ToolResult[None]:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            if name == "slow":
                await first_done.wait()  # released by the last of the others: batches would wait for ever
            else:
                await asyncio.sleep(0)
                if name == "w3":
                    first_done.set()
            running -= 1
            return ToolResult.ok(None)

        return work

    tools = [worker("slow"), *(worker(f"w{n}") for n in range(4))]
    result = await asyncio.wait_for(run(parallel(tools, max_concurrency=2)), 5)
    assert result.success and peak == 2


async def test_stop_on_error_cancels_the_other_parallel_tools():
    cancelled = asyncio.Event()

    @tool(description="Waits.", name="waits")
    async def waits(params: Number, *, context: ToolContext) -> ToolResult[None]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    session = Session()
    result = await run(parallel([waits, adder("bad", fails=True)], stop_on_error=True), session=session)
    assert result.error.code == "BROKEN" and cancelled.is_set() and session.state == {}


async def test_a_parallel_composition_has_its_own_timeout():
    @tool(description="Waits.", name="waits")
    async def waits(params: Number, *, context: ToolContext) -> ToolResult[None]:
        await asyncio.Event().wait()
        raise AssertionError

    assert (await run(parallel([waits], timeout=0.05))).error.code == "TIMEOUT"


async def test_the_first_branch_whose_condition_holds_is_taken_and_the_others_leave_nothing():
    session = Session()
    whole = conditional(
        [
            Branch(lambda result, context: result.value.n > 100, [adder("big"), adder("bigger")]),
            Branch(lambda result, context: result.value.n <= 100, [adder("small"), adder("smaller")]),
        ]
    )
    result = await run(whole, {"n": 3}, session)
    assert result.success and session.state == {"small": 3, "smaller": 3}


async def test_no_match_runs_the_fallback():
    session = Session()
    whole = conditional([Branch(lambda result, context: False, [adder("never")])], [adder("f1"), adder("f2")])
    assert (await run(whole, {"n": 3}, session)).success and session.state == {"f1": 3, "f2": 3}


async def test_no_match_and_no_fallback_is_no_branch_matched():
    result = await run(conditional([Branch(lambda result, context: False, [adder("never")])]))
    assert result.error.code == "NO_BRANCH_MATCHED" and not result.error.recoverable


async def test_a_failure_inside_the_taken_branch_is_the_result():
    whole = conditional(
        [Branch(lambda result, context: True, [adder("a"), adder("bad", fails=True), adder("c")])]
    )
    session = Session()
    assert (await run(whole, {"n": 1}, session)).error.code == "BROKEN" and session.state == {}


def test_timeouts_add_up_in_order_and_take_the_longest_side_by_side():
    tools = [adder("a", timeout=1.0), adder("b", timeout=2.0)]
    assert sequence(tools).timeout == 3.0
    assert parallel(tools).timeout == 2.0
    assert parallel(tools, timeout=9.0).timeout == 9.0


@pytest.mark.parametrize("make", [sequence, parallel, conditional])
def test_an_empty_composition_is_refused(make):
    with pytest.raises(ToolValidationError):
        make([])


def test_a_limit_below_one_is_refused():
    with pytest.raises(ToolValidationError, match="max_concurrency"):
        parallel([adder("a")], max_concurrency=0)


async def test_compositions_nest():
    session = Session()
    inner = parallel([adder("a"), adder("b")], name="inner")
    assert (await run(sequence([inner, adder("c")], name="outer"), {"n": 1}, session)).success
    assert session.state == {"a": 1, "b": 1, "c": 1}
