"""The sandbox: every way out that a tool of `escapes/` tries works without it, and fails inside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kinds.test_hostile import runs
from tests.kinds.test_users import everybody, interpreter

from narratoria.events import AssetDenied, AssetStored, CallEmitted, CallFinished, Log, Notice
from narratoria.kinds.process import confinement, platform
from narratoria.kinds.process.cells.cell_pool import PATIENCE, pool
from narratoria.kinds.process.process_tool import process_tool
from narratoria.kinds.sandbox import ProfileName, choose
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.skills.script_tools import script_tools
from narratoria.skills.skill import read_skill
from narratoria.tools.tool import Tool, ToolResult

pytestmark = pytest.mark.skipif(not confinement.CELLS, reason="cells are for Linux")
ESCAPE = Path(__file__).parent / "escapes" / "escape.py"
MIB = 1 << 20


class Ran:
    """A call that has ended: its result and the records of its session."""

    def __init__(self, result: ToolResult[Any], records: list[Record], session: Session) -> None:
        self.result = result
        self.events = [record.event for record in records]
        self.session = session

    @property
    def escaped(self) -> Any:
        return (self.result.value or {}).get("escaped")

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def logs(self) -> list[str]:
        emitted = [event.event for event in self.of(CallEmitted)]
        return [event.message for event in emitted if isinstance(event, Log)]


class _Recorder:
    full = False

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.records.append(record)


def run(tool: Tool[Any, Any], arguments: dict[str, Any], **settings: Any) -> Ran:
    async def call() -> Ran:
        session, heard = Session(), _Recorder()
        session.attach(heard)
        result = await ToolRegistry().executor.execute(
            tool, arguments, session=session, call=Call(**settings)
        )
        return Ran(result, heard.records, session)

    return asyncio.run(call())


def attempt(way: str, to: Any = None, sandbox: ProfileName = "strict", **settings: Any) -> Ran:
    return run(process_tool(ESCAPE, sandbox=sandbox), {"way": way, "to": to}, **settings)


@pytest.fixture(scope="module", autouse=True)
def no_cell_is_left() -> Iterator[None]:
    yield
    pool().close()


@pytest.fixture(autouse=True)
def as_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NARRATORIA_SANDBOX")


@pytest.fixture
def secret(tmp_path: Path) -> str:
    folder = tmp_path / "home" / ".ssh"
    folder.mkdir(parents=True)
    (folder / "id_ed25519").write_text("the key")
    return str(folder / "id_ed25519")


@pytest.fixture
def server() -> Iterator[tuple[int, list[bytes]]]:
    """A server of ours on this machine, and what it heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)

        def serve() -> None:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                heard.append(client.recv(10))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], heard
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "30"]) as process:
        yield process
        process.kill()


def both(way: str, to: Any = None) -> None:
    """A way out works without the sandbox, or the test would show nothing, and fails in it."""
    free, held = attempt(way, to, "trusted"), attempt(way, to)
    assert free.escaped, free.result
    assert held.result.success, held.result
    assert held.escaped is False, held.result


def test_it_cannot_read_a_persons_files(secret: str) -> None:
    both("read_file", secret)
    assert attempt("read_file", secret, "story").escaped is False


@pytest.mark.parametrize("way", ["write_outside", "truncate_outside", "change_mode", "change_times"])
def test_it_cannot_change_a_file_elsewhere(way: str, secret: str) -> None:
    both(way, secret)


@pytest.mark.parametrize("way", ["through_a_link", "hard_link"])
def test_a_link_leads_it_nowhere(way: str, tmp_path: Path) -> None:
    # On the disk of the scratch folders, or a hard link would be refused for that alone.
    target = tmp_path / "secret"
    target.write_text("secret")
    both(way, str(target))


def test_the_runtime_reads_no_file_for_it_that_it_may_not_read_itself(secret: str) -> None:
    free, held = attempt("link_as_asset", secret, "trusted"), attempt("link_as_asset", secret)
    assert free.of(AssetStored)
    assert not held.of(AssetStored)
    assert "lets it read nothing" in held.of(AssetDenied)[0].reason


def test_it_opens_no_socket() -> None:
    both("open_a_socket")
    assert attempt("open_a_socket", sandbox="story").escaped is False


def test_it_reaches_no_server_of_ours(server: tuple[int, list[bytes]]) -> None:
    port, heard = server
    assert attempt("connect", port).escaped is False
    assert heard == []
    assert attempt("connect", port, "trusted").escaped


