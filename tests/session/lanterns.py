"""Tools that are processes and act outside, with manifests that say how that is taken back.

Run as a program it undoes a turn, and dies while the process that takes it back is running: FOLDER.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path
from typing import Any, Final

from narratoria.kinds.process.process_tool import process_tool
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.history import undo
from narratoria.play.turn import TurnResult, take_turn
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore

SESSION: Final = "lanterns"
_TOOL: Final = """#!/usr/bin/env -S python3 -S
import json, os, signal, sys

request = json.load(sys.stdin)
home = os.path.dirname(os.path.abspath(__file__))
given, operation = request["input"], request["operation"]


def emit(event_type, **fields):
    print(json.dumps({"version": "0", "type": event_type, **fields}), flush=True)


with open(os.path.join(home, "requests"), "a") as log:
    log.write(json.dumps(request) + "\\n")
if os.path.exists(os.path.join(home, "deadly")) and operation == "douse":
    with open(os.path.join(home, "deadly")) as victim:
        pid = int(victim.read())
    os.unlink(os.path.join(home, "deadly"))
    os.kill(pid, signal.SIGKILL)
lantern = os.path.join(home, given["name"] + ".lit")
if operation == "run":
    open(lantern, "w").close()
    emit("state_patch", patch={"lanterns": {given["name"]: "lit"}, "file": lantern})
elif given.get("stuck"):
    emit("error", errorCode="STUCK", errorMessage="the wick is stuck")
    emit("done", ok=False)
    sys.exit(0)
elif os.path.exists(lantern):
    os.unlink(lantern)
emit("state_patch", patch={"count": 1})
emit("done", ok=True, summary=operation)
"""
DOUSE: Final[dict[str, Any]] = {
    "operation": "douse",
    "input": {"name": {"$input": "name"}, "file": {"$result": "file"}},
}


def make_tool(
    folder: Path, name: str = "light", *, effects: list[dict[str, Any]] | None = None, **manifest: Any
) -> Path:
    """An executable in `folder`; by default its own operation `douse` takes back what it did."""
    if effects is None:
        effects = [lit(DOUSE)]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(_TOOL)
    path.chmod(0o755)
    document = {"name": name, "description": "Lights a lantern.", "effects": effects, **manifest}
    path.with_name(f"{name}.tool.json").write_text(json.dumps(document))
    return path


def lit(rollback: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "state_change", "state": "light", "value": True, "description": "a lantern burns",
        "rollback": rollback, **more,
    }  # fmt: skip


def requests(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "requests").read_text().splitlines()]


class Lamplighter:
    """Every prompt is the name of a lantern to light."""

    name = "lamplighter"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        call = PlannedCall(
            tool_id="light",
            tool_path="light",
            input={"name": request.prompt},
            retry_policy=PlanRetry(max_retries=0),
        )
        return PlanDocument(request_id=uuid.uuid4().hex, narrative="You go round.", tools=[call])


async def light(journal: Journal, registry: ToolRegistry, *names: str) -> list[TurnResult]:
    return [
        await take_turn(journal.session, name, narrator=Lamplighter(), registry=registry) for name in names
    ]


async def _die(folder: Path) -> None:
    store = SqliteStore(folder / "sessions.db")
    journal = store.create(Session(SESSION, assets=store.assets))
    registry = ToolRegistry([process_tool(folder / "light")])
    await light(journal, registry, "gate")
    await undo(journal, registry)


if __name__ == "__main__":
    asyncio.run(_die(Path(sys.argv[1])))
