"""The server over standard input and output: nothing but the protocol there, and an end without remains."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from tests import warm_start

from narratoria import ToolResult, tool
from narratoria.mcp_server.catalogue import listed
from narratoria.mcp_server.results import answer_of
from narratoria.mcp_server.stdio_server import _encoded
from narratoria.session.assets import AssetStore

DONE = '{"version":"0","type":"done","ok":true}'


def start(workshop: Any, *arguments: object, cold: bool = False) -> subprocess.Popen[bytes]:
    """The server; one that does not answer is killed, so that nobody waits for it."""
    server = subprocess.Popen(
        workshop.command(*arguments, cold=cold),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=workshop.env,
        cwd=workshop.folder,
    )
    limit = threading.Timer(90, server.kill)
    limit.daemon = True
    limit.start()
    return server


def say(server: subprocess.Popen[bytes], method: str, number: int | None = None, **params: Any) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def hear(server: subprocess.Popen[bytes], number: int) -> dict[str, Any]:
    assert server.stdout is not None
    while True:
        message = json.loads(server.stdout.readline())
        if message.get("id") == number:
            return dict(message)


def greet(server: subprocess.Popen[bytes], **capabilities: Any) -> None:
    say(
        server,
        "initialize",
        0,
        protocolVersion="2025-11-25",
        capabilities=capabilities,
        clientInfo={"name": "test", "version": "1"},
    )
    assert hear(server, 0)["result"]["protocolVersion"] == "2025-11-25"
    say(server, "notifications/initialized")


def until(holds: Any) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.parametrize(
    "ending",
    ["eof", "SIGKILL", *[pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGINT")]],
)
def test_the_server_ends_and_with_it_every_tool(workshop, ending):
    begun = workshop.folder / "begun"
    workshop.tool("endless", f"touch {begun}", "sleep 600 & sleep 600")
    server = start(workshop, cold=True)
    greet(server)
    say(server, "tools/call", 1, name="endless", arguments={})
    until(begun.exists)
    if ending == "eof":
        server.stdin.close()
    else:
        server.send_signal(getattr(signal, ending))
    code = server.wait(timeout=20)
    assert code == {"eof": 0, "SIGTERM": 143, "SIGINT": 130, "SIGKILL": -9}[ending]
    assert workshop.leaves_nothing()
    for stream in (server.stdout, server.stderr, server.stdin):
        stream.close()


def state(server: subprocess.Popen[bytes], number: int) -> Any:
    say(server, "resources/read", number, uri="narratoria://state")
    return json.loads(hear(server, number)["result"]["contents"][0]["text"])


def test_what_was_answered_survives_a_kill_and_what_was_cut_short_leaves_nothing(workshop):
    begun = workshop.folder / "begun"
    patch = '{"version":"0","type":"state_patch","patch":{"%s":true}}'
    workshop.tool("lighter", patch % "lit", DONE)
    workshop.tool("endless", patch % "never", f"touch {begun}", "sleep 600")
    server = start(workshop, "--session", "lamp", cold=True)
    greet(server)
    say(server, "tools/call", 1, name="lighter", arguments={})
    hear(server, 1)
    say(server, "tools/call", 2, name="endless", arguments={})
    until(begun.exists)
    server.kill()
    server.communicate()
    assert workshop.leaves_nothing()
    server = start(workshop, "--session", "lamp")
    greet(server)
    assert state(server, 1) == {"lit": True}
    say(server, "tools/call", 2, name="undo", arguments={})
    hear(server, 2)
    assert state(server, 3) == {}
    server.communicate(timeout=20)
    assert server.returncode == 0


def test_a_line_that_is_no_message_is_answered_and_the_client_does_not_wait(workshop):
    workshop.tool("anvil", DONE)
    server = start(workshop)
    greet(server)
    say(server, "tools/call", 1, name="anvil", arguments={"text": "\ud800"})
    assert hear(server, 1)["error"]["code"] == -32600
    for line in (
        b"no json",
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"[]",
    ):
        server.stdin.write(line + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        assert answer["id"] is None
        assert answer["error"]["code"] in (-32700, -32600)
    say(server, "tools/call", 2, name="anvil", arguments={})
    assert hear(server, 2)["result"]["isError"] is False
    _, err = server.communicate(timeout=20)
    assert b"a line of the MCP client was refused: this line is not JSON: no json" in err


def test_names_of_files_that_are_not_utf_8_are_shown_legibly_and_the_others_served(workshop):
    workshop.tools = Path(os.fsdecode(os.fsencode(workshop.folder) + b"/d\xffir"))
    workshop.tools.mkdir()
    for name in ("good", os.fsdecode(b"b\xffd")):
        workshop.tool(name, DONE)
    skill = workshop.folder / "skills" / "two" / "references"
    skill.mkdir(parents=True)
    (skill.parent / "SKILL.md").write_text("---\nname: two\ndescription: Two.\n---\nRead.\n")
    (skill / os.fsdecode(b"p\xff.md")).write_text("A page.")
    server = start(workshop, "--skills", skill.parents[1])
    greet(server)
    say(server, "tools/list", 1)
    tools = hear(server, 1)["result"]["tools"]
    assert [one["name"] for one in tools] == ["b-d", "good", "undo"]
    assert tools[0]["description"] == "The executable b\ufffdd."
    say(server, "skills/list", 2)
    (listed,) = hear(server, 2)["result"]["skills"]
    say(server, "resources/read", 3, uri=listed["resources"][1]["uri"])
    assert hear(server, 3)["result"]["contents"][0]["text"] == "A page."
    say(server, "tools/call", 4, name="b-d", arguments={})
    assert hear(server, 4)["result"]["isError"] is False
    server.communicate(timeout=20)


def test_a_message_that_is_no_json_is_an_error_to_its_client_alone() -> None:
    half = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": [{"name": "a\ud800"}]})
    assert json.loads(_encoded(half)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"tools": [{"name": "a\ufffd"}]},
    }
    never = types.JSONRPCResponse(jsonrpc="2.0", id=2, result={"value": object()})
    assert json.loads(_encoded(never))["error"]["code"] == types.INTERNAL_ERROR
    assert _encoded(types.JSONRPCNotification(jsonrpc="2.0", method="x", params={"value": object()})) == b""


def test_a_value_that_is_no_json_is_an_error_of_the_call() -> None:
    @tool(description="Returns half a character.", name="half")
    def half() -> dict[str, str]:
        return {"x": "half \ud800"}

    result = ToolResult.ok({"x": "half \ud800"}, message="m")
    answer = answer_of(result, listed(half), (), AssetStore())
    assert answer["isError"] is True
    assert "cannot be sent" in answer["content"][0]["text"]


def test_a_client_that_fails_to_ask_the_person_gets_the_choices_as_text(workshop):
    choice = '{"version":"0","type":"ui_event","event":"narrative_choice","payload":{"choices":["Open"]}}'
    workshop.tool("door", choice, DONE)
    server = start(workshop)
    greet(server, elicitation={})
    say(server, "tools/call", 1, name="door", arguments={})
    asked = json.loads(server.stdout.readline())
    assert asked["method"] == "elicitation/create"
    failed = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32603, "message": "no window"}}
    server.stdin.write(json.dumps(failed).encode() + b"\n")
    server.stdin.flush()
    assert hear(server, 1)["result"]["content"][-1]["text"] == "Choices: Open"
    server.communicate(timeout=20)


def test_a_silent_client_does_not_keep_the_server_from_ending(workshop):
    workshop.tool("anvil", DONE)
    server = start(workshop, cold=True)
    greet(server)
    server.terminate()
    assert server.wait(timeout=20) == 143
    assert workshop.leaves_nothing()
    server.communicate()


def test_only_messages_are_on_standard_output(workshop):
    workshop.tool(
        "loud",
        "echo to nobody >&2",
        'echo \'{"version":"0","type":"log","level":"info","message":"hi"}\'',
        DONE,
    )
    server = start(workshop)
    greet(server)
    say(server, "tools/call", 1, name="loud", arguments={})
    hear(server, 1)
    server.stdin.write(b"this is no message\n\n")
    say(server, "tools/list", 2)
    assert len(hear(server, 2)["result"]["tools"]) == 2
    out, err = server.communicate(timeout=20)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    assert b"to nobody" not in out + err
    assert server.returncode == 0


def test_a_large_answer_is_whole_although_the_client_reads_late(workshop):
    text = "x" * 3_000_000
    patch = workshop.folder / "patch"
    patch.write_text(json.dumps({"version": "0", "type": "state_patch", "patch": {"text": text}}) + "\n")
    limits = {"maxLineBytes": 10_000_000, "maxBytes": 10_000_000}
    workshop.tool("large", f"cat {patch}", DONE, limits=limits)
    server = start(workshop)
    greet(server)
    say(server, "tools/call", 1, name="large", arguments={})
    time.sleep(1)  # the pipe is full long before the answer is written
    assert hear(server, 1)["result"]["structuredContent"] == {"text": text}
    server.communicate(timeout=20)


def test_streams_that_do_not_block_are_read_and_written_all_the_same(workshop):
    workshop.tool("anvil", DONE)
    ours, theirs = socket.socketpair()  # what Node gives to a program it starts
    theirs.setblocking(False)
    server = subprocess.Popen(
        workshop.command(), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=workshop.env
    )
    theirs.close()
    with ours, ours.makefile("rwb") as stream:
        server.stdin, server.stdout = stream, stream  # type: ignore[assignment]
        greet(server)
        say(server, "tools/call", 1, name="anvil", arguments={})
        assert hear(server, 1)["result"]["isError"] is False
        server.stdin = server.stdout = None
        ours.shutdown(socket.SHUT_WR)
        assert server.wait(timeout=20) == 0


def test_a_message_may_be_long_and_one_that_is_too_long_is_refused_alone(workshop):
    workshop.tool("anvil", DONE)
    server = start(workshop)
    greet(server)
    say(server, "tools/call", 1, name="anvil", arguments={"text": "x" * 20_000_000})
    assert hear(server, 1)["result"]["isError"] is False
    piece = b"x" * 1_000_000
    for _ in range(70):
        server.stdin.write(piece)
    server.stdin.write(b"\n")
    say(server, "tools/list", 2)
    assert len(hear(server, 2)["result"]["tools"]) == 2
    server.communicate(timeout=20)


@pytest.mark.slow
def test_a_tool_that_says_more_than_its_client_reads_waits_for_it(workshop):
    """The log is read only after the tool had time to say it all; the server's memory stays bounded."""
    line = '{"version":"0","type":"log","level":"info","message":"%s"}' % ("x" * 1000)
    workshop.tool("chatty", f"for n in $(seq 20000); do echo '{line}'; done", DONE, timeout=300)
    server = start(workshop, cold=True)
    greet(server)
    say(server, "tools/call", 1, name="chatty", arguments={})
    time.sleep(3)
    used = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert used < 250_000_000
    count = 0
    while (message := json.loads(server.stdout.readline())).get("id") != 1:
        count += message["method"] == "notifications/message"
    assert count == 20000
    server.communicate(timeout=20)


