"""The agent loop: a scripted model server, the real adapter, the real pipeline."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import pytest

from narratoria import ApprovalAnswer, ApprovalRequest, Session, ToolContext, ToolResult, tool
from narratoria.agent.adapters import Evaluation, evaluate
from narratoria.agent.adapters.function_names import function_name
from narratoria.agent.adapters.openai_compatible import OpenAIAdapter
from narratoria.agent.prompt import MarkdownSection, Prompt, SectionVisibility
from narratoria.errors import PromptEvaluationError, PromptValidationError
from narratoria.testing import (
    Babbles,
    Behaviour,
    Drips,
    Fails,
    Floods,
    Hangs,
    Resets,
    Says,
    ScriptedModel,
    Writes,
)
from narratoria.tools.deadline import Budget, BudgetTracker, Deadline
from narratoria.tools.tool import Tool, ToolKind


@dataclass
class Item:
    item: str


@dataclass
class Room:
    name: str
    exits: list[str]


@tool(description="Light something.")
async def light(params: Item, *, context: ToolContext) -> ToolResult[None]:
    context.patch({"lit": {params.item: True}})
    return ToolResult(f"the {params.item} burns")


@tool(description="Look something up.")
async def look_up(params: Item, *, context: ToolContext) -> ToolResult[dict[str, str]]:
    return ToolResult("found it", {"secret": "x" * 50}, exclude_value_from_context=params.item == "secret")


@tool(description="Break.")
async def break_(params: Item, *, context: ToolContext) -> ToolResult[None]:
    context.patch({"broken": True})
    raise RuntimeError("it will not break")


@tool(description="Give up.")
async def give_up(params: Item, *, context: ToolContext) -> ToolResult[None]:
    raise PromptEvaluationError("there is no point in going on")


def prompt_of(*tools: Any, **section: Any) -> Prompt:
    one = MarkdownSection(title="Work", key="work", template="Use the tools.", tools=tools, **section)
    return Prompt(ns="test", key="loop", sections=[one])


async def run(
    script: list[Behaviour], prompt: Prompt, session: Session | None = None, **options: Any
) -> tuple[Evaluation[Any], list[dict[str, Any]]]:
    async with ScriptedModel(*script) as server:
        adapter = OpenAIAdapter(base_url=server.url, model="m")
        found = await evaluate(prompt, adapter, session or Session(), **{"request": "go", **options})
        return found, server.requests


def told(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["tool_call_id"], one["content"]) for one in request["messages"] if one["role"] == "tool"]


async def test_tools_act_on_the_session_and_their_results_go_back_as_tool_messages() -> None:
    session = Session()
    found, requests = await run(
        [Says(calls=(("light", '{"item": "torch"}'),)), Says("It burns.")], prompt_of(light), session
    )
    assert found.text == "It burns."
    assert session.snapshot() == {"lit": {"torch": True}}
    assert told(requests[1]) == [("call_0", "the torch burns")]
    assert requests[1]["messages"][-2]["tool_calls"][0]["function"]["name"] == "light"
    assert (found.rounds, found.usage.input_tokens, len(found.calls)) == (2, 20, 1)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("break_", '{"item": "x"}', "it will not break"),
        ("light", '{"item": 5}', "INVALID_ARGUMENTS"),
        ("light", '{"item": "x", "extra": 1}', "INVALID_ARGUMENTS"),
        ("light", "[]", "INVALID_ARGUMENTS"),
        ("light", '{"item": ', "not JSON"),
        ("light", '{"item": "x", "item": "y"}', 'the key "item" appears twice'),
        ("lihgt", "{}", "did you mean 'light'?"),
    ],
)
async def test_a_failure_is_told_to_the_model_and_leaves_nothing_behind(
    name: str, arguments: str, expected: str
) -> None:
    session = Session()
    found, requests = await run(
        [Says(calls=((name, arguments),)), Says("Well.")], prompt_of(light, break_), session
    )
    [(_, text)] = told(requests[1])
    assert text.startswith("FAILED")
    assert expected in text
    assert session.snapshot() == {}
    assert found.calls[0].result is not None
    assert not found.calls[0].result.success


async def test_an_excluded_value_is_kept_from_the_model() -> None:
    calls = (("look_up", '{"item": "secret"}'), ("look_up", '{"item": "open"}'))
    found, requests = await run([Says(calls=calls), Says("Ok.")], prompt_of(look_up))
    (_, hidden), (_, shown) = told(requests[1])
    assert hidden == "found it"
    assert "xxx" in shown
    assert found.calls[0].result is not None
    assert found.calls[0].result.value == {"secret": "x" * 50}


async def test_parallel_calls_run_side_by_side_and_are_answered_in_order() -> None:
    both = asyncio.Barrier(2)

    @tool(description="Wait for the other.")
    async def meet(params: Item, *, context: ToolContext) -> ToolResult[None]:
        await both.wait()
        return ToolResult(params.item)

    calls = (("meet", '{"item": "a"}'), ("meet", '{"item": "b"}'))
    _, requests = await run([Says(calls=calls), Says("Met.")], prompt_of(meet), deadline=Deadline.after(20))
    assert told(requests[1]) == [("call_0", "a"), ("call_1", "b")]


async def test_a_section_the_model_asks_for_is_shown_with_its_tools() -> None:
    prompt = Prompt(
        ns="test",
        key="loop",
        sections=[
            MarkdownSection(
                title="Fire",
                key="fire",
                template="How to light things.",
                summary="There is more about fire.",
                visibility=SectionVisibility.SUMMARY,
                tools=[light],
            )
        ],
    )
    opening = Says(calls=(("open_sections", '{"section_keys": ["fire"], "reason": "cold"}'),))
    session = Session()
    found, requests = await run(
        [opening, Says(calls=(("light", '{"item": "fire"}'),)), Says("Warm.")], prompt, session
    )
    assert [one["function"]["name"] for one in requests[0]["tools"]] == ["open_sections"]
    assert [one["function"]["name"] for one in requests[1]["tools"]] == ["light"]
    assert "How to light things." not in requests[0]["messages"][0]["content"]
    assert "How to light things." in requests[1]["messages"][0]["content"]
    assert session.snapshot() == {"lit": {"fire": True}}
    assert found.rendered.sections == ("fire",)


async def test_the_answer_is_parsed_strictly_and_its_faults_are_told() -> None:
    script = [
        Says("A cellar, I think."),
        Says('{"name": "cellar", "exits": "up"}'),
        Says('```json\n{"name": "cellar", "exits": ["up"]}\n```'),
    ]
    found, requests = await run(script, prompt_of(light), output=Room)
    assert found.output == Room("cellar", ["up"])
    assert "tools" in requests[0]
    assert "response_format" not in requests[0]
    assert "tools" not in requests[1]
    assert requests[1]["response_format"]["json_schema"]["schema"]["required"] == ["name", "exits"]
    assert "no JSON object" in requests[1]["messages"][-1]["content"]
    assert "exits" in requests[2]["messages"][-1]["content"]


async def test_a_server_without_schemas_still_gives_a_typed_answer() -> None:
    refused = Fails(400, "response_format is not supported")
    found, requests = await run([refused, Says('{"name": "a", "exits": []}')], prompt_of(), output=Room)
    assert found.output == Room("a", [])
    assert "response_format" not in requests[1]


async def test_rounds_are_bounded() -> None:
    again = Says(calls=(("light", '{"item": "torch"}'),))
    with pytest.raises(PromptEvaluationError, match="no answer after 3 rounds and 3 tool calls"):
        await run([again] * 9, prompt_of(light), max_rounds=3)


async def test_a_tool_may_end_the_evaluation_but_its_siblings_finish() -> None:
    session = Session()
    calls = (("give_up", '{"item": "x"}'), ("light", '{"item": "torch"}'))
    with pytest.raises(PromptEvaluationError, match="no point"):
        await run([Says(calls=calls)], prompt_of(light, give_up), session)
    assert session.snapshot() == {"lit": {"torch": True}}


async def test_a_deadline_ends_a_hanging_model() -> None:
    with pytest.raises(PromptEvaluationError, match="no complete reply"):
        await run([Hangs()], prompt_of(light), deadline=Deadline.after(1.5))


BAD: dict[str, Behaviour] = {
    "hangs": Hangs(),
    "hangs midway": Hangs("The"),
    "500": Fails(500),
    "half a JSON": Writes(b'data: {"choices": [{"index": 0, "del'),
    "200 MB": Floods(),
    "one byte a second": Drips("It burns."),
    "no end": Babbles(),
    "reset midway": Resets("It"),
    "a picture": Writes(b"\x89PNG\r\n\x1a\n" * 100, "image/png"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_a_bad_reply_costs_one_try_and_not_the_evaluation(bad: Behaviour) -> None:
    lit = Says(calls=(("light", '{"item": "torch"}'),))
    session = Session()
    found, requests = await run(
        [lit, bad, Says("It burns.")], prompt_of(light), session, time_limit=1.0, deadline=Deadline.after(60)
    )
    assert (found.text, len(requests)) == ("It burns.", 3)
    assert len(found.calls) == 1
    assert session.snapshot() == {"lit": {"torch": True}}


async def test_a_passed_deadline_is_noticed_before_the_model_is_asked() -> None:
    async with ScriptedModel(Says("hi")) as server:
        adapter = OpenAIAdapter(base_url=server.url, model="m")
        with pytest.raises(PromptEvaluationError, match="deadline passed"):
            await evaluate(prompt_of(light), adapter, Session(), deadline=Deadline.after(-1))
        assert server.requests == []


async def test_a_budget_of_tokens_ends_the_evaluation() -> None:
    tracker = BudgetTracker(Budget(max_tokens=20))
    again = Says(calls=(("light", '{"item": "torch"}'),), tokens=(10, 5))
    with pytest.raises(PromptEvaluationError, match="tokens 30 of 20"):
        await run([again] * 9, prompt_of(light), budget_tracker=tracker)
    assert tracker.used.tokens == 30


async def test_a_model_that_fails_a_few_times_is_asked_again() -> None:
    found, requests = await run([Fails(500), Fails(503), Says("Here.")], prompt_of(light))
    assert (found.text, len(requests)) == ("Here.", 3)
    with pytest.raises(PromptEvaluationError, match="out of order"):
        await run([Fails(500)] * 9, prompt_of(light))


async def test_a_model_that_refuses_the_key_is_not_asked_again() -> None:
    async with ScriptedModel(Fails(401), Says("ok")) as server:
        with pytest.raises(PromptEvaluationError, match="401"):
            await evaluate(
                prompt_of(), OpenAIAdapter(base_url=server.url, model="m"), Session(), request="go"
            )
        assert len(server.requests) == 1


async def test_a_busy_model_is_left_alone_as_long_as_it_asks() -> None:
    started = time.monotonic()
    found, requests = await run([Fails(429, retry_after="1"), Says("ok")], prompt_of())
    assert (found.text, len(requests)) == ("ok", 2)
    assert time.monotonic() - started >= 1.0


@pytest.mark.parametrize(
    "options", [{}, {"deadline": 30.0}], ids=["without a deadline", "beyond the deadline"]
)
async def test_a_model_that_is_busy_for_too_long_ends_the_evaluation_at_once(
    options: dict[str, float],
) -> None:
    seconds = options.get("deadline")
    async with ScriptedModel(Fails(429, retry_after="3600"), Says("ok")) as server:
        with pytest.raises(PromptEvaluationError, match="3600 s"):
            await evaluate(
                prompt_of(),
                OpenAIAdapter(base_url=server.url, model="m"),
                Session(),
                request="go",
                deadline=None if seconds is None else Deadline.after(seconds),
            )
        assert len(server.requests) == 1


async def test_an_overflowing_context_is_not_asked_again() -> None:
    async with ScriptedModel(Fails(400, "exceeds the available context size"), Says("hi")) as server:
        with pytest.raises(PromptEvaluationError, match="context size"):
            await evaluate(prompt_of(light), OpenAIAdapter(base_url=server.url, model="m"), Session())
        assert len(server.requests) == 1


async def test_a_tool_sees_the_prompt_and_the_adapter_it_is_called_for() -> None:
    seen: list[Any] = []

    @tool(description="Look around.")
    async def look(params: Item, *, context: ToolContext) -> ToolResult[None]:
        seen.extend([context.prompt, context.rendered_prompt, context.adapter, context.config["lamp"]])
        return ToolResult("seen")

    found, _ = await run(
        [Says(calls=(("look", '{"item": "x"}'),)), Says("Ok.")], prompt_of(look), config={"lamp": 1}
    )
    assert seen[0] is found.rendered.prompt
    assert seen[1] is found.rendered
    assert seen[2].name.startswith("m at http://127.0.0.1")
    assert seen[3] == 1


async def test_what_was_wrong_with_the_last_answer_is_said_when_none_ever_fits() -> None:
    script: list[Behaviour] = [Says('{"name": 5, "exits": []}')] * 3
    with pytest.raises(PromptEvaluationError, match=r"no answer after 3 rounds.*name: expected.*max_rounds"):
        await run(script, prompt_of(), output=Room, max_rounds=3)


async def test_plain_text_in_the_place_of_a_prompt_is_refused_with_the_way_to_make_one() -> None:
    with pytest.raises(PromptValidationError, match=r"takes a Prompt, not str; .*MarkdownSection\("):
        await run([], "What is the weather?")  # type: ignore[arg-type]


async def test_a_tool_of_a_server_reaches_a_model_without_its_dot() -> None:
    async def handler(params: dict[str, Any], *, context: ToolContext) -> ToolResult[None]:
        return ToolResult("noon")

    anything = {"type": "object"}
    far = Tool(
        "clock.now",
        "Tells the time. " * 100,
        handler,
        parameters=anything,
        kind=ToolKind("far", foreign=True),
    )
    script: list[Behaviour] = [Says(calls=(("clock__now", "{}"),)), Says("It is noon.")]
    _, requests = await run(script, prompt_of(far))
    assert requests[0]["tools"][0]["function"]["name"] == "clock__now"
    assert told(requests[1]) == [("call_0", "noon")]


def test_a_name_that_is_too_long_for_a_model_is_cut() -> None:
    long = f"{'s' * 64}.{'t' * 64}"
    assert len(function_name(long)) == 64
    assert function_name(long) != function_name(f"{long[:-1]}x")
    assert function_name("light") == "light"


# --- approvals -----------------------------------------------------------------------------------------------


async def test_a_person_is_asked_and_the_model_reads_the_reason_of_a_refusal() -> None:
    session, asked = Session(), []

    async def ask(request: ApprovalRequest) -> ApprovalAnswer:
        asked.append((request.tool.name, request.input, request.reason))
        return ApprovalAnswer.refuse("the hay is dry") if len(asked) == 1 else ApprovalAnswer.approve()

    session.approvals.approver = ask
    script = [
        Says(calls=(("light", '{"item": "hay"}'),)),
        Says(calls=(("light", '{"item": "torch"}'),)),
        Says("It burns."),
    ]
    policy = lambda call: "fire is dangerous"  # noqa: E731
    deadline = Deadline.after(30)
    found, requests = await run(script, prompt_of(light), session, approval=policy, deadline=deadline)
    assert found.text == "It burns." and session.state == {"lit": {"torch": True}}
    assert asked[0] == ("light", {"item": "hay"}, "fire is dangerous")
    ((_, refused),) = told(requests[1])
    assert refused.startswith("FAILED (REFUSED)") and "the hay is dry" in refused
