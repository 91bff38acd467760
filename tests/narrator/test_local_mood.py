"""What is told, judged, hindered or taken back is not done, and neither is the opposite or the harm of a action."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard


def tool(name: str, description: str, **slots: str) -> ToolCard:
    properties = {slot: {"type": "string", "description": told} for slot, told in slots.items()}
    return ToolCard(
        name,
        description,
        {
            "type": "object",
            "properties": properties,
            "required": list(slots)[:1],
            "additionalProperties": False,
        },
    )


HARBOUR = (
    tool("raise_bridge", "Raise a drawbridge.", bridge="which bridge"),
    tool("close_lock", "Close the gates of a canal lock.", lock="which lock"),
    tool("load_ship", "Load cargo onto a ship.", ship="the ship", cargo="what is loaded"),
    tool("pay_sailor", "Pay a sailor the wages.", sailor="who is paid"),
    tool("light_beacon", "Light a beacon.", beacon="which beacon"),
    tool("report_damage", "Record that something is broken, and send a carpenter.", thing="what is broken"),
)
STATE: dict[str, Any] = {
    "bridges": {"mill_bridge": {}, "town_bridge": {}},
    "locks": {"upper_lock": {}, "lower_lock": {}},
    "ships": {"Marigold": {}, "Heron": {}},
    "sailors": {"Ada": {}, "Bram": {}},
    "beacons": {"north_beacon": {}},
}


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def done(narrator: LocalNarrator, prompt: str) -> list[str]:
    try:
        plan = narrator.plan_now(NarratorRequest(prompt=prompt, state=STATE, tools=HARBOUR))
    except Refusal:
        return []
    return [" ".join([call.tool_path, *map(str, call.input.values())]) for call in plan.tools]


@pytest.mark.parametrize(
    "prompt",
    [
        "make sure the mill bridge isn't raised",
        "see to it that the mill bridge doesn't get raised",
        "ensure that Ada never gets paid",
        "raise the mill bridge? No way.",
        "pay Ada? Not a chance!",
        "pay Ada? Certainly not.",
        "light the north beacon? I don't think so",
        "raise the mill bridge - just kidding",
        "pay Bram. Then load the Heron. I was only joking!",
        "load the Heron. Actually, don't.",
        "load the Heron, never mind",
        "it would be foolish to raise the mill bridge",
        "there is no point in lighting the north beacon",
    ],
)
def test_what_is_ruled_out_by_whatever_words_is_not_done(narrator: LocalNarrator, prompt: str) -> None:
    assert done(narrator, prompt) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "reopen the upper lock",
        "re-open the lower lock",
        "take the salt from the Heron",
        "unload the Heron",
        "shoot Bram",
        "burn down the town bridge",
        "lower the mill bridge",
        "ram the Marigold",
    ],
)
def test_neither_the_opposite_nor_harm_is_handed_to_the_nearest_tool(
    narrator: LocalNarrator, prompt: str
) -> None:
    assert done(narrator, prompt) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "they say the Marigold will be loaded with salt",
        "the Marigold is loading",
        "the upper lock is wide open",
        "there is plenty of room on the Marigold",
        "Ada is in the lower lock",
    ],
)
def test_what_is_only_told_is_not_done(narrator: LocalNarrator, prompt: str) -> None:
    assert done(narrator, prompt) == []


@pytest.mark.parametrize(
    ("prompt", "actions"),
    [
        ("make sure the mill bridge is raised", ["raise_bridge mill_bridge"]),
        ("see to it that Ada gets paid", ["pay_sailor Ada"]),
        ("make sure the upper lock stays closed", ["close_lock upper_lock"]),
        ("the north beacon must be lit", ["light_beacon north_beacon"]),
        ("relight the north beacon", ["light_beacon north_beacon"]),
        ("pay Ada? Yes, and pay Bram", ["pay_sailor Ada", "pay_sailor Bram"]),
        ("raise the mill bridge? No way. Pay Ada.", ["pay_sailor Ada"]),
        ("load the Heron - just kidding, pay Ada", ["pay_sailor Ada"]),
        ("Never mind. Pay Bram.", ["pay_sailor Bram"]),
        ("it would be nice to pay Ada", ["pay_sailor Ada"]),
        ("it is time to raise the mill bridge", ["raise_bridge mill_bridge"]),
        ("I think we should pay Bram", ["pay_sailor Bram"]),
        ("I'd love to light the north beacon", ["light_beacon north_beacon"]),
        ("Ada needs to be paid", ["pay_sailor Ada"]),
        ("I want the mill bridge raised", ["raise_bridge mill_bridge"]),
        ("Ada is tired of waiting, pay her", ["pay_sailor Ada"]),
    ],
)
def test_a_request_stays_one_in_the_same_words(
    narrator: LocalNarrator, prompt: str, actions: list[str]
) -> None:
    assert done(narrator, prompt) == actions


def test_what_takes_reports_is_told_how_things_are(narrator: LocalNarrator) -> None:
    assert done(narrator, "the mill bridge is broken") == ["report_damage mill_bridge"]
