"""Times are in seconds: the milliseconds of 004 are refused where they cannot be meant."""

import json
from dataclasses import dataclass

import pytest

from narratoria.errors import ToolValidationError
from narratoria.kinds.compose import parallel
from narratoria.kinds.manifest import parse_manifest
from narratoria.tools.retry import (
    Backoff,
    ExponentialBackoff,
    FixedBackoff,
    JitteredBackoff,
    LinearBackoff,
    RetryPolicies,
    RetryPolicy,
    plan_policy,
    policy_from_data,
)
from narratoria.tools.tool import Tool, ToolContext, ToolResult


@dataclass(frozen=True)
class Nothing:
    pass


async def work(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
    return ToolResult.ok(None)


@pytest.mark.parametrize("timeout", [30000, 10000])
def test_a_timeout_in_milliseconds_is_refused(timeout):
    with pytest.raises(ToolValidationError, match=f"seconds.*for {timeout} ms write {timeout // 1000}"):
        Tool("work", "Works.", work, timeout=timeout)
    with pytest.raises(ToolValidationError, match=r"timeout.*seconds"):
        parse_manifest({"name": "work", "description": "Works.", "timeout": timeout}, where="work.tool.json")
    with pytest.raises(ToolValidationError, match=r"timeout.*seconds"):
        parallel([Tool("work", "Works.", work)], timeout=timeout)


@pytest.mark.parametrize("timeout", [0.5, 45, 7200, None])
def test_a_timeout_that_can_be_meant_is_taken(timeout):
    assert Tool("work", "Works.", work, timeout=timeout).timeout == timeout


# 004, "Built-in Retry Policies", as they stand there.
SEEDS = [
    ("delay", {"type": "fixed", "delay": 1000}),
    ("baseDelay", {"type": "linear", "baseDelay": 1000, "increment": 500}),
    ("increment", {"type": "linear", "baseDelay": 1, "increment": 500}),
    ("baseDelay", {"type": "exponential", "baseDelay": 1000, "maxDelay": 30000, "multiplier": 2}),
    ("maxDelay", {"type": "exponential", "baseDelay": 1, "maxDelay": 30000, "multiplier": 2}),
    (
        "baseDelay",
        {
            "type": "jittered",
            "base": {"type": "exponential", "baseDelay": 500, "maxDelay": 60000, "multiplier": 2},
            "jitter": 0.1,
        },
    ),
]


@pytest.mark.parametrize(("key", "backoff"), SEEDS, ids=[json.dumps(backoff) for _, backoff in SEEDS])
def test_waits_in_milliseconds_are_refused_by_their_key(key, backoff):
    retry = {"maxRetries": 3, "backoff": backoff}
    with pytest.raises(ToolValidationError, match=f"{key}.*in seconds, not in milliseconds"):
        policy_from_data(retry)
    with pytest.raises(ToolValidationError, match=f"work.tool.json: .*{key}.*seconds"):
        parse_manifest({"name": "work", "description": "Works.", "retry": retry}, where="work.tool.json")


@pytest.mark.parametrize(
    "backoff",
    [
        FixedBackoff(1000),
        LinearBackoff(1000, 1),
        ExponentialBackoff(1000),
        ExponentialBackoff(1.0, max_delay=30000),
        JitteredBackoff(FixedBackoff(1000), 0.1),
    ],
)
def test_a_tool_in_python_is_refused_with_such_waits_too(backoff):
    with pytest.raises(ToolValidationError, match=r"tool 'work': retry.*seconds"):
        Tool("work", "Works.", work, retry=RetryPolicy(3, backoff))


def test_presets_and_a_plans_own_milliseconds_are_as_ever():
    for policy in (RetryPolicies.QUICK, RetryPolicies.STANDARD, RetryPolicies.AGGRESSIVE):
        Tool("work", "Works.", work, retry=policy)
    assert plan_policy(3, 600_000).backoff.delay(1) == 600.0


class Rhythm(Backoff, tag="rhythm", frozen=True):
    """A backoff of an author's, whose field is not in seconds by its type."""

    unit: float

    def delay(self, attempt, rng=None):
        return self.unit * attempt


def test_the_waits_of_a_backoff_are_asked_of_itself_whatever_its_fields_are_called():
    Tool("work", "Works.", work, retry=RetryPolicy(3, Rhythm(1.0)))
    with pytest.raises(ToolValidationError, match=r"the wait before the first retry.*for 1000 ms write 1"):
        Tool("work", "Works.", work, retry=RetryPolicy(3, Rhythm(1000.0)))
    with pytest.raises(ToolValidationError, match=r"the wait before retry 100: .*seconds"):
        Tool("work", "Works.", work, retry=RetryPolicy(100, Rhythm(500.0)))
