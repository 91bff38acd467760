"""What the shipped stories tell is true of their states: no receipt finds fault with it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.shipped_stories import shipped_story

from narratoria.events import Notice
from narratoria.factcheck.fact_checked import CONTRADICTION
from narratoria.factcheck.receipts import audit, contradictions, judged
from narratoria.narrator.protocol import NarratorRequest, NoMatch, card
from narratoria.play.game import Game, story_registry
from narratoria.play.story import Story
from narratoria.session import Record
from narratoria.state import merge

ROOT = Path(__file__).parents[2]
STORIES = {name: shipped_story(name) for name in ("torch", "lighthouse")}
WALKTHROUGHS = sorted((ROOT / "stories").glob("*/walkthroughs/*.txt"))


def _where(state: Mapping[str, Any], when: Mapping[str, Any]) -> dict[str, Any]:
    """A state in which the plain tests of a `when` hold."""
    world = deepcopy(dict(state))
    for key, value in when.items():
        if not isinstance(value, dict):
            world[key] = value
        elif "in" in value:
            world[key] = value["in"][0]
        elif value.get("exists") or value.get("missing") is False:
            world.setdefault(key, True)
        elif value.get("missing"):
            world.pop(key, None)
        elif not set(value) & {"not", "not_in", "at_least", "at_most", "contains", "equals", "exists"}:
            inner = world.get(key)
            world[key] = _where(inner if isinstance(inner, dict) else {}, value)
    return world


def _told(name: str) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Every text of every rule, with the state it is told in and the one after its action."""
    data = tomllib.loads((ROOT / "stories" / name / "narrator.toml").read_text(encoding="utf-8"))
    for rule in data["rule"]:
        for case in rule.get("cases", [rule]):
            whole = {**rule, **case}
            before = _where(STORIES[name].state, {**rule.get("when", {}), **case.get("when", {})})
            after = merge(merge(before, whole.get("expect", {})), whole.get("set", {}))
            for key in ("narrative", "then", "instead", "unavailable"):
                texts = whole.get(key, [])
                for text in [texts] if isinstance(texts, str) else texts:
                    yield rule["id"], " ".join(text.split()), before, after


@pytest.mark.parametrize("name", STORIES)
def test_no_text_of_a_rule_is_flagged_in_the_state_it_is_told_in(name: str) -> None:
    flagged = []
    for rule, text, before, after in _told(name):
        flagged += [(rule, one) for one in contradictions(audit(text, after, before=judged(text, before)))]
    assert flagged == []


@pytest.mark.parametrize("name", ["development", "held-out"])
async def test_no_answer_of_the_rules_to_what_players_type_is_flagged(name: str) -> None:
    flagged, answered = [], 0
    cards = {name: [card(tool) for tool in story_registry(story)] for name, story in STORIES.items()}
    for line in (ROOT / "evals" / "players" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        story = STORIES[item["story"]]
        state = merge(story.state, item["state"])
        request = NarratorRequest(item["prompt"], state=state, tools=cards[item["story"]])
        rules = story.scripted_narrator()
        try:
            text = (await rules.plan(request)).narrative or ""
        except NoMatch:
            continue
        answered += 1
        after = state
        for action in rules.understand(request)[0]:
            after = merge(merge(after, action.case.expect), action.case.patch)
        objections = contradictions(audit(text, after, before=judged(text, state)))
        flagged += [(item["prompt"], one) for one in objections]
    assert flagged == []
    assert answered > 150


class Flags:
    full = False

    def __init__(self) -> None:
        self.raised: list[str] = []

    def push(self, record: Record) -> None:
        if isinstance(record.event, Notice) and record.event.code == CONTRADICTION:
            self.raised.append(record.event.message)

    async def wait(self) -> None:
        return None


@pytest.mark.parametrize("path", WALKTHROUGHS, ids=lambda path: path.stem)
async def test_nothing_told_on_the_way_to_an_ending_is_flagged(path: Path) -> None:
    game = Game.new(Story.load(path.parents[1]), narrators=["rules"], generation_timeout=60)
    flags = Flags()
    game.session.attach(flags)
    for prompt in path.read_text(encoding="utf-8").splitlines():
        if prompt.strip() and not prompt.startswith("#"):
            await game.prompt(prompt)
    assert game.ending is not None
    assert flags.raised == []
