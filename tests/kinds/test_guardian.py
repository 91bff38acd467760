"""We die, even by `kill -9`, and nothing of ours lives on."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kinds.test_hostile import UNMARKED
from tests.marked_processes import eventually

from narratoria.kinds.process import guardian, marks, platform

HOST = """
import asyncio, os, sys
from narratoria.kinds.process.supervisor import run_process
def say(events):
    for event in events:
        print(event.message, flush=True)
asyncio.run(run_process(sys.argv[1:], b"{}", tool="t", on_events=say, timeout=60))
"""
READY = """echo '{"version":"0","type":"log","level":"info","message":"ready"}'"""
FAMILY = f"""
sleep 60 &
setsid sleep 60 >/dev/null 2>&1 &
(setsid bash -c 'sleep 60 & sleep 60' >/dev/null 2>&1 &)
trap '' TERM INT HUP
{READY}
while :; do sleep 1; done
"""


@contextmanager
def host(trial: Any, tool: str, program: str = HOST, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A runtime of its own, running `tool`, from the moment the tool has said it is ready.

    Its processes are found by the name of the temporary folder, which they all have in their environment.
    """
    temporary = trial.folder / trial.mark
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *trial.script(tool, "tool.sh")],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def status(pid: int) -> tuple[str, int]:
    """The state letter and the parent of a process; ("Z", 0) when it is gone."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except OSError:
        return "Z", 0
    return state, int(parent)


def runs(pid: int) -> bool:
    return status(pid)[0] != "Z"


def children_of(parent: int) -> list[int]:
    everyone = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in everyone if status(pid)[1] == parent]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def all_guardians(trial: Any) -> list[int]:
    return [pid for pid in trial.alive() if "guardian.py" in command(pid)]


def guardians(trial: Any) -> list[int]:
    """Those that a runtime started; each starts a second."""
    everyone = all_guardians(trial)
    return [pid for pid in everyone if status(pid)[1] not in everyone]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_nothing_lives_two_seconds_after_the_runtime_was_killed(trial: Any, number: int) -> None:
    with host(trial, FAMILY) as runtime:
        assert trial.eventually(lambda: len(trial.alive()) >= 7)
        runtime.send_signal(number)
        runtime.wait(5)
        assert trial.eventually(lambda: not trial.alive(), within=2)


def test_a_tool_that_cleared_its_environment_dies_with_its_group(trial: Any) -> None:
    tool = f"{READY}; exec env -i sleep 60"
    with host(trial, tool) as runtime:
        children = children_of(runtime.pid)
        assert len(children) == 2  # the guardian and the tool
        runtime.kill()
        runtime.wait(5)
        assert trial.eventually(lambda: not any(runs(pid) for pid in children), within=2)


@pytest.mark.parametrize("unmarked", UNMARKED.values(), ids=list(UNMARKED))
def test_a_daemon_without_environment_and_group_dies_with_the_runtime(trial: Any, unmarked: str) -> None:
    pid_file = trial.folder / "pid"
    tool = f"{unmarked.format(pid=pid_file, python=sys.executable)}; {READY}; sleep 60"
    with host(trial, tool) as runtime:
        pid = int(pid_file.read_text())
        assert runs(pid)
        runtime.kill()
        runtime.wait(5)
        assert trial.eventually(lambda: not runs(pid), within=2)


def test_a_guardian_killed_while_a_call_runs_is_replaced_at_once(trial: Any) -> None:
    with host(trial, f"{READY}; exec env -i sleep 60") as runtime:
        (first,) = guardians(trial)
        (tool,) = set(children_of(runtime.pid)) - {first}
        os.kill(first, signal.SIGKILL)

        def replaced() -> bool:
            new = set(children_of(runtime.pid)) - {first, tool}
            return len(new) == 1 and guardians(trial) == list(new) and len(all_guardians(trial)) == 2

        assert trial.eventually(replaced, within=5)  # the second of the first has gone: it was relieved
        assert runs(tool)
        runtime.kill()
        runtime.wait(5)
        assert trial.eventually(lambda: not runs(tool), within=2)


def kill_together(*pids: int) -> None:
    """In the same instant: none of them can act on the death of another."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)


