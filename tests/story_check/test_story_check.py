"""Mistakes in a story are found when it is read: each has its file, its line and what was perhaps meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from narratoria import sdk
from narratoria.errors import StoryInvalid, StoryProblem
from narratoria.play.story import Story

ROOT = Path(__file__).parents[2]
STORY = """\
title = "The Bell"
premise = "A tower, a rope."
[opening]
narrative = "A rope hangs down."
choices = ["Ring the bell"]
[state]
place = { id = "tower" }
bell = { rung = 0 }
"""
RULES = """\
[[rule]]
id = "ring"
patterns = ["(ring|sound) bell"]
narrative = "Dong."
calls = [{ tool = "ring", input = { times = 1 } }]

[[rule]]
id = "look"
patterns = ["look [up]"]
narrative = "It has been rung {state.bell.rung} times."
"""
RING = """#!/usr/bin/env python3
import json, sys
rung = json.load(sys.stdin)["state"]["bell"]["rung"] + 1
print(json.dumps({"version": "0", "type": "state_patch", "patch": {"bell": {"rung": rung, "loud": True}}}))
print(json.dumps({"version": "0", "type": "done", "ok": True}))
"""
MANIFEST = {
    "name": "ring",
    "description": "Rings the bell.",
    "parameters": {
        "type": "object",
        "properties": {"times": {"type": "integer", "maximum": 3}, "tone": {"type": "string"}},
        "required": ["times"],
        "additionalProperties": False,
    },
    "wantsState": True,
}


def write(folder: Path, rules: str = RULES, story: str = STORY) -> Path:
    (folder / "tools").mkdir(parents=True)
    (folder / "story.toml").write_text(story, encoding="utf-8")
    (folder / "narrator.toml").write_text(rules, encoding="utf-8")
    (folder / "tools" / "ring").write_text(RING, encoding="utf-8")
    (folder / "tools" / "ring").chmod(0o755)
    (folder / "tools" / "ring.tool.json").write_text(json.dumps(MANIFEST, indent=2), encoding="utf-8")
    return folder


def problems(folder: Path) -> list[StoryProblem]:
    try:
        return list(Story.load(folder).warnings)
    except StoryInvalid as error:
        return list(error.problems)


def found(tmp_path: Path, rules: str = RULES, story: str = STORY) -> list[tuple[str, int | None, str, str]]:
    return [
        (one.file.name, one.line, one.severity, one.message)
        for one in problems(write(tmp_path / "bell", rules, story))
    ]


SONG = 'patterns = ["sing song"]\nnarrative = "x"\n'
TAKE = 'patterns = ["take {thing}"]\nnarrative = "z"\n'
ALL = 'patterns = ["{first} ..."]\nnarrative = "over"\n'
HUM = 'patterns = ["hum"]\nnarrative = "y"\n'


def rule(text: str, then: str = "") -> str:
    """The rules with one more, which begins in line 12, and perhaps another."""
    more = f'\n[[rule]]\nid = "c"\n{then}' if then else ""
    return f'{RULES}\n[[rule]]\nid = "new"\n{text}{more}'


def test_a_story_without_mistakes_has_none(tmp_path: Path) -> None:
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    "folder",
    [*sorted((ROOT / "stories").glob("*/")), *sorted((ROOT / "examples" / "stories").glob("*/"))],
    ids=lambda folder: folder.name,
)
def test_the_stories_that_ship_have_none(folder: Path) -> None:
    assert [str(one) for one in problems(folder)] == []


@pytest.mark.parametrize(
    ("rules", "line", "parts"),
    [
        (RULES.replace('tool = "ring"', 'tool = "rign"'), 5, ["rule 'ring'", "no tool 'rign'", "did you mean 'ring'?"]),
        (RULES.replace("times = 1", "tims = 1"), 5, ["'calls[0].input.tims'", "did you mean 'times'?"]),
        (RULES.replace("times = 1", 'tims = "{state.bell.rung}"'), 5, ["input.tims", "did you mean 'times'?"]),
        (RULES.replace("times = 1", 'times = 1, ton = "{state.place.id}"'), 5, ["input.ton", "did you mean 'tone'?"]),
        (RULES.replace("times = 1", 'times = "one"'), 5, ["input.times", "expected int"]),
        (RULES.replace("times = 1", "times = 9"), 5, ["input.times", "3"]),
        (RULES.replace("{ times = 1 }", "{ }"), 5, ["input.times", "missing"]),
        (rule('patterns = ["sing song"]\nnaratve = "x"\n'), 15, ["rule 'new' (no. 3)", "did you mean 'narrative'?"]),
        (
            rule(SONG + 'when = { bell.rung = { at_lest = 3 } }\n'),
            16,
            ["bell.rung.at_lest", "'at_lest' is no operator", "did you mean 'at_least'?"],
        ),
        (
            rule(SONG + "when = { bell.rung = { larger = 3 } }\n"),
            16,
            ["'larger' is no operator", "did you mean 'more_than'?"],
        ),
        (
            rule(SONG + "when = { bell.rung = { min = 3 } }\nset = { ending = { id = 'e' } }\n"),
            16,
            ["'min' is no operator", "did you mean 'at_least'?"],
        ),
        (
            rule(SONG + "when = { bell.rung = { qua = 3 } }\n"),
            16,
            ["'qua' is no operator", "there are: equals"],
        ),
        (
            rule(SONG + 'when = { bell.rung = { "$gtt" = 3 } }\n'),
            16,
            ["unknown operator", "did you mean '$gt'?"],
        ),
        (
            rule(SONG + "when = { any = [\n  { bell.rung = 1 },\n  { bell.rung = { exist = true } },\n] }\n"),
            18,
            ["'exist' is no operator", "did you mean 'exists'?"],
        ),
        (
            rule('patterns = ["give {gift}"]\nnarrative = "x"\nwhen = { said.git = "x" }\n'),
            16,
            ["no pattern of the rule has a group 'git'", "did you mean 'gift'?"],
        ),
        (rule('patterns = [\n  "sing song",\n  "<go> there",\n]\nnarrative = "x"\n'), 16, ["<go> is not in [words]"]),
        ('[words]\ngo = ["go"]\n' + rule('patterns = ["<goo> x"]\nnarrative = "x"\n'), 16, ["did you mean <go>?"]),
        (rule(SONG + 'calls = [{ tool = "tools/rang" }]\n'), 16, ["no such file", "'ring'"]),
        (rule(SONG + '[[finally]]\ntool = "rung"\n'), 17, ["'finally[0].tool'", "'ring'"]),
        ("x = = 1\n", 1, ["not TOML"]),
        (RULES.replace("[[rule]]", "[[ruel]]"), 1, ["key 'ruel'", "did you mean 'rule'?"]),
        (rule(SONG + '[[finaly]]\ntool = "stage"\n'), 16, ["key 'finaly'", "did you mean 'finally'?"]),
        (rule(SONG + "[[rule.case]]\nnarrative = 'y'\n"), 16, ["key 'case'", "did you mean 'cases'?"]),
        (rule(SONG.replace("patterns", "pattern")), 14, ["key 'pattern'", "did you mean 'patterns'?"]),
        (rule(SONG + 'set = { ending = "heard" }\n'), 16, ["needs an id", 'ending = { id = "heard", title']),
        (rule(SONG + 'set = { ending = { title = "Heard" } }\n'), 16, ["needs an id"]),
        (rule('narrative = "x"\n'), 12, ["key 'patterns'", "missing"]),
        (rule(SONG + '[[rule.calls]]\ntol = "ring"\ninput = { times = 1 }\n'), 17, ["did you mean 'tool'?"]),
    ],
)  # fmt: skip
def test_what_certainly_goes_wrong_is_an_error(
    tmp_path: Path, rules: str, line: int, parts: list[str]
) -> None:
    ((file, at, severity, message),) = found(tmp_path, rules)
    assert (file, at, severity) == ("narrator.toml", line, "error"), message
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("rules", "line", "parts"),
    [
        (
            rule(SONG + 'when = { bel.rung = 3 }\n'),
            16,
            ["no tool and no rule ever writes bel.rung", "did you mean 'bell.rung'?"],
        ),
        (
            rule(SONG + 'when = { place.id = "towr" }\n'),
            16,
            ["nothing ever makes place.id 'towr'", "did you mean 'tower'?"],
        ),
        (rule('patterns = ["sing song"]\nnarrative = "{state.bell.rnug}"\n'), 15, ["bell.rnug", "'bell.rung'?"]),
        (
            RULES.replace("times = 1", 'times = "{state.bel.rung}"'),
            5,
            ["{state.bel.rung}: no tool and no rule ever writes bel.rung", "did you mean 'bell.rung'?"],
        ),
        (
            rule('patterns = ["sound bell"]\nnarrative = "x"\n'),
            12,
            ["rule 'new' (no. 3)", "can never answer", "'ring' (no. 1)"],
        ),
        (
            rule(SONG + "[[rule.cases]]\n[[rule.cases]]\nwhen = { bell.rung = 1 }\n"),
            17,
            ["'cases[1]'", "never used", "case no. 1"],
        ),
        (
            rule(SONG + "when = { bell.rung = { at_least = 2, at_most = 1 } }\n"),
            16,
            ["rule 'new'", "bell.rung: no number is at least 2 and at most 1, so this can never hold"],
        ),
        (
            rule(SONG + 'when = { place.id = "tower" }\n[[rule.cases]]\nwhen = { place.id = { not = "tower" } }\n'),
            18,
            ["'cases[0].when'", 'place.id: "tower" and { not = "tower" } exclude each other'],
        ),
        (
            rule(SONG + "when = { any = [{ bell.rung = { in = [] } }, { bell.rung = 2 }] }\n"),
            16,
            ["nothing is in an empty list"],
        ),
        (
            rule(SONG + 'when = { place.id = { in = ["attic"] } }\nset = { ending = { id = "end" } }\n'),
            17,
            ["the ending 'end' cannot be reached: nothing ever makes place.id = { in = [\"attic\"] }"],
        ),
        (
            rule(SONG + 'when = { place.id = "attic" }\nset = { ending = { id = "end" } }\n'),
            17,
            ["the ending 'end' cannot be reached", 'place.id = "attic"'],
        ),
        (
            rule(SONG + 'choices = ["Ring the bell", "Fly away"]\n'),
            16,
            ["no rule answers 'Fly away'", "add its words"],
        ),
        (
            rule(SONG + 'choices = ["Ring the bel"]\n'),
            16,
            ["no rule answers 'Ring the bel'; did you mean 'Ring the bell'?"],
        ),
        (rule(SONG + 'choices = ["Loko up"]\n'), 16, ["no rule answers 'Loko up'; did you mean 'look up'?"]),
        (rule(SONG + 'offer = "Sing a sogn"\n'), 16, ["no pattern of the rule fits 'Sing a sogn'"]),
        (
            rule(SONG + "set = { bell = { rnug = 3 } }\n"),
            16,
            ["bell.rnug: nothing reads it; did you mean 'bell.rung'?"],
        ),
        (
            rule('patterns = ["go {where:north|far south}"]\nnarrative = "x"\nwhen = { said.where = "nroth" }\n'),
            16,
            ["said.where is never 'nroth'; did you mean 'north'?"],
        ),
        (rule(SONG + 'calls = [{ tool = "time.now" }]\n'), 16, ["'time'", "mcp"]),
        (rule(SONG + 'set = { ending = { id = "e", titel = "E" } }\n'), 16, ["ending.titel", "did you mean 'title'?"]),
        (rule(SONG + 'set = { endng = { id = "e", title = "E" } }\n'), 16, ["endng", "did you mean 'ending'?"]),
    ],
)  # fmt: skip
def test_what_is_hardly_meant_so_is_a_warning(
    tmp_path: Path, rules: str, line: int, parts: list[str]
) -> None:
    ((file, at, severity, message),) = found(tmp_path, rules)
    assert (file, at, severity) == ("narrator.toml", line, "warning"), message
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("story", "line", "severity", "parts"),
    [
        ("titel = 'x'\n" + STORY, 1, "error", ["'titel'", "did you mean 'title'?"]),
        (STORY.replace("choices", "choises"), 5, "error", ["'opening.choises'", "did you mean 'choices'?"]),
        (STORY + "[cover]\ntool = 'rign'\n", 10, "error", ["cover.tool", "did you mean 'ring'?"]),
        (STORY + "[cover]\npicture = 'bell.png'\n", 10, "error", ["'bell.png' is no file"]),
        (STORY + "[cover]\ntool = 'ring'\ninput = { tims = 1 }\n", 11, "error", ["cover.input.tims"]),
        (STORY.replace("[opening]", "[openning]"), 3, "error", ["'openning'", "did you mean 'opening'?"]),
        (STORY.replace('premise = "A tower, a rope."\n', ""), 1, "error", ["'premise'", "missing"]),
        (STORY.replace("narrative", "#"), 3, "error", ["'opening.narrative'", "missing"]),
        ("mcp = 'servers.json'\n" + STORY, 1, "error", ["mcp", "servers.json"]),
        ("skills = ['dise']\n" + STORY, 1, "warning", ["no skill 'dise'", "did you mean 'dice'?"]),
        (
            STORY.replace("A rope", "{state.bel.rung}"),
            4,
            "warning",
            ["{state.bel.rung}", "did you mean 'bell.rung'?"],
        ),
        ("go_on = 'snooze'\n" + STORY, 1, "warning", ["'go_on': no rule answers 'snooze'"]),
        (STORY.replace("Ring the bell", "Fly away"), 5, "warning", ["no rule answers 'Fly away'"]),
    ],
)
def test_story_toml_is_checked_too(
    tmp_path: Path, story: str, line: int, severity: str, parts: list[str]
) -> None:
    first = found(tmp_path, story=story)[0]
    assert first[:3] == ("story.toml", line, severity), first
    for part in parts:
        assert part in first[3]


def test_every_mistake_is_told_and_the_message_is_the_first(tmp_path: Path) -> None:
    rules = RULES.replace('tool = "ring"', 'tool = "rign"') + '[[rule]]\nid = "x"\npatterns = ["<y>"]\n'
    folder = write(tmp_path / "bell", rules, "titel = 'x'\nauthr = 'y'\n" + STORY)
    with pytest.raises(StoryInvalid) as caught:
        Story.load(folder)
    assert [(one.file.name, one.line) for one in caught.value.problems] == [
        ("story.toml", 1),
        ("story.toml", 2),
        ("narrator.toml", 5),
        ("narrator.toml", 11),
        ("narrator.toml", 13),
    ]
    said = str(caught.value)
    assert said.startswith(f"{folder / 'story.toml'}:1: key 'titel': unknown key; did you mean 'title'?")
    assert said.endswith("(and 4 more mistakes: narratoria check)")


def test_mistakes_of_different_kinds_are_told_at_once(tmp_path: Path) -> None:
    """A key that cannot be read, a group, an operator, a tool, an input and a pattern: each in one look."""
    rules = (
        RULES.replace('narrative = "Dong."', 'narative = "{who}"').replace("times = 1", "tims = 1")
        + '[[rule]]\nid = "a"\npatterns = ["sing <y>"]\nnarrative = "x"\ncalls = [{ tool = "rign" }]\n'
        + '[[rule]]\nid = "b"\npatterns = ["hum"]\nnarrative = "{how}"\n[[rule.cases]]\n[[rule.cases]]\n'
        + '[[rule]]\nid = "c"\npatterns = ["wait"]\nwhen = { bell.rung = { at_lest = 1 } }\nnarrative = "x"\n'
    )
    assert [(line, message.partition("key ")[2]) for _, line, _, message in found(tmp_path, rules)] == [
        (1, "'narrative': {who} is no group of the patterns (there: none) and no {state.…}"),
        (4, "'narative': unknown key; did you mean 'narrative'?"),
        (5, "'calls[0].input.tims': the tool 'ring' refuses it: unknown key; did you mean 'times'?"),
        (13, "'patterns': 'sing <y>': <y> is not in [words] (there: none)"),
        (15, "'calls[0].tool': there is no tool 'rign'; did you mean 'ring'?"),
        (19, "'narrative': {how} is no group of the patterns (there: none) and no {state.…}"),
        (25, "'when': bell.rung.at_lest: 'at_lest' is no operator; did you mean 'at_least'?"),
    ]


def test_a_call_of_no_tool_hides_no_rule_that_never_answers(tmp_path: Path) -> None:
    rules = (
        RULES.replace('tool = "ring"', 'tool = "rign"')
        + '[[rule]]\nid = "x"\npatterns = ["look up"]\nnarrative = "y"\n'
    )
    assert [(line, severity) for _, line, severity, _ in found(tmp_path, rules)] == [
        (5, "error"),
        (11, "warning"),
    ]


def test_a_key_that_is_misspelt_is_not_missing_too(tmp_path: Path) -> None:
    assert (
        len(found(tmp_path, story=STORY.replace("premise", "premis").replace("narrative", "narative"))) == 2
    )


def test_a_table_that_is_misspelt_has_no_missing_keys(tmp_path: Path) -> None:
    assert len(found(tmp_path, story=STORY.replace("[opening]", "[openning]"))) == 1


def test_a_skill_of_the_story_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path / "bell")
    (folder / "skills" / "tolling").mkdir(parents=True)
    (folder / "skills" / "tolling" / "SKILL.md").write_text("Toll it slowly.\n", encoding="utf-8")
    (problem,) = problems(folder)
    assert (problem.severity, problem.file.name) == ("warning", "tolling")
    assert "the skill is left out: SKILL.md: must begin with a line ---" in problem.message


def test_words_of_the_kit_are_no_state(tmp_path: Path) -> None:
    folder = write(tmp_path / "bell", rule(SONG + "when = { bell.progress = 3 }\n"))
    kit = Path(sdk.__file__).read_bytes()
    (folder / "tools" / "narratoria_sdk.py").write_bytes(kit)
    (problem,) = problems(folder)
    assert "no tool and no rule ever writes bell.progress" in problem.message


def test_a_manifest_is_checked_as_the_runtime_does(tmp_path: Path) -> None:
    folder = write(tmp_path / "bell")
    manifest = folder / "tools" / "ring.tool.json"
    manifest.write_text(json.dumps({**MANIFEST, "wantState": True}, indent=2), encoding="utf-8")
    (problem,) = problems(folder)
    assert (problem.file, problem.line) == (manifest, len(manifest.read_text().splitlines()) - 1)
    assert "did you mean 'wantsState'?" in problem.message


def test_a_value_that_is_filled_in_play_is_not_judged(tmp_path: Path) -> None:
    rules = rule(
        'patterns = ["ring {how}"]\nnarrative = "x"\n'
        'calls = [{ tool = "ring", input = { times = "{state.bell.rung}", tone = "{how}" } }]\n'
    )
    assert found(tmp_path, rules) == []


def test_alternatives_are_not_judged_where_a_value_is_filled_in_play(tmp_path: Path) -> None:
    folder = write(tmp_path / "bell", RULES.replace("times = 1", 'how = { times = "{state.bell.rung}" }'))
    often = {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]}
    parameters = {"type": "object", "properties": {"how": {"anyOf": [often, {"type": "null"}]}}}
    manifest = json.dumps({**MANIFEST, "parameters": parameters})
    (folder / "tools" / "ring.tool.json").write_text(manifest, encoding="utf-8")
    assert problems(folder) == []


@pytest.mark.parametrize(
    "rules",
    [
        # A condition makes room for the next; so does a last resort, and a group that is longer.
        rule(HUM + "when = { bell.rung = 1 }\n", HUM),
        rule(TAKE + "fallback = true\n", TAKE.replace("{thing}", "oil")),
        rule(TAKE, TAKE.replace("{thing}", "...")),
        # A case whose tool has failed gives way to the next.
        rule(SONG + '[[rule.cases]]\ncalls = [{ tool = "ring", input = { times = 1 } }]\n[[rule.cases]]\nthen = "y"\n'),
        # What a group captures; what is set for a tool, a panel or nobody, and is like nothing that is read.
        rule('patterns = ["go {where:north|far south}"]\nnarrative = "x"\nwhen = { said.where = "far south" }\n'),
        rule(SONG + "set = { bell = { loud = true, rung2 = 1, sung = 1 } }\n"),
        # A tool may write this; a tool may come by this word.
        rule(SONG + "when = { bell.loud = true, bell.version = false }\n"),
        rule(SONG + "set = { open = true }\n", HUM + 'when = { open = true }\nset = { ending = { id = "e" } }\n'),
        rule(ALL + "when = { ending = { exists = true } }\n", HUM + 'set = { ending = { id = "e" } }\n'),
    ],
)  # fmt: skip
def test_what_may_be_right_is_left_alone(tmp_path: Path, rules: str) -> None:
    assert found(tmp_path, rules) == []
