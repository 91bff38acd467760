"""Custody holds for an ordinary user as for root: whatever a daemon does to its own standing, it is found and ended."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.kinds.test_hostile import runs

DONE = '{"version":"0","type":"done","ok":true}'
LIVE = '{"version":"0","type":"log","level":"info","message":"%d"}'

# Imports are done, and tried, before the rights are dropped: the interpreter's own folders may be closed to others.
HOST = """
import asyncio, ctypes, os, sys
from narratoria.kinds.process.supervisor import run_process, sweep
async def run(argv, hear):
    await run_process(argv, b"", tool="t", on_events=hear, timeout=60)
    await sweep()
asyncio.run(run(["/bin/true"], print))
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
user, sys.executable = int(sys.argv[1]), sys.argv[2]
if user != os.geteuid():
    os.setgroups([]); os.setgid(user); os.setuid(user)
    ctypes.CDLL(None).prctl(4, 1)  # dumpable, as whoever logged in is
def hear(events):
    for event in events:
        print(os.getpid(), getattr(event, "message", ""), flush=True)
asyncio.run(run(sys.argv[3:], hear))
print("swept", flush=True)
"""
DAEMON = """
import ctypes, os, sys, time
reads, writes = os.pipe()
if os.fork() == 0:
    os.setsid()
    daemon = os.fork()
    if daemon:
        os._exit(0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1); os.dup2(1, 2)
    {become}
    os.write(writes, str(os.getpid()).encode())
    time.sleep(60)
    os._exit(0)
pid = int(os.read(reads, 20))
print('{live}' % pid, flush=True)
{then}
"""
BECOMING = {
    "not dumpable": "ctypes.CDLL(None).prctl(4, 0)",
    "not dumpable and without environment": (
        "os.execve(sys.executable, [sys.executable, '-S', '-c', "
        "'import ctypes, os, time; ctypes.CDLL(None).prctl(4, 0); os.write(%d, str(os.getpid()).encode()); '"
        "'time.sleep(60)' % (os.set_inheritable(writes, True) or writes)], {})"
    ),
}


def everybody() -> list[int]:
    """This user; and nobody, where we can become that."""
    return [os.geteuid(), pwd.getpwnam("nobody").pw_uid] if os.geteuid() == 0 else [os.geteuid()]


def interpreter(user: int) -> str:
    """A Python that the user may run."""
    if user == os.geteuid():
        return sys.executable
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([path, "-S", "-c", ""], user=user, check=False).returncode == 0:
                return path
    pytest.skip(f"user {user} may run none of the Python interpreters of this machine")


def start(user: int, argv: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOST, str(user), interpreter(user), *argv],
        env={**os.environ, "TMPDIR": "/tmp"},
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> tuple[int, int]:
    """The pids of the runtime and of the daemon its tool started."""
    assert process.stdout is not None
    runtime, daemon = process.stdout.readline().split()
    return int(runtime), int(daemon)


def daemon(user: int, how: str, then: str) -> list[str]:
    source = DAEMON.format(become=BECOMING[how], live=LIVE, then=then)
    return [interpreter(user), "-S", "-c", source]


@pytest.mark.parametrize("how", BECOMING)
@pytest.mark.parametrize("user", everybody())
def test_a_daemon_that_is_not_dumpable_ends_with_its_call(trial: Any, user: int, how: str) -> None:
    with start(user, daemon(user, how, f"print('{DONE}')")) as process:
        _, pid = said(process)
        try:
            assert process.stdout is not None
            assert process.stdout.read().endswith("swept\n")
            assert trial.eventually(lambda: not runs(pid), within=2)
        finally:
            if runs(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", BECOMING)
@pytest.mark.parametrize("user", everybody())
def test_a_daemon_that_is_not_dumpable_ends_with_the_runtime(trial: Any, user: int, how: str) -> None:
    with start(user, daemon(user, how, "time.sleep(60)")) as process:
        runtime, pid = said(process)
        try:
            assert runs(pid)
            os.kill(runtime, signal.SIGKILL)
            assert trial.eventually(lambda: not runs(pid), within=3)
        finally:
            if runs(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(shutil.which("ssh-agent") is None, reason="there is no ssh-agent on this machine")
@pytest.mark.parametrize("user", everybody())
def test_an_ssh_agent_ends_with_its_call(trial: Any, user: int) -> None:
    script = f"eval \"$(ssh-agent)\" >/dev/null; printf '{LIVE}\\n' \"$SSH_AGENT_PID\"; echo '{DONE}'"
    with start(user, ["/bin/sh", "-c", script]) as process:
        _, pid = said(process)
        assert process.stdout is not None
        assert process.stdout.read().endswith("swept\n")
        assert trial.eventually(lambda: not runs(pid), within=2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can end what became another user's")
def test_a_daemon_that_became_another_user_ends_with_roots_call(trial: Any) -> None:
    user = pwd.getpwnam("nobody").pw_uid
    become = f"os.setgroups([]); os.setgid({user}); os.setuid({user})"
    source = DAEMON.format(become=become, live=LIVE, then=f"print('{DONE}')")
    with start(0, [sys.executable, "-S", "-c", source]) as process:
        _, pid = said(process)
        assert process.stdout is not None
        assert process.stdout.read().endswith("swept\n")
        assert trial.eventually(lambda: not runs(pid), within=2)
