"""One trace across the borders of processes and protocols: HTTP, MCP, a model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from narratoria import Session, ToolRegistry, take_turn
from narratoria.agent.adapters import ModelReply, ModelUsage
from narratoria.play.turn import TurnSettings

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture
def client_of(tmp_path):
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("starlette")
    from narratoria.web.app import create_app
    from narratoria.web.sign_ins import SignIns

    def make(games):
        sign_ins = SignIns()
        app = create_app(games, sign_ins=sign_ins, cookie="narratoria")
        headers = {"Authorization": f"Bearer {sign_ins.print_token()}", "traceparent": TRACEPARENT}
        transport = httpx.ASGITransport(app)
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)

    return make


async def test_a_turn_is_in_the_trace_of_the_request_that_began_it(seen, client_of, tmp_path):
    from narratoria.store.default_store import default_store
    from narratoria.web.games import Games

    async with Games(default_store(tmp_path)) as games, client_of(games) as client:
        session = (await client.post("/sessions", json={"story": "lighthouse"})).json()["id"]
        seen.forget()
        answer = await client.post(f"/sessions/{session}/prompt", json={"prompt": "look around"})
        assert answer.status_code == 202
        await (await games.open(session)).turn
    request = seen["POST /sessions/{id}/prompt"]
    assert request.kind is SpanKind.SERVER and f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert request.attributes["http.route"] == "/sessions/{id}/prompt"
    assert request.attributes["http.response.status_code"] == 202
    assert request.attributes["url.path"] == f"/sessions/{session}/prompt"
    turn = seen["invoke_agent lighthouse"]
    assert turn.parent.span_id == request.context.span_id
    assert turn.attributes["gen_ai.conversation.id"] == session
    own = [span.name for span in seen.spans if span.context.trace_id == request.context.trace_id]
    assert any(name.startswith("plan ") for name in own) and "invoke_workflow" in own
    labels = [labels for labels, _ in seen.points()["http.server.request.duration"]]
    assert {
        "http.request.method": "POST",
        "http.route": "/sessions/{id}/prompt",
        "http.response.status_code": 202,
        "url.scheme": "http",
    } in labels


async def test_a_stream_ends_its_span_when_it_begins_and_a_query_is_never_told(seen, client_of, tmp_path):
    from narratoria.store.default_store import default_store
    from narratoria.web.games import Games

    async with Games(default_store(tmp_path)) as games, client_of(games) as client:
        session = (await client.post("/sessions", json={"story": "lighthouse"})).json()["id"]
        seen.forget()
        await client.get(f"/sessions/{session}/events", params={"once": "", "after": "0"})
        await client.get("/nowhere", params={"token": "xyzzy"})
        await client.get("/static/nothing.js")
    assert seen["GET /sessions/{id}/events"].attributes["http.response.status_code"] == 200
    assert all("xyzzy" not in span.to_json() and "static" not in span.to_json() for span in seen.spans)


# --- models -----------------------------------------------------------------------------------------------


class Model:
    name = model = "gpt-9"
    provider = "openai"
    address = "https://models.example/v1"

    async def complete(self, request, on_text=lambda text: None):
        return ModelReply(
            text='{"narrative": "The sea is calm.", "tools": []}', usage=ModelUsage(50, 8), model="gpt-9"
        )


async def test_the_request_to_a_model_is_in_the_trace_of_the_turn(seen):
    from narratoria.narrator.llm.llm_narrator import LLMNarrator

    narrator = LLMNarrator(Model())
    result = await take_turn(
        Session(), "look", narrator=narrator, registry=ToolRegistry(), settings=TurnSettings(story="sea")
    )
    assert result.narrative == "The sea is calm."
    assert seen.parent("chat gpt-9") == f"plan {narrator.name}"
    assert seen.parent(f"plan {narrator.name}") == "invoke_agent sea"
    assert seen["chat gpt-9"].attributes["server.port"] == 443


# --- MCP --------------------------------------------------------------------------------------------------


async def test_an_mcp_server_of_ours_goes_on_with_the_trace_of_our_client(seen, tmp_path: Path):
    """Test program → client → `_meta` → server process → its tool's environment: one trace."""
    pytest.importorskip("mcp")
    from narratoria.kinds.mcp.mcp_tools import mcp_tools

    tool = tmp_path / "spy"
    done = """echo '{"version":"0","type":"done","ok":true,"summary":"'$TRACEPARENT'"}'"""
    tool.write_text(f"#!/bin/bash\ncat >/dev/null\n{done}\n")
    tool.chmod(0o755)
    (tmp_path / "spy.tool.json").write_text('{"name": "spy", "description": "Tells its environment."}')
    entry = {
        "command": sys.executable,
        "args": ["-m", "narratoria", "mcp", "--tools", str(tmp_path)],
        "env": {"OTEL_TRACES_EXPORTER": "console", "NARRATORIA_HOME": str(tmp_path / "home")},
    }
    async with mcp_tools({"mcpServers": {"ours": entry}}) as servers:
        registry = ToolRegistry()
        servers.follow(registry)
        await registry.execute("ours.spy", {})  # which starts the server
        seen.forget()
        with trace.get_tracer("theirs").start_as_current_span("the evening"):
            result = await registry.execute("ours.spy", {})
    assert result.success, result.message
    evening = seen["the evening"].context
    _, trace_id, span_id, _ = result.message.split("-")
    assert trace_id == f"{evening.trace_id:032x}"
    assert span_id not in {f"{span.context.span_id:016x}" for span in seen.spans}, "the server's own span"
    assert seen.parent("execute_tool ours.spy") == "the evening"
    sent = seen["MCP send tools/call spy"]
    assert sent.parent.span_id == seen["execute_tool ours.spy"].context.span_id
