"""The library: what is read again, and when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from narratoria.play import story_library
from narratoria.play.story import Story
from narratoria.play.story_library import BrokenStory, shelved

STORY = 'title = "T"\npremise = "P"\n[opening]\nnarrative = "N"\nchoices = ["A"]\n'
RULES = '[[rule]]\nid = "a"\npatterns = ["a"]\nnarrative = "x"\n'
SKILL = "---\nname: lamps\ndescription: How to light a lamp.\n---\nTrim the wick.\n"


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def loads(monkeypatch: pytest.MonkeyPatch, before: Callable[[], Any] = lambda: None) -> list[Path]:
    """Return a list of the folders that are read from now on."""
    read: list[Path] = []
    load = Story.load

    def noted(path: Path) -> Story:
        read.append(Path(path))
        before()
        return load(path)

    monkeypatch.setattr(story_library.Story, "load", noted)
    return read


def test_a_story_is_read_again_when_a_file_of_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "bell/story.toml", STORY)
    read = loads(monkeypatch)
    assert [one.title for one in shelved([tmp_path])] == ["T"]
    shelved([tmp_path])
    assert len(read) == 1
    write(tmp_path, "bell/story.toml", STORY.replace('"T"', '"The Bell"'))
    assert [one.title for one in shelved([tmp_path])] == ["The Bell"]
    write(tmp_path, "bell/story.toml", "title = ")
    assert isinstance(shelved([tmp_path])[0], BrokenStory)


def test_a_slow_reader_that_began_early_hides_nothing_that_came_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "bell/story.toml", STORY)
    begun, go_on = Event(), Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(10)

    read = loads(monkeypatch, wait)
    early = Thread(target=shelved, args=([tmp_path],))
    early.start()
    assert begun.wait(10)
    write(tmp_path, "gong/story.toml", STORY)
    write(tmp_path, "bell/story.toml", STORY.replace('"T"', '"The Bell"'))
    go_on.set()
    early.join(10)
    assert [(one.id, one.title) for one in shelved([tmp_path])] == [("gong", "T"), ("bell", "The Bell")]
    shelved([tmp_path])
    assert len(read) == 3, "the bell before and after its change, and the gong"


def test_a_skill_that_a_story_names_is_watched_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "stories/bell/story.toml", 'skills = ["lamps"]\n' + STORY)
    write(tmp_path, "stories/bell/narrator.toml", RULES)
    read = loads(monkeypatch)
    stories = tmp_path / "stories"
    (story,) = shelved([stories])
    assert isinstance(story, Story)
    assert "no skill 'lamps'" in story.warning
    assert shelved([stories]) == [story]
    assert len(read) == 1
    write(tmp_path, ".agents/skills/lamps/SKILL.md", SKILL)
    (story,) = shelved([stories])
    assert isinstance(story, Story)
    assert "lamps" not in story.warning
    assert len(read) == 2
