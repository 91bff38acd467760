"""Approvals at the command line: asked on a terminal, refused with a clear sentence elsewhere, answered beforehand."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import subprocess
import termios
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.cli.real_terminal import Terminal

from narratoria.cli.stdin_lines import answer_to

TOOL = """#!/usr/bin/env python3
import json, sys
given = json.load(sys.stdin)["input"]
print(json.dumps({"version": "0", "type": "state_patch", "patch": {"paid": given}}), flush=True)
print(json.dumps({"version": "0", "type": "done", "ok": True, "summary": "Paid."}), flush=True)
"""
MANIFEST = {
    "name": "pay",
    "description": "Pay somebody.",
    "approval": "always",
    "parameters": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["to"],
        "additionalProperties": False,
    },
}
STORY = 'title = "T"\npremise = "P"\nnarrator = ["rules", "template"]\n[opening]\nnarrative = "N"\n'
RULES = """
[[rule]]
id = "pay"
patterns = ["pay ..."]
narrative = "You count the coins."
calls = [{ tool = "pay", input = { to = "ada" } }]
"""


@pytest.fixture
def pay(tmp_path: Path) -> Path:
    folder = tmp_path / "story" / "tools"
    folder.mkdir(parents=True)
    (folder / "pay").write_text(TOOL)
    (folder / "pay").chmod(0o755)
    (folder / "pay.tool.json").write_text(json.dumps(MANIFEST))
    (folder.parent / "story.toml").write_text(STORY)
    (folder.parent / "narrator.toml").write_text(RULES)
    plan = {"requestId": "p", "tools": [{"toolId": "a", "toolPath": "tools/pay", "input": {"to": "ada"}}]}
    (folder.parent / "plan.json").write_text(json.dumps(plan))
    return folder / "pay"


def typed(narratoria: Any, *arguments: object, answers: list[tuple[str, str]]) -> str:
    """Start a command on a terminal; type each answer when its question is shown, and return all that was shown."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        narratoria.command(*arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**narratoria.env, "TERM": "xterm-256color", "NO_COLOR": "1"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl+C is a signal
    )
    os.close(theirs)
    shown, told = b"", 0
    try:
        while piece := os.read(ours, 65536):
            shown += piece
            while answers and answers[0][0].encode() in shown[told:]:
                question, answer = answers.pop(0)
                told = shown.index(question.encode(), told) + len(question)
                os.write(ours, f"{answer}\n".encode())
    except OSError:  # what Linux says when the other side is closed
        pass
    finally:
        os.close(ours)
        running.wait(30)
    assert answers == []
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")


INPUT = ("--input", '{"to": "ada", "amount": 500}')


def test_call_asks_on_a_terminal(narratoria: Any, pay: Path) -> None:
    shown = typed(narratoria, "call", pay, *INPUT, answers=[("[a/e/r]", "a")])
    assert '? pay  it always asks first\n  {"to":"ada","amount":500}' in shown
    assert "✓ Paid." in shown


def test_an_edit_is_checked_and_asked_for_again(narratoria: Any, pay: Path) -> None:
    answers = [
        ("[a/e/r]", "what?"),
        ("[a/e/r]", "e"),
        ("> ", '{"to": "ada", "amount": "five"}'),
        ("> ", "five"),
        ("> ", '{"to": "ada", "amount": 5}'),
    ]
    shown = typed(narratoria, "call", pay, *INPUT, answers=answers)
    assert "amount" in shown and '"amount":5}' in shown.rpartition("state")[2]


def test_a_refusal_fails_the_call_with_its_reason(narratoria: Any, pay: Path) -> None:
    shown = typed(narratoria, "call", pay, *INPUT, answers=[("[a/e/r]", "r"), ("why?", "too dear")])
    assert "REFUSED" in shown and "too dear" in shown


def test_without_a_terminal_a_call_is_refused_with_what_to_do(narratoria: Any, pay: Path) -> None:
    ended = narratoria("call", pay, *INPUT, "--json")
    assert ended.code == 1
    assert ended.json["errorCode"] == "REFUSED"
    assert "this is no terminal" in ended.json["error"] and "--approve pay or --yes" in ended.json["error"]