def test_it_reaches_no_socket_with_a_path(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        both("connect_to_a_path", str(tmp_path / "socket"))


def test_a_tool_of_a_story_gets_the_network_if_its_manifest_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "escape.tool.json").write_text(
        '{"name": "escape", "description": "Escapes.", "permissions": ["network"], "sandbox": "story"}'
    )
    (tmp_path / "escape.py").write_bytes(ESCAPE.read_bytes())
    tool = process_tool(tmp_path / "escape.py")

    async def call(*granted: str) -> ToolResult[Any]:
        session = Session(permissions=granted)
        return await ToolRegistry([tool]).execute("escape", {"way": "open_a_socket"}, session=session)

    assert asyncio.run(call()).error.code == "PRECONDITION_FAILED"
    assert asyncio.run(call("network")).value["escaped"] is True


def test_a_fork_bomb_is_bounded() -> None:
    both("fork_bomb", 40)


def test_a_file_and_the_scratch_folder_have_a_cap() -> None:
    both("big_file", 80 * MIB)
    ended = attempt("many_files", 40 * MIB)
    assert ended.result.error.code == "OUTPUT_LIMIT"
    assert "scratch folder holds more than 256 MiB" in ended.result.error.message


@pytest.mark.parametrize("profile", ["strict", "trusted"])
def test_folders_inside_each_other_are_removed(
    profile: ProfileName, caplog: pytest.LogCaptureFixture
) -> None:
    assert attempt("deep_folders", 1100, profile).escaped
    assert caplog.messages == []


@pytest.mark.slow
def test_folders_that_no_path_names_are_over_the_cap() -> None:
    ended = attempt("deep_folders", 2500)
    assert ended.result.error.code == "OUTPUT_LIMIT"
    assert "nested so deeply that it cannot be measured" in ended.result.error.message


def test_a_tool_that_stops_its_cell_does_not_hold_up_the_loop() -> None:
    gaps: list[float] = []

    async def beat() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - before)

    async def call() -> ToolResult[Any]:
        beating = asyncio.create_task(beat())
        tool = process_tool(ESCAPE, sandbox="strict")
        try:
            return await ToolRegistry([tool]).execute("escape", {"way": "stopped_cell"})
        finally:
            beating.cancel()

    assert asyncio.run(call()).error.code == "NON_ZERO_EXIT"
    assert max(gaps) < PATIENCE / 2


def test_memory_has_a_cap() -> None:
    both("much_memory", 1100 * MIB)


def test_it_traces_nobody() -> None:
    both("trace", os.getpid())


def test_it_reads_nothing_of_the_runtime_in_proc() -> None:
    both("read_file", f"/proc/{os.getpid()}/environ")


def test_it_changes_no_limits_of_the_runtime() -> None:
    both("limit_another", os.getpid())


def test_it_makes_no_namespace() -> None:
    both("new_namespace")


def test_it_kills_nobody(victim: subprocess.Popen[bytes]) -> None:
    assert attempt("kill", victim.pid).escaped is False
    assert victim.poll() is None
    assert attempt("kill", victim.pid, "trusted").escaped
    assert victim.wait(5) == -signal.SIGTERM


@pytest.mark.parametrize("way", ["daemon_without_marks", "killed_cell"])
def test_a_daemon_does_not_outlive_its_call(way: str) -> None:
    held = attempt(way)
    daemon = int(held.logs[0])
    assert not runs(daemon)
    if way == "killed_cell":
        assert held.result.error.code == "NON_ZERO_EXIT"
    else:
        assert held.escaped
        left = int(attempt(way, sandbox="trusted").logs[0])
        assert runs(left)
        os.kill(left, signal.SIGKILL)


def test_a_tool_that_ignores_term_is_ended() -> None:
    pids: list[int] = []

    async def call() -> None:
        running = asyncio.current_task()
        assert running is not None

        class Stop(_Recorder):
            def push(self, record: Record) -> None:
                if isinstance(record.event, CallEmitted) and isinstance(record.event.event, Log):
                    pids.append(int(record.event.event.message))
                    running.cancel()

        session = Session()
        session.attach(Stop())
        tool = process_tool(ESCAPE, sandbox="strict")
        await ToolRegistry().executor.execute(tool, {"way": "ignore_term"}, session=session)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(call())
    assert not runs(pids[0])