@pytest.mark.parametrize("which", ["first", "second"])
def test_nothing_lives_after_a_guardian_and_the_runtime_were_killed_in_the_same_instant(
    trial: Any, which: str
) -> None:
    with host(trial, FAMILY) as runtime:
        assert trial.eventually(lambda: len(trial.alive()) >= 8 and len(all_guardians(trial)) == 2)
        (first,) = guardians(trial)
        (second,) = set(all_guardians(trial)) - {first}
        kill_together(runtime.pid, first if which == "first" else second)
        runtime.wait(5)
        assert trial.eventually(lambda: not trial.alive(), within=3)
        assert trial.eventually(lambda: not list((trial.folder / trial.mark).iterdir()), within=2)


def test_a_second_that_was_killed_is_replaced(trial: Any) -> None:
    with host(trial, f"{READY}; sleep 60"):
        assert trial.eventually(lambda: len(all_guardians(trial)) == 2)
        (first,) = guardians(trial)
        (second,) = set(all_guardians(trial)) - {first}
        os.kill(second, signal.SIGKILL)
        assert trial.eventually(lambda: len(all_guardians(trial)) == 2 and second not in all_guardians(trial))
        assert guardians(trial) == [first]


def test_what_is_left_when_all_were_killed_together_ends_when_the_next_runtime_runs_a_tool(
    trial: Any,
) -> None:
    with host(trial, FAMILY) as runtime:
        assert trial.eventually(lambda: len(trial.alive()) >= 8 and len(all_guardians(trial)) == 2)
        kill_together(runtime.pid, *all_guardians(trial))
        runtime.wait(5)
        left = [pid for pid in trial.alive() if "guardian.py" not in command(pid)]
        assert left
    next_one = [sys.executable, "-c", HOST, *trial.script(f"{READY}; sleep 2", "next.sh")]
    env = {**os.environ, "TMPDIR": str(trial.folder / trial.mark)}
    with subprocess.Popen(next_one, env=env, stdout=subprocess.DEVNULL) as process:
        assert trial.eventually(lambda: not any(runs(pid) for pid in left), within=5)
        assert process.wait(10) == 0  # its own tool was left alone
    assert trial.eventually(lambda: not trial.alive(), within=3)
    assert not list((trial.folder / trial.mark).iterdir())


def test_scratch_folders_are_gone_after_the_runtime_was_killed(trial: Any) -> None:
    temporary = trial.folder / trial.mark
    program = (
        "import asyncio, sys\n"
        "from narratoria.kinds.process.process_tool import process_tool\n"
        "from narratoria.run.registry import ToolRegistry\n"
        "from narratoria.session import Session\n"
        "class Ear:\n"
        "    full = False\n"
        "    async def wait(self): pass\n"
        "    def push(self, record):\n"
        "        if 'ready' in str(record.event): print('ready', flush=True)\n"
        "async def main():\n"
        "    session = Session(); session.attach(Ear())\n"
        "    await ToolRegistry().executor.execute(process_tool(sys.argv[2]), {}, session=session)\n"
        "asyncio.run(main())\n"
    )
    source = f"#!/bin/bash\necho kept >$TMPDIR/file; {READY}; sleep 60"
    with host(trial, source, program) as runtime:
        assert len(list(temporary.glob("narratoria-*/call-*/file"))) == 1
        runtime.kill()
        runtime.wait(5)
        assert trial.eventually(lambda: not list(temporary.iterdir()), within=3)


def test_ctrl_c_ends_the_runtime_in_order_and_the_guardian_is_not_hit(trial: Any) -> None:
    with host(trial, FAMILY, start_new_session=True, stderr=subprocess.DEVNULL) as runtime:
        (guardian,) = guardians(trial)
        assert os.getpgid(guardian) != os.getpgid(runtime.pid)
        os.kill(guardian, signal.SIGINT)
        os.kill(guardian, signal.SIGTERM)
        os.kill(guardian, signal.SIGHUP)
        os.killpg(runtime.pid, signal.SIGINT)
        runtime.wait(10)
        assert trial.eventually(lambda: not trial.alive(), within=2)


