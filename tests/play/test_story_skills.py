"""Skills of a story: its own, those it names, guides, and changes between two turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from narratoria.errors import StoryInvalid
from narratoria.events import Notice
from narratoria.play.game import Game, story_registry
from narratoria.play.story import Story
from narratoria.session import Record

SCRIPT = '#!/bin/sh\ncat > /dev/null\necho \'{"version":"0","type":"done","ok":true,"summary":"Knock."}\'\n'


def skill(folder: Path, name: str = "knock") -> Path:
    (folder / name / "scripts").mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Knocks.\n---\nTwice.\n")
    script = folder / name / "scripts" / "door"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    (folder / name / "scripts" / "door.tool.json").write_text(
        '{"name": "door", "description": "Knocks at a door."}'
    )
    return folder / name


@pytest.fixture
def story(tmp_path: Path) -> Path:
    root = tmp_path / "tale"
    root.mkdir()
    (root / "story.toml").write_text(
        'title = "Tale"\npremise = "A door."\n[opening]\nnarrative = "A door."\n'
    )
    (root / "narrator.toml").write_text(
        '[[rule]]\nid = "knock"\npatterns = ["knock"]\nnarrative = "You knock."\ncalls = [{ tool = "knock.door" }]\n'
    )
    return root


class Ear:
    full = False

    def __init__(self) -> None:
        self.heard: list[str] = []

    def push(self, record: Record) -> None:
        if isinstance(record.event, Notice):
            self.heard.append(record.event.message)


async def test_rules_call_scripts_of_the_storys_own_skill(story: Path) -> None:
    skill(story / "skills")
    game = Game.new(Story.load(story))
    game.begin()
    result = await game.prompt("knock")
    assert "Knock." in result.narrative
    assert [one.name for one in game.skills.skills] == ["knock"]


async def test_a_skill_that_comes_between_two_turns_is_used_without_a_restart(story: Path) -> None:
    game = Game.new(Story.load(story))
    ear = Ear()
    game.session.attach(ear)
    game.begin()
    assert "Knock." not in (await game.prompt("knock")).narrative
    game.session.health.clear()  # a tool that was missing is not tried again in a session that says so
    root = skill(story / "skills")
    assert "Knock." in (await game.prompt("knock")).narrative
    (root / "SKILL.md").write_text("broken")
    await game.prompt("look")
    await game.prompt("look")
    assert len([line for line in ear.heard if "must begin with a line ---" in line]) == 1, ear.heard


def test_a_story_uses_found_skills_only_if_it_names_them(
    story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    skill(tmp_path / ".agents" / "skills")
    assert len(story_registry(Story.load(story))) == 0
    text = (story / "story.toml").read_text()
    (story / "story.toml").write_text(f'skills = ["knock"]\n{text}')
    assert story_registry(Story.load(story)).has("knock.door")


def test_a_skill_that_is_named_and_nowhere_is_told_at_the_beginning(story: Path) -> None:
    text = (story / "story.toml").read_text()
    (story / "story.toml").write_text(f'skills = ["teleport"]\n{text}')
    game = Game.new(Story.load(story))
    ear = Ear()
    game.session.attach(ear)
    game.begin()
    assert any("there is no skill 'teleport'" in line for line in ear.heard)


def test_a_guide_may_be_about_a_skill_of_the_story_or_one_it_names(story: Path) -> None:
    skill(story / "skills")
    (story / "skills" / "knock.md").write_text("Never at night.")
    game = Game.new(Story.load(story))
    assert [(one.name, one.body, one.is_guide) for one in game.skills.skills] == [
        ("knock", "Twice.", False),
        ("knock", "Never at night.", True),
    ]
    (story / "skills" / "sing.md").write_text("Softly.")
    with pytest.raises(StoryInvalid, match="no tool belongs to the skill 'sing'; there are: knock"):
        Story.load(story)


@pytest.mark.parametrize("value", ['"dice"', "[1]", "5"])
def test_skills_are_a_list_of_names_or_tables(story: Path, value: str) -> None:
    text = (story / "story.toml").read_text()
    (story / "story.toml").write_text(f"skills = {value}\n{text}")
    with pytest.raises(StoryInvalid, match="key 'skills'"):
        Story.load(story)