def test_what_is_wrong_is_said_on_standard_error(workshop):
    def told(*arguments: object) -> tuple[int, str, str]:
        ended = subprocess.run(
            workshop.command(*arguments), input=b"", capture_output=True, env=workshop.env, timeout=60
        )
        return ended.returncode, ended.stdout.decode(), ended.stderr.decode()

    code, out, err = told()
    assert (code, out) == (1, "")
    assert "no tool in this folder" in err
    assert json.loads(warm_start.run("sessions", "list", "--json", env=workshop.env, kind="mcp").stdout) == []
    workshop.tool("anvil", DONE)
    code, out, err = told("--http", "house")
    assert (code, out) == (2, "")
    assert "is no address" in err
    code, _, err = told("--story", "torch", "--tools", workshop.tools)
    assert code == 2
    assert "exclude each other" in err


def test_without_the_extra_the_command_that_adds_it_is_named(workshop):
    workshop.tool("anvil", DONE)
    hidden = workshop.folder / "hidden"
    (hidden / "mcp").mkdir(parents=True)
    (hidden / "mcp" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')"
    )
    env = {**workshop.env, "PYTHONPATH": os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])}
    ended = subprocess.run(workshop.command(cold=True), input=b"", capture_output=True, env=env, timeout=60)
    assert ended.returncode == 1
    assert b"pip install 'narratoria[mcp]'" in ended.stderr
