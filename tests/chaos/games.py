"""Plays drawn games on the real runtime, and compares every step with the model."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tests.chaos.scenarios import (
    GENERATIONS,
    DrawnCall,
    DrawnPlan,
    DrawnTurn,
    Expected,
    History,
    Scenario,
    expected_of,
    merged,
    succeeds,
)

from narratoria.errors import JournalError, ToolFailure
from narratoria.events import CallStarted, Committed
from narratoria.narrator.protocol import NarratorRequest, NoMatch
from narratoria.play.history import checkpoint, redo, return_to, undo
from narratoria.play.turn import TurnResult, take_turn
from narratoria.run.plan import CallResult, PlanDocument, PlannedCall, PlanRetry
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.store.journal import Journal
from narratoria.store.salvage.verification import verify
from narratoria.store.store import Store
from narratoria.tools.retry import no_waiting
from narratoria.tools.tool import Tool, ToolContext, ToolResult

BRIEF: Final = 0.05  # seconds that a tool may take which hangs now and then
SESSION: Final = "chaos"


class Broken(AssertionError):
    """An invariant does not hold."""


def expect(what: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise Broken(f"{what}: found {found!r}, expected {wanted!r}")


class Toolbox:
    """The tools of a drawn game. `runs` counts the attempts of every call; `faults` tells of calls that overlapped."""

    def __init__(self, scenario: Scenario, patience: float = 1.0) -> None:
        self.calls: dict[str, tuple[DrawnPlan, DrawnCall]] = {
            f"{plan.id}:{call.id}": (plan, call)
            for turn in scenario.turns
            for plan in turn.plans
            if plan is not None
            for call in plan.calls
        }
        self.limit = scenario.limit
        self.patience = patience
        self.runs: Counter[str] = Counter()
        self.faults: list[str] = []
        self._running: list[str] = []

    def registry(self) -> ToolRegistry:
        return ToolRegistry([])

    def count(self, key: str) -> int:
        """How often a call was attempted."""
        return self.runs[key]

    def tool_path(self, plan: DrawnPlan, call: DrawnCall) -> str:
        raise NotImplementedError


class Functions(Toolbox):
    """Tools in this process, which misbehave as they were drawn."""

    current: Functions

    def registry(self) -> ToolRegistry:
        Functions.current = self
        return ToolRegistry(_function_tools(self.patience))

    def tool_path(self, plan: DrawnPlan, call: DrawnCall) -> str:
        return f"g{plan.id.partition('g')[2]}_{call.kind}"

    async def waiting(self, params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
        key = params["key"]
        with self.running(key):
            attempt = self.calls[key][1].attempt(self.runs[key])
            for patch in attempt.patches:
                context.patch(patch)
                if self.runs[key] % 2:
                    await asyncio.sleep(0)
            if attempt.ending.name == "hangs":
                await asyncio.Event().wait()
            return self.end(attempt.ending.name)

    def plain(self, params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
        key = params["key"]
        with self.running(key):
            attempt = self.calls[key][1].attempt(self.runs[key])
            for patch in attempt.patches:
                context.patch(patch)
            return self.end(attempt.ending.name)

    @contextlib.contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Note a running call, and if it runs beside others that it must not."""
        self.runs[key] += 1
        self._running.append(key)
        try:
            plan = self.calls[key][0]
            alone = [one for one in self._running if not (plan.parallel and self.calls[one][1].concurrent)]
            if len(self._running) > (1 if alone else self.limit):
                self.faults.append(
                    f"{self._running} ran at the same time; at most {self.limit}, alone: {alone}"
                )
            yield
        finally:
            self._running.remove(key)

    def end(self, ending: str) -> ToolResult[Any]:
        if ending == "ok":
            return ToolResult.ok(None, message="done")
        if ending == "says no":
            return ToolResult.failed("it is broken", code="BROKEN")
        if ending == "says no for good":
            return ToolResult.failed("it is broken", code="BROKEN", recoverable=False)
        if ending == "says TIMEOUT":
            raise ToolFailure("TIMEOUT", "it says so itself")
        if ending == "raises":
            raise ValueError("drawn")
        if ending == "exits":
            raise SystemExit(3)
        if ending == "cancels itself":
            raise asyncio.CancelledError
        assert ending == "returns nothing", ending
        return None  # type: ignore[return-value]


