"""The local narrator, on catalogues it has never seen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("tokenizers")

import jsonschema_rs

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import Narrator, NarratorRequest, PastTurn, Refusal, ToolCard
from narratoria.run.plan import PlanDocument


def tool(
    name: str, description: str, example: str = "", given: Mapping[str, Any] | None = None, **slots: Any
) -> ToolCard:
    required = [slot for slot, schema in slots.items() if not schema.pop("optional", False)]
    return ToolCard(
        name,
        description,
        {"type": "object", "properties": slots, "required": required, "additionalProperties": False},
        ({"description": example, "input": dict(given or {})},) if example else (),
    )


def text(description: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


TAKE = tool(
    "take", "Pick up an object and carry it.", "Take the coin", {"item": "coin"}, item=text("what to pick up")
)
LIGHT = tool(
    "light",
    "Light a lamp, lantern or candle.",
    "Light the candle",
    {"item": "candle"},
    item=text("what to light"),
)
OPEN = tool(
    "open", "Open a door, a chest or a lid.", "Open the gate", {"target": "gate"}, target=text("what to open")
)
MOVE = tool(
    "move", "Walk to a neighbouring place.", "Go south", {"direction": "south"},
    direction={"type": "string", "enum": ["north", "south", "up", "down"]},
)  # fmt: skip
ASK = tool(
    "ask", "Talk to a person, perhaps about a topic.", "Ask the guard about the war",
    {"person": "guard", "topic": "war"}, person=text("whom to ask"), topic=text("what about", optional=True),
)  # fmt: skip
CAVE = (TAKE, LIGHT, OPEN, MOVE, ASK)
STATE = {
    "inventory": {"lantern": {"lit": False}},
    "here": {"oak_door": {"locked": True}, "chest": {"open": False}, "silver_cup": {"value": 3}},
    "people": {"miller": {"mood": "sour"}},
    "exits": {"up": "old_mill"},
}


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def plan(
    narrator: LocalNarrator, prompt: str, tools: Any = CAVE, state: Any = None, **more: Any
) -> PlanDocument:
    request = NarratorRequest(prompt=prompt, tools=tools, state=STATE if state is None else state, **more)
    return asyncio.run(narrator.plan(request))


def calls(document: PlanDocument) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool_path, call.input) for call in document.tools]


def test_it_is_a_narrator(narrator: LocalNarrator) -> None:
    assert isinstance(narrator, Narrator)


def test_three_clauses_become_three_calls_in_order_with_the_pronoun_resolved(narrator: LocalNarrator) -> None:
    document = plan(narrator, "take the lantern and light it, then go up")
    assert calls(document) == [
        ("take", {"item": "lantern"}),
        ("light", {"item": "lantern"}),
        ("move", {"direction": "up"}),
    ]
    take, light, move = document.tools
    assert light.dependencies == [take.tool_id]
    assert set(move.dependencies) == {take.tool_id, light.tool_id}
    document.check()


def test_before_and_after_turn_the_order_of_words_into_the_order_of_deeds(narrator: LocalNarrator) -> None:
    ask, door = sorted(
        plan(narrator, "before opening the oak door, ask the miller").tools, key=lambda c: c.tool_path
    )
    assert door.dependencies == [ask.tool_id] and ask.dependencies == []
    up, chest = sorted(plan(narrator, "go up after opening the chest").tools, key=lambda c: c.tool_path)
    assert up.dependencies == [chest.tool_id] and chest.dependencies == []


def test_clauses_joined_by_and_do_not_wait_for_each_other(narrator: LocalNarrator) -> None:
    assert [call.dependencies for call in plan(narrator, "open the chest and go north").tools] == [[], []]


def test_what_is_ruled_out_is_not_done(narrator: LocalNarrator) -> None:
    assert calls(plan(narrator, "I do not open the chest")) == []
    assert calls(plan(narrator, "go up but don't touch the silver cup")) == [("move", {"direction": "up"})]
    assert calls(plan(narrator, "instead of opening the chest, go north")) == [
        ("move", {"direction": "north"})
    ]


def test_a_list_becomes_one_call_each(narrator: LocalNarrator) -> None:
    assert calls(plan(narrator, "take the silver cup and the lantern")) == [
        ("take", {"item": "silver_cup"}),
        ("take", {"item": "lantern"}),
    ]


def test_two_verbs_may_share_one_object(narrator: LocalNarrator) -> None:
    assert calls(plan(narrator, "pick up and light the lantern")) == [
        ("take", {"item": "lantern"}),
        ("light", {"item": "lantern"}),
    ]


def test_the_name_of_a_place_behind_an_exit_means_its_direction(narrator: LocalNarrator) -> None:
    assert calls(plan(narrator, "walk to the old mill")) == [("move", {"direction": "up"})]


def test_an_optional_slot_is_filled_only_when_it_is_mentioned(narrator: LocalNarrator) -> None:
    assert calls(plan(narrator, "talk to the miller")) == [("ask", {"person": "miller"})]
    assert calls(plan(narrator, "ask the miller about the flood")) == [
        ("ask", {"person": "miller", "topic": "flood"})
    ]


def test_typos_are_mended_against_the_words_of_the_story(narrator: LocalNarrator) -> None:
    assert calls(plan(narrator, "tkae the slvier cup")) == [("take", {"item": "silver_cup"})]


def test_a_pronoun_may_point_to_the_turn_before(narrator: LocalNarrator) -> None:
    history = [PastTurn("look at the oak door", "It is shut.")]
    assert calls(plan(narrator, "open it", history=history)) == [("open", {"target": "oak_door"})]


def test_what_nothing_can_serve_is_refused_with_things_that_can_be_done(narrator: LocalNarrator) -> None:
    with pytest.raises(Refusal, match="don't know how") as caught:
        plan(narrator, "translate this letter into Portuguese")
    assert 2 <= len(caught.value.choices) <= 3
    for choice in caught.value.choices:
        assert plan(narrator, choice).tools, f"the choice {choice!r} cannot be played"


def test_choices_are_about_things_that_are_there_and_lead_to_what_they_say(narrator: LocalNarrator) -> None:
    peel = tool("peel", "Peel a fruit.", "Peel a pear", {"fruit": "pear"}, fruit=text("what to peel"))
    hail = tool("hail", "Call a ship by radio.", "Call the ferry", {"ship": "ferry"}, ship=text("which ship"))
    ring = tool("ring_bell", "Ring the bell.", "Ring the bell")
    with pytest.raises(Refusal) as caught:
        plan(narrator, "file my taxes", [peel, hail, ring], {"bowl": {"apple": {"ripe": True}, "orange": {}}})
    assert caught.value.choices
    for choice in caught.value.choices:
        assert choice in ("Peel the apple", "Peel the orange", "Ring the bell")
        assert plan(
            narrator, choice, [peel, hail, ring], {"bowl": {"apple": {"ripe": True}, "orange": {}}}
        ).tools


def test_a_request_that_lacks_a_thing_asks_for_it(narrator: LocalNarrator) -> None:
    with pytest.raises(Refusal, match="what to open") as caught:
        plan(narrator, "open")
    assert caught.value.choices[0] in ("Open the oak door", "Open the chest")


def test_the_right_verb_with_a_thing_the_tool_is_not_for_is_refused(narrator: LocalNarrator) -> None:
    door = tool("examine_door", "Examines the door.", "Examine the door", {"target": "oak_door"},
                target={"type": "string", "enum": ["oak_door"]})  # fmt: skip
    assert calls(plan(narrator, "examine the door", [door])) == [("examine_door", {"target": "oak_door"})]
    with pytest.raises(Refusal):
        plan(narrator, "examine the ceiling", [door])


def test_the_opposite_of_what_a_tool_does_is_refused(narrator: LocalNarrator) -> None:
    for prompt in ("extinguish the lantern", "close the chest"):
        with pytest.raises(Refusal):
            plan(narrator, prompt)


def test_one_clause_that_cannot_be_served_is_said_and_the_others_are_done(narrator: LocalNarrator) -> None:
    document = plan(narrator, "open the chest and phone my dentist about the invoice")
    assert calls(document) == [("open", {"target": "chest"})]
    assert document.narrative is not None and "phone your dentist" in document.narrative


TRANSFER = tool(
    "transfer", "Move money to another account.", "Put 500 into the reserve", {"amount": 500, "to": "reserve"},
    amount={"type": "number", "description": "how much, in euros", "exclusiveMinimum": 0, "maximum": 90_000},
    to=text("which account", enum=["reserve", "wages"]),
)  # fmt: skip
SETTLE = tool(
    "settle", "Pay a bill.", "Settle bill X-9", {"bill": "X-9"}, bill=text("number of the bill"),
    by=text("who pays it", optional=True),
)  # fmt: skip
BANK = (TRANSFER, SETTLE)
BOOKS = {
    "bills": {"B-31": {"due": 3}, "B-77": {"due": 9}},
    "people": {"Ines": {}},
    "shops": {"Rossi Paper": {}},
}


@pytest.mark.parametrize(
    "prompt",
    [
        "should I open the chest?",
        "did we open the chest already?",
        "is the chest open?",
        "what happens if I light the lantern?",
        "why did I take the silver cup?",
        "have I lit the lantern?",
        "how do I open the oak door?",
    ],
)
def test_a_question_about_a_deed_does_not_do_it(narrator: LocalNarrator, prompt: str) -> None:
    with pytest.raises(Refusal):
        plan(narrator, prompt)


def test_a_polite_question_is_an_order(narrator: LocalNarrator) -> None:
    for prompt in ("could you open the chest?", "would you mind opening the chest?", "can I open the chest?"):
        assert calls(plan(narrator, prompt)) == [("open", {"target": "chest"})]


def test_a_tool_that_tells_answers_a_question_about_how_things_are(narrator: LocalNarrator) -> None:
    look = tool("examine", "Look at one thing and learn what it is like.", target=text("what to look at"))
    for prompt in ("what does the silver cup look like?", "I wonder what the silver cup is like"):
        assert calls(plan(narrator, prompt, [look, TAKE])) == [("examine", {"target": "silver_cup"})]


@pytest.mark.parametrize(
    "prompt",
    [
        "blow out the lantern",
        "put the lantern out",
        "sell the silver cup",
        "paint the chest",
        "smash the chest",
    ],
)
def test_another_deed_with_a_thing_that_is_known_is_refused(narrator: LocalNarrator, prompt: str) -> None:
    with pytest.raises(Refusal):
        plan(narrator, prompt)


@pytest.mark.parametrize(
    ("prompt", "amount"),
    [
        ("move 1,250 to wages", 1250),
        ("transfer €2.500,50 to the reserve", 2500.5),
        ("put 3k into the reserve", 3000),
        ("put two hundred and twenty euros into wages", 220),
        ("transfer 1 000 euros to wages", 1000),
    ],
)
def test_amounts_are_read_whole(narrator: LocalNarrator, prompt: str, amount: float) -> None:
    (call,) = plan(narrator, prompt, BANK, BOOKS).tools
    assert call.input["amount"] == amount


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("move -50 to wages", "does not fit"),
        ("move 100,000 to wages", "does not fit"),
        ("move 1.250 to wages", "not sure which number"),
        ("open the chest 40 times", "what to do with"),
    ],
)
def test_a_number_that_cannot_be_taken_is_asked_about(
    narrator: LocalNarrator, prompt: str, said: str
) -> None:
    with pytest.raises(Refusal, match=said):
        plan(narrator, prompt, (*BANK, OPEN), {**BOOKS, **STATE})


def test_lists_over_any_slot_make_a_call_each(narrator: LocalNarrator) -> None:
    both = [("settle", {"bill": "B-31"}), ("settle", {"bill": "B-77"})]
    for prompt in ("settle B-31 and B-77", "settle both bills", "pay all bills", "settle B-31; also B-77"):
        assert calls(plan(narrator, prompt, BANK, BOOKS)) == both, prompt
    assert calls(plan(narrator, "put 40 into wages and the reserve", BANK, BOOKS)) == [
        ("transfer", {"amount": 40, "to": "wages"}),
        ("transfer", {"amount": 40, "to": "reserve"}),
    ]


def test_a_thing_of_another_kind_or_an_unknown_one_fills_no_slot_with_a_kind(narrator: LocalNarrator) -> None:
    with pytest.raises(Refusal, match="know of no bill B-99"):
        plan(narrator, "settle bill B-99", BANK, BOOKS)
    with pytest.raises(Refusal):
        plan(narrator, "pay Rossi Paper", BANK, BOOKS)


def test_a_disabled_skill_is_not_chosen_and_the_replan_names_its_parent(narrator: LocalNarrator) -> None:
    first = plan(narrator, "open the chest")
    with pytest.raises(Refusal):
        plan(narrator, "open the chest", disabled_skills=frozenset({"open"}))
    second = plan(narrator, "go up", disabled_skills=frozenset({"open"}), attempt=2, parent_plan=first)
    assert second.metadata.generation_attempt == 2
    assert second.metadata.parent_plan_id == first.request_id
    assert second.disabled_skills == ["open"]


def test_numbers_find_their_slots_by_unit_and_role(narrator: LocalNarrator) -> None:
    oven = tool(
        "bake", "Heat the oven to a temperature for some minutes.",
        degrees={"type": "integer", "description": "temperature in degrees"},
        minutes={"type": "integer", "description": "time in minutes", "optional": True},
    )  # fmt: skip
    assert calls(plan(narrator, "heat the oven to 180 degrees for half an hour", [oven], {})) == [
        ("bake", {"degrees": 180, "minutes": 30})
    ]
    assert calls(plan(narrator, "for twenty five minutes heat the oven to 200 degrees", [oven], {})) == [
        ("bake", {"degrees": 200, "minutes": 25})
    ]


def test_a_quotation_is_taken_word_for_word(narrator: LocalNarrator) -> None:
    post = tool(
        "post", "Send a message to somebody.",
        'Tell the cook "soup please"', {"to": "cook", "text": "soup please"},
        to=text("who gets it"), text=text("the words"),
    )  # fmt: skip
    assert calls(plan(narrator, 'tell Ada "Meet me at 5, and bring the KEY!"', [post, MOVE], {})) == [
        ("post", {"to": "Ada", "text": "Meet me at 5, and bring the KEY!"})
    ]


def test_a_flag_is_read_from_the_words_of_its_description(narrator: LocalNarrator) -> None:
    valve = tool(
        "set_valve", "Open or shut a valve.", number={"type": "integer"},
        opened={"type": "boolean", "description": "true to open, false to shut"},
    )  # fmt: skip
    assert calls(plan(narrator, "open valve 3", [valve], {})) == [
        ("set_valve", {"number": 3, "opened": True})
    ]
    assert calls(plan(narrator, "shut valve 4", [valve], {})) == [
        ("set_valve", {"number": 4, "opened": False})
    ]


def test_a_list_slot_takes_the_whole_list(narrator: LocalNarrator) -> None:
    pack = tool(
        "pack", "Pack things into the suitcase.", things={"type": "array", "items": {"type": "string"}}
    )
    assert calls(plan(narrator, "pack the socks, a towel and my passport", [pack], {})) == [
        ("pack", {"things": ["socks", "towel", "passport"]})
    ]


def test_a_value_the_schema_forbids_is_never_planned(narrator: LocalNarrator) -> None:
    dial = tool("dial", "Dial a number on the telephone.", number=text("the number", pattern="^[0-9]{4}$"))
    with pytest.raises(Refusal):
        plan(narrator, "dial the operator on the telephone", [dial], {})


def test_a_tool_whose_schema_is_broken_or_unfillable_is_left_alone(narrator: LocalNarrator) -> None:
    broken = ToolCard("smash", "Smash the window.", {"type": "nonsense"})
    deep = tool("smash_it", "Smash the window.", how={"type": "object"})
    with pytest.raises(Refusal):
        plan(narrator, "smash the window", [broken, deep], {})


def test_without_any_tools_everything_is_refused(narrator: LocalNarrator) -> None:
    with pytest.raises(Refusal):
        plan(narrator, "open the chest", [])


def test_the_plan_names_a_tool_as_its_card_does(narrator: LocalNarrator) -> None:
    card = ToolCard("look", "Look around the room.", {}, ({"description": "Look around", "input": {}},))
    assert calls(plan(narrator, "look around", [card, MOVE])) == [("look", {})]


def test_a_higher_threshold_refuses_more(narrator: LocalNarrator, tmp_path: Path) -> None:
    strict = LocalNarrator(CachedEmbedder(MiniLM(), tmp_path), threshold=100.0)
    assert plan(narrator, "go up").tools
    with pytest.raises(Refusal):
        plan(strict, "go up")


def test_an_endless_prompt_costs_no_more_than_a_long_one(narrator: LocalNarrator) -> None:
    start = time.process_time()
    document = plan(narrator, "open the chest and go up then " * 20_000)
    assert time.process_time() - start < 5
    assert len(document.tools) <= 24


WORDS = (
    'open light take the a it and then before after not "cup" 3 half up north lantern , . ? I instead of '
    "without miller about chest there its don't"
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from(WORDS.split()),
            max_size=14,
        ).map(" ".join),
    )
)
def test_whatever_is_typed_gives_a_valid_plan_or_a_refusal(narrator: LocalNarrator, prompt: str) -> None:
    try:
        document = narrator.plan_now(NarratorRequest(prompt=prompt, tools=CAVE, state=STATE))
    except Refusal as refusal:
        assert refusal.narrative
        return
    PlanDocument.from_json(document.to_json())
    schemas = {card.name: dict(card.parameters) for card in CAVE}
    for call in document.tools:
        jsonschema_rs.validate(schemas[call.tool_path], call.input)
