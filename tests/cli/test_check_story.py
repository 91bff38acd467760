"""A story's mistakes are told by check, by play and by the list of stories: file, line, and what was perhaps meant."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TERMINAL = ("--terminal", "--narrator", "rules")
TYPOS = {
    "a tool's name": (
        "narrator.toml",
        'tool = "tools/door-examiner"',
        'tool = "door-examinor"',
        "did you mean 'door-examiner'?",
    ),
    "an input": (
        "narrator.toml",
        'input = { action = "light_torch" }',
        'input = { acton = "light_torch" }',
        "did you mean 'action'?",
    ),
    "an operator": (
        "narrator.toml",
        "door_inscription = { missing = true }",
        "door_inscription = { mising = true }",
        "did you mean 'missing'?",
    ),
    "a key": ("story.toml", "title =", "titel =", "did you mean 'title'?"),
}


@pytest.fixture
def story(narratoria) -> Path:
    """A copy of the torch on the shelf of the player, under another id."""
    folder = narratoria.folder / "stories" / "mine"
    shutil.copytree(ROOT / "stories" / "torch", folder)
    toml = folder / "story.toml"
    toml.write_text(toml.read_text().replace('id = "torch"', 'id = "mine"'))
    return folder


def plant(story: Path, file: str, right: str, wrong: str) -> int:
    """Make a mistake at the first place, and return its line."""
    text = (story / file).read_text()
    at = text.index(right)
    (story / file).write_text(text[:at] + wrong + text[at + len(right) :])
    return text.count("\n", 0, at) + 1


@pytest.mark.parametrize(
    "typo",
    [pytest.param(typo, marks=pytest.mark.slow if number > 1 else ()) for number, typo in enumerate(TYPOS)],
)
def test_each_typo_is_named_with_its_line_by_every_command(narratoria, story: Path, typo: str) -> None:
    file, right, wrong, meant = TYPOS[typo]
    line = plant(story, file, right, wrong)
    checked = narratoria("check", story, "--json")
    assert checked.code == 1
    assert checked.json["conforms"] is False
    first = checked.json["problems"][0]
    assert (first["file"], first["line"], first["severity"]) == (str(story / file), line, "error")
    assert meant in first["message"]
    shown = narratoria("check", story)
    assert shown.code == 1 and f"{file}:{line}" in shown.out and meant in shown.out
    for played in (narratoria("play", story, *TERMINAL), narratoria("play", "mine", *TERMINAL)):
        assert played.code == 1
        assert f"{story / file}:{line}: " in played.err and meant in played.err
    listed = narratoria("stories")
    assert listed.code == 0
    assert f"{file}:{line}" in listed.out and meant in listed.out
    (one,) = [one for one in narratoria("stories", "--json").json if one["id"] == "mine"]
    assert one["problem"]["line"] == line and meant in one["problem"]["message"]


def test_a_sound_story_conforms(narratoria, story: Path) -> None:
    assert narratoria("check", story, "--json").json == {"conforms": True, "problems": []}
    shown = narratoria("check", "lighthouse", story)
    assert (shown.code, shown.err) == (0, "")
    assert "The Light at Sull Skerry" in shown.out and "no mistakes" in shown.out


def test_a_warning_alone_is_told_and_lets_the_story_be_played(narratoria, story: Path) -> None:
    line = plant(story, "story.toml", '"Light the torch", ', '"Xyzzy plugh", ')
    checked = narratoria("check", story, "--json")
    assert (checked.code, checked.json["conforms"]) == (0, True)
    (warning,) = checked.json["problems"]
    assert (warning["line"], warning["severity"]) == (line, "warning")
    played = narratoria("play", story, *TERMINAL, stdin="light the torch\n")
    assert played.code == 0
    assert f"story.toml:{line}" in played.err and "Xyzzy plugh" in played.err


def test_a_broken_copy_of_a_shipped_story_is_not_passed_over_for_the_original(
    narratoria, story: Path
) -> None:
    toml = story / "story.toml"
    toml.write_text(toml.read_text().replace('id = "mine"', 'id = "torch"\ntitel = "x"'))
    played = narratoria("play", "torch", *TERMINAL)
    assert played.code == 1 and "did you mean 'title'?" in played.err


def test_mistakes_become_annotations_and_a_junit_report(narratoria, story: Path) -> None:
    line = plant(story, *TYPOS["an operator"][:3])
    shown = narratoria("check", story, "--github", "--junit", "report.xml")
    assert shown.code == 1
    assert f"::error file={story / 'narrator.toml'},line={line},title=" in shown.out
    report = (narratoria.folder / "report.xml").read_text()
    assert "did you mean 'missing'?" in report and 'failures="1"' in report
