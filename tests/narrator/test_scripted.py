"""The scripted narrator: phrases, conditions, rules, and the plans that come out of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from narratoria.errors import StoryInvalid
from narratoria.narrator.protocol import Narrator, NarratorRequest, NoMatch, ToolCard
from narratoria.narrator.rules.patterns import ENGLISH, Pattern, PatternError, all_words
from narratoria.narrator.rules.rule_file import Rules
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.run.plan import PlanDocument
from narratoria.state import StateView

TORCH = Path(__file__).parents[2] / "stories" / "torch" / "narrator.toml"


def narrator(tmp_path: Path, toml: str) -> ScriptedNarrator:
    path = tmp_path / "narrator.toml"
    path.write_text(toml, encoding="utf-8")
    return ScriptedNarrator.load(path)


def rejected(tmp_path: Path, toml: str) -> str:
    with pytest.raises(StoryInvalid) as caught:
        narrator(tmp_path, toml)
    return str(caught.value)


async def say(
    speaker: ScriptedNarrator, prompt: str, state: dict[str, Any] | None = None, **more: Any
) -> PlanDocument:
    plan = await speaker.plan(NarratorRequest(prompt, state or {}, **more))
    plan.check()
    return plan


# --- 000 §14.3 -----------------------------------------------------------------------------------------

FIRST = "550e8400-e29b-41d4-a716-446655440000"
SECOND = "550e8400-e29b-41d4-a716-446655440001"


async def test_the_walkthrough_of_the_specification_gives_its_first_plan() -> None:
    speaker = ScriptedNarrator.load(TORCH, new_id=lambda: FIRST)
    plan = await say(speaker, "I light the torch and examine the door")
    assert plan.to_data() == {
        "requestId": FIRST,
        "narrative": "You reach for the torch on the wall.",
        "tools": [
            {
                "toolId": "light1",
                "toolPath": "tools/torch-lighter",
                "input": {"action": "light_torch"},
                "dependencies": [],
                "required": True,
                "async": False,
                "retryPolicy": {"maxRetries": 3, "backoffMs": 100},
            },
            {
                "toolId": "examine1",
                "toolPath": "tools/door-examiner",
                "input": {"target": "mysterious_door"},
                "dependencies": ["light1"],
                "required": True,
                "async": False,
                "retryPolicy": {"maxRetries": 3, "backoffMs": 100},
            },
        ],
        "parallel": False,
        "disabledSkills": [],
        "metadata": {"generationAttempt": 1, "parentPlanId": None},
    }


async def test_the_walkthrough_of_the_specification_gives_its_second_plan_without_the_torch() -> None:
    ids = iter((FIRST, SECOND))
    speaker = ScriptedNarrator.load(TORCH, new_id=lambda: next(ids))
    prompt = "I light the torch and examine the door"
    first = await say(speaker, prompt)
    second = await say(
        speaker, prompt, disabled_skills=frozenset({"torch-lighter"}), attempt=2, parent_plan=first
    )
    assert second.to_data() == {
        "requestId": SECOND,
        "narrative": "The torch is beyond reach. You examine the mysterious door instead.",
        "tools": [
            {
                "toolId": "examine2",
                "toolPath": "tools/door-examiner",
                "input": {"target": "mysterious_door"},
                "dependencies": [],
                "required": True,
                "async": False,
                "retryPolicy": {"maxRetries": 3, "backoffMs": 100},
            }
        ],
        "parallel": False,
        "disabledSkills": ["torch-lighter"],
        "metadata": {"generationAttempt": 2, "parentPlanId": FIRST},
    }


@pytest.mark.parametrize(
    "prompt", ["Go inside? No.", "go in. no way!", "Go inside? No, go north.", "go in? better not"]
)
async def test_a_deed_that_is_asked_and_denied_is_not_done_by_its_words_alone(prompt: str) -> None:
    lighthouse = TORCH.parents[1] / "lighthouse" / "narrator.toml"
    request = NarratorRequest(prompt, {"place": {"id": "landing"}})
    assert ScriptedNarrator.load(lighthouse).understand(request) == ([], [prompt])


async def test_every_plan_has_a_request_id_of_its_own() -> None:
    speaker = ScriptedNarrator.load(TORCH)
    assert isinstance(speaker, Narrator)
    assert (await say(speaker, "light torch")).request_id != (await say(speaker, "light torch")).request_id


# --- phrases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        "LIGHT THE TORCH!",
        "please light a torch",
        "I would like to carefully light the torch, please.",
        "Then I light my torch again",
        "set fire to the torch",
        "ok, let's ignite the torch",
    ],
)
async def test_case_articles_punctuation_and_courtesies_do_not_count(prompt: str) -> None:
    plan = await say(ScriptedNarrator.load(TORCH), prompt)
    assert [call.tool_id for call in plan.tools if call.required] == ["light1"]


@pytest.mark.parametrize(
    "prompt",
    [
        "don't light the torch",
        "do not light the torch",
        "torch",
        "",
        "   ",
        "?!…",
        "\x00\x01\xff",
        "light the torch upside down",
    ],
)
async def test_what_no_rule_fits_is_left_to_the_next_narrator(prompt: str) -> None:
    with pytest.raises(NoMatch):
        await say(ScriptedNarrator.load(TORCH), prompt)


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        ("(take|get|pick up) {item}", "pick up the old key", {"item": "old key"}),
        ("give {gift} to {who}", "give the bread to the old man", {"gift": "bread", "who": "old man"}),
        ("go {where:north|south|up}", "go up", {"where": "up"}),
        ("go {where:north|south|up}", "go west", None),
        ("light lamp [with {what}]", "light the lamp", {}),
        ("light lamp [with {what}]", "light the lamp with a match", {"what": "match"}),
        ("<look> at [old] door", "peer at old door", {}),
        ("ask about ...", "ask about", {}),
        ("ask about ...", "ask about the keeper and his boat", {}),
        ("say {words}", "say one two three four five six seven", None),
        ("Straße", "STRASSE", {}),
        ("lamp-room", "lamp room", {}),
        ("keeper's log", "Keeper’s log", {}),
    ],
)
def test_phrase_patterns(pattern: str, text: str, groups: dict[str, str] | None) -> None:
    vocabulary = {"look": ["look", "peer", "have a look"]}
    words = [word for word in all_words(text, ENGLISH) if word not in {"the", "a"}]
    assert Pattern(pattern, vocabulary).match(words) == groups


@pytest.mark.parametrize(
    "source", ["", "...", "(a|b", "a)", "[a", "{", "{1x}", "{x", "<nowhere>", "<look", "a|b"]
)
def test_a_malformed_pattern_is_refused_with_its_text(source: str) -> None:
    with pytest.raises(PatternError, match=r"has no words|missing|not opened|not a name|not in"):
        Pattern(source, {"look": ["look"]})


def test_no_pattern_takes_long_whatever_the_prompt() -> None:
    hostile = Pattern("[a] " * 40 + "{x} {y} {z} ... " + "[a] [(a|a|a)] " * 20 + "b")
    began = time.perf_counter()
    assert hostile.match(["a"] * 1000) is None
    assert time.perf_counter() - began < 3.0


async def test_a_prompt_of_a_megabyte_is_answered_at_once() -> None:
    speaker = ScriptedNarrator.load(TORCH)
    began = time.process_time()  # a busy machine makes nobody slow
    with pytest.raises(NoMatch):
        await say(speaker, "and the " * 131_072)
    plan = await say(speaker, "light the torch. " + "blah " * 200_000)
    assert time.process_time() - began < 1.0
    assert [call.tool_id for call in plan.tools if call.required] == ["light1"]


# --- several actions -----------------------------------------------------------------------------------

TAKING = """
[[rule]]
id = "take"
patterns = ["(take|pick up) {item:oil|wick|salt and pepper}"]
narrative = "You take the {item}."
calls = [{ tool = "take", input = { item = "{item}", have = "{state.bag.count|0}" } }]
expect = { has = { "x" = true } }

