"""What a refusal offers: requests in plain words, about things that are there, that do what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from narratoria.evals.case_sets import load_catalogue
from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.local.near_calls import NearCall
from narratoria.narrator.local.tool_profiles import profile
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard

CATALOGUES = sorted((Path(__file__).parents[2] / "evals" / "catalogues").glob("*.json"))
TEXT = {"type": "string"}


def card(name: str, description: str, *examples: tuple[str, dict[str, Any]], **slots: Any) -> ToolCard:
    parameters = {"type": "object", "properties": slots, "required": [*slots]}
    shown = tuple({"description": text, "input": values} for text, values in examples)
    return ToolCard(name=name, description=description, parameters=parameters, examples=shown)


def refused(narrator: LocalNarrator, prompt: str, tools: tuple[ToolCard, ...], state: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        narrator.plan_now(NarratorRequest(prompt, state=state, tools=tools))
    return caught.value


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.slow if number % 17 else ())
        for number, path in enumerate(CATALOGUES)
    ],
)
def test_every_catalogue_offers_two_or_three_things_that_work(narrator: LocalNarrator, path: Path) -> None:
    catalogue = load_catalogue(path)
    for prompt in ("invest my pension in tulips", "compose a requiem for my late uncle"):
        choices = refused(narrator, prompt, catalogue.tools, catalogue.state).choices
        assert 2 <= len(choices) <= 3, choices
        for choice in choices:
            plan = narrator.plan_now(NarratorRequest(choice, state=catalogue.state, tools=catalogue.tools))
            assert len(plan.tools) == 1, f"{choice!r} leads to {plan.tools}"


def test_what_is_offered_is_done_to_the_thing_it_names(narrator: LocalNarrator) -> None:
    drain = card("drain_tank", "Let the water out of a tank.", tank={**TEXT, "description": "which tank"})
    feed = card("feed", "Give an animal its food.", animal={**TEXT, "description": "who is fed"})
    state = {"tanks": {"quarantine_tank": {}, "coral_reef": {}}, "animals": {"otto": {}, "sheldon": {}}}
    for prompt in ("refill the coral reef", "book a flight"):
        for choice in refused(narrator, prompt, (drain, feed), state).choices:
            [call] = narrator.plan_now(NarratorRequest(choice, state=state, tools=(drain, feed))).tools
            [thing] = call.input.values()
            assert thing.replace("_", " ") in choice.casefold()


def test_a_tool_without_a_slot_is_asked_for_by_what_it_is_for() -> None:
    ring = profile(card("x", "Ring the bell, so that all may hear it."))
    assert NearCall(ring, {}).wordings == ["Ring the bell"]


def test_an_example_keeps_its_words_and_gets_a_thing_that_is_here() -> None:
    lend = card(
        "lend", "Lend a book.", ("Lend Green Rivers to Ada for a week", {"title": "Green Rivers", "to": "Ada"}),
        title=TEXT, to=TEXT,
    )  # fmt: skip
    given = {"title": "The Salt Road", "to": "hana"}
    assert NearCall(profile(lend), given).wordings == ["Lend The Salt Road to Hana for a week"]
    peel = card("peel", "Peel a fruit.", ("Peel a pear", {"fruit": "pear"}), fruit=TEXT)
    assert NearCall(profile(peel), {"fruit": "blood_orange"}).wordings == ["Peel the blood orange"]


def test_what_is_wanting_is_asked_for_in_the_words_of_the_slot(narrator: LocalNarrator) -> None:
    speed = card(
        "set_speed", "Run a train at a given speed.", ("Run the express at 70", {"train": "express", "percent": 70}),
        train=TEXT, percent={"type": "integer", "description": "speed in percent"},
    )  # fmt: skip
    why = refused(narrator, "run the mail", (speed,), {"trains": {"mail": {}, "express": {}}})
    assert "For that, I need to know more: speed in percent?" in str(why)


def test_it_without_anything_spoken_of_is_asked_about(narrator: LocalNarrator) -> None:
    things = {"type": "string", "enum": ["gate", "chest"], "description": "what to open"}
    tools = (
        card("open_thing", "Open a chest or a gate.", thing=things),
        card("light", "Light the lantern."),
    )
    state = {"gate": {"open": False}, "chest": {"open": False}, "lantern": {"lit": False}}
    why = refused(narrator, "open it", tools, state)
    assert "what to open?" in str(why)
    offered = ("Open thing (thing: gate)", "Open thing (thing: chest)", "Light the lantern")
    assert why.choices == offered
    why = refused(narrator, "look around or open the chest", tools, state)
    assert str(why) == "Which of the two do you mean?"
    plan = narrator.plan_now(NarratorRequest("look around, open the chest", state=state, tools=tools))
    assert plan.narrative is not None
    assert "look around" in plan.narrative
    assert [call.input for call in plan.tools] == [{"thing": "chest"}]


@pytest.mark.parametrize("prompt", ["light the lantern? No way.", "light the lantern - just kidding"])
def test_what_is_taken_back_is_not_offered_but_let_be(narrator: LocalNarrator, prompt: str) -> None:
    tools = (card("light", "Light the lantern."), card("dig", "Dig a hole."))
    plan = narrator.plan_now(NarratorRequest(prompt, state={}, tools=tools))
    assert not plan.tools
    assert plan.narrative == "So be it: nothing is done."
