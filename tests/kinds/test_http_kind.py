"""A kind of tool behind HTTP, as somebody would write it: one module, one line, and every way in knows it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from narratoria import Session, Tool, ToolContext, ToolRegistry, ToolResult
from narratoria.conformance import check_tool
from narratoria.errors import NarratoriaError
from narratoria.events import AssetDenied, JsonObject
from narratoria.kinds.conversation import Conversation, request_for
from narratoria.kinds.from_manifest import FileKind, tool_from_manifest
from narratoria.kinds.load import KINDS, load_tool
from narratoria.kinds.manifest import Manifest
from narratoria.kinds.tool_files import tool_files
from narratoria.run.tool_folder import folder_tools
from narratoria.session.record import Record
from narratoria.tools.tool import ToolKind

# --- the kind --------------------------------------------------------------------------------------------

HTTP = ToolKind("http", returns_its_patches=True)


def http_tool(path: Path, manifest: Manifest) -> Tool[Any, Any]:
    """A tool that gets the request as a POST, and answers with NDJSON."""

    async def post(params: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        request = request_for(manifest, params, context)
        chunks = _chunks(manifest.settings["url"], request)
        return await Conversation(context).answer(manifest, chunks)

    return tool_from_manifest(manifest, post, kind=HTTP, origin=path.resolve())


async def _chunks(url: str, request: bytes) -> AsyncIterator[bytes]:
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=5)
    await asyncio.to_thread(connection.request, "POST", place.path, request)
    response = await asyncio.to_thread(connection.getresponse)
    while chunk := await asyncio.to_thread(response.read1, 7):
        yield chunk
    connection.close()


FILES = FileKind(http_tool)

# --- a server of tools -----------------------------------------------------------------------------------

DONE = {"type": "done", "ok": True, "summary": "lit"}
ANSWERS: dict[str, list[JsonObject]] = {
    "/lamp": [
        {"type": "log", "level": "info", "message": "hm"},
        {"type": "state_patch", "patch": {"lamp": 1}},
        DONE,
    ],
    "/no": [
        {"type": "error", "errorCode": "WET", "errorMessage": "The wick is wet."},
        {"type": "done", "ok": False},
    ],
    "/file": [
        {"type": "asset", "assetId": "a", "kind": "text", "mediaType": "text/plain", "path": "/etc/hostname"},
        DONE,
    ],
    "/silent": [{"type": "log", "level": "info", "message": "…"}],
    "/after": [DONE, {"type": "log", "level": "info", "message": "late"}],
}


class Server(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        if self.path == "/noise":
            self.wfile.write(b"<html>")
            return
        if self.path == "/echo":
            events: list[JsonObject] = [{"type": "state_patch", "patch": {"request": request}}, DONE]
        else:
            events = ANSWERS[self.path]
        for event in events:
            self.wfile.write(json.dumps({"version": "0", **event}).encode() + b"\n")

    def log_message(self, *arguments: Any) -> None: ...


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture(autouse=True)
def the_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "http", f"{__name__}:FILES")


def written(folder: Path, url: str, name: str = "lamp", kind: str = "http") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tool.json"
    manifest = {"name": name, "description": "Lights.", "kind": kind, "settings": {"url": url}}
    path.write_text(json.dumps(manifest))
    return path


class Records(list[Any]):
    full = False

    def push(self, record: Record) -> None:
        self.append(record.event)

    async def wait(self) -> None: ...


async def called(folder: Path, url: str) -> tuple[ToolResult[Any], Session, Records]:
    session, records = Session(), Records()
    session.attach(records)
    registry = ToolRegistry([load_tool(written(folder, url))])
    return await registry.execute("lamp", {}, session=session), session, records


# --- the protocol over another carrier -------------------------------------------------------------------


async def test_the_answer_is_read_and_judged_as_that_of_a_process(tmp_path: Path, url: str) -> None:
    result, session, _ = await called(tmp_path, f"{url}/lamp")
    assert result.success and result.value == {"lamp": 1} == session.state and result.message == "lit"
    result, session, _ = await called(tmp_path, f"{url}/echo")
    assert {"requestId", "tool", "operation", "input", "dependencies"} == set(session.state["request"])


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("no", "WET", "The wick is wet."),
        ("silent", "MISSING_DONE", "the answer ended without a `done` event"),
        ("noise", "PROTOCOL_ERROR", "line 1"),
    ],
)
async def test_what_is_wrong_with_an_answer_is_said_as_of_a_process(
    tmp_path: Path, url: str, path: str, code: str, text: str
) -> None:
    result, session, _ = await called(tmp_path, f"{url}/{path}")
    assert result.error is not None and result.error.code == code and text in result.error.message
    assert session.state == {}


async def test_the_path_of_an_asset_is_not_read_for_a_remote_tool(tmp_path: Path, url: str) -> None:
    result, _, records = await called(tmp_path, f"{url}/file")
    assert result.success
    (denied,) = [event for event in records if isinstance(event, AssetDenied)]
    assert "`/etc/hostname` was not read: a tool of the kind http" in denied.reason


async def test_bytes_after_done_are_reported(tmp_path: Path, url: str) -> None:
    result, _, records = await called(tmp_path, f"{url}/after")
    assert result.success
    assert any("line 2" in getattr(event, "message", "") for event in records)


# --- every way in ----------------------------------------------------------------------------------------


def test_a_manifest_that_stands_alone_is_a_tool_of_a_folder(tmp_path: Path, url: str) -> None:
    lamp = written(tmp_path, url)
    bell = written(tmp_path / "below", url, "bell")
    written(tmp_path, url, "ghost", kind="process")
    written(tmp_path / "_own", url, "hidden")
    found = {one.name: one.problem for one in tool_files(tmp_path)}
    assert found == {"lamp": None, "bell": None, "ghost": "describes 'ghost', which is not beside it"}
    assert {path: tool.name for path, tool in folder_tools(tmp_path).items()} == {lamp: "lamp", bell: "bell"}


def test_a_folder_of_what_cannot_be_run_says_why_there_is_no_tool(tmp_path: Path, url: str) -> None:
    written(tmp_path, url, "ghost", kind="process")
    with pytest.raises(
        NarratoriaError, match=r"no tool in this folder.*describes 'ghost', which is not beside"
    ):
        folder_tools(tmp_path)


def test_a_check_of_another_kind_judges_its_manifest_alone(tmp_path: Path, url: str) -> None:
    report = check_tool(written(tmp_path, url))
    assert report.conforms and report.other_kind == "http" and report.tool == "lamp"
    verdicts = {one.rule.name: one for one in report.judgements}
    assert verdicts["manifest"].verdict == "pass"
    assert verdicts["launch"].verdict == "not exercised" and "kind http" in verdicts["launch"].detail


MAIN = """
import sys
sys.path.insert(0, {here!r})
from narratoria.kinds.load import KINDS
KINDS["http"] = "test_http_kind:FILES"
from narratoria.cli import main
main(sys.argv[1:])
"""


def narratoria(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = MAIN.format(here=str(Path(__file__).parent))
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )


def test_commands_find_it_by_its_name(tmp_path: Path, url: str) -> None:
    tools = tmp_path / "tools"
    written(tools, f"{url}/lamp")
    plan = {"requestId": "p", "tools": [{"toolId": "a", "toolPath": "lamp", "input": {}}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = narratoria(tmp_path, "run", "plan.json", "--tools", "tools", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    done = narratoria(tmp_path, "lint", "plan.json", "--tools", "tools")
    assert done.returncode == 0, done.stdout + done.stderr
    done = narratoria(tmp_path, "check", "tools/lamp.tool.json")
    assert done.returncode == 0 and "only its manifest is checked" in done.stdout, done.stdout + done.stderr
