"""Programs without an event loop: `execute_sync`, `take_turn_sync`, `run_sync`."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from narratoria import (
    PlanDocument,
    PlanExecutor,
    PlannedCall,
    Session,
    ToolContext,
    ToolRegistry,
    ToolResult,
    run_sync,
    take_turn_sync,
    tool,
)
from narratoria.errors import NarratoriaError
from narratoria.narrator.protocol import NarratorRequest

TENANT = contextvars.ContextVar("tenant", default="nobody")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


@tool
def thread_name(*, context: ToolContext) -> str:
    """Tell the thread."""
    return threading.current_thread().name


@tool
async def loop_id() -> int:
    """Tell the loop."""
    return id(asyncio.get_running_loop())


@tool
async def tenant() -> str:
    """Tell who is served."""
    return TENANT.get()


REGISTRY = ToolRegistry([add, thread_name, loop_id, tenant])


class Adder:
    name = "adder"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        call = PlannedCall(tool_id="sum", tool_path="add", input={"a": 1, "b": len(request.prompt)})
        return PlanDocument(narrative="It adds up.", tools=[call])


def test_a_call_a_plan_and_a_turn_need_no_loop() -> None:
    session = Session()
    assert REGISTRY.execute_sync("add", {"a": 1, "b": 2}, session=session).value == 3
    assert REGISTRY.executor.execute_sync(add, {"a": 1, "b": 2}, session=session).value == 3
    refused = REGISTRY.execute_sync(add, {"a": 1})
    assert refused.error is not None and refused.error.code == "INVALID_ARGUMENTS"
    turn = take_turn_sync(session, "four", narrator=Adder(), registry=REGISTRY)
    assert (turn.outcome, turn.narrative) == ("completed", "It adds up.")
    trace = run_sync(PlanExecutor(REGISTRY, session).execute(turn.plans[0]))
    assert trace.success


def test_all_calls_share_one_loop_and_see_the_callers_context() -> None:
    loops = [REGISTRY.execute_sync(loop_id, {}).value]
    thread = threading.Thread(target=lambda: loops.append(REGISTRY.execute_sync(loop_id, {}).value))
    thread.start()
    thread.join()
    assert len(loops) == 2 and len(set(loops)) == 1
    TENANT.set("Ada")
    assert REGISTRY.execute_sync(tenant, {}).value == "Ada"


def test_a_plain_handler_may_call_another_tool_and_wait() -> None:
    @tool
    def twice(number: int) -> int | None:
        """Double."""
        return REGISTRY.execute_sync(add, {"a": number, "b": number}).value

    assert ToolRegistry([twice]).execute_sync(twice, {"number": 4}).value == 8


def test_an_exception_that_passes_through_reaches_the_caller() -> None:
    async def fail() -> None:
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here"):
        run_sync(fail())


async def test_inside_a_running_loop_it_says_what_to_write() -> None:
    for call in (
        lambda: REGISTRY.execute_sync(add, {"a": 1, "b": 2}),
        lambda: take_turn_sync(Session(), "x", narrator=Adder(), registry=REGISTRY),
    ):
        with pytest.raises(NarratoriaError, match="await it here instead"):
            call()
    asking = tool(name="asking", description="Ask from a handler.")(_ask_inside)
    result = await ToolRegistry([asking]).execute(asking, {})
    assert "await it here instead" in result.message


async def _ask_inside(*, context: ToolContext) -> ToolResult[int]:
    return REGISTRY.execute_sync(add, {"a": 1, "b": 2})


def program(folder: Path, text: str) -> Path:
    tool_file = folder / "sleeper.sh"
    tool_file.write_text("#!/bin/sh\necho $$ > pid\nsleep 600\n")
    tool_file.chmod(0o755)
    file = folder / "program.py"
    head = "from narratoria import *\nregistry = ToolRegistry([process_tool('sleeper.sh')])\n"
    file.write_text(head + textwrap.dedent(text))
    return file


def started(folder: Path, process: subprocess.Popen[str]) -> int:
    while not (folder / "pid").exists() or not (folder / "pid").read_text().endswith("\n"):
        assert process.poll() is None, process.communicate()
    return int((folder / "pid").read_text())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_cancels_the_call_and_ends_its_process(tmp_path: Path) -> None:
    file = program(
        tmp_path,
        """
        try:
            registry.execute_sync("sleeper", {})
        except KeyboardInterrupt:
            print("interrupted")
        """,
    )
    process = subprocess.Popen(
        [sys.executable, str(file)], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    pid = started(tmp_path, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("interrupted\n", "", 0)
    assert not is_alive(pid)


def test_nothing_is_left_when_the_program_ends(tmp_path: Path) -> None:
    file = program(
        tmp_path,
        """
        import asyncio, threading, time
        from pathlib import Path

        def call():
            try:
                registry.execute_sync("sleeper", {})
            except asyncio.CancelledError:
                pass

        threading.Thread(target=call, daemon=True).start()
        while not Path("pid").exists():
            time.sleep(0.01)
        """,
    )
    process = subprocess.Popen(
        [sys.executable, str(file)], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    pid = started(tmp_path, process)
    out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("", "", 0)
    assert not is_alive(pid)


def test_a_forked_child_has_a_loop_of_its_own() -> None:
    program_text = textwrap.dedent(
        """
        import os
        from narratoria import ToolRegistry, tool
        @tool
        async def one() -> int:
            "One."
            return 1
        registry = ToolRegistry([one])
        registry.execute_sync(one, {})
        if pid := os.fork():
            os.waitpid(pid, 0)
        print(registry.execute_sync(one, {}).value, flush=True)
        """
    )
    done = subprocess.run([sys.executable, "-c", program_text], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.returncode) == ("1\n1\n", 0), done.stderr
