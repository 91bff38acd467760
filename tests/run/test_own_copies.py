"""A handler may change what it is given: nobody else sees it, and another attempt gets it as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from narratoria.kinds.function import tool
from narratoria.run.middleware import Proceed, ToolCall
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.approvals import ApprovalAnswer, ApprovalRequest
from narratoria.tools.retry import RetryPolicy, no_waiting
from narratoria.tools.schema.copying import copied
from narratoria.tools.tool import Tool, ToolContext, ToolResult


@dataclass
class Free:
    items: list[Any]


@dataclass
class Named:
    items: list[list[int]]


@tool(description="Puts a list into the state.", name="gives")
async def gives(*, context: ToolContext) -> ToolResult[None]:
    context.patch({"bag": {"items": [[1], [2]]}})
    return ToolResult.ok(None)


class Greedy:
    """Handlers that change what they are given and fail, and what each of their attempts saw."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def tool(self, kind: str) -> Tool[Any, Any]:
        if kind == "schema":

            @tool(
                description="Eats.", name="eats", parameters={"type": "object", "properties": {"items": {}}}
            )
            async def eats(params: dict[str, Any], *, context: ToolContext) -> ToolResult[None]:
                return self.eat(params["items"])

        elif kind == "free":

            @tool(description="Eats.", name="eats")
            async def eats(params: Free, *, context: ToolContext) -> ToolResult[None]:
                return self.eat(params.items)

        elif kind == "named":

            @tool(description="Eats.", name="eats")
            async def eats(params: Named, *, context: ToolContext) -> ToolResult[None]:
                return self.eat(params.items)

        else:

            @tool(description="Eats.", name="eats", parameters={"type": "object"})
            async def eats(params: dict[str, Any], *, context: ToolContext) -> ToolResult[None]:
                assert context.dependencies is context.dependencies is not None
                return self.eat(context.dependencies["g"]["bag"]["items"])

        return eats

    def eat(self, items: list[Any]) -> ToolResult[None]:
        self.seen.append([list(one) for one in items])
        items[0].append("bitten")
        items.pop()
        return ToolResult.error("still hungry")


@pytest.mark.parametrize("kind", ["schema", "free", "named", "dependencies"])
async def test_a_failing_call_changes_neither_state_nor_outputs_nor_its_next_attempt(kind: str) -> None:
    greedy = Greedy()
    session = Session()
    given = {} if kind == "dependencies" else {"items": {"$from": "g", "path": "bag.items"}}
    eats = {"toolId": "e", "toolPath": "eats", "input": given, "dependencies": ["g"], "required": False}
    document = PlanDocument.from_data(
        {"requestId": "p", "tools": [{"toolId": "g", "toolPath": "gives"}, eats, {**eats, "toolId": "f"}]}
    )
    with no_waiting():
        result = await PlanExecutor(ToolRegistry([gives, greedy.tool(kind)]), session).execute(document)
    assert greedy.seen == [[[1], [2]]] * 8
    assert session.state == {"bag": {"items": [[1], [2]]}}
    assert result.result_of("g").output == {"bag": {"items": [[1], [2]]}}


@pytest.mark.parametrize("kind", ["schema", "free", "named"])
async def test_arguments_of_a_program_stay_as_they_are(kind: str) -> None:
    greedy = Greedy()
    given = {"items": [[1], [2]]}
    eats = greedy.tool(kind)
    eats.retry = RetryPolicy(max_retries=2)
    with no_waiting():
        result = await ToolRegistry([eats]).execute("eats", given)
    assert result.message == "still hungry"
    assert given == {"items": [[1], [2]]} and greedy.seen == [[[1], [2]]] * 3


async def test_the_output_of_a_call_is_not_the_state_itself() -> None:
    session = Session()
    document = PlanDocument.from_data({"requestId": "p", "tools": [{"toolId": "g", "toolPath": "gives"}]})
    result = await PlanExecutor(ToolRegistry([gives]), session).execute(document)
    result.result_of("g").output["bag"]["items"].clear()
    assert session.state == {"bag": {"items": [[1], [2]]}}


def test_what_arguments_hold_twice_is_not_copied_twice() -> None:
    """Each level holds the one below twice: 2^40 lists, if they were taken one by one."""
    knot: list[Any] = []
    for _ in range(40):
        knot = [knot, knot]
    assert copied(knot) is not knot


async def test_middleware_and_policies_may_change_their_arguments_and_the_caller_keeps_its_own() -> None:
    seen: list[Any] = []

    async def spoils(call: ToolCall, proceed: Proceed) -> ToolResult[Any]:
        assert isinstance(call.args, dict)
        call.args["items"].append([3])
        return await proceed(call)

    def judges(call: ToolCall) -> bool:
        assert isinstance(call.args, dict)
        call.args["items"].clear()
        return True

    async def approves(question: ApprovalRequest) -> ApprovalAnswer:
        question.input["items"].clear()
        return ApprovalAnswer.approve()

    @tool(description="Takes a list.", name="takes")
    async def takes(params: Free, *, context: ToolContext) -> ToolResult[None]:
        seen.append(params.items)
        return ToolResult.ok(None)

    given = {"items": [[1]]}
    session = Session()
    session.approvals.approver = approves
    result = await ToolRegistry([takes], around=[spoils], approval=judges).execute(
        "takes", given, session=session
    )
    assert result.success, result.message
    assert given == {"items": [[1]]}
    assert seen == [[[1], [3]]]


async def test_arguments_that_hold_themselves_are_refused_also_with_middleware() -> None:
    @tool(description="Takes a list.", name="takes")
    async def takes(params: Free, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult.ok(None)

    async def passes(call: ToolCall, proceed: Proceed) -> ToolResult[Any]:
        return await proceed(call)

    knot: list[Any] = []
    knot.append(knot)
    result = await ToolRegistry([takes], around=[passes]).execute("takes", {"items": knot})
    plain = await ToolRegistry([takes]).execute("takes", {"items": knot})
    assert (result.success, result.message) == (plain.success, plain.message)
