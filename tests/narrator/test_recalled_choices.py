"""What is remembered decides which of the things that can be done are offered first."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from tests.shipped_stories import shipped_story

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.english.named_things import find_entities
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.local.suggestions import suggest
from narratoria.narrator.local.tool_profiles import profile
from narratoria.narrator.paraphrase.paraphrase_narrator import ParaphraseNarrator
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard
from narratoria.narrator.rules.rule_file import Rules
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.play.casting import make_narrator
from narratoria.play.game import Game
from narratoria.play.recollection import Recollection
from narratoria.play.story import Story
from narratoria.play.story_lore import Situation

STORIES = Path(__file__).parents[2] / "stories"
HALL: dict[str, Any] = {
    "inventory": {"coin": {}, "rope": {}, "bread": {}},
    "here": {"lantern": {}, "candle": {}, "oak_door": {}, "chest": {}, "brass_bell": {}, "tower": {}},
}


def tool(name: str, description: str, example: str, thing: str, slot: str) -> ToolCard:
    schema = {"type": "object", "properties": {"item": {"type": "string", "description": slot}}}
    return ToolCard(
        name,
        description,
        {**schema, "required": ["item"], "additionalProperties": False},
        ({"description": example, "input": {"item": thing}},),
    )


TOOLS = [
    tool("take", "Pick up an object and carry it.", "Take the coin", "coin", "what to pick up"),
    tool("light", "Light a lamp, lantern or candle.", "Light the candle", "candle", "what to light"),
    tool("open", "Open a door, a chest or a lid.", "Open the gate", "gate", "what to open"),
    tool("ring", "Ring a bell.", "Ring the bell", "bell", "which bell"),
    tool("eat", "Eat some food.", "Eat the bread", "bread", "which food"),
]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> CachedEmbedder:
    return CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def local(embedder: CachedEmbedder) -> LocalNarrator:
    return LocalNarrator(embedder)


def offered(narrator: LocalNarrator | ParaphraseNarrator, *recalled: str, **more: Any) -> Sequence[str]:
    request = NarratorRequest(**{"prompt": "book me a flight to Lisbon", **more}, recall=lambda: recalled)
    with pytest.raises(Refusal) as refused:
        narrator.plan_now(request)
    return refused.value.choices


@pytest.mark.parametrize(
    ("memory", "first"),
    [
        ("The chest was nailed shut by Osk the Blind.", "Open the chest"),
        ("Nobody has rung the bell since the flood.", "Ring the brass bell"),
        ("She left a candle burning for him every night.", "Light the candle"),
    ],
)
def test_the_local_narrator_offers_first_what_a_memory_speaks_of(
    local: LocalNarrator, memory: str, first: str
) -> None:
    choices = offered(local, memory, state=HALL, tools=TOOLS)
    assert choices[0] == first
    assert 2 <= len(choices) <= 3
    for choice in choices:
        assert local.plan_now(NarratorRequest(choice, state=HALL, tools=TOOLS)).tools


def test_the_foremost_memory_comes_first(local: LocalNarrator) -> None:
    bell, chest = "Nobody has rung the bell since the flood.", "The chest was nailed shut."
    assert offered(local, bell, chest, state=HALL, tools=TOOLS)[0] == "Ring the brass bell"
    assert offered(local, chest, bell, state=HALL, tools=TOOLS)[0] == "Open the chest"


def test_a_memory_of_what_is_not_here_changes_nothing(local: LocalNarrator) -> None:
    plain = offered(local, state=HALL, tools=TOOLS)
    assert offered(local, "The dragon sleeps on the hoard.", state=HALL, tools=TOOLS) == plain


def test_a_memory_does_not_make_a_thing_fit_where_it_does_not(embedder: CachedEmbedder) -> None:
    tools, things = [profile(card) for card in TOOLS], find_entities(HALL)
    plain = suggest(tools, things, embedder.embed)
    assert suggest(tools, things, embedder.embed, recalled=["The rope is frayed."]) == plain
    first, *_ = suggest(tools, things, embedder.embed, recalled=["The lantern is cracked."])
    assert first.wordings == ["Light the lantern"]


def test_what_the_player_asked_for_in_part_stays_before_what_is_remembered(local: LocalNarrator) -> None:
    bell = "Nobody has rung the bell since the flood."
    asked = offered(local, bell, prompt="open", state=HALL, tools=TOOLS)
    assert asked[0].startswith("Open the")


def test_of_the_choices_on_offer_the_remembered_one_is_kept_and_comes_first(
    embedder: CachedEmbedder, tmp_path: Path
) -> None:
    narrator = ParaphraseNarrator(
        ScriptedNarrator(
            Rules.from_toml(
                {"rule": [{"id": "jump", "patterns": ["jump"], "narrative": "Up."}]}, tmp_path / "x.toml"
            )
        ),
        embedder,
    )
    choices = ("Go up", "Read the log", "Listen", "Ring the bell")
    assert offered(narrator, choices=choices) == choices[:3]
    told = "The bell was cast in Ulm."
    assert offered(narrator, told, choices=choices) == ("Ring the bell", "Go up", "Read the log")


def test_of_what_the_rules_can_do_now_the_remembered_comes_first(
    embedder: CachedEmbedder, tmp_path: Path
) -> None:
    rules = [
        {"id": thing, "patterns": [f"polish {thing}", f"wipe {thing}"], "calls": [{"tool": "polish"}]}
        for thing in ("lens", "mirror", "kettle", "barometer")
    ]
    rules.append(
        {"id": "gone", "patterns": ["polish bell"], "when": {"bell": True}, "calls": [{"tool": "p"}]}
    )
    scripted = ScriptedNarrator(Rules.from_toml({"rule": rules}, tmp_path / "narrator.toml"))
    narrator = ParaphraseNarrator(scripted, embedder)
    told = ("The bell is gone.", "Marit's barometer fell all night.")
    first, *others = offered(narrator, *told)
    assert first == "Polish the barometer"
    assert len(others) == 2
    assert scripted.answer(first, NarratorRequest(first), {}) is not None


async def test_in_a_game_lore_reaches_the_choices_of_a_refusal(tmp_path: Path) -> None:
    shutil.copytree(STORIES / "torch", tmp_path / "torch")
    lore = tmp_path / "torch" / "lore"
    lore.mkdir()
    (lore / "osk.md").write_text('+++\nkeywords = ["pizza"]\n+++\nOsk the Blind carved the door.\n')
    story = Story.load(tmp_path / "torch")
    firsts = []
    for prompt in ("order a pizza", "order a taxi"):
        game = Game.new(story, narrators=["paraphrase"], generation_timeout=60)
        game.begin()
        result = await game.prompt(prompt)
        firsts.append(result.choices[0])
        assert result.narrator == "paraphrase"
    assert firsts == ["Examine the door", "Light the torch"]


async def test_a_refusal_does_not_wait_for_a_memory_that_is_long_in_the_making(tmp_path: Path) -> None:
    story = shipped_story("lighthouse")
    memory = Recollection(story, make_narrator(story, ["rules"]), patience=0.0)
    assert memory.remind(Situation("the keeper of the light")) == []
    memory.patience = 60.0
    assert any("Marit Aune" in one for one in memory.remind(Situation("the keeper of the light")))


def test_a_refusal_looks_no_further_than_it_has_choices_to_offer(embedder: CachedEmbedder) -> None:
    story = shipped_story("lighthouse")
    narrator = ParaphraseNarrator(story.scripted_narrator(), embedder)
    asked = {"state": {**story.state, "place": {"id": "watch"}}, "prompt": "order a taxi by phone"}
    offered(narrator, **asked)  # what is embedded once is not what is measured
    started = time.process_time()
    assert len(offered(narrator, "The tower has a store, a kitchen and a watch room.", **asked)) == 3
    assert time.process_time() - started < 0.5
