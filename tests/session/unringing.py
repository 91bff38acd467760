"""A tool with three effects outside, each taken back by a line in a file. Run as a program, it is killed while it
takes the second one back: HOME.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from digging import Dig, Dug, play

from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolResult

SESSION: Final = "bells"
BELLS: Final = ("low", "middle", "high")


async def ring(params: Dig, *, context: ToolContext) -> ToolResult[Dug]:
    context.patch({"rung": params.n})
    return ToolResult.ok(Dug(params.n), message="rung")


def registry(home: Path, before: Callable[[str], None] = lambda bell: None) -> ToolRegistry:
    def effect(bell: str) -> StateChangeEffect:
        def roll_back(context: ToolContext) -> None:
            before(bell)
            with (home / "silenced").open("a") as file:
                file.write(f"{bell}\n")

        return StateChangeEffect(
            description=f"the {bell} bell rings", state=f"bells.{bell}", value=True,
            apply=lambda context: None, rollback=roll_back,
        )  # fmt: skip

    return ToolRegistry(
        [Tool[Dig, Dug]("ring", "Rings all bells.", ring, effects=[effect(bell) for bell in BELLS])]
    )


def silenced(home: Path) -> list[str]:
    path = home / "silenced"
    return path.read_text().split() if path.exists() else []


def die(bell: str) -> None:
    if bell == "middle":
        os.kill(os.getpid(), signal.SIGKILL)


async def _undo(home: Path) -> None:
    from narratoria.play.history import undo

    store = SqliteStore(home / "sessions.db")
    journal: Journal = store.create(Session(SESSION, state={"start": True}, assets=store.assets))
    await play(journal, registry(home), "talk", "ring 1")
    await undo(journal, registry(home, before=die))


if __name__ == "__main__":
    asyncio.run(_undo(Path(sys.argv[1])))
