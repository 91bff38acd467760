"""Plan JSON (000 §13.3) and what makes a plan unusable."""

import json

import pytest

from narratoria.errors import PlanRejected
from narratoria.plan import PlanDocument, find_cycle, levels

SAMPLE = {
    "requestId": "550e8400-e29b-41d4-a716-446655440000",
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


def plan(*calls, **fields):
    return json.dumps({"requestId": "p", "tools": list(calls), **fields})


def call(tool_id, *dependencies, **fields):
    return {"toolId": tool_id, "toolPath": "noop", "dependencies": list(dependencies), **fields}


def problems(text):
    with pytest.raises(PlanRejected) as caught:
        PlanDocument.from_json(text)
    return list(caught.value.problems)


def test_the_sample_of_14_3_survives_a_round_trip():
    assert json.loads(PlanDocument.from_json(json.dumps(SAMPLE)).to_json()) == SAMPLE


def test_every_default_of_13_3():
    document = PlanDocument.from_json(
        json.dumps({"requestId": "p", "tools": [{"toolId": "a", "toolPath": "x"}]})
    )
    (one,) = document.tools
    assert (one.input, one.dependencies, one.required, one.async_) == ({}, [], True, False)
    assert (one.retry_policy.max_retries, one.retry_policy.backoff_ms) == (3, 100)
    assert (document.narrative, document.parallel, document.disabled_skills) == (None, False, [])
    assert document.metadata.generation_attempt == 1 and document.metadata.parent_plan_id is None


def test_unknown_fields_are_ignored_at_every_level():
    text = plan({**call("a"), "colour": 1, "retryPolicy": {"x": 1}}, extra=1, metadata={"y": 2})
    assert PlanDocument.from_json(text).tools[0].tool_id == "a"


def test_an_empty_plan_only_narrates():
    assert PlanDocument.from_json(plan(narrative="Nothing happens.")).tools == []


@pytest.mark.parametrize("text", ["", "{", "[1", '{"requestId": NaN}', "\ufeff{}", "[" * 100_000])
def test_what_is_not_json_is_rejected(text):
    assert problems(text)[0].startswith("$: not JSON")


@pytest.mark.parametrize("text", ["[]", "3", "null", '"plan"'])
def test_a_plan_that_is_not_an_object_is_rejected(text):
    assert problems(text) == [f"$: a plan is a JSON object, got {_name(text)}"]


def _name(text):
    return {"[": "array", "3": "integer", "n": "null", '"': "string"}[text[0]]


def test_every_problem_is_listed_with_its_path():
    text = json.dumps(
        {
            "requestId": 5,
            "tools": [
                {"toolId": "", "toolPath": "x"},
                {"toolPath": 1, "dependencies": [1], "required": "yes"},
                "nonsense",
                {"toolId": "d", "toolPath": "x", "retryPolicy": {"maxRetries": -1, "backoffMs": 1.5}},
            ],
            "parallel": 1,
            "metadata": {"generationAttempt": 0},
        }
    )
    found = problems(text)
    for expected in (
        "$.requestId: expected string, got integer",
        "$.tools[0].toolId: must not be empty",
        "$.tools[1].toolId: missing",
        "$.tools[1].toolPath: expected string, got integer",
        "$.tools[1].dependencies[0]: expected string, got integer",
        "$.tools[1].required: expected boolean, got string",
        "$.tools[2]: expected object, got string",
        "$.tools[3].retryPolicy.maxRetries: -1 is outside 0..100",
        "$.tools[3].retryPolicy.backoffMs: expected integer, got number",
        "$.parallel: expected boolean, got integer",
        "$.metadata.generationAttempt: 0 is outside 1..1000000",
    ):
        assert expected in found


@pytest.mark.parametrize("retries", [-1, 1_000_000_000, True, 3.0, "3"])
def test_max_retries_out_of_bounds_is_rejected(retries):
    (problem,) = problems(plan(call("a", retryPolicy={"maxRetries": retries})))
    assert problem.startswith("$.tools[0].retryPolicy.maxRetries:")


def test_duplicate_ids_name_the_first_use():
    assert problems(plan(call("a"), call("b"), call("a"))) == [
        "$.tools[2].toolId: 'a' is already used by tools[0]"
    ]


def test_an_unknown_dependency_is_named():
    assert problems(plan(call("a", "ghost"))) == [
        "$.tools[0].dependencies[0]: no call has the toolId 'ghost'"
    ]


def test_13_4_rule_1_a_cycle_is_rejected_and_its_path_shown():
    text = plan(call("a", "c"), call("b", "a"), call("c", "b"), call("d"))
    assert problems(text) == ["$.tools: circular dependency: a → c → b → a"]


def test_13_4_rule_1_a_call_that_depends_on_itself_is_a_cycle():
    assert problems(plan(call("a", "a"))) == ["$.tools: circular dependency: a → a"]


def test_a_reference_makes_a_dependency_and_an_unknown_one_is_a_problem():
    text = plan(call("a"), call("b", input={"deep": [{"$from": "a", "path": "x.y"}]}))
    assert PlanDocument.from_json(text).tools[1].all_dependencies == ["a"]
    found = problems(plan(call("b", input={"deep": [{"$from": "ghost"}]})))
    assert found == ["$.tools[0].input.deep[0].$from: no call has the toolId 'ghost'"]


def test_references_can_close_a_cycle():
    text = plan(call("a", input={"x": {"$from": "b"}}), call("b", "a"))
    assert "circular" in problems(text)[0]


def test_ten_thousand_calls_in_a_chain_are_checked_without_recursion():
    chain = [call("0"), *(call(str(n), str(n - 1)) for n in range(1, 10_000))]
    document = PlanDocument.from_json(plan(*chain))
    assert len(levels(document)) == 10_000
    assert find_cycle({str(n): [str((n + 1) % 10_000)] for n in range(10_000)}) is not None


def test_levels_group_what_could_run_together():
    document = PlanDocument.from_json(
        plan(call("a"), call("b"), call("c", "a", "b"), call("d", "a"), call("e", "c"))
    )
    assert levels(document) == [["a", "b"], ["c", "d"], ["e"]] or levels(document) == [
        ["a", "b"],
        ["d", "c"],
        ["e"],
    ]


def test_one_reading_tells_all_that_is_wrong_shape_and_graph():
    found = problems(plan({"toolId": "", "toolPath": "x"}, call("a"), call("a"), call("b", "ghost")))
    assert "$.tools[0].toolId: must not be empty" in found
    assert "$.tools[2].toolId: 'a' is already used by tools[1]" in found
    assert "$.tools[3].dependencies[0]: no call has the toolId 'ghost'" in found


def test_every_cycle_is_told():
    found = problems(plan(call("a", "b"), call("b", "a"), call("c", "d"), call("d", "c")))
    assert len(found) == 2 and all("circular" in one for one in found)


@pytest.mark.parametrize(
    "reference", [{"$from": 5}, {"$from": "a", "path": 5}, {"$from": "a", "path": ["x"]}]
)
def test_a_reference_of_the_wrong_type_is_a_problem(reference):
    (found,) = problems(plan(call("a"), call("b", input={"x": reference})))
    assert found.startswith("$.tools[1].input.x.") and "expected string" in found
