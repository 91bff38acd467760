"""Rules in front of other narrators hand on what they understand in part, and leave nothing undone in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

from narratoria.errors import NarratorUnavailable, StoryInvalid
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import NarratorRequest, NoMatch, ToolCard, card
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.narrator.shared_prompt import BehindRules
from narratoria.play.casting import make_narrator
from narratoria.play.game import story_registry
from narratoria.play.story import Story
from narratoria.run.plan import PlanDocument, PlannedCall

RULES = """
[[rule]]
id = "look"
patterns = ["look around"]
narrative = "Stone, and a gate."
[[rule]]
id = "hum"
patterns = ["hum"]
narrative = "You hum."
"""
OPEN = {
    "name": "open_thing",
    "description": "Open a chest or a gate.",
    "parameters": {
        "type": "object",
        "properties": {"thing": {"type": "string", "enum": ["gate", "chest"], "description": "what to open"}},
        "required": ["thing"],
        "additionalProperties": False,
    },
}


def cave(folder: Path, rules: str | None = RULES, narrators: str = '["rules", "local", "template"]') -> Story:
    (folder / "tools").mkdir(parents=True)
    (folder / "story.toml").write_text(
        f'id = "cave"\ntitle = "Cave"\npremise = "A cave."\nnarrator = {narrators}\n'
        '[opening]\nnarrative = "A cave."\n[state]\nchest = { open = false }\n'
    )
    if rules is not None:
        (folder / "narrator.toml").write_text(rules)
    tool = folder / "tools" / "open_thing"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    tool.with_name("open_thing.tool.json").write_text(json.dumps(OPEN))
    return Story.load(folder)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path / "home"))


async def said(story: Story, prompt: str, *names: str) -> tuple[ChainNarrator, PlanDocument]:
    chain = make_narrator(story, names or None, time_limit=60)
    tools = [card(tool) for tool in story_registry(story)]
    return chain, await chain.plan(NarratorRequest(prompt, state=story.state, tools=tools))


@pytest.mark.parametrize(
    "prompt",
    [
        "open the chest and look around",
        "look around, open the chest",
        "look around and then open the chest",
        "Look around. Open the chest.",
        "hum; open the chest",
    ],
)
async def test_what_the_rules_understand_in_part_goes_to_the_next_narrator(
    tmp_path: Path, prompt: str
) -> None:
    chain, plan = await said(cave(tmp_path / "cave"), prompt)
    assert [call.input for call in plan.tools] == [{"thing": "chest"}]
    assert plan.narrative in ("Stone, and a gate.", "You hum."), "and what the rules know is told too"
    assert "no rule fits the whole" in chain.passed_over["rules"]


@pytest.mark.parametrize(
    "prompt", ["look around", "Please look around.", "look around and hum", "hum, look around!"]
)
async def test_what_the_rules_understand_as_a_whole_is_theirs(tmp_path: Path, prompt: str) -> None:
    chain, plan = await said(cave(tmp_path / "cave"), prompt)
    assert chain.last_speaker == "rules"
    assert "comes of" not in (plan.narrative or "")


@pytest.mark.parametrize("names", [(), ("rules",), ("rules", "local"), ("rules", "template")])
async def test_where_nobody_knows_better_the_part_is_done_and_the_rest_is_named(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    chain, plan = await said(cave(tmp_path / "cave"), "look around and bake a cake", *names)
    assert chain.last_speaker == "rules"
    assert plan.narrative == "Stone, and a gate. Nothing comes of the rest, for now: “bake a cake”."


async def test_rules_alone_still_speak_and_say_what_they_left(tmp_path: Path) -> None:
    _, plan = await said(cave(tmp_path / "cave"), "open the chest, look around and hum", "rules")
    assert (
        plan.narrative == "Stone, and a gate. You hum. Nothing comes of the rest, for now: “open the chest”."
    )


async def test_what_was_ruled_out_is_not_called_undone(tmp_path: Path) -> None:
    _, plan = await said(cave(tmp_path / "cave"), "look around but do not open the chest", "rules")
    assert plan.tools == []
    assert "do not open" not in (plan.narrative or "")


async def test_a_story_says_it_in_its_own_words(tmp_path: Path) -> None:
    story = cave(tmp_path / "cave", 'undone = "The dark keeps {rest}."\n' + RULES)
    _, plan = await said(story, "look around and bake a cake", "rules")
    assert plan.narrative == "Stone, and a gate. The dark keeps bake a cake."


def test_an_unknown_slot_in_those_words_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoryInvalid, match=r"'undone': \{thing\}"):
        cave(tmp_path / "cave", 'undone = "{thing} is left."\n' + RULES)


async def test_a_template_in_the_middle_does_not_take_the_word_from_the_rules(tmp_path: Path) -> None:
    chain, _ = await said(
        cave(tmp_path / "cave"), "look around and bake a cake", "rules", "template", "local"
    )
    assert chain.last_speaker == "rules"


def test_rules_that_are_asked_for_and_missing_are_named(tmp_path: Path) -> None:
    bare = cave(tmp_path / "cave", None, '["local", "template"]')
    with pytest.raises(NarratorUnavailable, match="no rules"):
        make_narrator(bare, ["rules"])
    assert [one.name for one in make_narrator(bare).narrators] == ["local"]


# --- one prompt, two narrators -------------------------------------------------------------------------------

LEVER = (
    RULES
    + """
