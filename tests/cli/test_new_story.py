"""`narratoria new story`: from nothing to a story that is played, with a tool and a test of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_a_new_story_is_sound_and_is_played_to_its_end(narratoria) -> None:
    made = narratoria("new", "story", "old-mill", "--json").json
    folder = narratoria.folder / "old-mill"
    assert {Path(file).name for file in made["files"]} >= {
        "story.toml",
        "narrator.toml",
        "ring",
        "test_story.py",
    }
    assert narratoria("check", "old-mill", "--json").json == {"conforms": True, "problems": []}
    played = narratoria(
        "play", "old-mill", "--terminal", "--json", "--narrator", "rules",
        stdin="go into the yard\ngo into the tower\nlook around\nring the bell\npull the rope\nring the bell\n",
    )  # fmt: skip
    assert played.code == 0, played.err
    turns = [json.loads(line) for line in played.out.splitlines()]
    assert (turns[0]["narrative"][:22], turns[2]["state"]["place"]["id"]) == (
        "You stand at the gate.",
        "tower",
    )
    assert turns[-1]["ending"] == {"id": "heard", "title": "The Bell Is Heard"}
    assert "Dong! Dong! Dong!" in turns[-1]["narrative"]
    assert 'title = "Old Mill"' in (folder / "story.toml").read_text()


def test_a_tool_that_fails_is_told_as_the_story_tells_it(narratoria) -> None:
    narratoria("new", "story", "bell")
    (narratoria.folder / "bell" / "tools" / "ring").write_text("#!/bin/sh\nexit 1\n")
    asked = "yard\ntower\nring the bell\n"
    played = narratoria("play", "bell", "--terminal", "--json", "--narrator", "rules", stdin=asked)
    assert "The rope slips through your hands" in json.loads(played.out.splitlines()[-1])["narrative"]


def test_its_own_test_passes(narratoria) -> None:
    narratoria("new", "story", "bell")
    bin_folder = Path(sys.executable).parent
    ran = subprocess.run(
        [sys.executable, "bell/test_story.py"],
        cwd=narratoria.folder,
        env={**narratoria.env, "PATH": f"{bin_folder}:{narratoria.env['PATH']}"},
        capture_output=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr.decode()


def test_a_story_is_not_written_over(narratoria) -> None:
    narratoria("new", "story", "bell")
    again = narratoria("new", "story", "bell")
    assert (again.code, "nothing was written" in again.err) == (1, True)
    assert narratoria("new", "story", "Old Mill").code == 2