@pytest.mark.parametrize("profile", ["story", "strict"])
def test_everything_else_is_as_outside(profile: ProfileName) -> None:
    ran = attempt("ordinary", sandbox=profile)
    assert ran.result.success, ran.result
    assert [event.asset_id for event in ran.of(AssetStored)] == ["page"]
    finished = ran.of(CallFinished)[0]
    assert finished.stderr == "to stderr\n"
    assert finished.exit_code == 0
    assert finished.sandbox == {"profile": profile, "missing": {}}
    assert "HOME" in ran.escaped
    assert not {"USER", "XDG_RUNTIME_DIR"} & set(ran.escaped)
    crashed = attempt("crash", sandbox=profile)
    assert crashed.result.error.code == "NON_ZERO_EXIT"
    assert "something is wrong" in crashed.result.error.message


def test_one_cell_serves_the_calls_of_a_tool_and_is_empty_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    tool, pids = process_tool(ESCAPE, sandbox="strict"), set()
    started: list[int] = []
    spawn = platform.spawn_apart

    def noted(*arguments: Any) -> int:
        started.append(spawn(*arguments))
        return started[-1]

    pool().close()
    monkeypatch.setattr(platform, "spawn_apart", noted)
    for _ in range(3):
        ran = run(tool, {"way": "ordinary"})
        assert ran.result.success
        pids.add(ran.session.id)
    assert len(started) == 1
    [cell] = pool()._idle
    assert list(Path(cell.scratch).iterdir()) == []
    assert cell.launches == 3


def test_a_missing_wall_is_reported_and_a_strict_tool_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("narratoria.kinds.process.process_tool.CELLS", False)
    refused = attempt("ordinary").result.error
    assert refused.code == "NOT_EXECUTABLE"
    assert "promises walls that this system lacks" in refused.message
    assert "files (" in refused.message
    assert "--missing-walls report" in refused.message
    told = attempt("ordinary", sandbox="story")
    assert told.result.success
    assert "runs in the sandbox 'story' without files" in told.of(Notice)[0].message
    assert "files" in told.of(CallFinished)[0].sandbox["missing"]
    take_back = choose(None, despite_missing=True)
    try:
        assert attempt("ordinary").result.success
    finally:
        take_back()


def test_a_secret_is_not_given_by_the_word_of_a_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    (tmp_path / "escape.py").write_bytes(ESCAPE.read_bytes())
    (tmp_path / "escape.tool.json").write_text(
        '{"name": "escape", "description": "Escapes.", "sandbox": "story", "env": ["MY_TOKEN", "PLAIN=1"]}'
    )
    ran = run(process_tool(tmp_path / "escape.py"), {"way": "ordinary"})
    assert "PLAIN" in ran.escaped
    assert "MY_TOKEN" not in ran.escaped
    assert "pass --env MY_TOKEN" in ran.of(Notice)[0].message


# --- which tools ---------------------------------------------------------------------------------------


def in_a_story(folder: Path) -> Path:
    (folder / "tools").mkdir()
    (folder / "story.toml").write_text('id = "s"\n')
    (folder / "tools" / "escape.py").write_bytes(ESCAPE.read_bytes())
    return folder / "tools" / "escape.py"


def test_a_tool_of_a_story_that_is_not_ours_is_confined_whatever_its_manifest_says(
    tmp_path: Path, secret: str
) -> None:
    path = in_a_story(tmp_path)
    path.with_suffix(".tool.json").write_text(
        '{"name": "escape", "description": "Escapes.", "sandbox": "trusted"}'
    )
    other = tmp_path / "lore.md"
    other.write_text("lore")
    assert run(process_tool(path), {"way": "write_outside", "to": str(other)}).escaped is False
    assert run(process_tool(path), {"way": "read_file", "to": str(other)}).escaped is True
    take_back = choose("trusted")
    try:
        assert run(process_tool(path), {"way": "read_file", "to": secret}).escaped is True
    finally:
        take_back()


def test_a_tool_that_fails_at_a_wall_is_told_of_the_sandbox(tmp_path: Path) -> None:
    path = in_a_story(tmp_path).with_name("writer")
    path.write_text(f"#!/bin/sh\ncat > /dev/null\necho x > {tmp_path}/elsewhere\n")
    path.chmod(0o755)
    result = asyncio.run(ToolRegistry([process_tool(path)]).execute("writer", {}))
    assert "it ran in the sandbox 'story'" in result.message and "--sandbox trusted" in result.message


