"""Tools a story keeps for its rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.shipped_stories import shipped_story

from narratoria.errors import StoryInvalid
from narratoria.narrator.protocol import NarratorRequest, NoMatch, ToolCard
from narratoria.narrator.withheld_tools import Withheld, WithoutTools
from narratoria.play.casting import make_narrator
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.run.plan import PlanDocument
from narratoria.testing import Says, ScriptedModel

TORCH = Path(__file__).parents[2] / "stories" / "torch"


class Names:
    """Tells which tools it sees."""

    name = "names"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        return PlanDocument(narrative=" ".join(card.name for card in request.tools))


async def test_a_reserved_tool_is_not_seen_and_where_all_are_reserved_nobody_speaks() -> None:
    cards = [ToolCard("light", "Lights."), ToolCard("sing", "Sings.")]
    plan = await WithoutTools(Names(), {"light"}).plan(NarratorRequest("x", tools=cards))
    assert plan.narrative == "sing"
    with pytest.raises(NoMatch, match="for its rules"):
        await WithoutTools(Names(), {"light"}).plan(NarratorRequest("x", tools=cards[:1]))


def test_rules_keep_the_tools_they_call_unless_the_story_sets_them_free(tmp_path: Path) -> None:
    story = shipped_story("torch")
    assert story.reserved_tools == {"torch-lighter", "door-examiner", "stage"}
    folder = tmp_path / "free"
    folder.mkdir()
    for part in ("narrator.toml", "tools"):
        (folder / part).symlink_to(TORCH / part)
    text = (TORCH / "story.toml").read_text(encoding="utf-8")
    (folder / "story.toml").write_text('free_tools = ["torch-lighter"]\n' + text, encoding="utf-8")
    assert Story.load(folder).reserved_tools == {"door-examiner", "stage"}
    (folder / "story.toml").write_text('free_tools = ["harp"]\n' + text, encoding="utf-8")
    with pytest.raises(StoryInvalid, match="tools/harp does not exist"):
        Story.load(folder)


async def test_the_local_narrator_behind_rules_does_not_light_what_burns_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers")
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    story = shipped_story("torch")
    card = ToolCard(
        "torch-lighter",
        "Lights the torch and shows a picture of it burning.",
        {"type": "object", "properties": {"action": {"type": "string", "enum": ["light_torch"]}}},
        [{"description": "Light the torch on the wall", "input": {"action": "light_torch"}}],
    )
    asked = NarratorRequest("set the torch on the wall burning", tools=[card])
    alone = await make_narrator(story, ["local"], time_limit=60).plan(asked)
    assert [call.tool_path for call in alone.tools] == ["torch-lighter"]
    assert (await make_narrator(story, ["rules", "local"], time_limit=60).plan(asked)).tools == []


def _free_stage(tmp_path: Path) -> Path:
    folder = tmp_path / "free"
    folder.mkdir()
    for part in ("narrator.toml", "tools"):
        (folder / part).symlink_to(TORCH / part)
    text = (TORCH / "story.toml").read_text(encoding="utf-8")
    (folder / "story.toml").write_text('free_tools = ["stage"]\n' + text, encoding="utf-8")
    return folder


WON = {"patch": {"ending": {"id": "won", "title": "You Won"}}}


@pytest.mark.parametrize("free", [False, True], ids=["as shipped", "with the stage set free"])
async def test_a_model_cannot_end_a_story_through_the_stage_of_its_rules(
    free: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story.load(_free_stage(tmp_path) if free else TORCH)
    end = {"narrative": "It is over.", "calls": [{"tool": "stage", "input": WON}], "order": "together"}
    async with ScriptedModel(*[Says(json.dumps(end))] * 5) as server:
        monkeypatch.setenv("NARRATORIA_LLM_URL", server.url)
        monkeypatch.setenv("NARRATORIA_LLM_MODEL", "m")
        chain = make_narrator(story, ["llm"], time_limit=30)
        game = Game.new(story, narrator=chain, generation_timeout=30)
        await game.prompt("hum a tune")
    assert (game.ending, game.session.state.get("ending")) == (None, None)
    told = server.requests[0]["messages"][0]["content"]
    assert ("stage" in told) is free
    assert "torch-lighter" in told
    objection = "`ending` is for the story's rules" if free else "'stage' is not among the tools"
    assert objection in server.requests[1]["messages"][-1]["content"]


async def test_a_freed_stage_may_still_change_other_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NARRATORIA_LLM_MODEL", "m")
    call = {"tool": "stage", "input": {"patch": {"tune": "hummed"}}}
    answer = json.dumps({"narrative": "You hum.", "calls": [call], "order": "together"})
    async with ScriptedModel(Says(answer)) as server:
        monkeypatch.setenv("NARRATORIA_LLM_URL", server.url)
        story = Story.load(_free_stage(tmp_path))
        game = Game.new(story, narrators=["llm"], generation_timeout=30)
        await game.prompt("hum a tune")
    assert game.session.state["tune"] == "hummed"


def test_beside_rules_a_model_does_not_see_the_tools_of_deeds_that_cannot_be_taken_back() -> None:
    story = shipped_story("lighthouse")
    assert Withheld.by(story, beside_rules=True).tools == {"stage", "strike-match", "haul", "beam"}
    assert Withheld.by(story, beside_rules=False).tools == {"stage"}
