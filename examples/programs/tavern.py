"""A program with Narratoria in it: tools of three kinds, a narrator of its own, a journal, and undo.

Run it in an empty folder: `python …/examples/programs/tavern.py`. It keeps its session in `tavern/`, and the debts of
the guests in `debts.txt`, where undo strikes them out again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from narratoria import (
    PlanDocument,
    PlannedCall,
    Session,
    ToolContext,
    ToolRegistry,
    ToolResult,
    process_tool,
    take_turn,
    tool,
)
from narratoria.events import CallEmitted, Log
from narratoria.narrator.protocol import NarratorRequest, NoMatch
from narratoria.play.history import undo
from narratoria.session import Record
from narratoria.store.sqlite import SqliteStore

TOOLS = Path(__file__).parent.parent / "tools"
PRICES = {"ale": 2, "wine": 5}


@tool
async def price(drink: str, cups: int = 1) -> int:
    """Tell what some cups of a drink cost."""
    return PRICES[drink] * cups


@dataclass(frozen=True)
class Pour:
    guest: str
    drink: str = "ale"


@tool(description="Pour a drink for a guest.")
async def pour(params: Pour, *, context: ToolContext) -> ToolResult[None]:
    bill = await context.call(price, {"drink": params.drink})  # one tool may call another
    if bill.value is None:
        return ToolResult.error(f"nobody knows what {params.drink} costs")
    context.log(f"pouring {params.drink} for {params.guest}")
    context.patch({"guests": {params.guest: {"drinks": params.drink, "owes": bill.value}}})
    return ToolResult.ok(None, message=f"{params.guest} gets {params.drink}.")


class Innkeeper:
    """A narrator: it makes a plan of what the guest says."""

    name = "innkeeper"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        drink = next((one for one in PRICES if one in request.prompt), None)
        if drink is None:
            raise NoMatch("the innkeeper talks about drinks only")
        debt = {"ledger": "debts.txt", "line": f"Ada: {drink}"}
        return PlanDocument(
            narrative="The innkeeper nods.",
            tools=[
                PlannedCall(tool_id="pour", tool_path="pour", input={"guest": "Ada", "drink": drink}),
                PlannedCall(tool_id="note", tool_path="ledger-keeper", input=debt, dependencies=["pour"]),
            ],
        )


class Screen:
    """A sink: it hears every record of the session as it happens."""

    full = False

    def push(self, record: Record) -> None:
        if isinstance(record.event, CallEmitted) and isinstance(record.event.event, Log):
            print("…", record.event.event.message)

    async def wait(self) -> None:
        pass


def debts() -> list[str]:
    return Path("debts.txt").read_text().splitlines()


async def main() -> None:
    registry = ToolRegistry([price, pour, process_tool(TOOLS / "ledger-keeper")])
    store = SqliteStore(Path("tavern/sessions.db"))
    session = Session(assets=store.assets)
    journal = store.create(session, title="An evening at the tavern")
    session.attach(Screen())

    result = await registry.execute(pour, Pour("Bo", "wine"), session=session)  # a call of one tool
    print(result.message)
    for prompt in ("A cup of ale!", "I dance."):  # turns: the narrator plans, the tools act
        turn = await take_turn(session, prompt, narrator=Innkeeper(), registry=registry)
        print(turn.outcome, turn.problems[:1] or turn.narrative.splitlines())
    print(session.state, debts())

    for _ in range(2):  # the dance, and then the ale: the line in the file goes with it
        await undo(journal, registry)
    print(session.state, debts())
    await journal.close()
    store.close()


if __name__ == "__main__":
    asyncio.run(main())
