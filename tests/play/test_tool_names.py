"""A tool of a story has one name inside, however a plan or a rule spells its path."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.shipped_stories import shipped_story

from narratoria.events import CallFinished
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.withheld_tools import Withheld
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.play.turn import TurnSettings, take_turn
from narratoria.run.plan import PlanDocument, PlannedCall, tool_name
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.resolve import ToolResolver

STORY = 'title = "T"\npremise = "P"\n[opening]\nnarrative = "N"\n'
TOOL = """#!/bin/sh
echo '{"version":"0","type":"state_patch","patch":{"rung":true}}'
echo '{"version":"0","type":"done","ok":true}'
"""
MANIFEST = """
{"name": "ring", "description": "Ring it.",
 "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}}}
"""


@pytest.fixture(params=["ring", "tools/ring"])
def story(request, tmp_path: Path) -> Story:
    (tmp_path / "tools").mkdir()
    for name, text in (("ring", TOOL), ("ring.tool.json", MANIFEST)):
        (tmp_path / "tools" / name).write_text(text)
    (tmp_path / "tools" / "ring").chmod(0o755)
    (tmp_path / "story.toml").write_text(STORY)
    rule = '[[rule]]\nid = "ring"\npatterns = ["ring bell"]\ncareful = true\n'
    (tmp_path / "narrator.toml").write_text(f'{rule}calls = [{{ tool = "{request.param}" }}]\n')
    return Story.load(tmp_path)


class Says:
    name = "says"

    def __init__(self, *plans: PlanDocument) -> None:
        self.plans = list(plans)
        self.requests: list[NarratorRequest] = []

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        self.requests.append(request)
        return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]


def plan(path: str, **given: object) -> PlanDocument:
    return PlanDocument(tools=[PlannedCall(tool_id="a", tool_path=path, input=given)])


@pytest.mark.parametrize(
    ("path", "name"), [("walk", "walk"), ("tools/walk", "walk"), ("a/b/", "b"), ("time.now", "time.now")]
)
def test_a_path_ends_with_the_name(path: str, name: str) -> None:
    assert tool_name(path) == name


def test_a_rule_leads_to_the_registered_tool_under_either_spelling(story: Story) -> None:
    game = Game.new(story)
    made = asyncio.run(story.scripted_narrator().plan(NarratorRequest("ring the bell")))
    resolver = ToolResolver(game.registry, [story.root])
    assert resolver.resolve(made.tools[0].tool_path) is game.registry.get("ring")
    assert resolver.name_of(made.tools[0].tool_path) == "ring"


def test_a_story_knows_the_tools_of_its_rules_by_name(story: Story) -> None:
    assert story.rules is not None
    assert story.rules.tools == story.reserved_tools == {"ring"}
    assert Withheld.by(story, beside_rules=True).tools == {"stage", "ring"}


def test_a_disabled_tool_is_not_chosen_under_either_spelling(story: Story) -> None:
    request = NarratorRequest("ring the bell", disabled_skills=frozenset({"ring"}))
    assert asyncio.run(story.scripted_narrator().plan(request)).tools == []


async def test_the_same_calls_under_another_spelling_are_the_same_calls(story: Story) -> None:
    game = Game.new(story)
    narrator = Says(plan("tools/ring", times="x"), plan("ring", times="x"), plan("ring"))
    executor = PlanExecutor(game.registry, game.session, roots=[story.root])
    result = await take_turn(
        game.session,
        "ring",
        narrator=narrator,
        registry=game.registry,
        executor=executor,
        settings=TurnSettings(generation_timeout=5),
    )
    assert "the same calls failed before in this turn" in result.problems[0]
    assert "ring" in result.narrative
    assert "tools/" not in result.narrative


async def test_a_call_that_was_not_run_is_recorded_under_the_name_of_its_manifest(tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "bell")
    (tmp_path / "bell.tool.json").write_text('{"name": "ring", "description": "Ring it."}')
    game = Game.new(shipped_story("torch"))
    heard: list[object] = []

    class Ear:
        full = False

        def push(self, record) -> None:
            heard.append(record.event)

        async def wait(self) -> None:
            return None

    game.session.attach(Ear())
    document = PlanDocument(
        disabled_skills=["ring"], tools=[PlannedCall(tool_id="a", tool_path="bell", input={})]
    )
    await PlanExecutor(game.registry, game.session, roots=[tmp_path]).execute(document)
    assert [one.tool for one in heard if isinstance(one, CallFinished)] == ["ring"]
