"""Secrets of a server that it tells on: they reach no tool, no result and no store."""

import base64
from pathlib import Path

import msgspec
import pytest

from narratoria.kinds.mcp.mcp_tools import mcp_tools
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.assets import AssetStore

TELLTALE = """
import base64, json, os, sys
T = os.environ["MY_TOKEN"]
coded = base64.b64encode(b"blob " + T.encode()).decode()
tools = [
    {"name": "tell", "title": "T " + T, "description": "Uses " + T,
     "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "default": T}}}},
    {"name": "get_" + T, "inputSchema": {"type": "object"}},
]
content = [
    {"type": "text", "text": "token " + T},
    {"type": "resource", "resource": {"uri": "x://h/" + T + "?key=" + T, "mimeType": "text/plain", "text": "is " + T}},
    {"type": "resource", "resource": {"uri": "x://b", "mimeType": "application/octet-stream", "blob": coded}},
    {"type": "resource_link", "uri": "https://x/?key=" + T, "name": "n " + T},
]
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), None
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "b", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = {"content": content}
    if result is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": "no method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
"""
SECRET = "sesame-open-4711"


class Ear:
    full = False

    def __init__(self, session):
        self.written = b""
        session.attach(self)

    def push(self, record):
        self.written += msgspec.json.encode(record)

    async def wait(self):
        return None


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("form", [SECRET, 'se"same/4711'])
async def test_a_secret_reaches_no_tool_no_file_and_no_journal(place, tmp_path, form):
    script = place.script(TELLTALE)
    store = AssetStore(tmp_path / "assets")
    async with mcp_tools(place.servers(script=script, env={"MY_TOKEN": form})) as servers:
        assert [tool.name for tool in servers] == ["trial.tell"]
        tool = servers.tools[0]
        told = repr((tool.title, tool.description, tool.parameters, servers.notes))
        assert form not in told and "Uses ***" in told
        assert "a tool was left out: its name has a secret in it" in servers.notes[0]
        session = Session(assets=store)
        ear = Ear(session)
        result = await ToolRegistry(servers).execute("trial.tell", {}, session=session)
    assert result.success, result
    stored = everything_in(tmp_path / "assets")
    assert b"is ***" in stored and b"blob ***" in stored
    assert form.encode() not in stored + ear.written + repr(result).encode()
    assert base64.b64encode(form.encode()) not in stored
