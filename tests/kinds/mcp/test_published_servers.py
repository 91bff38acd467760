"""Our client against servers that others published, from PyPI and npm; scripts/mcp_servers.sh installs them."""

import http.server
import os
import socket
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from narratoria.kinds.mcp.mcp_tools import mcp_tools
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session

SERVERS = Path(os.environ.get("NARRATORIA_SOURCE", Path(__file__).parents[3]), "build", "mcp-servers")
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6260010000000500010d0a2db40000000049454e44ae426082"
)


def python_server(name, venv="new"):
    program = SERVERS / venv / "bin" / f"mcp-server-{name}"
    if not program.exists():
        pytest.skip(
            f"mcp-server-{name} is not installed; run scripts/mcp_servers.sh python3 build/mcp-servers"
        )
    return {"command": str(program)}


def node_server(name, *args):
    script = (
        SERVERS / "npm" / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    )
    if not script.exists():
        pytest.skip(f"server-{name} is not installed; run scripts/mcp_servers.sh python3 build/mcp-servers")
    return {"command": "node", "args": [str(script), *map(str, args)]}


class Opened:
    """A registry with the tools of one server, which is ended at the end of the test."""

    def __init__(self, entry):
        self._servers = mcp_tools({"it": entry})

    async def __aenter__(self):
        await self._servers.__aenter__()
        self.session = Session()
        self.registry = ToolRegistry(self._servers)
        return self

    async def __aexit__(self, *details):
        await self._servers.__aexit__(*details)

    async def __call__(self, tool, **arguments):
        result = await self.registry.execute(f"it.{tool}", arguments, session=self.session)
        assert result.success, result.failure
        return result


async def test_time():
    async with Opened(python_server("time")) as it:
        found = await it("convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
        assert found.value["target"]["datetime"].endswith("T21:00:00+09:00")
        wrong = await it.registry.execute("it.get_current_time", {"timezone": "Atlantis"}, session=it.session)
        assert "Atlantis" in wrong.failure.message


@pytest.mark.slow
async def test_git(tmp_path):
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)
    git(["git", "init", "-q", "-b", "main"])
    git(["git", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "Begin"])
    (tmp_path / "new.txt").write_text("new")
    async with Opened({**python_server("git"), "args": ["--repository", str(tmp_path)]}) as it:
        assert "new.txt" in (await it("git_status", repo_path=str(tmp_path))).message
        assert "Begin" in (await it("git_log", repo_path=str(tmp_path))).message
        assert it.registry.get("it.git_status").effects == ()
        assert it.registry.get("it.git_commit").effects != ()


@pytest.mark.slow
async def test_fetch(tmp_path):
    (tmp_path / "index.html").write_text(
        "<html><body><article><h1>Tide</h1><p>High at six.</p></article></body></html>"
    )

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        async with Opened(
            {**python_server("fetch"), "args": ["--ignore-robots-txt", "--allow-private-ips"]}
        ) as it:
            assert len(it.registry.get("it.fetch").description) > 200
            url = f"http://127.0.0.1:{page.server_port}/index.html"
            text = (await it("fetch", url=url)).message
        page.shutdown()
    assert "High at six" in text


async def test_sqlite(tmp_path):
    entry = {**python_server("sqlite", "old"), "args": ["--db-path", str(tmp_path / "a.db")]}
    async with Opened(entry) as it:
        await it("create_table", query="CREATE TABLE keeper (name TEXT)")
        await it("write_query", query="INSERT INTO keeper VALUES ('Ada')")
        assert "Ada" in (await it("read_query", query="SELECT * FROM keeper")).message


async def test_filesystem(tmp_path):
    (tmp_path / "dot.png").write_bytes(PNG)
    async with Opened(node_server("filesystem", tmp_path)) as it:
        await it("write_file", path=str(tmp_path / "note.txt"), content="oil, wick")
        assert (tmp_path / "note.txt").read_text() == "oil, wick"
        assert "oil, wick" in (await it("read_text_file", path=str(tmp_path / "note.txt"))).message
        await it("read_media_file", path=str(tmp_path / "dot.png"))
        (asset,) = it.session.asset_records.values()
        assert it.session.assets.path_of(asset.hash).read_bytes() == PNG
        outside = await it.registry.execute("it.read_text_file", {"path": "/etc/passwd"}, session=it.session)
        assert "denied" in outside.failure.message


async def test_memory(tmp_path):
    entry = {**node_server("memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}}
    keeper = {"name": "Ada", "entityType": "keeper", "observations": ["winds the clock"]}
    async with Opened(entry) as it:
        await it("create_entities", entities=[keeper])
        assert (await it("search_nodes", query="clock")).value["entities"][0]["name"] == "Ada"
        wrong = await it.registry.execute(
            "it.create_entities", {"entities": [{"name": 3}]}, session=it.session
        )
        assert wrong.failure.code == "INVALID_ARGUMENTS"


async def test_everything():
    async with Opened(node_server("everything")) as it:
        assert (await it("echo", message="fog")).message == "Echo: fog"
        assert "42" in (await it("get-sum", a=40, b=2)).message
        await it("get-tiny-image")
        await it("get-resource-reference", resourceType="Text", resourceId=1)
        kinds = {asset.kind for asset in it.session.asset_records.values()}
        assert kinds == {"image", "text"}
        weather = await it("get-structured-content", location="New York")
        assert weather.value["temperature"]
        call = Call()
        work = {"duration": 1, "steps": 4}
        done = await it.registry.executor.execute(
            "it.trigger-long-running-operation", work, session=it.session, call=call
        )
        assert done.success
        assert [event.fields["progress"] for event in call.events][-1] == 1.0


@pytest.mark.slow
async def test_a_session_that_its_server_forgot_is_begun_again(tmp_path):
    entry = node_server("everything", "streamableHttp")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def start():
        argv, env = [entry["command"], *entry["args"]], {**os.environ, "PORT": str(port)}
        process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return process
            time.sleep(0.05)
        raise AssertionError("it did not start")

    process = start()
    try:
        async with Opened({"url": f"http://127.0.0.1:{port}/mcp"}) as it:
            assert (await it("echo", message="1")).message == "Echo: 1"
            process.kill()
            process.wait()
            process = start()
            again = await it.registry.execute("it.echo", {"message": "2"}, session=it.session)
            if (
                not again.success
            ):  # this server does not say 404, as the protocol demands; the next call succeeds
                again = await it.registry.execute("it.echo", {"message": "2"}, session=it.session)
            assert again.message == "Echo: 2", again.failure
    finally:
        process.kill()
        process.wait()
