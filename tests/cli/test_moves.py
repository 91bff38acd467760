"""Moving between turns: with `narratoria sessions`, and with the commands of the terminal player."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandLine

MILL = Path(__file__).parents[1] / "session" / "mill"

ASKED = ("play", "torch", "--terminal", "--narrator", "rules")
LIT = {"inventory": {"torch": {"lit": True}}}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home in which the torch was lit and the door examined, and the session's id."""
    command = CommandLine(tmp_path_factory.mktemp("played"))
    ended = command(*ASKED, "--json", stdin="light the torch\nexamine the door\n")
    assert ended.code == 0, ended.err
    return command.folder, str(json.loads(ended.out.splitlines()[0])["session"])


@pytest.fixture
def session(narratoria, played: tuple[Path, str]) -> str:
    """That session, in a copy of the home."""
    home, session = played
    shutil.copytree(home, narratoria.folder, symlinks=True, dirs_exist_ok=True)
    return session


@pytest.fixture
def shown(narratoria, session: str):
    def show() -> dict[str, Any]:
        return narratoria("sessions", "show", session, "--json").json

    return show


# --- from the shell ----------------------------------------------------------------------------------------


def test_redo_brings_the_undone_turn_back(narratoria, session: str, shown) -> None:
    before = shown()
    assert narratoria("sessions", "undo", session).code == 0
    redone = narratoria("sessions", "redo", session, "--json")
    assert (redone.code, redone.json) == (
        0,
        {"session": session, "turn": 2, "prompt": "examine the door"},
    )
    assert shown()["state"] == before["state"]
    nothing = narratoria("sessions", "redo", session)
    assert nothing.code == 1
    assert nothing.err.startswith("narratoria: there is nothing to redo")


def test_the_choices_stand_under_the_turn_that_offers_them(narratoria, session: str, shown) -> None:
    narratoria("sessions", "undo", session)
    told = narratoria("sessions", "show", session).out
    choice = f"  1 {shown()['turns'][-1]['choices'][0]}"
    assert (
        0
        < told.index("\n1 light the torch")
        < told.index(choice)
        < told.index("\n2 examine the door (undone)")
    )
    assert [line for line in told.splitlines() if line.endswith("completed ")] == []


def test_pruning_says_that_young_assets_wait(narratoria, session: str) -> None:
    assert narratoria("sessions", "delete", session, "--yes").code == 0
    pruned = narratoria("sessions", "prune")
    waiting = narratoria("sessions", "prune", "--json").json["settling"]
    assert waiting >= 1
    assert pruned.out.startswith("0 sessions, 0 assets (0 bytes) deleted\n")
    assert "written in the last hour stay" in " ".join(pruned.out.split())


def test_retry_takes_the_newest_turn_again(narratoria, session: str, shown) -> None:
    again = narratoria("sessions", "retry", session, "--narrator", "rules", "--json")
    assert again.code == 0, again.err
    assert (again.json["turn"], again.json["prompt"]) == (3, "examine the door")
    told = shown()["turns"][-1]
    assert (told["turn"], told["origin"]) == (3, "retry")
    other = narratoria("sessions", "retry", session, "light the torch", "--narrator", "rules")
    assert other.code == 0 and "burning already" in other.out
    assert [turn["prompt"] for turn in shown()["turns"]] == ["", "light the torch", "light the torch"]


def test_checkpoints_are_added_listed_and_restored(narratoria, session: str, shown) -> None:
    narratoria("sessions", "undo", session)
    added = narratoria("sessions", "checkpoint", "add", session, "before the door", "--json")
    assert added.json == {"session": session, "name": "before the door", "turn": 1}
    narratoria("play", "--session", session, "--terminal", "--json", stdin="examine the door\nlook\n")
    listed = narratoria("sessions", "checkpoint", "list", session, "--json").json
    assert listed == [{"name": "before the door", "turn": 1, "prompt": "light the torch"}]
    assert "before the door" in narratoria("sessions", "checkpoint", "list", session).out
    restored = narratoria("sessions", "checkpoint", "restore", session, "before the door", "--json").json
    assert (restored["turn"], [one["turn"] for one in restored["undone"]]) == (1, [4, 3])
    assert shown()["state"] == LIT
    wrong = narratoria("sessions", "checkpoint", "restore", session, "elsewhere")
    assert (wrong.code, "before the door" in wrong.err, len(wrong.err.splitlines())) == (1, True, 1)


@pytest.fixture
def loud_mill(tmp_path: Path) -> Path:
    """A story whose tool tells everybody, which nobody can take back."""
    folder = tmp_path / "loud"
    shutil.copytree(MILL, folder)
    manifest = folder / "tools" / "grind.tool.json"
    document = json.loads(manifest.read_text())
    document["effects"].append({"type": "notification", "event": "ground"})
    manifest.write_text(json.dumps(document))
    return folder


SENT = "notification 'ground' (it was sent)"


