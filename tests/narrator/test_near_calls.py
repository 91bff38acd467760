"""Where the local narrator is not sure, it offers the nearest calls, filled with what the prompt named."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.english.named_things import find_entities
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.local.near_calls import NearCall, call_in_form
from narratoria.narrator.local.tool_profiles import profile
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard

STATE: dict[str, Any] = {"here": {"oil_lantern": {}, "wooden_chest": {}}, "people": {"pale_boy": {}}}


def card(name: str, description: str, *examples: tuple[str, dict[str, Any]], **slots: Any) -> ToolCard:
    parameters = {"type": "object", "properties": slots, "required": [*slots], "additionalProperties": False}
    shown = tuple({"description": text, "input": values} for text, values in examples)
    return ToolCard(name, description, parameters, shown)


TEXT = {"type": "string"}
ALARM = card(
    "set_alarm",
    "Set the alarm clock to wake everybody.",
    hour={"type": "integer", "minimum": 0, "maximum": 23},
    minute={"type": "integer", "minimum": 0, "maximum": 59},
)
LANTERN = card("set_lantern", "Light the lantern or put it out.", lit={"type": "boolean"})
TAKE = card("take", "Pick up a thing.", ("pick up the oil lantern", {"item": "oil_lantern"}), item=TEXT)
NOTE = card("leave_note", "Leave a note for somebody.", to=TEXT, text=TEXT)
TOOLS = (ALARM, LANTERN, TAKE, NOTE)


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def refusal(narrator: LocalNarrator, prompt: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        narrator.plan_now(NarratorRequest(prompt, state=STATE, tools=TOOLS))
    return caught.value


@pytest.mark.parametrize(
    ("tool", "values", "form"),
    [
        (ALARM, {"hour": 6, "minute": 45}, "Set alarm (hour: 6, minute: 45)"),
        (LANTERN, {"lit": False}, "Set lantern (lit: no)"),
        (TAKE, {"item": "wooden_chest"}, "Take (item: wooden chest)"),
        (NOTE, {"to": "pale_boy", "text": "wait, the gate (iron) is: shut"}, None),
    ],
)
def test_a_form_is_read_to_the_letter(tool: ToolCard, values: dict[str, Any], form: str | None) -> None:
    call = NearCall(profile(tool), values)
    assert form is None or call.form == form
    read = call_in_form(call.form, [profile(one) for one in TOOLS], find_entities(STATE))
    assert read is not None
    assert (read.tool.card.name, read.input) == (tool.name, values)


@pytest.mark.parametrize(
    "text",
    [
        "Set alarm (hour: 25, minute: 0)",
        "Set alarm (hour: 6)",
        "Fly (to: Rome)",
        "Set alarm (soon)",
        "set alarm",
    ],
)
def test_what_no_tool_takes_is_no_form(text: str) -> None:
    assert call_in_form(text, [profile(one) for one in TOOLS], find_entities(STATE)) is None


@pytest.mark.parametrize(
    ("prompt", "tool", "values"),
    [
        ("wake us at 6:45", "set_alarm", {"hour": 6, "minute": 45}),
        ("douse the light before they spot us", "set_lantern", {"lit": False}),
    ],
)
def test_the_call_that_was_meant_is_among_the_offers(
    narrator: LocalNarrator, prompt: str, tool: str, values: dict[str, Any]
) -> None:
    made = []
    for choice in refusal(narrator, prompt).choices:
        plan = narrator.plan_now(NarratorRequest(choice, state=STATE, tools=TOOLS))
        made += [(call.tool_path, call.input) for call in plan.tools]
    assert (tool, values) in made


def test_a_thing_that_is_not_here_is_not_taken(narrator: LocalNarrator) -> None:
    assert str(refusal(narrator, "pick up the golden crown")) == "There is no golden crown here."


def test_of_two_requests_one_is_done_and_the_other_is_asked_about(narrator: LocalNarrator) -> None:
    plan = narrator.plan_now(
        NarratorRequest("pick up the wooden chest and wake us at 6:45", state=STATE, tools=TOOLS)
    )
    assert [call.input for call in plan.tools] == [{"item": "wooden_chest"}]
    assert "Set alarm (hour: 6, minute: 45)" in narrator.declare().choices
