"""Meaning leads to a rule, never past it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("tokenizers")

from tests import warm_start
from tests.shipped_stories import shipped_story

from narratoria.narrator.embedding.minilm import DIMENSIONS, CachedEmbedder, MiniLM
from narratoria.narrator.embedding.vectors import Vectors, np
from narratoria.narrator.paraphrase.paraphrase_narrator import LEFT_BE, ParaphraseNarrator
from narratoria.narrator.paraphrase.rule_meanings import Meanings
from narratoria.narrator.paraphrase.rule_phrases import phrases, readable
from narratoria.narrator.protocol import NarratorRequest, NoMatch, PastTurn, Refusal
from narratoria.narrator.rules.patterns import Pattern
from narratoria.narrator.rules.rule_file import Rules
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator, is_hedged
from narratoria.play.casting import make_narrator
from narratoria.state import merge

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "stories"
PARAPHRASES = ROOT / "evals" / "paraphrases"
SHORT = frozenset({"torch-lighter", "view"})  # of the tools of the stories, those that `make test` runs whole
TOOLS = sorted(
    path
    for path in STORIES.glob("*/tools/*")
    if path.is_file() and path.with_name(path.name + ".tool.json").is_file()
)
READY: Mapping[str, Any] = {
    "place": {"id": "lantern"},
    "inventory": {"oil": "oil", "wick": "wick", "matches": "matches"},
}


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> CachedEmbedder:
    return CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def narrators(embedder: CachedEmbedder) -> dict[str, ParaphraseNarrator]:
    stories = {name: shipped_story(name) for name in ("lighthouse", "torch")}
    return {
        name: ParaphraseNarrator(story.scripted_narrator(), embedder, refusal=story.refusal)
        for name, story in stories.items()
    }


@pytest.fixture
def lighthouse(narrators: dict[str, ParaphraseNarrator]) -> ParaphraseNarrator:
    return narrators["lighthouse"]


def request(prompt: str, change: Mapping[str, Any] | None = None, **more: Any) -> NarratorRequest:
    state = shipped_story("lighthouse").state
    return NarratorRequest(prompt=prompt, state=merge(state, dict(change or {})), **more)


def rules_of(narrator: ParaphraseNarrator, asked: NarratorRequest) -> list[str]:
    return [action.rule.id for action in narrator.understand(asked).actions]


def tools_of(narrator: ParaphraseNarrator, asked: NarratorRequest) -> list[str]:
    return [call.tool_path.rpartition("/")[2] for call in narrator.plan_now(asked).tools]


def test_other_words_for_an_action_reach_its_rule(lighthouse: ParaphraseNarrator) -> None:
    asked = request("have a read of the logbook", {"place": {"id": "watch"}})
    with pytest.raises(NoMatch):
        asyncio.run(shipped_story("lighthouse").scripted_narrator().plan(asked))
    assert "read-log" in tools_of(lighthouse, asked)


def test_meaning_does_not_light_a_lamp_without_wick_and_oil(lighthouse: ParaphraseNarrator) -> None:
    bare = request("get a flame going in the lamp", {"place": {"id": "lantern"}})
    assert "strike-match" not in tools_of(lighthouse, bare)
    filled = request("get a flame going in the lamp", {**READY, "lamp": {"oil": True, "wick": True}})
    assert "strike-match" in tools_of(lighthouse, filled)


def test_oil_put_into_the_can_never_calls_the_lamps_tools(lighthouse: ParaphraseNarrator) -> None:
    called = tools_of(lighthouse, request("put oil into the can", {"place": {"id": "store"}}))
    assert "take" in called and not {"fill-lamp", "strike-match"} & set(called)


def test_each_clause_leads_to_its_own_rule_and_sees_what_the_one_before_leaves(
    lighthouse: ParaphraseNarrator,
) -> None:
    asked = request("pour the oil into the lamp, put the new wick in and make the lamp burn", READY)
    assert rules_of(lighthouse, asked) == ["fill-lamp", "fit-wick", "light-lamp"]
    assert "strike-match" in tools_of(lighthouse, asked)


def test_what_is_ruled_out_is_not_done(lighthouse: ParaphraseNarrator) -> None:
    plan = lighthouse.plan_now(request("don't ring the bell", {"place": {"id": "watch"}}))
    assert (plan.narrative, plan.tools) == (LEFT_BE, [])


@pytest.mark.parametrize(
    "prompt",
    [
        "Go inside? No.",
        "go inside. no way.",
        "Should I go inside? Better not.",
        "The lamp must not be lit",
        "The door is not to be opened",
    ],
)
def test_what_is_asked_and_denied_is_not_done(lighthouse: ParaphraseNarrator, prompt: str) -> None:
    plan = lighthouse.plan_now(request(prompt))
    assert (plan.narrative, plan.tools) == (LEFT_BE, [])


@pytest.mark.parametrize(
    ("prompt", "rules"),
    [
        ("Go inside? No, go north.", ["to-gut"]),
        ("Go inside? No. Go north.", ["to-gut"]),
        ("don't go in yet, look around, then go in", ["look", "to-store"]),
        ("don't go north, go in", ["to-store"]),
    ],
)
def test_what_is_asked_for_beside_what_is_ruled_out_is_done(
    lighthouse: ParaphraseNarrator, prompt: str, rules: list[str]
) -> None:
    assert rules_of(lighthouse, request(prompt)) == rules


@pytest.mark.parametrize(
    "prompt", ["take the lantern", "grab the lantern", "get the lantern", "carry the lamp"]
)
def test_to_take_a_thing_is_not_to_walk_to_where_it_is(lighthouse: ParaphraseNarrator, prompt: str) -> None:
    assert "walk" not in tools_of(lighthouse, request(prompt))


def test_a_lantern_that_is_not_there_is_not_taken_and_the_rest_is_done_from_where_one_is(
    lighthouse: ParaphraseNarrator,
) -> None:
    plan = lighthouse.plan_now(request("take the lantern, then go up"))
    walks = [call.input["to"] for call in plan.tools if call.tool_path.endswith("walk")]
    assert walks == ["store"]
    assert "There is no lantern here to take." in (plan.narrative or "")


@pytest.mark.parametrize(
    "prompt", ["extinguish the torch", "put the torch out", "smother it", "is it lit?", "should I light it?"]
)
def test_what_undoes_a_deed_or_asks_about_it_is_not_taken_for_it(
    embedder: CachedEmbedder, tmp_path: Path, prompt: str
) -> None:
    rules = _rules(tmp_path, patterns=["(light|kindle) (torch|it)"], calls=[{"tool": "light"}])
    narrator = ParaphraseNarrator(ScriptedNarrator(rules), embedder)
    with pytest.raises(Refusal):
        narrator.plan_now(NarratorRequest(prompt=prompt))
    assert narrator.plan_now(NarratorRequest(prompt="ignite the torch")).tools


def test_what_cannot_be_undone_is_never_a_guess_but_asked_for_plainly(lighthouse: ParaphraseNarrator) -> None:
    ready = {**READY, "lamp": {"oil": True, "wick": True}}
    for prompt in (
        "put a light to the burner",
        "can I light the lamp?",
        "get that lamp going",
        "light the lamp but my hands are shaking",
        "I want to light the lamp but carefully",
    ):
        asked = request(prompt, ready, choices=("Go down", "Light the lamp"))
        assert "strike-match" not in tools_of(lighthouse, asked)
        assert lighthouse.declare().choices[0] == "Light the lamp"
    assert "strike-match" in tools_of(lighthouse, request("light the lamp", ready))


@pytest.mark.parametrize(
    ("prompt", "hedged"),
    [
        ("I would like to light the lamp but I am afraid", True),
        ("I’d love to light the lamp, but", True),
        ("I wanted to light it but the door is locked", True),
        ("light the lamp, but I'm scared", True),
        ("light it although the wind is strong", True),
        ("jump, but everyone is afraid", True),
        ("burn the letters, though it hurts", True),
        ("light the lamp, but first wind the clock", True),
        ("I would like to light the lamp", False),
        ("I want to light the lamp please", False),
        ("light the lamp, but keep it low", False),
        ("light the lamp but quickly", False),
        ("do nothing but light the lamp", False),
        ("look through the window, then light the lamp", False),
    ],
)
def test_a_wish_with_a_but_behind_it_wavers(prompt: str, hedged: bool) -> None:
    assert is_hedged(prompt) is hedged


STORE: Final = {"place": {"id": "store"}}


@pytest.mark.parametrize(
    ("prompt", "place", "right"),
    [
        ("climb the tower", "store", "Go up to the kitchen"),
        ("walk around the tower", "landing", "Go to the lantern room"),
    ],
)
def test_what_is_not_certain_is_asked_about_and_not_done(
    lighthouse: ParaphraseNarrator, prompt: str, place: str, right: str
) -> None:
    asked = request(prompt, {"place": {"id": place}}, choices=("Go up to the kitchen", "Listen"))
    plan = lighthouse.plan_now(asked)
    choices = lighthouse.declare().choices
    assert right in choices and 1 <= len(choices) <= 3
    assert all(f"“{choice}”" in (plan.narrative or "") for choice in choices)
    assert "walk" not in [call.tool_path for call in plan.tools]


def test_a_question_back_is_left_to_a_model_behind(
    lighthouse: ParaphraseNarrator, embedder: CachedEmbedder
) -> None:
    yielding = ParaphraseNarrator(lighthouse.scripted, embedder, yields=True)
    with pytest.raises(Refusal) as refused:
        yielding.plan_now(request("climb the tower", STORE, choices=("Go up to the kitchen",)))
    assert "Go up to the kitchen" in refused.value.choices


@pytest.mark.parametrize(
    "prompt", ['"Take a wick and go up!"', 'I say "read the log, then ring the bell"', "“Is anybody there?”"]
)
def test_what_stands_in_quotation_marks_is_said_and_not_done(
    lighthouse: ParaphraseNarrator, prompt: str
) -> None:
    asked = request(prompt, {"place": {"id": "watch"}})
    actions, _ = lighthouse.scripted.understand(asked)
    assert {action.rule.id for action in actions} == {"call"}


def test_the_words_of_a_player_are_not_taken_for_things(lighthouse: ParaphraseNarrator) -> None:
    for prompt in ("examine the rock for marit", "take the moon of the sea"):
        told = lighthouse.plan_now(request(prompt)).narrative or ""
        assert "marit" not in told and "moon" not in told


def test_an_inventory_lists_what_is_there(lighthouse: ParaphraseNarrator) -> None:
    told = (
        lighthouse.plan_now(request("i", {"inventory": {"oil": "a can of oil", "rope": "rope"}})).narrative
        or ""
    )
    assert "a can of oil; rope." in told and "no " not in told.casefold()


def test_it_is_what_was_spoken_of_in_the_turn_before(narrators: dict[str, ParaphraseNarrator]) -> None:
    torch = narrators["torch"]
    spoken = NarratorRequest(prompt="grab it", history=[PastTurn("look at the torch", "…")])
    assert rules_of(torch, spoken) == ["take-torch"]
    assert rules_of(torch, NarratorRequest(prompt="grab it")) == ["which"]


def test_a_question_nobody_answers_is_not_told_that_it_cannot_be_done(lighthouse: ParaphraseNarrator) -> None:
    with pytest.raises(Refusal) as refused:
        lighthouse.plan_now(request("does the Board pay for overtime?"))
    assert refused.value.narrative in lighthouse.scripted.rules.unanswered


def test_a_refusal_speaks_in_the_storys_tone_and_offers_what_is_offered_now(
    lighthouse: ParaphraseNarrator,
) -> None:
    with pytest.raises(Refusal) as refused:
        lighthouse.plan_now(request("order a taxi by phone", choices=("Go inside", "Listen")))
    assert refused.value.narrative in shipped_story("lighthouse").refusal
    assert refused.value.choices == ("Go inside", "Listen")


def test_without_choices_a_refusal_offers_phrases_the_rules_answer(
    narrators: dict[str, ParaphraseNarrator],
) -> None:
    torch = narrators["torch"]
    asked = NarratorRequest(prompt="order a taxi by phone")
    with pytest.raises(Refusal) as refused:
        torch.plan_now(asked)
    assert 2 <= len(refused.value.choices) <= 3
    doable = [torch.scripted.answer(choice, asked, {}) for choice in refused.value.choices]
    assert all(action is not None and action.acts and not action.is_final for action in doable)


def test_a_choice_on_offer_is_understood_in_other_words(embedder: CachedEmbedder, tmp_path: Path) -> None:
    rules = _rules(tmp_path, patterns=["press on ..."], narrative="You press on.")
    narrator = ParaphraseNarrator(ScriptedNarrator(rules), embedder)
    prompt = "walk on through the marsh"
    offered = NarratorRequest(prompt=prompt, choices=("Press on through the marsh",))
    assert rules_of(narrator, NarratorRequest(prompt=prompt)) == []
    assert rules_of(narrator, offered) == ["only"]


def test_a_typo_is_mended_before_the_rules_are_asked(lighthouse: ParaphraseNarrator) -> None:
    assert rules_of(lighthouse, request("examin the barometr", {"place": {"id": "watch"}})) == ["barometer"]


def test_a_rule_of_last_resort_leaves_the_word_to_meaning(lighthouse: ParaphraseNarrator) -> None:
    asked = request("get a replacement wick out of the drawer", {"place": {"id": "watch"}})
    assert rules_of(lighthouse, asked) == ["take-wick"]
    assert rules_of(lighthouse, request("take the moon", {"place": {"id": "watch"}})) == ["take-other"]


def test_the_first_page_does_not_wait_for_the_model() -> None:
    code = (
        "import sys; from narratoria.play.story import Story; from narratoria.play.casting import make_narrator;"
        f"chain = make_narrator(Story.load({str(STORIES / 'lighthouse')!r}));"
        "print([one.name for one in chain.narrators], 'numpy' in sys.modules, 'tokenizers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "['rules', 'paraphrase', 'rules'] False False"


def test_a_chain_hands_on_what_the_rules_understand_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    chain = make_narrator(shipped_story("torch"), ["rules", "paraphrase"], time_limit=60)
    plan = asyncio.run(chain.plan(NarratorRequest(prompt="ignite that old torch and examine the door")))
    assert [call.tool_path for call in plan.tools] == ["tools/torch-lighter", "tools/door-examiner"]
    assert chain.last_speaker == "paraphrase"


@pytest.mark.parametrize(
    "source", ["(light|kindle) [up] <lamp> [with {tool}]", "go {way:up|down} ...", "[a] b"]
)
def test_every_phrase_made_from_a_pattern_fits_it(source: str) -> None:
    pattern = Pattern(source, {"lamp": ["lamp", "big beacon"]})
    made = phrases([pattern], 40)
    assert made and len(set(made)) == len(made)
    assert all(pattern.match(phrase.replace("{", "").replace("}", "").split()) is not None for phrase in made)


def test_phrases_bring_every_word_of_a_list_and_stay_within_their_bound() -> None:
    pattern = Pattern("<go> [back] to <place>", {"go": ["go", "walk", "run"], "place": ["kitchen", "store"]})
    made = phrases([pattern], 5)
    assert len(made) == 5
    assert {word for phrase in made for word in phrase.split()} >= {"go", "walk", "run", "kitchen", "store"}


def test_phrases_read_as_offers() -> None:
    assert [readable(text) for text in ("wind clockwork", "go kitchen", "look at door")] == [
        "Wind the clockwork",
        "Go to the kitchen",
        "Look at the door",
    ]


class Short:
    """Makes vectors until it has been asked often enough."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not self.calls:
            raise KeyboardInterrupt
        self.calls -= 1
        self.texts += texts
        return np.ones((len(texts), DIMENSIONS), dtype=np.float32)

    def knows_word(self, word: str) -> bool:
        return True


