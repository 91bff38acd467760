"""A tool gets a short list of variables, what its manifest names and what the person passes; nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from narratoria.conformance import check_tool
from narratoria.errors import ToolValidationError
from narratoria.events import Notice
from narratoria.kinds.environment import OURS, STANDARD, pass_on
from narratoria.kinds.process import marks
from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session

SECRETS = (
    "OPENAI_API_KEY",
    "GITHUB_TOKEN",
    "AWS_SECRET",
    "NARRATORIA_LLM_API_KEY",
    "NARRATORIA_STORE",
    "PGPASSWORD",
)
TELL = """#!/usr/bin/env python3
import json, os
patch = {"env": dict(os.environ), "cwd": os.getcwd()}
print(json.dumps({"version": "0", "type": "state_patch", "patch": patch}))
print(json.dumps({"version": "0", "type": "done", "ok": True}))
"""


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    monkeypatch.setenv("LC_TIME", "C")


def write_tool(folder: Path, source: str = TELL, **manifest: Any) -> Path:
    path = folder / "tell"
    path.write_text(source)
    path.chmod(0o755)
    if manifest:
        (folder / "tell.tool.json").write_text(
            json.dumps({"name": "tell", "description": "Tells.", **manifest})
        )
    return path


class Ear:
    full = False

    def __init__(self) -> None:
        self.notices: list[str] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        if isinstance(record.event, Notice):
            self.notices.append(record.event.message)


async def told(path: Path, session: Session | None = None, **options: Any) -> dict[str, Any]:
    session = session or Session()
    result = await ToolRegistry().executor.execute(process_tool(path, **options), {}, session=session)
    assert result.success, result.error
    value = result.value
    assert isinstance(value, dict)
    return value


@pytest.fixture
def passing() -> Iterator[Any]:
    taken: list[Any] = []
    yield lambda *entries: taken.append(pass_on(entries))
    for one in taken:
        one()


async def test_a_tool_gets_the_standard_variables_and_no_secret(tmp_path: Path) -> None:
    env = (await told(write_tool(tmp_path)))["env"]
    known = {name for names in STANDARD.values() for name in names} | set(OURS)
    assert set(env) <= known | {"LC_CTYPE"}  # Python sets that one itself
    assert not set(env) & set(SECRETS)
    for name in ("PATH", "HOME", "TZ", "LC_TIME"):
        assert env[name] == os.environ[name]
    assert env[marks.COOKIE] and env["TMPDIR"] == env["TEMP"] == env["TMP"] != os.environ.get("TMPDIR")


async def test_what_the_manifest_names_is_passed(tmp_path: Path) -> None:
    path = write_tool(tmp_path, env=["GITHUB_TOKEN", "MODE=fast = good", "EMPTY="])
    env = (await told(path))["env"]
    assert (env["GITHUB_TOKEN"], env["MODE"], env["EMPTY"]) == ("secret", "fast = good", "")
    assert not set(env) & (set(SECRETS) - {"GITHUB_TOKEN"})


async def test_whoever_embeds_a_tool_passes_more(tmp_path: Path) -> None:
    env = (await told(write_tool(tmp_path, env=["MODE=slow"]), env=["PGPASSWORD", "MODE=fast"]))["env"]
    assert (env["PGPASSWORD"], env["MODE"]) == ("secret", "fast")


async def test_what_the_person_passes_reaches_every_tool_and_comes_first(
    tmp_path: Path, passing: Any
) -> None:
    passing("PGPASSWORD", "MODE=mine")
    env = (await told(write_tool(tmp_path, env=["MODE=slow"])))["env"]
    assert (env["PGPASSWORD"], env["MODE"]) == ("secret", "mine")


async def test_what_was_taken_back_is_passed_no_more(tmp_path: Path) -> None:
    pass_on(["PGPASSWORD"])()
    assert "PGPASSWORD" not in (await told(write_tool(tmp_path)))["env"]


async def test_a_named_variable_that_is_not_set_is_told_once_and_the_tool_runs(tmp_path: Path) -> None:
    path = write_tool(tmp_path, env=["WEATHER_KEY"])
    session, ear = Session(), Ear()
    session.attach(ear)
    tool = process_tool(path)
    for _ in range(2):
        assert (await ToolRegistry().executor.execute(tool, {}, session=session)).success
    (notice,) = ear.notices
    assert (
        "tell: its manifest names WEATHER_KEY, which is not set" in notice and "--env WEATHER_KEY=" in notice
    )


async def test_a_value_that_the_person_gives_sets_a_named_variable(tmp_path: Path, passing: Any) -> None:
    passing("WEATHER_KEY=sun")
    session, ear = Session(), Ear()
    session.attach(ear)
    assert (await told(write_tool(tmp_path, env=["WEATHER_KEY"]), session))["env"]["WEATHER_KEY"] == "sun"
    assert not ear.notices


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("9LIVES", "env"),
        ("=x", "env"),
        ("A B", "env"),
        ("TMPDIR=/x", "set by the runtime"),
        (marks.COOKIE, "set by"),
    ],
)
def test_a_manifest_that_names_no_variable_is_refused(tmp_path: Path, entry: str, says: str) -> None:
    with pytest.raises(ToolValidationError, match=says):
        process_tool(write_tool(tmp_path, env=[entry]))


def test_a_person_cannot_pass_what_is_not_there() -> None:
    with pytest.raises(ToolValidationError, match="WEATHER_KEY is not set here"):
        pass_on(["WEATHER_KEY"])


async def test_a_rollback_by_the_same_executable_gets_the_same(tmp_path: Path) -> None:
    source = f"""#!/usr/bin/env python3
