"""A story with OpenAPI documents: their operations are tools of the story."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from narratoria.errors import StoryInvalid
from narratoria.play.game import Game
from narratoria.play.story import Story

STORY = """
title = "The shop"
premise = "A shop with pets."
narrator = ["rules"]
free_tools = ["pets.getpet"]
TOP
[opening]
narrative = "You stand in a shop."
"""
RULES = """
[[rule]]
id = "look"
patterns = ["look at pet"]
narrative = "You look at it."
calls = [{ tool = "pets.getpet", input = { petId = 7 } }]
"""


def story(folder: Path, tables: str, top: str = "") -> Story:
    (folder / "story.toml").write_text(STORY.replace("TOP", top) + tables)
    (folder / "narrator.toml").write_text(RULES)
    return Story.load(folder)


async def test_a_rule_calls_an_operation(
    tmp_path: Path, pet_shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PETS_KEY", "sesame")
    table = f'[openapi.pets]\nspec = "{pet_shop}/pets.json"\nsecrets = {{ key = "PETS_KEY" }}\n'
    game = Game.new(story(tmp_path, table))
    try:
        game.begin()
        result = await game.prompt("look at the pet")
        assert result.problems == []
        assert result.traces[0].tool_results[0].output == {"path": "/v1/pets/7", "key": "given"}
        assert game.registry.get("pets.getpet").kind.name == "openapi"
    finally:
        await game.close()


async def test_a_document_that_cannot_be_had_is_told_and_the_story_goes_on(
    tmp_path: Path, pet_shop: str
) -> None:
    game = Game.new(story(tmp_path, f'[openapi.pets]\nspec = "{pet_shop}/missing.json"\n'))
    told: list[str] = []
    try:
        await game._sources.wait(told.append)
    finally:
        await game.close()
    assert len(told) == 1
    assert "OpenAPI document pets" in told[0] and "404" in told[0]


@pytest.mark.parametrize(
    "tables, top, said",
    [
        ('[openapi.pets]\nurl = "http://x"\n', "", "openapi: pets: spec"),
        ('[openapi.pets]\nspec = "../pets.json"\n', "", "no file inside the story's folder"),
        ('[openapi.pets]\nspec = "absent.json"\n', "", "no file inside the story's folder"),
        ('[openapi.pets]\nspec = "http://x"\ntimeout = 30000\n', "", "times are in seconds"),
        ('[openapi.pets]\nspec = "http://x"\nbase_url = "y"\n', "", "base_url"),
        ("", "openapi = 3", "expected a document"),
    ],
    ids=str,
)
def test_a_table_that_is_wrong_is_named(tmp_path: Path, tables: str, top: str, said: str) -> None:
    with pytest.raises(StoryInvalid) as refused:
        story(tmp_path, tables, top)
    assert re.search(r"story\.toml(:\d+)?: key 'openapi", str(refused.value))
    assert said in str(refused.value)


def test_one_document_alone_is_named_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "pets.json").write_text("{}")
    assert story(tmp_path, "", 'openapi = "pets.json"').sources.names == {"pets"}
