"""A model in a chain mends its answers in the turn's generations, before the next narrator is asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, tool
from narratoria.agent.adapters.openai_compatible import OpenAIAdapter
from narratoria.errors import PlanRejected
from narratoria.events import Narration, NarrationDelta, NarratorChosen, PlanRefused
from narratoria.factcheck.fact_checked import FactChecked
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.lazy_narrator import LazyNarrator
from narratoria.narrator.llm.llm_narrator import LLMNarrator
from narratoria.narrator.protocol import Narrator, NarratorRequest, NoMatch, PastTurn, Refusal
from narratoria.narrator.template import TemplateNarrator
from narratoria.play.turn import TurnResult, TurnSettings, take_turn
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.session import Record
from narratoria.testing import Behaviour, Fails, Hangs, Says, ScriptedModel, Writes


@tool(name="open_gate", description="Open the gate.")
async def open_gate(params: None, *, context: ToolContext) -> ToolResult[None]:
    context.patch({"gate": {"open": True}})
    return ToolResult("It groans.")


@tool(name="jammed", description="Try the jammed hatch.")
async def jammed(params: None, *, context: ToolContext) -> ToolResult[None]:
    return ToolResult.error("It does not move.")


def says(narrative: str = "The gate is open.", *tools: str) -> Says:
    calls = [{"tool": name, "input": {}} for name in tools]
    return Says(json.dumps({"narrative": narrative, "calls": calls, "order": "together"}))


GOOD = says("The gate is open.", "open_gate")


class Passes:
    """A narrator that counts how often it is asked."""

    def __init__(self, name: str, answer: PlanDocument | Exception) -> None:
        self.name = name
        self.answer = answer
        self.asked = 0

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Heard:
    """A client that keeps the narration it would show, as pieces arrive."""

    full = False

    def __init__(self, session: Session) -> None:
        self.events: list[Any] = []
        self.shown = ""
        self.shown_then: list[str] = []
        session.attach(self)

    def push(self, record: Record) -> None:
        event = record.event
        self.events.append(event)
        if isinstance(event, NarrationDelta):
            self.shown = event.text if event.anew else self.shown + event.text
            self.shown_then.append(self.shown)

    async def wait(self) -> None:
        return None

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def play(
    script: Sequence[Behaviour],
    *,
    before: Sequence[Narrator] = (),
    behind: Sequence[Narrator] = (),
    seconds: float = 20,
    generations: int = 5,
) -> tuple[TurnResult, ScriptedModel, Heard]:
    session = Session(state={"gate": {"open": False}, "inventory": {}})
    heard = Heard(session)
    async with ScriptedModel(*script) as server:
        llm = LLMNarrator(OpenAIAdapter(base_url=server.url, model="m"), time_limit=seconds)
        result = await take_turn(
            session,
            "open the gate",
            narrator=FactChecked(
                ChainNarrator([*before, llm, *behind], last_resort=TemplateNarrator(), time_limit=seconds)
            ),
            registry=ToolRegistry([open_gate, jammed]),
            settings=TurnSettings(generation_timeout=seconds, generations=generations),
        )
    return result, server, heard


@pytest.mark.parametrize(
    "bad",
    [
        Says('{"narrative": "The ga'),
        Fails(500),
        Fails(400, "response_format is not supported"),
        Fails(400, "This model's maximum context length is 1024 tokens"),
        says("The gate is open."),
        says("You fly.", "fly"),
        Writes(b"data: {half an event\n\n"),
    ],
    ids=["half a JSON", "500", "no schemas", "small context", "a lie", "unknown tool", "half an event"],
)
async def test_what_can_be_mended_is_asked_again_in_the_next_generation(bad: Behaviour) -> None:
    result, server, heard = await play([bad, GOOD])
    assert (result.narrator, result.narrative) == ("llm", "The gate is open.")
    assert len(server.requests) == 2
    assert result.plans[0].metadata.generation_attempt == 2
    [refused] = heard.of(PlanRefused)
    assert (refused.attempt, refused.narrator) == (1, "llm")
    assert result.problems == refused.problems != []


async def test_the_model_is_told_what_was_wrong_with_its_answer() -> None:
    _, server, _ = await play([says("You fly.", "fly"), GOOD])
    assert "'fly' is not among the tools" in server.requests[1]["messages"][-1]["content"]


async def test_a_server_without_schemas_is_asked_for_ever_less_and_answers_in_the_end() -> None:
    refusal = Fails(400, "response_format is not supported")
    result, server, _ = await play([refusal, refusal, refusal, GOOD])
    assert result.narrator == "llm"
    assert ["response_format" in one for one in server.requests] == [True, True, True, False]


async def test_a_prompt_too_long_for_the_model_shrinks_to_the_least_before_anybody_else_is_asked() -> None:
    overflow = Fails(400, "This model's maximum context length is 8 tokens")
    past = [PastTurn("Where am I? " * 40, "On the sea. " * 40) for _ in range(6)]
    request = NarratorRequest("look", history=past, state={f"thing{n}": "x" * 90 for n in range(200)})
    async with ScriptedModel(*[overflow] * 9) as server:
        llm = LLMNarrator(OpenAIAdapter(base_url=server.url, model="m"), time_limit=20)
        chain = ChainNarrator([llm], last_resort=TemplateNarrator(), time_limit=20)
        for attempt in range(1, 10):
            try:
                await chain.plan(replace(request, attempt=attempt, generations=9))
                break
            except PlanRejected:
                pass
        lengths = [len(json.dumps(one["messages"])) for one in server.requests]
    assert chain.last_speaker == "template"
    assert all(after <= 0.8 * before for before, after in pairwise(lengths))
    assert lengths[-1] < lengths[0] / 4


@pytest.mark.parametrize(
    "bad",
    [Hangs(), Hangs('{"narrative": "The ga'), Fails(401, "who are you?"), Fails(404, "no such model")],
    ids=["hangs", "hangs midway", "401", "404"],
)
async def test_what_asking_again_cannot_mend_costs_one_attempt(bad: Behaviour) -> None:
    local = Passes("local", PlanDocument(narrative="Local speaks."))
    started = time.monotonic()
    result, server, heard = await play([bad] * 5, behind=[local], seconds=1.0)
    assert (result.narrator, result.narrative, local.asked) == ("local", "Local speaks.", 1)
    assert len(server.requests) == 1
    assert time.monotonic() - started < 2.5
    [chosen] = heard.of(NarratorChosen)
    assert (chosen.attempt, list(chosen.passed_over)) == (1, ["llm"])
    assert result.problems == [f"llm: {chosen.passed_over['llm']}"]


async def test_a_dead_server_is_asked_once_a_turn_even_when_the_next_narrators_plan_must_be_made_again() -> (
    None
):
    stuck = PlanDocument(narrative="You try.", tools=[PlannedCall(tool_id="j", tool_path="jammed")])
    local = Passes("local", stuck)
    result, server, _ = await play([Hangs()] * 5, behind=[local], seconds=1.0)
    assert len(server.requests) == 1
    assert local.asked > 1
    assert result.outcome == "fallback"


async def test_a_server_that_answers_500_is_asked_twice_then_the_next_narrator_speaks() -> None:
    local = Passes("local", PlanDocument(narrative="Local speaks."))
    result, server, heard = await play([Fails(500, "boom")] * 5, behind=[local])
    assert (result.narrator, len(server.requests)) == ("local", 2)
    assert len(heard.of(PlanRefused)) == 1
    assert "500" in heard.of(NarratorChosen)[0].passed_over["llm"]


async def test_after_the_last_generation_the_next_narrator_speaks_and_an_earlier_refusal_is_kept() -> None:
    rules = Passes("rules", NoMatch("no rule"))
    local = Passes("local", Refusal("Nothing here opens.", ["Knock"]))
    result, server, heard = await play([Says("no JSON")] * 9, before=[rules, local])
    assert len(server.requests) == 5
    assert (result.narrator, result.narrative, result.choices) == ("local", "Nothing here opens.", ["Knock"])
    assert (rules.asked, local.asked) == (1, 1)  # nothing has changed for them since
    assert [one.attempt for one in heard.of(PlanRefused)] == [1, 2, 3, 4]
    assert list(heard.of(NarratorChosen)[0].passed_over) == ["rules", "local", "llm"]


async def test_a_turn_with_two_generations_asks_the_model_twice() -> None:
    result, server, _ = await play([Says("no JSON")] * 9, generations=2)
    assert (result.narrator, len(server.requests)) == ("template", 2)


async def test_asked_only_once_a_chain_falls_through_at_once() -> None:
    async with ScriptedModel(Says("no JSON")) as server:
        llm = LLMNarrator(OpenAIAdapter(base_url=server.url, model="m"), time_limit=20)
        chain = ChainNarrator([llm], last_resort=TemplateNarrator(), time_limit=20)
        await chain.plan(NarratorRequest("look"))
    assert chain.last_speaker == "template"


async def test_the_next_turn_begins_with_the_model_again() -> None:
    async with ScriptedModel(Fails(401), GOOD) as server:
        llm = LLMNarrator(OpenAIAdapter(base_url=server.url, model="m"), time_limit=20)
        chain = ChainNarrator([llm], last_resort=TemplateNarrator(), time_limit=20)
        session = Session(state={"gate": {"open": False}})
        told = [
            await take_turn(session, "open the gate", narrator=chain, registry=ToolRegistry([open_gate]))
            for _ in range(2)
        ]
    assert [one.narrator for one in told] == ["template", "llm"]


# --- what the client shows meanwhile -----------------------------------------------------------------------


async def test_what_was_half_told_is_taken_back_when_the_chain_goes_on() -> None:
    local = Passes("local", PlanDocument(narrative="Local speaks."))
    _, _, heard = await play([Hangs('{"narrative": "The gate swi')], behind=[local], seconds=1.0)
    assert heard.shown_then == ["The gate swi", "", "Local speaks."]


async def test_what_was_told_in_a_refused_answer_is_taken_back_before_the_next() -> None:
    _, _, heard = await play([says("You fly.", "fly"), GOOD])
    assert "" in heard.shown_then
    assert heard.shown == "The gate is open."
    assert not any("fly.The" in shown for shown in heard.shown_then)


async def test_the_final_narration_stands_where_its_pieces_were() -> None:
    _, _, heard = await play([says("You fly.", "fly"), GOOD])
    [final] = heard.of(Narration)
    assert final.attempt == heard.of(NarrationDelta)[-1].attempt == 2


# --- a narrator that is still being made -------------------------------------------------------------------


async def test_a_narrator_still_being_made_is_waited_for_a_generation_or_two() -> None:
    made = threading.Event()

    def make() -> Narrator:
        made.wait(30)
        return Passes("slow", PlanDocument(narrative="At last."))

    class Opens(Heard):
        def push(self, record: Record) -> None:
            super().push(record)
            if isinstance(record.event, PlanRefused):
                made.set()

    session = Session()
    heard = Opens(session)
    chain = ChainNarrator([LazyNarrator("slow", make)], last_resort=TemplateNarrator(), time_limit=1.0)
    result = await take_turn(
        session, "x", narrator=chain, registry=ToolRegistry(), settings=TurnSettings(generation_timeout=1.5)
    )
    assert (result.narrator, result.narrative) == ("slow", "At last.")
    assert len(heard.of(PlanRefused)) == 1


async def test_a_narrator_that_is_never_made_costs_two_generations_once() -> None:
    made = threading.Event()

    def make() -> Narrator:
        made.wait(30)
        return Passes("slow", PlanDocument(narrative="At last."))

    session = Session()
    heard = Heard(session)
    chain = ChainNarrator([LazyNarrator("slow", make)], last_resort=TemplateNarrator(), time_limit=0.2)
    for _ in range(2):
        result = await take_turn(
            session, "x", narrator=chain, registry=ToolRegistry(), settings=TurnSettings(generation_timeout=1)
        )
        assert result.narrator == "template"
    made.set()
    assert len(heard.of(PlanRefused)) == 2


@pytest.mark.parametrize("generations", [1, 5])
async def test_a_model_that_keeps_denying_the_state_leaves_the_word_to_the_next_narrator(
    generations: int,
) -> None:
    lie = says("The gate is open. You carry the golden crown.")
    deed = PlannedCall(tool_id="open-1", tool_path="open_gate")
    rules = Passes("rules", PlanDocument(narrative="You lean on it.", tools=[deed]))
    result, server, heard = await play([lie] * generations, behind=[rules], generations=generations)
    assert len(server.requests) == generations
    assert (result.narrator, rules.asked) == ("rules", 1)
    assert "crown" not in result.narrative + heard.shown
    [chosen] = heard.of(NarratorChosen)
    assert "golden crown" in chosen.passed_over["llm"]


async def test_alone_a_model_that_keeps_denying_the_state_leaves_the_word_to_the_template() -> None:
    result, _, heard = await play([says("The gate is open.")] * 5)
    assert result.narrator == "template"
    assert "gate is open" not in result.narrative + heard.shown
