"""004, "Tool Composition": sequence, parallel, conditional, each one transaction."""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from narratoria.errors import PromptEvaluationError, ToolValidationError, VisibilityExpansionRequired
from narratoria.kinds.compose import Branch, conditional, parallel, sequence
from narratoria.kinds.function import tool
from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.contract import NotificationEffect, StateChangeEffect
from narratoria.tools.retry import FixedBackoff, JitteredBackoff, RetryPolicies, RetryPolicy
from narratoria.tools.tool import Tool, ToolContext, ToolResult


@dataclass(frozen=True)
class Number:
    n: int = 0


def adder(name, *, fails=False, effects=(), timeout=30.0, retry=RetryPolicies.NONE):
    @tool(description=f"Adds in {name}.", name=name, effects=effects, timeout=timeout, retry=retry)
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


async def test_stop_on_error_starts_no_tool_after_a_failure():
    started = []

    def worker(name, *, waits):
        @tool(description="Works.", name=name)
        async def work(params: Number, *, context: ToolContext) -> ToolResult[None]:
            started.append(name)
            if waits:
                await asyncio.sleep(0)
            return ToolResult.error("broken", code="BROKEN") if name == "bad" else ToolResult.ok(None)

        return work

    for waits in (False, True):
        for places in (1, 2):
            started.clear()
            tools = [worker(name, waits=waits) for name in ("bad", "b", "c", "d")]
            result = await run(parallel(tools, max_concurrency=places, stop_on_error=True))
            assert result.error.code == "BROKEN" and started in (["bad"], ["bad", "b"][:places])


async def test_a_stopped_parallel_composition_says_of_each_tool_what_became_of_it():
    @tool(description="Waits.", name="waits")
    async def waits(params: Number, *, context: ToolContext) -> ToolResult[None]:
        await asyncio.Event().wait()
        raise AssertionError

    @tool(description="Fails later.", name="bad")
    async def bad(params: Number, *, context: ToolContext) -> ToolResult[None]:
        await asyncio.sleep(0)
        return ToolResult.error("broken", code="CANCELLED")  # a code of its own: the runtime's is another

    tools = [waits, adder("a"), bad, adder("never")]
    result = await run(parallel(tools, max_concurrency=2, stop_on_error=True))
    assert list(result.value) == ["waits", "a", "bad"], "what never started has no result"
    assert result.value["a"].success and result.value["bad"].message == "broken"
    assert result.value["waits"].error.code == "CANCELLED" and "bad failed" in result.value["waits"].message
    assert result.message == "2 of 3 tools failed, first bad: broken"


@pytest.mark.parametrize("error", [PromptEvaluationError("over"), VisibilityExpansionRequired("more")])
async def test_what_ends_an_evaluation_passes_through_parallel_tools_as_itself(error):
    @tool(description="Ends it.", name="ends")
    async def ends(params: Number, *, context: ToolContext) -> ToolResult[None]:
        await asyncio.sleep(0)
        raise error

    with pytest.raises(type(error), match=str(error)):
        await run(parallel([ends, adder("a")]))


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


async def test_a_branch_taken_on_failure_recovers():
    session = Session()
    whole = conditional(
        [
            Branch(lambda result, context: result.success, [adder("bad", fails=True), adder("never")]),
            Branch(
                lambda result, context: not result.success, [adder("worse", fails=True), adder("recover")]
            ),
        ]
    )
    result = await run(whole, {"n": 1}, session)
    assert result.success and result.message == "recover" and session.state == {"recover": 1}


async def test_a_branch_of_one_failing_tool_that_is_taken_fails():
    whole = conditional([Branch(lambda result, context: True, [adder("bad", fails=True)])])
    assert (await run(whole)).error.code == "BROKEN"


async def test_a_fallback_ends_at_its_first_failure():
    session = Session()
    whole = conditional([], [adder("a"), adder("bad", fails=True), adder("c")])
    assert (await run(whole, {"n": 1}, session)).error.code == "BROKEN" and session.state == {}


async def test_a_condition_may_be_async():
    async def never(result, context):
        return False

    session = Session()
    whole = conditional([Branch(never, [adder("a")])], [adder("b")])
    assert (await run(whole, {"n": 1}, session)).success and session.state == {"b": 1}


@pytest.mark.parametrize("branches", [[], [Branch(lambda result, context: True, [])]])
async def test_a_conditional_without_branches_matches_none(branches):
    result = await run(conditional(branches))
    assert result.error.code == "NO_BRANCH_MATCHED" and not result.error.recoverable


def test_the_whole_cuts_no_part_short():
    quick, endless = adder("a", timeout=1.0), adder("b", timeout=None)
    assert parallel([quick, endless]).timeout is None
    assert sequence([quick, endless]).timeout is None
    assert conditional([Branch(lambda result, context: True, [quick])], [endless]).timeout is None
    assert parallel([quick] * 3, max_concurrency=1).timeout == 3.0
    assert parallel([quick] * 3, max_concurrency=2).timeout == 2.0


