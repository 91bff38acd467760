"""What one command takes for a tool, every command and a story take for one, under the same name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from narratoria.errors import NarratoriaError, StoryInvalid
from narratoria.play.story import Story
from narratoria.run.tool_folder import folder_tools

STORY = 'title = "T"\npremise = "P"\nnarrator = ["template"]\n[opening]\nnarrative = "N"\n'
TOOL = """#!/usr/bin/env python3
import json, sys
given = json.load(sys.stdin)
seen = {key: given.get(key) for key in ("operation", "state", "dependencies", "input")}
print(json.dumps({"version": "0", "type": "state_patch", "patch": {"seen": seen}}), flush=True)
print(json.dumps({"version": "0", "type": "done", "ok": True}), flush=True)
"""


def write(path: Path, manifest: dict[str, object] | None = None, *, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TOOL, encoding="utf-8")
    path.chmod(mode)
    if manifest is not None:
        about = {"description": "Echoes.", **manifest}
        path.with_name(f"{path.stem}.tool.json").write_text(json.dumps(about), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("file", "manifest", "name"),
    [
        ("bare.py", {"name": "bare"}, "bare"),  # without the run bit: its suffix says how to run it
        ("ring", None, "ring"),
        ("ring", {"name": "ring"}, "ring"),
        ("ring.py", {"name": "ring"}, "ring"),
        ("ring.py", None, "ring"),
        ("Ring_It", None, "ring_it"),
        ("ring", {"name": "sound"}, "sound"),
        ("ring/ring", {"name": "ring"}, "ring"),
    ],
)
def test_all_take_the_same_files_for_tools(
    tmp_path: Path, file: str, manifest: dict[str, object] | None, name: str
) -> None:
    write(tmp_path / "tools" / file, manifest, mode=0o644 if file == "bare.py" else 0o755)
    (tmp_path / "story.toml").write_text(STORY)
    assert [tool.name for tool in Story.load(tmp_path).tools] == [name]
    assert [tool.name for tool in folder_tools(tmp_path / "tools").values()] == [name]


@pytest.mark.parametrize(
    ("manifest", "text", "says"),
    [
        ({"name": "ring", "wantState": True}, TOOL, "did you mean 'wantsState'?"),
        ({"name": "Ring!"}, TOOL, "name"),
        ({"name": "ring"}, "no program", "no shebang"),
    ],
)
def test_what_one_refuses_all_refuse(
    narratoria, tmp_path: Path, manifest: dict[str, object], text: str, says: str
) -> None:
    tool = write(tmp_path / "tools" / "ring", manifest, mode=0o644)
    tool.write_text(text, encoding="utf-8")
    (tmp_path / "story.toml").write_text(STORY)
    with pytest.raises(StoryInvalid) as refused:
        Story.load(tmp_path)
    with pytest.raises(NarratoriaError):
        folder_tools(tmp_path / "tools")
    assert says in str(refused.value)
    for command in (("check", tool), ("check", tmp_path / "tools"), ("call", tool)):
        ended = narratoria(*command)
        assert ended.code == 1
        assert says in ended.out + ended.err, command


def test_a_script_without_run_bit_and_manifest_gets_one_answer_everywhere(
    narratoria, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "tools" / "ring", mode=0o644)
    plan = {"requestId": "r", "narrative": "", "tools": [{"toolId": "a", "toolPath": "ring", "input": {}}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    says = "tools/ring is there but may not be run: chmod +x tools/ring"
    commands = [
        ("check", "tools/ring"), ("check", "tools"), ("call", "tools/ring"),
        ("run", "plan.json", "--tools", "tools"), ("lint", "plan.json", "--tools", "tools"),
    ]  # fmt: skip
    for named in ("ring", "tools/ring"):
        (tmp_path / "story.toml").write_text(STORY.replace("template", "rules"))
        (tmp_path / "narrator.toml").write_text(
            f'[[rule]]\nid = "ring"\npatterns = ["ring"]\nnarrative = "You ring."\ncalls = [{{ tool = "{named}" }}]\n'
        )
        with pytest.raises(StoryInvalid, match=re.escape(says)) as refused:
            Story.load(tmp_path)
        (problem,) = refused.value.problems
        assert problem.line == 5
    for command in commands:
        ended = narratoria(*command)
        assert ended.code == 1, command
        assert says in (ended.out + ended.err).replace(f"{tmp_path}/", ""), command
    (tmp_path / "narrator.toml").write_text('[[rule]]\nid = "r"\npatterns = ["r"]\nnarrative = "R."\n')
    assert says in str(Story.load(tmp_path).warnings[0])
    (tmp_path / "tools" / "ring").chmod(0o755)
    assert narratoria("run", "plan.json", "--tools", "tools").code == 0
    assert not Story.load(tmp_path).warnings


def test_run_and_lint_know_a_tool_in_a_folder_of_its_own_by_name(narratoria, tmp_path: Path) -> None:
    write(tmp_path / "tools" / "weather-vane" / "vane.py", {"name": "weather-vane"})
    write(tmp_path / "tools" / "clock" / "clock.py", {"name": "clock"})
    (tmp_path / "tools" / "clock" / "clock.tool.json").write_text("{")
    for named in ("weather-vane", "weather-vane/vane.py"):
        call = {"toolId": "a", "toolPath": named, "input": {}}
        plan = tmp_path / "plans" / "plan.json"
        plan.parent.mkdir(exist_ok=True)
        plan.write_text(json.dumps({"requestId": "r", "narrative": "", "tools": [call]}))
        for command in ("lint", "run"):
            ended = narratoria(command, plan, "--tools", tmp_path / "tools")
            assert ended.code == 0, ended.out + ended.err
    call["toolPath"] = "weather-van"
    plan.write_text(json.dumps({"requestId": "r", "narrative": "", "tools": [call]}))
    ended = narratoria("run", plan, "--tools", tmp_path / "tools")
    assert "did you mean 'weather-vane'?" in ended.out + ended.err


def test_two_tools_of_one_name_are_refused_by_a_story_too(tmp_path: Path) -> None:
    write(tmp_path / "tools" / "ring")
    write(tmp_path / "tools" / "more" / "ring", {"name": "ring"})
    (tmp_path / "story.toml").write_text(STORY)
    with pytest.raises(StoryInvalid, match="has the name 'ring' already"):
        Story.load(tmp_path)


def test_call_sends_a_state_an_operation_and_dependencies(narratoria, tmp_path: Path) -> None:
    tool = write(tmp_path / "ring", {"name": "ring", "wantsState": True})
    asked = ("--state", '{"bell": 2}', "--operation", "douse", "--dependencies", '{"a": {"b": 1}}')
    result = narratoria("call", tool, *asked, "--json").json
    assert result["output"]["seen"] == {
        "operation": "douse",
        "state": {"bell": 2},
        "dependencies": {"a": {"b": 1}},
        "input": {},
    }


def test_check_sends_them_too_and_has_the_stderr_of_a_crash(narratoria, tmp_path: Path) -> None:
    tool = write(tmp_path / "ring", {"name": "ring", "wantsState": True})
    tool.write_text(TOOL.replace("seen = ", 'given["state"]["bell"]["rung"]\nseen = '), encoding="utf-8")
    broken = narratoria("check", tool, "--json")
    assert broken.code == 1
    assert "KeyError: 'bell'" in broken.json["stderr"]
    (exit_rule,) = [one for one in broken.json["rules"] if one["rule"] == "exit-status"]
    assert "it crashed: KeyError: 'bell' (ring, line 4)" in exit_rule["detail"]
    asked = ("--state", '{"bell": {"rung": 1}}', "--json")
    (exit_rule,) = [
        one for one in narratoria("check", tool, *asked).json["rules"] if one["rule"] == "exit-status"
    ]
    assert exit_rule["verdict"] == "pass"


def test_check_finds_a_forgotten_flush_wherever_it_is_run(narratoria, tmp_path: Path) -> None:
    tool = write(tmp_path / "ring")
    tool.write_text(TOOL.replace(", flush=True", ""), encoding="utf-8")
    report = narratoria("check", tool, "--json", PYTHONUNBUFFERED="1").json
    (flushes,) = [one for one in report["rules"] if "flush" in one["rule"]]
    assert flushes["verdict"] == "fail"


def test_a_tool_that_is_not_built_yet_says_how(narratoria, tmp_path: Path) -> None:
    folder = tmp_path / "tools" / "vane"
    folder.mkdir(parents=True)
    (folder / "vane.tool.json").write_text('{"name": "vane", "description": "Turns."}')
    (folder / "Makefile").write_text("all:\n")
    ended = narratoria("check", tmp_path / "tools")
    assert ended.code == 1
    assert f"make -C {folder}" in ended.out + ended.err


def test_rules_without_a_story_toml_are_told_of(narratoria) -> None:
    folder = narratoria.folder / "stories" / "half"
    folder.mkdir(parents=True)
    (folder / "narrator.toml").write_text('[[rule]]\nid = "a"\npatterns = ["a"]\nnarrative = "A."\n')
    for command in (
        ("check", folder),
        ("check", folder.parent),
        ("stories",),
        ("play", folder, "--terminal"),
    ):
        ended = narratoria(*command)
        assert "story.toml: there is no such file; a story needs it" in ended.out + ended.err, command


def test_lint_and_tools_list_the_calls_that_are_asked_about(narratoria, tmp_path: Path) -> None:
    write(tmp_path / "tools" / "pay", {"name": "pay", "approval": "always"})
    write(tmp_path / "tools" / "look", {"name": "look"})
    calls = [
        {"toolId": "a", "toolPath": "pay", "input": {}, "approval": False},  # which it cannot take away
        {"toolId": "b", "toolPath": "look", "input": {}, "approval": True},
        {"toolId": "c", "toolPath": "look", "input": {}},
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"requestId": "r", "narrative": "", "tools": calls}))
    asked = ["a: pay: it always asks first", "b: look: the plan asks for approval"]
    assert narratoria("lint", plan, "--tools", tmp_path / "tools", "--json").json["approvals"] == asked
    assert "asked about first" in narratoria("lint", plan, "--tools", tmp_path / "tools").out
    assert "asks first: always" in narratoria("tools", "--tools", tmp_path / "tools").out
