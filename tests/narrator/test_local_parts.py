"""The local narrator loses no part of what is said: words to be written, amounts of change, "them", further lines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest, PastTurn, Refusal, ToolCard


def tool(name: str, description: str, **slots: Any) -> ToolCard:
    required = [slot for slot, schema in slots.items() if not schema.pop("optional", False)]
    return ToolCard(
        name,
        description,
        {"type": "object", "properties": slots, "required": required, "additionalProperties": False},
    )


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def number(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": 400, "description": description, **more}


KENNEL = (
    tool(
        "feed_dog",
        "Give a dog its food.",
        dog=text("which dog to feed"),
        food=text("what it gets", enum=["tripe", "rice", "biscuits"], optional=True),
    ),
    tool("move_dog", "Bring a dog to another pen.", dog=text("which dog"), pen=text("where it goes")),
    tool("lock_pen", "Lock the gate of a pen.", pen=text("the pen to lock")),
    tool(
        "set_heating",
        "Set the heating of a pen.",
        pen=text("the pen"),
        degrees=number("degrees Celsius", maximum=35),
    ),
    tool(
        "pour_water",
        "Pour water into the trough of a pen.",
        pen=text("the pen"),
        litres=number("how many litres"),
    ),
    tool(
        "turn_dish", "Turn the satellite dish on the roof.", degrees=number("by how many degrees to turn it")
    ),
    tool("write_diary", "Write an entry into the kennel's diary.", text=text("the entry")),
    tool("page_keeper", "Send a message to a keeper.", to=text("who gets it"), message=text("what it says")),
)
STATE = {
    "pens": {"north_pen": {"degrees": 14}, "south_pen": {"degrees": 18}, "puppy_room": {}},
    "dogs": {"bruno": {"kind": "boxer"}, "fips": {"kind": "terrier"}, "huskies": {}},
    "people": {"nora": {}, "major_quill": {}},
}


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def calls(narrator: LocalNarrator, prompt: str, *before: str) -> list[tuple[str, dict[str, Any]]]:
    history = [PastTurn(one, "Done.") for one in before]
    request = NarratorRequest(prompt=prompt, tools=KENNEL, state=STATE, history=history)
    return [(call.tool_path, dict(call.input)) for call in asyncio.run(narrator.plan(request)).tools]


def refusal(narrator: LocalNarrator, prompt: str) -> str:
    with pytest.raises(Refusal) as caught:
        calls(narrator, prompt)
    return caught.value.narrative


# --- words to be written or told -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "entry"),
    [
        ("write in the diary that Bruno ate well", "Bruno ate well"),
        ("Note that the north pen pump is broken", "the north pen pump is broken"),
        ("note down that Fips escaped again", "Fips escaped again"),
        ("make a note that Bruno bit the postman", "Bruno bit the postman"),
        ("log that Bruno did not eat", "Bruno did not eat"),
        ("record that Fips must not be moved", "Fips must not be moved"),
        ("log that it was 25 degrees in the north pen", "it was 25 degrees in the north pen"),
    ],
)
def test_what_is_to_be_written_is_not_cut_down_to_the_thing_it_names(
    narrator: LocalNarrator, prompt: str, entry: str
) -> None:
    assert calls(narrator, prompt) == [("write_diary", {"text": entry})]


@pytest.mark.parametrize(
    ("prompt", "to", "message"),
    [
        ("message the major that the north pen is on fire", "major_quill", "the north pen is on fire"),
        ("tell Nora the north pen is flooded", "nora", "the north pen is flooded"),
        ("let Nora know Bruno is asleep", "nora", "Bruno is asleep"),
        ("inform Nora that Fips needs a bath", "nora", "Fips needs a bath"),
        ("send Nora a message saying the puppies are hungry", "nora", "the puppies are hungry"),
        ("tell Nora not to feed Bruno", "nora", "not to feed Bruno"),
    ],
)
def test_what_is_to_be_told_is_told_whole(
    narrator: LocalNarrator, prompt: str, to: str, message: str
) -> None:
    assert calls(narrator, prompt) == [("page_keeper", {"to": to, "message": message})]


def test_a_deed_behind_what_is_told_is_done_to_what_it_spoke_of(narrator: LocalNarrator) -> None:
    assert calls(narrator, "tell Nora the south pen is empty and lock it") == [
        ("page_keeper", {"to": "nora", "message": "the south pen is empty"}),
        ("lock_pen", {"pen": "south_pen"}),
    ]
    assert calls(narrator, "log that Bruno is ill and feed him rice") == [
        ("write_diary", {"text": "Bruno is ill"}),
        ("feed_dog", {"dog": "bruno", "food": "rice"}),
    ]


def test_what_is_not_to_be_written_is_not(narrator: LocalNarrator) -> None:
    assert calls(narrator, "don't log that Bruno is ill") == []


# --- how much more or less -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [],
)
def test_how_much_a_level_is_to_change_is_not_taken_for_the_level(
    narrator: LocalNarrator, prompt: str
) -> None:
    assert "how much it is to change" in refusal(narrator, prompt)


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        ("set the north pen to 16 degrees", ("set_heating", {"pen": "north_pen", "degrees": 16})),
        (
            "raise the heating of the north pen to 17 degrees",
            ("set_heating", {"pen": "north_pen", "degrees": 17}),
        ),
        (
            "turn the heating of the south pen down to 12",
            ("set_heating", {"pen": "south_pen", "degrees": 12}),
        ),
        ("pour 3 more litres into the north pen", ("pour_water", {"pen": "north_pen", "litres": 3})),
        ("turn the dish by 20 degrees", ("turn_dish", {"degrees": 20})),
    ],
)
def test_a_level_is_set_and_what_is_poured_or_turned_may_be_more(
    narrator: LocalNarrator, prompt: str, call: tuple[str, dict[str, Any]]
) -> None:
    assert calls(narrator, prompt) == [call]


# --- them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "feed Bruno and Fips, then move them to the puppy room",
        "feed Bruno and Fips and move both of them to the puppy room",
        "feed Bruno and Fips, then move both to the puppy room",
    ],
)
def test_them_is_everyone_who_was_named(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, prompt) == [
        ("feed_dog", {"dog": "bruno"}),
        ("feed_dog", {"dog": "fips"}),
        ("move_dog", {"dog": "bruno", "pen": "puppy_room"}),
        ("move_dog", {"dog": "fips", "pen": "puppy_room"}),
    ]


def test_them_is_who_was_named_in_the_turn_before(narrator: LocalNarrator) -> None:
    assert calls(narrator, "move them to the puppy room", "feed Bruno and Fips") == [
        ("move_dog", {"dog": "bruno", "pen": "puppy_room"}),
        ("move_dog", {"dog": "fips", "pen": "puppy_room"}),
    ]


def test_them_behind_one_thing_in_the_plural_is_that_thing(narrator: LocalNarrator) -> None:
    assert calls(narrator, "feed the huskies and move them to the puppy room") == [
        ("feed_dog", {"dog": "huskies"}),
        ("move_dog", {"dog": "huskies", "pen": "puppy_room"}),
    ]


def test_it_and_him_stay_one(narrator: LocalNarrator) -> None:
    assert calls(narrator, "feed Bruno and Fips, then lock the north pen and heat it to 20 degrees")[2:] == [
        ("lock_pen", {"pen": "north_pen"}),
        ("set_heating", {"pen": "north_pen", "degrees": 20}),
    ]


# --- no part without a word ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "feed Bruno\nlock the north pen",
        "1. feed Bruno\n2. lock the north pen",
        "- feed Bruno\n\n- lock the north pen",
    ],
)
def test_a_line_is_a_sentence(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, prompt) == [("feed_dog", {"dog": "bruno"}), ("lock_pen", {"pen": "north_pen"})]


@pytest.mark.parametrize("prompt", ["feed Bruno\nand Fips", "feed Bruno,\nFips"])
def test_a_line_that_plainly_goes_on_is_none(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, prompt) == [("feed_dog", {"dog": "bruno"}), ("feed_dog", {"dog": "fips"})]


@pytest.mark.parametrize("prompt", ["feed Bruno tripe twice", "feed Bruno twice", "feed Bruno three times"])
def test_how_often_is_asked_about_where_nothing_counts_it(narrator: LocalNarrator, prompt: str) -> None:
    assert "I don't know what to do with" in refusal(narrator, prompt)


@pytest.mark.parametrize(
    "prompt",
    ["feed Bruno tripe and Fips rice", "feed Bruno tripe but Fips rice", "give Bruno tripe, Fips rice"],
)
def test_each_gets_its_own(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, prompt) == [
        ("feed_dog", {"dog": "bruno", "food": "tripe"}),
        ("feed_dog", {"dog": "fips", "food": "rice"}),
    ]


def test_who_gets_it_and_what_stand_side_by_side(narrator: LocalNarrator) -> None:
    assert calls(narrator, "feed the huskies rice") == [("feed_dog", {"dog": "huskies", "food": "rice"})]
    assert calls(narrator, "feed Bruno and Fips rice") == [
        ("feed_dog", {"dog": "bruno", "food": "rice"}),
        ("feed_dog", {"dog": "fips", "food": "rice"}),
    ]
    assert refusal(narrator, "feed the cat rice").startswith("I know of no cat")


# --- more than is read -----------------------------------------------------------------------------------


def narrative(narrator: LocalNarrator, prompt: str) -> tuple[int, str]:
    document = asyncio.run(narrator.plan(NarratorRequest(prompt=prompt, tools=KENNEL, state=STATE)))
    return len(document.tools), document.narrative or ""


def test_a_prompt_of_more_deeds_than_are_read_says_so(narrator: LocalNarrator) -> None:
    actions = [
        f"{action} {pen}" for action in ("lock", "pour 3 litres into") for pen in ("north pen", "south pen")
    ]
    count, told = narrative(narrator, ". ".join(actions * 8))
    assert count == 24
    assert told.endswith("what comes last is left undone.")
    assert narrative(narrator, ". ".join(actions * 2)) == (8, "")


def test_a_prompt_of_more_words_than_are_read_does_nothing_by_halves(narrator: LocalNarrator) -> None:
    long = "lock the north pen. " + "Once upon a time there was a kennel, " * 60 + "and lock the south pen"
    count, told = narrative(narrator, long)
    assert count == 1
    assert "left undone" in told
    assert "Say it in shorter requests" in refusal(
        narrator, "note that Bruno " + "is a very good dog who " * 100
    )


# --- neighbours of the above -----------------------------------------------------------------------------


def test_somebody_sent_to_a_thing_is_no_message_about_it(narrator: LocalNarrator) -> None:
    assert not any(tool == "page_keeper" for tool, _ in _tried(narrator, "send Nora to the north pen"))
    assert not any(tool == "page_keeper" for tool, _ in _tried(narrator, "page Nora and the major"))


def test_both_of_three_are_asked_about(narrator: LocalNarrator) -> None:
    refusal(narrator, "lock both pens")
    assert [given["pen"] for _, given in calls(narrator, "lock both the north pen and the south pen")] == [
        "north_pen",
        "south_pen",
    ]


def test_pairs_may_have_articles(narrator: LocalNarrator) -> None:
    assert calls(narrator, "give the boxer some tripe and the terrier some rice") == [
        ("feed_dog", {"dog": "bruno", "food": "tripe"}),
        ("feed_dog", {"dog": "fips", "food": "rice"}),
    ]


def _tried(narrator: LocalNarrator, prompt: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        return calls(narrator, prompt)
    except Refusal:
        return []