def test_the_guardian_holds_none_of_our_streams(trial: Any) -> None:
    with host(trial, f"{READY}; sleep 60", stderr=subprocess.PIPE) as runtime:
        (guardian,) = guardians(trial)
        ours = {str(Path(f"/proc/{runtime.pid}/fd/{fd}").readlink()) for fd in (1, 2)}

        def theirs() -> set[str]:
            return {str(fd.readlink()) for fd in Path(f"/proc/{guardian}/fd").iterdir() if fd.is_symlink()}

        # Once started: the lifeline, the ledger, /dev/null, the locked folder, and two pipes to its second.
        assert trial.eventually(lambda: len(theirs()) == 6)
        assert not ours & theirs()
        runtime.kill()
        started = time.monotonic()
        runtime.communicate(timeout=5)  # ends only when nobody holds the pipes
        assert time.monotonic() - started < 2


def test_after_an_orderly_end_the_guardian_goes_and_takes_daemons_along(trial: Any) -> None:
    with host(trial, f"setsid sleep 60 & {READY}; exit 0") as runtime:
        runtime.wait(10)
        assert trial.eventually(lambda: not trial.alive(), within=2)


def test_a_killed_guardian_is_replaced_at_the_next_call_and_knows_the_running_ones(trial: Any) -> None:
    program = (
        "import asyncio, os, signal, sys\n"
        "from narratoria.kinds.process.supervisor import run_process\n"
        "async def main():\n"
        "    ready = asyncio.Event()\n"
        "    tell = lambda events: ready.set()\n"
        "    long = run_process(sys.argv[1:], b'', tool='t', on_events=tell, timeout=60)\n"
        "    long = asyncio.create_task(long)\n"
        "    await asyncio.wait_for(ready.wait(), 20)\n"
        "    children = open(f'/proc/self/task/{os.getpid()}/children').read().split()\n"
        "    (pid,) = [int(p) for p in children if 'guardian.py' in open(f'/proc/{p}/cmdline').read()]\n"
        "    os.kill(pid, signal.SIGKILL)\n"
        "    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)\n"
        "    await run_process(['/bin/true'], b'', tool='t', on_events=print, timeout=60)\n"
        "    print('ready', flush=True)\n"
        "    await long\n"
        "asyncio.run(main())\n"
    )
    tool = f"{READY}; exec env -i sleep 60"
    with host(trial, tool, program) as runtime:
        children = children_of(runtime.pid)
        assert len(children) == 2, [command(pid) for pid in children]
        runtime.kill()
        runtime.wait(5)
        assert trial.eventually(lambda: not any(runs(pid) for pid in children), within=2)


def test_a_fork_of_the_runtime_does_not_keep_the_guardian_waiting(trial: Any) -> None:
    fork = "if os.fork() == 0:\n            time.sleep(3); os._exit(0)\n        "
    program = "import time\n" + HOST.replace("print(", fork + "print(")
    with host(trial, FAMILY.replace("sleep 60", "sleep 61"), program) as runtime:
        runtime.kill()
        runtime.wait(5)

        def tools() -> list[int]:
            return [pid for pid in trial.alive() if "sleep 61" in command(pid)]

        assert trial.eventually(lambda: not tools(), within=2)


def test_a_runtime_inside_a_tool_is_covered_by_the_outer_one(trial: Any) -> None:
    inner_tool = trial.folder / "inner.sh"
    inner_tool.write_text(FAMILY)
    inner_host = trial.folder / "inner.py"
    inner_host.write_text(HOST.replace("print(event.message, flush=True)", f"os.system({READY!r})"))
    tool = f"exec {sys.executable} {inner_host} /bin/bash {inner_tool}"
    with host(trial, tool) as runtime:
        assert trial.eventually(lambda: len(trial.alive()) >= 9)
        runtime.kill()
        runtime.wait(5)
        assert trial.eventually(lambda: not trial.alive(), within=2)


@pytest.mark.parametrize(
    "name",
    [
        "narratoria-0123456789abcdef-0",  # a limit that every process has
        "narratoria-0123456789abcdef-1024",
        "narratoria-0123456789abcdef-²",  # a digit to `isdigit`, and no number
        "narratoria-0123456789abcdef--2",
        "narratoria-0123456789abcdef-02147483648",
        f"narratoria-0123456789abcdef-{1 << 63}",
        "narratoria-0123456789abcdeg-2147483648",
        "narratoria-PATH=/usr/bin:/b-2147483648",
        "narratoria-0123456789abcdef-",
        "narratoria-",
    ],
)
def test_a_folder_that_no_runtime_made_names_no_marks(name: str) -> None:
    assert guardian.parse_folder(name) is None


