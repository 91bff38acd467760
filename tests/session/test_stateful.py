"""Any order of turns, undo, redo, retry, branch, checkpoint, crash, reopening and export, against a model of stacks."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
import json
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from narratoria.errors import JournalError
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.history import checkpoint, redo, return_to, show_variant, undo
from narratoria.play.resume import open_turn
from narratoria.play.turn import TurnResult, take_turn
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.journal import Journal
from narratoria.store.portable import export_session, import_session
from narratoria.store.salvage.verification import verify
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolResult

KEYS: Final = st.sampled_from(["a", "b", "c"])
VALUES: Final = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2.5, "", "x", [], [1, {"n": None}]]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
PATCHES: Final = st.dictionaries(KEYS, VALUES, min_size=1, max_size=3)
Call = dict[str, Any]


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396, as its own pseudocode has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class World:
    """What the model holds: the state, what is remembered, what is granted."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.memory: list[int] = []
        self.granted: set[str] = set()

    def after(self, calls: list[Call]) -> World:
        world = copy.deepcopy(self)
        for call in calls:
            if call["how"] != "breaks":
                world.state = merged(world.state, call["patch"])
                world.memory.append(call["n"])
                world.granted.add(f"seen:{call['n']}")
        return world


class Taken:
    """A turn: the world before and after it, and if it rang the bell outside."""

    def __init__(self, number: int, before: World, after: World, *, rang: bool = False) -> None:
        self.number = number
        self.before = before
        self.after = after
        self.rang = rang


class Planner:
    """Plans the calls that the prompt lists."""

    name = "planner"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        calls = json.loads(request.prompt) if request.attempt == 1 else []
        return PlanDocument(
            request_id=uuid.uuid4().hex,
            narrative="So be it.",
            tools=[
                PlannedCall(
                    tool_id=f"c{call['n']}",
                    tool_path="ring" if call["how"] == "rings" else "act",
                    input={"call": call},
                    retry_policy=PlanRetry(max_retries=0),
                )
                for call in calls
            ],
        )


