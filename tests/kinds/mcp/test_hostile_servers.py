"""Servers that hang, die, make noise and leave children: failed clearly, started again, never orphaned."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from narratoria.errors import OUTPUT_LIMIT, PROTOCOL_ERROR, TIMEOUT
from narratoria.kinds.mcp import server_process
from narratoria.kinds.mcp.connection import ServerUnavailable
from narratoria.kinds.mcp.mcp_tools import mcp_tools
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.tools.retry import NoBackoff, RetryPolicy

# A server without any package: it answers, and then does what the test wants.
RAW = """
import json, os, sys, time
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n"); sys.stdout.flush()
def answer(asked, result):
    send(id=asked["id"], result=result)
def behave(asked):
    raise SystemExit(0)
TOOLS = [{"name": "go", "inputSchema": {"type": "object"}}]
%s
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if method == "initialize":
        answer(asked, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "raw", "version": "1"}})
    elif method == "tools/list":
        answer(asked, {"tools": TOOLS})
    elif method == "ping":
        answer(asked, {})
    elif method == "tools/call":
        behave(asked)
    elif "id" in asked:
        send(id=asked["id"], error={"code": -32601, "message": "Method not found"})
"""


def raw(place, source):
    return place.servers(script=place.script(RAW % textwrap.dedent(source)))


async def opened(servers):
    registry = ToolRegistry()
    servers.follow(registry)
    return registry


async def test_a_server_that_hangs_is_ended_and_started_again(trial, place):
    before = (await trial.execute("trial.pid", {})).value
    result = await trial.executor.execute("trial.hang", {}, session=Session(), call=Call(timeout=0.5))
    assert result.failure.code == TIMEOUT
    again = await trial.execute("trial.pid", {})  # waits for the sign of life that does not come
    assert again.success
    assert again.value != before
    assert await place.becomes(lambda: len(place.alive()) == 1)


async def test_a_server_that_dies_fails_the_call_with_its_last_words_and_is_started_again(trial, place):
    result = await trial.execute("trial.die", {"status": 3})
    assert not result.success
    assert "exited with status 3; stderr ends:" in result.failure.message
    assert "the server ran into a wall" in result.failure.message
    session = Session()
    notices = []
    session.notice = lambda notice: notices.append(notice.message)
    assert (await trial.execute("trial.echo", {"text": "back"}, session=session)).message == "back"
    assert notices == ["the MCP server 'trial' had ended and was started again"]


async def test_a_call_that_may_have_been_carried_out_is_not_tried_again_unless_it_only_reads(trial):
    policy = RetryPolicy(2, NoBackoff())
    died = Call(policy=policy)
    await trial.executor.execute("trial.die", {}, session=Session(), call=died)
    assert died.attempts == 1
    late = Call(policy=policy, timeout=0.2)
    assert (await trial.execute("trial.echo", {"text": "back"})).success
    await trial.executor.execute("trial.slow", {"seconds": 60}, session=Session(), call=late)
    assert late.attempts == 3


async def test_a_server_that_was_killed_while_idle_is_started_again(trial, place):
    (pid,) = place.alive()
    os.kill(pid, signal.SIGKILL)
    assert await place.becomes(lambda: not place.alive())
    await asyncio.sleep(0.3)
    assert (await trial.execute("trial.echo", {"text": "back"})).success


async def test_other_calls_of_a_server_that_dies_fail_too_and_say_why(trial):
    waiting = asyncio.create_task(trial.execute("trial.slow", {"seconds": 60}))
    await asyncio.sleep(0.2)
    await trial.execute("trial.die", {"status": 0})
    result = await waiting
    assert "exited with status 0" in result.failure.message


async def test_noise_on_stdout_is_skipped_and_reported_once(place):
    source = """
    print("Welcome to the raw server!", flush=True)
    def behave(asked):
        for line in asked["params"]["arguments"].get("lines", []):
            print(line, flush=True)
        answer(asked, {"content": [{"type": "text", "text": "noisy"}]})
    """
    async with mcp_tools(raw(place, source)) as servers:
        registry = await opened(servers)
        session = Session()
        notices = []
        session.notice = lambda notice: notices.append(notice.message)
        lines = ["DEBUG: calling", '{"level": "info", "msg": "a log in JSON"}']
        assert (await registry.execute("trial.go", {"lines": lines}, session=session)).message == "noisy"
        assert (await registry.execute("trial.go", {}, session=session)).success
    (notice,) = notices
    assert "what is no message, 3 lines so far" in notice
    assert "`Welcome to the raw server!`, `DEBUG: calling`" in notice


async def test_a_server_of_the_official_package_may_greet(place):
    async with mcp_tools(place.servers("--noise")) as servers:
        assert (await (await opened(servers)).execute("trial.echo", {"text": "x"})).success


async def test_endless_noise_ends_the_server(place):
    source = """
    def behave(asked):
        while True:
            print("DEBUG: and on")
    """
    async with mcp_tools(raw(place, source)) as servers:
        result = await (await opened(servers)).execute("trial.go", {})
    assert result.failure.code == PROTOCOL_ERROR
    assert "10,001 lines to stdout that are no messages, such as `DEBUG: and on`" in result.failure.message


async def test_a_flood_of_stderr_holds_up_nothing_and_is_kept_in_part(trial):
    result = await trial.execute("trial.flood", {"megabytes": 8})
    assert result.message == "flooded"
    process = next(iter(trial.servers._sources["trial"].connection._lives.values())).process
    assert len(process._stderr) <= server_process.STDERR_BYTES


async def test_children_of_a_server_end_with_it_even_in_their_own_session(place):
    async with mcp_tools(place.plain_servers()) as servers:
        registry = await opened(servers)
        child = (await registry.execute("trial.bear", {})).value
        child = child["result"] if isinstance(child, dict) else child
        assert child in place.alive()
    assert await place.becomes(lambda: not place.alive())


async def test_children_of_a_server_that_died_end_too(trial, place):
    await trial.execute("trial.bear", {})
    await trial.execute("trial.die", {})
    assert await place.becomes(lambda: not place.alive())


async def test_a_server_that_does_not_start_is_named_with_its_last_words_but_no_secret(place):
    with pytest.raises(ServerUnavailable) as refusal:
        async with mcp_tools(place.plain_servers("--broken", env={"LICENSE_KEY": "abc-secret-123"})):
            pass
    assert "did not start" in str(refusal.value)
    assert "exited with status 7; stderr ends: cannot start: no license ***" in str(refusal.value)
    assert "abc-secret-123" not in str(refusal.value)


async def test_a_program_that_does_not_exist_is_named(place):
    servers = mcp_tools({"x": {"command": "no-such-program-here"}})
    await servers.open()
    assert servers.problems == {
        "x": "the MCP server 'x' could not be started: the program 'no-such-program-here' is not on the PATH; "
        "install it, or give its path"
    }


async def test_a_server_that_never_answers_is_given_up_in_time(place):
    entry = place.entry(script=place.script("import time; time.sleep(600)"))
    servers = mcp_tools({"deaf": {**entry, "narratoria": {"startTimeout": 0.5}}})
    await servers.open()
    assert "it was not ready within 0.5 s" in servers.problems["deaf"]
    assert await place.becomes(lambda: not place.alive())


async def test_one_broken_server_hides_no_other(place):
    both = {"good": place.plain(), "bad": place.plain("--broken")}
    servers = mcp_tools(both)
    try:
        await servers.open()
        assert list(servers.problems) == ["bad"]
        assert "good.echo" in {tool.name for tool in servers}
    finally:
        await servers.close()


async def test_a_message_without_an_end_is_cut_off(place, monkeypatch):
    monkeypatch.setattr(server_process, "MESSAGE_BYTES", 1_000_000)
    async with mcp_tools(
        raw(place, "def behave(asked):\n    while True: sys.stdout.write('x' * 65536)")
    ) as servers:
        result = await (await opened(servers)).execute("trial.go", {})
    assert result.failure.code == OUTPUT_LIMIT
    assert "sent a message of more than 1,000,000 bytes" in result.failure.message


async def test_lists_in_lists_are_measured_before_they_are_decoded(place):
    source = """
    def behave(asked):
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":[' % asked["id"])
        sys.stdout.write("[]," * 3_000_000 + "0]}}\\n"); sys.stdout.flush()
    """
    async with mcp_tools(raw(place, source)) as servers:
        result = await (await opened(servers)).execute("trial.go", {})
    assert result.failure.code == OUTPUT_LIMIT


@pytest.mark.slow  # it waits for the end
async def test_a_server_that_reads_nothing_more_cannot_hold_up_the_end(place):
    source = """
    def behave(asked):
        time.sleep(600)
    """
    async with mcp_tools(raw(place, source)) as servers:
        registry = await opened(servers)
        big = {"text": "x" * 1_000_000}
        calls = [
            registry.executor.execute("trial.go", big, session=Session(), call=Call(timeout=0.5))
            for _ in range(3)
        ]
        results = await asyncio.wait_for(asyncio.gather(*calls), 30)
        assert {one.failure.code for one in results} == {TIMEOUT}


async def test_a_result_that_is_none_is_a_fault_of_the_protocol(place):
    source = """
    def behave(asked):
        answer(asked, {"content": "not a list"})
    """
    async with mcp_tools(raw(place, source)) as servers:
        result = await (await opened(servers)).execute("trial.go", {})
    assert result.failure.code == PROTOCOL_ERROR


async def test_a_schema_that_cannot_be_read_is_no_reason_to_refuse_a_tool(place):
    source = """
    TOOLS = [{"name": "go", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}}]
    def behave(asked):
        answer(asked, {"content": [{"type": "text", "text": json.dumps(asked["params"]["arguments"])}]})
    """
    async with mcp_tools(raw(place, source)) as servers:
        result = await (await opened(servers)).execute("trial.go", {"a": 1})
        assert result.value == {"a": 1}
        assert servers.notes[0].startswith("trial.go: its arguments are checked by the server only, since")


async def test_an_endless_list_of_tools_ends(place):
    source = """
    calls = 0
    _answer = answer
    def answer(asked, result):
        global calls
        if "tools" in result:
            calls += 1
            result = {"tools": [{"name": f"t{calls}", "inputSchema": {"type": "object"}}], "nextCursor": str(calls)}
        _answer(asked, result)
    """
    async with mcp_tools(raw(place, source)) as servers:
        assert len(servers) == 100


async def test_a_changed_list_changes_the_registry(trial):
    assert trial.has("trial.long_description")
    kept = trial.get("trial.echo")
    assert (await trial.execute("trial.grow", {})).success
    for _ in range(200):
        if trial.has("trial.grown"):
            break
        await asyncio.sleep(0.05)
    assert (await trial.execute("trial.grown", {})).message == "I am new"
    assert not trial.has("trial.long_description")
    assert trial.get("trial.echo") is kept


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_runtime_is_killed(place, number):
    program = textwrap.dedent(
        """
        import asyncio, json, sys
        from narratoria.kinds.mcp.mcp_tools import mcp_tools
        from narratoria.run.registry import ToolRegistry

        async def main():
            async with mcp_tools(json.loads(sys.argv[1])) as servers:
                registry = ToolRegistry(servers)
                await registry.execute("trial.bear", {})
                print("ready", flush=True)
                await registry.execute("trial.slow", {"seconds": 600})

        asyncio.run(main())
        """
    )
    import json

    runtime = subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(place.plain_servers())], stdout=subprocess.PIPE, text=True
    )
    try:
        assert runtime.stdout.readline() == "ready\n"
        assert len(place.alive()) == 2
    finally:
        runtime.send_signal(number)
        runtime.wait()
        runtime.stdout.close()
    assert place.eventually(lambda: not place.alive())


def test_a_loop_that_ends_ends_its_servers(place):
    servers = mcp_tools(place.plain_servers())
    registry = ToolRegistry()
    servers.follow(registry)

    async def one():
        await servers.open()
        return (await registry.execute("trial.echo", {"text": "1"})).message

    assert asyncio.run(one()) == "1"
    assert place.eventually(lambda: not place.alive())

    async def two():
        return (await registry.execute("trial.echo", {"text": "2"})).message

    assert asyncio.run(two()) == "2"  # started again, in the new loop
