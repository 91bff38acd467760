"""The local narrator on sentences about several things: all but one, each with its own place, one or the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard


def tool(name: str, description: str, example: str, given: dict[str, Any], **slots: Any) -> ToolCard:
    required = [slot for slot, schema in slots.items() if not schema.pop("optional", False)]
    schema = {"type": "object", "properties": slots, "required": required, "additionalProperties": False}
    return ToolCard(name, description, schema, ({"description": example, "input": given},))


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


STABLE = (
    tool(
        "feed_animal", "Feed an animal.", "feed Juno with 3 kilos of hay",
        {"animal": "juno", "food": "hay", "kilos": 3},
        animal=text("which animal"), food=text("what it gets", enum=["hay", "oats", "carrots"], optional=True),
        kilos={"type": "integer", "minimum": 1, "maximum": 20, "description": "how many kilos", "optional": True},
    ),
    tool(
        "lead_animal", "Lead an animal to a place.", "lead Juno to the meadow", {"animal": "juno", "place": "meadow"},
        animal=text("which animal"), place=text("where to", enum=["meadow", "barn", "river", "yard"]),
    ),
    tool("brush_animal", "Brush the coat of an animal.", "brush Juno", {"animal": "juno"}, animal=text("which animal")),
    tool("sweep_yard", "Sweep the yard.", "sweep the yard", {}),
    tool("inspect_hooves", "Tell what state the hooves of an animal are in.", "how are the hooves of Juno?",
         {"animal": "juno"}, animal=text("which animal")),
    tool(
        "print_label", "Print a label for a bucket in a given size.", "print a label in 2k", {"size": "2k"},
        size=text("how fine", enum=["2k", "4k"]),
    ),
    tool("keep_log", "Write an entry about an animal into the stable's log.", 'log for Juno: "lost a shoe"',
         {"animal": "juno", "entry": "lost a shoe"}, animal=text("which animal"), entry=text("the words of the entry")),
)  # fmt: skip
ANIMALS = {"animals": {"juno": {}, "rex": {}, "clover": {}, "old_tom": {}}}


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def calls(narrator: LocalNarrator, prompt: str) -> list[tuple[str, dict[str, Any]]]:
    document = asyncio.run(narrator.plan(NarratorRequest(prompt=prompt, tools=STABLE, state=ANIMALS)))
    return [(call.tool_path, dict(call.input)) for call in document.tools]


def refusal(narrator: LocalNarrator, prompt: str) -> Refusal:
    with pytest.raises(Refusal) as refused:
        calls(narrator, prompt)
    return refused.value


# --- all but one ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "brush every animal except Rex",
        "brush all the animals apart from Rex",
        "brush all animals but Rex",
        "brush every animal, but not Rex",
        "brush all the animals, just not Rex",
        "brush everything but Rex",
        "except for Rex, brush every animal",
        "brush Juno, Clover, Rex and Old Tom except Rex",
    ],
)
def test_what_is_excepted_is_left_out_and_the_rest_is_done(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, prompt) == [
        ("brush_animal", {"animal": name}) for name in ("juno", "clover", "old_tom")
    ]


def test_an_exception_holds_for_its_own_deed_only(narrator: LocalNarrator) -> None:
    got = calls(narrator, "brush every animal but Rex, then lead Rex to the barn")
    assert ("brush_animal", {"animal": "rex"}) not in got
    assert got[-1] == ("lead_animal", {"animal": "rex", "place": "barn"})


def test_where_the_exception_is_not_known_nothing_is_done(narrator: LocalNarrator) -> None:
    refusal(narrator, "brush every animal except the grumpy one")


# --- each with its own place ---------------------------------------------------------------------------


def test_each_pair_of_a_list_is_a_call_with_its_own_slots(narrator: LocalNarrator) -> None:
    assert calls(narrator, "lead Juno to the meadow, Rex to the barn and Clover to the river") == [
        ("lead_animal", {"animal": "juno", "place": "meadow"}),
        ("lead_animal", {"animal": "rex", "place": "barn"}),
        ("lead_animal", {"animal": "clover", "place": "river"}),
    ]


def test_pairs_of_a_thing_and_a_number_are_kept_together(narrator: LocalNarrator) -> None:
    assert calls(narrator, "feed Juno with 3 kilos of hay and Old Tom with 5 kilos of oats") == [
        ("feed_animal", {"animal": "juno", "kilos": 3, "food": "hay"}),
        ("feed_animal", {"animal": "old_tom", "kilos": 5, "food": "oats"}),
    ]


def test_a_list_within_a_pair_shares_the_place_of_its_pair(narrator: LocalNarrator) -> None:
    assert calls(narrator, "lead Juno and Rex to the meadow and Clover to the barn") == [
        ("lead_animal", {"animal": "juno", "place": "meadow"}),
        ("lead_animal", {"animal": "rex", "place": "meadow"}),
        ("lead_animal", {"animal": "clover", "place": "barn"}),
    ]


def test_a_plain_list_still_shares_what_follows_it(narrator: LocalNarrator) -> None:
    assert calls(narrator, "feed Juno and Rex with 4 kilos of hay") == [
        ("feed_animal", {"animal": "juno", "kilos": 4, "food": "hay"}),
        ("feed_animal", {"animal": "rex", "kilos": 4, "food": "hay"}),
    ]


# --- what is left as it is, and what has been done -----------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    ["leave Rex as he is", "do nothing to Rex", "leave the yard untouched", "the yard stays as it is"],
)
def test_what_is_to_stay_as_it_is_is_left_so(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, prompt) == []


def test_leaving_one_thing_as_it_is_keeps_the_other_deed(narrator: LocalNarrator) -> None:
    assert calls(narrator, "sweep the yard but leave Rex as he is") == [("sweep_yard", {})]


@pytest.mark.parametrize(
    "prompt",
    [
        "I already brushed Rex",
        "we brushed Rex this morning",
        "Clover fed Rex yesterday",
        "somebody brushed Rex",
        "Rex was brushed yesterday",
        "I have already swept the yard",
    ],
)
def test_a_report_of_what_was_done_is_no_order(narrator: LocalNarrator, prompt: str) -> None:
    refusal(narrator, prompt)


# --- one or the other, and what waits for what was not understood ---------------------------------------


@pytest.mark.parametrize("prompt", ["brush Rex or Juno", "lead Rex or Juno to the barn"])
def test_of_two_things_offered_neither_is_taken_unasked(narrator: LocalNarrator, prompt: str) -> None:
    assert refusal(narrator, prompt).narrative.startswith("Which of them do you mean")


def test_of_two_deeds_offered_neither_is_done_unasked(narrator: LocalNarrator) -> None:
    assert refusal(narrator, "sweep the yard or brush Rex").narrative == "Which of the two do you mean?"


def test_a_question_with_or_is_answered_for_both(narrator: LocalNarrator) -> None:
    got = calls(narrator, "how are the hooves of Rex or Juno?")
    assert got == [("inspect_hooves", {"animal": name}) for name in ("rex", "juno")]


@pytest.mark.parametrize(
    "prompt", ["after translating the poem, brush Rex", "bake a pizza, then sweep the yard and brush Rex"]
)
def test_what_waits_for_a_deed_nobody_knows_is_not_done(narrator: LocalNarrator, prompt: str) -> None:
    assert "So nothing is done." in refusal(narrator, prompt).narrative


def test_what_does_not_wait_for_the_unknown_deed_is_done_and_the_rest_is_told(
    narrator: LocalNarrator,
) -> None:
    request = NarratorRequest(prompt="sweep the yard, then bake my pizza", tools=STABLE, state=ANIMALS)
    document = asyncio.run(narrator.plan(request))
    assert [call.tool_path for call in document.tools] == ["sweep_yard"]
    assert document.narrative == "I don't know how to bake your pizza here."


def test_a_choice_spelled_like_a_number_is_a_choice(narrator: LocalNarrator) -> None:
    assert calls(narrator, "print a label in 4k") == [("print_label", {"size": "4k"})]


# --- another action than the tool's -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "poison Rex",
        "drown Rex in the river",
        "wreck the yard",
        "burn the yard",
        "vaccinate Rex",
    ],
)
def test_another_deed_is_not_forced_onto_the_nearest_tool(narrator: LocalNarrator, prompt: str) -> None:
    refusal(narrator, prompt)


@pytest.mark.parametrize("prompt", ["groom Rex", "escort Rex to the barn"])
def test_another_word_for_the_deed_is_still_the_deed(narrator: LocalNarrator, prompt: str) -> None:
    assert [values["animal"] for _, values in calls(narrator, prompt)] == ["rex"]


# --- free text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt", ["log for Rex: brush the mane tomorrow", "write a log entry about Rex: feed Juno"]
)
def test_what_follows_a_colon_is_the_text_to_be_written(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, prompt) == [("keep_log", {"animal": "rex", "entry": prompt.partition(": ")[2]})]


def test_a_colon_before_an_order_is_only_a_colon(narrator: LocalNarrator) -> None:
    assert calls(narrator, "one more thing: brush Rex") == [("brush_animal", {"animal": "rex"})]


# --- what is offered instead ----------------------------------------------------------------------------


def test_an_offer_is_worded_like_the_example_and_about_what_was_spoken_of(narrator: LocalNarrator) -> None:
    water = tool(
        "water_bed", "Water a garden bed.", "water the rose bed", {"bed": "rose_bed"},
        bed=text("which bed"),
    )  # fmt: skip
    state = {"beds": {"rose_bed": {}, "herb_bed": {}}}
    with pytest.raises(Refusal) as refused:
        asyncio.run(narrator.plan(NarratorRequest(prompt="poison the herb bed", tools=(water,), state=state)))
    assert refused.value.choices[0] == "water the herb bed"


def test_a_tool_of_two_things_is_offered_when_its_example_speaks_of_what_is_here(
    narrator: LocalNarrator,
) -> None:
    lend = tool(
        "lend_saddle", "Lend a saddle to a rider.", "lend the red saddle to Ada",
        {"saddle": "red_saddle", "rider": "ada"}, saddle=text("which saddle"), rider=text("who takes it"),
    )  # fmt: skip
    state = {"saddles": {"red_saddle": {}}, "people": {"ada": {}}}
    with pytest.raises(Refusal) as refused:
        asyncio.run(narrator.plan(NarratorRequest(prompt="burn the red saddle", tools=(lend,), state=state)))
    assert "lend the red saddle to Ada" in refused.value.choices


def test_to_check_how_something_is_is_to_ask_how_it_is(narrator: LocalNarrator) -> None:
    request = NarratorRequest(
        prompt="brush Rex once you've checked how the hooves of Rex are", tools=STABLE, state=ANIMALS
    )
    plan = {call.tool_path: call for call in asyncio.run(narrator.plan(request)).tools}
    assert plan["inspect_hooves"].input == {"animal": "rex"}
    assert plan["brush_animal"].dependencies == [plan["inspect_hooves"].tool_id]


def test_what_waits_for_a_question_nobody_can_answer_is_not_done(narrator: LocalNarrator) -> None:
    refusal(narrator, "sweep the yard once you've checked how the stock market is doing")


def test_a_thing_known_by_a_code_can_be_excepted(narrator: LocalNarrator) -> None:
    wash = tool("wash_cart", "Wash a cart.", "wash cart C-2", {"cart": "C-2"}, cart=text("which cart"))
    state = {"carts": {"C-2": {}, "C-7": {}, "C-14": {}}}
    request = NarratorRequest(prompt="wash all the carts except C-7", tools=(wash,), state=state)
    assert [call.input["cart"] for call in asyncio.run(narrator.plan(request)).tools] == ["C-2", "C-14"]


def test_what_is_to_go_elsewhere_is_not_done_something_else_to(narrator: LocalNarrator) -> None:
    refusal(narrator, "post Rex to the museum")
