"""Every way a tool may misbehave, with real processes: a clear failure, in time, no orphan, little memory."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from narratoria.errors import OUTPUT_LIMIT, PROTOCOL_ERROR
from narratoria.events import Done, Log
from narratoria.kinds.ndjson import Limits

DONE = '{"version":"0","type":"done","ok":true}'
MIB = 1024 * 1024


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture
def bounds() -> Iterator[Callable[..., None]]:
    """Checks at the end that neither time nor memory ran away."""
    started, before = time.monotonic(), resident()
    yield lambda: None
    assert time.monotonic() - started < 15
    assert resident() - before < 64 * MIB


pytestmark = pytest.mark.usefixtures("bounds")


async def test_exits_before_reading_a_large_input(trial: Any) -> None:
    outcome = await trial.bash(f"exec <&-; echo '{DONE}'", stdin=b"x" * (8 * MIB))
    assert (outcome.exit_code, outcome.done is not None, outcome.failure) == (0, True, None)
    assert await trial.orphans() == []


async def test_half_a_line_and_death(trial: Any) -> None:
    outcome = await trial.bash("""printf '{"version":"0","type":"lo'; exit 1""")
    assert outcome.exit_code == 1
    assert outcome.failure is not None and outcome.failure.line == 1
    assert "trial: line 1: the output ends in the middle of a line" in str(outcome.failure)


async def test_half_a_line_and_death_while_a_daemon_holds_stdout(trial: Any) -> None:
    outcome = await trial.bash("""setsid sleep 60 & printf '{"version":"0","type":"lo'; exit 1""")
    assert "ends in the middle of a line" in str(outcome.failure)
    assert await trial.orphans() == []


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (r"\x00\x01\xfe\xff\x00binary\n", "UTF-8|binary"),
        (r"\xef\xbb\xbf{}\n", "byte order mark"),
        (r'{"version":"0","type":"log","level":"info","message":"\xff"}\n', "not UTF-8"),
        (r'{"version":"0","type":"state_patch","patch":{"hp":NaN}}\n', "NaN"),
        (r'{"version":"0","type":"state_patch","patch":{"hp":1,"hp":2}}\n', '"hp" appears twice'),
        (r"Loading model...\n", "not a JSON object.*stderr"),
        (r'{"version":"2","type":"done","ok":true}\n', "version"),
        (r'{"version":"0","type":"finished"}\n', "unknown type 'finished'"),
    ],
)
async def test_bad_output_stops_a_tool_that_would_go_on(trial: Any, output: str, says: str) -> None:
    started = time.monotonic()
    good = r'{"version":"0","type":"log","level":"info","message":"first"}\n'
    outcome = await trial.bash(f"printf '{good}{output}'; sleep 60")
    assert time.monotonic() - started < 5
    assert [e.message for e in trial.events if isinstance(e, Log)] == ["first"]
    failure = outcome.failure
    assert failure is not None and failure.code == PROTOCOL_ERROR and failure.line == 2 and failure.fix
    with pytest.raises(type(failure), match=f"trial: line 2: .*({says})"):
        raise failure
    assert not outcome.timed_out
    assert await trial.orphans() == []


async def test_ten_gigabytes_on_one_line(trial: Any) -> None:
    outcome = await trial.bash("head -c 10G /dev/zero | tr '\\0' x")
    assert outcome.failure is not None and outcome.failure.code == OUTPUT_LIMIT
    assert "line is longer than 2,097,152 bytes" in str(outcome.failure)
    assert len(str(outcome.failure)) < 1000
    assert await trial.orphans() == []


async def test_endless_blank_lines(trial: Any) -> None:
    outcome = await trial.bash("yes ''", limits=Limits(max_bytes=20 * MIB))
    assert outcome.failure is not None and outcome.failure.code == OUTPUT_LIMIT
    assert await trial.orphans() == []


async def test_a_million_logs_pass_the_limit_clearly(trial: Any) -> None:
    counted = 0

    def count(events: list[object]) -> None:
        nonlocal counted
        counted += len(events)

    line = '{"version":"0","type":"log","level":"info","message":"again"}'
    outcome = await trial.bash(f"yes '{line}' | head -n 1000000; echo '{DONE}'", on_events=count)
    assert outcome.failure is not None and outcome.failure.code == OUTPUT_LIMIT
    assert "more than 200,000 events" in str(outcome.failure)
    assert counted == 200_000
    assert await trial.orphans() == []


LISTS = """
import sys
for _ in range({lines}):
    print('{{"version":"0","type":"{kind}","{field}":{{"a":[' + '[],' * {count} + '0]}}}}')