[[rule]]
id = "pull"
patterns = ["pull lever"]
narrative = "It gives."
set = { lever = "down" }
[[rule]]
id = "feel"
patterns = ["feel wall"]
[[rule.cases]]
when = { lever = "down" }
narrative = "It hums."
[[rule.cases]]
narrative = "It is cold."
"""
)


class Does:
    """A narrator that notes what it is asked and answers with a call of one tool."""

    name = "local"

    def __init__(self) -> None:
        self.asked: list[NarratorRequest] = []

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        self.asked.append(request)
        calls = [
            PlannedCall(tool_id="stage1", tool_path="open_thing", input={"thing": "chest"}),
            PlannedCall(tool_id="last", tool_path="open_thing", dependencies=["stage1"]),
        ]
        return PlanDocument(tools=calls)


async def shared(folder: Path, prompt: str) -> tuple[list[NarratorRequest], PlanDocument]:
    (folder / "narrator.toml").write_text(LEVER)
    rules, narrator = ScriptedNarrator.load(folder / "narrator.toml"), Does()
    request = NarratorRequest(prompt, state={"lever": "up"}, tools=[ToolCard("open_thing", "Open.")])
    return narrator.asked, await BehindRules(narrator, rules).plan(request)


async def test_what_the_rules_begin_is_done_before_the_rest_and_seen_by_it(tmp_path: Path) -> None:
    [asked], plan = await shared(tmp_path, "Pull the lever, then open the chest and light it.")
    assert asked.prompt == "open the chest and light it."
    assert asked.state == {"lever": "down"}
    assert asked.history[-1].prompt == "Pull the lever"
    assert plan.narrative == "It gives."
    assert [(call.tool_id, call.dependencies) for call in plan.tools] == [
        ("stage1", []),
        ("stage1-2", ["stage1"]),
        ("last", ["stage1", "stage1-2"]),
    ]
    plan.check()


async def test_what_is_told_in_any_state_may_be_told_after_a_deed(tmp_path: Path) -> None:
    [asked], plan = await shared(tmp_path, "open the chest and look around")
    assert (asked.prompt, plan.narrative) == ("open the chest", "Stone, and a gate.")
    assert [call.tool_id for call in plan.tools] == ["stage1", "last"]


@pytest.mark.parametrize(
    "prompt",
    [
        "open the chest and pull the lever",  # the lever's rule knows nothing of an open chest
        "open the chest and feel the wall",  # what is felt depends on the state
        "open the chest, look around, open the gate",
        "look around and open the chest if it is locked",
        "look around, but open the chest first",
        "look around before you go and open the chest",
        'look around, say "open the chest"',
        "look around. Should I open the chest?",
        "hum, open the chest, no",
        "bake a cake",
    ],
)
async def test_what_does_not_come_apart_cleanly_is_read_as_a_whole(tmp_path: Path, prompt: str) -> None:
    [asked], plan = await shared(tmp_path, prompt)
    assert asked.prompt == prompt
    assert not plan.narrative


@pytest.mark.parametrize("prompt", ["look around and the chest", "look around, thanks", "hum. The chest."])
async def test_what_is_left_without_an_order_is_nobodys_deed(tmp_path: Path, prompt: str) -> None:
    with pytest.raises(NoMatch, match="no order"):
        await shared(tmp_path, prompt)
