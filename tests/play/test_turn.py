"""Turns: 000 §13.6 and §14.3, bounded replanning, skill health, and a story that never stops."""

import asyncio
import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from narratoria import ToolContext, ToolResult, tool
from narratoria.errors import (
    CANCELLED,
    PlanRejected,
    PromptEvaluationError,
    SessionBusy,
    VisibilityExpansionRequired,
)
from narratoria.events import (
    CallFinished,
    CallStarted,
    Committed,
    Log,
    NarrationDelta,
    NarratorChosen,
    Notice,
    PlanFinished,
    PlanMade,
    PlanRefused,
    SkillHealth,
    TurnCommitted,
    TurnStarted,
    encode,
)
from narratoria.factcheck.fact_checked import CONTRADICTION, FactChecked
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Declaration, NarratorRequest, NoMatch, Refusal, Review
from narratoria.narrator.rules.patterns import same_request
from narratoria.narrator.template import TemplateNarrator, account
from narratoria.play.game import Game
from narratoria.play.resume import from_records
from narratoria.play.story import Story
from narratoria.play.turn import TurnSettings, take_turn
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.retry import no_waiting

ROOT = Path(__file__).resolve().parents[2]
QUICK = TurnSettings(generation_timeout=0.1)
ENGLISH = TurnSettings(takes_choice=same_request)


class Recorder:
    full = False

    def __init__(self, session):
        self.events = []
        session.attach(self)

    def push(self, record):
        self.events.append(record.event)

    async def wait(self):
        return None

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


class Says:
    """A narrator that answers with what it is given, and notes what it was asked."""

    name = "says"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            return await answer()
        return answer


def call(name, **fields):
    fields.setdefault("retry_policy", PlanRetry(max_retries=0))
    return PlannedCall(tool_id=f"{name}1", tool_path=name, **fields)


def speak(text="So it goes."):
    return PlanDocument(narrative=text)


async def turn(narrator, prompt="look", session=None, settings=QUICK, registry=None):
    return await asyncio.wait_for(
        take_turn(
            session or Session(),
            prompt,
            narrator=narrator,
            registry=registry or ToolRegistry(),
            settings=settings,
        ),
        20,
    )


@dataclass(frozen=True)
class Strike:
    times: int


@tool(description="Strike the gong.")
async def strike(params: Strike, *, context: ToolContext) -> ToolResult[None]:
    return ToolResult.ok(None)


@pytest.fixture
def torch_story(tmp_path):
    shutil.copytree(ROOT / "stories" / "torch", tmp_path / "torch")
    return tmp_path / "torch"


# --- the walkthrough of 14.3, on real processes -----------------------------------------------------------


async def test_14_3_both_calls_run_and_state_assets_and_choices_follow(torch_story):
    game = Game.new(Story.load(torch_story))
    game.begin()
    result = await game.prompt("I light the torch and examine the door")
    (plan,) = result.plans
    expected = json.loads((ROOT / "tests" / "data" / "plan-14-3-first.json").read_text())
    assert {**plan.to_data(), "requestId": None} == {**expected, "requestId": None}
    assert result.outcome == "completed" and result.choices == ["Open", "Leave"]
    assert game.session.state == {
        "inventory": {"torch": {"lit": True}},
        "discovered": {"door_inscription": "Ancient runes"},
    }
    (picture,) = game.session.asset_records.values()
    assert picture.media_type == "image/png" and picture.hash in game.session.assets


async def test_14_3_when_torch_lighter_fails_the_second_plan_comes_out_and_the_story_goes_on(torch_story):
    tool = torch_story / "tools" / "torch-lighter"
    tool.write_text(f'#!{sys.executable}\nprint(\'{{"version":"0","type":"done","ok":false}}\')\n')
    game = Game.new(Story.load(torch_story))
    game.begin()
    with no_waiting():
        result = await game.prompt("I light the torch and examine the door")
    first, second = result.plans
    expected = json.loads((ROOT / "tests" / "data" / "plan-14-3-second.json").read_text())
    got = second.to_data()
    assert got["metadata"] == {"generationAttempt": 2, "parentPlanId": first.request_id}
    for volatile in (got, expected):
        volatile["requestId"] = volatile["metadata"] = None
    for one in expected["tools"]:
        one.setdefault("retryPolicy", {"maxRetries": 3, "backoffMs": 100})
    assert got == expected
    assert result.traces[0].result_of("light1").retry_count == 3
    assert result.traces[0].result_of("examine1").state == "skipped"
    assert result.outcome == "completed" and result.narrative.startswith("The torch is beyond reach.")
    assert game.session.state == {"discovered": {"door_inscription": "Ancient runes"}}
    assert game.session.health["torch-lighter"].health == "temporaryFailure"
    assert game.session.health["door-examiner"].health == "healthy"


# --- bounded replanning -----------------------------------------------------------------------------------


async def hang():
    await asyncio.Event().wait()
    raise AssertionError


async def nonsense():
    return {"tools": "yes"}


class Unreadable(Exception):
    def __str__(self):
        raise ValueError("not even this")


async def swallow():
    """Cannot be cancelled. Bounded, so that the test ends."""
    for _ in range(50):
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue
    return speak("too late")