import json, os, sys
request = json.load(sys.stdin)
if request["operation"] == "undo":
    open({str(tmp_path / "undone")!r}, "w").write(json.dumps(dict(os.environ)))
print(json.dumps({{"version": "0", "type": "done", "ok": True}}))
"""
    effect = {"type": "state_change", "state": "x", "value": 1, "rollback": {"operation": "undo"}}
    tool = process_tool(write_tool(tmp_path, source, env=["MODE=fast"], effects=[effect]))
    rollback: Any = tool.effects[0].rollback
    await ToolRegistry().executor.execute(rollback.tool, {}, session=Session())
    env = json.loads((tmp_path / "undone").read_text())
    assert env["MODE"] == "fast" and not set(env) & set(SECRETS)


def test_the_conformance_kit_gives_what_a_call_gives(tmp_path: Path) -> None:
    source = TELL.replace(
        "print(json", f"open({str(tmp_path / 'env')!r}, 'w').write(json.dumps(patch))\nprint(json", 1
    )
    report = check_tool(write_tool(tmp_path, source, env=["MODE=fast", "WEATHER_KEY"]))
    env = json.loads((tmp_path / "env").read_text())["env"]
    assert env["MODE"] == "fast" and not set(env) & set(SECRETS)
    assert report.unset == ("WEATHER_KEY",)


async def test_the_working_directory_is_ours_or_the_one_given(tmp_path: Path, monkeypatch: Any) -> None:
    path = write_tool(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert (await told(path))["cwd"] == str(tmp_path / "here")
    assert (await told(path, cwd=tmp_path / "there"))["cwd"] == str(tmp_path / "there")


async def test_an_assets_path_is_read_from_the_folder_the_tool_runs_in(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = write_tool(
        tmp_path,
        "#!/bin/sh\necho hello >note.txt\n"
        """echo '{"version":"0","type":"asset","assetId":"a","kind":"text",'"""
        """'"mediaType":"text/plain","path":"note.txt"}'\n"""
        """echo '{"version":"0","type":"done","ok":true}'\n""",
    )
    session, ear = Session(), Ear()
    session.attach(ear)
    await told(path, session, cwd=tmp_path / "there")
    assert (tmp_path / "there" / "note.txt").exists() and not ear.notices


def test_the_page_on_the_protocol_lists_the_standard_variables() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    section = page.partition("## The environment")[2].partition("\n## ")[0]
    table = {
        name
        for line in section.splitlines()
        if line.startswith("| ")
        for name in re.findall(r"`([A-Z0-9_]+)`", line)
    }
    assert table == {name for names in STANDARD.values() for name in names}
