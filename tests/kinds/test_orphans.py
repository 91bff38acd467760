"""A process that adopts orphans ends also a daemon that has thrown off every mark, and spares its own children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kinds.test_hostile import runs

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux has child subreapers"
)

DONE = '{"version":"0","type":"done","ok":true}'
# Its group, its environment and its resource limit: all gone.
UNMARKED = (
    "(ulimit -x unlimited; env -i setsid bash -c 'echo $$ >PID; exec sleep 60' >/dev/null 2>&1 </dev/null &)"
)
TOOL = f"#!/bin/bash\n{UNMARKED}\nuntil [ -s PID ]; do sleep 0.01; done\necho '{DONE}'\n"

HOST = """
import asyncio, json, os, subprocess, sys
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.supervisor import run_process, sweep
custody().adopt_orphans()
own = subprocess.Popen(["sleep", "60"])
brief = subprocess.Popen(["sh", "-c", "exit 7"])
async def main():
    await run_process(["/bin/bash", sys.argv[1]], b"", tool="t", on_events=lambda events: None, timeout=20)
    await sweep()
    await sweep()
asyncio.run(main())
children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
zombies = [pid for pid in children if open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"]
told = {"own": own.poll(), "brief": brief.wait(), "zombies": [int(pid) for pid in zombies if int(pid) != brief.pid]}
print(json.dumps(told))
own.kill()
"""


def write_tool(folder: Path) -> tuple[Path, Path]:
    path, pid = folder / "tool.sh", folder / "pid"
    path.write_text(TOOL.replace("PID", str(pid)))
    path.chmod(0o755)
    return path, pid


def test_a_daemon_without_any_mark_is_ended_and_reaped_and_the_hosts_children_are_not(
    trial: Any, tmp_path: Path
) -> None:
    path, pid_file = write_tool(tmp_path)
    ended = subprocess.run(
        [sys.executable, "-c", HOST, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    pid = int(pid_file.read_text())
    try:
        assert json.loads(ended.stdout) == {"own": None, "brief": 7, "zombies": []}
        assert not runs(pid)
    finally:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "command", ["run", *[pytest.param(name, marks=pytest.mark.slow) for name in ("call", "check")]]
)
def test_the_command_line_adopts(trial: Any, tmp_path: Path, command: str) -> None:
    path, pid_file = write_tool(tmp_path)
    target = path
    if command == "run":
        target = tmp_path / "plan.json"
        calls = [{"toolId": "a", "toolPath": path.name}]
        target.write_text(json.dumps({"requestId": "r", "narrative": "", "tools": calls}))
    subprocess.run(
        [sys.executable, "-m", "narratoria", command, str(target)],
        env={**os.environ, "NARRATORIA_HOME": str(tmp_path / "home")},
        capture_output=True,
        timeout=60,
    )
    pid = int(pid_file.read_text())
    try:
        assert trial.eventually(lambda: not runs(pid), within=1)
    finally:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_daemon_of_a_running_call_is_spared(trial: Any, tmp_path: Path) -> None:
    """The sweep after a short call leaves alone what a long one has started."""
    path, pid_file = write_tool(tmp_path)
    go = tmp_path / "go"
    path.write_text(path.read_text().replace(f"echo '{DONE}'", f"until [ -e {go} ]; do sleep 0.01; done"))
    host = (
        "import asyncio, os, sys\n"
        "from narratoria.kinds.process.custody import custody\n"
        "from narratoria.kinds.process.supervisor import run_process, sweep\n"
        "custody().adopt_orphans()\n"
        "def run(*argv):\n"
        "    return run_process(argv, b'', tool='t', on_events=lambda events: None, timeout=20)\n"
        "async def main():\n"
        "    long = asyncio.create_task(run('/bin/bash', sys.argv[1]))\n"
        "    while not os.path.exists(sys.argv[2]) or not open(sys.argv[2]).read(): await asyncio.sleep(0.01)\n"
        "    await run('/bin/true'); await sweep()\n"
        "    print(os.path.exists(f'/proc/{int(open(sys.argv[2]).read())}'))\n"
        "    open(sys.argv[3], 'w').close()\n"
        "    await long; await sweep(); await sweep()\n"
        "    print(os.path.exists(f'/proc/{int(open(sys.argv[2]).read())}'))\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", host, str(path), str(pid_file), str(go)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.split() == ["True", "False"]


# Neither mark, and then a place or a name by which the runtime might take it for one of its own.
DISGUISES = {
    "our process group": "os.setpgid(0, os.getpgid(runtime))",
    "a guardian's command line": "os.setsid()",
}
DISGUISED = """
import os, sys, time, resource
runtime, cookie = os.getppid(), os.environ["NARRATORIA_CALL"]
reads, writes = os.pipe()
if os.fork() == 0:
    if os.fork():
        os._exit(0)
    resource.setrlimit(10, (-1, -1)) if os.geteuid() == 0 else None
    os.dup2(os.open(os.devnull, os.O_RDWR), 1); os.dup2(1, 2)
    try:
        {disguise}
    except OSError:
        os.setsid()
    os.set_inheritable(writes, True)
    says = "import os, time; os.write(%d, str(os.getpid()).encode()); time.sleep(60)" % writes
    os.execve(sys.executable, [sys.executable, "-S", "-c", says, "guardian.py", cookie.split(".")[0]], {{}})
open(sys.argv[1], "w").write(os.read(reads, 20).decode())
print('{done}')
"""


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_daemon_in_disguise_is_ended(trial: Any, tmp_path: Path, disguise: str) -> None:
    pid_file = tmp_path / "pid"
    tool = trial.script(DISGUISED.format(disguise=DISGUISES[disguise], done=DONE))
    host = HOST.replace('["/bin/bash", sys.argv[1]]', "sys.argv[1:]")
    ended = subprocess.run(
        [sys.executable, "-c", host, *tool, str(pid_file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    pid = int(pid_file.read_text())
    try:
        assert json.loads(ended.stdout) == {"own": None, "brief": 7, "zombies": []}
        assert trial.eventually(lambda: not runs(pid), within=1)
    finally:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_second_guardian_whose_first_was_killed_is_spared(tmp_path: Path) -> None:
    """It is an orphan that we adopt, and it must live until its successor is there."""
    host = (
        "import asyncio, os, signal, time\n"
        "from narratoria.kinds.process.custody import custody\n"
        "ours = custody(); ours.adopt_orphans()\n"
        "ours.begin()\n"
        "first, second = 0, 0\n"
        "while not second: first, second = ours.guardians()\n"
        "os.kill(first, signal.SIGKILL)\n"
        "while open(f'/proc/{second}/stat').read().rsplit(')', 1)[1].split()[1] != str(os.getpid()): pass\n"
        "ours.sweep_now(thorough=True); ours.sweep_now(thorough=True)\n"
        "print(open(f'/proc/{second}/stat').read().rsplit(')', 1)[1].split()[0] != 'Z')\n"
        "until = time.monotonic() + 10\n"
        "while ours.guardians()[0] != second and time.monotonic() < until: pass\n"
        "print(ours.guardians()[0] == second)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", host],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.split() == ["True", "True"]
