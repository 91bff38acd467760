"""Approval before a call: who asks for it, the answers, and the time limits that stand still meanwhile."""

import asyncio
from dataclasses import dataclass

import pytest
from tests.recorder import Recorder

from narratoria.errors import ApprovalNotOpen, ArgumentsInvalid, ToolValidationError
from narratoria.events import ApprovalGiven, ApprovalRequested, CallFinished, CallStarted
from narratoria.kinds.compose import parallel, sequence
from narratoria.kinds.function import tool
from narratoria.run.executor import ToolExecutor
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.approvals import ApprovalAnswer
from narratoria.tools.contract import CascadeEffect, Compensation, PermissionPrecondition, StateChangeEffect
from narratoria.tools.deadline import Budget, BudgetTracker, Deadline
from narratoria.tools.retry import FixedBackoff, RetryPolicy
from narratoria.tools.tool import CallScope, ToolResult


@dataclass(frozen=True)
class Payment:
    to: str
    amount: int = 1


def paying(paid=None, **options):
    @tool(description="Pay somebody.", **{"approval": "always", **options})
    async def pay(params: Payment, *, context) -> ToolResult[int]:
        if paid is not None:
            paid.append(params)
        context.patch({params.to: params.amount})
        return ToolResult.ok(params.amount, "paid")

    return pay


def answering(answer, asked=None):
    async def ask(request):
        if asked is not None:
            asked.append(request)
        return answer

    return ask


async def opened(session, count=1):
    """Wait until questions are open, and return the last one."""
    async with asyncio.timeout(5):
        while len(session.approvals.pending) < count:
            await asyncio.sleep(0)
    return session.approvals.pending[-1]


def plan(tool_id="a", **call):
    data = {"toolId": tool_id, "toolPath": "pay", "input": {"to": "ada"}, **call}
    return PlanDocument.from_data({"requestId": "p", "tools": [data]})


async def test_an_approved_call_runs_and_both_are_recorded():
    session, asked, paid = Session(), [], []
    recorder = Recorder(session)
    session.approvals.approver = answering(ApprovalAnswer.approve(by="ada"), asked)
    result = await ToolRegistry([paying(paid)]).execute("pay", {"to": "bo"}, session=session)
    assert result.success and session.state["bo"] == 1
    (request,), (given,) = recorder.of(ApprovalRequested), recorder.of(ApprovalGiven)
    assert (request.tool, request.input, request.reason) == ("pay", {"to": "bo"}, "it always asks first")
    assert (given.id, given.call, given.decision, given.by) == (request.id, request.call, "approved", "ada")
    assert asked[0].id == request.id
    kinds = [type(record.event) for record in recorder.records]
    assert kinds.index(ApprovalGiven) < kinds.index(CallStarted)  # before the first attempt


async def test_an_edited_input_is_what_is_recorded_and_run():
    session, paid = Session(), []
    recorder = Recorder(session)
    session.approvals.approver = answering(ApprovalAnswer.edit({"to": "bo", "amount": 2}))
    result = await ToolRegistry([paying(paid)]).execute("pay", {"to": "bo", "amount": 200}, session=session)
    assert result.value == 2 and paid == [Payment("bo", 2)]
    assert recorder.of(CallStarted)[0].input == {"to": "bo", "amount": 2}
    assert recorder.of(ApprovalGiven)[0].input == {"to": "bo", "amount": 2}


async def test_a_refusal_fails_the_call_with_its_reason_and_is_not_retried():
    session, asked, paid = Session(), [], []
    recorder = Recorder(session)
    session.approvals.approver = answering(ApprovalAnswer.refuse("too dear"), asked)
    pay = paying(paid, retry=RetryPolicy(max_retries=3, backoff=FixedBackoff(seconds=0)))
    trace = await PlanExecutor(ToolRegistry([pay]), session).execute(plan())
    result = trace.result_of("a")
    assert (result.error_code, result.error_source) == ("REFUSED", "runtime")
    assert "too dear" in result.error
    assert len(asked) == 1 and paid == []
    assert recorder.of(CallFinished)[0].error_code == "REFUSED"


async def test_without_anybody_to_ask_the_call_fails_at_once_and_says_what_to_set():
    result = await ToolRegistry([paying()]).execute("pay", {"to": "bo"})
    assert result.error.code == "REFUSED"
    assert "session.approvals.approver" in result.error.message