FAULTS = [
    ValueError("broken narrator"),
    Unreadable(),
    SystemExit(3),
    asyncio.CancelledError(),
    hang,
    nonsense,
    NoMatch("no idea"),
]


@pytest.mark.parametrize(
    "answer", FAULTS, ids=lambda answer: getattr(answer, "__name__", type(answer).__name__)
)
async def test_a_narrator_that_raises_hangs_or_talks_nonsense_costs_five_attempts_and_never_the_turn(answer):
    session = Session()
    recorder = Recorder(session)
    narrator = Says(answer)
    result = await turn(narrator, session=session)
    assert len(narrator.requests) == 5 and [one.attempt for one in recorder.of(PlanRefused)] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert result.outcome == "fallback" and result.narrator == "plain" and result.narrative
    assert (await turn(Says(speak()), session=session)).narrative == "So it goes.", "the player can go on"


async def test_the_last_resort_is_the_callers_and_without_one_speaks_no_language():
    silent = Says(NoMatch("nothing"))
    assert (await turn(silent)).narrative == "…"
    theirs = Says(speak("Así no."))
    result = await turn(silent, settings=TurnSettings(generation_timeout=0.1, last_resort=theirs))
    assert (result.outcome, result.narrative) == ("fallback", "Así no.")
    result = await turn(silent, settings=TurnSettings(generation_timeout=0.1, last_resort=silent))
    assert (result.outcome, result.narrative, result.problems[-1]) == ("fallback", "…", "nothing")


async def test_a_narrator_that_cannot_be_cancelled_costs_little_more_than_its_time():
    started = asyncio.get_running_loop().time()
    result = await turn(Says(swallow), settings=TurnSettings(generation_timeout=0.05, generations=1))
    assert asyncio.get_running_loop().time() - started < 3
    assert result.outcome == "fallback" and "does not stop" in result.problems[0]


async def test_text_that_json_cannot_carry_becomes_readable():
    result = await turn(Says(speak("Light \ud800 falls.")), "look \udcff")
    assert result.prompt == "look ?" and result.narrative == "Light ? falls."


async def test_the_same_failing_plan_five_times_ends_in_template_narration():
    narrator = Says(PlanDocument(tools=[call("nope")]))
    session = Session()
    result = await turn(narrator, session=session)
    assert result.outcome == "fallback" and len(narrator.requests) == 5
    assert narrator.requests[1].disabled_skills == {"nope"}


