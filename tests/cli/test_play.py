"""`narratoria play --terminal`: the story by script, to both endings, on real processes."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tests import warm_start

ROOT = Path(__file__).resolve().parents[2]
WALKTHROUGHS = ROOT / "stories" / "lighthouse" / "walkthroughs"


@pytest.fixture
def play(tmp_path):
    environment = {**os.environ, "NARRATORIA_HOME": str(tmp_path / "home"), "NO_COLOR": "1", "COLUMNS": "100"}

    def run(*arguments, stdin):
        return warm_start.run("play", *arguments, input=stdin, env=environment)

    return run


@pytest.mark.parametrize(
    ("walk", "ending"),
    [("the-light-kept", "kept"), pytest.param("two-keepers", "two-keepers", marks=pytest.mark.slow)],
)
def test_the_lighthouse_plays_to_both_endings_by_script(play, walk, ending):
    prompts = (WALKTHROUGHS / f"{walk}.txt").read_text(encoding="utf-8")
    ran = play("lighthouse", "--terminal", "--json", "--narrator", "rules", stdin=prompts)
    assert ran.returncode == 0, ran.stderr
    turns = [json.loads(line) for line in ran.stdout.splitlines()]
    assert turns[-1]["ending"]["id"] == ending
    assert all(turn["outcome"] == "completed" for turn in turns[1:]), [
        t["prompt"] for t in turns if t["outcome"] != "completed"
    ]
    assert [turn["turn"] for turn in turns] == list(range(len(turns)))
    assert set(turns[1]) >= {"turn", "prompt", "narrative", "choices", "state"}
    assert all(turn["narrative"] for turn in turns)
    told = [(turn["turn"], receipt) for turn in turns for receipt in turn["receipts"]]
    assert {"inventory.oil", "inventory.matches", "inventory.wick"} <= {
        receipt["path"] for _, receipt in told
    }
    assert all(one["verdict"] == "held" and one["by"]["turn"] == turn for turn, one in told)


def test_a_game_goes_on_in_its_session(play):
    first = play("torch", "--terminal", "--json", stdin="light the torch\n")
    session = json.loads(first.stdout.splitlines()[0])["session"]
    again = play("--terminal", "--json", "--session", session[:8], stdin="examine the door\n")
    opened, turn = map(json.loads, again.stdout.splitlines())
    assert opened["turn"] == 1 and opened["state"] == {"inventory": {"torch": {"lit": True}}}
    assert turn["turn"] == 2 and turn["choices"] == ["Open", "Leave"]


def test_without_json_the_story_is_told_in_text(play):
    ran = play("torch", "--terminal", stdin="1\nqwertyuiop\n")
    assert (
        ran.returncode == 0
        and "The Torch and the Door" in ran.stdout
        and "burns low and steady" in " ".join(ran.stdout.split())
    )
    assert ran.returncode == 0 and "The Torch and the Door" in ran.stdout
    assert "burns low and steady" in " ".join(ran.stdout.split()) and "Torch lit." not in ran.stdout
    assert "> 1" in ran.stdout and "Traceback" not in ran.stdout + ran.stderr


def test_a_number_picks_a_choice_with_json_too(play):
    ran = play("torch", "--terminal", "--json", stdin="1\n9\n")
    opened, picked, beyond = map(json.loads, ran.stdout.splitlines())
    assert picked["prompt"] == opened["choices"][0]
    assert picked["state"] == {"inventory": {"torch": {"lit": True}}}
    assert beyond["prompt"] == "9"


def test_an_unknown_story_is_one_clear_line(play):
    ran = play("nowhere", "--terminal", stdin="")
    assert ran.returncode == 1 and "nowhere" in ran.stderr and "Traceback" not in ran.stderr


def test_an_unknown_session_is_one_clear_line(play):
    ran = play("--terminal", "--session", "ffffffff", stdin="")
    assert ran.returncode == 1 and "Traceback" not in ran.stderr and len(ran.stderr.strip().splitlines()) == 1


def test_a_notice_is_said_once(play, tmp_path):
    shutil.copytree(ROOT / "stories" / "torch", tmp_path / "torch")
    (tmp_path / "torch" / "lore").mkdir()
    (tmp_path / "torch" / "lore" / "broken.json").write_text("{", encoding="utf-8")
    ran = play(str(tmp_path / "torch"), "--terminal", "--narrator", "rules", stdin="look\n")
    assert ran.returncode == 0 and "! lore: broken.json" in ran.stdout and "broken.json" not in ran.stderr
