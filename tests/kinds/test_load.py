"""One way in for a path, whatever kind of tool lies there: a kind is one module and one line."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from narratoria import PlanDocument, PlanExecutor, Session, Tool, ToolContext, ToolRegistry, ToolResult
from narratoria.errors import ToolValidationError
from narratoria.kinds.from_manifest import FileKind, tool_from_manifest
from narratoria.kinds.load import KINDS, load_tool
from narratoria.kinds.manifest import Manifest
from narratoria.play.game import story_registry
from narratoria.play.story import Story
from narratoria.run.resolve import ToolResolver
from narratoria.session import ToolInvoked
from narratoria.tools.tool import ToolKind

HTTP = ToolKind("http")


def http_tool(path: Path, manifest: Manifest) -> Tool[Any, Any]:
    """What somebody would write to call a tool over HTTP: the whole kind."""

    async def post(params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
        request = urllib.request.Request(manifest.settings["url"], json.dumps(params).encode())  # noqa: S310
        answer = await asyncio.to_thread(lambda: json.load(urllib.request.urlopen(request)))  # noqa: S310
        context.patch(answer)
        return ToolResult.ok(answer, "answered")

    return tool_from_manifest(manifest, post, kind=HTTP, origin=path.resolve())


FILES = FileKind(http_tool)


class Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"heard": %s}' % body)

    def log_message(self, *arguments: Any) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def http_kind() -> Iterator[None]:
    KINDS["http"] = f"{__name__}:FILES"
    yield
    del KINDS["http"]


def write_http_tool(folder: Path, url: str) -> Path:
    path = folder / "echo.tool.json"
    manifest = {
        "name": "echo",
        "description": "Says it again.",
        "kind": "http",
        "settings": {"url": url},
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    }
    path.write_text(json.dumps(manifest))
    return path


async def test_a_tool_of_another_kind_passes_through_the_same_pipeline(
    tmp_path: Path, url: str, http_kind: None
) -> None:
    tool = load_tool(write_http_tool(tmp_path, url))
    session = Session()
    heard: list[ToolInvoked] = []
    session.dispatcher.subscribe(ToolInvoked, heard.append)
    registry = ToolRegistry([tool])
    result = await registry.execute("echo", {"word": "hello"}, session=session)
    assert result.success and session.state == {"heard": {"word": "hello"}}
    refused = await registry.execute("echo", {"word": 5}, session=session)
    assert refused.error.code == "INVALID_ARGUMENTS"
    assert [one.tool for one in heard] == ["echo", "echo"], "telemetry knows it like any other tool"


async def test_plans_and_stories_find_a_tool_of_another_kind_by_its_manifest(
    tmp_path: Path, url: str, http_kind: None
) -> None:
    (tmp_path / "tools").mkdir()
    write_http_tool(tmp_path / "tools", url)
    (tmp_path / "story.toml").write_text(
        'title = "Echo"\npremise = "A valley."\nnarrator = ["template"]\n[opening]\nnarrative = "Call."\n'
    )
    registry = story_registry(Story.load(tmp_path))
    assert [tool.kind.name for tool in registry] == ["http"]
    session = Session()
    executor = PlanExecutor(ToolRegistry(), session, roots=[tmp_path])
    call = {"toolId": "a", "toolPath": "tools/echo.tool.json", "input": {"word": "hi"}}
    trace = await executor.execute(PlanDocument.from_json(json.dumps({"requestId": "p", "tools": [call]})))
    assert trace.success and session.state["heard"] == {"word": "hi"}


def test_an_unknown_kind_names_those_there_are(tmp_path: Path, url: str) -> None:
    with pytest.raises(ToolValidationError, match="no kind of tool 'http'; known: mcp, process"):
        load_tool(write_http_tool(tmp_path, url))


def test_a_tool_has_one_object_whether_it_is_called_by_name_or_by_path(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    executable = tmp_path / "tools" / "walk"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    registry = ToolRegistry([load_tool(executable)])
    resolver = ToolResolver(registry, [tmp_path])
    assert resolver.resolve("tools/walk") is resolver.resolve("walk") is registry.get("walk")
