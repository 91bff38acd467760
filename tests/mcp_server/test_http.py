"""The server over HTTP: who is let in, and how it ends."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from narratoria.web.sign_ins import SignIns

DONE = '{"version":"0","type":"done","ok":true}'
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


async def test_only_a_program_with_the_token_is_let_in_and_no_other_web_site(workshop):
    workshop.tool("anvil", DONE)
    right = {"Authorization": "Bearer a-token-that-nobody-guesses"}
    accepts = {"Accept": "application/json, text/event-stream"}
    async with workshop.serving() as (address, _), httpx2.AsyncClient(timeout=30) as http:
        place = urlsplit(address)
        assert place.hostname == "127.0.0.1"

        async def status(**headers: str) -> int:
            answer = await http.post(address, json=INITIALIZE, headers={**accepts, **headers})
            if answer.status_code == 401:
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
                assert "Authorization: Bearer TOKEN" in answer.text and "play" not in answer.text
            return answer.status_code

        assert await status(**right) == 200
        assert await status(Authorization="bearer a-token-that-nobody-guesses") == 200
        assert await status() == 401
        assert await status(Authorization="Bearer wrong") == 401
        assert await status(**right, Host="evil.example") == 421
        assert await status(**right, Origin="http://evil.example") == 403
        assert await status(**right, Origin="null") == 403
        assert await status(**right, Origin=f"http://{place.netloc}") == 200
        assert (await http.get(f"http://{place.netloc}/elsewhere", headers=right)).status_code == 404


async def test_a_broken_tool_or_prompt_is_named_and_hides_no_other(workshop):
    workshop.tool("anvil", DONE)
    workshop.tool("bellows", DONE, parameters={"type": "banana"})
    (workshop.tools / "broken.tool.json").write_text('{"name": ')
    (workshop.tools / "prompt").mkdir()
    (workshop.tools / "prompt" / "greet.md").write_text("Greet $who.\n")
    (workshop.tools / "prompt" / "bad name.md").write_text("Greet.\n")
    headers = {"Authorization": "Bearer a-token-that-nobody-guesses"}
    async with (
        workshop.serving() as (address, process),
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http), mode="legacy") as client,
    ):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["anvil", "undo"]
        assert [one.name for one in (await client.list_prompts()).prompts] == ["greet"]
        told = [(await process.stderr.readline()).decode() for _ in range(3)]
        assert [line.startswith("left out: ") for line in told] == [True, True, True]
        assert "bellows" in told[0] and "broken.tool.json" in told[1] and "bad name.md" in told[2]


async def test_without_a_chosen_token_one_is_printed(workshop):
    workshop.tool("anvil", DONE)
    process = await asyncio.create_subprocess_exec(
        *workshop.command("--http", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=workshop.env,
    )
    address = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().strip()
    told = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
    token = re.search(r"Bearer (\S+)", told).group(1)
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as one,
        httpx2.AsyncClient(headers=headers) as two,
    ):
        for http in (one, two):  # it serves any number of programs
            assert (await http.post(address, json=INITIALIZE)).status_code == 200
    process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(process.communicate(), 30)
    assert workshop.leaves_nothing()


async def test_a_server_that_is_told_to_end_ends_its_tools(workshop):
    begun = workshop.folder / "begun"
    workshop.tool("endless", f"touch {begun}", "sleep 600 & sleep 600")
    headers = {
        "Authorization": "Bearer a-token-that-nobody-guesses",
        "Accept": "application/json, text/event-stream",
    }
    async with (
        workshop.serving(cold=True) as (address, process),
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
    ):
        answer = await http.post(address, json=INITIALIZE)
        session = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        call = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "endless", "arguments": {}},
        }
        running = asyncio.create_task(http.post(address, json=call, headers=session))
        async with asyncio.timeout(20):
            while not begun.exists():
                await asyncio.sleep(0.02)
        process.terminate()
        await asyncio.wait_for(process.wait(), 20)
        await asyncio.gather(running, return_exceptions=True)
    assert workshop.leaves_nothing()


async def test_all_clients_share_the_session(workshop):
    workshop.tool("lighter", '{"version":"0","type":"state_patch","patch":{"lit":true}}', DONE)
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": "Bearer a-token-that-nobody-guesses"}

    def connect(address: str, http: Any, mode: str) -> Client:
        return Client(streamable_http_client(address, http_client=http), mode=mode)

    async with workshop.serving() as (address, _), httpx2.AsyncClient(headers=headers, timeout=30) as http:
        async with connect(address, http, "legacy") as first:
            await first.call_tool("lighter", {})
        async with connect(address, http, "2026-07-28") as second:
            state = await second.read_resource("narratoria://state")
            assert json.loads(state.contents[0].text) == {"lit": True}


def test_a_chosen_token_is_for_any_number_of_programs():
    sign_ins = SignIns()
    token = sign_ins.admit("chosen")
    assert sign_ins.of_program(token) is not None
    assert sign_ins.of_program(token) is not None
    assert sign_ins.of_program("another") is None
