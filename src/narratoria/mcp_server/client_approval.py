"""Approvals over MCP: the person at the client is asked by elicitation, where the client can do that."""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError

from narratoria.errors import ArgumentsInvalid
from narratoria.mcp_server.exchange import ANSWER_SECONDS, ClientCannot, current
from narratoria.session.approvals import NOBODY, ApprovalAnswer, ApprovalRequest
from narratoria.strict_json import decode

BY: Final = "mcp client"
MOST_TIMES: Final = 3
"""Times that a person is asked for an input that the tool accepts."""


async def ask_client(request: ApprovalRequest) -> ApprovalAnswer:
    """Ask the person at the client of the call that runs."""
    exchange = current()
    if exchange is None or not exchange.client.can("elicitation"):
        return ApprovalAnswer.refuse(
            "nobody can be asked: the client did not declare the capability 'elicitation'", by=NOBODY
        )
    shown, problem = msgspec.json.encode(request.input).decode(), ""
    for _ in range(MOST_TIMES):
        try:
            reply = await exchange.client.elicit(
                f"{problem}May {request.tool.name} be called? {request.reason}. Its input: {shown}",
                _form(shown),
            )
        except TimeoutError:
            return ApprovalAnswer.refuse(f"nobody answered within {ANSWER_SECONDS:g} s", by=NOBODY)
        except (MCPError, ClientCannot) as error:
            return ApprovalAnswer.refuse(f"nobody could be asked: {error}", by=NOBODY)
        try:
            return _answer(request, reply, shown)
        except (ArgumentsInvalid, ValueError, RecursionError) as error:
            problem = f"This input cannot be used: {error}. "
    return ApprovalAnswer.refuse(problem.strip(), by=NOBODY)


def _form(shown: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": ["approve", "refuse"]},
            "input": {
                "type": "string",
                "title": "Input",
                "description": "As JSON. Change it to call the tool with another input.",
                "default": shown,
            },
            "reason": {"type": "string", "title": "Reason", "description": "Of a refusal."},
        },
        "required": ["decision"],
    }


def _answer(request: ApprovalRequest, reply: types.ElicitResult, shown: str) -> ApprovalAnswer:
    given: dict[str, Any] = dict(reply.content or {})
    reason = str(given.get("reason") or "").strip()
    if reply.action != "accept" or given.get("decision") != "approve":
        without = "declined" if reply.action == "decline" else "left without an answer"
        return ApprovalAnswer.refuse(reason or ("" if reply.action == "accept" else without), by=BY)
    text = str(given.get("input") or shown)
    edited = decode(text)
    if not isinstance(edited, dict):
        raise ValueError("it is not an object")
    if edited == request.input:
        return ApprovalAnswer.approve(by=BY)
    request.check(edited)
    return ApprovalAnswer.edit(edited, by=BY)