def test_a_first_game_that_ends_too_early_leaves_the_next_one_less_to_do(tmp_path: Path) -> None:
    story = shipped_story("lighthouse")
    assert story.rules is not None
    first, second, whole = Short(2), Short(99), Short(99)
    with pytest.raises(KeyboardInterrupt):
        Meanings(story.rules, CachedEmbedder(first, tmp_path)).embed_all(story.state)
    Meanings(story.rules, CachedEmbedder(second, tmp_path)).embed_all(story.state)
    Meanings(story.rules, CachedEmbedder(whole, tmp_path / "other")).embed_all(story.state)
    assert first.texts
    assert len(first.texts) + len(second.texts) == len(whole.texts)


def test_phrases_that_may_be_meant_now_are_embedded_before_others() -> None:
    story = shipped_story("lighthouse")
    assert story.rules is not None
    hasty = Short(99)
    Meanings(story.rules, hasty).embed_all(story.state)
    assert hasty.texts.index("take rope") < hasty.texts.index("climb down")  # that is for the gut


def test_a_prompt_waits_for_the_phrases_of_rules_that_may_answer_it_only(tmp_path: Path) -> None:
    story = shipped_story("lighthouse")
    hasty = Short(99)
    cold = ParaphraseNarrator(story.scripted_narrator(), CachedEmbedder(hasty, tmp_path))
    cold.understand(request("admire the lighthouse from the weed"))
    assert "examine tower" in hasty.texts
    assert not {"wind clockwork", "ring bell"} & set(hasty.texts)  # to look is not to wind, nor to ring
    needed = len(hasty.texts)
    cold.embed_all(story.state)
    assert needed < 0.5 * len(hasty.texts)