async def test_a_plan_that_chooses_a_disabled_skill_is_refused():
    @tool(description="Fails.", name="moody")
    async def moody(params: Strike, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.error("not today")

    plan = PlanDocument(tools=[call("moody", input={"times": 1}, retry_policy=PlanRetry(max_retries=0))])
    result = await turn(Says(plan), registry=ToolRegistry([moody]))
    assert result.outcome == "fallback" and any("moody is disabled (" in one for one in result.problems)
    assert len(result.traces) == 1, "it was tried once, and never again"


async def test_attempt_parent_and_trace_reach_the_narrator():
    narrator = Says(PlanDocument(request_id="p1", tools=[call("nope")]), speak("Then this."))
    result = await turn(narrator)
    second = narrator.requests[1]
    assert (second.attempt, second.parent_plan.request_id) == (2, "p1")
    assert second.last_trace.failed_tools == ["nope1"]
    assert result.plans[1].metadata.parent_plan_id == "p1" and result.plans[1].disabled_skills == ["nope"]
    assert result.outcome == "completed" and result.narrative == "Then this."


async def test_a_missing_tool_is_a_permanent_failure_and_stays_disabled_in_later_turns():
    session = Session()
    narrator = Says(PlanDocument(tools=[call("nope")]), speak())
    await turn(narrator, session=session)
    assert session.health["nope"].health == "permanentFailure"
    await turn(narrator, session=session)
    assert narrator.requests[-1].disabled_skills == {"nope"}


@pytest.mark.parametrize("code", ["TOOL_NOT_FOUND", "NOT_EXECUTABLE"])
async def test_a_code_that_a_tool_chose_itself_never_disables_it_for_the_session(code):
    @tool(description="Fails in words of its own.", name="moody")
    async def moody(params: Strike, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.error("not today", code=code)

    session = Session()
    narrator = Says(PlanDocument(tools=[call("moody", input={"times": 1})]), speak())
    await turn(narrator, session=session, registry=ToolRegistry([moody]))
    assert session.health["moody"].health == "temporaryFailure"


async def test_wrong_arguments_are_the_plans_fault_and_cost_the_tool_nothing():
    wrong = PlanDocument(tools=[call("strike", input={"times": "twice"})])
    right = PlanDocument(tools=[call("strike", input={"times": 2})])
    narrator = Says(wrong, right)
    session, registry = Session(), ToolRegistry([strike])
    result = await turn(narrator, session=session, registry=registry)
    assert result.outcome == "completed" and not result.problems
    assert [one.success for one in result.traces] == [False, True]
    second = narrator.requests[1]
    assert second.disabled_skills == frozenset() and [one.name for one in second.tools] == ["strike"]
    assert 'times: expected int, got "twice"' in second.last_trace.tool_results[0].error
    assert session.health["strike"].health == "healthy"


async def test_a_reference_that_leads_nowhere_costs_the_tool_nothing():
    def plan(path):
        first = call("strike", input={"times": 1})
        given = {"times": {"$from": "strike1", "path": path, "default": 1} if path else {"$from": "strike1"}}
        return PlanDocument(tools=[first, PlannedCall(tool_id="b", tool_path="strike", input=given)])

    result = await turn(Says(plan(""), plan("x")), registry=ToolRegistry([strike]))
    assert result.outcome == "completed" and [one.success for one in result.traces] == [False, True]


async def test_a_plan_that_failed_for_its_arguments_is_not_executed_again():
    ran = []

    @tool(description="Counts.", name="count")
    async def count(params: Strike, *, context: ToolContext) -> ToolResult[None]:
        ran.append(params.times)
        return ToolResult.ok(None)

    def wrong(ids, words):
        one, two = ids
        return PlanDocument(
            narrative=words,
            tools=[
                PlannedCall(tool_id=one, tool_path="count", input={"times": 1}),
                PlannedCall(tool_id=two, tool_path="strike", input={"times": {"$from": one}}),
            ],
        )

    session, registry = Session(), ToolRegistry([strike, count])
    right = PlanDocument(tools=[call("strike", input={"times": 2})])
    narrator = Says(wrong("ab", "First."), wrong("cd", "Once more."), right)
    result = await turn(narrator, session=session, registry=registry)
    assert ran == [1] and result.outcome == "completed" and len(result.traces) == 2
    (problem,) = result.problems
    assert problem.startswith(
        "$.tools: the same calls failed before in this turn (strike: times: expected int"
    )
    third = narrator.requests[2]
    assert third.disabled_skills == {"strike"}, "a narrator that insists is told to choose otherwise"
    assert [one.name for one in third.tools] == ["count"] and third.problems == (problem,)
    narrator = Says(wrong("ab", "First."))
    result = await turn(narrator, session=session, registry=registry)
    assert ran == [1, 1] and result.outcome == "fallback" and len(narrator.requests) == 5


async def test_a_resumed_turn_knows_the_plan_that_failed_for_its_arguments():
    session = Session()
    heard = Recorder(session)
    wrong = PlanDocument(request_id="p1", tools=[call("strike", input={"times": "twice"})])
    registry = ToolRegistry([strike])
    await turn(Says(wrong, speak()), session=session, registry=registry)
    last = next(index for index, event in enumerate(heard.events) if isinstance(event, PlanFinished))
    found = from_records([Record(n, 0.0, 1, event) for n, event in enumerate(heard.events[: last + 1])])
    result = await take_turn(
        Session(), "look", narrator=Says(wrong, speak()), registry=registry, resume=found
    )
    assert len(result.traces) == 1 and "failed before in this turn" in result.problems[0]


async def test_a_resumed_call_goes_on_with_the_attempt_that_was_interrupted():
    ran = []

    @tool(description="Strikes.", name="flaky")
    async def flaky(params: None, *, context: ToolContext) -> ToolResult[None]:
        ran.append(1)
        context.log(f"run {len(ran)}")
        return ToolResult.error("wet")

    session, registry = Session(), ToolRegistry([flaky])
    heard = Recorder(session)
    plan = PlanDocument(
        request_id="p1", tools=[call("flaky", retry_policy=PlanRetry(max_retries=3, backoff_ms=1))]
    )
    await turn(Says(plan, speak()), session=session, registry=registry)
    third = [index for index, event in enumerate(heard.events) if isinstance(event, CallStarted)][2]
    cancelled = CallFinished(
        call="p1:flaky1", tool="flaky", ok=False, state="failed", attempts=3, error_code=CANCELLED
    )
    for ending in ([], [cancelled]):  # killed, or asked to end
        events = [*heard.events[: third + 2], *ending]
        found = from_records([Record(n, 0.0, 1, event) for n, event in enumerate(events)])
        again = Session()
        resumed = Recorder(again)
        result = await take_turn(again, "look", narrator=Says(speak()), registry=registry, resume=found)
        (entry,) = result.traces[0].tool_results
        logs = [one.message for one in entry.events if isinstance(one, Log)]
        assert (len(ran), entry.retry_count, entry.state) == (6, 3, "failed")
        assert logs == [f"run {n}" for n in (1, 2, 3, 5, 6)], "the third was interrupted, and run again"
        assert [one.attempt for one in resumed.of(CallStarted)] == [3, 4]
        assert [one.attempts for one in resumed.of(CallFinished)] == [4]
        del ran[4:]


# --- plans that do not stand -------------------------------------------------------------------------------


async def test_a_rejected_plan_is_the_next_ones_parent_and_the_narrator_is_told_why():
    cyclic = PlanDocument(
        request_id="p1", tools=[call("a", dependencies=["b1"]), call("b", dependencies=["a1"])]
    )
    unread = '{"requestId": "p2", "tools": 5}'

    async def from_text():
        return PlanDocument.from_json(unread)

    narrator = Says(cyclic, from_text, PlanRejected(["$: not a plan at all"]), speak())
    session = Session()
    heard = Recorder(session)
    result = await turn(narrator, session=session)
    assert [one.problems for one in narrator.requests] == [
        (),
        ("$.tools: circular dependency: a1 → b1 → a1",),
        ("$.tools: expected array, got integer",),
        ("$: not a plan at all",),
    ]
    assert [one.plan for one in heard.of(PlanRefused)] == ["p1", "p2", None]
    (made,) = result.plans
    assert made.metadata.parent_plan_id == "p2", "the last that had an id"
    assert [one.parent_plan_id for one in narrator.requests] == [None, "p1", "p2", "p2"]
    assert narrator.requests[1].parent_plan == cyclic, "its shape can be read"
    assert [one.parent_plan for one in narrator.requests[2:]] == [None, None]
    assert [one.answer("").metadata.parent_plan_id for one in narrator.requests] == [None, "p1", "p2", "p2"]


async def test_a_plan_read_from_text_that_has_a_cycle_is_the_next_ones_parent():
    text = '{"requestId": "p1", "tools": [{"toolId": "a", "toolPath": "x", "dependencies": ["a"]}]}'

    async def from_text():
        return PlanDocument.from_json(text)

    narrator = Says(from_text, speak())
    assert (await turn(narrator)).outcome == "completed"
    assert narrator.requests[1].parent_plan.tools[0].dependencies == ["a"]


async def test_a_plan_that_chooses_a_disabled_skill_is_the_next_ones_parent():
    session = Session()
    session.health["strike"] = SkillHealth(skill="strike", health="permanentFailure")
    chosen = PlanDocument(request_id="p1", tools=[call("strike", input={"times": 1})])
    narrator = Says(chosen, speak())
    result = await turn(narrator, session=session, registry=ToolRegistry([strike]))
    assert (
        narrator.requests[1].parent_plan.request_id == "p1" and "disabled" in narrator.requests[1].problems[0]
    )
    assert result.plans[0].metadata.parent_plan_id == "p1"


async def test_a_turn_that_a_crash_left_open_knows_which_plan_it_replaces():
    session = Session()
    heard = Recorder(session)
    narrator = Says(
        PlanDocument(request_id="p1", tools=[call("nope")]), PlanDocument(request_id="p2", tools=5), speak()
    )
    await turn(narrator, session=session)
    for kind, parent in ((PlanRefused, "p2"), (PlanFinished, "p1")):
        last = next(index for index, event in enumerate(heard.events) if isinstance(event, kind))
        records = [Record(n, 0.0, 1, event) for n, event in enumerate(heard.events[: last + 1])]
        found = from_records(records)
        assert (found.plan, found.parent) == (None, parent)
    again = Session()
    result = await take_turn(again, "look", narrator=Says(speak()), registry=ToolRegistry(), resume=found)
    assert result.plans[0].metadata.parent_plan_id == "p1"


async def test_an_id_that_a_plan_of_the_turn_has_already_is_made_unique():
    ran = []

    @tool(description="Counts.", name="count")
    async def count(params: Strike, *, context: ToolContext) -> ToolResult[None]:
        ran.append(context.call_id)
        return ToolResult.ok(None)

    def plan(*calls):
        return PlanDocument(request_id="1", tools=list(calls))

    session, good = Session(), call("count", input={"times": 1})
    heard = Recorder(session)
    narrator = Says(plan(good, call("no")), plan(call("a", dependencies=["x"])), plan(good))
    result = await turn(narrator, session=session, registry=ToolRegistry([count]))
    assert ran == ["1:count1", "1~3:count1"], "a call's id is its idempotency key"
    assert [one.plan for one in heard.of(PlanRefused)] == ["1~2"]
    assert [(one.request_id, one.metadata.parent_plan_id) for one in result.plans] == [
        ("1", None),
        ("1~3", "1~2"),
    ]
    assert [one.plan for one in heard.of(PlanFinished)] == ["1", "1~3"]


async def test_a_resumed_turn_does_not_take_another_plans_call_for_its_own():
    # A journal in which two plans of a turn have one id, as older versions wrote it.
    first = PlanDocument(request_id="1", tools=[call("strike", input={"times": 1}), call("no")])
    second = PlanDocument(request_id="1", tools=[call("h"), call("strike", input={"times": 2})])
    done = CallFinished(
        call="1:strike1", tool="strike", tool_id="strike1", ok=True, state="completed", attempts=1
    )
    events = [
        TurnStarted(turn=1, prompt="look"),
        PlanRefused(attempt=1, problems=["no"], plan="0"),
        PlanMade(plan=first.to_data(), attempt=2),
        CallStarted(call="1:strike1", tool="strike"),
        Committed(call="1:strike1", changes=[]),
        done,
        PlanFinished(plan="1", success=False, failed=["no1"]),
        PlanMade(plan=second.to_data(), attempt=3),
    ]
    found = from_records([Record(n, 0.0, 1, event) for n, event in enumerate(events)])
    assert found.plan == second and found.completed == {} and found.ids == {"0", "1"}
    last = PlanDocument(request_id="0", narrative="At last.")
    narrator = Says(last)
    result = await take_turn(
        Session(), "look", narrator=narrator, registry=ToolRegistry([strike]), resume=found
    )
    assert [one.tool_id for one in result.traces[0].tool_results if one.ok] == ["strike1"]
    assert [one.request_id for one in result.plans] == ["1", "0~4"]


async def test_can_replan_follows_the_bound_of_the_turn():
    failing = PlanDocument(tools=[call("nope")])
    result = await turn(Says(failing), settings=TurnSettings(generations=1, generation_timeout=1))
    assert [one.can_replan for one in result.traces] == [False]
    other = PlanDocument(tools=[call("other")])
    result = await turn(Says(failing, other), settings=TurnSettings(generations=2, generation_timeout=1))
    assert [one.can_replan for one in result.traces] == [True, False]
    many = [PlanDocument(tools=[call(f"nope{n}")]) for n in range(7)]
    result = await turn(Says(*many), settings=TurnSettings(generations=7, generation_timeout=1))
    assert [one.can_replan for one in result.traces] == [True] * 6 + [False]


@pytest.mark.parametrize("error", [PromptEvaluationError("no more"), VisibilityExpansionRequired("see all")])
async def test_what_ends_an_evaluation_costs_a_turn_one_attempt(error):
    @tool(description="Ends it all.", name="ends")
    async def ends(params: Strike, *, context: ToolContext) -> ToolResult[None]:
        raise error

    narrator = Says(PlanDocument(tools=[call("ends", input={"times": 1})]), speak("It goes on."))
    session = Session()
    result = await turn(narrator, session=session, registry=ToolRegistry([ends]))
    assert result.outcome == "completed" and result.narrative == "It goes on."
    assert any(str(error) in problem for problem in result.problems) and not result.traces[0].success
    assert session.turn is None


def _deep(levels):
    value = 1
    for _ in range(levels):
        value = {"x": value}
    return value


KNOT = []
KNOT.append(KNOT)
WIDE = [1]
for _ in range(60):
    WIDE = [WIDE, WIDE]


@pytest.mark.parametrize(
    "plan",
    [
        PlanDocument(tools=[call("strike", input={"times": 1}), call("a", input=_deep(493))]),
        PlanDocument(tools=[call("a", input=_deep(100_000))]),
        PlanDocument(tools=[call("a", input={"x": KNOT})]),
        PlanDocument(tools=[call("a", input={"x": WIDE})]),
        PlanDocument(tools=[call("a", input={"x": {1, 2}})]),
        PlanDocument(tools=[call("a", input={5: 1})]),
        PlanDocument(tools=[call("a", input={"x": "\ud800"})]),
        PlanDocument(tools=[call("a", input={"\ud800": 1})]),
        PlanDocument(tools=[call("a", input={"x": 10**400})]),
        PlanDocument(tools=[call("a", input=[1])]),
        PlanDocument(tools=[call("a", dependencies="a1")]),
        PlanDocument(tools=[call("a", dependencies=[None])]),
        PlanDocument(tools=[call("a", retry_policy=None)]),
        PlanDocument(tools=[call("a", retry_policy=PlanRetry(max_retries=10**9))]),
        PlanDocument(tools=[PlannedCall(tool_id=5, tool_path="x")]),
        PlanDocument(tools=[PlannedCall(tool_id="a", tool_path=None)]),
        PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="\0")]),
        PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="x" * 100_000)]),
        PlanDocument(tools=[PlannedCall(tool_id="a" * 100_000, tool_path="/dev/null")]),
        PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="~nobody/x/../..")]),
        PlanDocument(tools=[None]),
        PlanDocument(tools=5),
        PlanDocument(tools=[call(str(n)) for n in range(100_000)]),
        PlanDocument(request_id=None),
        PlanDocument(request_id="\ud800"),
        PlanDocument(request_id=5, tools=[call("a", dependencies=["a1"])]),
        PlanDocument(request_id="\ud800", tools=[call("a", dependencies=["a1"])]),
        PlanRejected(["no"], plan_id=5),
        PlanDocument(request_id=""),
        PlanDocument(narrative=5),
        PlanDocument(disabled_skills=[5]),
        PlanDocument(disabled_skills=None),
        PlanDocument(parallel=[]),
        PlanDocument(narrative="x", metadata=None),
        PlanDocument(tools=[call("a", input={"\ud800": {1}})]),
    ],
    ids=lambda plan: "plan",
)
async def test_nothing_a_narrator_writes_makes_a_turn_raise(plan, tmp_path):
    session = Session("s")
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(session)
    settings = TurnSettings(generations=2, generation_timeout=20)
    result = await turn(Says(plan), session=session, settings=settings, registry=ToolRegistry([strike]))
    assert result.narrative and result.unsaved is None and session.turn is None
    await journal.close()
    store.close()


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (
            PlanDocument(tools=[PlannedCall(tool_id=5, tool_path="x")]),
            "$.tools[0].toolId: expected string, got integer",
        ),
        (PlanDocument(tools=None), "$.tools: expected array, got null"),
        (PlanDocument(tools=[None]), "$.tools[0]: expected object, got null"),
    ],
)
async def test_a_narrator_is_told_what_is_wrong_with_a_plan_made_in_python(plan, reason):
    narrator = Says(plan, speak())
    await turn(narrator)
    assert [*narrator.requests[1].problems] == [reason]


