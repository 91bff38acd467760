"""Approvals over MCP: asked by elicitation where the client can, refused clearly where it cannot."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest

DONE = '{"version":"0","type":"done","ok":true,"summary":"Paid."}'
PATCH = '{"version":"0","type":"state_patch","patch":{"paid":true}}'
PARAMETERS = {"type": "object", "properties": {"to": {"type": "string"}}, "additionalProperties": False}


@pytest.fixture
def paying(workshop: Any) -> Any:
    workshop.tool("pay", PATCH, DONE, approval="always", parameters=PARAMETERS)
    return workshop


def answering(*replies: dict[str, Any], asked: list[Any] | None = None) -> Any:
    left = list(replies)

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        if asked is not None:
            asked.append(params)
        return types.ElicitResult(**left.pop(0))

    return answer


def accept(**content: str) -> dict[str, Any]:
    return {"action": "accept", "content": content}


async def test_the_person_at_the_client_approves(paying: Any, any_host: Any) -> None:
    asked: list[Any] = []
    callback = answering(accept(decision="approve"), asked=asked)
    async with any_host(elicitation_callback=callback) as client:
        result = await client.call_tool("pay", {"to": "ada"})
        assert not result.is_error and result.structured_content == {"paid": True}
        assert "May pay be called? it always asks first" in asked[0].message
        assert asked[0].requested_schema["properties"]["input"]["default"] == '{"to":"ada"}'
        await client.call_tool("undo", {})
        state = await client.read_resource("narratoria://state")
        assert json.loads(state.contents[0].text) == {}
        assert len(asked) == 1  # an undo asks nobody


async def test_an_edited_input_is_asked_for_until_it_fits(paying: Any, host: Any) -> None:
    asked: list[Any] = []
    replies = [accept(decision="approve", input=text) for text in ("five", '{"to": 5}', '{"to": "bo"}')]
    async with host(elicitation_callback=answering(*replies, asked=asked)) as client:
        assert not (await client.call_tool("pay", {"to": "ada"})).is_error
    assert len(asked) == 3 and "cannot be used" in asked[2].message


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (accept(decision="refuse", reason="too dear"), "too dear"),
        ({"action": "decline"}, "declined"),
        ({"action": "cancel"}, "left without an answer"),
        (
            None,
            "pay: not approved: nobody can be asked: the client did not declare the capability 'elicitation'",
        ),
    ],
)
async def test_a_refusal_tells_the_model_why(paying: Any, host: Any, reply: Any, told: str) -> None:
    options = {} if reply is None else {"elicitation_callback": answering(reply)}
    async with host(**options) as client:
        result = await client.call_tool("pay", {"to": "ada"})
        assert result.is_error and told in result.content[0].text
        assert result.meta["narratoria/error"]["code"] == "REFUSED"
