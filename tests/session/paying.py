"""Plays one turn whose call needs approval, as a process of its own, so that a test can kill it: STORE MODE PROMPT.

With `ask`, the question is printed and nobody answers. With `answer`, it is approved, and the tool hangs. With
`finish`, it is printed and approved, and the turn ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narratoria import PlanDocument, PlannedCall, Session, ToolRegistry, ToolResult, take_turn, tool
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.resume import open_turn
from narratoria.session.approvals import ApprovalAnswer, ApprovalRequest
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import SessionUnknown


@dataclass(frozen=True)
class Payment:
    to: str
    amount: int = 1


class Payer:
    name = "payer"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        path = "around" if "inside" in request.prompt else "pay"
        return PlanDocument(tools=[PlannedCall(tool_id="a", tool_path=path, input={"to": "ada"})])


async def main(place: str, mode: str, prompt: str) -> None:
    @tool(description="Pay somebody.", approval="always")
    async def pay(params: Payment, *, context: Any) -> ToolResult[int]:
        print(f"paying {params.amount}", flush=True)
        if mode == "answer":
            await asyncio.sleep(600)
        context.patch({"paid": params.amount})
        return ToolResult.ok(params.amount)

    @tool(description="Pay, as a part.")
    async def around(params: Payment, *, context: Any) -> ToolResult[int]:
        result: ToolResult[int] = await context.call("pay", {"to": params.to})
        return result

    async def ask(request: ApprovalRequest) -> ApprovalAnswer:
        print(f"question {request.id} {request.input}", flush=True)
        if mode == "ask":
            await asyncio.sleep(600)
        return ApprovalAnswer.edit({"to": "ada", "amount": 7}, by="a test")

    with contextlib.closing(SqliteStore(Path(place))) as store:
        try:
            journal = await asyncio.to_thread(store.open, "game")
        except SessionUnknown:
            journal = await asyncio.to_thread(store.create, Session("game"))
        session = journal.session
        session.approvals.approver = ask
        left = open_turn(journal)
        registry = ToolRegistry([pay, around])
        await take_turn(session, prompt, narrator=Payer(), registry=registry, resume=left)
        print(f"state {session.snapshot()}", flush=True)
        await journal.close()


asyncio.run(main(*sys.argv[1:]))