"""


@pytest.mark.parametrize(("kind", "field"), [("log", "fields"), ("state_patch", "patch")])
async def test_small_bytes_that_become_large_values_are_limited(trial: Any, kind: str, field: str) -> None:
    """Three bytes, `[],`, take sixty in memory: what is kept is counted by values as well as by bytes."""
    source = LISTS.format(lines=60, kind=kind, field=field, count=300_000)
    outcome = await trial.python(source.replace('"log",', '"log","level":"info","message":"",'))
    assert outcome.failure is not None and outcome.failure.code == OUTPUT_LIMIT
    assert "more than 2,000,000 values" in str(outcome.failure)
    assert len(trial.events) < 5


async def test_what_is_kept_of_long_texts_is_bounded(trial: Any) -> None:
    text = '{"version":"0","type":"log","level":"info","message":"' + "x" * 900_000 + '"}'
    outcome = await trial.python(f"while True: print({text!r})")
    assert outcome.failure is not None and outcome.failure.code == OUTPUT_LIMIT
    assert "more than 33,554,432 bytes" in str(outcome.failure)


async def test_a_hundred_thousand_logs_are_taken_by_default(trial: Any) -> None:
    line = '{"version":"0","type":"log","level":"info","message":"step","fields":{"progress":0.5,"n":[1,2]}}'
    counted = 0

    def count(events: list[object]) -> None:
        nonlocal counted
        counted += len(events)

    outcome = await trial.bash(f"yes '{line}' | head -n 100000; echo '{DONE}'", on_events=count)
    assert outcome.failure is None and outcome.done is not None
    assert counted == 100_001


async def test_a_million_logs_are_taken_when_allowed_in_constant_memory(trial: Any) -> None:
    counted = 0

    def count(events: list[object]) -> None:
        nonlocal counted
        counted += len(events)

    line = '{"version":"0","type":"log","level":"info","message":"again"}'
    outcome = await trial.bash(
        f"yes '{line}' | head -n 1000000; echo '{DONE}'",
        on_events=count,
        limits=Limits(max_events=2_000_000, max_bytes=1 << 30, max_values=1 << 30),
    )
    assert outcome.failure is None and outcome.done is not None
    assert counted == 1_000_001


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"])
async def test_never_ends_and_may_ignore_term(trial: Any, trap: str) -> None:
    outcome = await trial.bash(
        f"{trap} (while :; do sleep 1; done) & while :; do sleep 1; done", timeout=0.3, grace=0.3
    )
    assert outcome.timed_out
    assert outcome.signal == (9 if trap else 15)
    assert outcome.duration < 3
    assert await trial.orphans() == []


async def test_a_tool_that_would_join_our_process_group_is_ended_in_time(trial: Any) -> None:
    started = time.monotonic()
    outcome = await trial.python(
        "import os, time\n"
        "try: os.setpgid(0, os.getpgid(os.getppid()))\n"
        "except OSError: pass\n"
        "time.sleep(60)\n",
        timeout=0.5,
        grace=0.2,
    )
    assert outcome.timed_out
    assert time.monotonic() - started < 4
    assert await trial.orphans() == []


async def test_a_stopped_tool_is_ended_as_well(trial: Any) -> None:
    outcome = await trial.bash("kill -STOP $$", timeout=0.3, grace=0.2)
    assert outcome.timed_out and outcome.signal in (9, 15)
    assert await trial.orphans() == []


async def test_a_daemon_that_holds_stdout_does_not_hold_us(trial: Any) -> None:
    outcome = await trial.bash(f"sleep 60 & setsid sleep 60 & echo '{DONE}'")
    assert outcome.exit_code == 0 and outcome.done is not None and not outcome.lingered
    assert outcome.duration < 3
    assert await trial.orphans() == []


async def test_a_daemon_that_goes_on_writing_does_not_hold_us(trial: Any) -> None:
    line = '{"version":"0","type":"log","level":"info","message":"still here"}'
    outcome = await trial.bash(
        f"setsid yes '{line}' & sleep 0.1; exit 0",
        on_events=lambda _: None,
        limits=Limits(max_events=10**9, max_bytes=1 << 40, max_values=1 << 40),
    )
    assert outcome.exit_code == 0 and outcome.done is None
    assert outcome.duration < 5
    assert await trial.orphans() == []


async def test_a_double_forked_daemon_is_found(trial: Any) -> None:
    source = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        for fd in (0, 1, 2): os.close(fd)\n"
        "        time.sleep(60)\n"
        "    os._exit(0)\n"
        f"print('{DONE}')\n"
    )
    outcome = await trial.python(source)
    assert outcome.done is not None
    assert await trial.orphans() == []


UNMARKED = {
    "environment cleared": "env -i setsid sleep 60 >/dev/null 2>&1 </dev/null & echo $! >{pid}",
    "title written over the environment": (
        "{python} -S -c 'import os; os.setsid()\n"
        'here = open("/proc/self/stat").read().rsplit(")", 1)[1].split()\n'
        "start, end = map(int, here[47:49])\n"
        'memory = open("/proc/self/mem", "r+b", 0); memory.seek(start)\n'
        'memory.write(b"x" * (end - start)); memory.close()\n'
        'open("{pid}", "w").write(str(os.getpid())); import time; time.sleep(60)\' >/dev/null 2>&1 & '
        "until [ -s {pid} ]; do sleep 0.01; done"
    ),
    "double fork without environment": (
        "(env -i setsid bash -c 'echo $$ >{pid}; exec sleep 60' >/dev/null 2>&1 </dev/null &); "
        "until [ -s {pid} ]; do sleep 0.01; done"
    ),
}


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("how", UNMARKED)
async def test_a_daemon_without_environment_and_group_is_found(trial: Any, tmp_path: Path, how: str) -> None:
    daemon = UNMARKED[how].format(pid=tmp_path / "pid", python=sys.executable)
    outcome = await trial.bash(f"{daemon}; echo '{DONE}'")
    assert outcome.done is not None
    await trial.orphans()
    pid = int((tmp_path / "pid").read_text())
    assert await asyncio.to_thread(trial.eventually, lambda: not runs(pid), within=1)


def has_a_thread(pid: int) -> bool:
    """Whether any thread of it lives; the first one may be a zombie that stands for the others."""
    try:
        return any(runs(int(thread.name)) for thread in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False


async def test_a_daemon_whose_first_thread_has_ended_is_found(trial: Any, tmp_path: Path) -> None:
    """Its environment can then not be read, and it looks like a zombie, but it runs on."""
    pid_file = tmp_path / "pid"
    source = (
        "import ctypes, os, platform, threading, time\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.setsid()\n"
        "    for fd in (0, 1, 2): os.close(fd)\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)\n"
        "while open(f'/proc/{child}/stat').read().rsplit(')', 1)[1].split()[0] != 'Z': time.sleep(0.01)\n"
        f"open({str(pid_file)!r}, 'w').write(str(child))\n"
        f"print('{DONE}')\n"
    )
    outcome = await trial.python(source)
    assert outcome.done is not None, outcome
    await trial.orphans()
    pid = int(pid_file.read_text())
    assert await asyncio.to_thread(trial.eventually, lambda: not has_a_thread(pid), within=1)


async def test_a_daemon_without_environment_is_spared_while_its_call_may_run(
    trial: Any, tmp_path: Path
) -> None:
    go, pid_file = tmp_path / "go", tmp_path / "pid"
    daemon = UNMARKED["double fork without environment"].format(pid=pid_file)
    running = asyncio.create_task(
        trial.bash(f"{daemon}; until [ -e {go} ]; do sleep 0.01; done; echo '{DONE}'")
    )
    assert await asyncio.to_thread(
        trial.eventually, lambda: pid_file.exists() and pid_file.read_text().strip()
    )
    pid = int(pid_file.read_text())
    await trial.run(["/bin/true"])  # a call that began and ended meanwhile takes nobody along
    await trial.orphans()
    assert runs(pid)
    go.touch()
    assert (await running).done is not None
    await trial.orphans()
    assert await asyncio.to_thread(trial.eventually, lambda: not runs(pid), within=1)


async def test_a_daemon_without_environment_dies_though_an_older_call_runs(
    trial: Any, tmp_path: Path
) -> None:
    """Such as a server that runs as long as the session: the limit alone tells whose the daemon is."""
    pid, go = tmp_path / "pid", tmp_path / "go"
    older = asyncio.create_task(
        trial.bash(f"until [ -e {go} ]; do sleep 0.01; done; echo '{DONE}'", timeout=30)
    )
    await asyncio.sleep(0.2)
    unmarked = f"(env -i setsid bash -c 'echo $$ >{pid}; exec sleep 60' >/dev/null 2>&1 </dev/null &)"
    outcome = await trial.run(
        ["/bin/bash", "-c", f"{unmarked}\nuntil [ -s {pid} ]; do sleep 0.01; done; echo '{DONE}'"]
    )
    assert outcome.done is not None
    await trial.orphans()
    assert not runs(int(pid.read_text()))
    go.touch()
    assert (await older).done is not None


async def test_a_daemon_without_environment_dies_though_a_younger_call_runs(
    trial: Any, tmp_path: Path
) -> None:
    daemon = UNMARKED["double fork without environment"].format(pid=tmp_path / "pid")
    go = tmp_path / "go"
    # Ticks of the kernel's clock: two calls within one cannot be told apart by the age of a process.
    await trial.bash(f"{daemon}; sleep 0.05; echo '{DONE}'")
    younger = asyncio.create_task(
        trial.run(trial.script(f"until [ -e {go} ]; do sleep 0.01; done; echo '{DONE}'", "younger.sh"))
    )
    pid = int((tmp_path / "pid").read_text())
    assert await asyncio.to_thread(trial.eventually, lambda: not runs(pid), within=2)
    go.touch()
    assert (await younger).done is not None


async def test_a_child_of_the_hosts_own_is_no_stray(trial: Any) -> None:
    own = await asyncio.create_subprocess_exec("sleep", "60")
    await trial.bash(f"echo '{DONE}'")
    await trial.orphans()
    assert own.returncode is None and runs(own.pid)
    own.kill()
    await own.wait()


async def test_daemons_are_swept_without_being_asked(trial: Any) -> None:
    await trial.bash(f"setsid sleep 60 >/dev/null 2>&1 & echo '{DONE}'")
    assert await asyncio.to_thread(trial.eventually, lambda: not trial.alive())


async def test_a_daemon_of_a_running_call_is_left_alone(trial: Any, tmp_path: Path) -> None:
    go = tmp_path / "go"
    running = asyncio.create_task(
        trial.bash(f"setsid sleep 60 >/dev/null 2>&1 & until [ -e {go} ]; do sleep 0.01; done; echo '{DONE}'")
    )
    assert await asyncio.to_thread(trial.eventually, lambda: len(trial.alive()) >= 2)
    assert len(await trial.orphans()) >= 2  # the sweep in it spares whom a running call needs
    go.touch()
    assert (await running).done is not None
    assert await trial.orphans() == []


async def test_closes_stdout_and_lives_on_until_the_timeout(trial: Any) -> None:
    outcome = await trial.bash("exec >&-; sleep 60", timeout=0.5)
    assert outcome.timed_out and outcome.done is None
    assert outcome.duration < 5
    assert await trial.orphans() == []


async def test_closes_stdout_and_lives_on_without_a_timeout(trial: Any) -> None:
    outcome = await trial.bash("exec >&-; sleep 60", timeout=None, linger=0.2)
    assert outcome.lingered and outcome.done is None and not outcome.timed_out
    assert outcome.duration < 5
    assert await trial.orphans() == []


async def test_closes_stdout_after_done_and_lingers(trial: Any) -> None:
    outcome = await trial.bash(f"echo '{DONE}'; exec >&-; sleep 60", linger=0.2)
    assert outcome.lingered and outcome.done is not None
    assert await trial.orphans() == []


async def test_lingers_after_done_and_done_stands(trial: Any) -> None:
    outcome = await trial.bash(f"echo '{DONE}'; sleep 60", linger=0.2)
    assert outcome.lingered and outcome.done is not None and outcome.failure is None
    assert outcome.duration < 5
    assert await trial.orphans() == []


async def test_emits_after_done_and_it_is_ignored(trial: Any) -> None:
    late = '{"version":"0","type":"log","level":"info","message":"late"}'
    outcome = await trial.bash(f"echo '{DONE}'; echo '{late}'; echo not even json")
    assert trial.events == [Done(version="0", ok=True)]
    assert outcome.failure is None
    assert outcome.after_done == len(late) + 1 + len("not even json\n")


async def test_two_dones_and_the_first_counts(trial: Any) -> None:
    outcome = await trial.bash(
        """for ok in true false; do echo '{"version":"0","type":"done","ok":'$ok'}'; done"""
    )
    assert outcome.done == Done(version="0", ok=True)
    assert len(trial.events) == 1 and outcome.after_done > 0


async def test_exit_three_after_done_is_told(trial: Any) -> None:
    outcome = await trial.bash(f"echo '{DONE}'; exit 3")
    assert outcome.done is not None and outcome.exit_code == 3


async def test_exit_zero_without_done_is_told(trial: Any) -> None:
    outcome = await trial.bash("exit 0")
    assert (outcome.exit_code, outcome.done, outcome.failure) == (0, None, None)


async def test_a_hundred_thousand_brackets(trial: Any) -> None:
    outcome = await trial.python(
        """print('{"version":"0","type":"state_patch","patch":{"a":' + '[' * 100000 + ']' * 100000 + '}}')"""
    )
    assert outcome.failure is not None and "nested too deeply" in str(outcome.failure)


async def test_floods_stderr_for_ever(trial: Any) -> None:
    outcome = await trial.bash("yes flood >&2", timeout=0.5)
    assert outcome.timed_out
    assert len(outcome.stderr) <= 64 * 1024
    assert await trial.orphans() == []


async def test_forks_faster_than_one_can_count(trial: Any) -> None:
    outcome = await trial.bash(f"for n in $(seq 100); do setsid sleep 60 & done; echo '{DONE}'")
    assert outcome.done is not None
    assert await trial.orphans() == []
