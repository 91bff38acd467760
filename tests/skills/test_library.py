"""Finding skills, their scripts as tools, and changes while everything runs. Real folders, real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from narratoria import Session, ToolRegistry
from narratoria.skills.skill_library import CORE, Place, SkillLibrary, found_places, given_places


def make(folder: Path, name: str, body: str = "Do it well.", **scripts: str) -> Path:
    root = folder / name
    (root / "scripts").mkdir(parents=True)
    (root / "SKILL.md").write_text(f"---\nname: {name}\ndescription: The skill {name}.\n---\n{body}\n")
    for script, text in scripts.items():
        path = root / "scripts" / script
        path.write_text(text)
        path.chmod(0o755)
    return root


def manifest(root: Path, script: str, **more: object) -> None:
    data = {"name": script, "description": f"Does {script}.", **more}
    (root / "scripts" / f"{script}.tool.json").write_text(json.dumps(data))


DONE = """#!/bin/sh
cat > /dev/null
echo '{"version":"0","type":"state_patch","patch":{"skill":"'$NARRATORIA_SKILL'"}}'
echo '{"version":"0","type":"done","ok":true,"summary":"Done."}'
"""


async def test_a_script_with_a_manifest_is_a_tool_of_the_skill(tmp_path: Path) -> None:
    root = make(tmp_path, "torch-light", light=DONE)
    manifest(root, "light", parameters={"type": "object", "additionalProperties": False}, timeout=5)
    library = SkillLibrary(given_places([tmp_path]))
    assert not library.problems
    [tool] = library.tools
    assert (tool.name, tool.skill, tool.kind.name, tool.timeout) == (
        "torch-light.light",
        "torch-light",
        "skill",
        5,
    )
    registry, session = ToolRegistry(), Session()
    library.follow(registry)
    result = await registry.execute("torch-light.light", {}, session=session)
    assert result.success, result.error
    assert session.state == {"skill": "torch-light"}
    refused = await registry.execute("torch-light.light", {"x": 1})
    assert refused.error is not None and refused.error.code == "INVALID_ARGUMENTS"


async def test_a_script_without_a_manifest_is_a_program_with_arguments(tmp_path: Path) -> None:
    root = make(tmp_path, "words")
    (root / "scripts" / "count.py").write_text(
        "import sys\nprint(len(sys.stdin.read().split()), *sys.argv[1:])\n"
    )  # no run bit: other people's skills are unpacked from archives
    (root / "scripts" / "fail.sh").write_text("echo broken >&2; echo half; exit 3\n")
    (root / "scripts" / "data.json").write_text("{}")
    (root / "scripts" / "_own.py").write_text("")
    library = SkillLibrary(given_places([tmp_path]))
    assert [tool.name for tool in library] == ["words.count", "words.fail"]
    registry = ToolRegistry(library)
    result = await registry.execute("words.count", {"args": ["-v"], "stdin": "one two"})
    assert result.value == {"text": "2 -v"}
    failed = await registry.execute("words.fail", {})
    assert failed.error is not None
    assert failed.error.code == "SCRIPT_FAILED"
    assert "status 3: half" in failed.error.message
    assert "broken" in (failed.error.details or {})["stderr"]
    wrong = await registry.execute("words.count", {"argv": []})
    assert wrong.error is not None and wrong.error.code == "INVALID_ARGUMENTS"


def test_names_are_mapped_predictably_and_the_mapping_is_told(tmp_path: Path) -> None:
    make(tmp_path, "würfel", **{"Roll It": DONE, "roll.py": "", "roll.sh": "true", "one.py": ""})
    for empty in ("roll.py", "one.py"):
        (tmp_path / "würfel" / "scripts" / empty).write_text("print()")
    library = SkillLibrary(given_places([tmp_path]))
    assert [tool.name for tool in library] == [
        "w_rfel.roll_it",
        "w_rfel.one",
        "w_rfel.roll_py",
        "w_rfel.roll_sh",
    ]
    assert "w_rfel.roll_it: the script Roll It of the skill 'würfel'" in library.notes


def test_an_invalid_skill_is_skipped_with_its_reason_and_hides_no_other(tmp_path: Path) -> None:
    make(tmp_path, "good", do=DONE)
    make(tmp_path, "bad").joinpath("SKILL.md").write_text("---\nname: worse\n---\n")
    broken = make(tmp_path, "half", do=DONE)
    manifest(broken, "do", timeout="soon")
    (tmp_path / "notes").mkdir()
    library = SkillLibrary(given_places([tmp_path]))
    assert [skill.name for skill in library.skills] == ["good", "half"]
    assert [tool.name for tool in library] == ["good.do"]
    assert any("the folder is 'bad'" in line for line in library.problems)
    assert any("half.do: " in line and "timeout" in line for line in library.problems)
    assert any("notes: has no SKILL.md" in line for line in library.notes)
    found = SkillLibrary([Place(tmp_path, "user")])
    assert not found.problems, "what nobody named is nobody's mistake"
    assert any("the folder is 'bad'" in line for line in found.notes)


def test_of_two_skills_with_one_name_the_first_place_wins(tmp_path: Path) -> None:
    make(tmp_path / "a", "dice", "first", roll=DONE)
    make(tmp_path / "b", "dice", "second", roll=DONE, more=DONE)
    library = SkillLibrary(given_places([tmp_path / "a", tmp_path / "b"]))
    assert [skill.body for skill in library.skills] == ["first"]
    assert [tool.name for tool in library] == ["dice.roll"]
    assert any("has the same name 'dice'" in line for line in library.notes)


def test_the_project_the_person_and_we_have_skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    make(tmp_path / "home" / ".agents" / "skills", "mine")
    make(tmp_path / "work" / ".agents" / "skills", "ours")
    monkeypatch.chdir(tmp_path / "work")
    names = [skill.name for skill in SkillLibrary(found_places()).skills]
    assert names == ["ours", "mine", *sorted(path.name for path in CORE.iterdir())]
    chosen = SkillLibrary(found_places(["mine", "dice"]))
    assert [skill.name for skill in chosen.skills] == ["mine", "dice"]


def test_a_working_folder_that_is_gone_hides_no_other_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert SkillLibrary(found_places(["dice"])).get("dice") is not None


def test_a_folder_that_is_itself_a_skill_can_be_named(tmp_path: Path) -> None:
    root = make(tmp_path, "solo", do=DONE)
    assert [tool.name for tool in SkillLibrary(given_places([root]))] == ["solo.do"]


def test_changes_are_picked_up_and_what_did_not_change_stays(tmp_path: Path) -> None:
    make(tmp_path, "kept", do=DONE)
    changing = make(tmp_path, "changing", do=DONE)
    library, registry = SkillLibrary(given_places([tmp_path])), ToolRegistry()
    library.follow(registry)
    kept = registry.get("kept.do")
    assert library.refresh() is False
    (changing / "scripts" / "again").write_text(DONE)
    (changing / "scripts" / "again").chmod(0o755)
    assert library.refresh() is True
    assert {tool.name for tool in registry} == {"kept.do", "changing.do", "changing.again"}
    assert registry.get("kept.do") is kept
    (changing / "SKILL.md").write_text("---\nname: changing\ndescription: Now.\n---\nOther words.\n")
    library.refresh()
    assert library.get("changing").body == "Other words."  # type: ignore[union-attr]
    (changing / "SKILL.md").write_text("no skill any more")
    library.refresh()
    assert {tool.name for tool in registry} == {"kept.do"}
    assert any("must begin with a line ---" in line for line in library.problems)
    make(tmp_path, "new", do=DONE)
    (tmp_path / "kept").rename(tmp_path / "_kept")
    library.refresh()
    assert {tool.name for tool in registry} == {"new.do"}


def test_a_name_that_is_taken_stays_with_its_owner(tmp_path: Path) -> None:
    make(tmp_path / "a", "dice", roll=DONE)
    registry = ToolRegistry(SkillLibrary(given_places([tmp_path / "a"])))
    owner = registry.get("dice.roll")
    make(tmp_path / "b", "dice", roll=DONE)
    library = SkillLibrary(given_places([tmp_path / "b"]))
    library.follow(registry)
    assert registry.get("dice.roll") is owner
    assert any("another tool has this name" in line for line in library.notes)
