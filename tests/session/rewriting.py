"""A tool that changes files through the filesystem resource. Run as a program, it is killed in the middle of that:
HOME STEPS, where STEPS is the number of changes it still makes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from narratoria.events import PlanMade
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.turn import take_turn
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.resources.file_changes import LARGEST_KEPT
from narratoria.session.resources.filesystem import Filesystem
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore
from narratoria.store.store import SessionUnknown
from narratoria.tools.tool import Tool, ToolContext, ToolResult

SESSION: Final = "desk"
LARGE: Final = b"x" * (LARGEST_KEPT + 1)

STEPS: Final[list[Callable[[Any], None]]] = [
    lambda files: files.write_text("new/deep/a.txt", "a"),
    lambda files: files.write_text("log.txt", files.read_text("log.txt") + "a line\n"),
    lambda files: files.write_text("log.txt", files.read_text("log.txt") + "another\n"),
    lambda files: files.delete("gone.txt"),
    lambda files: files.delete("empty"),
    lambda files: files.mkdir("made"),
    lambda files: files.delete("folder/inner.txt"),
    lambda files: files.delete("folder"),
    lambda files: files.write_text("folder", "now a file"),
]


@dataclass(frozen=True)
class Nothing:
    pass


class Rewriter:
    """A narrator whose every plan calls the one tool."""

    name = "rewriter"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        call = PlannedCall(tool_id="one", tool_path=request.prompt, input={})
        return PlanDocument(request_id=f"p-{request.prompt}", narrative="You write.", tools=[call])


def prepare(home: Path) -> None:
    files = home / "files"
    (files / "folder").mkdir(parents=True)
    (files / "empty").mkdir(mode=0o750)
    (files / "log.txt").write_text("the first line\n")
    (files / "log.txt").chmod(0o640)
    (files / "gone.txt").write_text("here")
    (files / "folder" / "inner.txt").write_text("inner")


def tree(home: Path) -> dict[str, tuple[int, bytes | None]]:
    """All that is in the folder, hidden files too: paths, with their modes and contents."""
    root = home / "files"
    return {
        str(path.relative_to(root)): (
            path.stat().st_mode & 0o777,
            None if path.is_dir() else path.read_bytes(),
        )
        for path in root.rglob("*")
    }


def open_desk(home: Path, *, bound: bool = True) -> Journal:
    store = SqliteStore(home / "sessions.db")
    try:
        journal = store.open(SESSION)
    except SessionUnknown:
        journal = store.create(Session(SESSION))
    if bound:
        journal.session.resources.provide(Filesystem, HostFilesystem(home / "files"))
    return journal


def registry(store: Any = None, dies_after: int | None = None) -> ToolRegistry:
    def die() -> None:
        while store is not None and not any(
            isinstance(record.event, PlanMade) for record in store.read(SESSION)
        ):
            continue
        os.kill(os.getpid(), signal.SIGKILL)

    async def rewrite(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        for number, step in enumerate(STEPS):
            if number == dies_after:
                die()
            step(context.filesystem)
        if dies_after is not None:
            die()
        return ToolResult.ok(None, "done")

    def overwrite(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        """A plain function, which runs in a thread."""
        context.filesystem.write_bytes("large.bin", b"small now")
        if dies_after is not None:
            die()
        return ToolResult.ok(None, "done")

    return ToolRegistry(
        [
            Tool[Nothing, None]("rewrite", "Changes many files.", rewrite),
            Tool[Nothing, None]("overwrite", "Overwrites a large file.", overwrite),
        ]
    )


async def _be_killed(home: Path, tool: str, steps: int) -> None:
    journal = open_desk(home)
    await take_turn(
        journal.session, tool, narrator=Rewriter(), registry=registry(journal.store, dies_after=steps)
    )


if __name__ == "__main__":
    asyncio.run(_be_killed(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
