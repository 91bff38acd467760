"""Approvals in a turn and in a story: the narrator gets the reason of a refusal, and `story.toml` has rules."""

import asyncio
import contextlib
import json
from dataclasses import dataclass

import pytest

from narratoria import PlanDocument, PlannedCall, Session, ToolRegistry, ToolResult, take_turn, tool
from narratoria.errors import StoryInvalid
from narratoria.play.call_again import run_again
from narratoria.play.game import Game, story_registry
from narratoria.play.history import undo
from narratoria.play.story import Story
from narratoria.run.middleware import ToolCall
from narratoria.session.approvals import ApprovalAnswer
from narratoria.store.fold import Fold
from narratoria.store.recorded_call import find_call, named_call
from narratoria.store.replay import verify
from narratoria.store.sqlite import SqliteStore

STORY = 'title = "T"\npremise = "P"\n{}[opening]\nnarrative = "N"\n'
RULES = """
[[rule]]
id = "pay"
patterns = ["pay ..."]
narrative = "You count the coins."
calls = [{ tool = "pay", input = { to = "ada" } }]
"""
TOOL = """#!/bin/sh
echo '{"version":"0","type":"state_patch","patch":{"paid":true}}'
echo '{"version":"0","type":"done","ok":true}'
"""


@dataclass(frozen=True)
class Payment:
    to: str


class Says:
    name = "says"

    def __init__(self, *plans):
        self.plans, self.requests = list(plans), []

    async def plan(self, request):
        self.requests.append(request)
        return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]


def pay_plan(to="ada"):
    return PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="pay", input={"to": to})])


def registry():
    @tool(description="Pay somebody.", approval="always")
    async def pay(params: Payment, *, context) -> ToolResult[None]:
        context.patch({"paid": params.to})
        return ToolResult.ok(None)

    return ToolRegistry([pay])


def refusing(asked, reason="too dear"):
    async def ask(request):
        asked.append(request.input)
        return ApprovalAnswer.refuse(reason)

    return ask


async def test_the_narrator_gets_the_reason_of_a_refusal_and_plans_anew():
    session, asked = Session(), []
    session.approvals.approver = refusing(asked)
    narrator = Says(pay_plan(), PlanDocument(narrative="You keep your coins."))
    result = await take_turn(session, "pay", narrator=narrator, registry=registry())
    trace = narrator.requests[1].last_trace
    assert trace.result_of("a").error_code == "REFUSED" and "too dear" in trace.result_of("a").error
    assert result.outcome == "completed" and result.narrative == "You keep your coins."
    assert "pay" in [card.name for card in narrator.requests[1].tools]  # the tool works; it was only refused
    assert session.health == {}


async def test_a_narrator_that_repeats_a_refused_call_does_not_ask_the_person_again():
    session, asked = Session(), []
    session.approvals.approver = refusing(asked)
    result = await take_turn(session, "pay", narrator=Says(pay_plan()), registry=registry())
    assert len(asked) == 1 and result.outcome == "fallback"


async def test_the_next_turn_asks_again():
    session, asked = Session(), []
    session.approvals.approver = refusing(asked)
    for _ in range(2):
        narrator = Says(pay_plan(), PlanDocument(narrative="No."))
        await take_turn(session, "pay", narrator=narrator, registry=registry())
    assert len(asked) == 2


async def test_cancelling_the_turn_ends_a_waiting_question(tmp_path):
    game = Game.new(Story.load(story(tmp_path, 'approval = "always"\n')))
    folding = Folding(game.session)
    game.session.approvals.attended = True
    game.begin()
    turn = asyncio.create_task(game.prompt("pay ada"))
    async with asyncio.timeout(20):
        while not game.session.approvals.pending:
            await asyncio.sleep(0.01)
    assert folding.fold.view.turns[-1].approvals[0].decision is None
    assert game.cancel()
    assert (await turn).outcome == "cancelled"
    assert game.session.approvals.pending == []
    assert folding.fold.view.turns[-1].approvals[0].decision == "cancelled"


async def test_a_story_saved_while_it_is_played_asks_as_it_says_now(tmp_path):
    folder, asked = story(tmp_path, 'approval = "always"\n'), []
    game = Game.new(Story.load(folder), watched=True)
    game.session.approvals.approver = refusing(asked)
    game.begin()
    await game.prompt("pay ada")
    assert len(asked) == 1
    (folder / "story.toml").write_text(STORY.format(""))
    assert (await game.prompt("pay ada")).outcome == "completed" and len(asked) == 1
    (folder / "story.toml").write_text(STORY.format('approval = "always"\n') + "\n")
    await game.prompt("pay ada")
    assert len(asked) == 2
    await game.close()


