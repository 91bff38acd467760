"""Whether and when a failed call is tried again (004 "Retry Policies", 000 §13.4 rule 5)."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narratoria.errors import ErrorSource, ToolValidationError
from narratoria.run.registry import ToolRegistry
from narratoria.tools.backoff import any_backoff
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.retry import (
    HOPELESS,
    LONGEST_DELAY,
    Backoff,
    ExponentialBackoff,
    FixedBackoff,
    JitteredBackoff,
    LinearBackoff,
    NoBackoff,
    RetryPolicies,
    RetryPolicy,
    no_waiting,
    pause,
    plan_policy,
    policy_from_data,
)
from narratoria.tools.tool import Tool, ToolContext, ToolError, ToolResult


@dataclass(frozen=True)
class Nothing:
    pass


def error(code: str = "TIMEOUT", *, recoverable: bool = True, source: ErrorSource = "tool") -> ToolError:
    return ToolError(code=code, message="it failed", recoverable=recoverable, source=source)


# --- the five strategies -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (NoBackoff(), [0, 0, 0, 0]),
        (FixedBackoff(1.5), [1.5, 1.5, 1.5, 1.5]),
        (LinearBackoff(1.0, 0.5), [1.0, 1.5, 2.0, 2.5]),
        (ExponentialBackoff(1.0, max_delay=5.0), [1, 2, 4, 5]),
        (ExponentialBackoff(0.5, max_delay=60.0, multiplier=3.0), [0.5, 1.5, 4.5, 13.5]),
        (JitteredBackoff(FixedBackoff(2.0), 0.0), [2, 2, 2, 2]),
    ],
)
def test_each_strategy_waits_as_004_calculates(backoff: Backoff, delays: list[float]) -> None:
    assert [backoff.delay(attempt) for attempt in (1, 2, 3, 4)] == delays


@given(
    st.floats(0, 1e6),
    st.floats(0, 1),
    st.integers(1, 100),
    st.integers(),
)
def test_jitter_stays_inside_its_range_and_is_never_negative(
    base: float, jitter: float, attempt: int, seed: int
) -> None:
    strategy = JitteredBackoff(ExponentialBackoff(base), jitter)
    middle = strategy.base.delay(attempt)
    delay = strategy.delay(attempt, random.Random(seed))
    assert delay >= 0
    assert middle * (1 - jitter) - 1e-9 <= delay <= middle * (1 + jitter) + 1e-9


def test_jitter_spreads_over_its_whole_range() -> None:
    rng = random.Random(7)
    delays = [JitteredBackoff(FixedBackoff(10.0), 0.1).delay(1, rng) for _ in range(2000)]
    assert min(delays) < 9.05
    assert max(delays) > 10.95
    assert len(set(delays)) > 1900


def test_without_a_generator_of_their_own_delays_differ() -> None:
    assert len({JitteredBackoff(FixedBackoff(10.0), 0.5).delay(1) for _ in range(50)}) > 1


@pytest.mark.parametrize("attempt", [50, 1_100, 10_000])
def test_growth_never_overflows_and_never_passes_the_cap(attempt: int) -> None:
    assert ExponentialBackoff(1.0, max_delay=30.0).delay(attempt) == 30.0
    assert ExponentialBackoff(0.0, max_delay=30.0).delay(attempt) == 0.0


@pytest.mark.parametrize(
    ("data", "backoff"),
    [
        ({"type": "none"}, NoBackoff()),
        ({"type": "fixed", "delay": 1}, FixedBackoff(1.0)),
        ({"type": "linear", "baseDelay": 1, "increment": 0.5}, LinearBackoff(1.0, 0.5)),
        ({"type": "exponential", "baseDelay": 1}, ExponentialBackoff(1.0, 30.0, 2.0)),
        (
            {"type": "jittered", "base": {"type": "fixed", "delay": 1}, "jitter": 0.1},
            JitteredBackoff(FixedBackoff(1.0), 0.1),
        ),
        (
            {
                "type": "jittered",
                "base": {"type": "jittered", "base": {"type": "none"}, "jitter": 1},
                "jitter": 0,
            },
            JitteredBackoff(JitteredBackoff(NoBackoff(), 1.0), 0.0),
        ),
    ],
)
def test_a_strategy_is_read_from_a_manifest_and_written_back(
    data: dict[str, object], backoff: Backoff
) -> None:
    assert msgspec.convert(data, any_backoff()) == backoff
    assert msgspec.convert(msgspec.to_builtins(backoff), any_backoff()) == backoff


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_wait_is_a_finite_number_of_seconds(bad: float) -> None:
    for make in (FixedBackoff, ExponentialBackoff, lambda delay: LinearBackoff(1.0, delay)):
        with pytest.raises(ToolValidationError, match="expected 0 or more"):
            make(bad)
    with pytest.raises(ToolValidationError, match="from 0 to 1"):
        JitteredBackoff(NoBackoff(), bad)


# --- policies ------------------------------------------------------------------------------------------


def test_the_presets_are_those_of_004() -> None:
    transient = {"TIMEOUT", "RATE_LIMIT", "NETWORK"}
    assert RetryPolicy(0, NoBackoff()) == RetryPolicies.NONE
    assert RetryPolicy(3, FixedBackoff(1.0), frozenset(transient)) == RetryPolicies.QUICK
    assert (
        RetryPolicy(3, ExponentialBackoff(1.0, 30.0, 2.0), frozenset(transient | {"SERVER_ERROR"}))
        == RetryPolicies.STANDARD
    )
    assert (
        RetryPolicy(
            5,
            JitteredBackoff(ExponentialBackoff(0.5, 60.0, 2.0), 0.1),
            frozenset(transient | {"SERVER_ERROR", "LOCK"}),
        )
        == RetryPolicies.AGGRESSIVE
    )
    own = RetryPolicy(7)
    assert RetryPolicies.CUSTOM(own) is own


def test_the_number_of_retries_is_a_bound() -> None:
    policy = RetryPolicy(2)
    assert [policy.allows(error(), done) for done in (0, 1, 2, 3)] == [True, True, False, False]
    assert not RetryPolicies.NONE.allows(error(), 0)


def test_only_listed_codes_are_retried_where_there_is_a_list() -> None:
    assert RetryPolicies.QUICK.allows(error("NETWORK"), 0)
    assert not RetryPolicies.QUICK.allows(error("SERVER_ERROR"), 0)
    assert RetryPolicy(1).allows(error("ANYTHING"), 0)
    assert not RetryPolicy(1, retryable_errors=frozenset()).allows(error("ANYTHING"), 0)


def test_a_code_on_both_lists_is_not_retried() -> None:
    policy = RetryPolicy(1, retryable_errors=frozenset({"A"}), non_retryable_errors=frozenset({"A"}))
    assert not policy.allows(error("A"), 0)


def test_what_is_not_recoverable_is_not_retried() -> None:
    assert not RetryPolicies.STANDARD.allows(error(recoverable=False), 0)


def test_a_custom_condition_can_forbid_but_not_force() -> None:
    """004 asks it after the limit and before the lists, and only its no is final."""
    seen: list[tuple[str, int]] = []

    def only_first(failed: ToolError, attempt: int) -> bool:
        seen.append((failed.code, attempt))
        return attempt == 0

    policy = RetryPolicy(2, retryable_errors=frozenset({"A"}), should_retry=only_first)
    assert policy.allows(error("A"), 0)
    assert not policy.allows(error("A"), 1)
    assert not policy.allows(error("B"), 0), "its yes does not override the list"
    assert not policy.allows(error("A"), 2)
    assert seen == [("A", 0), ("A", 1), ("B", 0)], "past the limit it is not asked"


@pytest.mark.parametrize("bad", [-1, 101, 1.5, True, "3"])
def test_a_policy_with_a_bad_number_is_refused(bad: object) -> None:
    with pytest.raises(ToolValidationError, match="max_retries"):
        RetryPolicy(bad)  # type: ignore[arg-type]


def test_a_lone_code_is_not_taken_for_a_set_of_letters() -> None:
    with pytest.raises(ToolValidationError, match="set of error codes"):
        RetryPolicy(1, retryable_errors="TIMEOUT")  # type: ignore[arg-type]


def test_a_manifest_describes_a_policy() -> None:
    policy = policy_from_data(
        {
            "maxRetries": 2,
            "backoff": {"type": "exponential", "baseDelay": 0.1, "maxDelay": 2},
            "retryableErrors": ["TIMEOUT"],
            "nonRetryableErrors": ["NON_ZERO_EXIT"],
        }
    )
    assert policy == RetryPolicy(
        2, ExponentialBackoff(0.1, 2.0), frozenset({"TIMEOUT"}), frozenset({"NON_ZERO_EXIT"})
    )
    assert policy_from_data({}) == RetryPolicies.NONE


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"maxRetries": "3"}, 'maxRetries: expected int, got "3"'),
        (
            {"retries": 3},
            "retries: unknown key; known: maxRetries, backoff, retryableErrors, nonRetryableErrors",
        ),
        ({"backoff": {"type": "fixed", "wait": 3}}, "backoff.delay: missing"),
        ({"backoff": {"type": "cubic"}}, "backoff.type: "),
        ({"maxRetries": 1000}, "maxRetries: expected 100 or less, got 1000"),
        ({"backoff": {"type": "fixed", "delay": -1}}, "backoff.delay: expected 0 or more, got -1"),
    ],
)
def test_a_bad_policy_in_a_manifest_names_the_tool_and_the_key(data: dict[str, object], problem: str) -> None:
    with pytest.raises(ToolValidationError, match="lamp") as caught:
        policy_from_data(data, name="lamp")
    assert problem in str(caught.value)


# --- the plan's own formula ----------------------------------------------------------------------------


def test_a_plan_waits_backoff_times_two_to_the_attempt() -> None:
    backoff = plan_policy(5, 100).backoff
    assert [backoff.delay(attempt) for attempt in (1, 2, 3, 4)] == [0.1, 0.2, 0.4, 0.8]


def test_a_plan_cannot_wait_for_years_nor_less_than_it_asked_for() -> None:
    assert plan_policy(100, 60_000).backoff.delay(100) == LONGEST_DELAY
    assert plan_policy(1, 2 * 3_600_000).backoff.delay(1) == 7200.0


def test_a_plan_retries_whatever_failed_even_what_calls_itself_unrecoverable() -> None:
    policy = plan_policy(3, 100)
    for code in ("NON_ZERO_EXIT", "MISSING_DONE", "EXECUTION_FAILED", "TIMEOUT", "A_CODE_OF_THE_TOOL"):
        assert policy.allows(error(code, recoverable=False), 0)
        assert not policy.allows(error(code), 3)


def test_a_plan_does_not_retry_what_cannot_get_better() -> None:
    assert {
        "TOOL_NOT_FOUND",
        "INVALID_ARGUMENTS",
        "NOT_EXECUTABLE",
        "PRECONDITION_FAILED",
        "CANCELLED",
        "DEADLINE_EXCEEDED",
        "QUOTA_EXCEEDED",
        "OVERLOADED",
    } == HOPELESS
    for code in HOPELESS:
        assert not plan_policy(3, 100).allows(error(code, source="runtime"), 0)
        assert plan_policy(3, 100).allows(error(code), 0), "a tool's own word, whatever it sounds like"


# --- waiting -------------------------------------------------------------------------------------------


async def test_a_pause_ends_at_once_when_its_task_is_cancelled() -> None:
    task = asyncio.create_task(pause(3600))
    await asyncio.sleep(0)
    began = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.perf_counter() - began < 1


async def test_a_pause_really_waits() -> None:
    began = time.perf_counter()
    await pause(0.05)
    assert time.perf_counter() - began >= 0.045


async def test_the_switch_removes_waiting_here_and_in_tasks_begun_here() -> None:
    began = time.perf_counter()
    with no_waiting():
        await pause(3600)
        await asyncio.create_task(pause(3600))
        async with asyncio.TaskGroup() as group:
            group.create_task(pause(3600))
    assert time.perf_counter() - began < 1


async def test_after_the_switch_waiting_is_back() -> None:
    with no_waiting():
        pass
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(pause(3600), 0.01)


async def test_a_pause_lets_others_run_even_when_it_does_not_wait() -> None:
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    with no_waiting():
        task = asyncio.create_task(other())
        await pause(5)
    assert ran == ["other"]
    await task


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
async def test_a_pause_of_nothing_returns(seconds: float) -> None:
    await asyncio.wait_for(pause(seconds), 1)


@pytest.mark.parametrize(
    ("policy", "runs"),
    [
        (RetryPolicy(3), 1),
        (plan_policy(3, 0), 1),
        (RetryPolicies.QUICK, 1),
        (RetryPolicy(3, retryable_errors=frozenset({"EFFECT_FAILED"})), 4),
    ],
)
async def test_a_failing_effect_runs_the_handler_again_only_if_the_policy_names_it(policy, runs):
    ran = []

    def cannot(context, result):
        raise OSError("the disk is full")

    async def work(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        ran.append(1)
        return ToolResult.ok(None)

    one = Tool(
        "work", "Works.", work, retry=policy, effects=[StateChangeEffect(state="x", value=1, apply=cannot)]
    )
    with no_waiting():
        result = await ToolRegistry([one]).execute("work", {})
    assert result.error.code == "EFFECT_FAILED" and len(ran) == runs


async def test_an_inner_tool_whose_effect_failed_is_not_run_again_with_the_handler_that_called_it():
    ran = []

    def cannot(context, result):
        raise OSError("the disk is full")

    async def work(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        ran.append(1)
        return ToolResult.ok(None)

    async def call(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return await context.call(inner, {})

    inner = Tool("work", "Works.", work, effects=[StateChangeEffect(state="x", value=1, apply=cannot)])
    with no_waiting():
        result = await ToolRegistry([Tool("call", "Calls.", call, retry=RetryPolicy(3))]).execute("call", {})
    assert result.error.code == "EFFECT_FAILED" and len(ran) == 1


async def test_a_tool_that_itself_says_effect_failed_is_retried_like_any_other():
    ran = []

    async def work(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        ran.append(1)
        return ToolResult.error("no", code="EFFECT_FAILED")

    with no_waiting():
        await ToolRegistry([Tool("work", "Works.", work, retry=RetryPolicy(2))]).execute("work", {})
    assert len(ran) == 3


def test_an_async_should_retry_is_refused_since_nobody_would_await_it() -> None:
    async def never(error: ToolError, attempt: int) -> bool:
        return False

    with pytest.raises(ToolValidationError, match="should_retry is async"):
        RetryPolicy(3, should_retry=never)  # type: ignore[arg-type]