@pytest.mark.slow
def test_what_a_prompt_is_taken_for_does_not_hang_on_how_much_is_embedded(
    narrators: dict[str, ParaphraseNarrator], tmp_path: Path
) -> None:
    story = shipped_story("torch")
    warm = narrators["torch"]
    warm.embed_all(story.state)
    lines = (PARAPHRASES / "development.jsonl").read_text(encoding="utf-8").splitlines()
    prompts = [item["prompt"] for item in map(json.loads, lines) if item["story"] == "torch"]
    assert len(prompts) > 20
    for number, prompt in enumerate(prompts[:6]):
        cold = ParaphraseNarrator(story.scripted_narrator(), CachedEmbedder(MiniLM(), tmp_path / str(number)))
        asked = NarratorRequest(prompt=prompt, state=story.state)
        assert rules_of(cold, asked) == rules_of(warm, asked), prompt


WHOLE = pytest.mark.slow  # of a set; every fourth line is read in `make test`


@pytest.mark.parametrize(
    ("name", "every", "least_rules", "least_refusals"),
    [
        ("development", 4, 0.75, 0.95),
        ("held-out", 4, 0.65, 0.95),
        pytest.param("development", 1, 0.75, 0.95, marks=WHOLE),
        pytest.param("held-out", 1, 0.65, 0.95, marks=WHOLE),
    ],
)
def test_paraphrases_reach_their_rules(
    narrators: dict[str, ParaphraseNarrator], name: str, every: int, least_rules: float, least_refusals: float
) -> None:
    """The bounds are what was measured, less a little; docs/narrators.md tells the figures."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    spent = []
    for line in (PARAPHRASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[::every]:
        item = json.loads(line)
        narrator = narrators[item["story"]]
        place = {"place": {"id": item["at"]}} if "at" in item else {}
        state = merge(merge(shipped_story(item["story"]).state, item.get("state", {})), place)
        start = time.process_time()
        found = narrator.understand(NarratorRequest(prompt=item["prompt"], state=state))
        actions = found.actions
        spent.append(time.process_time() - start)
        meant = [action.rule.id for action in actions]
        offered = {action.rule.id for action in (*actions, *found.doubts)} if found.doubts else set()
        expected = meant == item["rules"] or set(item["rules"]) <= offered
        harmless = not any(action.acts for action in actions)
        hits[bool(item["rules"])].append(expected if item["rules"] else harmless)
    assert sum(hits[True]) >= least_rules * len(hits[True])
    assert sum(hits[False]) >= least_refusals * len(hits[False])
    assert sorted(spent)[len(spent) // 2] < 0.1


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("development", 4),
        ("held-out", 4),
        pytest.param("development", 1, marks=WHOLE),
        pytest.param("held-out", 1, marks=WHOLE),
    ],
)
def test_what_players_type_is_answered_and_does_no_deed_they_did_not_ask_for(
    narrators: dict[str, ParaphraseNarrator], name: str, every: int
) -> None:
    """The bounds are what was measured, less a little; evals/players/README.md tells what counts as right."""
    right: dict[str, list[bool]] = {"lighthouse": [], "torch": []}
    wrong_deeds = []
    for line in (
        (ROOT / "evals" / "players" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[::every]
    ):
        item = json.loads(line)
        state = merge(shipped_story(item["story"]).state, item["state"])
        asked = NarratorRequest(prompt=item["prompt"], state=state)
        actions, doubts = _answered(narrators[item["story"]], asked)
        fits = any(_fits(actions, expected) for expected in item["expect"])
        right[item["story"]].append(fits or bool({one.rule.id for one in doubts} & set(item["expect"])))
        if not fits and any(action.acts for action in actions):
            wrong_deeds.append(item["prompt"])
    for story, hits in right.items():
        assert sum(hits) >= 0.94 * len(hits), story
    assert len(wrong_deeds) <= 4, wrong_deeds


def _answered(
    narrator: ParaphraseNarrator, asked: NarratorRequest
) -> tuple[list[Action], tuple[Action, ...]]:
    """As the chain does it: the rules' words, and where they do not fit the whole prompt, its meaning."""
    actions, missed = narrator.scripted.understand(asked)
    if actions and not missed and not any(action.rule.fallback for action in actions):
        return actions, ()
    found = narrator.understand(asked)
    return found.actions, found.doubts