def test_the_whole_leaves_its_parts_the_time_to_retry():
    retrying = adder("a", timeout=1.0, retry=RetryPolicy(2, FixedBackoff(0.5)))
    assert sequence([retrying, adder("b", timeout=1.0)]).timeout == 5.0
    jittered = adder("c", timeout=1.0, retry=RetryPolicy(1, JitteredBackoff(FixedBackoff(1.0), 0.5)))
    assert parallel([retrying, jittered]).timeout == 4.0


def always(result, context):
    return True


def never(result, context):
    return False


def above(least):
    return lambda result, context: result.value.n > least


def pick(key):
    return lambda value, next_tool: {"n": key}


class Scale:
    def __init__(self, limit):
        self.limit = limit

    def __repr__(self):
        return f"Scale({self.limit})"

    def holds(self, result, context):
        return result.value.n > self.limit


def compositions():
    a, b, a_b, c = adder("a"), adder("b"), adder("a_b"), adder("c")
    long = [adder(f"{'x' * 40}{n}") for n in range(4)]
    again = RetryPolicy(1)
    return [
        sequence([a, b]),
        sequence([a_b]),
        sequence([b, a]),
        sequence([a, b], stop_on_error=True),
        sequence([a, b], transform_output=pick(1)),
        sequence([a, b], transform_output=pick(2)),
        sequence([a, b], transform_output=lambda value, next_tool: {}),
        sequence([a, b], retry=again),
        sequence([a, b], description="Other."),
        sequence([sequence([a]), b]),
        sequence([sequence([a, b])]),
        parallel([a, b]),
        parallel([a, b], stop_on_error=True),
        parallel([a, b], max_concurrency=1),
        parallel([a, b], timeout=1.0),
        parallel([a, b], retry=RetryPolicy(1, should_retry=lambda error, attempt: True)),
        sequence(long[:3]),
        sequence([*long[:2], long[3]]),
        conditional([Branch(always, [a, b])]),
        conditional([Branch(always, [a]), Branch(always, [b])]),
        conditional([Branch(always, [a])], [b]),
        conditional([Branch(always, [a])], [b, c]),
        conditional([Branch(always, [a])]),
        conditional([Branch(never, [a])]),
        conditional([Branch(above(1), [a])]),
        conditional([Branch(above(2), [a])]),
        conditional([Branch(lambda result, context: result.success, [a])]),
        conditional([Branch(lambda result, context: not result.success, [a])]),
        conditional([Branch(Scale(1).holds, [a])]),
        conditional([Branch(Scale(2).holds, [a])]),
        conditional([Branch(partial(never, context=1), [a])]),
        conditional([Branch(partial(never, context=2), [a])]),
        conditional([], [a]),
        conditional([Branch(always, [c])]),
        conditional([Branch(negated(above(1)), [a])]),
        conditional([Branch(negated(above(2)), [a])]),
        conditional([Branch(negated(negated(negated(above(1)))), [a])]),
        conditional([Branch(negated(negated(negated(above(2)))), [a])]),
        conditional([Branch(lambda result, context: any(one == "night" for one in result.value), [a])]),
        conditional([Branch(lambda result, context: any(one == "day" for one in result.value), [a])]),
        conditional([Branch(countdown(1), [a])]),
        conditional([Branch(countdown(2), [a])]),
        sequence([a, b], transform_output=lambda value, next_tool: {key: [1] for key in value}),
        sequence([a, b], transform_output=lambda value, next_tool: {key: [2] for key in value}),
    ]


def negated(condition):
    return lambda result, context: not condition(result, context)


def countdown(last):
    """Two functions that hold each other, and data that holds itself."""
    seen = []
    seen.append([seen, seen])

    def even(result, context):
        return seen and odd(result, last) and even

    def odd(result, context):
        return even(result, last) and odd

    return even


def test_functions_that_hold_each_other_twice_over_are_named_at_once():
    condition = always
    for _ in range(40):
        condition = both(condition, condition)
    assert conditional([Branch(condition, [adder("a")])]).name


def both(first, second):
    return lambda result, context: first(result, context) and second(result, context)


def test_composed_names_do_not_collide():
    assert len(ToolRegistry(compositions())) == len(compositions())


