"""Shell completion offers the stories of the library, the saved sessions, tools and skills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests import warm_start


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def completed(home: Path, *words: str, cwd: Path | None = None) -> list[str]:
    """Return what bash would offer for the last word."""
    environment = os.environ | {
        "NARRATORIA_HOME": str(home),
        "_NARRATORIA_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["narratoria", *words]),
        "COMP_CWORD": str(len(words)),
    }
    environment.pop("NARRATORIA_STORE", None)
    done = warm_start.run(env=environment, cwd=cwd or ".", timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def begun(home: Path) -> str:
    environment = os.environ | {"NARRATORIA_HOME": str(home)}
    environment.pop("NARRATORIA_STORE", None)
    words = ["play", "torch", "--narrator", "rules", "--terminal", "--json"]
    done = warm_start.run(*words, env=environment, input="light the torch\n")
    assert done.returncode == 0, done.stderr
    return done.stdout.split('"session":"')[1].split('"')[0]


def test_a_story_is_completed_by_its_name(home: Path) -> None:
    assert completed(home, "play", "li") == ["plain,lighthouse"]
    assert set(completed(home, "play", "--story", "")) >= {"plain,lighthouse", "plain,torch"}


def test_a_story_that_is_no_name_of_the_library_is_left_to_the_shell_as_a_folder(home: Path) -> None:
    assert completed(home, "play", "./my") == ["dir,./my"]


def test_a_session_is_completed_by_its_id(home: Path) -> None:
    session = begun(home)
    offered = [f"plain,{session[:12]}"]
    assert completed(home, "sessions", "show", session[:3]) == offered
    assert completed(home, "sessions", "undo", "") == offered
    assert completed(home, "play", "--session", session[:1]) == offered
    assert completed(home, "sessions", "show", "zz") == []


def test_tools_are_completed_by_their_paths_and_scripts_of_skills_by_their_names(
    home: Path, tmp_path: Path
) -> None:
    for name in ("bell", "tools/lamp", "tools/lantern", "tools/far/off"):
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "here" / "notes.txt").write_text("no tool")
    here = tmp_path / "here"
    offered = completed(home, "call", "", cwd=here)
    assert {"plain,./bell", "plain,tools/lamp", "plain,tools/lantern", "plain,dice.roll"} <= set(offered)
    assert not any("notes" in one or "far" in one for one in offered)
    assert completed(home, "call", "tools/la", cwd=here) == ["plain,tools/lamp", "plain,tools/lantern"]
    assert completed(home, "call", "tools/", cwd=here) == ["file,tools/"], "the shell knows the folder too"
    assert completed(home, "call", "dice.", cwd=here) == ["plain,dice.roll"]
    assert completed(home, "call", "./no", cwd=here) == ["file,./no"]
    assert completed(home, "check", "b", cwd=here) == ["plain,./bell"]
    assert "plain,lighthouse" in completed(home, "check", "li", cwd=here)


def test_the_options_of_mcp_and_the_names_of_skills_are_completed(home: Path) -> None:
    assert completed(home, "mcp", "--story", "li") == ["plain,lighthouse"]
    assert completed(home, "skills", "show", "di") == ["plain,dice"]
    assert "plain,memory" in completed(home, "skills", "set", "")
    assert completed(home, "mcp", "--session", "zz") == []


def test_a_store_that_cannot_be_opened_offers_nothing(home: Path) -> None:
    home.mkdir()
    (home / "sessions.db").write_text("this is not a database" * 100)
    assert completed(home, "sessions", "show", "") == []