async def test_an_undo_a_replay_and_a_call_run_again_ask_nobody(tmp_path):
    tale = Story.load(story(tmp_path / "tale", 'approval = "always"\n'))
    with contextlib.closing(SqliteStore(tmp_path / "a.db")) as store:
        session = Session("game", state=tale.state, assets=store.assets)
        journal = store.create(session, story=tale.id)
        asked = []

        async def ask(request):
            asked.append(request.input)
            return ApprovalAnswer.edit({"to": "bo"})

        game = Game(tale, session)
        session.approvals.approver = ask
        game.begin()
        await game.prompt("pay ada")
        outcome = await verify(store, "game", story_registry(tale), roots=[tale.root])
        assert (outcome.calls, outcome.same, asked) == (1, True, [{"to": "ada"}])
        again = await run_again(
            store, "game", find_call(store, "game", named_call(store, "game", "pay")), game.executor
        )
        assert again.call.ok and len(asked) == 1  # who runs it again has decided
        await undo(journal, game.registry)
        assert session.snapshot() == {} and len(asked) == 1
        await journal.close()


class Folding:
    full = False

    def __init__(self, session):
        self.fold = Fold()
        session.attach(self)

    def push(self, record):
        self.fold.apply(record)

    async def wait(self):
        return None


# --- the rules of a story ------------------------------------------------------------------------------------------


def story(root, keys="", manifest=None):
    (root / "tools").mkdir(parents=True, exist_ok=True)
    (root / "story.toml").write_text(STORY.format(keys))
    (root / "narrator.toml").write_text(RULES)
    path = root / "tools" / "pay"
    path.write_text(TOOL)
    path.chmod(0o755)
    told = {"name": "pay", "description": "Pay somebody.", **(manifest or {})}
    (root / "tools" / "pay.tool.json").write_text(json.dumps(told))
    return root


NOTICE = {"effects": [{"type": "notification", "event": "paid", "description": "the bank is told"}]}


@pytest.mark.parametrize(
    ("keys", "manifest", "reason"),
    [
        ("", {}, None),
        ("", {"approval": "always"}, "it always asks first"),
        ("", {"approval": "irreversible", **NOTICE}, "it cannot be undone: the bank is told"),
        ('approval = "always"\n', {}, "it always asks first"),
        ('approval = "always"\n', {"approval": "never"}, None),  # the manifest knows its tool
        ("approval = { pay = 'always' }\n", {"approval": "never"}, "it always asks first"),
        ("approval = { pay = 'never' }\n", {"approval": "always"}, None),
        ("approval = { default = 'irreversible' }\n", {}, None),
        ("approval = { default = 'irreversible' }\n", NOTICE, "it cannot be undone: the bank is told"),
    ],
)
async def test_a_manifest_and_a_story_say_which_calls_ask(tmp_path, keys, manifest, reason):
    asked = []

    async def ask(request):
        asked.append(request.reason)
        return ApprovalAnswer.approve()

    game = Game.new(Story.load(story(tmp_path, keys, manifest)))
    game.session.approvals.approver = ask
    game.begin()
    await game.prompt("pay ada")
    assert asked == ([] if reason is None else [reason]) and game.session.state["paid"] is True


def test_the_tools_of_a_server_have_rules_too(tmp_path):
    keys = (
        'approval = { "bank.*" = "always", "bank.look" = "never" }\nmcp = { bank = { command = "bank" } }\n'
    )
    policy = story_registry(Story.load(story(tmp_path, keys))).approval
    made = {
        name: ToolCall(_foreign(name), {}, Session().draft(), "") for name in ("bank.pay", "bank.look", "o.x")
    }
    assert [policy(made[name]) for name in made] == ["it always asks first", False, None]


def _foreign(name):
    from narratoria.kinds.mcp.mcp_tools import MCP
    from narratoria.tools.tool import Tool

    async def run(params: dict, *, context) -> ToolResult[None]:
        return ToolResult.ok(None)

    return Tool(name, "A tool of a server.", run, parameters={"type": "object"}, kind=MCP)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ('approval = "allways"\n', "did you mean 'always'"),
        ("approval = 5\n", "always, irreversible, never"),
        ("approval = { pya = 'always' }\n", "did you mean 'pay'"),
        ("approval = { pay = true }\n", "is no rule"),
    ],
)
def test_a_mistake_in_the_rules_is_named_with_its_line(tmp_path, keys, told):
    with pytest.raises(StoryInvalid, match=told) as refused:
        Story.load(story(tmp_path, keys))
    assert refused.value.problems[0].line == 3


@pytest.mark.parametrize(
    ("rule", "asked"), [('approval = "always"\n', 0), ('[approval]\nstage = "always"\n', 1)]
)
async def test_the_built_in_stage_is_asked_about_only_where_a_story_names_it(tmp_path, rule, asked):
    (tmp_path / "story.toml").write_text(
        STORY.format("" if "[" in rule else rule) + (rule if "[" in rule else "")
    )
    (tmp_path / "narrator.toml").write_text(
        '[[rule]]\nid = "go"\npatterns = ["go"]\nnarrative = "You go."\nset = { place = "yard" }\n'
    )
    questions = []
    game = Game.new(Story.load(tmp_path), narrators=["rules"])
    game.session.approvals.approver = refusing(questions)
    game.begin()
    await game.prompt("go")
    assert len(questions) == asked
    assert game.session.state.get("place") == (None if asked else "yard")
