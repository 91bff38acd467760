"""`narratoria skills`: list, show, check, set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BRIDGE = Path(__file__).parents[2] / "examples" / "stories" / "toll-bridge"


def test_skills_are_listed_and_shown_with_their_settings(narratoria: Any) -> None:
    narratoria.env["HOME"] = str(narratoria.folder)
    listed = narratoria("skills", "list", "--json")
    assert listed.code == 0, listed.err
    found = {one["name"]: one for one in listed.json["skills"]}
    assert found["dice"]["scripts"] == ["dice.roll"]
    assert found["dice"]["references"] == ["references/odds.md"]
    assert found["dice"]["place"] == "narratoria"
    shown = narratoria("skills", "show", "reputation", "--story", BRIDGE, "--json")
    assert shown.json["values"] == {"halfLife": {"value": 3, "from": "the story"}}
    assert "Standings go from -100 to 100" in shown.json["body"]
    text = narratoria("skills", "show", "dice")
    assert "summary = true  default" in text.out


def test_a_setting_is_set_used_and_taken_back(narratoria: Any) -> None:
    narratoria.env["HOME"] = str(narratoria.folder)
    assert narratoria("skills", "set", "dice", "summary=false", "lowest=doom").code == 0
    written = narratoria.folder / "skills" / "dice" / "settings.json"
    assert json.loads(written.read_text()) == {"summary": False, "lowest": "doom"}
    given = '{"dice": "d4", "against": 99}'
    rolled = narratoria("call", "dice.roll", "--input", given, "--json")
    assert rolled.json["output"]["dice"]["last"]["band"] == "doom"
    assert narratoria("skills", "set", "dice", "summary=", "lowest=").code == 0
    assert json.loads(written.read_text()) == {}
    wrong = narratoria("skills", "set", "dice", "summary=perhaps")
    assert wrong.code != 0 and "summary" in wrong.err
    strange = narratoria("skills", "set", "mice", "x=1")
    assert "there is no skill 'mice'; there are:" in strange.err


def test_a_check_tells_what_is_wrong_with_each_skill(narratoria: Any) -> None:
    good, bad = narratoria.folder / "shelf" / "good", narratoria.folder / "shelf" / "bad"
    for root, front in ((good, "name: good\ndescription: Good.\n"), (bad, "name: Bad\n")):
        root.mkdir(parents=True)
        (root / "SKILL.md").write_text(f"---\n{front}---\n")
    ended = narratoria("skills", "check", good.parent)
    assert ended.code == 1
    assert f"✓ {good}" in ended.out.replace("\n", "")
    assert "key 'description' is missing" in ended.out.replace("\n", " ")
    assert narratoria("skills", "check", good).code == 0
    assert narratoria("skills", "check", narratoria.folder / "nothing").code == 1
