"""Plan JSON (000 §13.3) and what makes a plan unusable."""

import json

import pytest

from narratoria.errors import PlanRejected
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry, levels
from narratoria.run.plan_problems import find_cycle, unknown_keys

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


@pytest.mark.parametrize("text", ["", "{", "[1", '{"requestId": NaN}', "\ufeff{}"])
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


@pytest.mark.parametrize("retries", [-1, 1_000_000_000, True, 3.5, 1e300, "3"])
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
    "reference", [{"$from": 5}, {"$from": "a", "path": 5}, {"$from": "a", "path": [None]}]
)
def test_a_reference_of_the_wrong_type_is_a_problem(reference):
    (found,) = problems(plan(call("a"), call("b", input={"x": reference})))
    assert found.startswith("$.tools[1].input.x.") and "expected string" in found


def test_an_unknown_key_beside_a_reference_is_a_problem_that_tells_the_way_out():
    (found,) = problems(plan(call("a"), call("b", input={"x": {"$from": "a", "pth": "y"}})))
    assert found.startswith(
        "$.tools[1].input.x.pth: unknown key; beside `$from` may stand `path` and `default`."
    )
    assert '{"$literal": …}' in found
    (found,) = problems(plan(call("b", input={"x": {"$literal": 1, "y": 2}})))
    assert found.startswith("$.tools[0].input.x.y: unknown key; beside `$literal` may stand nothing.")


def test_what_stands_in_a_literal_or_a_default_is_no_reference():
    document = PlanDocument.from_json(
        plan(
            call("a"),
            call("b", input={"x": {"$literal": {"$from": "ghost", "any": 1}}}),
            call("c", input={"x": {"$from": "a", "path": "y", "default": {"$from": "ghost", "any": 1}}}),
        )
    )
    assert [one.all_dependencies for one in document.tools] == [[], [], ["a"]]


def test_whole_numbers_may_be_written_with_a_point():
    text = plan(
        call("a", retryPolicy={"maxRetries": 1.0, "backoffMs": 2e2}), metadata={"generationAttempt": 2.0}
    )
    document = PlanDocument.from_json(text)
    assert document.tools[0].retry_policy == PlanRetry(max_retries=1, backoff_ms=200)
    assert document.metadata.generation_attempt == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"requestId": "p", "tools": [], "tools": []}',
        '{"requestId": "p", "tools": [{"toolId": "a", "toolPath": "x", "input": {"deep": [{"k": 1, "k": 1}]}}]}',
        '{"requestId": "p", "tools": [], "unknown": {"k": 1, "\\u006b": 2}}',
    ],
)
def test_a_key_that_appears_twice_is_refused(text):
    (found,) = problems(text)
    assert "appears twice in one object" in found


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("levels_below", [100, 493, 5_000, 50_000])
@pytest.mark.parametrize(
    "wrap", [lambda x: x, lambda x: {"$literal": x}, lambda x: {"$from": "a", "default": x}]
)
def test_an_input_that_is_nested_too_deeply_is_rejected_however_it_is_made(levels_below, wrap):
    deep = {"x": wrap(nested(levels_below))}
    document = {"requestId": "p", "tools": [call("a"), call("b", input=deep)]}
    with pytest.raises(PlanRejected) as rejected:
        PlanDocument.from_data(document)
    assert rejected.value.problems == ("$.tools[1].input: nested more than 100 deep",)
    assert rejected.value.plan_id == "p"
    made = PlanDocument(
        tools=[PlannedCall(tool_id="a", tool_path="x"), PlannedCall(tool_id="b", tool_path="x", input=deep)]
    )
    with pytest.raises(PlanRejected, match="nested more than 100 deep"):
        made.check()


def test_an_input_of_a_hundred_levels_is_accepted():
    assert PlanDocument.from_data({"requestId": "p", "tools": [call("a", input={"x": nested(99)})]})


@pytest.mark.parametrize("value", [{1, 2}, object(), b"x", {5: 1}, [{"x": {1}}]])
def test_an_input_that_is_not_json_data_is_rejected(value):
    made = PlanDocument(tools=[PlannedCall(tool_id="a", tool_path="x", input={"v": value})])
    with pytest.raises(PlanRejected, match=r"\$\.tools\[0\]\.input\.v"):
        made.check()


def test_a_plan_has_ten_thousand_calls_at_most():
    assert len(PlanDocument.from_json(plan(*(call(str(n)) for n in range(10_000)))).tools) == 10_000
    (found,) = problems(plan(*(call(str(n)) for n in range(100_000))))
    assert found == "$.tools: 100,000 calls; a plan has at most 10,000. Make several plans of it"


def test_of_a_thousand_problems_the_first_are_told():
    assert len(problems(plan(*({} for _ in range(5_000))))) == 200


BIG = "x" * 900_000


@pytest.mark.parametrize(
    "calls",
    [
        [call("a", BIG)],
        [call(BIG), call(BIG)],
        [call(BIG, BIG)],
        [call("a", input={"q": {"$from": BIG}})],
        [call("a"), call("b", input={"q": {"$from": "a", BIG: 1}})],
        [call("a", input={BIG: {"$from": "z"}})],
        [call("a", retryPolicy={"maxRetries": 10**4_000})],
        [call(f"{n:0500}", f"{(n + 1) % 1_000:0500}") for n in range(1_000)],
    ],
    ids=["dependency", "same id", "cycle", "source", "key beside", "place", "number", "long cycle"],
)
def test_a_problem_does_not_quote_long_text_whole(calls):
    found = problems(plan(*calls))
    assert found and all(len(one) < 4_000 for one in found)


