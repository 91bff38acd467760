"""What asks for nothing in any catalogue does nothing: answers, oaths, letters, numbers, words that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest, Refusal, ToolCard

CATALOGUES = sorted((Path(__file__).parents[2] / "evals" / "catalogues").glob("*.json"))
NOISE = (
    "help", "ok", "hm", "lol", "n", "l", "e", "xyzzy", "again", "go on", "continue", "1", "42", "two", "fuck you",
    "i see", "do it", "what", "who?", "alright", "come on", "yay", "q", "ugh", "asdf", "up to you", "damn it", "oops",
    "good", "great", "thanks", "hello", "hey there", "go ahead", "well", "oh no", "7 7 7", "...",
)  # fmt: skip
LODGE = (
    ToolCard(
        "rest", "Rest for some hours.", {"type": "object", "properties": {"hours": {"type": "integer"}}}
    ),
    ToolCard("inventory", "List what you carry.", {"type": "object", "properties": {}}),
    ToolCard(
        "go",
        "Walk in a direction.",
        {
            "type": "object",
            "properties": {"direction": {"type": "string", "enum": ["north", "south", "up", "down"]}},
            "required": ["direction"],
        },
    ),
    ToolCard(
        "attack",
        "Fight an enemy.",
        {
            "type": "object",
            "properties": {"target": {"type": "string", "description": "whom to fight"}},
            "required": ["target"],
        },
    ),
    ToolCard(
        "player",
        "Control the music.",
        {
            "type": "object",
            "properties": {"action": {"type": "string", "enum": ["next", "continue", "pause"]}},
            "required": ["action"],
        },
    ),
)
STATE = {"here": {"goblin": {}}, "inventory": {"apple": {}}}


@pytest.fixture(scope="module")
def narrator(tmp_path_factory: pytest.TempPathFactory) -> LocalNarrator:
    return LocalNarrator(CachedEmbedder(MiniLM(), tmp_path_factory.mktemp("vectors")))


def calls(narrator: LocalNarrator, request: NarratorRequest) -> list[tuple[str, dict[str, Any]]]:
    try:
        return [(call.tool_path, call.input) for call in narrator.plan_now(request).tools]
    except Refusal:
        return []


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.slow if number % 17 else ())
        for number, path in enumerate(CATALOGUES)
    ],
)
def test_noise_is_acted_on_in_no_catalogue(narrator: LocalNarrator, path: Path) -> None:
    catalogue = json.loads(path.read_text(encoding="utf-8"))
    tools = tuple(
        ToolCard(t["name"], t["description"], t.get("parameters", {}), tuple(t.get("examples", ())))
        for t in catalogue["tools"]
    )
    state = catalogue.get("state", {})
    heard = {
        noise: narrator.comprehend(NarratorRequest(prompt=noise, tools=tools, state=state)) for noise in NOISE
    }
    for one in heard.values():
        one.understand()
    assert {noise: one.steps for noise, one in heard.items() if one.steps} == {}


@pytest.mark.parametrize(
    "noise", ["help", "ok", "1", "fuck you", "screw you", "xyzzy", "foo bar", "hmm", "later"]
)
def test_noise_is_no_reason_to_rest_or_to_fight(narrator: LocalNarrator, noise: str) -> None:
    assert calls(narrator, NarratorRequest(prompt=noise, tools=LODGE, state=STATE)) == []


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("north", ("go", {"direction": "north"})),
        ("norht", ("go", {"direction": "north"})),
        ("inventory", ("inventory", {})),
        ("belongings", ("inventory", {})),
        ("what have I got?", ("inventory", {})),
        ("sleep", ("rest", {})),
        ("I need a nap", ("rest", {})),
        ("I'm exhausted, I lie down", ("rest", {})),
        ("next", ("player", {"action": "next"})),
        ("continue", ("player", {"action": "continue"})),
    ],
)
def test_what_a_tool_or_a_slot_names_or_a_sentence_means_is_done(
    narrator: LocalNarrator, prompt: str, expected: tuple[str, dict[str, Any]]
) -> None:
    assert calls(narrator, NarratorRequest(prompt=prompt, tools=LODGE, state=STATE)) == [expected]


def slots(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


HALL = (
    ToolCard("kindle", "Light the fire in the hearth.", slots()),
    ToolCard("feed", "Give an animal something to eat.", slots("animal", animal={"type": "string"})),
    ToolCard("return_book", "Take a borrowed book back in.", slots("book", book={"type": "string"})),
    ToolCard(
        "open",
        "Open a door or gate.",
        slots("target", target={"type": "string", "description": "what to open"}),
    ),
    ToolCard(
        "attack",
        "Fight an enemy.",
        slots("target", target={"type": "string", "description": "whom to fight"}),
    ),
    ToolCard(
        "set_lights",
        "Turn the lights of a room on or off.",
        slots(
            "room",
            "on",
            room={"type": "string", "enum": ["hall", "attic"]},
            on={"type": "boolean", "description": "true to turn on, false to turn off"},
        ),
    ),
    ToolCard(
        "set_pump",
        "Switch the pump.",
        slots("power", power={"type": "string", "enum": ["on", "off"]}),
    ),
)
HERE: dict[str, Any] = {
    "animals": {"cat": {}, "goat": {}},
    "books": {"dune": {}},
    "people": {"tom": {}, "guard": {}},
    "doors": {"iron_gate": {}},
}


@pytest.mark.parametrize(
    "prompt",
    [
        "Let Tom keep Dune",
        "Tom can keep Dune another week",
        "Tom may keep Dune",
        "the guard told me to light the fire, but I'm not going to",
        "I light the fire... no I don't",
        "I would feed the cat but I can't be bothered",
        "she wants me to open the gate, but I refuse",
        "I was going to feed the cat but changed my mind",
        "I wanted to feed the goat, but then I thought better of it",
        "I intended to feed the cat",
        "I open the gate, then think better of it",
        "keep Dune, don't take it back",
    ],
)
def test_neither_what_is_declined_nor_the_opposite_is_done(narrator: LocalNarrator, prompt: str) -> None:
    assert calls(narrator, NarratorRequest(prompt=prompt, tools=HALL, state=HERE)) == []


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("I'm going to feed the cat", ("feed", {"animal": "cat"})),
        ("feed the cat but not the goat", ("feed", {"animal": "cat"})),
        ("light the fire but don't feed the cat", ("kindle", {})),
        ("feed the cat. I was about to light the fire but I changed my mind.", ("feed", {"animal": "cat"})),
        ("let the cat eat", ("feed", {"animal": "cat"})),
        ("take Dune back from Tom", ("return_book", {"book": "dune"})),
        ("open the gate", ("open", {"target": "iron_gate"})),
        ("break the gate open", ("open", {"target": "iron_gate"})),
        ("light the fire and I feed no goat", ("kindle", {})),
        ("attack the guard", ("attack", {"target": "guard"})),
        ("lights on in the attic", ("set_lights", {"room": "attic", "on": True})),
    ],
)
def test_what_is_asked_beside_is_done(
    narrator: LocalNarrator, prompt: str, expected: tuple[str, dict[str, Any]]
) -> None:
    assert calls(narrator, NarratorRequest(prompt=prompt, tools=HALL, state=HERE)) == [expected]
