"""Answers of a server that are malformed in part: only that part is left out."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from narratoria.kinds.mcp.mcp_tools import mcp_tools
from narratoria.kinds.mcp.notifications import Notes, text_of
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session

SERVER = """
import json, sys
SCHEMA = {"type": "object"}
tools = [{"name": "good", "inputSchema": SCHEMA}, {"name": "bare"},
         {"name": "good", "inputSchema": SCHEMA, "description": "Another."},
         {"name": "fruit", "inputSchema": {"type": "banana"}},
         {"name": "odd", "inputSchema": SCHEMA, "description": 5}, "none", {"name": "untyped", "inputSchema": {}}]
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), {"error": {"code": -32601, "message": "no method"}}
    if "id" not in message:
        continue
    if method == "initialize":
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "b", "version": "1"}}}
    elif method == "tools/list":
        answer = {"result": {"tools": tools}}
    elif method == "tools/call":
        answer = json.loads(sys.argv[1])
        if answer in ("deep", "deep and long"):
            blanks = 100_000 if answer != "deep" else 0
            print(" " * blanks + '{"jsonrpc": "2.0", "id": %d, "result": {"content": [], "x": %s}}'
                  % (message["id"], "[" * 5000 + "]" * 5000), flush=True)
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


async def called(place, answer):
    """Call a tool of a server that gives this answer; return the result, the server's notes and the remarks."""
    session, remarks = Session(), []

    class Ear:
        full = False

        def push(self, record):
            remarks.append(repr(record.event))

        async def wait(self):
            return None

    session.attach(Ear())
    script = place.script(SERVER)
    async with mcp_tools(place.servers(json.dumps(answer), script=script)) as servers:
        assert [tool.name for tool in servers] == ["trial.good", "trial.untyped"]
        result = await ToolRegistry(servers).execute("trial.good", {}, session=session)
        return result, servers.notes, "\n".join(remarks)


async def test_a_malformed_tool_or_block_leaves_out_only_itself(place):
    blocks = [{"type": "text", "text": "here"}, {"type": "hologram", "x": 1}, {"type": "image", "data": 5}]
    result, notes, remarks = await called(place, {"result": {"content": blocks}})
    assert result.success and result.message == "here"
    assert notes[:2] == [
        "trial: the tool 'bare' was left out: it has no inputSchema",
        "trial: the tool 'fruit' was left out: its inputSchema is of the type 'banana', not 'object'",
    ]
    assert notes[2].startswith("trial: the tool 'odd' was left out: description: ")
    assert "trial: the server has two tools 'good'; the second is left out" in notes
    assert len(notes) == 5 and not any("\n" in note for note in notes)
    assert "a part of the result was left out: its type 'hologram' is unknown" in remarks
    assert "a part of the result of the type 'image' was left out: " in remarks


class Careless(BaseHTTPRequestHandler):
    """A server behind an address that lists a tool without a schema, and answers with content of an unknown type."""

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "b", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "good", "inputSchema": {"type": "object"}}, {"name": "bare"}]},
            "tools/call": {"content": [{"type": "text", "text": "here"}, {"type": "hologram"}]},
        }
        answer = {"error": {"code": -32601, "message": "no method"}}
        if message.get("method") in answers:
            answer = {"result": answers[message["method"]]}
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode()
        self.send_response(200 if "id" in message else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if "id" in message else 0))
        self.end_headers()
        if "id" in message:
            self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *args):
        pass


@pytest.fixture
def careless():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Careless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    server.server_close()


async def test_over_http_too_a_malformed_tool_or_block_leaves_out_only_itself(careless):
    async with mcp_tools({"mcpServers": {"far": {"url": careless}}}) as servers:
        assert [tool.name for tool in servers] == ["far.good"]
        assert servers.notes == ["far: the tool 'bare' was left out: it has no inputSchema"]
        result = await ToolRegistry(servers).execute("far.good", {})
        assert result.success and result.message == "here"


async def test_an_error_of_a_living_server_is_the_tools_error(place):
    result, _, _ = await called(place, {"error": {"code": -32000, "message": "no funds"}})
    assert result.failure.message == "trial.good: no funds" and result.failure.source == "tool"


@pytest.mark.parametrize("answer", ["deep", "deep and long"])
async def test_an_answer_that_is_nested_too_deeply_fails_at_once(place, answer):
    result, _, _ = await called(place, answer)
    assert result.failure.code == "PROTOCOL_ERROR" and "nested too deeply" in result.failure.message


async def test_a_log_that_repeats_the_progress_before_it_is_told_once():
    class Context:
        def __init__(self):
            self.logs = []

        def log(self, text, level, **fields):
            self.logs.append((text, level, fields))

    context = Context()
    notes = Notes(context, str)
    await notes.progress(1, 4, "begun")
    notes.note(text_of({"message": "begun", "progress": 0.25}), "info", {})
    notes.note(text_of({"message": "begun"}), "info", {})
    assert [one[0] for one in context.logs] == ["begun", "begun"]
