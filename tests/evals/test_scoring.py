"""The evaluation sets, how a narrator is scored, and what the local narrator scores."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from narratoria.errors import PlanRejected
from narratoria.evals.scoring import EvaluationReport, EvaluationSetInvalid, evaluate, load_set
from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
from narratoria.narrator.invocation import NarratorFailed
from narratoria.narrator.local.local_narrator import LocalNarrator
from narratoria.narrator.protocol import NarratorRequest, NoMatch, Refusal
from narratoria.run.plan import PlanDocument, PlannedCall

EVALS = Path(__file__).parents[2] / "evals"


class Scripted:
    """Answers each prompt with the calls it was given: (tool, input, dependencies)."""

    name = "scripted"

    def __init__(self, answers: dict[str, list[tuple[str, dict[str, Any], list[int]]]]) -> None:
        self.answers = answers

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        if request.prompt not in self.answers:
            raise NoMatch(request.prompt)
        calls = [
            PlannedCall(
                tool_id=f"c{number}", tool_path=tool, input=values, dependencies=[f"c{d}" for d in needs]
            )
            for number, (tool, values, needs) in enumerate(self.answers[request.prompt])
        ]
        return PlanDocument(tools=calls)


CATALOGUE = {
    "name": "tiny",
    "tools": [
        {"name": "take", "description": "Take.", "parameters": {"type": "object", "properties": {
            "item": {"type": "string"}, "count": {"type": "integer", "default": 1}}, "required": ["item"],
            "additionalProperties": False}},
        {"name": "go", "description": "Go.", "parameters": {"type": "object", "properties": {}}},
    ],
}  # fmt: skip


def tiny(folder: Path, *lines: dict[str, Any]) -> Path:
    (folder / "catalogues").mkdir()
    (folder / "catalogues" / "tiny.json").write_text(json.dumps(CATALOGUE))
    file = folder / "set.jsonl"
    file.write_text("\n".join(json.dumps({"catalogue": "tiny", **line}) for line in lines))
    return file


async def score(
    folder: Path, line: dict[str, Any], answer: list[tuple[str, dict[str, Any], list[int]]]
) -> EvaluationReport:
    return await evaluate(Scripted({line["prompt"]: answer}), load_set(tiny(folder, line)))


TAKE_CUP: dict[str, Any] = {"prompt": "p", "calls": [{"tool": "take", "input": {"item": "the cup"}}]}


async def test_case_articles_and_defaults_do_not_count(tmp_path: Path) -> None:
    report = await score(tmp_path, TAKE_CUP, [("take", {"item": "Cup", "count": 1}, [])])
    assert (
        report.share("exactTools"),
        report.share("slots"),
        report.share("done"),
        report.share("valid"),
    ) == (1, 1, 1, 1)


async def test_a_wrong_value_costs_its_slot_and_a_needless_one_too(tmp_path: Path) -> None:
    report = await score(tmp_path, TAKE_CUP, [("take", {"item": "rope", "count": 2}, [])])
    assert (report.share("exactTools"), report.share("slots")) == (1, 0)


async def test_an_input_the_schema_forbids_makes_the_plan_invalid(tmp_path: Path) -> None:
    report = await score(tmp_path, TAKE_CUP, [("take", {"item": "cup", "count": "two"}, [])])
    assert report.share("valid") == 0


async def test_an_unknown_tool_makes_the_plan_invalid_and_the_set_wrong(tmp_path: Path) -> None:
    report = await score(tmp_path, TAKE_CUP, [("grab", {"item": "cup"}, [])])
    assert (report.share("valid"), report.share("exactTools")) == (0, 0)


async def test_the_same_tool_twice_is_not_the_same_as_once(tmp_path: Path) -> None:
    report = await score(tmp_path, TAKE_CUP, [("take", {"item": "cup"}, []), ("take", {"item": "rope"}, [])])
    assert report.share("exactTools") == 0


async def test_two_calls_of_one_tool_are_paired_so_that_most_slots_agree(tmp_path: Path) -> None:
    line = {"prompt": "p", "calls": [{"tool": "take", "input": {"item": v}} for v in ("cup", "rope")]}
    report = await score(tmp_path, line, [("take", {"item": "rope"}, []), ("take", {"item": "cup"}, [])])
    assert report.share("done") == 1


class Asking(Scripted):
    """Refuses "p", and offers what it has answers to."""

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        if request.prompt == "p":
            raise Refusal("Is it one of these?", list(self.answers))
        return await super().plan(request)


@pytest.mark.parametrize(("item", "measure"), [("cup", "offered"), ("rope", "missed")])
async def test_a_refusal_is_judged_by_what_it_offers(tmp_path: Path, item: str, measure: str) -> None:
    narrator = Asking({f"Take the {item}": [("take", {"item": item}, [])], "Go": [("go", {}, [])]})
    report = await evaluate(narrator, load_set(tiny(tmp_path, TAKE_CUP)))
    shares = {name: report.share(name) for name in ("done", "offered", "wrong", "missed")}
    assert shares == {**dict.fromkeys(shares, 0), measure: 1}
    assert report.share("falseRefusals") == (measure == "missed")


async def test_half_of_what_was_asked_is_missed_and_something_else_is_wrong(tmp_path: Path) -> None:
    line = {"prompt": "p", "calls": [{"tool": "take", "input": {"item": v}} for v in ("cup", "rope")]}
    report = await score(tmp_path, line, [("take", {"item": "cup"}, [])])
    assert (report.share("missed"), report.share("wrong")) == (1, 0)
    narrator = Scripted({"p": [("take", {"item": "cup"}, []), ("go", {}, [])]})
    report = await evaluate(narrator, load_set(tmp_path / "set.jsonl"))
    assert (report.share("missed"), report.share("wrong")) == (0, 1)


@pytest.mark.parametrize(("needs", "kept"), [([0], 1.0), ([], 0.0)])
async def test_order_is_what_dependencies_enforce(tmp_path: Path, needs: list[int], kept: float) -> None:
    line = {
        "prompt": "p",
        "calls": [{"tool": "take", "input": {"item": "cup"}}, {"tool": "go"}],
        "order": [[0, 1]],
    }
    report = await score(tmp_path, line, [("take", {"item": "cup"}, []), ("go", {}, needs)])
    assert report.share("order") == kept


async def test_any_of_several_values_and_any_alternative_will_do(tmp_path: Path) -> None:
    line = {
        "prompt": "p",
        "calls": [{"tool": "go"}],
        "alternatives": [[{"tool": "take", "input": {"item": {"$any": ["mug", "cup"]}}}]],
    }
    report = await score(tmp_path, line, [("take", {"item": "cup"}, [])])
    assert report.share("done") == 1


async def test_refusals_are_counted_where_nothing_fits_and_where_something_did(tmp_path: Path) -> None:
    file = tiny(tmp_path, {"prompt": "fly", "calls": [], "tags": ["nothing"]}, TAKE_CUP)
    report = await evaluate(Scripted({}), load_set(file))
    assert (report.share("refusals"), report.share("falseRefusals"), report.share("exactTools")) == (
        1,
        1,
        0.5,
    )
    assert report.render().splitlines()[1].split()[-3:-1] == ["100%", "100%"]


async def test_whatever_leads_to_no_call_is_right_where_nothing_is_to_be_done(tmp_path: Path) -> None:
    file = tiny(
        tmp_path,
        {"prompt": "do not take the cup", "calls": [], "tags": ["negation"]},
        {"prompt": "take nothing", "calls": []},
        {"prompt": "go, if you like", "calls": [], "alternatives": [[{"tool": "go"}]]},
        {"prompt": "stay or go", "calls": [{"tool": "go"}], "alternatives": [[]]},
    )
    report = await evaluate(
        Scripted({"do not take the cup": [], "take nothing": [("go", {}, [])]}), load_set(file)
    )
    assert (
        report.share("refusals") == 0.5
    )  # of the first two; what may be done or left is neither kind of refusal
    assert math.isnan(report.share("falseRefusals"))
    assert report.render().splitlines()[1].split()[-3:-1] == ["50%", "–"]


class Failing:
    name = "failing"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        raise self.error


@pytest.mark.parametrize("error", [NarratorFailed("connection refused"), PlanRejected(["not JSON"])])
async def test_a_failure_is_neither_valid_nor_a_refusal_and_a_share_of_nothing_is_none(
    tmp_path: Path, error: Exception
) -> None:
    file = tiny(tmp_path, {"prompt": "fly", "calls": [], "tags": ["nothing"]}, TAKE_CUP)
    report = await evaluate(Failing(error), load_set(file))
    assert [outcome.failure for outcome in report.outcomes] == [str(error)] * 2
    assert (report.share("valid"), report.share("exactTools"), report.share("done")) == (0, 0, 0)
    assert (report.share("refusals"), report.share("falseRefusals")) == (0, 0)
    data = report.to_data()
    assert (data["failures"], data["slots"], data["order"]) == (2, None, None)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert "no answer to 2 of 2 prompts" in report.render()
    assert "–" in report.render().splitlines()[1]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [({"calls": [{"tool": "grab"}]}, "calls: no tool 'grab' in the catalogue 'tiny'; there are go, take"),
     ({"calls": [], "alternatives": [[{"tool": "grab"}]]}, "calls: no tool 'grab'"),
     ({"calls": [{"input": {}}]}, r"calls\[0\]\.tool: missing"), ({"calls": "go"}, "calls: expected array"),
     ({"calls": [{"tool": "go"}], "order": [[0, 1]]}, "order: .* is no pair"),
     ({"calls": [{"tool": 5}]}, r"calls\[0\]\.tool: expected string"),
     ({"calls": [{"tool": "go", "input": 5}]}, r"calls\[0\]\.input: expected object"),
     ({"calls": [{"tool": "go", "input": {"x": {"$any": 5}}}]}, r"input 'x': \$any: expected a list"),
     ({"calls": [{"tool": "go"}], "order": [[0, True]]}, r"order\[0\]\[1\]: expected int"),
     ({"calls": [{"tool": "go"}], "order": 5}, "order: expected array"),
     ({"calls": [], "alternatives": 5}, "alternatives: expected array"),
     ({"calls": [], "prompt": 5}, "prompt: expected string, got 5"),
     ({"calls": [], "catalogue": ["tiny"]}, "catalogue: expected string"),
     ({"calls": [], "tags": [[]]}, r"tags\[0\]: expected string"),
     ({"calls": [], "tags": "nothing"}, "tags: expected array")],
)  # fmt: skip
def test_a_set_that_does_not_fit_its_catalogue_names_the_line(
    tmp_path: Path, line: dict[str, Any], complaint: str
) -> None:
    file = tiny(tmp_path, TAKE_CUP, {"prompt": "x", **line})
    with pytest.raises(EvaluationSetInvalid, match=rf"set\.jsonl, line 2: {complaint}"):
        load_set(file)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("{", "line 1: not JSON"), ("[]", "line 1: expected an object"), ('{"prompt": "x"}', "catalogue: missing"),
     ('{"story": "torch", "at": "hall", "prompt": "x", "rules": ["y"]}', "about a story's rules"),
     ('{"catalogue": "none", "prompt": "x", "calls": []}', "no catalogue 'none'")],
)  # fmt: skip
def test_a_broken_set_names_the_line(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(line)
    with pytest.raises(EvaluationSetInvalid, match=complaint):
        load_set(file)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"tools": None}, "tools: missing"), ({"tools": {}}, "tools: expected array"),
     ({"tools": ["take"]}, r"tools\[0\]: expected object"), ({"name": 5}, "name: expected string, got 5"),
     ({"state": []}, "state: expected object"), ({"premise": 5}, "premise: expected string"),
     ({"tools": [{"description": "Take."}]}, r"tools\[0\]\.name: missing"),
     ({"tools": [{"name": "take"}]}, r"tools\[0\]\.description: missing"),
     ({"tools": [{"name": "take", "description": ""}]}, r"tools\[0\]\.description: expected at least 1 char"),
     ({"tools": [{"name": "a", "description": "A.", "parameters": []}]}, "parameters: expected object"),
     ({"tools": [{"name": "a", "description": "A.", "parameters": {"type": 5}}]}, "parameters: no JSON Schema"),
     ({"tools": [{"name": "a", "description": "A.", "parameters": {"properties": {"x": True}}}]}, "each of the prop"),
     ({"tools": [{"name": "a", "description": "A.", "examples": ["x"]}]}, r"examples\[0\]: expected object"),
     ({"tools": [{"name": "a", "description": "A.", "examples": [{"input": 5}]}]}, "input: expected object"),
     ({"tools": [{"name": "a", "description": "A.", "skill": 5}]}, "skill: expected string"),
     ({"tools": [{"name": "a", "description": "A."}] * 2}, r"tools\[1\]\.name: a second tool called 'a'")],
)  # fmt: skip
def test_a_broken_catalogue_is_named_with_the_key(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    file = tiny(tmp_path, {"prompt": "x", "calls": []})
    broken = {key: value for key, value in {**CATALOGUE, **change}.items() if value is not None}
    (tmp_path / "catalogues" / "tiny.json").write_text(json.dumps(broken))
    with pytest.raises(
        EvaluationSetInvalid, match=rf"tiny\.json, line 1: {complaint}|tiny\.json, line 1: tools.*{complaint}"
    ):
        load_set(file)


def test_a_catalogue_as_the_docs_tell_it_is_called_by_its_file(tmp_path: Path) -> None:
    file = tiny(tmp_path, TAKE_CUP)
    bare = {"tools": [{"name": "take", "description": "Take."}]}
    (tmp_path / "catalogues" / "tiny.json").write_text(json.dumps(bare))
    [case] = load_set(file)
    assert (case.catalogue.name, case.catalogue.premise, case.catalogue.state) == ("tiny", "", {})


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tiny(tmp_path, TAKE_CUP)
    (tmp_path / "catalogues" / "tiny.json").write_bytes(b"\xff\xfe")
    with pytest.raises(EvaluationSetInvalid, match=r"tiny\.json, line 1: it is UTF-16"):
        load_set(file)


# --- our own sets --------------------------------------------------------------------------------------


def test_the_sets_are_large_varied_and_do_not_share_prompts() -> None:
    development, held_out = load_set(EVALS / "development.jsonl"), load_set(EVALS / "held-out.jsonl")
    assert len(development) + len(held_out) >= 200
    second = load_set(EVALS / "development-2.jsonl")
    assert not {case.prompt for case in (*development, *second)} & {case.prompt for case in held_out}
    third, strange = load_set(EVALS / "development-3.jsonl"), load_set(EVALS / "held-out-2.jsonl")
    assert not {case.catalogue.name for case in third} & {case.catalogue.name for case in strange}
    assert len({case.catalogue.name for case in (*third, *strange)}) == 18
    for cases in (development, held_out):
        tags = Counter(tag for case in cases for tag in case.tags)
        assert tags["nothing"] >= 0.15 * len(cases)
        assert set(tags) == {"multi", "pronoun", "negation", "typo", "question", "nothing", "near"}
        assert len({case.catalogue.name for case in cases}) >= 3


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("held-out", 10),  # the whole sets are read by `make test-slow`
        pytest.param("development", 1, marks=pytest.mark.slow),
        pytest.param("development-2", 1, marks=pytest.mark.slow),
        pytest.param("held-out", 1, marks=pytest.mark.slow),
    ],
)
async def test_the_local_narrator_reaches_its_targets(name: str, every: int, tmp_path: Path) -> None:
    narrator = LocalNarrator(CachedEmbedder(MiniLM(), tmp_path))
    report = await evaluate(narrator, load_set(EVALS / f"{name}.jsonl")[::every])
    print(report.render())
    assert report.share("valid") == 1.0
    assert report.share("exactTools") >= 0.85
    assert report.share("slots") >= 0.90
    assert report.share("order") >= 0.90
    assert report.share("refusals") >= 0.90
    assert report.share("falseRefusals") <= 0.10


@pytest.mark.slow
async def test_on_catalogues_of_others_it_does_not_fall_behind(tmp_path: Path) -> None:
    """Half of a set that only its totals are read of; `docs/narrators.md` has the whole."""
    narrator = LocalNarrator(CachedEmbedder(MiniLM(), tmp_path))
    report = await evaluate(narrator, load_set(EVALS / "held-out-2.jsonl")[::2])
    assert report.share("valid") == 1.0
    assert report.share("done") + report.share("offered") >= 0.80  # a whole plan, or asked back about it
    assert report.share("wrong") <= 0.10
    assert report.share("slots") >= 0.90
    assert report.share("refusals") >= 0.90


def test_a_set_without_prompts_is_an_error_and_not_a_perfect_score(tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text("\n\n", encoding="utf-8")
    with pytest.raises(EvaluationSetInvalid, match=r"empty\.jsonl: no prompts"):
        load_set(file)
