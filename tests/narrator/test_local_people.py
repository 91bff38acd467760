"""Talking and giving: who is somebody and what is something, for the local narrator with any catalogue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard

Calls = list[tuple[str, dict[str, Any]]]


def tool(name: str, description: str, optional: tuple[str, ...] = (), **slots: str) -> ToolCard:
    properties = {slot: {"type": "string", "description": told} for slot, told in slots.items()}
    required = [slot for slot in slots if slot not in optional]
    return ToolCard(
        name,
        description,
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
    )


TOOLS = (
    tool("talk_to", "Talk to somebody.", who="to whom"),
    tool("give", "Give an item to a person.", item="what to give", person="to whom"),
    tool("take", "Pick up an item.", item="the item"),
    tool("attack", "Fight an enemy.", ("weapon",), target="whom to fight", weapon="with what"),
    tool("unlock", "Unlock something with a key.", target="what to unlock", key="with which key"),
    tool("open", "Open a door, gate or container.", target="what to open"),
    tool("read", "Read a text.", text="what to read"),
    tool("feed", "Give an animal something to eat.", animal="which animal"),
    tool("add_to_cauldron", "Put something into the cauldron.", thing="what goes in"),
    tool("cut", "Cut something with the knife.", thing="what to cut"),
    tool("reserve_room", "Reserve a room.", room="which room"),
)
STATE: dict[str, Any] = {
    "here": {"guard": {}, "goblin": {}, "old_woman": {}, "raven": {}, "black_cat": {}, "cauldron": {}},
    "innkeeper": {"mood": "glad"},
    "npcs": {"zarel": {}},
    "iron_gate": {"locked": True},
    "inventory": {"apple": {}, "rusty_sword": {}, "brass_key": {}, "silver_knife": {}, "nettle": {}},
    "rooms": {"reading_room": {}, "study_pod_1": {}, "study_pod_2": {}},
}
EVERYBODY = ("guard", "goblin", "old woman", "raven", "black cat", "innkeeper", "zarel")


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def calls(
    narrator: LocalNarrator, prompt: str, state: dict[str, Any] = STATE, tools: tuple[ToolCard, ...] = TOOLS
) -> Calls:
    request = NarratorRequest(prompt=prompt, tools=tools, state=state)
    return [(call.tool_path, dict(call.input)) for call in asyncio.run(narrator.plan(request)).tools]


def refuses(narrator: LocalNarrator, prompt: str) -> bool:
    with pytest.raises(Refusal):
        calls(narrator, prompt)
    return True


# --- who is somebody ------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", EVERYBODY)
def test_anybody_in_state_can_be_talked_to(narrator: LocalNarrator, who: str) -> None:
    assert calls(narrator, f"talk to the {who}") == [("talk_to", {"who": who.replace(" ", "_")})]


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("prompt", ["give the {} the apple", "give the apple to the {}"])
def test_a_gift_is_the_thing_and_goes_to_somebody(narrator: LocalNarrator, prompt: str, who: str) -> None:
    given = {"item": "apple", "person": who.replace(" ", "_")}
    assert calls(narrator, prompt.format(who)) == [("give", given)]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("hand the goblin the rusty sword", [("give", {"item": "rusty_sword", "person": "goblin"})]),
        ("give the key to the guard", [("give", {"item": "brass_key", "person": "guard"})]),
        ("give the guard the brass key", [("give", {"item": "brass_key", "person": "guard"})]),
        ("attack guard", [("attack", {"target": "guard"})]),
        ("fight the guard", [("attack", {"target": "guard"})]),
        (
            "fight the innkeeper with the rusty sword",
            [("attack", {"target": "innkeeper", "weapon": "rusty_sword"})],
        ),
        ("speak with the innkeeper", [("talk_to", {"who": "innkeeper"})]),
    ],
)
def test_common_deeds_to_somebody_are_done(narrator: LocalNarrator, prompt: str, expected: Calls) -> None:
    assert calls(narrator, prompt) == expected


@pytest.mark.parametrize("prompt", ["talk to the sword", "talk to the gate", "give the sword the apple"])
def test_a_thing_is_nobody(narrator: LocalNarrator, prompt: str) -> None:
    assert refuses(narrator, prompt)


def test_what_the_player_carries_is_nobody_though_it_is_kept_under_the_player(
    narrator: LocalNarrator,
) -> None:
    state = {"player": {"hp": 9, "inventory": ["lantern"]}, "place": {"npcs": ["beggar"]}}
    assert calls(narrator, "give the beggar the lantern", state) == [
        ("give", {"item": "lantern", "person": "beggar"})
    ]
    with pytest.raises(Refusal):
        calls(narrator, "talk to the lantern", state)


def test_somebody_whom_the_state_does_not_know_is_not_talked_to_unless_by_name(
    narrator: LocalNarrator,
) -> None:
    assert refuses(narrator, "talk to the emperor")
    assert calls(narrator, "talk to Ottokar") == [("talk_to", {"who": "Ottokar"})]


# --- what a tool always has to do with ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "tool_path", "thing"),
    [
        ("put the nettle in the cauldron", "add_to_cauldron", "nettle"),
        ("put the raven in the cauldron", "add_to_cauldron", "raven"),
        ("throw the apple into the cauldron", "add_to_cauldron", "apple"),
        ("cut the nettle with the silver knife", "cut", "nettle"),
        ("cut the apple with the knife", "cut", "apple"),
        ("put the silver knife into the cauldron", "add_to_cauldron", "silver_knife"),
    ],
)
def test_the_vessel_and_the_knife_of_a_tool_are_not_what_it_asks_for(
    narrator: LocalNarrator, prompt: str, tool_path: str, thing: str
) -> None:
    assert calls(narrator, prompt) == [(tool_path, {"thing": thing})]


# --- pronouns -------------------------------------------------------------------------------------------


def test_it_is_what_something_was_done_to_and_not_what_it_was_done_with(narrator: LocalNarrator) -> None:
    assert calls(narrator, "unlock the gate with the brass key and open it") == [
        ("unlock", {"target": "iron_gate", "key": "brass_key"}),
        ("open", {"target": "iron_gate"}),
    ]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (
            "use the brass key to unlock the gate",
            ("unlock", {"target": "iron_gate", "key": "brass_key"}),
        ),
        ("use the rusty sword to attack the guard", ("attack", {"target": "guard", "weapon": "rusty_sword"})),
        ("use the silver knife to cut the nettle", ("cut", {"thing": "nettle"})),
    ],
)
def test_what_is_used_to_do_something_is_what_it_is_done_with(
    narrator: LocalNarrator, prompt: str, expected: tuple[str, dict[str, Any]]
) -> None:
    assert calls(narrator, prompt) == [expected]


@pytest.mark.parametrize("prompt", ["renew Priya's card", "renew priya nair's card"])
def test_whose_it_is_may_be_said_by_the_first_name(narrator: LocalNarrator, prompt: str) -> None:
    renew = tool("renew_card", "Renew a member's library card.", member="whose card")
    state: dict[str, Any] = {"members": {"priya_nair": {}, "tom_field": {}}}
    assert calls(narrator, prompt, state, (renew,)) == [("renew_card", {"member": "priya_nair"})]
    with pytest.raises(Refusal):
        calls(narrator, "renew Priya Sharma's card", state, (renew,))


def test_him_is_somebody_spoken_of(narrator: LocalNarrator) -> None:
    assert calls(narrator, "talk to the guard and give him the apple") == [
        ("talk_to", {"who": "guard"}),
        ("give", {"item": "apple", "person": "guard"}),
    ]
    assert calls(narrator, "take the apple, talk to the guard and attack him")[-1] == (
        "attack",
        {"target": "guard"},
    )


@pytest.mark.parametrize("prompt", ["talk to him"])
def test_him_is_asked_for_where_nobody_was_spoken_of(narrator: LocalNarrator, prompt: str) -> None:
    assert refuses(narrator, prompt)


@pytest.mark.parametrize("prompt", ["give the candle to zarel", "give zarel the candle"])
def test_a_gift_is_not_handed_to_a_tool_that_leaves_out_who_gets_it(
    narrator: LocalNarrator, prompt: str
) -> None:
    state: dict[str, Any] = {"here": {"zarel": {}, "candle": {}}}
    light = tool("light", "Light a lamp, a candle or a fire.", target="what to light")
    give = tool("give", "Give a thing away.", thing="what", to="to whom")
    given = [("give", {"thing": "candle", "to": "zarel"})]
    assert calls(narrator, prompt, state, (light, give)) == given
    with pytest.raises(Refusal):
        calls(narrator, prompt, state, (light,))


# --- words that name nothing ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "remind me to feed the cat",
        "do anything except open the gate",
        "talk to somebody",
        "take something",
        "take all",
        "take everything",
    ],
)
def test_words_that_name_nothing_fill_no_slot(narrator: LocalNarrator, prompt: str) -> None:
    assert refuses(narrator, prompt)


# --- both -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "slot", "values"),
    [
        ("feed both animals", "animal", ["raven", "black_cat"]),
        ("feed all the animals", "animal", ["raven", "black_cat"]),
        ("reserve both study pods", "room", ["study_pod_1", "study_pod_2"]),
        ("reserve all the rooms", "room", ["reading_room", "study_pod_1", "study_pod_2"]),
    ],
)
def test_both_and_all_are_those_that_the_state_has(
    narrator: LocalNarrator, prompt: str, slot: str, values: list[str]
) -> None:
    assert [given[slot] for _, given in calls(narrator, prompt)] == values