async def test_words_that_json_cannot_carry_are_readable_on_the_way_too():
    async def speaks(request):
        request.say("\ud800")
        request.say(5)
        request.note("\udfff")
        return speak("\ud800")

    class Odd:
        name = "odd"
        plan = staticmethod(speaks)

        def declare(self, speaker=""):
            return Declaration(choices=("\ud800", 5, "Go on"))

    session = Session()
    heard = Recorder(session)
    result = await turn(Odd(), session=session)
    assert result.narrative == "?" and result.choices == ["?", "Go on"]
    assert json.dumps([event.text for event in heard.of(NarrationDelta)])
    for event in heard.events:
        encode(event)


# --- prompts ----------------------------------------------------------------------------------------------


async def test_a_prompt_of_a_megabyte_is_cut_and_said_so():
    narrator = Says(speak())
    result = await turn(narrator, "x" * 1_000_000)
    assert len(narrator.requests[0].prompt) == 20_000 and result.outcome == "completed"


@pytest.mark.parametrize("prompt", ["", "   ", "\x00\x07", "🙂" * 100])
async def test_any_prompt_gets_an_answer(prompt):
    chain = ChainNarrator([], last_resort=TemplateNarrator())
    assert (await turn(chain, prompt)).narrative


async def test_two_prompts_at_once_are_taken_one_after_the_other():
    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return speak("first")

    session = Session()
    recorder = Recorder(session)
    settings = TurnSettings(generation_timeout=5)
    first = asyncio.create_task(turn(Says(slow), "one", session, settings))
    await asyncio.sleep(0)
    second = asyncio.create_task(turn(Says(speak("second")), "two", session, settings))
    await asyncio.sleep(0)
    gate.set()
    assert [(await first).turn, (await second).turn] == [1, 2]
    order = [
        type(event).__name__ for event in recorder.events if isinstance(event, TurnStarted | TurnCommitted)
    ]
    assert order == ["TurnStarted", "TurnCommitted"] * 2


