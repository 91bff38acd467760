"""Words of players that once led astray in the shipped stories: which rule answers them now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from tests.shipped_stories import shipped_story

from narratoria import Session, take_turn
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.paraphrase.paraphrase_narrator import ParaphraseNarrator
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.scripted import Action
from narratoria.play.game import story_registry
from narratoria.state import merge

STORIES = Path(__file__).parents[2] / "stories"
KITCHEN = {"place": {"id": "kitchen"}, "visited": {"store": True, "kitchen": True}}
STORE = {"place": {"id": "store"}, "visited": {"store": True}}
WATCH = {"place": {"id": "watch"}}
LIT = {"inventory": {"torch": {"lit": True}}}


@pytest.fixture(scope="module")
def narrators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ParaphraseNarrator]:
    embedder = CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("cache"))
    return {
        name: ParaphraseNarrator(shipped_story(name).scripted_narrator(), embedder)
        for name in ("lighthouse", "torch")
    }


def answered(narrator: ParaphraseNarrator, prompt: str, state: dict[str, Any], story: str) -> list[Action]:
    """As the chain does it: by words, and where they do not fit the whole prompt, by meaning."""
    asked = NarratorRequest(prompt, state=merge(shipped_story(story).state, state))
    actions, missed = narrator.scripted.understand(asked)
    if actions and not missed and not any(action.rule.fallback for action in actions):
        return actions
    found = narrator.understand(asked)
    return [*found.actions, *found.doubts[:1]]


@pytest.mark.parametrize(
    "prompt",
    [
        "up another floor",
        "go one floor higher",
        "go up one more floor",
        "keep climbing",
        "one more flight up",
        "ascend again",
        "continue upward",
        "to the next floor",
        "go to the next floor",
        "higher",
        "climb higher",
        "climb the next flight of stairs",
        "go downstairs, no wait, up",
        "down. no, I mean up",
    ],
)
def test_in_the_kitchen_up_is_the_watch_room(narrators: dict[str, ParaphraseNarrator], prompt: str) -> None:
    actions = answered(narrators["lighthouse"], prompt, KITCHEN, "lighthouse")
    assert [action.rule.id for action in actions] == ["to-watch"]


@pytest.mark.parametrize(
    ("prompt", "story", "rules"),
    [
        ("I already rang the bell", "lighthouse", []),
        ("I have already rung the bell", "lighthouse", []),
        ("I rang the bell already", "lighthouse", []),
        ("the bell was rung", "lighthouse", []),
        ("I have read the logbook", "lighthouse", []),
        ("I already read the logbook", "lighthouse", []),
        ("I already rang the bell, so read the logbook", "lighthouse", ["read-log"]),
        ("having rung the bell, read the logbook", "lighthouse", ["read-log"]),
        ("I read the logbook", "lighthouse", ["read-log"]),
        ("I have already lit the torch", "torch", []),
        ("I already lit the torch", "torch", []),
        ("I already examined the door", "torch", []),
        ("I set the torch alight", "torch", ["light-torch"]),
    ],
)
def test_what_a_player_says_was_done_is_not_done_again(
    narrators: dict[str, ParaphraseNarrator], prompt: str, story: str, rules: list[str]
) -> None:
    state = WATCH if story == "lighthouse" else {}
    actions = answered(narrators[story], prompt, state, story)
    assert [action.rule.id for action in actions if action.acts] == rules


async def test_a_turn_that_reports_an_action_calls_no_tool(narrators: dict[str, ParaphraseNarrator]) -> None:
    story = shipped_story("lighthouse")
    session = Session(state=merge(story.state, WATCH))
    chain = ChainNarrator([story.scripted_narrator(), narrators["lighthouse"]])
    registry = story_registry(story)
    told = await take_turn(session, "I already rang the bell", narrator=chain, registry=registry)
    asked = await take_turn(session, "ring the bell", narrator=chain, registry=registry)
    assert [call.tool_path for plan in told.plans for call in plan.tools] == []
    assert "listen" in [call.tool_path for plan in asked.plans for call in plan.tools]


@pytest.mark.parametrize("prompt", ["down another floor", "one floor lower", "descend", "to the floor below"])
def test_in_the_kitchen_down_is_the_store(narrators: dict[str, ParaphraseNarrator], prompt: str) -> None:
    actions = answered(narrators["lighthouse"], prompt, KITCHEN, "lighthouse")
    assert [action.rule.id for action in actions] == ["to-store"]


@pytest.mark.parametrize(
    ("prompt", "state", "rule"),
    [
        ("peer up at the lamp room", {}, "see-tower"),
        ("what's in this room?", STORE, "look"),
        ("go through the drawers", STORE, "no-drawer"),
        ("go through the drawers", WATCH, "take-wick"),
        ("is there any oil in the lamp?", KITCHEN, "lamp-oil"),
        ("take the oil, no wait, the rope", STORE, "take-rope"),
        ("put the rope in my bag", STORE, "take-rope"),
        ("go to the store", STORE, "there-already"),
        ("go inside", KITCHEN, "inside-already"),
        ("can't I go up?", STORE, "to-kitchen"),
        ("if the door is open, go out", STORE, "to-landing"),
        ("ta\u200bke the ro\u0301pe", STORE, "take-rope"),
        ("what's in the drawer?", WATCH, "see-drawer"),
        ("look through the window", WATCH, "see-sea"),
        ("what's that noise?", {}, "listen"),
        ("yes", {}, "manners"),
        ("undo that", {}, "outside"),
        ("kill myself", {}, "despair"),
        ("kill the keeper", {}, "harm-keeper"),
    ],
)
def test_in_the_lighthouse(
    narrators: dict[str, ParaphraseNarrator], prompt: str, state: dict[str, Any], rule: str
) -> None:
    actions = answered(narrators["lighthouse"], prompt, state, "lighthouse")
    assert [action.rule.id for action in actions] == [rule]


@pytest.mark.parametrize(
    ("prompt", "state", "rule"),
    [
        ("touch the wood of the door", {}, "examine-door"),
        ("walk back toward the daylight", {}, "leave"),
        ("head back out", {}, "leave"),
        ("squint at the inscription in the daylight", {}, "examine-door"),
        ("read the runes by torchlight", LIT, "examine-door"),
        ("what should I do with the torch", {}, "help"),
        ("is the torch warm?", {}, "see-torch"),
        ("turn around and walk out of here", {}, "leave"),
    ],
)
def test_in_the_passage(
    narrators: dict[str, ParaphraseNarrator], prompt: str, state: dict[str, Any], rule: str
) -> None:
    actions = answered(narrators["torch"], prompt, state, "torch")
    assert [action.rule.id for action in actions] == [rule]
    assert "fingers" not in " ".join(actions[0].case.narrative) or not state


@pytest.mark.parametrize("prompt", ["eat the mailbag", "-1", "?!", "will the flame hurt me?"])
def test_what_has_nothing_to_do_with_the_torch_is_not_said_to_misuse_it(
    narrators: dict[str, ParaphraseNarrator], prompt: str
) -> None:
    assert "misuse-torch" not in [one.rule.name for one in answered(narrators["torch"], prompt, {}, "torch")]


def test_a_rope_that_is_carried_is_not_said_to_be_gone(narrators: dict[str, ParaphraseNarrator]) -> None:
    carried = {**STORE, "inventory": {"rope": "rope"}}
    [action] = answered(narrators["lighthouse"], "take the rope", carried, "lighthouse")
    assert "You have it" in action.case.narrative[0] and not action.acts
