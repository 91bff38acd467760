"""A session begun from a story's folder finds that folder again, from anywhere; when it has gone, says where it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASKED = ("--terminal", "--json", "--narrator", "rules")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A story that lies on no shelf, with an id no shipped story has."""
    folder = tmp_path / "desk" / "mystory"
    shutil.copytree(ROOT / "stories" / "torch", folder)
    toml = folder / "story.toml"
    toml.write_text(toml.read_text().replace('id = "torch"', 'id = "own-torch"'))
    return folder


@pytest.fixture
def session(narratoria, own: Path) -> str:
    played = narratoria("play", own, *ASKED, stdin="light the torch\nexamine the door\n")
    assert played.code == 0, played.err
    return str(json.loads(played.out.splitlines()[0])["session"])


def test_the_folder_is_found_again_by_every_command(narratoria, own: Path, session: str) -> None:
    (meta,) = narratoria("sessions", "list", "--json").json
    assert (meta["story"], meta["folder"]) == ("own-torch", str(own))
    verified = narratoria("replay", session, "--verify", "--json")
    assert (verified.code, verified.json["calls"], verified.json["same"]) == (0, 3, True), verified.err
    branched = narratoria("sessions", "branch", session, "--json").json
    assert branched["folder"] == str(own)
    undone = narratoria("sessions", "undo", session, "--json")
    assert (undone.code, undone.err) == (0, ""), "its tools were found"
    again = narratoria("play", *ASKED, "--session", branched["id"], stdin="light the torch\n")
    assert again.code == 0, again.err
    assert json.loads(again.out.splitlines()[-1])["turn"] == 3


def test_a_story_of_the_library_is_kept_by_its_id(narratoria) -> None:
    narratoria("play", "torch", *ASKED)
    (meta,) = narratoria("sessions", "list", "--json").json
    assert (meta["story"], meta["folder"]) == ("torch", None)


def test_a_folder_in_the_way_is_not_taken_for_the_library(narratoria, own: Path) -> None:
    played = narratoria("play", "torch", *ASKED)
    session = json.loads(played.out)["session"]
    shutil.copytree(own, narratoria.folder / "torch")  # where the next command is run
    again = narratoria("play", *ASKED, "--session", session)
    assert again.code == 0, again.err


def test_a_folder_that_moved_is_named_and_may_be_named_anew(narratoria, own: Path, session: str) -> None:
    moved = own.rename(own.with_name("elsewhere"))
    for command in (
        ("play", *ASKED, "--session", session),
        ("play", "--no-browser", "--port", "0", "--session", session),
        ("replay", session, "--verify"),
    ):
        refused = narratoria(*command)
        assert (refused.code, refused.out) == (1, ""), refused
        (line,) = refused.err.splitlines()
        assert str(own) in line and "--story" in line
    for command in (("sessions", "undo", session, "--story", moved, "--json"),
                    ("replay", session, "--verify", "--story", moved, "--json")):  # fmt: skip
        done = narratoria(*command)
        assert done.code == 0
        assert ("run again" in done.err) == (
            "--verify" in command
        )  # what verifying does outside, it does again
    played = narratoria("play", *ASKED, "--session", session, "--story", moved, stdin="examine the door\n")
    assert played.code == 0, played.err
    (meta,) = narratoria("sessions", "list", "--json").json
    assert meta["folder"] == str(moved), "from now on it is looked for there"
    assert narratoria("play", *ASKED, "--session", session).code == 0


@pytest.mark.parametrize("how", ["argument", "option"])
def test_a_session_is_not_played_with_another_story(narratoria, session: str, how: str) -> None:
    named = ("lighthouse",) if how == "argument" else ("--story", "lighthouse")
    for command in (("play", *named, *ASKED), ("play", *named, "--no-browser", "--port", "0")):
        refused = narratoria(*command, "--session", session)
        assert (refused.code, refused.out) == (1, ""), refused
        (line,) = refused.err.splitlines()
        assert "'own-torch'" in line and "'lighthouse'" in line


def test_another_story_undoes_nothing(narratoria, session: str) -> None:
    refused = narratoria("sessions", "undo", session, "--story", "lighthouse")
    assert refused.code == 1 and "'own-torch'" in refused.err
    assert narratoria("sessions", "show", session, "--json").json["undone"] == []


def test_an_export_does_not_tell_where_the_story_lay(narratoria, own: Path, session: str) -> None:
    target = narratoria.folder / "told.narratoria"
    assert narratoria("sessions", "export", session, target).code == 0
    assert str(own).encode() not in target.read_bytes()
    taken = narratoria("sessions", "import", target, "--json").json
    assert taken["folder"] is None, "and a file does not choose whose tools are run"
    refused = narratoria("play", *ASKED, "--session", taken["id"])
    assert refused.code == 1 and "own-torch" in refused.err and "--story" in refused.err
    assert narratoria("play", own, *ASKED, "--session", taken["id"]).code == 0