async def test_more_prompts_than_may_wait_are_refused_clearly():
    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return speak()

    session = Session()
    settings = TurnSettings(generation_timeout=5)
    waiting = [asyncio.create_task(turn(Says(slow), "x", session, settings)) for _ in range(5)]
    await asyncio.sleep(0.01)
    with pytest.raises(SessionBusy, match="waiting already"):
        await turn(Says(speak()), "too many", session, settings)
    gate.set()
    assert [one.turn for one in await asyncio.gather(*waiting)] == [1, 2, 3, 4, 5]


# --- endings, choices, history ----------------------------------------------------------------------------


async def test_an_authors_own_words_are_flagged_in_the_trace_and_not_before_the_player():
    session = Session(state={"inventory": {}})
    recorder = Recorder(session)
    result = await turn(FactChecked(Says(speak("You carry the torch."))), session=session)
    [notice] = recorder.of(Notice)
    assert (notice.level, notice.code) == ("info", CONTRADICTION)
    assert result.problems


async def test_what_a_tool_tells_is_traced_to_its_patch_and_flagged_where_it_is_not_so(tmp_path):
    shutil.copytree(ROOT / "stories" / "torch", tmp_path / "torch")
    events = [
        {"version": "0", "type": "state_patch", "patch": {"chest": {"open": True}}},
        {"version": "0", "type": "done", "ok": True, "summary": "The oak chest is open. The lamp is lit."},
    ]
    lighter = tmp_path / "torch" / "tools" / "torch-lighter"
    lighter.write_text(
        f"#!{sys.executable}\nimport json\nfor one in {events!r}:\n    print(json.dumps(one))\n"
    )
    rules = tmp_path / "torch" / "narrator.toml"
    rules.write_text(re.sub(r', told = "[^"]*"', "", rules.read_text()))  # in the tool's own words
    game = Game.new(Story.load(tmp_path / "torch"), narrators=["rules"], generation_timeout=20)
    game.session.patch({"chest": {"name": "oak chest", "open": False}, "lamp": {"lit": False}})
    recorder = Recorder(game.session)
    result = await game.prompt("light the torch")
    held, denied = result.receipts
    assert (held.verdict, held.path, held.source.turn) == ("held", "chest.open", result.turn)
    assert (denied.verdict, denied.path) == ("contradicted", "lamp.lit")
    [notice] = recorder.of(Notice)
    assert (notice.level, notice.code) == ("info", CONTRADICTION)
    assert "a tool's own words" in notice.message
    assert result.narrative.endswith("The oak chest is open. The lamp is lit."), "told once, and as it was"
    assert len(result.plans) == 1


