"""Servers behind an address: streamable HTTP."""

import asyncio
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from narratoria.errors import TIMEOUT
from narratoria.kinds.mcp.mcp_tools import mcp_tools
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session


class HttpServer:
    """A trial server behind a port."""

    def __init__(self, script):
        self.script = script
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.process = None

    async def start(self):
        argv = [sys.executable, str(self.script), "--http", str(self.port)]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            await asyncio.sleep(0.05)
        raise AssertionError("the server did not start")

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
async def http(trial_script):
    server = HttpServer(trial_script)
    await server.start()
    yield server
    server.stop()


async def test_tools_behind_an_address_are_called_like_others(http):
    entry = {
        "type": "http",
        "url": f"{http.url}?api_key=sesame4711",
        "headers": {"Authorization": "Bearer 12345678"},
    }
    async with mcp_tools({"mcpServers": {"far": entry}}) as servers:
        registry = ToolRegistry(servers)
        assert (await registry.execute("far.add", {"a": 1, "b": 2})).value == {"total": 3}
        assert registry.get("far.add").origin == f"MCP server far: {http.url}"
        session = Session()
        assert (await registry.execute("far.picture", {}, session=session)).success
        assert len(session.asset_records) == 1
        call = Call(timeout=0.3)
        late = await registry.executor.execute("far.slow", {"seconds": 30}, session=Session(), call=call)
        assert late.failure.code == TIMEOUT
        assert (await registry.execute("far.echo", {"text": "on"})).message == "on"


async def test_a_server_that_goes_away_fails_calls_until_it_is_back(http):
    async with mcp_tools({"far": {"url": http.url}}) as servers:
        registry = ToolRegistry(servers)
        assert (await registry.execute("far.echo", {"text": "1"})).success
        http.stop()
        gone = await registry.execute("far.echo", {"text": "2"})
        assert not gone.success
        assert gone.failure.message.startswith("far.echo: ")
        await http.start()
        back = await registry.execute("far.echo", {"text": "3"})
        assert back.success, back.failure


async def test_an_address_where_nobody_listens_is_named_without_its_secrets():
    servers = mcp_tools({"far": {"url": "http://user:pa55word@127.0.0.1:9/mcp?token=abcdef123"}})
    await servers.open()
    assert "http://127.0.0.1:9/mcp" in servers.problems["far"]
    assert "pa55word" not in servers.problems["far"]
    assert "abcdef123" not in servers.problems["far"]


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_asks_for_a_login_says_what_to_do(transport):
    class Closed(BaseHTTPRequestHandler):
        def refuse(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Bearer resource_metadata="http://x/.well-known/x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_DELETE = refuse  # noqa: N815 - names of the library

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Closed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    try:
        for headers, said in (({}, "mcp-remote"), ({"Authorization": "Bearer old-token"}, "get a new one")):
            entry = {"type": transport, "url": url, "headers": headers}
            servers = mcp_tools({"mcpServers": {"far": entry}})
            await servers.open()
            await servers.close()
            assert "the MCP server 'far' asks for a login" in servers.problems["far"]
            assert "401" in servers.problems["far"] and said in servers.problems["far"]
            assert "old-token" not in servers.problems["far"]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