def test_what_stays_as_it_is_is_said_also_where_nobody_is_asked(narratoria, loud_mill: Path) -> None:
    ask = ("play", loud_mill, "--terminal", "--narrator", "rules", "--json")
    played = narratoria(*ask, stdin="grind a sack\n/checkpoint one\ngrind more\n")
    session = json.loads(played.out.splitlines()[0])["session"]
    asked = narratoria("sessions", "undo", session, stdin="n\n")
    assert (asked.code, asked.err.count(f"stays as it is: {SENT}")) == (1, 2)
    done = narratoria("sessions", "undo", session, "--yes")
    assert (done.code, done.err.count(f"stays as it is: {SENT}")) == (0, 2)
    narratoria("play", "--session", session, "--terminal", "--json", stdin="grind more\n")
    back = narratoria("sessions", "checkpoint", "restore", session, "one", "--yes")
    assert (back.code, back.err.count(f"stays as it is: {SENT}")) == (0, 2)


def test_undo_runs_the_process_that_a_manifest_names(narratoria, tmp_path: Path) -> None:
    folder = tmp_path / "mill"
    shutil.copytree(MILL, folder)
    tool, manifest = folder / "tools" / "grind", folder / "tools" / "grind.tool.json"
    undoing = f"""
if request["operation"] == "pour back":
    open({str(tmp_path / "poured")!r}, "a").write(f"{{request['input']['n']}}\\n")
    emit("done", ok=True)
    sys.exit()
emit("log","""
    tool.write_text(tool.read_text().replace('\nemit("log",', undoing, 1))
    document = json.loads(manifest.read_text())
    document["effects"][0] |= {
        "description": "a sack is emptied",
        "rollback": {"operation": "pour back", "input": {"n": {"$input": "n"}}},
    }
    manifest.write_text(json.dumps(document))
    played = narratoria("play", folder, "--terminal", "--narrator", "rules", "--json", stdin="grind a sack\n")
    session = json.loads(played.out.splitlines()[0])["session"]
    done = narratoria("sessions", "undo", session, "--json")
    assert (done.code, done.json) == (
        0,
        {"session": session, "turn": 1, "prompt": "grind a sack", "irreversible": [],
         "compensated": ["a sack is emptied"] * 2, "failed": []},
    )  # fmt: skip
    assert len((tmp_path / "poured").read_text().split()) == 2


def test_a_script_gets_what_stays_as_it_is_as_a_list(narratoria, loud_mill: Path) -> None:
    ask = ("play", loud_mill, "--terminal", "--narrator", "rules", "--json")
    played = narratoria(*ask, stdin="grind a sack\n/undo\n/undo!\n")
    refused, undone = [json.loads(line) for line in played.out.splitlines()][-2:]
    assert (refused["irreversible"], "/undo!" in refused["error"]) == ([SENT, SENT], True)
    assert (undone["irreversible"], undone["undone"]) == ([SENT, SENT], [1])
    people = narratoria(*ask[:-1], stdin="grind a sack\n/undo!\n")
    assert people.out.count(f"stays as it is: {SENT}") == 2


# --- at the table ------------------------------------------------------------------------------------------


def test_a_script_moves_between_turns_with_commands(narratoria) -> None:
    lines = ["light the torch", "/checkpoint lit", "examine the door", "/undo", "/redo", "/retry",
             "/restore lit", "/checkpoint", "/nonsense", "/redo now", "/help"]  # fmt: skip
    played = narratoria(*ASKED, "--json", stdin="\n".join(lines) + "\n")
    assert played.code == 0, played.err
    told = [json.loads(line) for line in played.out.splitlines()]
    assert [(one.get("command"), one.get("turn")) for one in told] == [
        (None, 0), (None, 1), ("checkpoint", 1), (None, 2), ("undo", 1), ("redo", 2), ("retry", 3),
        ("restore", 1), ("checkpoint", None), ("nonsense", None), ("redo", None), ("help", None),
    ]  # fmt: skip
    undone, redone, retried, restored = told[4:8]
    assert undone["state"] == restored["state"] == LIT
    assert undone["choices"] == told[1]["choices"] and undone["narrator"] == "rules"
    assert redone["state"] == retried["state"] == told[3]["state"]
    assert restored["undone"] == [3]
    assert told[8]["checkpoints"] == {"lit": 1}
    assert "/help" in told[9]["error"]
    assert {"/undo", "/restore NAME"} <= set(told[-1]["commands"])