async def test_the_choices_of_a_call_that_failed_are_offered():
    @tool(description="Offers, and fails.", name="offers")
    async def offers(params: Strike, *, context: ToolContext) -> ToolResult[None]:
        context.ui("narrative_choice", {"choices": ["Try again", "Leave"]})
        context.patch({"open": True})
        return ToolResult.error("jammed")

    narrator = Says(PlanDocument(tools=[call("offers", input={"times": 1})]), speak("It is jammed."))
    session = Session()
    result = await turn(narrator, session=session, registry=ToolRegistry([offers]))
    assert result.choices == session.choices == ["Try again", "Leave"] and session.state == {}


async def test_choices_stand_until_others_are_offered():
    session = Session()
    session.choices = ["Wait"]
    assert (await turn(Says(speak()), session=session)).choices == ["Wait"]


@tool(name="open_gate", description="Open the gate.")
async def open_gate(params: None, *, context: ToolContext) -> ToolResult[None]:
    context.patch({"gate": {"open": True}})
    return ToolResult("It groans.")


@tool(name="knock", description="Knock.")
async def knock(params: None, *, context: ToolContext) -> ToolResult[None]:
    return ToolResult("Nobody answers.")


GATE = ToolRegistry([open_gate, knock])


@pytest.mark.parametrize(
    "prompt", ["open the gate", "Open the gate", "  I open the gate. ", "please open the gate!"]
)
async def test_a_choice_that_was_taken_and_did_its_work_is_offered_no_more(prompt):
    session = Session()
    session.choices = ["Open the gate", "Knock", "Open the chest"]
    narrator = Says(PlanDocument(tools=[call("open_gate")]))
    result = await turn(narrator, prompt, session, ENGLISH, registry=GATE)
    assert result.choices == session.choices == ["Knock", "Open the chest"]


