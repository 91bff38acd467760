"""Small games in this process, for the journal's tests."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.turn import TurnResult, take_turn
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.journal import Journal
from narratoria.store.store import Store
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolResult

NEVER = PlanRetry(max_retries=0)


@dataclass(frozen=True)
class Stone:
    """A value of a typed slice."""

    n: int


@dataclass(frozen=True)
class Dig:
    n: int
    fail: bool = False


@dataclass(frozen=True)
class Dug:
    n: int


class Outside:
    """Something beyond the session that tools act on, and a count of what ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []
        self.world: dict[str, Any] = {}

    async def dig(self, params: Dig, *, context: ToolContext) -> ToolResult[Dug]:
        self.ran.append(f"dig {params.n}")
        context.patch({"holes": {str(params.n): {"depth": params.n}}, "last": params.n})
        context.memory.write("long-term", "last", params.n)
        context.memory.write("episodic", "dug", params.n)
        context.session.dispatch(Stone(params.n))
        context.session.grant(f"hole:{params.n}")
        path = self.folder / f"hole{params.n}.txt"
        path.write_text(f"hole {params.n}")
        context.asset(path, asset_id=f"hole{params.n}", kind="text", media_type="text/plain")
        context.ui("narrative_choice", {"choices": [f"Dig {params.n + 1}"]})
        if params.fail:
            raise ValueError("the spade broke")
        return ToolResult.ok(Dug(params.n), message="dug")

    async def ring(self, params: Dig, *, context: ToolContext) -> ToolResult[Dug]:
        self.ran.append(f"ring {params.n}")
        return ToolResult.ok(Dug(params.n), message="rung")

    def registry(self) -> ToolRegistry:
        def apply(context: ToolContext, result: ToolResult[Dug]) -> dict[str, int]:
            self.world["bell"] = self.world.get("bell", 0) + 1
            return {"ring": self.world["bell"]}

        def rollback(context: ToolContext) -> None:
            self.world["bell"] -= 1
            self.world["receipt"] = context.receipt

        def shout(context: ToolContext) -> None:
            self.world["heard"] = True

        return ToolRegistry(
            [
                Tool[Dig, Dug]("dig", "Digs a hole.", self.dig),
                Tool[Dig, Dug](
                    "ring",
                    "Rings the bell outside.",
                    self.ring,
                    effects=[
                        StateChangeEffect(
                            description="the bell rings", state="bell", change="increment", value=1,
                            apply=apply, rollback=rollback,
                        ),
                        StateChangeEffect(
                            description="everyone hears it", state="heard", value=True,
                            apply=shout, reversible=False,
                        ),
                    ],
                ),
            ]
        )  # fmt: skip


class Digger:
    """Plans what the prompt says: `dig 3`, `ring 1`, `break 4`, or just talks."""

    name = "digger"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        verb, _, number = request.prompt.partition(" ")
        n = int(number or 0)
        tools = []
        if verb in ("dig", "ring"):
            tools = [PlannedCall(tool_id=verb, tool_path=verb, input={"n": n}, retry_policy=NEVER)]
        elif verb == "break" and "dig" not in request.disabled_skills:
            tools = [
                PlannedCall(tool_id="dig", tool_path="dig", input={"n": n, "fail": True}, retry_policy=NEVER)
            ]
        return PlanDocument(
            request_id=f"{request.prompt}/{uuid.uuid4().hex}", narrative=f"You {request.prompt}.", tools=tools
        )


def new_game(store: Store, session: Session | None = None, **meta: Any) -> Journal:
    session = session or Session(state={"start": True}, permissions=["begin"], assets=store.assets)
    session.register_reducer(Stone, lambda values, event: (*values, event))
    return store.create(session, story="digging", title="Digging", **meta)


async def play(journal: Journal, registry: ToolRegistry, *prompts: str) -> list[TurnResult]:
    return [
        await take_turn(journal.session, prompt, narrator=Digger(), registry=registry) for prompt in prompts
    ]


def world(session: Session) -> dict[str, Any]:
    """Everything a turn can change, to compare."""
    return {
        "state": session.snapshot(),
        "memory": session.memory.export(),
        "stones": [change.values for change in session.slices.export() if change.values],
        "permissions": set(session.permissions),
        "assets": sorted((one.asset_id, one.hash) for one in session.asset_records.values()),
        "choices": list(session.choices),
        "past": list(session.past),
        "completed": set(session.completed_tools),
    }


def trusted_world(store: Store, session_id: str, before: dict[str, Any]) -> dict[str, Any]:
    """An imported session, with a story that grants all it had."""
    session = store.restore(session_id)
    session.grants.trust(before["permissions"])
    return world(session)