[[rule]]
id = "trim"
patterns = ["trim lamp"]
when = { has.x = true }
narrative = "You trim the lamp."
[[rule.calls]]
id = "cut"
tool = "knife"
[[rule.calls]]
id = "polish"
tool = "cloth"
after = ["cut"]
required = false
async = true
retries = 0
backoff_ms = 5

[[rule]]
id = "whistle"
patterns = ["whistle"]
independent = true
narrative = "You whistle."
calls = [{ id = "whistle", tool = "whistle" }]
"""


async def test_a_clause_without_a_verb_borrows_the_one_before(tmp_path: Path) -> None:
    plan = await say(narrator(tmp_path, TAKING), "pick up the oil, the wick and then the salt and pepper")
    assert [call.input["item"] for call in plan.tools] == ["oil", "wick", "salt and pepper"]
    assert [call.tool_id for call in plan.tools] == ["take1", "take1-2", "take1-3"]
    assert [call.dependencies for call in plan.tools] == [[], ["take1"], ["take1-2"]]
    assert plan.narrative == "You take the oil. You take the wick. You take the salt and pepper."


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("look around and go inside", "Rock. A store."),
        ("look around, then go inside", "Rock. A store."),
        ("look around the rock and the sea", "Rock."),
        ("look around the rock and inside the tower", "Rock."),
        ("say hello and go inside it", "You say hello go inside it."),
    ],
)
async def test_what_a_pattern_passes_over_is_no_deed_of_another_rule(
    tmp_path: Path, prompt: str, told: str
) -> None:
    rules = narrator(
        tmp_path,
        """
        [[rule]]
        id = "say"
        patterns = ["say {words}"]
        narrative = "You say {words}."
        [[rule]]
        id = "in"
        patterns = ["go inside", "inside"]
        narrative = "A store."
        [[rule]]
        id = "look"
        patterns = ["look around [...]"]
        narrative = "Rock."
        """,
    )
    assert (await rules.plan(NarratorRequest(prompt))).narrative == told


async def test_a_later_clause_sees_what_an_earlier_one_is_expected_to_leave(tmp_path: Path) -> None:
    speaker = narrator(tmp_path, TAKING)
    with pytest.raises(NoMatch):
        await say(speaker, "trim the lamp")
    plan = await say(speaker, "take the oil, whistle and trim the lamp")
    calls = {call.tool_id: call for call in plan.tools}
    assert calls["whistle1"].dependencies == []
    assert calls["cut1"].dependencies == ["whistle1"]
    assert calls["polish1"].dependencies == ["cut1"]
    assert (calls["polish1"].required, calls["polish1"].async_) == (False, True)
    assert (calls["polish1"].retry_policy.max_retries, calls["polish1"].retry_policy.backoff_ms) == (0, 5)


async def test_an_optional_call_of_a_disabled_skill_is_left_out_and_the_rest_goes_on(tmp_path: Path) -> None:
    cards = [ToolCard("cloth", "", skill="polishing"), ToolCard("knife", "", skill="cutting")]
    speaker = narrator(tmp_path, TAKING)
    state = {"has": {"x": True}}
    plan = await say(speaker, "trim lamp", state, tools=cards, disabled_skills=frozenset({"polishing"}))
    assert [call.tool_id for call in plan.tools] == ["cut1"]
    plan = await say(speaker, "trim lamp", state, tools=cards, disabled_skills=frozenset({"cutting"}))
    assert plan.tools == []
    assert plan.narrative == "That is out of reach just now."


async def test_values_of_state_keep_their_type_in_inputs(tmp_path: Path) -> None:
    speaker = narrator(tmp_path, TAKING)
    view = StateView({"bag": {"count": 7}})
    plan = await speaker.plan(NarratorRequest("take oil", view))
    assert plan.tools[0].input == {"item": "oil", "have": 7}
    assert (await say(speaker, "take oil")).tools[0].input["have"] == "0"


# --- cases and conditions ------------------------------------------------------------------------------

DOOR = """
[[rule]]
id = "open"
patterns = ["open door"]
  [[rule.cases]]
  when = { door.locked = false, tide = { at_most = 2 } }
  narrative = "low"
  [[rule.cases]]
  when = { any = [{ key = "brass" }, { key = "iron" }], none = [{ cursed = true }] }
  narrative = ["key one", "key two"]
  [[rule.cases]]
  when = { place = { in = ["hall", "porch"] }, seen = { contains = "door" }, door = { exists = true } }
  narrative = "place"
  [[rule.cases]]
  when = { door = { missing = true }, mood = { not = "calm", not_in = ["glad"] }, n = { at_least = 3 } }
  narrative = "mood"