async def test_without_a_language_only_the_words_of_a_choice_take_it():
    session = Session()
    session.choices = ["Open the gate", "Knock"]
    plan = PlanDocument(tools=[call("open_gate")])
    assert (await turn(Says(plan), "I open the gate", session, registry=GATE)).choices == [
        "Open the gate",
        "Knock",
    ]
    assert (await turn(Says(plan), "open the GATE!", session, registry=GATE)).choices == ["Knock"]


@pytest.mark.parametrize(
    ("prompt", "plan"),
    [
        ("open the gate", speak("It is locked.")),  # nothing was done
        ("knock", PlanDocument(tools=[call("knock")])),  # nothing is otherwise than before
        ("open the other gate", PlanDocument(tools=[call("open_gate")])),  # something else was asked for
    ],
)
async def test_a_choice_that_may_still_be_made_stands(prompt, plan):
    session = Session()
    session.choices = ["Open the gate", "Knock"]
    result = await turn(Says(plan), prompt, session, registry=GATE)
    assert result.choices == ["Open the gate", "Knock"]


@pytest.mark.parametrize("plan", [speak("Stone, and a gate."), PlanDocument(tools=[call("open_gate")])])
async def test_what_a_refusal_offers_does_not_outlive_the_next_turn(plan):
    session = Session()
    session.choices = ["Wait"]
    narrator = ChainNarrator(
        [Says(Refusal("No.", ["Knock", "Open it"]), plan)], last_resort=TemplateNarrator()
    )
    assert (await turn(narrator, "fly", session, registry=GATE)).choices == ["Knock", "Open it"]
    assert (await turn(narrator, "go on", session, registry=GATE)).choices == ["Wait"], (
        "what stood before stands again"
    )
    assert session.standing is None


async def test_one_refusal_after_another_keeps_what_stood_before():
    session = Session()
    session.choices = ["Wait"]
    says = Says(Refusal("No.", ["Knock"]), Refusal("No.", ["Sing"]), speak())
    narrator = ChainNarrator([says], last_resort=TemplateNarrator())
    told = [(await turn(narrator, prompt, session)).choices for prompt in ("fly", "swim", "look")]
    assert told == [["Knock"], ["Sing"], ["Wait"]]


async def test_a_turn_that_comes_to_nothing_leaves_a_refusals_offer():
    session = Session()
    await turn(
        ChainNarrator([Says(Refusal("No.", ["Knock"]))], last_resort=TemplateNarrator()), "fly", session
    )
    result = await turn(Says(ValueError("broken")), "look", session)
    assert (result.outcome, result.choices) == ("fallback", ["Knock"])


async def test_history_reaches_the_next_generation():
    session = Session()
    narrator = Says(speak("A door."))
    await turn(narrator, "look", session)
    await turn(narrator, "open it", session)
    (past,) = narrator.requests[1].history
    assert (past.prompt, past.narrative) == ("look", "A door.")


async def test_cancelling_a_turn_closes_it_and_the_next_one_works():
    session = Session()
    recorder = Recorder(session)
    task = asyncio.create_task(turn(Says(hang), "x", session, TurnSettings(generation_timeout=30)))
    while not recorder.of(TurnStarted):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.of(TurnCommitted)[0].outcome == "cancelled"
    assert (await turn(Says(speak()), session=session)).turn == 2


# --- the chain --------------------------------------------------------------------------------------------


async def test_a_chain_falls_through_on_no_match_failure_and_time_out():
    class Named(Says):
        def __init__(self, name, answer):
            super().__init__(answer)
            self.name = name

    chain = ChainNarrator(
        [
            Named("a", NoMatch("no")),
            Named("b", ValueError("bad")),
            Named("c", hang),
            Named("d", speak("d speaks")),
        ],
        time_limit=0.05,
    )
    session = Session()
    recorder = Recorder(session)
    result = await turn(chain, session=session, settings=TurnSettings(generation_timeout=5))
    assert result.narrative == "d speaks" and result.narrator == "d"
    (chosen,) = recorder.of(NarratorChosen)
    assert {**chosen.passed_over, "c": ""} == {"a": "no", "b": "ValueError: bad", "c": ""}
    assert chosen.passed_over["c"].startswith("no plan within 0.0")
    assert recorder.of(PlanMade)[0].narrator == "d"


