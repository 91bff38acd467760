"""TERM and HUP end what runs tools, however it was started; an interrupt that was ignored stays ignored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOG = '{"version":"0","type":"log","level":"info","message":"ready"}'
STORY = Path(__file__).parents[2] / "stories" / "torch"


def waiting_tool(narratoria: Any) -> Path:
    """Says by a file that it runs, and by another that it was asked to end."""
    folder = narratoria.folder
    return narratoria.script(
        f"trap 'touch {folder}/asked; exit 0' TERM; echo '{LOG}'; touch {folder}/started; sleep 60 & wait"
    )


def call(narratoria: Any) -> list[object]:
    return ["call", waiting_tool(narratoria), "--events"]


def check(narratoria: Any) -> list[object]:
    return ["check", waiting_tool(narratoria)]


def run(narratoria: Any) -> list[object]:
    plan = narratoria.folder / "plan.json"
    tool = waiting_tool(narratoria)
    plan.write_text(
        json.dumps({"requestId": "r", "narrative": "", "tools": [{"toolId": "a", "toolPath": tool.name}]})
    )
    return ["run", plan]


def start(narratoria: Any, arguments: list[object], **options: Any) -> subprocess.Popen[bytes]:
    """As `sh` starts a job with `&`: interrupt and quit are ignored."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    return subprocess.Popen(
        narratoria.command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=narratoria.env,
        cwd=narratoria.folder,
        preexec_fn=ignore,
        **options,
    )


def wait_for(path: Path) -> None:
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} did not come"
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("command", [call, check, run])
def test_a_job_in_the_background_of_a_script_can_be_ended(
    narratoria: Any, command: Callable[[Any], list[object]], number: int, code: int
) -> None:
    running = start(narratoria, command(narratoria), stdin=subprocess.DEVNULL)
    try:
        wait_for(narratoria.folder / "started")
        running.send_signal(signal.SIGINT)  # it is for whoever is in the foreground
        assert running.poll() is None
        running.send_signal(number)
        _, err = running.communicate(timeout=20)
    finally:
        running.kill()
    assert (running.returncode, b"Traceback" in err) == (code, False)
    assert command is check or (narratoria.folder / "asked").exists()
    assert narratoria.leaves_nothing()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("mode", ["--terminal", "--json"])
def test_a_game_that_waits_for_a_line_can_be_ended(
    narratoria: Any, mode: str, number: int, code: int
) -> None:
    arguments: list[object] = ["play", STORY, mode, "--narrator", "rules"]
    running = start(narratoria, arguments, stdin=subprocess.PIPE)
    try:
        assert running.stdout is not None
        assert running.stdout.readline()
        time.sleep(0.5)  # the page is told, and the prompt is waited for
        running.send_signal(number)
        assert running.wait(20) == code
        assert b"Traceback" not in running.stderr.read()  # type: ignore[union-attr]
    finally:
        running.kill()
        running.communicate()
    assert narratoria.leaves_nothing()


def test_an_ignored_interrupt_stays_ignored(narratoria: Any) -> None:
    tool = narratoria.script(
        f"touch {narratoria.folder}/started; sleep 1; echo '{LOG}'; "
        """echo '{"version":"0","type":"done","ok":true}'"""
    )
    running = start(narratoria, ["call", tool, "--json"], stdin=subprocess.DEVNULL)
    wait_for(narratoria.folder / "started")
    os.kill(running.pid, signal.SIGINT)
    out, _ = running.communicate(timeout=20)
    assert (running.returncode, json.loads(out)["ok"]) == (0, True)