"""


async def test_a_condition_may_ask_which_words_were_said(tmp_path: Path) -> None:
    speaker = narrator(
        tmp_path,
        """
        [[rule]]
        id = "kitchen"
        patterns = ["go {up:up|upstairs}", "go to kitchen"]
        when = { any = [{ said.up = { missing = true } }, { said.up = { exists = true }, place = "store" }] }
        narrative = "kitchen"
        [[rule]]
        id = "attic"
        patterns = ["go up"]
        narrative = "attic"
        """,
    )
    assert (await say(speaker, "go up", {"place": "store"})).narrative == "kitchen"
    assert (await say(speaker, "go up", {"place": "kitchen"})).narrative == "attic"
    assert (await say(speaker, "go to the kitchen", {"place": "attic"})).narrative == "kitchen"


async def test_a_rule_higher_up_wins_over_a_catch_all_that_would_swallow_more(tmp_path: Path) -> None:
    speaker = narrator(tmp_path, TAKING + '[[rule]]\nid = "any"\npatterns = ["{x} ..."]\nnarrative = "?"\n')
    plan = await say(speaker, "take the oil and whistle")
    assert [call.tool_id for call in plan.tools] == ["take1", "whistle1"]


@pytest.mark.parametrize(
    ("state", "narrative"),
    [
        ({"tide": 1}, "low"),
        ({"door": {"locked": False}, "tide": 2.0}, "low"),
        ({"door": {"locked": True}, "tide": 1, "key": "iron"}, "key one"),
        ({"key": "brass", "cursed": True, "place": "hall", "seen": ["door"], "door": {}}, "place"),
        ({"n": 3}, "mood"),
        ({"n": True, "tide": True}, None),
        ({"n": 3, "mood": "calm"}, None),
        ({"n": 3, "mood": "glad"}, None),
    ],
)
async def test_the_first_case_whose_condition_holds_speaks(
    tmp_path: Path, state: dict[str, Any], narrative: str | None
) -> None:
    speaker = narrator(tmp_path, DOOR)
    if narrative is None:
        with pytest.raises(NoMatch):
            await say(speaker, "open door", state)
    else:
        assert (await say(speaker, "open the door", state)).narrative == narrative


async def test_a_rule_may_set_state_and_offer_choices_through_the_stage(tmp_path: Path) -> None:
    speaker = narrator(
        tmp_path,
        """
        [[rule]]
        id = "sleep"
        patterns = ["sleep [for {hours}]"]
        narrative = "You sleep."
        set = { ending = { id = "sleep", title = "Asleep for {hours|ever}" } }
        choices = ["Wake up"]
        [[finally]]
        tool = "weather"
        required = false
        """,
    )
    plan = await say(speaker, "sleep for two hours")
    assert [(call.tool_id, call.dependencies) for call in plan.tools] == [
        ("stage1", []),
        ("stage1-2", ["stage1"]),
        ("weather1", ["stage1"]),
    ]
    assert plan.tools[0].input == {"patch": {"ending": {"id": "sleep", "title": "Asleep for two hours"}}}
    assert plan.tools[1].input == {"choices": ["Wake up"]}


# --- mistakes in narrator.toml -------------------------------------------------------------------------

RULE = '[[rule]]\nid = "open"\npatterns = ["open door"]\nnarrative = "x"\n'


@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("", ["rule", "no rules"]),
        ("x = = 1", ["narrator.toml:1: not TOML"]),
        ("rule = 5", ["'rule'", "expected array, got 5"]),
        ("[[rules]]", ["'rules'", "did you mean 'rule'"]),
        ('[[rule]]\npatterns = ["a b"]', ["rule no. 1", "'id'", "missing"]),
        (RULE + RULE, ["'open' (no. 2)", "'id'", "no. 1 has it already"]),
        (RULE + 'naratve = "y"', ["rule 'open'", "'naratve'", "did you mean 'narrative'"]),
        ('[[rule]]\nid = "a"\nnarrative = "x"', ["rule 'a'", "'patterns'", "missing"]),
        (
            '[[rule]]\nid = "a"\npatterns = ["(x"]\nnarrative = "x"',
            ["rule 'a'", "'patterns'", "')' is missing"],
        ),
        ('[[rule]]\nid = "a"\npatterns = ["x"]', ["rule 'a'", "says nothing and does nothing"]),
        (RULE + "when = { n = { at_least = 'three' } }", ["'when'", "n.at_least", "a number"]),
        (RULE + "when = { n = { at_least = 1, atmost = 2 } }", ["'when'", "'atmost' is not an operator"]),
        (RULE + "when = 3", ["'when'", "expected object"]),
        (RULE + 'then = "{who}"', ["rule 'open'", "'then'", "{who}"]),
        (RULE + "calls = [{ input = {} }]", ["'calls[0].tool'", "missing"]),
        (RULE + 'calls = [{ tool = "t", after = ["z"] }]', ["'calls[0].after'", "'z'"]),
        (RULE + 'calls = [{ tool = "t" }, { tool = "t" }]', ["'calls[1].id'", "'t' is used twice"]),
        (RULE + 'calls = [{ tool = "t", retries = -1 }]', ["'calls[0].retries'", "expected 0 or more"]),
        (RULE + 'calls = [{ tool = "t", required = 1 }]', ["'calls[0].required'", "expected boolean"]),
        (RULE + "cases = []", ["'cases'", "at least 1"]),
        (RULE + "[[rule.cases]]\npatterns = ['x']", ["'cases[0].patterns'", "unknown key"]),
        ("[words]\na = 3\n" + RULE, ["'words.a'", "expected array or string"]),
    ],
)
def test_a_mistake_names_the_file_the_rule_and_the_key(tmp_path: Path, toml: str, parts: list[str]) -> None:
    message = rejected(tmp_path, toml)
    assert str(tmp_path / "narrator.toml") in message
    for part in parts:
        assert part in message


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoryInvalid, match="no such file"):
        Rules.load(tmp_path / "narrator.toml")


async def test_another_language_brings_its_own_small_words(tmp_path: Path) -> None:
    speaker = narrator(
        tmp_path,
        """
        [language]
        articles = ["der", "die", "das"]
        lead = ["ich möchte", "ich"]
        trail = ["bitte"]
        joins = ["und"]
        [[rule]]
        id = "a"
        patterns = ["die Fackel anzünden"]
        narrative = "A."
        [[rule]]
        id = "b"
        patterns = ["Tür ansehen"]
        narrative = "B."
        """,
    )
    assert (
        await say(speaker, "Ich möchte die Fackel anzünden und die Tür ansehen, bitte")
    ).narrative == "A. B."


def test_an_empty_file_of_rules_says_that_it_may_go(tmp_path: Path) -> None:
    with pytest.raises(StoryInvalid, match=r"no rules; add one as .* or delete the file"):
        Rules.from_toml({}, tmp_path / "narrator.toml")