def test_compositions_of_different_parts_of_one_name_have_different_names():
    one = {"type": "object", "properties": {"n": {"type": "integer"}}}

    async def first(args, *, context):
        return ToolResult.ok("first")

    async def second(args, *, context):
        return ToolResult.ok("second")

    def effect(note):
        return StateChangeEffect(state="x", apply=lambda: note)

    parts = [
        Tool("x", "An x.", first, parameters={"type": "object"}),
        Tool("x", "Another x.", first, parameters={"type": "object"}),
        Tool("x", "An x.", second, parameters={"type": "object"}),
        Tool("x", "An x.", first, parameters=one),
        Tool("x", "An x.", first, parameters=one, timeout=1.0),
        Tool("x", "An x.", first, parameters=one, retry=RetryPolicy(1)),
        Tool("x", "An x.", first, parameters=one, effects=[effect("a")]),
        Tool("x", "An x.", first, parameters=one, effects=[effect("b")]),
    ]
    parts += [sequence([part], name="x") for part in parts]
    for make in (sequence, parallel, lambda tools: conditional([], tools)):
        assert len({make([part]).name for part in parts}) == len(parts)


class Threshold:
    """A condition that is an object, with a field, or in its method."""

    def __init__(self, least):
        self.least = least

    def __call__(self, result, context):
        return result.value >= self.least

    def reached(self, result, context):
        return self(result, context)


class Slotted(Threshold):
    __slots__ = ("least",)


def reading(**names):
    """A condition that reads a global, also from a function inside it."""
    exec("def condition(result, context):\n    return (lambda: least)() and helper(result)", names)  # noqa: S102 - a module made here
    return names["condition"]


def test_conditions_that_differ_by_their_fields_or_globals_give_different_names():
    conditions = [
        *map(Threshold, (1, 2)),
        *map(Slotted, (1, 2)),
        *(Threshold(least).reached for least in (1, 2)),
        *(reading(least=least, helper=len) for least in (1, 2)),
        reading(least=(1, "a"), helper=lambda result: 1),
        reading(least=(1, "a"), helper=lambda result: 2),
    ]

    def names():
        return [conditional([Branch(one, [adder("a")])]).name for one in conditions]

    assert len({*names()}) == len(conditions) and names() == names()


def test_composed_names_are_the_same_each_time():
    assert [one.name for one in compositions()] == [one.name for one in compositions()]


def test_composed_names_are_the_same_in_every_process():
    code = "from test_compose import compositions; print([one.name for one in compositions()])"
    ran = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in "12"
    ]
    assert ran[0].stdout == ran[1].stdout


def test_timeouts_add_up_in_order_and_take_the_longest_side_by_side():
    tools = [adder("a", timeout=1.0), adder("b", timeout=2.0)]
    assert sequence(tools).timeout == 3.0
    assert parallel(tools).timeout == 2.0
    assert parallel(tools, timeout=9.0).timeout == 9.0


@pytest.mark.parametrize("make", [sequence, parallel])
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


async def test_a_transform_may_be_async():
    async def transform(value, next_tool):
        return {"n": value.n}

    session = Session()
    await run(sequence([adder("a"), adder("b")], transform_output=transform), {"n": 5}, session)
    assert session.state == {"a": 5, "b": 6}


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: sequence(adder("a")), "sequence: expected a list of tools"),
        (lambda: parallel(adder("a")), "parallel: expected a list of tools"),
        (lambda: conditional([], adder("a")), "conditional: expected a list of tools"),
        (lambda: conditional([Branch(lambda result, context: True, adder("a"))]), r"branches\[0\].tools"),
        (lambda: conditional([(lambda result, context: True, [adder("a")])]), r"write Branch\("),
        (lambda: conditional([Branch(lambda result, context: True, ["a"])]), "'a' is not a Tool"),
    ],
)
def test_what_is_no_list_of_tools_is_refused(make, problem):
    with pytest.raises(ToolValidationError, match=problem):
        make()


async def test_no_process_starts_after_a_failed_one(tmp_path):
    started = tmp_path / "started"
    fails, follows = tmp_path / "fails", tmp_path / "follows"
    for path, ok in ((fails, "false"), (follows, "true")):
        path.write_text(
            f'#!/bin/sh\necho {path.name} >> {started}\necho \'{{"version":"0","type":"done","ok":{ok}}}\'\n'
        )
        path.chmod(0o755)
    tools = [process_tool(fails), process_tool(follows)]
    result = await run(parallel(tools, max_concurrency=1, stop_on_error=True))
    assert not result.success and list(result.value) == ["fails"]
    assert started.read_text() == "fails\n"


@pytest.mark.parametrize("made", [None, 5, []])
async def test_a_transform_that_makes_no_arguments_fails_the_next_tool(made):
    session = Session()
    whole = sequence([adder("a"), adder("b")], transform_output=lambda value, next_tool: made)
    result = await run(whole, {"n": 1}, session)
    assert result.error.code == "INVALID_ARGUMENTS" and "expected an object" in result.message
    assert session.state == {}