async def test_an_invalid_edit_leaves_the_question_open():
    session = Session()
    session.approvals.attended = True
    call = asyncio.create_task(ToolRegistry([paying()]).execute("pay", {"to": "bo"}, session=session))
    request = await opened(session)
    with pytest.raises(ArgumentsInvalid, match="amount"):
        session.approvals.answer(request.id, ApprovalAnswer.edit({"to": "bo", "amount": "much"}))
    assert session.approvals.pending == [request]
    session.approvals.answer(request.id, ApprovalAnswer.approve())
    assert (await call).success


async def test_an_invalid_edit_of_an_approver_fails_the_call_for_its_arguments():
    session = Session()
    session.approvals.approver = answering(ApprovalAnswer.edit({"to": 5}))
    result = await ToolRegistry([paying()]).execute("pay", {"to": "bo"}, session=session)
    assert result.error.code == "INVALID_ARGUMENTS" and "the edited input" in result.error.message


async def test_a_second_answer_is_refused():
    session = Session()
    session.approvals.attended = True
    call = asyncio.create_task(ToolRegistry([paying()]).execute("pay", {"to": "bo"}, session=session))
    request = await opened(session)
    session.approvals.answer(request.id, ApprovalAnswer.approve())
    with pytest.raises(ApprovalNotOpen) as refused:
        session.approvals.answer(request.id, ApprovalAnswer.refuse("no"))
    assert refused.value.known
    assert (await call).success
    with pytest.raises(ApprovalNotOpen) as refused:
        session.approvals.answer("approval-99", ApprovalAnswer.approve())
    assert not refused.value.known


async def test_an_approver_that_raises_fails_the_call():
    async def broken(request):
        raise ValueError("no terminal")

    session = Session()
    session.approvals.approver = broken
    result = await ToolRegistry([paying()]).execute("pay", {"to": "bo"}, session=session)
    assert result.error.code == "EXECUTION_FAILED" and "no terminal" in result.error.message


async def test_an_approver_that_returns_something_else_is_named():
    session = Session()
    session.approvals.approver = answering(True)
    result = await ToolRegistry([paying()]).execute("pay", {"to": "bo"}, session=session)
    assert "ApprovalAnswer.approve()" in result.error.message


# --- who asks for it ---------------------------------------------------------------------------------------------


def lasting(**effect):
    return [
        StateChangeEffect(description="money is gone", state="gone", apply=lambda context: None, **effect)
    ]


@pytest.mark.parametrize(
    ("approval", "effects", "asks"),
    [
        ("irreversible", (), False),
        ("irreversible", lasting(rollback=lambda context: None), False),
        ("irreversible", lasting(), True),
        ("irreversible", lasting(reversible=False), True),
        ("irreversible", [CascadeEffect(trigger_tool="pay", trigger_condition=lambda result: False)], False),
        ("never", lasting(), False),
        (None, lasting(), False),
        ("always", (), True),
    ],
)
async def test_irreversible_is_an_effect_without_a_way_back(approval, effects, asks):
    session, asked = Session(), []
    session.approvals.approver = answering(ApprovalAnswer.approve(), asked)
    pay = paying(approval=approval, effects=effects)
    assert (await ToolRegistry([pay]).execute("pay", {"to": "bo"}, session=session)).success
    assert [one.reason for one in asked] == (
        [] if not asks else ["it always asks first" if not effects else "it cannot be undone: money is gone"]
    )


async def test_a_plan_may_ask_for_approval_and_cannot_take_it_away():
    for said, approval, asks in ((True, "never", 1), (False, "always", 1), (False, "never", 0)):
        session, asked = Session(), []
        session.approvals.approver = answering(ApprovalAnswer.approve(), asked)
        registry = ToolRegistry([paying(approval=approval)])
        assert (await PlanExecutor(registry, session).execute(plan(approval=said))).success
        assert len(asked) == asks


async def test_a_plan_without_the_key_is_written_without_it():
    assert "approval" not in plan().to_data()["tools"][0]
    assert plan(approval=True).to_data()["tools"][0]["approval"] is True


