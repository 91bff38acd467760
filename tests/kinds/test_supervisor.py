"""One process from launch to burial."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from narratoria.events import Log, ToolEvent
from narratoria.kinds.ndjson import Limits
from narratoria.kinds.process import listeners, marks, platform
from narratoria.kinds.process.launch import LaunchRefused, NotExecutable, ToolMissing
from narratoria.kinds.process.supervisor import run_process

DONE = '{"version":"0","type":"done","ok":true}'


def open_descriptors() -> set[str]:
    gc.collect()  # loops of earlier tests go with what they had open
    return {f"{p.name}→{p.readlink()}" for p in Path("/proc/self/fd").iterdir() if p.is_symlink()}


async def test_input_goes_in_events_come_out_and_the_exit_is_told(trial: Any) -> None:
    outcome = await trial.bash(
        f"""
        read -r request; echo "got $request" >&2
        echo '{{"version":"0","type":"log","level":"info","message":"hi"}}'
        echo '{DONE}'
        """,
        stdin=b'{"input":{"a":1}}\n',
    )
    assert [type(e).__name__ for e in trial.events] == ["Log", "Done"]
    assert outcome.stderr == 'got {"input":{"a":1}}\n'
    assert (outcome.exit_code, outcome.signal, outcome.timed_out, outcome.lingered) == (0, None, False, False)
    assert outcome.done is trial.events[-1]
    assert 0 < outcome.duration < 10


async def test_input_larger_than_a_pipe_arrives_whole(either: Any) -> None:
    payload = json.dumps({"input": "é" * 2_000_000}).encode()
    outcome = await either.python(
        "import sys\n"
        "n = len(sys.stdin.buffer.read())\n"
        'print(\'{"version":"0","type":"done","ok":true,"summary":"%d"}\' % n)\n',
        stdin=payload,
    )
    assert outcome.done is not None and outcome.done.summary == str(len(payload))


async def test_a_tool_may_wait_for_its_input_with_an_event_loop(either: Any) -> None:
    outcome = await either.python(
        "import asyncio, sys\n"
        "async def main():\n"
        "    reader = asyncio.StreamReader()\n"
        "    protocol = asyncio.StreamReaderProtocol(reader)\n"
        "    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)\n"
        "    await reader.read()\n"
        f"    print('{DONE}')\n"
        "asyncio.run(main())\n"
    )
    assert outcome.done is not None, outcome.stderr


async def test_the_environment_and_folder_are_the_callers_plus_our_cookie(either: Any) -> None:
    source = (
        "import json, os\n"
        "fields = {'cwd': os.getcwd(), 'env': dict(os.environ), 'pgid': os.getpgid(0) == os.getpid()}\n"
        "log = {'version': '0', 'type': 'log', 'level': 'info', 'message': '', 'fields': fields}\n"
        "print(json.dumps(log))\n"
        f"print('{DONE}')\n"
    )
    argv = either.script(source)
    outcome = await run_process(
        argv,
        b"",
        tool="t",
        on_events=either.events.extend,
        timeout=20,
        env={"ONLY": "this"},
        cwd=either.folder,
        **either.way(argv),
    )
    assert outcome.done is not None
    (log, _) = either.events
    assert isinstance(log, Log) and log.fields is not None
    assert Path(log.fields["cwd"]) == either.folder.resolve()
    assert log.fields["pgid"] is True
    env = {name: value for name, value in log.fields["env"].items() if not name.startswith("LC_")}
    assert env.pop(marks.COOKIE)
    assert env == {"ONLY": "this"}


async def test_no_descriptor_of_ours_reaches_the_tool(either: Any) -> None:
    outcome = await either.python(
        f"import os\nprint('{DONE}')\nos.write(2, repr(sorted(os.listdir('/proc/self/fd'))).encode())"
    )
    assert outcome.stderr == "['0', '1', '2', '3']"  # 3 is the listing itself


async def test_an_event_arrives_within_fifty_milliseconds_of_being_written(trial: Any) -> None:
    delays: list[float] = []

    def note(events: list[ToolEvent]) -> None:
        now = time.time()
        delays.extend(now - float(e.message) for e in events if isinstance(e, Log))

    await trial.python(
        "import time\n"
        'line = \'{"version":"0","type":"log","level":"info","message":"%r"}\'\n'
        "for _ in range(20):\n"
        "    print(line % time.time(), flush=True)\n"
        "    time.sleep(0.01)\n"
        f"print('{DONE}')\n",
        on_events=note,
    )
    assert len(delays) == 20
    assert sorted(delays)[10] < 0.05


async def test_a_slow_subscriber_slows_the_tool(either: Any) -> None:
    progress = either.folder / "progress"
    source = (
        "import sys\n"
        'line = \'{"version":"0","type":"log","level":"info","message":"\' + \'x\' * 1000 + \'"}\\n\'\n'
        "for n in range(20000):\n"
        f"    sys.stdout.write(line)\n    if n % 100 == 0: open({str(progress)!r}, 'w').write(str(n))\n"
        f"print('{DONE}')\n"
    )
    gate = asyncio.Event()
    received = 0

    async def slow(events: list[ToolEvent]) -> None:
        nonlocal received
        received += len(events)
        await gate.wait()

    running = asyncio.create_task(either.python(source, on_events=slow))
    written = -1
    while not (progress.exists() and progress.read_text() not in ("", str(written))) or received == 0:
        await asyncio.sleep(0.01)
    # The tool runs until the pipe is full, then stands still: two looks apart show the same.
    while (now := int(progress.read_text() or 0)) != written:
        written = now
        await asyncio.sleep(0.2)
    assert written < 5000  # of 20,000: no more than pipes hold
    gate.set()
    outcome = await running
    assert outcome.done is not None
    assert received == 20001


async def test_the_timeout_ends_the_tool_even_while_a_subscriber_is_busy(trial: Any) -> None:
    gate = asyncio.Event()

    async def stuck(events: list[ToolEvent]) -> None:
        await gate.wait()

    running = asyncio.create_task(
        trial.bash(
            'echo \'{"version":"0","type":"log","level":"info","message":""}\'; exec sleep 60',
            on_events=stuck,
            timeout=0.3,
        )
    )
    assert await asyncio.to_thread(trial.eventually, lambda: trial.alive())
    assert await asyncio.to_thread(trial.eventually, lambda: not trial.alive())
    assert not running.done()
    gate.set()
    assert (await running).timed_out


async def test_timeout_sends_term_first_and_a_polite_tool_may_clean_up(trial: Any) -> None:
    outcome = await trial.bash("trap 'echo bye >&2; exit 7' TERM; while :; do sleep 0.01; done", timeout=0.3)
    assert outcome.timed_out
    assert outcome.exit_code == 7
    assert outcome.stderr.endswith("bye\n")


async def test_cancelling_ends_the_group_reaps_and_goes_on(trial: Any) -> None:
    running = asyncio.create_task(
        trial.bash("sleep 60 & sleep 60 & trap '' TERM; while :; do sleep 1; done", grace=0.2)
    )
    assert await asyncio.to_thread(trial.eventually, lambda: len(trial.alive()) >= 3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await trial.orphans() == []
    assert _only_guardian_left()


_strangers: set[str] = set()  # servers that other tests of the same run keep


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split())


@pytest.fixture(autouse=True)
def _note_strangers() -> None:
    _strangers.clear()
    _strangers.update(_children())


def _only_guardian_left() -> bool:
    """Whether the one child this test has left us is the guardian, and no zombie waits."""
    mine = _children() - _strangers
    return all("guardian.py" in Path(f"/proc/{pid}/cmdline").read_text() for pid in mine)


async def test_a_second_cancellation_does_not_wait_for_the_grace_period(trial: Any) -> None:
    running = asyncio.create_task(trial.bash("trap '' TERM; while :; do sleep 0.05; done", grace=60))
    assert await asyncio.to_thread(trial.eventually, lambda: trial.alive())
    running.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    started = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - started < 5
    assert await trial.orphans() == []


async def test_an_error_of_the_subscriber_ends_the_tool_and_goes_on(trial: Any) -> None:
    def broken(events: list[ToolEvent]) -> None:
        raise LookupError("subscriber")

    with pytest.raises(LookupError, match="subscriber"):
        await trial.bash(f"echo '{DONE}'; sleep 60", on_events=broken)
    assert await trial.orphans() == []


def test_a_loop_that_closes_under_a_call_leaves_nothing(trial: Any) -> None:
    loop = asyncio.new_event_loop()
    argv = trial.script("sleep 60 & sleep 60", "tool.sh")
    call = loop.create_task(trial.run(argv))

    async def until_it_runs() -> None:
        while not trial.alive():
            await asyncio.sleep(0.01)

    loop.run_until_complete(until_it_runs())
    coroutine = call.get_coro()
    call._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    coroutine.close()
    del call, coroutine
    gc.collect()
    assert trial.eventually(lambda: not trial.alive())
    assert _only_guardian_left()


def test_it_works_in_a_loop_of_another_thread(trial: Any) -> None:
    outcomes = []
    argv = trial.script(f"echo '{DONE}'", "tool.sh")
    thread = threading.Thread(target=lambda: outcomes.append(asyncio.run(trial.run(argv))))
    thread.start()
    thread.join(20)
    assert outcomes[0].exit_code == 0 and outcomes[0].done is not None


async def test_a_hundred_calls_leave_no_descriptor_and_no_child(trial: Any) -> None:
    argv = trial.script(f"echo '{DONE}'", "tool.sh")
    await trial.run(argv)
    before = open_descriptors()
    for _ in range(10):
        outcomes = await asyncio.gather(*(trial.run(argv) for _ in range(10)))
        assert all(o.exit_code == 0 and o.done is not None for o in outcomes)
    assert open_descriptors() == before
    assert _only_guardian_left()


async def test_stderr_keeps_its_tail_and_no_more(trial: Any) -> None:
    outcome = await trial.bash(
        f"head -c 3000000 /dev/zero | tr '\\0' a >&2; echo the end >&2; echo '{DONE}'",
        limits=Limits(stderr_bytes=1000),
    )
    assert len(outcome.stderr) == 1000
    assert outcome.stderr.endswith("aathe end\n")


async def test_the_last_words_of_a_dying_tool_are_kept(either: Any) -> None:
    outcome = await either.python("raise SystemExit('it was the butler')")
    assert (outcome.exit_code, outcome.stderr) == (1, "it was the butler\n")


async def test_output_still_on_its_way_through_a_pipeline_is_waited_for(trial: Any) -> None:
    outcome = await trial.bash(f"exec > >(sleep 0.1; cat); echo '{DONE}'")
    assert outcome.exit_code == 0
    assert outcome.done is not None


async def test_a_signal_is_told_as_one(trial: Any) -> None:
    outcome = await trial.bash("kill -SEGV $$")
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("make", "kind", "says"),
    [
        (lambda p: None, ToolMissing, "there is no tool at"),
        (lambda p: p.write_text("#!/bin/sh\n"), NotExecutable, "chmod"),
        (lambda p: (p.write_text("#!/no/such/interpreter\n"), p.chmod(0o755)), NotExecutable, "interpreter"),
        (
            lambda p: (p.write_bytes(b"\x7fELF nonsense"), p.chmod(0o755)),
            NotExecutable,
            "not a program for this system",
        ),
    ],
)
async def test_what_cannot_be_started_is_refused_with_advice(trial: Any, make, kind, says) -> None:  # type: ignore[no-untyped-def]
    path = trial.folder / "thing"
    make(path)
    await trial.bash("exit 0")
    before = open_descriptors()
    with pytest.raises(kind, match=says):
        await trial.run([str(path)])
    assert open_descriptors() == before


async def test_a_folder_that_does_not_exist_is_named(trial: Any) -> None:
    with pytest.raises(LaunchRefused, match="nowhere"):
        await run_process(
            ["/bin/true"],
            b"",
            tool="t",
            on_events=trial.events.extend,
            timeout=5,
            cwd=trial.folder / "nowhere",
        )


async def test_ends_are_noticed_without_pidfds_as_well() -> None:
    loop = asyncio.get_running_loop()
    child = platform.spawn(["/bin/sh", "-c", "exit 3"], b"", dict(os.environ))
    ended = loop.create_future()
    watch = platform.PollingWatch(loop, child.pid, lambda: ended.set_result(None))
    await asyncio.wait_for(ended, 10)
    watch.close()
    assert os.waitstatus_to_exitcode(platform.reap(child.pid) or 0) == 3
    os.close(child.stdout)
    os.close(child.stderr)


async def test_descriptors_are_heard_without_epoll_as_well() -> None:
    loop = asyncio.get_running_loop()
    read, write = platform.pipe()
    heard = loop.create_future()
    listener = listeners.LoopListener(loop)
    listener.listen(read, lambda: heard.done() or heard.set_result(None))
    os.write(write, b"x")
    await asyncio.wait_for(heard, 10)
    listener.forget(read)
    os.close(read)
    os.close(write)


def in_a_host(trial: Any, before: str, tool: str, after: str = "") -> str:
    """What a program prints that does `before`, runs `tool`, and shows the outcome or the refusal."""
    report = trial.folder / "report"
    argv = trial.script(tool, "tool.sh")
    host = f"""
