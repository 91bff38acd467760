"""A crash after a composed call: the resumed turn knows what its parts said and changed."""

from typing import Any

import pytest

from narratoria.errors import PlanRejected
from narratoria.events import Committed, PlanRefused, StatePatch, TurnCommitted, TurnStarted
from narratoria.kinds.compose import Branch, conditional, parallel, sequence
from narratoria.kinds.function import tool
from narratoria.play.resume import from_records
from narratoria.play.turn import TurnSettings, take_turn
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.tools.contract import CascadeEffect
from narratoria.tools.retry import RetryPolicy
from narratoria.tools.tool import ToolContext, ToolResult


def part(name, *, fails=0, effects=(), retry=None):
    ran = []

    @tool(description="Lights.", name=name, effects=effects, retry=retry or RetryPolicy(2))
    async def light(params: None, *, context: ToolContext) -> ToolResult[dict]:
        ran.append(1)
        context.log(name)
        context.patch({name: len(ran)})
        context.choices(f"After {name}")
        return ToolResult.error("wet") if len(ran) <= fails else ToolResult.ok({"by": name})

    return light


def plainly(name):
    @tool(description="Lights in a thread.", name=name)
    def light(params: None, *, context: ToolContext) -> ToolResult[dict]:
        context.patch({name: True})
        return ToolResult.ok({"by": name})

    return light


def calling(*parts):
    @tool(description="Calls.", name="calling")
    async def call(params: None, *, context: ToolContext) -> ToolResult[Any]:
        context.patch({"calling": True})
        return [await context.call(one, {}) for one in parts][-1]

    return call


def made():
    never = Branch(lambda result, context: False, [part("tried")])
    triggers = part("first", effects=[CascadeEffect(trigger_tool="cascaded")])
    return [
        sequence([part("a"), part("b")]),
        sequence([triggers, part("b", fails=1)]),
        parallel([part("a", fails=2), plainly("b")]),
        conditional([never], [part("a"), part("b")]),
        sequence([parallel([part("a"), part("b")]), part("c")]),
        calling(part("a"), part("b")),
    ]


class Tap:
    full = False

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.records.append(record)


class Plans:
    name = "plans"

    def __init__(self, whole):
        self.whole = whole

    async def plan(self, request):
        call = {"toolId": "w", "toolPath": self.whole.name, "retryPolicy": {"maxRetries": 0}}
        return PlanDocument.from_data({"requestId": "p", "tools": [call]})


@pytest.mark.parametrize("index", range(len(made())))
async def test_a_composed_call_that_committed_is_the_same_after_a_crash(index):
    whole = made()[index]
    session, tap = Session(), Tap()
    session.attach(tap)
    registry = ToolRegistry([whole, part("cascaded")])
    settings = TurnSettings(generation_timeout=1)
    turn = await take_turn(session, "go", narrator=Plans(whole), registry=registry, settings=settings)
    live = turn.traces[-1].result_of("w")
    assert live.ok and any(isinstance(one, StatePatch) for one in live.events)
    first = 1 + next(n for n, one in enumerate(tap.records) if isinstance(one.event, Committed))
    last = next(n for n, one in enumerate(tap.records) if isinstance(one.event, TurnCommitted))
    for cut in range(first, last):
        left = from_records(tap.records[:cut])
        if left is None or left.plan is None:
            continue
        again = left.completed["w"]
        assert again.ok and again.output == live.output
        assert sorted(map(repr, again.events)) == sorted(map(repr, live.events))


async def test_a_composed_call_that_did_not_commit_is_run_again():
    whole = sequence([part("a"), part("b")])
    session, tap = Session(), Tap()
    session.attach(tap)
    await take_turn(
        session,
        "go",
        narrator=Plans(whole),
        registry=ToolRegistry([whole]),
        settings=TurnSettings(generation_timeout=1),
    )
    end = next(n for n, one in enumerate(tap.records) if isinstance(one.event, Committed))
    for cut in range(1, end + 1):
        left = from_records(tap.records[:cut])
        assert left is None or not any(one.ok for one in left.completed.values())


async def test_a_resumed_plan_keeps_the_attempts_and_events_of_its_earlier_execution():
    fails = part("a", fails=9, retry=RetryPolicy(0))
    plan = PlanDocument(
        tools=[PlannedCall(tool_id="a", tool_path="a", retry_policy=PlanRetry(max_retries=1))]
    )
    before = await PlanExecutor(ToolRegistry([fails]), Session(), max_executions=1).execute(plan)
    first = before.tool_results[0]
    assert (first.retry_count, len(first.events)) == (1, 6)
    again = PlanExecutor(ToolRegistry([part("a")]), Session(), max_executions=1)
    resumed = (await again.execute(plan, completed={"a": first})).tool_results[0]
    assert (resumed.ok, resumed.retry_count, len(resumed.events)) == (True, 2, 9)


async def test_a_resumed_turn_tells_the_narrator_why_the_last_plan_was_rejected():
    started = TurnStarted(turn=1, prompt="look")
    refused = PlanRefused(attempt=1, problems=["tools[0]: a cycle"], plan="p")
    found = from_records([Record(1, 0.0, 1, started), Record(2, 0.0, 1, refused)])
    asked = []

    class Narrates:
        name = "narrates"

        async def plan(self, request):
            asked.append(request)
            return PlanDocument(narrative="You look.")

    await take_turn(Session(), "look", narrator=Narrates(), registry=ToolRegistry(), resume=found)
    assert (asked[0].attempt, tuple(asked[0].problems)) == (2, ("tools[0]: a cycle",))


@pytest.mark.parametrize("rejected", [True, False])
async def test_a_resumed_turn_explains_a_plan_that_could_not_be_read_and_has_no_id(rejected):
    """A narrator that failed is no plan, and what went wrong with it is not told to the next one."""
    asked = []

    class Narrates:
        name = "narrates"

        async def plan(self, request):
            asked.append(request)
            if rejected:
                raise PlanRejected(["$: not an object"])
            raise ValueError("the model is away")

    session, tap = Session(), Tap()
    session.attach(tap)
    await take_turn(session, "look", narrator=Narrates(), registry=ToolRegistry())
    cut = next(n for n, one in enumerate(tap.records) if isinstance(one.event, PlanRefused))
    found = from_records(tap.records[: cut + 1])
    told = ("$: not an object",) if rejected else ()
    assert (found.problems, tuple(asked[1].problems)) == (told, told)
    asked.clear()
    await take_turn(Session(), "look", narrator=Narrates(), registry=ToolRegistry(), resume=found)
    assert (asked[0].attempt, tuple(asked[0].problems)) == (2, told)