async def test_an_honest_refusal_is_the_answer_when_nobody_knows_better():
    chain = ChainNarrator(
        [Says(Refusal("You cannot fly here.", ["Walk", "Swim"]))], last_resort=TemplateNarrator()
    )
    result = await turn(chain, "fly")
    assert result.narrative == "You cannot fly here." and result.choices == ["Walk", "Swim"]


async def test_a_refusal_gives_way_to_a_later_narrator():
    chain = ChainNarrator([Says(Refusal("no")), Says(speak("I know how."))])
    assert (await turn(chain)).narrative == "I know how."


async def test_a_turn_that_nobody_told_says_plainly_what_was_done():
    @tool(name="clean_reel", description="Clean a reel.")
    async def clean_reel(params: None, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult("")

    plan = PlanDocument(tools=[call("clean_reel"), PlannedCall(tool_id="again", tool_path="clean_reel")])
    result = await turn(Says(plan), registry=ToolRegistry([clean_reel]), settings=TurnSettings())
    assert result.narrative == "clean reel ×2", "the core speaks no language of its own"
    english = TurnSettings(list_calls=account)
    told = await turn(Says(plan), registry=ToolRegistry([clean_reel]), settings=english)
    assert told.narrative == "Done: clean reel, twice."
    author = Says(plan)
    author.declare = lambda speaker="": Declaration(lists_calls="never")
    assert (await turn(author, registry=ToolRegistry([clean_reel]), settings=TurnSettings())).narrative == ""


def _raises(*arguments):
    raise RuntimeError("it died")


async def _raises_later(*arguments):
    raise RuntimeError("it died")


async def _returns(value):
    return value


@pytest.mark.parametrize(
    ("part", "broken", "told"),
    [
        ("review", _raises, "its review failed: RuntimeError: it died"),
        ("review", _raises_later, "its review failed: RuntimeError: it died"),
        ("review", lambda *arguments: _returns(None), "its review is NoneType, not a Review"),
        (
            "review",
            lambda *arguments: _returns(Review(narrative=3)),
            "its review has a field of a wrong type",
        ),
        (
            "review",
            lambda *arguments: _returns(Review(notices=[3])),
            "its review has a notice that is no Notice",
        ),
        ("declare", _raises, "its declaration failed: RuntimeError: it died"),
        ("declare", lambda speaker="": None, "it declared NoneType, not a Declaration"),
        (
            "declare",
            lambda speaker="": Declaration(choices=None),
            "its declaration has a field of a wrong type",
        ),
    ],
)
async def test_a_review_or_a_declaration_that_fails_is_a_problem_of_the_turn(part, broken, told):
    narrator = Says(speak("So be it."))
    setattr(narrator, part, broken)
    session = Session()
    result = await turn(narrator, session=session)
    assert result.outcome == "completed" and result.narrative == "So be it."
    assert len([one for one in result.problems if told in one]) == 1, result.problems
    assert session.turn is None, "the turn is closed"


@pytest.mark.parametrize(("wait", "told"), [(hang, "no review within"), (swallow, "and it does not stop")])
async def test_a_review_that_never_ends_is_bounded_and_the_narration_stands(wait, told):
    narrator, session, late = Says(speak("So be it.")), Session(), []

    async def review(request, plan, traces, seconds):
        late.append(request)
        await wait()
        raise AssertionError("nobody waits so long")

    narrator.review = review
    settings = TurnSettings(generation_timeout=0.05, generations=2)
    async with asyncio.timeout(3):
        result = await turn(narrator, session=session, settings=settings)
    assert (result.outcome, result.narrative) == ("completed", "So be it.")
    assert told in result.problems[-1]
    recorder = Recorder(session)
    late[0].say("too late")
    assert not recorder.events, "nobody hears it any more"


async def test_a_retelling_that_cannot_be_cancelled_is_dropped_in_time():
    class Lies(Says):
        async def retell(self, request, narrative, objections):
            return await swallow()

    session = Session()
    session.patch({"torch": {"lit": False}})
    settings = TurnSettings(generation_timeout=0.6, generations=2)
    async with asyncio.timeout(4):
        result = await turn(FactChecked(Lies(speak("The torch is lit."))), session=session, settings=settings)
    assert result.outcome == "completed"
    assert any("not told again within 0.6 s, and it does not stop" in one for one in result.problems)
    assert "The torch is lit" not in result.narrative


async def test_the_story_goes_on_without_words_of_the_player(torch_story):
    game = Game.new(Story.load(torch_story), narrators=["rules"])
    game.begin()
    heard = Recorder(game.session)
    result = await game.go_on()
    assert (result.prompt, result.narrator, result.outcome) == ("", "rules", "completed")
    assert TurnStarted(turn=1, prompt="", origin="continue") in heard.events
    assert game.session.past[-1] == ("", result.narrative)
    told = [await game.prompt("wait"), await game.go_on()]
    assert told[1].narrative in {result.narrative, told[0].narrative}, "by the story's rule for waiting"
