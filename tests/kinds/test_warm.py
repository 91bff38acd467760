"""Warm tools: forks of an interpreter that has imported their modules, alike to cold starts in all that can be seen."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kinds.test_guardian import all_guardians, command, guardians, kill_together
from tests.kinds.test_process import Heard

from narratoria.events import Log
from narratoria.kinds.process import marks, platform, warm_conditions, warm_servers
from narratoria.kinds.process.process_tool import process_tool, warmth
from narratoria.kinds.process.python_script import NotPython, interpreter_of
from narratoria.kinds.process.supervisor import run_process
from narratoria.kinds.process.warm_servers import WarmScript, end_servers
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session

pytestmark = pytest.mark.skipif(bool(warm_conditions.obstacle()), reason="warm tools need pidfds and a tag")
DONE = 'print(\'{"version":"0","type":"done","ok":true}\', flush=True)\n'
SAY = '{"version":"0","type":"log","level":"info","message":"%s"}'
TELL = (
    "def tell(**fields):\n"
    "    log = {'version': '0', 'type': 'log', 'level': 'info', 'message': '', 'fields': fields}\n"
    "    print(json.dumps(log), flush=True)\n"
)


async def told(trial: Any, source: str, **options: Any) -> dict[str, Any]:
    """Return what a tool tells about itself."""
    trial.events.clear()
    outcome = await trial.python(f"import json, os, sys\n{TELL}{source}\n{DONE}", **options)
    assert outcome.done is not None and not outcome.cold, (outcome.stderr, outcome.cold)
    fields = next(event.fields for event in trial.events if isinstance(event, Log))
    assert fields is not None
    return fields


SELF = """
import resource, signal, threading
names = [n for n in dir(resource) if n.startswith("RLIMIT_")]
def stream(s):
    return [s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, s.isatty(), s.seekable(),
            s.fileno(), s.newlines, type(s.buffer).__name__]