@pytest.mark.parametrize(
    ("verdict", "approval", "reason"),
    [
        (True, None, "the program asks for approval"),
        ("more than 10", None, "more than 10"),
        (False, "always", None),
        (None, "always", "it always asks first"),
        (None, None, None),
    ],
)
async def test_a_policy_of_the_program_decides_before_the_tool(verdict, approval, reason):
    async def policy(call):
        assert (call.tool.name, call.args) == ("pay", {"to": "bo"})
        return verdict

    session, asked = Session(), []
    session.approvals.approver = answering(ApprovalAnswer.approve(), asked)
    for executor in (
        ToolRegistry([paying(approval=approval)], approval=policy).executor,
        ToolExecutor(ToolRegistry([paying(approval=approval)]), approval=lambda call: verdict),
    ):
        asked.clear()
        assert (await executor.execute("pay", {"to": "bo"}, session=session)).success
        assert [one.reason for one in asked] == ([] if reason is None else [reason])


async def test_a_policy_that_fails_fails_the_call_and_nothing_runs():
    paid = []
    for policy, told in ((lambda call: 1 / 0, "ZeroDivisionError"), (lambda call: 7, "must return")):
        registry = ToolRegistry([paying(paid, approval=None)], approval=policy)
        result = await registry.execute("pay", {"to": "bo"})
        assert result.error.code == "EXECUTION_FAILED" and told in result.error.message
    assert paid == []


def test_a_wrong_rule_or_policy_is_refused_when_it_is_made():
    with pytest.raises(ToolValidationError, match="always, irreversible, never"):
        paying(approval="sometimes")
    with pytest.raises(ToolValidationError, match="function"):
        ToolRegistry(approval="always")


async def test_nobody_is_asked_about_a_call_that_would_be_refused_anyway():
    session, asked = Session(), []
    session.approvals.approver = answering(ApprovalAnswer.approve(), asked)
    result = await ToolRegistry([paying()]).execute("pay", {"to": 5}, session=session)
    assert result.error.code == "INVALID_ARGUMENTS" and asked == []


async def test_preconditions_are_checked_again_after_the_answer():
    session = Session(permissions=["pay"])
    session.approvals.attended = True
    needs = PermissionPrecondition(description="may pay", permission="pay")
    call = asyncio.create_task(
        ToolRegistry([paying(preconditions=[needs])]).execute("pay", {"to": "bo"}, session=session)
    )
    request = await opened(session)
    session.revoke("pay")
    session.approvals.answer(request.id, ApprovalAnswer.approve())
    assert (await call).error.code == "PRECONDITION_FAILED"


async def test_taking_an_effect_back_asks_nobody():
    taken = []

    @tool(description="Take a payment back.", approval="always")
    async def take_back(params: Payment, *, context) -> ToolResult[None]:
        taken.append(params)
        return ToolResult.ok(None)

    rollback = Compensation(tool="take_back", input={"to": "bo"})

    def fail(context):
        raise ValueError("no")

    effects = [
        StateChangeEffect(description="money moves", state="moves", value=1, rollback=rollback),
        StateChangeEffect(description="f", state="f", apply=fail),
    ]
    pay = paying(approval=None, effects=effects)
    result = await ToolRegistry([pay, take_back]).execute("pay", {"to": "bo"})
    assert result.error.code == "EFFECT_FAILED" and taken == [Payment("bo")]


# --- time ----------------------------------------------------------------------------------------------------


async def test_the_limits_of_plan_call_and_enclosing_calls_stand_still():
    session = Session()
    session.approvals.attended = True
    pay = paying(timeout=0.05)
    outer = sequence([pay], name="outer", description="Pay, as a part.")
    side = parallel([outer], name="side", description="Pay, beside nothing.")

    @tool(description="Call it.", timeout=0.05)
    async def handler(params: Payment, *, context) -> ToolResult[None]:
        result = await context.call("side", {"to": params.to})
        return ToolResult.ok(None) if result.success else result

    registry = ToolRegistry([pay, outer, side, handler])
    executor = PlanExecutor(registry, session, plan_timeout=0.1, call_timeout=0.05)
    for path in ("pay", "outer", "side", "handler"):
        running = asyncio.create_task(executor.execute(plan(toolPath=path)))
        request = await opened(session)
        await asyncio.sleep(0.3)
        session.approvals.answer(request.id, ApprovalAnswer.approve())
        trace = await running
        assert trace.success, (path, trace)
        session.approvals.end_turn()


async def test_the_limits_run_again_after_the_answer():
    session = Session()
    session.approvals.attended = True

    @tool(description="Take long.", approval="always")
    async def slow(params: Payment, *, context) -> ToolResult[None]:
        await asyncio.sleep(30)
        return ToolResult.ok(None)

    running = asyncio.create_task(
        PlanExecutor(ToolRegistry([slow]), session, plan_timeout=0.1, max_executions=1).execute(
            plan(toolPath="slow")
        )
    )
    request = await opened(session)
    await asyncio.sleep(0.2)
    session.approvals.answer(request.id, ApprovalAnswer.approve())
    async with asyncio.timeout(5):
        trace = await running
    assert trace.result_of("a").error_code == "TIMEOUT"
    assert not session.approvals.limits


