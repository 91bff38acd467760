"""References between the calls of a plan: bounded, however many there are and whatever they lead to."""

import json

import pytest

from narratoria import PlanDocument, PlanExecutor, Session, Tool, ToolRegistry, ToolResult

pytestmark = pytest.mark.anyio


async def _patch(args, *, context):
    context.patch(args.get("patch", {}))
    if "long" in args:
        context.patch({"s": "x" * args["long"]})
    return ToolResult.ok(None)


PATCH = Tool("t", "Patches the state.", _patch, parameters={"type": "object", "additionalProperties": True})


def call(tool_id, **fields):
    return {"toolId": tool_id, "toolPath": "t", "retryPolicy": {"maxRetries": 0}, "input": fields}


async def last(*calls):
    plan = PlanDocument.from_json(json.dumps({"requestId": "x", "tools": calls}))
    result = await PlanExecutor(ToolRegistry([PATCH]), Session()).execute(plan)
    return result.tool_results[-1]


async def test_of_many_references_that_lead_nowhere_the_first_are_told():
    b = await last(call("a", patch={"v": 1}), call("b", q=[{"$from": "a", "path": "n"}] * 20_000))
    assert b.state == "failed" and b.error_code == "INVALID_ARGUMENTS"
    assert len(b.suggestions) == 21 and b.suggestions[-1] == "and more"
    assert "input.q[0]: there is no 'n' in the output of 'a', which has 'v'" in b.error


@pytest.mark.parametrize("long", ["key", "path", "list", "source", "place"])
async def test_what_a_reference_that_leads_nowhere_quotes_is_cut(long):
    big = "k" * 900_000
    source = big[:256] if long == "source" else "a"  # the longest that a plan may have
    patch = {c + big: 1 for c in "abcdefgh"} if long == "key" else {"v": 1}
    path = {"path": big, "list": [big, 0]}.get(long, "n")
    where = big if long == "place" else "q"
    b = await last(call(source, patch=patch), call("b", **{where: {"$from": source, "path": path}}))
    assert b.state == "failed" and "there is no" in b.error
    assert len(b.error) < 1_000 and len(b.suggestions[0]) < 1_000


@pytest.mark.parametrize("part", ["text", "keys", "digits"])
async def test_one_long_output_that_is_referred_to_again_and_again_fails_at_a_limit(part):
    big = "x" * 1_000_000
    patch = {"text": {"s": big}, "keys": {"s": {big: 1}}, "digits": {"s": [10**4_000] * 250}}[part]
    refs = [{"$from": "a", "path": "s"}] * 300
    b = await last(call("a", patch=patch), call("b", q=refs))
    assert b.state == "failed" and b.error_code == "INVALID_ARGUMENTS"
    assert "more than 16,000,000 characters; take the part that is needed with `path`" in b.error
    few = await last(call("a", patch=patch), call("b", q=refs[:3]))
    assert few.ok


async def test_an_output_that_is_no_json_is_not_handed_on():
    async def opened(args, *, context):
        return ToolResult.ok(object())

    opens = Tool("opens", "Opens something.", opened, parameters={"type": "object"})
    tools = [
        call("a") | {"toolPath": "opens"},
        call("b", v={"$from": "a"}) | {"required": False},
        call("c", v={"$from": "a", "path": "x", "default": 1}),
    ]
    plan = PlanDocument.from_json(json.dumps({"requestId": "x", "tools": tools}))
    result = await PlanExecutor(ToolRegistry([PATCH, opens]), Session()).execute(plan)
    assert [one.state for one in result.tool_results] == ["completed", "failed", "failed"]
    assert "the output of 'a' cannot be handed on: it returned object" in result.result_of("b").error
