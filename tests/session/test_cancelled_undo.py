"""An undo that is cancelled ends the rollback it is in, and goes on with the rest when it is asked for again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from digging import Dig, Dug, play

from narratoria.errors import JournalError
from narratoria.events import EffectTakenBack
from narratoria.play import compensation
from narratoria.play.history import checkpoint, undo
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.session.resources.resources import Filesystem
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolResult


class Bells:
    """Two bells that ring outside. Silencing the high one waits for `go_on`."""

    def __init__(self) -> None:
        self.silenced: list[str] = []
        self.rolling, self.go_on = asyncio.Event(), asyncio.Event()
        effects = [self.effect("low"), self.effect("high")]
        self.registry = ToolRegistry([Tool[Dig, Dug]("ring", "Rings.", self.ring, effects=effects)])

    async def ring(self, params: Dig, *, context: ToolContext) -> ToolResult[Dug]:
        context.patch({"rung": params.n})
        return ToolResult.ok(Dug(params.n), message="rung")

    def effect(self, bell: str) -> StateChangeEffect:
        async def silence(context: ToolContext) -> None:
            context.filesystem.write_text("half.txt", bell)
            if bell == "high":
                self.rolling.set()
                await self.go_on.wait()
            context.filesystem.delete("half.txt")
            self.silenced.append(bell)

        return StateChangeEffect(
            description=f"the {bell} bell rings", state=f"bells.{bell}", value=True,
            apply=lambda context: None, rollback=silence,
        )  # fmt: skip


async def begun(tmp_path: Path) -> tuple[Bells, Journal]:
    bells = Bells()
    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(Session("bells", assets=store.assets))
    (tmp_path / "files").mkdir()
    journal.session.resources.provide(Filesystem, HostFilesystem(tmp_path / "files"))
    await play(journal, bells.registry, "ring 1")
    return bells, journal


def taken_back(journal: Journal) -> list[str]:
    records = journal.store.read("bells")
    return [one.event.description for one in records if isinstance(one.event, EffectTakenBack)]


async def test_the_rollback_that_runs_is_finished_and_recorded(tmp_path: Path) -> None:
    bells, journal = await begun(tmp_path)
    undoing = asyncio.create_task(undo(journal, bells.registry))
    await bells.rolling.wait()
    undoing.cancel()
    await asyncio.sleep(0)
    bells.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await undoing
    assert bells.silenced == ["high"]
    assert taken_back(journal) == ["the high bell rings"]
    assert (journal.timeline.undoing, journal.session.state["rung"]) == (1, 1)
    with pytest.raises(JournalError, match="undo of turn 1 was cut short; undo it again"):
        await checkpoint(journal, "here")
    outcome = await undo(journal, bells.registry)
    assert bells.silenced == ["high", "low"]
    assert sorted(outcome.compensated) == ["the high bell rings", "the low bell rings"]
    assert journal.session.snapshot() == {}
    await journal.close()
    journal.store.close()


async def test_a_rollback_that_does_not_end_is_given_up_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compensation, "GRACE", 0.05)
    bells, journal = await begun(tmp_path)
    undoing = asyncio.create_task(undo(journal, bells.registry))
    await bells.rolling.wait()
    started = time.monotonic()
    undoing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await undoing
    assert time.monotonic() - started < 2
    assert (bells.silenced, taken_back(journal)) == ([], [])
    assert not [*(tmp_path / "files").iterdir()], "what it had written by then is taken back"
    bells.go_on.set()
    await undo(journal, bells.registry)
    assert bells.silenced == ["high", "low"]
    assert journal.session.snapshot() == {}
    await journal.close()
    journal.store.close()


async def test_a_rollback_that_cancels_itself_has_failed(tmp_path: Path) -> None:
    bells, journal = await begun(tmp_path)
    undoing = asyncio.create_task(undo(journal, bells.registry))
    await bells.rolling.wait()
    waiting = [one for one in asyncio.all_tasks() if one not in (undoing, asyncio.current_task())]
    for task in waiting:
        task.cancel()
    outcome = await undoing
    assert outcome.failed == ["ring: the high bell rings was not taken back: it was cancelled"]
    assert bells.silenced == ["low"]
    await journal.close()
    journal.store.close()
