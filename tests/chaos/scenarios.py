"""Games drawn by lot: the same seed draws the same game. And what must come of them, by a model of its own.

The model knows the rules of a plan as the documentation has them, and imports nothing of the runtime.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

GENERATIONS: Final = 5
EXECUTIONS: Final = 3
UNWRITTEN_RETRIES: Final = 3  # where a plan says nothing
KEYS: Final = ("door", "key", "lamp", "room", "bag")


@dataclass(frozen=True)
class Ending:
    """One way in which an attempt ends, and what the runtime makes of it."""

    name: str
    code: str | None = None  # of the failure; None for a success
    own: bool = False  # the tool itself said that it failed
    recoverable: bool = True
    repairable: bool = True  # another attempt may help
    weight: int = 2

    @property
    def ok(self) -> bool:
        return self.code is None

    @property
    def timed_out(self) -> bool:
        return self.code == "TIMEOUT" and not self.own

    @property
    def unanswered(self) -> bool:
        """Nobody knows if the call was carried out."""
        return not self.own and self.code in (
            "TIMEOUT", "MISSING_DONE", "NON_ZERO_EXIT", "OUTPUT_LIMIT", "PROTOCOL_ERROR"
        )  # fmt: skip


FUNCTION_ENDINGS: Final = (
    Ending("ok", weight=30),
    Ending("says no", "BROKEN", own=True),
    Ending("says no for good", "BROKEN", own=True, recoverable=False),
    Ending("says TIMEOUT", "TIMEOUT", own=True),
    Ending("raises", "EXECUTION_FAILED"),
    Ending("exits", "EXECUTION_FAILED"),
    Ending("returns nothing", "EXECUTION_FAILED"),
    Ending("cancels itself", "CANCELLED", own=True),
    Ending("hangs", "TIMEOUT", weight=1),
)
PROCESS_ENDINGS: Final = (
    Ending("ok", weight=24),
    Ending("is slow"),
    Ending("leaves a child"),
    Ending("leaves a daemon"),
    Ending("reads nothing"),
    Ending("is loud"),
    Ending("lingers", weight=1),
    Ending("says no", "EXECUTION_FAILED", own=True),
    Ending("reports an error", "BROKEN", own=True),
    Ending("exits 3", "NON_ZERO_EXIT"),
    Ending("crashes", "NON_ZERO_EXIT"),
    Ending("is cut", "PROTOCOL_ERROR"),
    Ending("writes garbage", "PROTOCOL_ERROR"),
    Ending("forgets done", "MISSING_DONE"),
    Ending("writes too much", "OUTPUT_LIMIT", weight=1),
    Ending("is silent", "TIMEOUT", weight=1),
    Ending("stops itself", "TIMEOUT", weight=1),
)


@dataclass(frozen=True)
class Attempt:
    patches: tuple[dict[str, Any], ...]
    ending: Ending


@dataclass(frozen=True)
class DrawnCall:
    id: str
    kind: str  # of the tool: async, plain, brief, once, process; missing
    attempts: tuple[Attempt, ...]  # the last one repeats
    dependencies: tuple[str, ...] = ()
    required: bool = True
    concurrent: bool = False
    retries: int | None = None  # None: the plan says nothing
    refers: str | None = None  # a call whose output it takes by reference

    def attempt(self, number: int) -> Attempt:
        """The attempt of that number, from 1."""
        return self.attempts[min(number, len(self.attempts)) - 1]

    @property
    def missing(self) -> bool:
        return self.kind == "missing"

    @property
    def repeatable(self) -> bool:
        return self.kind != "once"

    @property
    def all_dependencies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.dependencies, *([self.refers] if self.refers else []))))


@dataclass(frozen=True)
class DrawnPlan:
    id: str
    calls: tuple[DrawnCall, ...]
    parallel: bool

    def steady(self) -> DrawnPlan:
        return replace(self, calls=tuple(replace(one, attempts=one.attempts[:1]) for one in self.calls))


@dataclass(frozen=True)
class DrawnTurn:
    """The plans a narrator gives one after the other; None where it fails. After them it just talks."""

    plans: tuple[DrawnPlan | None, ...]


Move = DrawnTurn | str  # or: undo, redo, retry, reopen, branch, return


@dataclass(frozen=True)
class Scenario:
    seed: int
    moves: tuple[Move, ...]
    limit: int  # calls at the same time
    state: dict[str, Any]

    @property
    def turns(self) -> list[DrawnTurn]:
        return [one for one in self.moves if isinstance(one, DrawnTurn)]


class Lot:
    """Draws scenarios."""

    def __init__(
        self, seed: int, endings: Sequence[Ending] = FUNCTION_ENDINGS, kinds: str = "function"
    ) -> None:
        self.seed = seed
        self.chance = random.Random(f"{kinds} {seed}")
        self.endings = endings
        self.processes = kinds == "process"
        self.brief = [one for one in endings if not one.timed_out]

    def scenario(self, moves: int = 8, calls: int = 5) -> Scenario:
        drawn: list[Move] = [self.turn(0, calls)]
        for number in range(1, self.chance.randint(1, moves)):
            roll = self.chance.random()
            if roll < 0.5:
                drawn.append(self.turn(number, calls))
            else:
                drawn.append(
                    self.chance.choice(("undo", "undo", "redo", "reopen", "branch", "mark", "return"))
                )
        return Scenario(self.seed, tuple(drawn), self.chance.randint(1, 4), {"start": True})

    def steady(self, turns: int, calls: int) -> Scenario:
        """A game of turns alone, whose calls end the same way however often they are tried."""
        drawn = []
        for number in range(1, turns + 1):
            turn = self.turn(number, calls)
            drawn.append(DrawnTurn(tuple(plan and plan.steady() for plan in turn.plans)))
        return Scenario(self.seed, tuple(drawn), self.chance.randint(1, 4), {"start": True})

    def turn(self, number: int, calls: int) -> DrawnTurn:
        plans: list[DrawnPlan | None] = []
        for generation in range(self.chance.choice((1, 1, 2, 3))):
            silent = self.chance.random() < 0.05
            plans.append(None if silent else self.plan(f"t{number}g{generation}", calls))
        return DrawnTurn(tuple(plans))

    def plan(self, plan_id: str, most: int) -> DrawnPlan:
        calls: list[DrawnCall] = []
        for number in range(self.chance.randint(1, most)):
            before = [one.id for one in calls]
            known = self.chance.sample(before, self.chance.randint(0, min(2, len(before))))
            refers = self.chance.choice(before) if before and self.chance.random() < 0.3 else None
            calls.append(self.call(f"c{number}", tuple(known), refers))
        self.chance.shuffle(calls)  # a plan may list a call before those that it needs
        return DrawnPlan(plan_id, tuple(calls), self.chance.random() < 0.5)

    def call(self, call_id: str, dependencies: tuple[str, ...], refers: str | None) -> DrawnCall:
        chance = self.chance
        if chance.random() < 0.03:
            kind = "missing"
        else:
            kinds = ("process",) if self.processes else ("async", "async", "plain", "once", "brief")
            kind = chance.choice(kinds)
        allowed = self.endings if self.processes or kind == "brief" else self.brief
        weights = [one.weight for one in allowed]
        attempts = tuple(
            Attempt(self.patches(), chance.choices(allowed, weights)[0])
            for _ in range(chance.choice((1, 1, 2, 3)))
        )
        return DrawnCall(
            call_id,
            kind,
            attempts,
            dependencies,
            required=chance.random() < 0.7,
            concurrent=chance.random() < 0.7,
            retries=chance.choice((None, 0, 1, 2)),
            refers=refers,
        )

    def patches(self) -> tuple[dict[str, Any], ...]:
        return tuple(self.patch() for _ in range(self.chance.choice((0, 1, 1, 2))))

    def patch(self, depth: int = 0) -> dict[str, Any]:
        keys = self.chance.sample(KEYS, self.chance.randint(1, 2))
        return {key: self.value(depth) for key in keys}

    def value(self, depth: int) -> Any:
        roll = self.chance.random()
        if roll < 0.35 and depth < 3:
            return self.patch(depth + 1)
        return self.chance.choice(
            (None, True, False, 0, 1, -7, 2.5, "", "open", "Grüße", [], [1, {"deep": None}], "x" * 40)
        )


# --- the model -------------------------------------------------------------------------------------------------


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396, as its own pseudocode has it."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@dataclass
class Expected:
    """What must come of a call."""

    state: str  # completed, failed, skipped, timeout
    code: str | None = None
    runs: int = 0  # attempts that were made
    patches: tuple[dict[str, Any], ...] = ()
    final: bool = False  # it stands also if the plan is executed again

    @property
    def ok(self) -> bool:
        return self.state == "completed"

    @property
    def output(self) -> dict[str, Any]:
        output: dict[str, Any] = {}
        for patch in self.patches:
            output = merged(output, patch)
        return output


def expected_of(plan: DrawnPlan) -> dict[str, Expected]:
    """Return what must come of every call of a plan, by its id."""
    calls = {one.id: one for one in plan.calls}
    found: dict[str, Expected] = {}
    for _ in range(EXECUTIONS):
        before, found = found, {}
        for call in _in_order(plan.calls):
            earlier = before.get(call.id)
            stands = earlier is not None and (earlier.ok or earlier.final)
            found[call.id] = earlier if stands and earlier else _run(call, calls, found, earlier)
        failed = [one for one in plan.calls if found[one.id].state in ("failed", "timeout")]
        for one in failed:
            found[one.id].final = bool(found[one.id].runs) and not _may_repeat(one)
        wanting = [one for one in failed if one.required]
        if not wanting or not all(found[one.id].state == "timeout" and _may_repeat(one) for one in wanting):
            break
    return found


def succeeds(plan: DrawnPlan, found: Mapping[str, Expected]) -> bool:
    return all(found[one.id].ok for one in plan.calls if one.required)


def _may_repeat(call: DrawnCall) -> bool:
    return bool(UNWRITTEN_RETRIES if call.retries is None else call.retries) and call.repeatable


def _in_order(calls: Iterable[DrawnCall]) -> list[DrawnCall]:
    waiting, done, ordered = list(calls), set(), []
    while waiting:
        ready = [one for one in waiting if done.issuperset(one.all_dependencies)]
        ordered += ready
        done |= {one.id for one in ready}
        waiting = [one for one in waiting if one.id not in done]
    return ordered


def _run(
    call: DrawnCall, calls: Mapping[str, DrawnCall], found: Mapping[str, Expected], earlier: Expected | None
) -> Expected:
    runs = earlier.runs if earlier is not None else 0
    for one in call.all_dependencies:
        if found[one].state == "skipped" or (not found[one].ok and calls[one].required):
            return Expected("skipped", "SKIPPED", runs)
    if call.missing:
        return Expected("failed", "TOOL_NOT_FOUND", runs)
    allowed = UNWRITTEN_RETRIES if call.retries is None else call.retries
    for _ in range(allowed + 1):
        runs += 1
        attempt = call.attempt(runs)
        ending = attempt.ending
        if ending.ok:
            return Expected("completed", None, runs, attempt.patches)
        if not ending.repairable:
            break
        unsure = ending.unanswered or not ending.recoverable
        if call.retries is None and unsure and not call.repeatable:
            break  # nobody asked for a retry of a call that may have been carried out
    return Expected("timeout" if ending.timed_out else "failed", ending.code, runs)


@dataclass
class History:
    """The moves of a game as a stack of states: a turn puts one on, an undo takes it off, a redo puts it back."""

    state: dict[str, Any]
    past: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # turn, the state before it
    future: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # turn, the state after it
    marks: dict[str, int] = field(default_factory=dict)

    def turn(self, number: int, after: dict[str, Any]) -> None:
        self.past.append((number, self.state))
        self.future.clear()
        self.state = after

    def undo(self) -> None:
        number, before = self.past.pop()
        self.future.append((number, self.state))
        self.state = before

    def redo(self) -> None:
        number, after = self.future.pop()
        self.past.append((number, self.state))
        self.state = after

    def copy(self) -> History:
        return History(self.state, list(self.past), [], dict(self.marks))
