"""What the local narrator makes of verbs no tool is described by, of names, pronouns and ways to say a thing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard


def tool(name: str, description: str, *examples: tuple[str, dict[str, Any]], **slots: Any) -> ToolCard:
    required = [slot for slot, schema in slots.items() if not schema.pop("optional", False)]
    return ToolCard(
        name,
        description,
        {"type": "object", "properties": slots, "required": required, "additionalProperties": False},
        tuple({"description": said, "input": given} for said, given in examples),
    )


def text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


DESK = (
    tool(
        "lend",
        "Lend an item to a member of the library.",
        title=text("the title"),
        member=text("the member who takes it"),
    ),
    tool("reserve", "Put a title aside for a member.", title=text("the title"), member=text("for whom")),
    tool(
        "text_member",
        "Send a member a text message.",
        member=text("whose phone to message"),
        text=text("what the message says"),
    ),
    tool("remit_fine", "Record that a member paid money for a fine.", member=text("who paid"),
         amount={"type": "integer", "description": "pounds", "minimum": 1}),
    tool("power", "Switch the electric current of the reading lamps on or off.",
         on={"type": "boolean", "description": "true for current, false for none"}),
    tool("trim", "Set how far the blinds are drawn.", ("Draw the blinds", {"amount": "all"}),
         amount={"type": "string", "enum": ["none", "half", "all"]}),
)  # fmt: skip
STATE = {
    "titles": ["A History of Bridges", "Moonlit Harbour"],
    "members": {"Hana Okafor": {"fines": 0}, "Walter Quinn": {"fines": 4}},
}


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def calls(narrator: LocalNarrator, prompt: str) -> list[tuple[str, dict[str, Any]]]:
    document = asyncio.run(narrator.plan(NarratorRequest(prompt=prompt, tools=DESK, state=STATE)))
    return [(call.tool_path, call.input) for call in document.tools]


def test_a_name_with_small_words_in_it_is_one_name(narrator: LocalNarrator) -> None:
    assert calls(narrator, "Lend A History of Bridges to Hana") == [
        ("lend", {"title": "A History of Bridges", "member": "Hana Okafor"})
    ]


def test_him_is_somebody_and_it_is_something(narrator: LocalNarrator) -> None:
    prompt = (
        "Lend Moonlit Harbour to Walter Quinn, then reserve it for Hana and text him that it is due on Monday"
    )
    assert calls(narrator, prompt) == [
        ("lend", {"title": "Moonlit Harbour", "member": "Walter Quinn"}),
        ("reserve", {"title": "Moonlit Harbour", "member": "Hana Okafor"}),
        ("text_member", {"member": "Hana Okafor", "text": "it is due on Monday"}),
    ]


def test_what_a_prompt_takes_back_is_not_done(narrator: LocalNarrator) -> None:
    assert calls(narrator, "Reserve Moonlit Harbour for Hana, sorry, I mean for Walter") == [
        ("reserve", {"title": "Moonlit Harbour", "member": "Walter Quinn"})
    ]


@pytest.mark.parametrize(
    ("prompt", "on"),
    [
        ("switch the current off", False),
        ("switch on the current", True),
        ("kill the current", False),
        ("reading lamps off", False),
    ],
)
def test_on_and_off_are_told_apart_wherever_they_stand(
    narrator: LocalNarrator, prompt: str, on: bool
) -> None:
    assert calls(narrator, prompt) == [("power", {"on": on})]


def test_a_word_that_is_merely_unknown_is_not_mended_into_another_deed(narrator: LocalNarrator) -> None:
    with pytest.raises(Refusal):
        calls(narrator, "waive Walter Quinn's fines")


def test_leaving_something_as_it_stands_does_nothing(narrator: LocalNarrator) -> None:
    assert calls(narrator, "leave the lamps off") == []


def test_whatever_apostrophe_is_typed_a_negation_holds(narrator: LocalNarrator) -> None:
    for mark in "'’`´":
        assert calls(narrator, f"don{mark}t lend Moonlit Harbour to Hana") == []


def test_tuning_brings_a_request_near_the_tool_it_means() -> None:
    plain = MiniLM()
    tuned = plain.tuned()
    request = "put Biscuit on meloxicam"
    tools = ["prescribe: Order a medicine for a patient.", "discharge: Let a patient go home."]

    def lead(model: MiniLM) -> float:
        said, meant, other = model.embed([request, *tools])
        return float(said @ meant - said @ other)

    assert lead(tuned) > lead(plain) + 0.05


# --- what is not to be done, and what depends on something -----------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "Moonlit Harbour must not be lent to Hana",
        "The lamps are not to be switched off",
        "Lend Moonlit Harbour to Hana? No.",
        "If Hana has no fines, lend Moonlit Harbour to her",
        "Lend Moonlit Harbour to Hana unless she has fines",
    ],
)
def test_what_is_forbidden_denied_or_depends_is_not_done(narrator: LocalNarrator, prompt: str) -> None:
    try:
        assert calls(narrator, prompt) == []
    except Refusal as refusal:
        assert refusal.narrative


def test_courtesy_is_no_condition(narrator: LocalNarrator) -> None:
    assert calls(narrator, "Lend Moonlit Harbour to Hana, if you don't mind") == [
        ("lend", {"title": "Moonlit Harbour", "member": "Hana Okafor"})
    ]


KENNEL = (
    tool("weigh", "Put an animal on the scales and note its weight.", animal=text("the animal to weigh")),
    tool("x_ray", "Take an X-ray picture of an animal.", animal=text("the animal")),
    tool("give_medicine", "Give a dose of a drug to an animal.", animal=text("the animal that receives it"),
         drug={"type": "string", "enum": ["insulin", "dewormer"]}),
    tool("feed", "Give an animal its meal.", animal=text("who is fed")),
)  # fmt: skip
ANIMALS = {
    "animals": {"rex": {"species": "dog"}, "luna": {"species": "dog"}, "pickle": {"species": "iguana"}}
}


@pytest.mark.parametrize(
    ("prompt", "wanted"),
    [
        ("weigh the iguana", [("weigh", "pickle")]),
        ("weigh both dogs", [("weigh", "rex"), ("weigh", "luna")]),
        ("weigh everyone", [("weigh", "rex"), ("weigh", "luna"), ("weigh", "pickle")]),
        ("weigh everyone except Rex", [("weigh", "luna"), ("weigh", "pickle")]),
        ("weigh Rex and x-ray Luna", [("weigh", "rex"), ("x_ray", "luna")]),
    ],
)
def test_things_may_be_named_by_what_they_are(
    narrator: LocalNarrator, prompt: str, wanted: list[tuple[str, str]]
) -> None:
    document = asyncio.run(narrator.plan(NarratorRequest(prompt=prompt, tools=KENNEL, state=ANIMALS)))
    assert [(call.tool_path, call.input["animal"]) for call in document.tools] == wanted


@pytest.mark.parametrize("prompt", ["Give Rex paracetamol", "weigh the dog"])
def test_what_the_choices_do_not_have_and_which_of_two_is_asked_not_guessed(
    narrator: LocalNarrator, prompt: str
) -> None:
    with pytest.raises(Refusal):
        asyncio.run(narrator.plan(NarratorRequest(prompt=prompt, tools=KENNEL, state=ANIMALS)))