tell(
    argv=sys.argv, orig=sys.orig_argv, path=sys.path, flags=str(sys.flags), executable=sys.executable,
    names=sorted(globals()), name=__name__, file=__file__, spec=__spec__, builtins=type(__builtins__).__name__,
    loader=[type(__loader__).__name__, __loader__.name, __loader__.path], package=__package__,
    itself=sys.modules["__main__"].__dict__ is globals(), warnings=sys.warnoptions, modules="tests" in sys.modules,
    leads=[os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()], cwd=os.getcwd(), umask=os.umask(0),
    ids=[os.getresuid(), os.getresgid(), os.getgroups()], nice=os.nice(0), affinity=sorted(os.sched_getaffinity(0)),
    limits=[[n, resource.getrlimit(getattr(resource, n))] for n in names],
    signals=[[n, str(signal.getsignal(n))] for n in sorted(signal.valid_signals())],
    mask=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), descriptors=sorted(os.listdir("/proc/self/fd")),
    streams=[stream(sys.stdin), stream(sys.stdout), stream(sys.stderr)], input=sys.stdin.read(),
    threads=[t.name for t in threading.enumerate()], recursion=sys.getrecursionlimit(),
    env={k: v for k, v in os.environ.items() if k != "NARRATORIA_CALL"}, depth=len(__import__("inspect").stack()),
)
"""


async def test_a_fork_cannot_be_told_from_a_cold_start(warm: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TMPDIR", str(warm.folder))
    warm.warm = False
    cold = await told(warm, SELF, stdin=b'{"a": 1}')
    warm.warm = True
    hot = await told(warm, SELF, stdin=b'{"a": 1}')
    assert hot.pop("depth") == cold.pop("depth") + 2  # the server, and its function that runs the script
    assert hot == cold


async def test_each_call_is_a_fork_of_one_server_and_knows_nothing_of_the_others(warm: Any) -> None:
    helper = warm.folder / "helper.py"
    helper.write_text("seen = []\n")
    os.utime(helper, (1, 1))  # one that was just written may change again unnoticed, and is not relied on
    source = (
        "import helper, random, tempfile\n"
        "tell(parent=os.getppid(), seen=helper.seen, leaked=os.environ.get('LEAK'), random=random.random(),\n"
        "     main=len(globals()), folder=tempfile.gettempdir(), call=os.environ['NARRATORIA_CALL'])\n"
        "helper.seen.append(1); os.environ['LEAK'] = 'x'; sys.path.append('/leak'); os.chdir('/')\n"
    )
    argv = warm.script(f"import json, os, sys\n{TELL}{source}{DONE}")
    calls: list[Any] = []
    for number in range(3):
        scratch = warm.folder / str(number)
        scratch.mkdir()
        env = {**os.environ, "TMPDIR": str(scratch)}
        warm.events.clear()
        outcome = await run_process(
            argv, b"{}", tool="t", on_events=warm.events.extend, timeout=20, env=env, **warm.way(argv)
        )
        assert outcome.exit_code == 0 and not outcome.cold, outcome
        calls.append(warm.events[0].fields)
    assert len({one["parent"] for one in calls}) == 1 and calls[0]["parent"] != os.getpid()
    assert [one["seen"] for one in calls] == [[]] * 3 and [one["leaked"] for one in calls] == [None] * 3
    assert len({one["random"] for one in calls}) == 3 and len({one["call"] for one in calls}) == 3
    assert [one["folder"] for one in calls] == [str(warm.folder / str(number)) for number in range(3)]


ENDINGS = {
    "a crash": "def f():\n    raise ValueError('no oil')\nf()\n",
    "a code": "sys.exit(7)\n",
    "words": "sys.exit('no oil')\n",
    "a signal": "import signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "an interrupt": "raise KeyboardInterrupt\n",
    "what was registered": "import atexit\natexit.register(print, 'bye', file=sys.stderr)\n",
    "a thread": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.05), print('late', file=sys.stderr))).start()\n",
    "a file left open": "file = open('left', 'w')\nfile.write('text')\n",
    "a file in a module": "json.kept = open('left', 'w')\njson.kept.write('text')\n",
    "a failing exit": "import atexit\natexit.register(lambda: 1 / 0)\n",
    "a fork": "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: os.write(2, b'child ')\n",
    "a closed output": "sys.stdout.close()\n",
    "a destructor": "class A:\n    def __del__(self): os.write(2, b'gone')\na = A()\n",
    "a mistake in the source": "def f(:\n",
}


@pytest.mark.parametrize("source", ENDINGS.values(), ids=list(ENDINGS))
async def test_a_fork_ends_as_a_cold_start_does(
    warm: Any, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(warm.folder)
    endings = []
    for way in (False, True):
        warm.warm = way
        outcome = await warm.python(f"import json, os, sys\n{DONE}{source}")
        left = Path("left")
        written = left.read_text() if left.exists() else None
        said = re.sub("0x[0-9a-f]+", "0x…", outcome.stderr)
        endings.append((outcome.exit_code, outcome.signal, said, outcome.done, written))
        left.unlink(missing_ok=True)
    assert endings[0] == endings[1]


async def test_a_call_is_timed_out_and_cancelled_with_all_it_started(warm: Any) -> None:
    source = (
        "import os, time\nos.system('sleep 60 & setsid sleep 60 >/dev/null 2>&1 &')\n"
        "if os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n"
        f"print({SAY!r} % 'up', flush=True)\ntime.sleep(60)\n"
    )
    outcome = await warm.python(source, timeout=0.5)
    assert outcome.timed_out and outcome.signal == signal.SIGTERM
    running = asyncio.create_task(warm.python(source, on_events=lambda _: up.set()))
    up = asyncio.Event()
    await asyncio.wait_for(up.wait(), 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    left = [pid for pid in await warm.orphans() if "fork_server" not in command(pid)]
    assert not left
    assert len(warm.alive()) == 1  # the server, and no fork of it
    end_servers()
    assert warm.eventually(lambda: not warm.alive())


# --- a server that fails, and a script that changes ----------------------------------------------------------


async def test_a_server_that_was_killed_between_calls_is_started_again(warm: Any) -> None:
    first = await told(warm, "tell(parent=os.getppid())")
    os.kill(first["parent"], signal.SIGKILL)
    warm.events.clear()
    argv = warm.argv
    outcome = await warm.run(argv, **warm.way(argv))  # its end may or may not have been noticed
    assert outcome.exit_code == 0 and outcome.done is not None
    assert outcome.cold in ("", "its server ended with status -9")
    third = await told(warm, "tell(parent=os.getppid())")
    assert third["parent"] not in (first["parent"], os.getpid())


@pytest.mark.parametrize(
    ("ending", "status"),
    [("", (0, None)), ("os._exit(3)", (None, signal.SIGKILL)), ("os.abort()", (None, signal.SIGKILL))],
)
async def test_a_server_that_dies_while_a_call_runs_takes_no_call_with_it(
    warm: Any, ending: str, status: tuple[int | None, int | None]
) -> None:
    gate = warm.folder / "gate"
    source = (
        f"import os, time\nprint({SAY!r} % os.getppid(), flush=True)\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\n{DONE}{ending}"
    )
    heard: asyncio.Queue[Any] = asyncio.Queue()
    running = asyncio.create_task(
        warm.python(source, on_events=lambda events: [*map(heard.put_nowait, events)] and None)
    )
    server = int((await asyncio.wait_for(heard.get(), 10)).message)
    os.kill(server, signal.SIGKILL)
    assert warm.eventually(lambda: platform.has_ended(server))
    gate.touch()
    outcome = await running
    assert outcome.done is not None and (outcome.exit_code, outcome.signal) == status
    assert not await warm.orphans()


@pytest.mark.slow
async def test_a_server_that_stalls_is_given_up_and_the_call_is_made_once(warm: Any) -> None:
    count = warm.folder / "count"
    source = f"open({str(count)!r}, 'a').write('x')\ntell(parent=os.getppid())"
    server = (await told(warm, source))["parent"]
    os.kill(server, signal.SIGSTOP)
    argv = warm.argv
    outcome = await warm.run(argv, **warm.way(argv))
    assert outcome.cold == "its server did not answer within 5 s" and outcome.exit_code == 0
    assert count.read_text() == "xx"
    assert warm.eventually(lambda: not Path(f"/proc/{server}").exists())


async def test_a_changed_script_or_module_restarts_the_server(warm: Any) -> None:
    helper = warm.folder / "helper.py"
    source = "import helper\ntell(parent=os.getppid(), word=helper.WORD)"
    servers, words = [], []
    for text in ("WORD = 'one'", "WORD = 'three'", None):
        if text is not None:
            helper.write_text(text)
        else:
            source += "\n# changed"
        fields = await told(warm, source)
        servers.append(fields["parent"])
        words.append(fields["word"])
    assert words == ["one", "three", "three"] and len({*servers}) == 3
    assert warm.eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in servers[:2]))


UNFIT = {
    "starts threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "writes to standard output": "print('hello')",
    "reads standard input": "import sys\nsys.stdin.read()",
    "opens files": "kept = open('/dev/null')",
    "starts processes": "import os\nif os.fork() == 0:\n    os.execvp('sleep', ['sleep', '60'])",
}


@pytest.mark.parametrize("why", UNFIT)
async def test_a_tool_that_cannot_be_forked_is_started_cold_and_says_why(warm: Any, why: str) -> None:
    (warm.folder / "helper.py").write_text(UNFIT[why])
    for _ in range(2):
        outcome = await warm.python(f"import helper\n{DONE}", linger=0.05)
        assert why in outcome.cold
        assert outcome.done is not None or why == "writes to standard output"  # which breaks the protocol
    (warm.folder / "helper.py").write_text("")
    assert not (await warm.python(f"import helper\n{DONE}")).cold  # repaired


# --- in a manifest -------------------------------------------------------------------------------------------


def written(folder: Path, source: str, **more: Any) -> Path:
    path = folder / "tool"
    path.write_text(source)
    path.chmod(0o755)
    (folder / "tool.tool.json").write_text(
        json.dumps({"name": "tool", "description": "A tool.", "warm": True, **more})
    )
    return path


@pytest.fixture
def ended() -> Iterator[None]:
    yield
    end_servers()


@pytest.mark.usefixtures("ended")
async def test_a_manifest_makes_a_tool_warm_and_a_session_hears_once_if_it_is_not(tmp_path: Path) -> None:
    shebang = f"#!{sys.executable} -S\n"
    path = written(
        tmp_path, f"{shebang}import os\nopen('{tmp_path}/by', 'w').write(str(os.getppid()))\n{DONE}"
    )
    session, heard = Session(), list[str]()
    session.attach(Heard(lambda record: heard.append(str(record.event))))
    tool, executor = process_tool(path), ToolRegistry().executor
    parents = []
    for _ in range(3):
        assert (await executor.execute(tool, {}, session=session)).success
        parents.append((tmp_path / "by").read_text())
    assert parents[0] == str(os.getpid()), "a server pays from the second call on"
    assert parents[1] == parents[2] != parents[0]
    assert not [one for one in heard if "started cold" in one]
    other = written(tmp_path, "#!/bin/bash\n" + DONE.replace("print(", "echo ").replace(", flush=True)", ""))
    assert warmth(tool) == ""
    tool = process_tool(other)
    assert warmth(tool) == "it is run by bash, not by Python"
    for _ in range(2):
        assert (await executor.execute(tool, {}, session=session)).success
    (notice,) = [one for one in heard if "started cold" in one]
    assert "it is run by bash, not by Python" in notice


async def test_the_interpreter_is_that_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "tool"

    def found(shebang: str) -> tuple[str, ...]:
        script.write_text(shebang + "\n")
        return interpreter_of([str(script)])

    assert found("#!/usr/bin/env python3") == ("/usr/bin/env", "python3")
    assert found("#!/usr/bin/env -S python3 -u -S") == ("/usr/bin/env", "python3", "-u", "-S")
    assert found("#! /usr/bin/python3.11 -I") == ("/usr/bin/python3.11", "-I")
    assert interpreter_of([sys.executable, str(script)]) == (sys.executable,)
    assert interpreter_of(["/usr/bin/env", "-S python3 -S", str(script)]) == ("/usr/bin/env", "python3", "-S")
    for bad in (
        "#!/bin/sh",
        "#!/usr/bin/env node",
        "#!/usr/bin/python3 -m",
        "#!/usr/bin/env -S python3 -X utf8",
        "",
    ):
        with pytest.raises(NotPython):
            found(bad)


# --- memory, and nothing left --------------------------------------------------------------------------------


async def test_an_idle_server_ends_itself_and_the_next_call_starts_another(warm: Any) -> None:
    argv = warm.script(f"import os\nos.write(2, b'%d' % os.getppid())\n{DONE}")
    script = WarmScript(tuple(argv[:-1]), argv[-1], idle=0.05)
    servers = []
    for _ in range(2):
        outcome = await warm.run(argv, warm=script.start)
        servers.append(int(outcome.stderr))
        until = asyncio.get_running_loop().time() + 10
        while Path(f"/proc/{servers[-1]}").exists() and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.01)  # the loop reaps it
        assert not Path(f"/proc/{servers[-1]}").exists() and not outcome.cold
    assert len({*servers}) == 2 and not warm.alive()


@pytest.mark.slow
async def test_servers_are_bounded_in_number_and_in_memory(warm: Any) -> None:
    for number in range(warm_servers.MOST_SERVERS + 2):
        argv = warm.script(DONE, f"tool{number}.py")
        assert not (await warm.run(argv, **warm.way(argv))).cold
    assert len([pid for pid in warm.alive() if "fork_server" in command(pid)]) == warm_servers.MOST_SERVERS
    (warm.folder / "large.py").write_text("import os\nkept = os.urandom(1 << 20) * 520\n")
    outcome = await warm.python(f"import large\n{DONE}")
    assert "and all servers may have 512" in outcome.cold and outcome.done is not None


HOST = """
import asyncio, sys
from narratoria.kinds.process.supervisor import run_process
from narratoria.kinds.process.warm_servers import WarmScript
def say(events):
    for event in events:
        print(event.message, flush=True)
