"""Random players find what an author overlooked, and find nothing in the shipped stories."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start

from narratoria.authoring.playtest import Report, Settings, playtest
from narratoria.errors import StoryInvalid
from narratoria.narrator.paraphrase.rule_phrases import phrases, readable
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.rule_file import Case
from narratoria.play.story_library import open_story
from narratoria.state import merge

STORY = """
id = "cellar"
title = "The Cellar"
premise = "A cellar, and one way out."
narrator = ["rules", "template"]
refusal = ["No."]
[opening]
narrative = "It is dark."
choices = ["Go up", "Ring the bell"]
[state]
place = "cellar"
"""
RULES = """
[[rule]]
id = "up"
patterns = ["go up"]
when = { place = "cellar" }
set = { place = "yard" }
narrative = "You are in the yard."
choices = ["Leave", "Sing"]

[[rule]]
id = "leave"
patterns = ["leave"]
when = { place = "yard" }
set = { ending = { id = "out", title = "Out" } }
narrative = "You leave."

[[rule]]
id = "bell"
patterns = ["ring bell"]
narrative = "You pull the rope."
calls = [{ tool = "bell" }]
"""
BELL = """#!/bin/sh
cat >/dev/null
echo '{"version":"0","type":"error","errorCode":"NO_BELL","errorMessage":"there is no bell"}'
echo '{"version":"0","type":"done","ok":false}'
"""


def write(folder: Path, rules: str = RULES) -> Path:
    root = folder / "cellar"
    (root / "tools").mkdir(parents=True)
    (root / "story.toml").write_text(STORY)
    (root / "narrator.toml").write_text(rules)
    bell = root / "tools" / "bell"
    bell.write_text(BELL)
    bell.chmod(0o755)
    (root / "tools" / "bell.tool.json").write_text(
        json.dumps({"name": "bell", "description": "Ring it.", "parameters": {"type": "object"}})
    )
    return root


def run(root: Path, players: int = 3, turns: int = 10, seed: int = 1) -> Any:
    return playtest(open_story(str(root)), Settings(players=players, turns=turns, seed=seed))


def kinds(report: Report) -> dict[str, str]:
    return {fault.kind: fault.message for fault in report.faults}


async def test_a_failed_call_and_a_choice_without_an_answer_are_faults(tmp_path: Path) -> None:
    report = await run(write(tmp_path))
    found = kinds(report)
    assert found["failed call"] == "bell: there is no bell"
    assert found["unanswered choice"] == "'Sing' was offered, and no rule answers it"
    assert report.to_json()["clean"] is False
    soonest = next(fault for fault in report.faults if fault.kind == "failed call")
    assert soonest.count >= 1
    assert "bell" in soonest.prompts[-1].lower()
    assert report.endings["out"].title == "Out"
    assert report.endings["out"].shortest == 2
    assert report.endings["out"].state["place"] == "yard"
    assert report.turns == 30


@pytest.mark.slow
async def test_a_call_that_was_not_run_is_no_second_fault(tmp_path: Path) -> None:
    rules = RULES.replace("calls = [{", 'calls = [{ id = "a",').replace(
        '"bell" }]', '"bell" }, { id = "b", tool = "bell", after = ["a"] }]'
    )
    report = await run(write(tmp_path, rules))
    assert [one.message for one in report.faults if one.kind == "failed call"] == ["bell: there is no bell"]


async def test_words_that_no_rule_answers_are_listed_once(tmp_path: Path) -> None:
    report = await run(write(tmp_path, RULES.partition('[[rule]]\nid = "bell"')[0]), players=1, turns=30)
    assert report.refusals > 2
    assert sorted(report.refused) == ["Ring the bell", "Sing"]


async def test_a_dead_end_is_found(tmp_path: Path) -> None:
    rules = RULES.replace('choices = ["Leave", "Sing"]', "").replace(
        'when = { place = "yard" }', "when = { key = true }"
    )
    report = await run(write(tmp_path, rules.replace('calls = [{ tool = "bell" }]', "")))
    assert "dead end" in kinds(report)
    assert report.endings == {}
    assert report.unreached_rules == ["leave"]


@pytest.mark.parametrize(
    "way",
    [
        'patterns = ["{first} ..."]\nwhen = { place = "yard" }\nnarrative = "You are stuck."\n',
        'patterns = ["leave [it]"]\nnarrative = "The gate is shut."\nwhen = { place = "yard" }\n',
        # a case before the one that leads on
        'patterns = ["climb"]\n[[rule.cases]]\nwhen = { place = "yard" }\nnarrative = "No."\n'
        '[[rule.cases]]\nnarrative = "You climb."\nset = { place = "roof" }\n',
    ],
)
async def test_a_dead_end_behind_a_rule_that_answers_first_is_found(tmp_path: Path, way: str) -> None:
    rules = RULES.replace('calls = [{ tool = "bell" }]', "").replace('choices = ["Leave", "Sing"]', "")
    if "climb" in way:
        rules = rules.replace('when = { place = "yard" }', "when = { key = true }")
    report = await run(write(tmp_path, f'[[rule]]\nid = "stuck"\n{way}{rules}'))
    assert "dead end" in kinds(report)
    open_way = rules.replace("key = true", 'place = "yard"')
    assert "dead end" not in kinds(await run(write(tmp_path / "open", open_way)))


TOWER = """
[[rule]]
id = "held"
patterns = ["(go|walk|climb) ...", "(up|down|out)", "let go ..."]
when = { door = "shut" }
narrative = "The door has you by the coat."