def _fits(actions: list[Action], expected: str) -> bool:
    still = not any(action.acts for action in actions)
    if expected == "still":
        return still
    if expected in ("told", "told*"):
        own = expected == "told*" or not any(action.rule.fallback for action in actions)
        return still and own and bool(actions)
    return "+".join(action.rule.id for action in actions) == expected


@pytest.mark.parametrize(
    "tool",
    [one if one.name in SHORT else pytest.param(one, marks=pytest.mark.slow) for one in TOOLS],
    ids=lambda path: f"{path.parents[1].name}-{path.name}",
)
def test_every_tool_of_a_shipped_story_keeps_the_whole_protocol(tool: Path) -> None:
    done = warm_start.run("check", tool, "--json", env=os.environ)
    report = json.loads(done.stdout)
    assert report["conforms"] and done.returncode == 0
    assert [rule for rule in report["rules"] if rule["verdict"] == "fail"] == []


def _rules(folder: Path, **rule: Any) -> Rules:
    return Rules.from_toml({"rule": [{"id": "only", **rule}]}, folder / "narrator.toml")


def test_what_no_rule_could_be_found_for_is_said(narrators: dict[str, ParaphraseNarrator]) -> None:
    lighthouse = narrators["lighthouse"]
    state = shipped_story("lighthouse").state
    prompt = "go inside and translate the sea into Portuguese"
    told = lighthouse.plan_now(NarratorRequest(prompt=prompt, state=state)).narrative or ""
    assert told.startswith("The store is")
    assert "translate the sea into portuguese" in told.casefold()
    whole = lighthouse.plan_now(NarratorRequest(prompt="go inside and look around, it is cold", state=state))
    assert "cold" not in (whole.narrative or "")
