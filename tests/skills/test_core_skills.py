"""The skills that come with Narratoria, as real processes, and the example story that uses every one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from narratoria import Session, ToolRegistry, ToolResult
from narratoria.events import CallEmitted, UiEvent
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.session import Record
from narratoria.skills.skill_library import CORE, SkillLibrary, found_places

STORY = Path(__file__).parents[2] / "examples" / "stories" / "toll-bridge"


class World:
    def __init__(self, **state: Any) -> None:
        self.session = Session(state=state)
        library = SkillLibrary(found_places([path.name for path in CORE.iterdir()]))
        assert not library.problems and not library.notes
        self.registry = ToolRegistry(library)

    async def __call__(self, name: str, /, **arguments: Any) -> ToolResult[Any]:
        return await self.registry.execute(name, arguments, session=self.session)


def test_every_skill_has_the_same_copy_of_the_helper() -> None:
    copies = {path.read_bytes() for path in CORE.glob("*/scripts/_tell.py")}
    assert len(copies) == 1


async def test_dice_are_rolled_repeated_by_their_seed_and_judged() -> None:
    world = World()
    first = await world("dice.roll", dice="2d6+1", against=8, seed=7)
    again = await world("dice.roll", dice="2d6+1", against=8, seed=7)
    last = world.session.state["dice"]["last"]
    assert first.message == again.message
    assert last["total"] == sum(last["rolls"]) + 1
    assert len(last["rolls"]) == 2 and all(1 <= one <= 6 for one in last["rolls"])
    bands = set()
    for seed in range(60):
        await world("dice.roll", dice="d20", against=10, seed=seed)
        last = world.session.state["dice"]["last"]
        margin = last["total"] - 10
        expected = (
            "triumph"
            if margin >= 5
            else "success"
            if margin >= 1
            else "success at a cost"
            if margin == 0
            else "failure"
            if margin >= -4
            else "disaster"
        )
        assert last["band"] == expected
        bands.add(expected)
    assert len(bands) >= 4


async def test_fate_dice_have_the_words_of_the_ladder() -> None:
    world = World()
    await world("dice.roll", dice="4dF+2", seed=1)
    last = world.session.state["dice"]["last"]
    assert all(one in (-1, 0, 1) for one in last["rolls"]) and len(last["rolls"]) == 4
    ladder = ["terrible", "poor", "mediocre", "average", "fair", "good", "great", "superb", "fantastic"]
    assert last["adjective"] == ladder[last["total"] + 2]


@pytest.mark.parametrize("dice", ["2d", "d0", "0d6", "101d6", "2d6+", "six", "1d6; rm"])
async def test_what_is_no_dice_is_refused(dice: str) -> None:
    result = await World()("dice.roll", dice=dice)
    assert result.error is not None and result.error.code == "INVALID_INPUT"


async def test_facts_are_recalled_by_meaning() -> None:
    world = World()
    for text, about in (
        ("Marit promised the toll keeper a smoked ham.", ["Marit"]),
        ("The lamp on the tower has been dark since Tuesday.", ["tower"]),
        ("Olav is afraid of dogs.", ["Olav"]),
    ):
        assert (await world("memory.store", text=text, about=about)).success
    await world("memory.store", text="Olav is afraid  of dogs.")
    assert len(world.session.state["memory"]["facts"]) == 3, "the same fact twice is one"
    found = await world("memory.recall", query="What promise was made to the keeper of the bridge?", count=1)
    assert found.message == "Marit promised the toll keeper a smoked ham."
    recalled = world.session.state["memory"]["recalled"]
    assert recalled["by"] == "meaning", "the tests have the embedding model"
    meant = await world("memory.recall", query="Which animals frighten somebody?", count=1)
    assert meant.message == "Olav is afraid of dogs."
    narrowed = await world("memory.recall", query="dogs", about="Marit")
    assert "dogs" not in narrowed.message
    nothing = await World()("memory.recall", query="anything")
    assert nothing.message == "Nothing comes to mind."


async def test_without_the_model_facts_are_recalled_by_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    await world("memory.store", text="Marit promised the toll keeper a ham.")
    await world("memory.store", text="The lamp is dark.")
    script = CORE / "memory" / "scripts" / "recall"
    source = script.read_text().replace("from narratoria.narrator", "from narratoria_is_not_here")
    names: dict[str, Any] = {"__file__": str(script)}
    monkeypatch.syspath_prepend(str(script.parent))
    exec(compile(source.replace("serve(recall)", ""), str(script), "exec"), names)  # noqa: S102 - our own script
    likes, by, _ = names["likeness"](
        "the promise of Marit", ["Marit promised the keeper a ham.", "The lamp is dark."]
    )
    assert by == "words" and likes[0] > likes[1]


async def test_a_deed_moves_a_faction_its_friends_and_foes_and_fades() -> None:
    world = World(reputation={"relations": {"guild": {"smugglers": -0.5, "bakers": 0.2}}})
    result = await world("reputation.change", faction="guild", by=40, name="The guild")
    assert result.message == "The guild: neutral, now friendly."
    standing = world.session.state["reputation"]["standing"]
    assert {name: one["score"] for name, one in standing.items()} == {
        "guild": 40,
        "smugglers": -20,
        "bakers": 8,
    }
    assert standing["smugglers"]["band"] == "wary"
    for _ in range(3):
        await world("reputation.change", faction="guild", by=90)
    assert world.session.state["reputation"]["standing"]["guild"] == {"score": 100, "band": "honoured"}
    await world("reputation.fade", days=7)
    assert world.session.state["reputation"]["standing"]["guild"] == {"score": 50, "band": "honoured"}
    await world("reputation.fade", days=700)
    assert world.session.state["reputation"]["standing"]["guild"] == {"score": 0, "band": "neutral"}


async def test_each_character_notices_by_their_own_senses() -> None:
    world = World(
        hidden={
            "boat": {"at": "bridge", "sense": "sight", "difficulty": 15, "text": "A boat."},
            "song": {"at": "bridge", "sense": "hearing", "difficulty": 15, "text": "A song."},
            "far": {"at": "hill", "sense": "sight", "difficulty": 1, "text": "A hill."},
        },
        characters={
            "eye": {"at": "bridge", "senses": {"sight": 40, "hearing": -40}},
            "ear": {"at": "bridge", "senses": {"hearing": 40, "sight": -40}},
        },
    )
    assert (await world("perception.notice", who="eye")).message == "A boat."
    assert (await world("perception.notice", who="ear")).message == "A song."
    assert world.session.state["known"] == {"eye": {"boat": True}, "ear": {"song": True}}
    assert (await world("perception.notice", who="eye")).message == "", "it is known already"


async def test_choices_fit_the_state() -> None:
    world = World(inventory={"coin": True}, gate={"open": False})
    heard: list[Any] = []

    class Ear:
        full = False

        def push(self, record: Record) -> None:
            if isinstance(record.event, CallEmitted) and isinstance(record.event.event, UiEvent):
                heard.append(record.event.event.payload)

    world.session.attach(Ear())
    result = await world(
        "choices.offer",
        choices=[
            {"text": "Pay", "needs": {"inventory.coin": True}},
            {"text": "Swim", "needs": {"inventory.coin": None}},
            {"text": "Walk through", "unless": {"gate.open": False}},
            "Wait",
            "Wait",
        ],
    )
    assert result.success
    assert heard == [{"choices": ["Pay", "Wait"]}]


# --- the example story ---------------------------------------------------------------------------------------


async def test_the_example_story_uses_every_skill() -> None:
    game = Game.new(Story.load(STORY))
    game.begin()
    assert not game.skills.problems
    assert {skill.name for skill in game.skills.skills} == {path.name for path in CORE.iterdir()}
    looked = await game.prompt("look around carefully")
    assert "There is a boat in the reeds" in looked.narrative
    assert looked.choices == ["Take the boat", "Promise to pay later", "Jump the gate"]
    assert (
        "whistle" in game.session.state["known"]["ragna"]
        and "whistle" not in game.session.state["known"]["player"]
    )
    promised = await game.prompt("promise to pay later")
    assert "The guild: neutral, now friendly." in promised.narrative
    assert promised.choices == ["Take the boat", "Remember what was promised", "Jump the gate"]
    remembered = await game.prompt("remember what was promised")
    assert "promised Ragna, the toll keeper, two coins" in remembered.narrative
    await game.prompt("wait for days")
    assert game.session.state["reputation"]["standing"]["guild"]["score"] == 10, "its half-life is three days"
    jumped = await game.prompt("jump the gate")  # last: with good dice it is the end of the bridge
    assert game.session.state["dice"]["last"]["band"]
    assert "2d6" not in jumped.narrative, "the story sets the dice to be silent"