async def test_tools_may_come_from_a_generator_and_are_taken_as_they_are_then():
    def tools():
        return (adder(name) for name in "ab")

    for whole in (
        sequence(tools()),
        parallel(tools()),
        conditional(branch for branch in [Branch(always, tools())]),
        conditional([], tools()),
    ):
        for _ in range(2):
            session = Session()
            assert (await run(whole, {"n": 1}, session)).success and session.state == {"a": 1, "b": 1}
    listed = [adder("a")]
    whole = conditional([Branch(always, listed)])
    listed.append(adder("late"))
    session = Session()
    assert (await run(whole, {"n": 1}, session)).success and session.state == {"a": 1}


@pytest.mark.parametrize("limit", [True, 1.5, "2", -1])
def test_a_limit_that_is_no_count_is_refused(limit):
    with pytest.raises(ToolValidationError, match="max_concurrency must be 1 or more"):
        parallel([adder("a")], max_concurrency=limit)


def test_a_condition_that_cannot_be_called_is_refused():
    with pytest.raises(ToolValidationError, match=r"branches\[0\].condition is not callable"):
        conditional([Branch("yes", [adder("a")])])


def full_disk():
    raise OSError("disk full")


@pytest.mark.parametrize("make", [sequence, parallel])
@pytest.mark.parametrize("effect_first", [True, False])
async def test_a_retry_of_the_whole_never_runs_a_part_with_a_failed_effect_again(make, effect_first):
    runs = []

    @tool(description="Writes.", effects=[StateChangeEffect(state="disk", apply=full_disk)])
    async def write(params: Number, *, context: ToolContext) -> ToolResult[Number]:
        runs.append(1)
        return ToolResult.ok(Number(1))

    parts = [write, adder("b", fails=True)] if effect_first else [adder("b", fails=True), write]
    result = await run(make(parts, retry=RetryPolicy(3)))
    assert len(runs) == 1 and result.error.code == "EFFECT_FAILED"
    assert "2 of 2 tools failed" in result.message and "disk full" in result.message


async def test_a_parallel_that_is_cancelled_as_a_part_fails_is_cancelled():
    begun, release = asyncio.Event(), asyncio.Event()

    @tool(description="Fails when told to.")
    async def breaks(params: Number, *, context: ToolContext) -> ToolResult[Number]:
        begun.set()
        await release.wait()
        return ToolResult.error("broken")

    session = Session()
    whole = asyncio.create_task(run(parallel([breaks, adder("a")], stop_on_error=True), session=session))
    await begun.wait()
    release.set()
    whole.cancel()
    with pytest.raises(asyncio.CancelledError):
        await whole
    assert session.snapshot() == {}


@pytest.mark.parametrize("recovers", [True, False])
@pytest.mark.parametrize("taken", ["first", "second", "fallback", "none"])
async def test_a_retry_of_a_conditional_never_runs_a_part_with_a_failed_effect_again(taken, recovers):
    runs = []

    @tool(description="Writes.", effects=[StateChangeEffect(state="disk", apply=full_disk)])
    async def write(params: Number, *, context: ToolContext) -> ToolResult[Number]:
        runs.append(1)
        return ToolResult.ok(Number(1))

    last = adder("last", fails=not recovers)
    branches = [
        Branch(lambda result, context: taken == "first", [write, last]),
        Branch(lambda result, context: taken == "second", [adder("b"), last]),
    ]
    fallback = [adder("c"), last] if taken == "fallback" else ()
    result = await run(conditional(branches, fallback, retry=RetryPolicy(3, retry_unrecoverable=True)))
    assert len(runs) == 1
    if recovers and taken != "none":
        assert result.success and result.message == "last"
    else:
        assert result.error.code == "EFFECT_FAILED" and "disk full" in result.message
        assert ("No conditional branch matched" if taken == "none" else "last failed") in result.message


@pytest.mark.parametrize("max_concurrency", [None, 2])
async def test_a_parallel_that_runs_out_of_time_maps_each_started_tool_to_its_result(max_concurrency):
    @tool(description="Waits.")
    async def wait(params: Number, *, context: ToolContext) -> ToolResult[Number]:
        await asyncio.Event().wait()
        raise AssertionError

    parts = [adder("a"), wait, wait, adder("b")]
    session = Session()
    whole = parallel(parts, timeout=0.05, max_concurrency=max_concurrency, name="whole")
    result = await run(whole, session=session)
    assert (result.error.code, result.error.source) == ("TIMEOUT", "runtime") and session.state == {}
    assert result.message == "whole: no result within 0.05 s"
    assert result.value["a"].success
    assert result.value["wait"].error.code == result.value["wait#2"].error.code == "CANCELLED"
    assert ("b" in result.value) is (max_concurrency is None)


async def test_cancelling_a_parallel_with_a_timeout_cancels_it():
    started = asyncio.Event()

    @tool(description="Waits.")
    async def wait(params: Number, *, context: ToolContext) -> ToolResult[Number]:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(run(parallel([wait], timeout=30)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