class Histories(RuleBasedStateMachine):
    """A session, and a model of it that is a few stacks."""

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="narratoria-stateful-"))
        self.store = SqliteStore(self.folder / "home" / "sessions.db")
        self.journal: Journal = self.run(self._create())
        self.past: list[Taken] = []
        self.undone: list[Taken] = []
        self.marks: dict[str, int] = {}
        self.now = World()
        self.bell = 0
        self.runs: Counter[int] = Counter()
        self.calls = 0
        self.gate = asyncio.Event()
        self.reached = asyncio.Event()
        self.registry = ToolRegistry([self._act(), self._ring()])

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    async def _create(self) -> Journal:
        return self.store.create(Session("one", assets=self.store.assets), story="stateful")

    def _act(self) -> Tool[Any, Any]:
        async def act(params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
            call = params["call"]
            self.runs[call["n"]] += 1
            context.patch(call["patch"])
            context.memory.write("episodic", "seen", call["n"])
            context.session.grant(f"seen:{call['n']}")
            if call["how"] == "breaks":
                raise ValueError("it breaks")
            if call["how"] == "waits":
                self.reached.set()
                await self.gate.wait()
            return ToolResult.ok(None)

        return Tool("act", "Does what it is told.", act, parameters={"type": "object"})

    def _ring(self) -> Tool[Any, Any]:
        async def ring(params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
            call = params["call"]
            context.patch(call["patch"])
            context.memory.write("episodic", "seen", call["n"])
            context.session.grant(f"seen:{call['n']}")
            return ToolResult.ok(None)

        def apply(context: ToolContext, result: ToolResult[Any]) -> dict[str, int]:
            self.bell += 1
            return {"ring": self.bell}

        def rollback(context: ToolContext) -> None:
            self.bell -= 1

        effect = StateChangeEffect(
            description="the bell rings", state="rung", value=True, apply=apply, rollback=rollback
        )
        return Tool("ring", "Rings outside.", ring, parameters={"type": "object"}, effects=[effect])

    # --- turns -------------------------------------------------------------------------------------------------

    def numbered(self, patches: list[dict[str, Any]], how: str) -> list[Call]:
        calls = []
        for patch in patches:
            self.calls += 1
            calls.append({"n": self.calls, "patch": patch, "how": how})
        return calls

    def take(self, calls: list[Call], origin: str = "player") -> TurnResult:
        return self.run(
            take_turn(
                self.journal.session, json.dumps(calls), narrator=Planner(), registry=self.registry,
                origin=origin,  # type: ignore[arg-type]
            )
        )  # fmt: skip

    def note(self, number: int, calls: list[Call]) -> None:
        after = self.now.after(calls)
        rang = any(call["how"] == "rings" for call in calls)
        self.past.append(Taken(number, self.now, after, rang=rang))
        self.undone.clear()
        self.now = after

    @rule(patches=st.lists(PATCHES, min_size=0, max_size=3))
    def turn(self, patches: list[dict[str, Any]]) -> None:
        calls = self.numbered(patches, "acts")
        self.note(self.take(calls).turn, calls)

    @rule(patches=st.lists(PATCHES, min_size=1, max_size=2))
    def turn_that_breaks(self, patches: list[dict[str, Any]]) -> None:
        calls = self.numbered(patches, "breaks")
        self.note(self.take(calls).turn, calls)

    @rule(patch=PATCHES)
    def turn_that_rings(self, patch: dict[str, Any]) -> None:
        calls = self.numbered([patch], "rings")
        before = self.bell
        self.note(self.take(calls).turn, calls)
        assert self.bell == before + 1

    @rule(done=PATCHES, patch=PATCHES)
    def turn_that_is_cancelled(self, done: dict[str, Any], patch: dict[str, Any]) -> None:
        first = self.numbered([done], "acts")
        calls = [*first, *self.numbered([patch], "waits")]

        async def cancelled() -> None:
            task = await self._begin(calls)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        self.run(cancelled())
        self.note(self.journal.session.turn_count, first)

    async def _begin(self, calls: list[Call]) -> asyncio.Task[TurnResult]:
        """Begin a turn; return once its last call waits at the gate."""
        self.gate.clear()
        self.reached.clear()
        task = asyncio.create_task(
            take_turn(
                self.journal.session, json.dumps(calls), narrator=Planner(), registry=self.registry
            )
        )  # fmt: skip
        await self.reached.wait()
        return task

    @rule(done=PATCHES, patch=PATCHES)
    def crash(self, done: dict[str, Any], patch: dict[str, Any]) -> None:
        """The files as they are in the middle of a turn are what a kill leaves."""
        first, waiting = self.numbered([done], "acts"), self.numbered([patch], "waits")
        calls = [*first, *waiting]

        async def crashed() -> None:
            task = await self._begin(calls)
            await self.journal.flush()
            shutil.copytree(
                self.folder / "home", self.folder / "left", ignore=shutil.ignore_patterns("*-shm")
            )
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.journal.close()

        self.run(crashed())
        self.store.close()
        shutil.rmtree(self.folder / "home")
        (self.folder / "left").rename(self.folder / "home")
        session_id = self.journal.session.id
        self.store = SqliteStore(self.folder / "home" / "sessions.db")
        self.journal = self.store.open(session_id)
        self.gate.set()
        unfinished = open_turn(self.journal)
        assert unfinished is not None
        result = self.run(
            take_turn(
                self.journal.session, unfinished.prompt, narrator=Planner(), registry=self.registry,
                resume=unfinished,
            )
        )  # fmt: skip
        assert self.runs[first[0]["n"]] == 1, "a completed call is not run again"
        assert self.runs[waiting[0]["n"]] == 2
        self.note(result.turn, calls)

    # --- moves -------------------------------------------------------------------------------------------------

    def _taken_back(self) -> None:
        taken = self.past.pop()
        self.undone.append(taken)
        self.now = taken.before

    @rule()
    def undo(self) -> None:
        if not self.past:
            with pytest.raises(JournalError, match="nothing to undo"):
                self.run(undo(self.journal, self.registry))
            return
        before = self.bell
        self.run(undo(self.journal, self.registry))
        assert self.bell == before - self.past[-1].rang
        self._taken_back()

    @rule()
    def redo(self) -> None:
        if not self.undone:
            with pytest.raises(JournalError, match="nothing to redo"):
                self.run(redo(self.journal))
            return
        if self.undone[-1].rang:
            with pytest.raises(JournalError, match="acted outside the session"):
                self.run(redo(self.journal))
            return
        self.run(redo(self.journal))
        taken = self.undone.pop()
        self.past.append(taken)
        self.now = taken.after

    @precondition(lambda self: self.past and not self.past[-1].rang)
    @rule(patches=st.lists(PATCHES, min_size=1, max_size=2))
    def retry_and_choose_again(self, patches: list[dict[str, Any]]) -> None:
        """A turn taken again is a variant; either of the two can count."""
        older = self.past[-1]
        self.run(undo(self.journal, self.registry))
        self._taken_back()
        calls = self.numbered(patches, "acts")
        self.note(self.take(calls, "retry").turn, calls)
        newer = self.past[-1]
        for taken in (older, newer):
            self.run(show_variant(self.journal, taken.number, self.registry))
            assert self.journal.session.snapshot() == taken.after.state
        self.past[-1] = newer
        self.now = newer.after

    @rule(name=st.sampled_from(["here", "there"]))
    def mark(self, name: str) -> None:
        if not self.past:
            with pytest.raises(JournalError, match="no turn yet"):
                self.run(checkpoint(self.journal, name))
            return
        assert self.run(checkpoint(self.journal, name)) == self.past[-1].number
        self.marks[name] = self.past[-1].number

    @rule(name=st.sampled_from(["here", "there"]))
    def come_back(self, name: str) -> None:
        if self.marks.get(name) not in [one.number for one in self.past]:
            return
        self.run(return_to(self.journal, name, self.registry))
        while self.past[-1].number > self.marks[name]:
            self._taken_back()

    @precondition(lambda self: self.past and not any(one.rang for one in (*self.past, *self.undone)))
    @rule(choice=st.integers(min_value=0, max_value=100))
    def branch(self, choice: int) -> None:
        """Go on in a branch; the session that is left stays as it was."""
        at = choice % len(self.past)
        left = self.journal.session
        self.run(self.journal.close())
        meta = self.store.branch(left.id, self.past[at].number)
        assert self.store.restore(left.id).snapshot() == self.now.state
        self.journal = self.store.open(meta.id)
        self.now = self.past[at].after
        del self.past[at + 1 :]
        self.undone.clear()
        self.marks = {name: turn for name, turn in self.marks.items() if turn <= self.past[at].number}

    @rule()
    def reopen(self) -> None:
        self.run(self.journal.close())
        self.journal = self.store.open(self.journal.session.id)

    @rule()
    def export_and_import(self) -> None:
        """What was exported has the same world elsewhere. Grants are claims there, until a story trusts them."""
        self.run(self.journal.flush())
        target = io.BytesIO()
        export_session(self.store, self.journal.session.id, target)
        elsewhere = SqliteStore(self.folder / f"{uuid.uuid4().hex}.db", assets=self.folder / "elsewhere")
        try:
            taken_in = import_session(elsewhere, target)
            assert elsewhere.restore(taken_in.id).snapshot() == self.now.state
        finally:
            elsewhere.close()

    # --- what always holds ------------------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "journal"):
            return
        session = self.journal.session
        assert session.snapshot() == self.now.state
        assert [one["value"] for one in session.memory.read("episodic", "seen") or []] == self.now.memory
        assert set(session.permissions) == self.now.granted
        assert self.journal.timeline.turns == [one.number for one in self.past]
        assert self.journal.timeline.open is None
        self.run(self.journal.flush())
        kept = self.store.restore(session.id)
        assert kept.snapshot() == self.now.state
        assert set(kept.permissions) == self.now.granted
        assert kept.completed_tools == session.completed_tools

    def teardown(self) -> None:
        if not hasattr(self, "journal"):
            return
        self.run(self.journal.close())
        assert self.store.table_faults() == []
        assert all(one.sound for one in verify(self.store, self.store.list()))
        self.store.close()
        self.runner.close()
        shutil.rmtree(self.folder)


_HOW: Final = {"deadline": None, "suppress_health_check": [*HealthCheck], "database": None}
Histories.TestCase.settings = settings(max_examples=6, stateful_step_count=12, **_HOW)  # type: ignore[arg-type]
TestHistories = Histories.TestCase


class LongHistories(Histories):
    """The same, with many and longer histories."""


LongHistories.TestCase.settings = settings(max_examples=400, stateful_step_count=40, **_HOW)  # type: ignore[arg-type]
TestLongHistories = pytest.mark.slow(LongHistories.TestCase)