def test_a_key_that_appears_twice_or_that_is_unknown_is_cut():
    (found,) = problems(f'{{"{BIG}": 1, "{BIG}": 2}}')
    assert "appears twice" in found and len(found) < 200
    assert all(len(one) < 200 for one in unknown_keys({BIG: 1}))


def test_unknown_keys_are_told_with_the_key_that_was_perhaps_meant():
    document = {
        "requestId": "p",
        "paralel": True,
        "x-note": 1,
        "metadata": {"generation_attempt": 1},
        "tools": [{"toolId": "a", "toolPath": "x", "dependsOn": ["b"], "retryPolicy": {"maxRetry": 1}}],
    }
    assert unknown_keys(document) == [
        "$.paralel: unknown key; did you mean 'parallel'? As it stands it is ignored",
        "$.x-note: unknown key; it is ignored",
        "$.metadata.generation_attempt: unknown key; did you mean 'generationAttempt'? As it stands it is ignored",
        "$.tools[0].dependsOn: unknown key; did you mean 'dependencies'? As it stands it is ignored",
        "$.tools[0].retryPolicy.maxRetry: unknown key; did you mean 'maxRetries'? As it stands it is ignored",
    ]


def test_a_missing_key_that_is_there_under_another_name_is_found():
    (found,) = problems(plan({"tool_id": "a", "toolPath": "x"}))
    assert found == "$.tools[0].toolId: missing; was it meant by 'tool_id'?"


@pytest.mark.parametrize(
    ("field", "longest"), [("requestId", 256), ("narrative", 100_000), ("toolId", 256), ("toolPath", 4_096)]
)
def test_texts_of_a_plan_have_a_longest_length(field, longest):
    def made(length):
        text = "x" * length
        one = {"toolId": "a", "toolPath": "t"} | ({field: text} if field.startswith("tool") else {})
        return {"requestId": "p", "tools": [one]} | ({} if field.startswith("tool") else {field: text})

    PlanDocument.from_data(made(longest))
    (found,) = problems(json.dumps(made(longest + 1)))
    assert found.endswith(f".{field}: {longest + 1:,} characters; at most {longest:,}")


def test_a_plan_as_a_whole_has_a_largest_size():
    part = "x" * 1_000_000
    large = plan(*(call(str(n), input={"text": part}) for n in range(17)))
    for read in (lambda: PlanDocument.from_json(large), lambda: PlanDocument.from_data(json.loads(large))):
        with pytest.raises(
            PlanRejected, match=r"the plan has 17,0.* bytes as JSON, at most 16,777,216; make several"
        ):
            read()


def test_a_text_of_two_million_brackets_is_nested_too_deeply():
    assert problems("[" * 2_000_000) == ["$: nested too deeply; an input has at most 100 levels"]


@pytest.mark.parametrize(
    ("place", "where"),
    [
        (lambda deep: {"x": deep}, "$.x"),
        (lambda deep: {"metadata": {"x": deep}}, "$.metadata.x"),
        (lambda deep: {"tools": [{**call("a"), "": deep}]}, "$.tools[0].''"),
        (lambda deep: {"tools": [{**call("a"), "retryPolicy": {"x": deep}}]}, "$.tools[0].retryPolicy.x"),
    ],
)
def test_what_nests_too_deeply_under_an_unknown_key_is_rejected_too(place, where):
    document = {"requestId": "p", "tools": []}
    with pytest.raises(PlanRejected) as rejected:
        PlanDocument.from_data(document | place(nested(900)))
    assert rejected.value.problems == (f"{where}: nested more than 100 deep",)
    assert PlanDocument.from_data(document | place(nested(100)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{"requestId":"p","tools":[],"narrative":"caf\xc3"}', "it is not UTF-8 (byte 44)"),
        (b'{"requestId":"p","tools":[],"narrative":"caf\xc3', "it is not UTF-8 (byte 44)"),
        (b'{"requestId":"p","tools":[],"narrative":"caf\xe9 noir"}', "it is not UTF-8 (byte 44)"),
        (r'{"requestId":"p","tools":[],"narrative":"\ud800"}', "half a character"),
        ('{"requestId":"p","tools":[],"narrative":"\ud800"}', "half a character"),
        ('{"requestId":"p","tools":[', "truncated"),
    ],
)
def test_half_a_character_in_a_plan_is_called_that(text, told):
    (found,) = problems(text)
    assert found.startswith("$: not JSON: ") and told in found, found


def test_an_empty_key_of_a_plan_is_quoted():
    assert unknown_keys({"requestId": "p", "tools": [], "": 1}) == ["$.'': unknown key; it is ignored"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ({"tool_id": "\ud800"}, "$.tools[0]: not JSON: it holds half a character"),
        ({"input": {"v": "\ud800"}}, "$.tools[0]: not JSON: it holds half a character"),
        ({"input": {"v": 10**5000}}, "$.tools[0]: not JSON: ValueError"),
        ({"tool_id": 5}, "$.tools[0].toolId: expected string, got integer"),
        ({"tool_path": None}, "$.tools[0].toolPath: expected string, got null"),
        ({"dependencies": "a"}, "$.tools[0].dependencies: expected array, got string"),
        ({"retry_policy": None}, "$.tools[0].retryPolicy: expected object, got null"),
    ],
)
def test_a_plan_made_in_python_is_rejected_for_what_json_cannot_have(call, told):
    plan = PlanDocument(request_id="p", tools=[PlannedCall(**{"tool_id": "a", "tool_path": "t", **call})])
    with pytest.raises(PlanRejected) as rejected:
        plan.checked()
    (found,) = rejected.value.problems
    assert found.startswith(told)


def test_a_plan_named_by_half_a_character_is_rejected():
    with pytest.raises(PlanRejected, match="half a character"):
        PlanDocument(request_id="\ud800").checked()