def test_a_folder_of_a_runtime_names_its_marks() -> None:
    for tag in (-1, 1 << 31, (1 << 62) + 5):
        name = guardian.folder_name("0123456789abcdef", tag)
        assert guardian.parse_folder(name) == ("0123456789abcdef", tag)


def test_a_tag_is_the_limit_on_file_locks_and_no_other() -> None:
    tag = 1 << 40
    limits = b"Max nice priority         0                    0                    \n"
    locks = b"Max file locks            %d        unlimited            locks     \n"
    for call in (0, 1, marks.CALLS - 1):
        assert marks.call_by_tag(limits + locks % (tag + call), tag) == call
    for other in (tag - 1, tag + marks.CALLS, 0):
        assert marks.call_by_tag(limits + locks % other, tag) is None
    assert marks.call_by_tag(limits + b"Max file size    %d    unlimited   bytes\n" % tag, tag) is None
    assert marks.call_by_tag(limits + b"Max file locks    unlimited    unlimited   locks\n", tag) is None
    assert marks.call_by_tag(limits, 0) is None
    assert marks.call_by_tag(b"", tag) is None


@pytest.mark.parametrize(
    ("environ", "call"),
    [
        (b"A=b\0NARRATORIA_CALL=RUN.7\0C=d", 7),
        (b"NARRATORIA_CALL=RUN.7", 7),
        (b"NARRATORIA_CALL=aaaabbbbccccdddd.3/RUN.12\0", 12),
        (b"NARRATORIA_CALL=RUN.12/aaaabbbbccccdddd.3\0", 12),
        (b"NARRATORIA_CALL=\0NARRATORIA_CALL=RUN.7\0", 7),
        (b"NARRATORIA_CALL=RUN.x\0", 0),
        (b"NOTE=RUN.7\0", None),
        (b"NOTE=NARRATORIA_CALL=RUN.7\0", None),
        (b"MY_NARRATORIA_CALL=RUN.7\0", None),
        (b"NARRATORIA_CALL=xRUN.7\0", None),
        (b"RUN.7", None),
        (b"", None),
    ],
)
def test_a_call_is_named_by_its_variable_and_nowhere_else(environ: bytes, call: int | None) -> None:
    runtime = "0123456789abcdef"
    assert marks._call_in(environ.replace(b"RUN", runtime.encode()), runtime) == call


def test_a_guardian_that_meets_an_error_at_the_end_is_not_followed_by_another(tmp_path: Path) -> None:
    for name in ("guardian.py", "platform.py", "marks.py"):
        shutil.copy(Path(guardian.__file__).with_name(name), tmp_path)
    (tmp_path / "folder_removal.py").write_text("def remove(folder):\n    raise RuntimeError(folder)\n")
    folder = tmp_path / guardian.folder_name("0" * guardian.RUNTIME_DIGITS, guardian.UNTAGGED)
    folder.mkdir()
    lifeline, ours = platform.pipe()
    ledger, lock = platform.nameless_file(), os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    program = str(tmp_path / "guardian.py")
    argv = [
        sys.executable,
        "-I",
        "-S",
        program,
        "0" * guardian.RUNTIME_DIGITS,
        str(guardian.UNTAGGED),
        str(folder),
    ]
    given = {guardian.LIFELINE: lifeline, guardian.LEDGER: ledger, guardian.LOCK: lock}
    first = platform.spawn_apart(argv, {"PATH": os.environ["PATH"]}, given)
    assert eventually(lambda: all(guardian.read_guardians(ledger)))
    for fd in (lifeline, ours, lock):
        os.close(fd)
    try:
        assert not eventually(lambda: guardian.read_guardians(ledger)[0] != first, 1.5)
    finally:
        folder.rmdir()  # which would end one that goes on
        os.close(ledger)
    assert eventually(lambda: platform.has_ended(first), 20)
    platform.reap(first)
