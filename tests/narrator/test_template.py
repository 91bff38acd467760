"""The narrator of last resort."""

from __future__ import annotations

import random
import re

import pytest

from narratoria.events import Done
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Narrator, NarratorRequest, PastTurn, Refusal
from narratoria.narrator.template import TemplateNarrator, narrate
from narratoria.run.plan import CallResult, ExecutionResult, PlanDocument

HOSTILE = [
    "",
    "   \n\t ",
    "x" * 1_048_576,
    "light the lamp " * 70_000,
    "\x00\x01\x02\xff" * 100,
    "\ud800 lone surrogate",
    "{words} {0} %s {{",
    "{" * 5000,
    "🔥🔥🔥",
    "灯台に火をともす",
    "'; DROP TABLE turns; --",
    random.Random(1).randbytes(5000).decode("latin-1"),
    "<script>alert(1)</script>",
]


@pytest.mark.parametrize("prompt", HOSTILE, ids=range(len(HOSTILE)))
async def test_any_prompt_gets_a_plan_without_calls_and_some_prose(prompt: str) -> None:
    speaker = TemplateNarrator()
    assert isinstance(speaker, Narrator)
    plan = await speaker.plan(NarratorRequest(prompt))
    assert plan.tools == []
    assert plan.narrative is not None
    assert 20 < len(plan.narrative) < 400
    assert not re.search(r"[\x00-\x1f]|[{}]{2}|\berror\b|\btool\b", plan.narrative)
    plan.narrative.encode()


async def test_a_failed_trace_is_told_as_an_attempt_that_did_not_come_off() -> None:
    parent = PlanDocument(request_id="p")
    failed = CallResult(tool_id="a", ok=False, state="failed")
    done = CallResult(tool_id="b", ok=True, state="completed")
    trace = ExecutionResult(plan_id="p", success=False, tool_results=[failed], failed_tools=["a"])
    request = NarratorRequest(
        "light the lamp",
        attempt=5,
        parent_plan=parent,
        last_trace=trace,
        disabled_skills=frozenset({"z", "a"}),
    )
    plan = await TemplateNarrator(new_id=lambda: "q").plan(request)
    assert plan.request_id == "q"
    assert plan.metadata.generation_attempt == 5
    assert plan.metadata.parent_plan_id == "p"
    assert plan.disabled_skills == ["a", "z"]
    partly = ExecutionResult(plan_id="p", success=False, tool_results=[failed, done])
    assert narrate(request) != narrate(NarratorRequest("light the lamp", last_trace=partly))
    assert narrate(request) != narrate(NarratorRequest("light the lamp"))


def test_it_does_not_say_the_same_thing_twice_running() -> None:
    history: list[PastTurn] = []
    for _ in range(12):
        text = narrate(NarratorRequest("sing", history=history))
        assert text not in [turn.narrative for turn in history[-2:]]
        history.append(PastTurn("sing", text))
    assert len({turn.narrative for turn in history}) >= 5


def test_it_is_the_same_in_a_replay() -> None:
    request = NarratorRequest("sing", history=[PastTurn("a", "b")])
    assert narrate(request) == narrate(request)


def test_it_says_where_the_player_is_when_the_story_says_so() -> None:
    text = narrate(NarratorRequest("sing", {"place": {"id": "cellar", "title": "in the oil cellar"}}))
    assert text.endswith("You are still in the oil cellar.")
    assert "still" not in narrate(NarratorRequest("sing", {"place": 3}))[-40:]


async def test_after_a_deed_that_failed_a_refusal_gives_way_to_the_failure_and_its_reason() -> None:
    class Denies:
        name = "denies"

        async def plan(self, request: NarratorRequest) -> PlanDocument:
            raise Refusal("I don't know how to do that here.")

    broken = CallResult(
        tool_id="wash1",
        ok=False,
        state="failed",
        events=[Done(version="0", ok=False, summary="the tap is broken")],
    )
    trace = ExecutionResult(plan_id="p", success=False, tool_results=[broken])
    chain = ChainNarrator([Denies()], last_resort=TemplateNarrator())
    assert (
        await chain.plan(NarratorRequest("wash the pan"))
    ).narrative == "I don't know how to do that here."
    told = (await chain.plan(NarratorRequest("wash the pan", attempt=2, last_trace=trace))).narrative or ""
    assert "know how" not in told and told.endswith("The tap is broken.")
