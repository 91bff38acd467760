"""Spans and metrics of calls, plans, turns, processes and models, as a real SDK exports them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from narratoria import (
    PlanDocument,
    PlanExecutor,
    RetryPolicy,
    Session,
    ToolContext,
    ToolRegistry,
    ToolResult,
    process_tool,
    take_turn,
    telemetry,
    tool,
)
from narratoria.agent.adapters import ModelFailed, ModelReply, ModelUsage, evaluate
from narratoria.agent.adapters.adapter import ModelCall
from narratoria.agent.prompt import MarkdownSection, Prompt
from narratoria.errors import ToolFailure
from narratoria.play.turn import TurnSettings

SECRET = "xyzzy-the-secret-word"


@dataclass(frozen=True)
class Say:
    word: str = "hello"


@tool(description="Say a word.")
async def say(params: Say, *, context: ToolContext) -> ToolResult[str]:
    return ToolResult.ok(params.word)


@tool(description="Fail once, then work.", retry=RetryPolicy(max_retries=2))
async def hesitate(params: Say, *, context: ToolContext) -> ToolResult[None]:
    tries.append(1)
    if len(tries) == 1:
        raise ToolFailure("NOT_YET", f"not yet: {params.word}")
    return ToolResult.ok(None)


@tool(description="Fail.")
async def fail(params: Say, *, context: ToolContext) -> ToolResult[None]:
    raise ToolFailure("BROKEN_STRING", f"the string of {params.word} broke")


tries: list[int] = []


@pytest.fixture
def registry() -> ToolRegistry:
    tries.clear()
    return ToolRegistry([say, hesitate, fail])


async def test_a_call_is_an_execute_tool_span(seen, registry):
    result = await registry.execute("say", {"word": "hi"})
    span = seen["execute_tool say"]
    assert span.kind is SpanKind.INTERNAL and span.parent is None
    assert span.status.status_code is StatusCode.UNSET
    assert span.instrumentation_scope.name == "narratoria"
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "say",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": result.metadata.call_id,
        "narratoria.tool.kind": "function",
        "narratoria.call.attempts": 1,
    }
    assert seen.points()["gen_ai.execute_tool.duration"] == [
        ({"gen_ai.tool.name": "say", "gen_ai.tool.type": "function"}, 1)
    ]


async def test_a_failed_call_has_an_error_type_on_its_span_and_in_the_metric(seen, registry):
    await registry.execute("fail", {"word": SECRET})
    span = seen["execute_tool fail"]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "BROKEN_STRING"
    ((labels, count),) = seen.points()["gen_ai.execute_tool.duration"]
    assert (labels["error.type"], count) == ("BROKEN_STRING", 1)


async def test_a_retry_is_an_event_of_the_span_and_counted(seen, registry):
    assert (await registry.execute("hesitate", {})).success
    span = seen["execute_tool hesitate"]
    assert span.attributes["narratoria.call.attempts"] == 2
    (event,) = span.events
    assert event.name == "narratoria.call.retry" and event.attributes["error.type"] == "NOT_YET"
    assert seen.points()["narratoria.call.retries"] == [
        ({"gen_ai.tool.name": "hesitate", "error.type": "NOT_YET"}, 1)
    ]


@pytest.mark.parametrize("name", ["no_such_tool", "nor_this_one"])
async def test_a_call_of_an_unknown_tool_has_a_span_and_no_label_of_its_own(seen, registry, name):
    await registry.execute(name, {})
    span = seen["execute_tool"]
    assert span.attributes["narratoria.tool.asked"] == name
    assert span.attributes["error.type"] == "TOOL_NOT_FOUND"
    ((labels, _),) = seen.points()["gen_ai.execute_tool.duration"]
    assert labels == {"gen_ai.tool.name": "_OTHER", "error.type": "TOOL_NOT_FOUND"}


async def test_refused_arguments_are_a_failed_span(seen, registry):
    await registry.execute("say", {"word": 5})
    assert seen["execute_tool say"].attributes["error.type"] == "INVALID_ARGUMENTS"


async def test_an_error_code_that_is_no_code_is_not_a_label(seen):
    @tool(description="Makes up codes.")
    async def inventive(params: Say, *, context: ToolContext) -> ToolResult[None]:
        raise ToolFailure("it broke at 12:31, sorry", "it broke")

    await ToolRegistry([inventive]).execute("inventive", {})
    assert seen["execute_tool inventive"].attributes["error.type"] == "_OTHER"


async def test_a_cancelled_call_ends_its_span_and_leaves_no_context_behind(seen):
    @tool(description="Waits.")
    async def wait(params: Say, *, context: ToolContext) -> ToolResult[None]:
        started.set()
        await asyncio.Event().wait()
        return ToolResult.ok(None)

    started = asyncio.Event()

    async def call_twice() -> object:
        try:
            await ToolRegistry([wait]).execute("wait", {})
        except asyncio.CancelledError:
            return trace.get_current_span().get_span_context().is_valid

    task = asyncio.create_task(call_twice())
    await started.wait()
    task.cancel()
    assert await task is False, "the span is not current any more"
    assert seen["execute_tool wait"].attributes["error.type"] == "CANCELLED"


async def test_a_call_within_a_call_is_a_child_also_from_a_thread(seen, registry):
    @tool(description="Calls another.")
    async def outer(params: Say, *, context: ToolContext) -> ToolResult[None]:
        await context.call(say, {})
        return ToolResult.ok(None)

    @tool(description="In a thread.")
    def threaded(params: Say, *, context: ToolContext) -> ToolResult[None]:
        with trace.get_tracer("theirs").start_as_current_span("their own"):
            return ToolResult.ok(None)

    await ToolRegistry([outer, threaded]).execute("outer", {})
    await ToolRegistry([outer, threaded]).execute("threaded", {})
    assert seen.parent("execute_tool say") == "execute_tool outer"
    assert seen.parent("their own") == "execute_tool threaded"


# --- content ----------------------------------------------------------------------------------------------


def everything(seen) -> str:
    return json.dumps([json.loads(span.to_json()) for span in seen.spans])


async def test_content_is_left_out_unless_it_is_allowed(seen, registry):
    await registry.execute("say", {"word": SECRET})
    await registry.execute("fail", {"word": SECRET})
    await registry.execute("hesitate", {"word": SECRET})
    await registry.execute("say", {"word": [SECRET]})
    assert len(seen.spans) == 4 and SECRET not in everything(seen)


async def test_content_is_there_where_it_is_allowed(seen, registry):
    telemetry.capture_content()
    await registry.execute("say", {"word": SECRET})
    await registry.execute("fail", {"word": SECRET})
    said, failed = seen["execute_tool say"], seen["execute_tool fail"]
    assert json.loads(said.attributes["gen_ai.tool.call.arguments"]) == {"word": SECRET}
    assert json.loads(said.attributes["gen_ai.tool.call.result"]) == SECRET
    assert SECRET in failed.status.description


async def test_the_environment_allows_content_too(seen, registry, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    telemetry.capture_content(None)
    await registry.execute("say", {"word": SECRET})
    assert SECRET in everything(seen)


async def test_content_is_bounded_and_need_not_be_json(seen, registry):
    telemetry.capture_content()

    @tool(description="Returns anything.")
    async def anything(params: Say, *, context: ToolContext) -> ToolResult[object]:
        return ToolResult.ok(asyncio if params.word == "odd" else "x" * 100_000)

    tools = ToolRegistry([anything])
    await tools.execute("anything", {"word": "odd"})
    await tools.execute("anything", {"word": "long"})
    odd, long = (span.attributes["gen_ai.tool.call.result"] for span in seen.spans)
    assert "module 'asyncio'" in odd and len(long) == telemetry.MAX_CONTENT + 1


# --- processes --------------------------------------------------------------------------------------------


def script(folder: Path, *lines: str) -> Path:
    path = folder / "spy"
    path.write_text("\n".join(["#!/bin/bash", "cat >/dev/null", *lines, ""]))
    path.chmod(0o755)
    (folder / "spy.tool.json").write_text('{"name": "spy", "description": "Tells its environment."}')
    return path


TELL = """echo '{"version":"0","type":"done","ok":true,"summary":"'$TRACEPARENT'"}'"""


async def test_a_process_is_a_span_and_gets_its_traceparent(seen, tmp_path):
    spy = process_tool(script(tmp_path, TELL))
    result = await ToolRegistry([spy]).execute("spy", {})
    span = seen["spy"]
    assert seen.parent("spy") == "execute_tool spy" and span.kind is SpanKind.CLIENT
    context = span.context
    assert result.message == f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    assert span.attributes["process.exit.code"] == 0 and span.attributes["process.pid"] > 1
    assert span.attributes["process.executable.name"] == "spy"
    assert seen["execute_tool spy"].attributes["gen_ai.tool.type"] == "extension"


async def test_a_process_that_fails_says_how_it_ended(seen, tmp_path):
    await ToolRegistry([process_tool(script(tmp_path, "exit 7"))]).execute("spy", {})
    span = seen["spy"]
    assert span.attributes["process.exit.code"] == 7 and span.attributes["error.type"] == "NON_ZERO_EXIT"


# --- plans and turns --------------------------------------------------------------------------------------


def plan_of(*paths: str, parallel: bool = True) -> PlanDocument:
    tools = [{"toolId": f"t{n}", "toolPath": path, "input": {}} for n, path in enumerate(paths)]
    return PlanDocument.from_json(
        json.dumps({"requestId": "p1", "narrative": "So be it.", "tools": tools, "parallel": parallel})
    )


async def test_the_calls_of_a_plan_are_children_of_its_span(seen, registry):
    session = Session()
    result = await PlanExecutor(registry, session, limit=4).execute(plan_of("say", "hesitate", "fail"))
    assert not result.success
    span = seen["invoke_workflow"]
    assert span.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert span.attributes["narratoria.plan.id"] == "p1" and span.attributes["narratoria.plan.calls"] == 3
    assert span.attributes["error.type"] == "PLAN_FAILED"
    for name in ("say", "hesitate", "fail"):
        assert seen.parent(f"execute_tool {name}") == "invoke_workflow"
    assert seen["execute_tool say"].attributes["gen_ai.tool.call.id"] == "p1:t0"
    assert seen.points()["gen_ai.workflow.duration"] == [({"error.type": "PLAN_FAILED"}, 1)]


async def test_a_call_of_a_plan_that_names_no_tool_has_a_span_and_is_counted(seen, registry):
    plan = plan_of("say", "nope")
    plan.tools[1] = msgspec.structs.replace(plan.tools[1], required=False)
    assert (await PlanExecutor(registry, Session()).execute(plan)).success
    assert seen["invoke_workflow"].attributes["narratoria.plan.failed_calls"] == 1
    span = seen["execute_tool"]
    assert (
        span.attributes["narratoria.tool.asked"] == "nope"
        and span.attributes["error.type"] == "TOOL_NOT_FOUND"
    )
    assert (
        span.attributes["gen_ai.tool.call.id"] == "p1:t1" and seen.parent("execute_tool") == "invoke_workflow"
    )


class Planner:
    name = "planner"

    def __init__(self, *plans: PlanDocument) -> None:
        self.plans = list(plans)

    async def plan(self, request):
        with trace.get_tracer("theirs").start_as_current_span("thinking"):
            return self.plans.pop(0)


async def test_a_turn_is_one_trace_over_narrator_plan_and_call(seen, registry):
    session = Session()
    result = await take_turn(
        session, "speak", narrator=Planner(plan_of("say")), registry=registry,
        settings=TurnSettings(story="lighthouse"),
    )  # fmt: skip
    assert result.outcome == "completed"
    assert seen.names == [
        "invoke_agent lighthouse", "plan planner", "thinking", "invoke_workflow", "execute_tool say",
    ]  # fmt: skip
    assert [seen.parent(name) for name in seen.names] == [
        None, "invoke_agent lighthouse", "plan planner", "invoke_agent lighthouse", "invoke_workflow",
    ]  # fmt: skip
    span = seen["invoke_agent lighthouse"]
    assert span.attributes["gen_ai.conversation.id"] == session.id
    assert span.attributes["narratoria.turn.outcome"] == "completed"
    assert seen.points()["gen_ai.invoke_agent.duration"] == [({"gen_ai.agent.name": "lighthouse"}, 1)]


async def test_a_turn_that_falls_back_to_the_template_counts_as_failed(seen, registry):
    await take_turn(Session(), "speak", narrator=Planner(), registry=registry)
    assert seen["invoke_agent"].attributes["error.type"] == "FALLBACK"
    assert {span.attributes["error.type"] for span in seen.spans if span.name == "plan"} == {"NarratorFailed"}


# --- models -----------------------------------------------------------------------------------------------


class Model:
    """An adapter with its answers written down."""

    name = "a model"
    provider = "openai"
    model = "gpt-9"
    address = "http://models.example:8080/v1"

    def __init__(self, *replies: ModelReply | Exception) -> None:
        self.replies = list(replies)

    async def complete(self, request, on_text=lambda text: None):
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


ASK = Prompt(
    ns="app",
    key="ask",
    sections=[MarkdownSection(title="Ask", key="ask", template="Say hello.", tools=[say])],
)


async def test_the_agent_loop_is_one_trace_over_models_and_tools(seen):
    model = Model(
        ModelReply(calls=(ModelCall("c1", "say", "{}"),), usage=ModelUsage(100, 10), model="gpt-9-mini"),
        ModelReply(text="Hello.", usage=ModelUsage(150, 5), model="gpt-9-mini"),
    )
    await evaluate(ASK, model, Session())
    assert seen.names == ["invoke_agent app/ask", "chat gpt-9", "execute_tool say", "chat gpt-9"]
    assert {one.parent.span_id for one in seen.spans[1:]} == {seen.spans[0].context.span_id}
    first = seen.spans[1]
    assert first.kind is SpanKind.CLIENT
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-9",
        "gen_ai.request.max_tokens": 1024,
        "gen_ai.response.model": "gpt-9-mini",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "server.address": "models.example",
        "server.port": 8080,
    }
    assert seen.spans[0].attributes["gen_ai.usage.input_tokens"] == 250
    points = seen.points()
    assert [count for _, count in points["gen_ai.client.operation.duration"]] == [2]
    assert {labels["gen_ai.token.type"] for labels, _ in points["gen_ai.client.token.usage"]} == {
        "input", "output",
    }  # fmt: skip


async def test_tokens_that_were_only_estimated_are_not_reported(seen):
    await evaluate(ASK, Model(ModelReply(text="Hi.", usage=ModelUsage(9, 9, counted=False))), Session())
    assert "gen_ai.usage.input_tokens" not in seen["chat gpt-9"].attributes
    assert "gen_ai.client.token.usage" not in seen.points()


async def test_a_model_that_fails_has_an_error_type(seen):
    await evaluate(ASK, Model(ModelFailed("no"), ModelReply(text="Hi.")), Session())
    assert [span.attributes.get("error.type") for span in seen.spans if span.name == "chat gpt-9"] == [
        "ModelFailed", None,
    ]  # fmt: skip


async def test_messages_are_on_the_span_only_where_content_is_allowed(seen):
    await evaluate(ASK, Model(ModelReply(text=SECRET)), Session())
    assert SECRET not in everything(seen)
    telemetry.capture_content()
    seen.forget()
    await evaluate(ASK, Model(ModelReply(text=SECRET)), Session())
    span = seen["chat gpt-9"]
    assert json.loads(span.attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": SECRET}], "finish_reason": "stop"}
    ]
    (asked,) = json.loads(span.attributes["gen_ai.input.messages"])
    assert asked["role"] == "user" and "Say hello." in asked["parts"][0]["content"]