async def test_the_deadline_and_the_budget_of_an_evaluation_stand_still():
    now = [0.0]
    session = Session()
    session.approvals.attended = True
    deadline = Deadline.after(10, clock=lambda: now[0])
    tracker = BudgetTracker(Budget(max_seconds=10), clock=lambda: now[0])
    scope = CallScope(deadline=deadline, budget_tracker=tracker)
    executor = ToolExecutor(ToolRegistry([paying()]), scope=scope)
    now[0] = 4.0
    calls = [asyncio.create_task(executor.execute("pay", {"to": who}, session=session)) for who in "ab"]
    await opened(session, 2)
    now[0] = 104.0
    for one in session.approvals.pending:
        session.approvals.answer(one.id, ApprovalAnswer.approve())
    assert all([(await one).success for one in calls])
    assert deadline.remaining() == 6.0 and tracker.used.seconds == 4.0


async def test_a_plan_executed_again_does_not_ask_again():
    session, asked, tries = Session(), [], []
    session.approvals.approver = answering(ApprovalAnswer.approve(), asked)

    @tool(description="Time out twice.", approval="always")
    async def slow(params: Payment, *, context) -> ToolResult[None]:
        tries.append(1)
        if len(tries) <= 2:
            await asyncio.sleep(30)
        return ToolResult.ok(None)

    call = plan(toolPath="slow", retryPolicy={"maxRetries": 1, "backoffMs": 0})
    trace = await PlanExecutor(ToolRegistry([slow]), session, call_timeout=0.05).execute(call)
    assert trace.success and len(tries) == 3 and len(asked) == 1


async def test_two_equal_calls_of_one_handler_are_two_questions():
    session, asked = Session(), []
    Recorder(session)
    session.approvals.approver = answering(ApprovalAnswer.approve(), asked)
    tries = []

    @tool(description="Pay twice.")
    async def twice(params: Payment, *, context) -> ToolResult[None]:
        for _ in range(2):
            await context.call("pay", {"to": params.to})
        tries.append(1)
        return ToolResult.ok(None) if len(tries) == 2 else ToolResult.failed("again")

    call = plan(toolPath="twice", retryPolicy={"maxRetries": 1, "backoffMs": 0})
    assert (await PlanExecutor(ToolRegistry([paying(), twice]), session).execute(call)).success
    assert len(asked) == 2 and len({one.id for one in asked}) == 2  # and the second attempt asked nothing


async def test_a_cancelled_call_closes_its_question():
    session = Session()
    recorder = Recorder(session)
    session.approvals.attended = True
    call = asyncio.create_task(ToolRegistry([paying()]).execute("pay", {"to": "bo"}, session=session))
    request = await opened(session)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert session.approvals.pending == [] and recorder.of(ApprovalGiven)[0].decision == "cancelled"
    assert recorder.of(CallFinished)[0].error_code == "CANCELLED"
    with pytest.raises(ApprovalNotOpen):
        session.approvals.answer(request.id, ApprovalAnswer.approve())


async def test_a_question_that_was_cancelled_is_asked_anew_under_another_id():
    session = Session()
    recorder = Recorder(session)
    session.approvals.attended = True
    tries = []

    @tool(description="Fail at first.")
    async def fail(params: Payment, *, context) -> ToolResult[None]:
        tries.append(1)
        return ToolResult.ok(None) if len(tries) > 1 else ToolResult.failed("not yet")

    both = parallel([paying(), fail], name="both", description="Pay, beside a failure.", stop_on_error=True)
    call = plan(toolPath="both", retryPolicy={"maxRetries": 1, "backoffMs": 0})
    running = asyncio.create_task(PlanExecutor(ToolRegistry([both]), session).execute(call))
    async with asyncio.timeout(10):
        while len(recorder.of(ApprovalRequested)) < 2:
            await asyncio.sleep(0)
    request = await opened(session)
    session.approvals.answer(request.id, ApprovalAnswer.approve())
    assert (await running).success
    assert [one.decision for one in recorder.of(ApprovalGiven)] == ["cancelled", "approved"]
    assert len({one.id for one in recorder.of(ApprovalRequested)}) == 2
