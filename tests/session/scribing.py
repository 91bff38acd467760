"""A diary written by `file_write`. Run as a program, it is killed right after the file is on the disk."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from narratoria.events import PlanMade
from narratoria.kinds.builtin_tools import Written, file_write
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.turn import take_turn
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.resources.filesystem import Filesystem
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import SessionUnknown
from narratoria.tools.tool import Tool, ToolContext, ToolResult

SESSION: Final = "diary"
RECEIPT: Final = {"path", "written", "made"}


@dataclass
class Scribe:
    """A narrator whose every plan writes one file."""

    overwrite: bool = False
    name: str = "scribe"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        args = {"path": "today.txt", "content": request.prompt, "overwrite": self.overwrite}
        call = PlannedCall(tool_id="write", tool_path="file_write", input=args)
        return PlanDocument(request_id=str(uuid.uuid4()), narrative="You write.", tools=[call])


def open_desk(home: Path) -> tuple[Journal, ToolRegistry]:
    (home / "files").mkdir(parents=True, exist_ok=True)
    store = SqliteStore(home / "sessions.db")
    try:
        journal = store.open(SESSION)
    except SessionUnknown:
        journal = store.create(Session(SESSION, permissions=["file:write"]))
    journal.session.resources.provide(Filesystem, HostFilesystem(home / "files"))
    return journal, ToolRegistry([file_write])


def last_words(store: SqliteStore) -> Tool[Any, Written]:
    """`file_write`, whose process is killed after the write, once the plan is in the journal."""

    def write(params: Mapping[str, Any], *, context: ToolContext) -> ToolResult[Written]:
        file_write.handler(params, context=context)
        while not any(isinstance(record.event, PlanMade) for record in store.read(SESSION)):
            continue
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody survives that")

    return Tool(
        name=file_write.name, description="Write, and die.", handler=write, parameters=file_write.parameters
    )


async def _write(home: Path, prompt: str) -> None:
    journal, _ = open_desk(home)
    registry = ToolRegistry([last_words(journal.store)])
    await take_turn(journal.session, prompt, narrator=Scribe(), registry=registry)


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]), sys.argv[2]))