def test_a_script_goes_between_the_tellings_of_a_turn_and_edits_one(narratoria) -> None:
    lines = ["/variant", "light the torch", "/variant", "/retry", "/variant", "/variant 2", "/variant 3",
             "/edit It burns blue.", "/edit", "/continue"]  # fmt: skip
    played = narratoria(*ASKED, "--json", stdin="\n".join(lines) + "\n")
    told = [json.loads(line) for line in played.out.splitlines()]
    assert [(one.get("command"), one.get("turn")) for one in told] == [
        (None, 0), ("variant", None), (None, 1), ("variant", None), ("retry", 2), ("variant", 1), ("variant", 2),
        ("variant", None), ("edit", 2), ("edit", 2), ("continue", 3),
    ]  # fmt: skip
    assert "told once" in told[1]["error"] and "1 to 2 without 2" in told[7]["error"]
    assert (told[8]["narrative"], told[9]["narrative"]) == ("It burns blue.", told[4]["narrative"])
    assert told[5]["state"] == told[6]["state"] == LIT
    assert told[5]["undone"] == [2]


def test_a_branch_is_played_on(narratoria) -> None:
    played = narratoria(*ASKED, "--json", stdin="light the torch\nexamine the door\n/branch 1\nlook\n")
    told = [json.loads(line) for line in played.out.splitlines()]
    first, branch, after = told[2], told[3], told[4]
    assert branch["session"] != first["session"]
    assert (branch["turn"], branch["state"], branch["parent"]) == (1, LIT, first["session"])
    assert (after["session"], after["turn"]) == (branch["session"], 2)
    assert {one["id"] for one in narratoria("sessions", "list", "--json").json} == {
        first["session"],
        branch["session"],
    }


def test_commands_are_told_to_people(narratoria) -> None:
    played = narratoria(
        *ASKED, stdin="light the torch\n/undo\n/help\n/undo\n/branch x\n/branch " + "9" * 5000
    )
    assert played.code == 0, played.err
    assert "/restore NAME" in played.out
    assert "turn 1 is undone: light the torch" in played.out
    assert "there is nothing to undo" in played.out
    assert "/branch 9999" in played.out
    assert "/branch x" in played.out and "Traceback" not in played.out + played.err


def test_an_ending_can_be_taken_back(narratoria) -> None:
    walk = "light the torch\nexamine the door\nopen the door\ngo through\n"
    played = narratoria(*ASKED, "--json", stdin=f"{walk}/undo\nleave\n")
    told = [json.loads(line) for line in played.out.splitlines()]
    assert [bool(one["ending"]) for one in told] == [*[False] * 4, True, False, True]


def test_words_after_an_ending_are_answered(narratoria) -> None:
    walk = "light the torch\nexamine the door\nopen the door\ngo through\n"
    played = narratoria(*ASKED, "--json", stdin=f"{walk}look around\n/undo\n/undo\n")
    told = [json.loads(line) for line in played.out.splitlines()]
    assert [bool(one["ending"]) for one in told] == [*[False] * 4, True, True, True, False]
    assert (told[5]["prompt"], told[5]["turn"]) == ("look around", 5)
    assert told[5]["narrative"]
    read = narratoria(*ASKED, stdin=f"{walk}look around\n")
    assert read.out.count("✦") == 1


def test_an_empty_line_does_nothing(narratoria) -> None:
    played = narratoria(*ASKED, stdin="\n  \nlight the torch\n\nexamine the door\n")
    assert played.code == 0
    asked = [line for line in played.out.splitlines() if line.startswith("> ")]
    assert asked == ["> light the torch", "> examine the door"]


def test_the_state_is_shown_readably(narratoria) -> None:
    played = narratoria(
        *ASKED, stdin="light the torch\n/state\n/state inventory.torch\n/state inventory.torhc\n"
    )
    assert "\ninventory:\n  torch:\n    lit: true\n" in played.out
    assert "\nlit: true\n" in played.out
    assert "the state has no inventory.torhc; did you mean torch?" in played.out
    data = narratoria(*ASKED, "--json", stdin="light the torch\n/state inventory.torch.lit\n").out
    answer = json.loads(data.splitlines()[-1])
    assert (answer["command"], answer["path"], answer["state"]) == ("state", "inventory.torch.lit", True)


def test_no_tool_and_no_narrator_is_named_until_one_asks_why(narratoria) -> None:
    played = narratoria("play", "torch", "--terminal", stdin="light the torch\nsing a song\n")
    assert played.code == 0
    for name in ("torch-lighter", "torch-lit", "template", "paraphrase", "local", "image/png"):
        assert name not in played.out
    assert "A burning torch" in played.out  # the picture has its title
    asked = narratoria(*ASKED, stdin="light the torch\n/why\n").out
    assert "told by rules" in asked
    assert "called torch-lighter: completed" in asked
    data = narratoria(*ASKED, "--json", stdin="light the torch\n/why\n").out.splitlines()
    why = json.loads(data[-1])
    assert (why["narrator"], why["calls"][0]["tool"]) == ("rules", "torch-lighter")


def test_a_picture_has_its_path(narratoria) -> None:
    out = narratoria(*ASKED, stdin="light the torch\n").out
    after = out.partition("  ◆ ")[2].splitlines()
    path = Path(after[1].strip())
    assert path.read_bytes().startswith(b"\x89PNG")