[[rule]]
id = "let-go"
patterns = ["let go [of it]", "slip out of coat"]
when = { door = "shut" }
narrative = "It lets go."
set = { door = "open" }
"""
FLOOR = """
[[rule]]
id = "up-{number}"
patterns = ["(go up|climb) [from {number}]", "up"]
when = {{ floor = "{number}" }}
narrative = "You climb."
set = {{ floor = "{above}" }}

[[rule]]
id = "see-{number}"
patterns = ["(see|look at) {number}"]
narrative = "You see it."
"""
TOP = """
[[rule]]
id = "take-key"
patterns = ["take key"]
when = { floor = "f", key = { missing = true } }
narrative = "You have it."
set = { key = true }

[[rule]]
id = "shut"
patterns = ["(shut|lock) door"]
when = { floor = "a", key = true }
narrative = "It falls shut."
set = { door = "shut" }
"""


@pytest.mark.parametrize("seed", [1, 3])
async def test_greedy_players_find_the_way_to_a_rule_that_is_seldom_open(tmp_path: Path, seed: int) -> None:
    """Up five floors, the key, up again, shut the door: then it may be said, in words that no other rule takes."""
    floors = "".join(
        FLOOR.format(number=one, above=next_one) for one, next_one in zip("abcdef", "bcdefa", strict=True)
    )
    root = write(tmp_path, TOWER + floors + TOP)
    (root / "story.toml").write_text(
        STORY.replace('place = "cellar"', 'floor = "a"').replace(', "Ring the bell"', "")
    )
    report = await run(root, players=4, turns=16, seed=seed)
    assert report.unreached_rules == []
    assert report.faults == []


async def test_the_same_seed_types_the_same_words(tmp_path: Path) -> None:
    root = write(tmp_path)
    first, second, other = [await run(root, players=2, turns=4, seed=seed) for seed in (3, 3, 6)]
    ways = [
        [(one.kind, one.player, one.prompts) for one in report.faults] for report in (first, second, other)
    ]
    assert ways[0] == ways[1]
    assert ways[0] != ways[2]


async def test_a_story_without_rules_is_refused_with_the_reason(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "narrator.toml").unlink()
    (root / "story.toml").write_text(STORY.replace('["rules", "template"]', '["template"]'))
    with pytest.raises(StoryInvalid, match="playtesting needs rules"):
        await run(root)


@pytest.mark.parametrize(("story", "players", "turns"), [("torch", 4, 15), ("lighthouse", 2, 12)])
async def test_the_shipped_stories_are_clean(story: str, players: int, turns: int) -> None:
    report = await playtest(open_story(story), Settings(players=players, turns=turns, seed=7))
    assert [(fault.kind, fault.message, fault.prompts) for fault in report.faults] == []
    assert report.turns == players * turns
    assert report.refused == []


def test_nobody_walks_away_from_the_lens_that_he_turns() -> None:
    story = open_story("lighthouse")
    rules = story.scripted_narrator()
    held = {"place": {"id": "lantern", "title": ""}, "lamp": {"lit": True, "turning": False}}
    ways = [rule for rule in rules.rules.rules if any(_walks(case) for case in rule.cases)]
    assert len(ways) > 4
    for words in {readable(one) for rule in ways for one in phrases(rule.patterns, 60)}:
        actions, _ = rules.understand(NarratorRequest(words, merge(story.state, held)))
        assert not any(_walks(action.case) for action in actions), words


def _walks(case: Case) -> bool:
    return any(call.tool_name == "walk" for call in case.calls)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("story", "endings", "turns", "seed"),
    [("torch", 3, 60, 3), ("torch", 3, 60, 20), ("lighthouse", 2, 120, 1), ("lighthouse", 2, 120, 11)],
)
async def test_the_shipped_stories_are_clean_and_reached_whole(
    story: str, endings: int, turns: int, seed: int
) -> None:
    report = await playtest(open_story(story), Settings(players=12, turns=turns, seed=seed))
    assert [(fault.kind, fault.message, fault.prompts) for fault in report.faults] == []
    assert report.unreached_rules == []
    assert len(report.endings) == endings


def command(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NARRATORIA_HOME": str(folder / "home"), "NO_COLOR": "1"}
    return warm_start.run(*arguments, env=env)


def test_the_command_saves_a_session_to_open_for_each_fault(tmp_path: Path) -> None:
    root = write(tmp_path)
    ended = command(tmp_path, "playtest", root, "--players", 2, "--turns", 10, "--seed", 1, "--json")
    assert ended.returncode == 1, ended.stderr
    report = json.loads(ended.stdout)
    assert report["clean"] is False
    failed = next(one for one in report["faults"] if one["kind"] == "failed call")
    shown = command(tmp_path, "sessions", "show", failed["session"], "--json")
    assert [turn["prompt"] for turn in json.loads(shown.stdout)["turns"]][-1] == failed["prompts"][-1]


@pytest.mark.slow
def test_the_command_tells_people_what_it_found(tmp_path: Path) -> None:
    root = write(tmp_path)
    ended = command(tmp_path, "playtest", root, "--players", 2, "--turns", 10, "--seed", 1, "--no-save")
    assert ended.returncode == 1
    assert "20 turns of 2 players" in ended.stdout
    assert "✗ failed call" in ended.stdout
    assert "bell: there is no bell" in ended.stdout
    assert "✗ faults were found" in ended.stdout
    assert ended.stderr.count("warning: ") == 1
    assert command(tmp_path, "sessions", "list", "--json").stdout.strip() in ("[]", "")
