"""`--skills`: skills on the command line, found or named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def skills(narratoria: Any) -> Path:
    folder: Path = narratoria.folder / "shelf"
    root = folder / "greet"
    (root / "scripts").mkdir(parents=True)
    (root / "SKILL.md").write_text("---\nname: greet\ndescription: Greets people.\n---\nBe brief.\n")
    (root / "scripts" / "hello.sh").write_text('echo "Hello, $1."\n')
    (folder / "bad").mkdir()
    (folder / "bad" / "SKILL.md").write_text("---\nname: worse\ndescription: x\n---\n")
    narratoria.env["HOME"] = str(narratoria.folder)
    return folder


def test_tools_lists_scripts_of_skills_and_the_reason_for_a_skipped_one(
    narratoria: Any, skills: Path
) -> None:
    ended = narratoria("tools", "--skills", skills, "--json")
    assert ended.code == 1
    found = {one["name"]: one for one in ended.json["tools"]}
    assert found["greet.hello"]["kind"] == "skill"
    assert found["greet.hello"]["from"] == str(skills / "greet" / "scripts" / "hello.sh")
    assert found["greet.hello"]["skill"] == "greet"
    assert "dice.roll" in found, "ours are always there"
    assert any("the folder is 'bad'" in line for line in ended.json["problems"])


def test_skills_of_the_project_and_of_the_person_are_found(narratoria: Any, skills: Path) -> None:
    (narratoria.folder / ".agents").mkdir()
    skills.rename(narratoria.folder / ".agents" / "skills")
    ended = narratoria("tools", "--json")
    assert ended.code == 0, ended.err
    assert "greet.hello" in {one["name"] for one in ended.json["tools"]}
    assert any("the folder is 'bad'" in line for line in ended.json["notes"])
    called = narratoria("call", "greet.hello", "--input", '{"args": ["Marit"]}', "--json")
    assert called.code == 0, called.err
    assert called.json["output"] == {"text": "Hello, Marit."}


def test_a_script_is_called_by_its_name(narratoria: Any, skills: Path) -> None:
    ended = narratoria("call", "greet.hello", "--skills", skills, "--input", '{"args": ["you"]}')
    assert ended.code == 0 and "Hello, you." in ended.out
    missing = narratoria("call", "greet.bye", "--skills", skills, "--json")
    assert missing.code == 1
    assert "it has greet.hello" in missing.json["error"]
    bad = narratoria("call", "bad.x", "--skills", skills, "--json")
    assert "the folder is 'bad'" in bad.json["error"]


def test_a_plan_runs_scripts_and_lint_knows_them(narratoria: Any, skills: Path) -> None:
    plan = narratoria.folder / "plan.json"
    calls = [
        {"toolId": "one", "toolPath": "greet.hello", "input": {"args": ["one"]}, "dependencies": []},
        {"toolId": "two", "toolPath": "dice.roll", "input": {"dice": "d6"}, "dependencies": []},
    ]
    plan.write_text(json.dumps({"requestId": "p", "tools": calls}))
    ended = narratoria("run", plan, "--skills", skills, "--json")
    assert ended.code == 0, ended.out
    assert ended.json["toolResults"][0]["output"] == {"text": "Hello, one."}
    assert narratoria("lint", plan, "--skills", skills).code == 0
    assert narratoria("lint", plan).code == 1


def test_narrate_and_play_use_skills_that_are_named(narratoria: Any, skills: Path) -> None:
    narrated = narratoria("narrate", "xyzzy", "--story", "torch", "--skills", skills, "--json")
    assert narrated.code == 0
    assert "the folder is 'bad'" in narrated.err
    played = narratoria("play", "torch", "--terminal", "--json", "--skills", skills, stdin="/quit\n")
    assert played.code == 0
    assert "the folder is 'bad'" in played.out + played.err


def test_a_story_lists_only_the_skills_it_uses(narratoria: Any, skills: Path) -> None:
    ended = narratoria("tools", "--story", "torch", "--json")
    assert not any(one["kind"] == "skill" for one in ended.json["tools"])
    example = Path(__file__).parents[2] / "examples" / "stories" / "toll-bridge"
    bridge = narratoria("tools", "--story", example, "--json")
    assert {one["name"] for one in bridge.json["tools"]} == {
        "choices.offer", "dice.roll", "memory.recall", "memory.store", "perception.notice", "reputation.change",
        "reputation.fade",
    }  # fmt: skip