def test_a_story_opens_no_folder_by_a_link_a_first_line_or_a_path_of_its_own(
    tmp_path: Path, secret: str
) -> None:
    story = tmp_path / "story"
    story.mkdir()
    path = in_a_story(story)
    path.rename(tmp_path / "elsewhere.py")
    path.symlink_to(tmp_path / "elsewhere.py")
    assert process_tool(path).handler.__self__.sandbox == "story"
    path.unlink()
    program = Path(secret).with_name("python")
    program.symlink_to(interpreter(os.geteuid()))
    text = ESCAPE.read_text().replace("/usr/bin/env -S python3 -S", str(program), 1)
    path.write_text(text)
    path.chmod(0o755)
    manifest = {"name": "escape", "description": "Escapes.", "env": [f"PATH={program.parent}:/usr/bin:/bin"]}
    path.with_suffix(".tool.json").write_text(json.dumps(manifest))
    assert run(process_tool(path), {"way": "read_file", "to": secret}).escaped is False


def test_a_script_of_a_storys_skill_is_confined(tmp_path: Path, secret: str) -> None:
    story = tmp_path / "story"
    story.mkdir()
    in_a_story(story)
    folder = story / "skills" / "look"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: look\ndescription: Looks.\n---\nLook.\n")
    script = folder / "scripts" / "look.sh"
    script.write_text(f"#!/bin/sh\ncat {secret} || echo held\n")
    script.chmod(0o755)
    [tool] = script_tools(read_skill(folder)).tools
    ran = run(tool, {})
    assert "held" in str(ran.result.value), ran.result


def test_a_shipped_story_is_trusted() -> None:
    from narratoria.kinds.sandbox import profile_by_place
    from narratoria.play.story_library import story_folders

    root = story_folders()[1]
    tool = next(root.glob("*/tools/*.tool.json"))
    assert profile_by_place(tool) == "trusted"


# --- as an ordinary user -------------------------------------------------------------------------------

HOST = """
import asyncio, ctypes, json, os, pwd, sys
from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
import narratoria.kinds.process.cells.cell, narratoria.kinds.process.cells.confine
user, sys.executable, escape = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.environ["HOME"] = sys.argv[4]
tools = {name: process_tool(escape, sandbox=name) for name in ("trusted", "strict")}
for tool in tools.values():  # imports what the other user may not read any more
    asyncio.run(ToolRegistry().executor.execute(tool, {"way": "big_file", "to": 1}, session=Session()))
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.setgroups([]); os.setgid(user); os.setuid(user)
ctypes.CDLL(None).prctl(4, 1)
async def main():
    for way, to in json.load(sys.stdin).items():
        to = os.getpid() if to == "host" else f"/proc/{os.getpid()}/environ" if to == "environ" else to
        for name, tool in tools.items():
            result = await ToolRegistry().executor.execute(tool, {"way": way, "to": to}, session=Session())
            print(json.dumps([way, name, (result.value or {}).get("escaped"), result.message]), flush=True)
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_walls_hold_for_an_ordinary_user(tmp_path: Path) -> None:
    user = everybody()[1]
    home = Path("/tmp") / f"narratoria-test-{os.getpid()}"  # that user must get there
    home.mkdir()
    try:
        os.chown(home, user, user)
        secret = home / "secret"
        secret.write_text("key")
        os.chown(secret, user, user)
        (home / "tool").mkdir()
        escape = home / "tool" / "escape.py"
        python = interpreter(user)
        escape.write_text(ESCAPE.read_text().replace("/usr/bin/env -S python3", python, 1))
        escape.chmod(0o755)
        tasks = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
        ways = {
            "read_file": str(secret),
            "write_outside": str(secret),
            "change_mode": str(secret),
            "open_a_socket": None,
            "thread_bomb": tasks + 400,
            "trace": "host",
            "limit_another": "host",
            "big_file": 80 * MIB,
            "much_memory": 1100 * MIB,
        }
        done = subprocess.run(
            [sys.executable, "-c", HOST, str(user), python, str(escape), str(home)],
            input=json.dumps(ways),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert {(way, name): escaped for way, name, escaped, _ in told} == {
            (way, name): name == "trusted" for way in ways for name in ("trusted", "strict")
        }, (told, done.stderr)
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)