async def _waiting(params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
    return await Functions.current.waiting(params, context=context)


def _plain(params: dict[str, Any], *, context: ToolContext) -> ToolResult[Any]:
    return Functions.current.plain(params, context=context)


@functools.cache  # they take longer to make than most games to play
def _function_tools(patience: float) -> list[Tool[Any, Any]]:
    return [
        Tool(
            f"g{generation}_{kind}",
            "Does what was drawn for it.",
            _plain if kind == "plain" else _waiting,
            parameters={"type": "object"},
            timeout=BRIEF * patience if kind == "brief" else 30.0,
            repeatable=kind != "once",
        )
        for generation in range(GENERATIONS)  # a tool that failed is not chosen again in its turn
        for kind in ("async", "plain", "brief", "once")
    ]


class Script:
    """A narrator that gives the drawn plans one after the other, then just talks."""

    name = "script"

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self.turn = DrawnTurn(())

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        if request.attempt > len(self.turn.plans):
            return PlanDocument(request_id=f"{request.prompt}/{request.attempt}", narrative="It is quiet.")
        drawn = self.turn.plans[request.attempt - 1]
        if drawn is None:
            raise NoMatch("nothing comes to mind")
        return document_of(drawn, self.toolbox)


def document_of(drawn: DrawnPlan, toolbox: Toolbox) -> PlanDocument:
    calls = []
    for call in drawn.calls:
        given: dict[str, Any] = {"key": f"{drawn.id}:{call.id}"}
        if call.refers is not None:
            given["given"] = {"$from": call.refers}
        retry = PlanRetry() if call.retries is None else PlanRetry(max_retries=call.retries, backoff_ms=1)
        calls.append(
            PlannedCall(
                tool_id=call.id,
                tool_path="missing" if call.missing else toolbox.tool_path(drawn, call),
                input=given,
                dependencies=list(call.dependencies),
                required=call.required,
                async_=call.concurrent,
                retry_policy=retry,
            )
        )
    return PlanDocument(
        request_id=drawn.id, narrative="Something moves.", tools=calls, parallel=drawn.parallel
    )


class PlayedGame:
    """One drawn game on a store, move by move."""

    def __init__(self, scenario: Scenario, store: Store, toolbox: Toolbox, session_id: str = SESSION) -> None:
        self.scenario = scenario
        self.store = store
        self.toolbox = toolbox
        self.registry = toolbox.registry()
        self.narrator = Script(toolbox)
        session = Session(session_id, state=scenario.state, assets=store.assets)
        self.journal: Journal = store.create(session, story="chaos")
        self.history = History(session.snapshot())
        self.turns = 0
        self.left: dict[str, dict[str, Any]] = {}  # the state of sessions that were left for a branch

    @property
    def session(self) -> Session:
        return self.journal.session

    async def play(self) -> None:
        """Make all moves, and check each of them and what is kept at the end."""
        try:
            await self._make_moves()
        finally:
            await self.journal.close()
        self.left[self.session.id] = self.history.state
        self.check_store()

    async def _make_moves(self) -> None:
        for number, move in enumerate(self.scenario.moves):
            if isinstance(move, DrawnTurn):
                await self.take(move)
            else:
                await getattr(self, f"_{move}")(number)
            expect(
                f"the state after move {number} ({move})"[:200], self.session.snapshot(), self.history.state
            )

    async def take(self, drawn: DrawnTurn) -> None:
        self.narrator.turn = drawn
        self.turns += 1
        first = self.session.seq
        executor = PlanExecutor(self.registry, self.session, limit=self.scenario.limit)
        with no_waiting():
            result = await take_turn(
                self.session,
                f"turn {self.turns}",
                narrator=self.narrator,
                registry=self.registry,
                executor=executor,
            )
        expect("what could not be saved", result.unsaved, None)
        expect("calls that overlap", self.toolbox.faults, [])
        self.check_plans(drawn, result)
        after = self.committed(first)
        self.history.turn(result.turn, after)

    def check_plans(self, drawn: DrawnTurn, result: TurnResult) -> None:
        """Hold the traces of a turn against the model."""
        traces = iter(result.traces)
        over = False
        for plan in drawn.plans[:GENERATIONS]:
            if plan is None or over:
                continue
            wanted = expected_of(plan)
            trace = next(traces)
            expect("the plan", trace.plan_id, plan.id)
            for call in plan.calls:
                self.check_call(f"{plan.id}:{call.id}", call, trace.result_of(call.id), wanted[call.id])
            over = succeeds(plan, wanted)
            expect(f"the success of {plan.id}", trace.success, over)
        fell_back = not over and len(drawn.plans) >= GENERATIONS
        expect("the outcome", result.outcome, "fallback" if fell_back else "completed")
        expect("the number of plans", len(list(traces)), 0 if over or fell_back else 1)

    def check_call(self, key: str, call: DrawnCall, found: CallResult, wanted: Expected) -> None:
        expect(f"{key}: state", (found.state, found.error_code), (wanted.state, wanted.code))
        expect(f"{key}: runs", self.toolbox.count(key), wanted.runs)
        expect(f"{key}: retries", found.retry_count, max(0, wanted.runs - 1))
        expect(f"{key}: output", found.output, wanted.output if wanted.ok else {})

    def committed(self, first: int) -> dict[str, Any]:
        """Return the state that the commits since `first`, in their order, must have made, by the model."""
        records = [*self.store.read(self.session.id, first)]
        state = self.history.state
        seen: set[str] = set()
        wanted: dict[str, Expected] = {}
        for record in records:
            event = record.event
            if isinstance(event, CallStarted):
                plan, call = self.toolbox.calls[event.call]
                if event.plan not in {key.partition(":")[0] for key in wanted}:
                    wanted |= {f"{plan.id}:{one}": what for one, what in expected_of(plan).items()}
                missing = {
                    f"{plan.id}:{one}" for one in call.all_dependencies if wanted[f"{plan.id}:{one}"].ok
                }
                missing -= {one for one in missing if not wanted[one].patches} | seen
                expect(f"what {event.call} should have waited for", missing, set())
                if call.refers is not None:
                    source = wanted[f"{plan.id}:{call.refers}"]
                    given = (event.input or {}).get("given")
                    expect(f"what {event.call} got", given, source.output if source.ok else None)
            elif isinstance(event, Committed) and event.changes:
                expect(f"{event.call} was committed before", event.call in seen, False)
                seen.add(event.call)
                for patch in wanted[event.call].patches:
                    state = merged(state, patch)
        expect("the calls that changed the state", seen, {key for key, one in wanted.items() if one.patches})
        return state

    # --- moves -----------------------------------------------------------------------------------------------

    async def _undo(self, number: int) -> None:
        if not self.history.past:
            await self.refused(undo(self.journal, self.registry))
            return
        await undo(self.journal, self.registry)
        self.history.undo()

    async def _redo(self, number: int) -> None:
        if not self.history.future:
            await self.refused(redo(self.journal))
            return
        await redo(self.journal)
        self.history.redo()

    async def _reopen(self, number: int) -> None:
        before = world(self.session)
        await self.journal.close()
        self.journal = self.store.open(self.session.id)
        expect("the world of the session opened again", world(self.session), before)

    async def _branch(self, number: int) -> None:
        if not self.history.past:
            return
        known = self.history
        at = known.past[number % len(known.past)][0]
        await self.journal.close()
        self.left[self.session.id] = known.state
        meta = self.store.branch(self.session.id, at)
        self.journal = self.store.open(meta.id)
        states = [*(before for _, before in known.past), known.state]
        kept = [index for index, (turn, _) in enumerate(known.past) if turn <= at]
        self.history = History(states[kept[-1] + 1], known.past[: kept[-1] + 1])
        self.history.marks = {name: turn for name, turn in known.marks.items() if turn <= at}

    async def _mark(self, number: int) -> None:
        if not self.history.past:
            await self.refused(checkpoint(self.journal, f"m{number}"))
            return
        self.history.marks[f"m{number}"] = await checkpoint(self.journal, f"m{number}")
        expect("the marked turn", self.history.marks[f"m{number}"], self.history.past[-1][0])

    async def _return(self, number: int) -> None:
        there = [turn for turn, _ in self.history.past]
        marks = [name for name, turn in self.history.marks.items() if turn in there]
        if not marks:
            await self.refused(return_to(self.journal, "nowhere", self.registry))
            return
        await return_to(self.journal, marks[-1], self.registry)
        while self.history.past[-1][0] > self.history.marks[marks[-1]]:
            self.history.undo()

    async def refused(self, move: Any) -> None:
        with contextlib.suppress(JournalError):
            await move
            raise Broken("a move that is not possible was made")

    # --- at the end ------------------------------------------------------------------------------------------

    def check_store(self) -> None:
        for session_id, state in self.left.items():
            expect(f"the kept state of {session_id}", self.store.restore(session_id).snapshot(), state)
        for checked in verify(self.store, [self.store.meta(one) for one in self.left]):
            expect(f"faults of {checked.meta.id}", (checked.faults, checked.altered), ([], []))


def world(session: Session) -> dict[str, Any]:
    """Everything that a session opened again must have."""
    return {
        "state": session.snapshot(),
        "memory": session.memory.export(),
        "permissions": set(session.permissions),
        "choices": list(session.choices),
        "past": list(session.past),
        "completed": set(session.completed_tools),
        "turns": session.turn_count,
        "health": {name: (one.health, one.failures) for name, one in session.health.items()},
        "seq": session.seq,
    }


async def play_functions(
    scenario: Scenario, store: Store, session_id: str = SESSION, patience: float = 1.0
) -> None:
    """Play a game with tools in this process."""
    await PlayedGame(scenario, store, Functions(scenario, patience), session_id).play()
