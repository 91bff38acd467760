"""Calls that may have been carried out, and must not be made twice."""

import asyncio
from dataclasses import dataclass

import pytest

from narratoria.errors import CallFailure, ToolFailure
from narratoria.kinds.compose import sequence
from narratoria.kinds.function import tool
from narratoria.kinds.outside_effect import OutsideEffect
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.turn import TurnSettings, take_turn
from narratoria.run.plan import CallResult, PlanDocument, PlannedCall, PlanRetry
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.retry import RetryPolicy, no_waiting
from narratoria.tools.tool import Tool, ToolContext, ToolResult

LASTS = (OutsideEffect(description="what it paid"),)


@dataclass(frozen=True)
class Pay:
    amount: int = 1


class Bank:
    """A tool that acts and then gives no answer, by hanging or by raising `error`."""

    def __init__(self, error=None, name="pay", **settings):
        self.payments = 0

        async def pay(params: Pay, *, context: ToolContext) -> ToolResult[None]:
            self.payments += 1
            if error is not None:
                raise error
            await asyncio.sleep(60)
            return ToolResult.ok(None)

        self.tool = Tool(name, "Pays.", pay, timeout=0.02, **settings)


def plan(*calls):
    return PlanDocument(tools=list(calls), parallel=False)


def call(tool_id="a", path="pay", **fields):
    return PlannedCall(tool_id=tool_id, tool_path=path, **fields)


async def run(document, *tools, completed=None):
    with no_waiting():
        return await PlanExecutor(ToolRegistry(tools), Session()).execute(document, completed=completed)


@pytest.mark.parametrize(
    "error",
    [
        None,
        CallFailure("EXECUTION_FAILED", "the server died", recoverable=False),
        ToolFailure("NETWORK", "the connection broke", recoverable=False),
        CallFailure("PROTOCOL_ERROR", "no answer that can be read"),
    ],
    ids=["timeout", "died", "network", "protocol"],
)
async def test_a_call_that_lasts_and_gets_no_answer_is_sent_once(error):
    bank = Bank(error, effects=LASTS)
    result = await run(plan(call()), bank.tool)
    assert bank.payments == 1 and not result.success


async def test_a_call_that_lasts_and_failed_in_its_own_words_is_retried():
    bank = Bank(ToolFailure("BUSY", "come back"), effects=LASTS)
    await run(plan(call()), bank.tool)
    assert bank.payments == 4


async def test_a_policy_written_for_the_call_or_its_tool_is_kept():
    bank = Bank(effects=LASTS)
    await run(plan(call(retry_policy=PlanRetry(max_retries=2))), bank.tool)
    assert bank.payments == 3, "as written, and no further execution of the plan"
    bank = Bank(effects=LASTS, retry=RetryPolicy(1))
    await run(plan(call()), bank.tool)
    assert bank.payments == 12, "its author says that it may be repeated"


async def test_a_call_without_retries_is_not_repeated_by_another_execution_of_the_plan():
    bank = Bank()
    await run(plan(call(retry_policy=PlanRetry(max_retries=0))), bank.tool)
    assert bank.payments == 1
    slow, bank = Bank(name="slow"), Bank()
    document = plan(
        call("a", retry_policy=PlanRetry(max_retries=0), required=False),
        call("b", "slow", retry_policy=PlanRetry(max_retries=1)),
    )
    result = await run(document, bank.tool, slow.tool)
    assert bank.payments == 1 and slow.payments == 6
    assert result.result_of("a").state == "timeout" and result.result_of("a").retry_count == 0


async def test_a_composition_with_a_part_that_lasts_is_sent_once():
    bank = Bank(effects=LASTS)
    both = sequence([bank.tool], name="both", description="Pays.", stop_on_error=True)
    await run(plan(call(path="both")), bank.tool, both)
    assert bank.payments == 1


async def test_an_interrupted_plan_keeps_the_failure_of_a_call_that_must_not_be_repeated():
    bank = Bank(effects=LASTS)
    before = CallResult(
        tool_id="a", ok=False, state="timeout", execution_time=20.0, error="late", error_code="TIMEOUT"
    )
    result = await run(plan(call()), bank.tool, completed={"a": before})
    assert bank.payments == 0 and result.result_of("a").error == "late"


async def test_another_plan_of_the_turn_does_not_send_it_again():
    bank = Bank(effects=LASTS)
    made = []

    class Insists:
        name = "insists"

        async def plan(self, request: NarratorRequest) -> PlanDocument:
            made.append(request.attempt)
            return plan(call())

    with no_waiting():
        result = await take_turn(
            Session(),
            "pay",
            narrator=Insists(),
            registry=ToolRegistry([bank.tool]),
            settings=TurnSettings(generation_timeout=1.0),
        )
    assert bank.payments == 1 and len(made) == 5 and "pay is disabled" in result.problems[0]


async def test_a_tool_that_only_reads_or_promises_nothing_lasting_is_repeated():
    @tool(description="Looks.", name="pay", read_only=True, timeout=0.02)
    async def look(params: Pay, *, context: ToolContext) -> ToolResult[None]:
        looks.append(1)
        await asyncio.sleep(60)
        return ToolResult.ok(None)

    looks: list[int] = []
    await run(plan(call()), look)
    assert len(looks) == 12