import asyncio, os, resource, signal
from narratoria.kinds.process.launch import LaunchRefused
from narratoria.kinds.process.supervisor import run_process
def run():
    o = asyncio.run(run_process({argv!r}, b"hi", tool="t", on_events=lambda e: None, timeout=10))
    return (o.exit_code, o.done is not None, o.stderr)
{before}
try:
    said = run()
except LaunchRefused as refusal:
    said = str(refusal)
{after}
open({str(report)!r}, "w").write(repr(said))
"""
    subprocess.run([sys.executable, "-c", host], check=True, timeout=60)
    return report.read_text()


CHATTY = f"cat >/dev/null; echo '{DONE}'; echo err >&2"


def test_streams_closed_in_the_host_do_not_confuse_the_tools(trial: Any) -> None:
    said = in_a_host(trial, "for fd in (0, 1, 2): os.close(fd)", CHATTY)
    assert said == repr((0, True, "err\n"))


def test_a_host_that_ignores_sigchld_gets_everything_but_the_exit_code(trial: Any) -> None:
    count = (
        "children = open(f'/proc/self/task/{os.getpid()}/children').read().split()\n"
        "said = (run(), len(children))"
    )
    said = in_a_host(trial, "signal.signal(signal.SIGCHLD, signal.SIG_IGN); run()", CHATTY, count)
    assert said == repr(((None, True, "err\n"), 1))  # and still one guardian


def test_a_tool_that_the_kernel_reaped_before_it_was_watched_has_ended_as_well(trial: Any) -> None:
    late = (
        "import time\nfrom narratoria.kinds.process import platform\nstart = platform.start\n"
        "platform.start = lambda *given: (start(*given), time.sleep(0.3))[0]\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    )
    assert in_a_host(trial, late, CHATTY) == repr((None, True, "err\n"))


@pytest.mark.parametrize("spare", [3, 4, 5, 6])
def test_too_many_open_files_are_a_refusal_and_no_leak(trial: Any, spare: int) -> None:
    exhaust = (
        "run(); soft = len(os.listdir('/proc/self/fd')) + SPARE\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))\n"
        "import gc; count = lambda: (gc.collect(), len(os.listdir('/proc/self/fd')))[1]\n"
        "first = count()"
    )
    said = in_a_host(trial, exhaust.replace("SPARE", str(spare)), CHATTY, "said = (said, count() - first)")
    assert "too many open files" in said
    assert said.endswith(", 0)")