script = WarmScript((sys.executable, "-S"), sys.argv[1])
asyncio.run(run_process(sys.argv[1:], b"{}", tool="t", on_events=say, timeout=60, warm=script.start))
"""
FAMILY = """
import os, signal, time
os.system("sleep 60 & setsid sleep 60 >/dev/null 2>&1 &")
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(60)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print('{"version":"0","type":"log","level":"info","message":"ready"}', flush=True)
while True:
    time.sleep(1)
"""


@contextmanager
def host(trial: Any) -> Iterator[subprocess.Popen[str]]:
    """A runtime of its own that runs a warm tool with a family."""
    temporary = trial.folder / trial.mark
    temporary.mkdir()
    program = [sys.executable, "-c", HOST, trial.script(FAMILY)[-1]]
    env = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(program, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            assert trial.eventually(lambda: len(all_guardians(trial)) == 2)
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("with_it", ["a guardian", "both guardians and the server"])
def test_nothing_of_a_warm_call_outlives_a_killed_runtime(trial: Any, with_it: str) -> None:
    with host(trial) as runtime:

        def forks() -> set[int]:
            return {pid for pid in trial.alive() if "fork_server" in command(pid)}

        assert trial.eventually(lambda: len(forks()) == 3)  # the server, the call, and its daemon
        servers = forks()
        server = {pid for pid in servers if marks.kin(pid).parent == runtime.pid}  # type: ignore[union-attr]
        assert len(server) == 1
        everyone = "server" in with_it
        kill_together(
            runtime.pid,
            *(all_guardians(trial) if everyone else guardians(trial)),
            *(server if everyone else ()),
        )
        runtime.wait(5)
        if everyone:  # then the next runtime ends what is left, as after a cold start
            next_one = [sys.executable, "-c", HOST, trial.script(DONE, "next.py")[-1]]
            env = {**os.environ, "TMPDIR": str(trial.folder / trial.mark)}
            subprocess.run(next_one, env=env, stdout=subprocess.DEVNULL, timeout=20, check=False)
        assert trial.eventually(lambda: not trial.alive(), within=5)
        assert not [pid for pid in servers if Path(f"/proc/{pid}").exists() and command(pid)]


async def test_a_daemon_without_marks_of_its_own_ends_with_its_call(warm: Any) -> None:
    source = (
        "import os, resource\nif os.fork() == 0:\n    os.setsid()\n    os.environ.clear()\n"
        "    resource.setrlimit(10, (resource.getrlimit(10)[1],) * 2)\n"
        f"    import time\n    os.closerange(0, 3)\n    time.sleep(60)\n{DONE}"
    )
    assert (await warm.python(source)).done is not None
    left = [pid for pid in await warm.orphans() if "fork_server" in command(pid)]
    assert len(left) == 1  # the server: its environment is all that the daemon shows, and it has no call
