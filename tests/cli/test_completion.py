"""Shell completion offers the stories of the library and the saved sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def completed(home: Path, *words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    environment = os.environ | {
        "NARRATORIA_HOME": str(home),
        "_NARRATORIA_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["narratoria", *words]),
        "COMP_CWORD": str(len(words)),
    }
    environment.pop("NARRATORIA_STORE", None)
    done = subprocess.run(
        [sys.executable, "-m", "narratoria"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.split()


def begun(home: Path) -> str:
    environment = os.environ | {"NARRATORIA_HOME": str(home)}
    environment.pop("NARRATORIA_STORE", None)
    command = [
        sys.executable,
        "-m",
        "narratoria",
        "play",
        "torch",
        "--narrator",
        "rules",
        "--terminal",
        "--json",
    ]
    done = subprocess.run(
        command,
        env=environment,
        input="light the torch\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
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


def test_a_store_that_cannot_be_opened_offers_nothing(home: Path) -> None:
    home.mkdir()
    (home / "sessions.db").write_text("this is not a database" * 100)
    assert completed(home, "sessions", "show", "") == []
