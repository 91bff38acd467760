"""Sets about a story's rules: what counts as right, and what is said of a set that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.errors import StoryInvalid
from narratoria.evals.scoring import EvaluationSetInvalid
from narratoria.evals.story_sets import evaluate_story_set, is_story_set, load_story_set

ROOT = Path(__file__).parents[2]
TORCH = str(ROOT / "stories" / "torch")
LIGHTHOUSE = str(ROOT / "stories" / "lighthouse")


def written(folder: Path, *lines: dict[str, Any]) -> Path:
    file = folder / "set.jsonl"
    file.write_text("\n".join(json.dumps({"story": TORCH, **line}) for line in lines), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("line", "right", "unasked"),
    [
        ({"prompt": "light the torch", "expect": ["light-torch"]}, True, False),
        ({"prompt": "light the torch", "rules": ["light-torch"]}, True, False),
        ({"prompt": "light the torch", "expect": ["take-torch", "light-torch"]}, True, False),
        ({"prompt": "light the torch", "expect": ["take-torch"]}, False, True),
        ({"prompt": "light the torch", "expect": ["still"]}, False, True),
        ({"prompt": "light the torch", "rules": []}, False, True),
        ({"prompt": "look around", "expect": ["told"]}, True, False),
        ({"prompt": "look around", "expect": ["light-torch"]}, False, False),
        ({"prompt": "order a taxi", "expect": ["still"]}, True, False),
        ({"prompt": "order a taxi", "expect": ["told"]}, False, False),
        ({"prompt": "order a taxi", "rules": []}, True, False),
    ],
    ids=range(11),
)
def test_what_is_right_and_what_is_a_deed_nobody_asked_for(
    tmp_path: Path, line: dict[str, Any], right: bool, unasked: bool
) -> None:
    report = evaluate_story_set(load_story_set(written(tmp_path, line)), ["rules"])
    assert (report.hits("right"), report.hits("unaskedActions")) == (right, unasked)


def test_the_place_and_the_state_of_a_line_are_those_it_is_typed_in(tmp_path: Path) -> None:
    lines = [
        {"story": LIGHTHOUSE, "prompt": "up", "at": "store", "rules": ["to-kitchen"]},
        {"story": LIGHTHOUSE, "prompt": "up", "state": {"place": {"id": "kitchen"}}, "rules": ["to-watch"]},
    ]
    report = evaluate_story_set(load_story_set(written(tmp_path, *lines)), ["rules"])
    assert report.share("right") == 1.0


def test_meaning_is_asked_where_the_rules_words_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path))
    cases = load_story_set(written(tmp_path, {"prompt": "ignite that old torch", "expect": ["light-torch"]}))
    assert evaluate_story_set(cases, ["rules"]).share("refused") == 1.0
    for narrators in (["paraphrase"], ["rules", "paraphrase"]):
        report = evaluate_story_set(cases, narrators)
        assert (report.share("right"), report.hits("unaskedActions")) == (1.0, 0)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"prompt": "x"}, "line 1: expect: a list is needed, either expect or rules"),
        ({"prompt": "x", "expect": "still"}, "expect: expected array"),
        ({"prompt": "x", "expect": [], "rules": []}, "either expect or rules"),
        ({"expect": ["still"]}, "line 1: prompt: missing"),
        ({"prompt": "x", "expect": ["fly-away"]}, "'fly-away' is no rule of the story 'torch'"),
        ({"prompt": 5, "rules": []}, "line 1: prompt: expected string, got 5"),
        ({"prompt": "x", "rules": [], "state": []}, "state: expected object"),
        ({"prompt": "x", "rules": [], "at": 5}, "at: expected string"),
        ({"story": 5, "prompt": "x", "rules": []}, "story: expected string"),
    ],
    ids=range(9),
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, line: dict[str, Any], complaint: str) -> None:
    with pytest.raises(EvaluationSetInvalid, match=complaint):
        load_story_set(written(tmp_path, line))


def test_a_story_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoryInvalid, match="nowhere"):
        load_story_set(written(tmp_path, {"story": "nowhere", "prompt": "x", "rules": []}))


def test_the_kinds_of_sets_are_told_apart() -> None:
    assert is_story_set(ROOT / "evals" / "players" / "held-out.jsonl")
    assert is_story_set(ROOT / "evals" / "paraphrases" / "held-out.jsonl")
    assert not is_story_set(ROOT / "evals" / "held-out.jsonl")


@pytest.mark.parametrize("name", ["players", "paraphrases"])
def test_the_shipped_sets_name_rules_that_there_are(name: str) -> None:
    for half in ("development", "held-out"):
        assert len(load_story_set(ROOT / "evals" / name / f"{half}.jsonl")) >= 70