@pytest.mark.parametrize("option", [["--yes"], ["--approve", "pay"]])
def test_an_option_answers_beforehand(narratoria: Any, pay: Path, option: list[str]) -> None:
    assert narratoria("call", pay, *INPUT, *option, "--json").json["ok"] is True
    ran = narratoria("run", pay.parents[1] / "plan.json", *option, "--json")
    assert ran.code == 0 and ran.json["success"] is True
    played = narratoria("play", pay.parents[1], "--terminal", "--json", *option, stdin="pay ada\n")
    assert json.loads(played.out.splitlines()[-1])["state"] == {"paid": {"to": "ada"}}


def test_the_option_for_another_tool_does_not_count(narratoria: Any, pay: Path) -> None:
    assert narratoria("call", pay, *INPUT, "--approve", "play", "--json").json["errorCode"] == "REFUSED"


def test_run_asks_on_a_terminal(narratoria: Any, pay: Path) -> None:
    shown = typed(narratoria, "run", pay.parents[1] / "plan.json", answers=[("[a/e/r]", "a")])
    assert "✓ the plan succeeded" in shown


def test_play_asks_the_player(narratoria: Any, pay: Path) -> None:
    answers = [("> ", "pay ada"), ("[a/e/r]", "r"), ("why?", "too dear"), ("> ", "/quit")]
    shown = typed(narratoria, "play", pay.parents[1], "--terminal", answers=answers)
    assert "? pay  it always asks first" in shown
    assert "[a/e/r] r\n  why? too dear\n" in shown  # a player sees what they type


def test_the_page_needs_no_such_option(narratoria: Any, pay: Path) -> None:
    ended = narratoria("play", pay.parents[1], "--yes")
    assert ended.code == 2 and "the page asks the player" in ended.err


def test_retrying_a_turn_asks_too(narratoria: Any, pay: Path) -> None:
    played = narratoria("play", pay.parents[1], "--terminal", "--json", "--yes", stdin="pay ada\n")
    session = json.loads(played.out.splitlines()[-1])["session"]
    again = narratoria("sessions", "retry", session, "--yes", "--json")
    assert again.json["state"] == {"paid": {"to": "ada"}}
    shown = typed(narratoria, "sessions", "retry", session, answers=[("[a/e/r]", "a")])
    assert "? pay  it always asks first" in shown


def test_ctrl_c_ends_the_question_with_its_turn_and_the_game_goes_on(narratoria: Any, pay: Path) -> None:
    answers = [
        ("> ", "pay ada"),
        ("[a/e/r]", "\x03"),
        ("the turn was stopped", "pay bo"),
        ("[a/e/r]", "a"),
        ("Paid.", "/quit"),
    ]
    shown = typed(narratoria, "play", pay.parents[1], "--terminal", answers=answers)
    assert shown.count("? pay  it always asks first") == 2


def test_a_question_that_waited_when_the_game_was_killed_comes_again_with_the_words(
    narratoria: Any, pay: Path
) -> None:
    first = Terminal(narratoria, pay.parents[1])
    try:
        first.sees("> ")
        first.type("pay ada\r")
        first.sees("[a/e/r]")
        first.process.kill()
        first.process.wait(20)
    finally:
        first.close()
    session = narratoria("sessions", "list", "--json").json[0]["id"]
    again = Terminal(narratoria, "--session", session)
    try:
        assert again.sees("? pay").rstrip().endswith("> pay ada  (it goes on)")
        again.sees("[a/e/r]")
        again.type("a\r")
        again.sees("Paid.")
    finally:
        again.close()


async def test_other_calls_run_on_while_an_answer_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[3] &= ~(termios.ICANON | termios.ECHO)  # as in a game
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    with os.fdopen(theirs) as stdin, os.fdopen(ours, "w") as keys:
        monkeypatch.setattr("sys.stdin", stdin)
        asked = threading.Event()
        waiting = asyncio.create_task(answer_to(asked.set))
        await asyncio.to_thread(asked.wait)
        for _ in range(3):
            keys.write("no")  # half a line
            keys.flush()
            await asyncio.wait_for(asyncio.sleep(0.02), 5)
        keys.write("\n")
        keys.flush()
        assert await waiting == "nonono"
