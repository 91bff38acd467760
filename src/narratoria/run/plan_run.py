"""One run of a plan: order, concurrency and failure rules.

Calls are scheduled by counters: one starts the moment its last dependency has ended, never in waves. A few workers
take ready calls from a queue, so a call that does not wait costs no task of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import (
    CANCELLED,
    INVALID_ARGUMENTS,
    TIMEOUT,
)
from narratoria.events import CallFinished, JsonObject
from narratoria.run.call_record import Call
from narratoria.run.call_span import tell_refused
from narratoria.run.plan import CallResult, CallState, PlanDocument, PlannedCall, PlanRetry
from narratoria.run.plan_problems import waits_for
from narratoria.run.plan_references import dependencies_excess, substitute, survey, too_large
from narratoria.run.records import call_result, cut_short, go_on, not_run
from narratoria.run.resolve import ToolRefused
from narratoria.tools.retry import RetryPolicy, plan_policy
from narratoria.tools.tool import Tool

if TYPE_CHECKING:
    from narratoria.run.plan_executor import PlanExecutor

SKIPPED: Final = "SKIPPED"
SKILL_DISABLED: Final = "SKILL_DISABLED"

# Only these verdicts of the runtime are worth a second execution of the plan: what failed may have passed meanwhile.
TRANSIENT: Final = frozenset({TIMEOUT})

_UNWRITTEN: Final = PlanRetry()
_BREATH: Final = 64  # calls that never waited, after which a worker lets the event loop turn
_TURN: Final = (
    0.02  # seconds after which it does so however few they were: time limits and signals need the loop
)


class PlanRun:
    """The bookkeeping of one plan: dependencies, calls ready to start, results."""

    def __init__(self, owner: PlanExecutor, plan: PlanDocument, completed: dict[str, CallResult]) -> None:
        self.owner = owner
        self.plan = plan
        self.results: dict[str, CallResult] = {}
        self.kept = {tool_id: result for tool_id, result in completed.items() if result.ok}
        # of calls that failed when the plan was executed before, also by a process that ended in the middle of it
        self.earlier = {tool_id: result for tool_id, result in completed.items() if not result.ok}
        self.attempts = {  # at those; one that took no time was not run
            tool_id: one.retry_count + 1 for tool_id, one in self.earlier.items() if one.execution_time
        }
        self.dependencies: dict[str, list[str]] = {}
        self.marked: set[str] = set()  # the calls whose input has references or literals
        for call in plan.tools:
            self.dependencies[call.tool_id] = call.dependencies
            if call.input and (found := survey(call.input)).marks:
                self.dependencies[call.tool_id] = waits_for(call.dependencies, found)
                self.marked.add(call.tool_id)
        self.calls = {call.tool_id: call for call in plan.tools}
        self.dependants: dict[str, list[str]] = {tool_id: [] for tool_id in self.calls}
        for tool_id, dependencies in self.dependencies.items():
            for dependency in dependencies:
                self.dependants[dependency].append(tool_id)
        self.failures = False  # if a call has ended without success, in any execution
        self.required = {call.tool_id: call.required for call in plan.tools}
        self.remaining: dict[str, int] = {}
        self.ready: deque[PlannedCall] = deque()
        self.active = 0
        self.alone = False
        self.underway: dict[str, tuple[Call, float]] = {}
        self.idle: list[asyncio.Future[None]] = []
        self.turned = time.perf_counter()
        self.turning = False  # the loop is to turn before another call is taken
        self.disabled = frozenset(plan.disabled_skills)
        if self.earlier:
            self._keep_final()

    async def go(self) -> None:
        """Run every call that has no result yet."""
        self.remaining = {tool_id: len(found) for tool_id, found in self.dependencies.items()}
        self.ready.clear()
        self.turning = False
        self.turned = time.perf_counter()
        for call in self.plan.tools:
            if self.remaining[call.tool_id] == 0:
                self.ready.append(call)
        workers = min(self.owner.limit, len(self.plan.tools)) if self.plan.parallel else 1
        if workers <= 1:
            await self._work()
            return
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work())
        except BaseExceptionGroup as errors:
            raise _first(errors) from None

    def worth_repeating(self) -> bool:
        """Tell if another execution could help: something required failed, only for a passing reason, and may be
        repeated.
        """
        failed = [one for one in self.results.values() if one.state in ("failed", "timeout")]
        wanting = [one for one in failed if self.required[one.tool_id]]
        return bool(wanting) and all(one.verdict in TRANSIENT and self._repeats(one) for one in wanting)

    def forget_failures(self) -> None:
        self.kept = {tool_id: one for tool_id, one in self.results.items() if one.ok}
        self.earlier = {tool_id: one for tool_id, one in self.results.items() if tool_id not in self.kept}
        self.results = {}
        self._keep_final()

    def _keep_final(self) -> None:
        """Let failures stand that another execution must not repeat."""
        for tool_id, result in [*self.earlier.items()]:
            if tool_id in self.calls and not self._repeats(result):
                self.kept[tool_id] = self.earlier.pop(tool_id)

    def _repeats(self, result: CallResult) -> bool:
        """Tell if another execution may run a failed call: it did not run yet, or has retries and may be repeated."""
        call = self.calls[result.tool_id]
        if result.state == "skipped" or result.verdict == CANCELLED or not self.attempts.get(call.tool_id):
            return True
        try:
            tool = self.owner.resolver.resolve(call.tool_path)
        except ToolRefused:
            return True
        return bool(call.retry_policy.max_retries) and tool.repeatable

    # --- scheduling ------------------------------------------------------------------------------------

    async def _work(self) -> None:
        without_waiting = 0
        while True:
            if time.perf_counter() - self.turned > _TURN:
                await self._let_the_loop_turn()
            call = self._take()
            if call is None:
                if not self.active and not self.ready:
                    self._wake(all_of_them=True)
                    return
                waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self.idle.append(waiter)
                await waiter
                continue
            try:
                settled = self._settle(call)
                result = settled if type(settled) is CallResult else await settled  # type: ignore[misc]
            finally:
                self.active -= 1
                self.alone = False
            self._ended(call, result)
            without_waiting += 1
            if without_waiting % _BREATH == 0:
                await asyncio.sleep(0)

    async def _let_the_loop_turn(self) -> None:
        """Wait for the next turn of the event loop. In each, one worker at most goes on if calls are that slow."""
        if not self.turning:
            self.turning = True
            asyncio.get_running_loop().call_soon(self._turn)
        while self.turning:  # noqa: ASYNC110 - to go round with the loop is what it is for
            await asyncio.sleep(0)

    def _turn(self) -> None:
        self.turning = False
        self.turned = time.perf_counter()

    def _take(self) -> PlannedCall | None:
        """Return the next call that may start now. A call with `async: false` runs alone."""
        # 000 §13.3.
        if not self.ready or self.alone:
            return None
        call = self.ready[0]
        alone = self.plan.parallel and not call.async_
        if alone and self.active:
            return None
        self.alone = alone
        self.active += 1
        return self.ready.popleft()

    def _ended(self, call: PlannedCall, result: CallResult) -> None:
        self.results[call.tool_id] = result
        if not result.ok:
            self.failures = True
        remaining = self.remaining
        for dependant in self.dependants[call.tool_id]:
            remaining[dependant] = left = remaining[dependant] - 1
            if not left:
                self.ready.append(self.calls[dependant])
        if self.idle:
            self._wake(all_of_them=not self.active)

    def _wake(self, *, all_of_them: bool) -> None:
        while self.idle and (all_of_them or self.ready):
            waiter = self.idle.pop()
            if not waiter.done():
                waiter.set_result(None)
                if not all_of_them:
                    return

    # --- one call --------------------------------------------------------------------------------------

    def _settle(self, call: PlannedCall) -> CallResult | Coroutine[Any, Any, CallResult]:
        """Return the call's result if it is known without running anything, or else its run, to be awaited."""
        kept = self.kept.get(call.tool_id)
        if kept is not None:
            return kept
        blocked = self._blocked_by(call)
        if blocked is not None:
            return self._without_running(call, "skipped", SKIPPED, f"not run: {blocked}")
        try:
            tool = self.owner.resolver.resolve(call.tool_path)
        except ToolRefused as refusal:
            tell_refused(call.tool_path, f"{self.plan.request_id}:{call.tool_id}", refusal.code, str(refusal))
            return self._without_running(call, "failed", refusal.code, str(refusal), [*refusal.suggestions])
        if self.disabled and (tool.name in self.disabled or tool.skill in self.disabled):
            return self._without_running(
                call, "failed", SKILL_DISABLED, f"{tool.name}: disabled by the plan itself"
            )
        return self._run(call, tool)

    def _blocked_by(self, call: PlannedCall) -> str | None:
        """Return the reason a dependency stops this call: it was skipped, or it is required and failed."""
        # 000 §13.4 rule 6.
        if not self.failures:
            return None
        results = self.results
        for dependency in self.dependencies[call.tool_id]:
            result = results[dependency]
            if result.ok:
                continue
            if result.state == "skipped":
                return f"{dependency!r} was skipped"
            if self.required[dependency]:
                return f"{dependency!r}, which it needs, failed"
        return None

    async def _run(self, call: PlannedCall, tool: Tool[Any, Any]) -> CallResult:
        results, needed = self.results, self.dependencies[call.tool_id]
        outputs: dict[str, JsonObject | None]
        if self.failures:
            outputs = {one: results[one].output if results[one].ok else None for one in needed}
        else:
            outputs = {one: results[one].output for one in needed}
        args = call.input
        if call.tool_id in self.marked:
            args, problems = _substituted(args, outputs)
            if problems:
                reason = f"{tool.name}: {'; '.join(problems)}"
                return self._without_running(call, "failed", INVALID_ARGUMENTS, reason, problems)
        if outputs and not tool.kind.is_function:  # they are sent with the request
            excess = too_large(outputs, dependencies_excess)
            if excess is not None:
                return self._without_running(
                    call, "failed", INVALID_ARGUMENTS, f"{tool.name}: {excess}", [excess]
                )
        limit = self.owner.call_timeout
        if limit is None:
            limit = tool.plan_timeout
        record = Call(
            call_id=f"{self.plan.request_id}:{call.tool_id}",
            tool_id=call.tool_id,
            plan_id=self.plan.request_id,
            policy=_policy(call.retry_policy.max_retries, call.retry_policy.backoff_ms),
            timeout=limit,
            dependencies=outputs or None,
        )
        if call.approval:
            record.approval = True
        started = time.perf_counter()
        if self.earlier:
            started = self._gone_on(call, record, started)
        self.underway[call.tool_id] = (record, started)
        result = await self.owner.executor.execute(tool, args, session=self.owner.session, call=record)
        if not result.success:
            self.attempts[call.tool_id] = record.attempts
        del self.underway[call.tool_id]  # a record kept for every call of a long plan is a fifth of its cost
        return call_result(call.tool_id, result, record, time.perf_counter() - started)

    def _gone_on(self, call: PlannedCall, record: Call, started: float) -> float:
        """Let a call go on from its earlier executions, if there were any; return when it began."""
        before = self.earlier.get(call.tool_id)
        if before is None:
            return started
        made = self.attempts.get(call.tool_id, 0)
        if made and before.verdict == CANCELLED:  # it was interrupted, and has the retries that are left
            record.policy = _policy(call.retry_policy.max_retries, call.retry_policy.backoff_ms, made)
        return go_on(record, before, made, started)

    def _without_running(
        self,
        call: PlannedCall,
        state: CallState,
        code: str,
        reason: str,
        suggestions: list[str] | None = None,
    ) -> CallResult:
        self.owner.session.record(
            CallFinished(
                call=f"{self.plan.request_id}:{call.tool_id}",
                tool=self.owner.resolver.name_of(call.tool_path),
                tool_id=call.tool_id,
                ok=False,
                state=state,
                attempts=0,
                error_code=code,
                error=reason,
                suggestions=suggestions or [],
            )
        )
        return not_run(call.tool_id, state, code, reason, suggestions or [], self.earlier.get(call.tool_id))

    def abandon(self, state: CallState, code: str, reason: str) -> None:
        """Give every call without a result one, so that the trace is complete."""
        waiting = {call.tool_id for call in self.ready}
        for call in self.plan.tools:
            if call.tool_id in self.results:
                continue
            if call.tool_id in self.kept:
                self.results[call.tool_id] = self.kept[call.tool_id]
            elif self.remaining.get(call.tool_id) == 0 and call.tool_id not in waiting:
                record, started = self.underway.get(call.tool_id, (Call(), time.perf_counter()))
                self.results[call.tool_id] = cut_short(call.tool_id, record, started, state, code, reason)
            elif (before := self.earlier.get(call.tool_id)) is not None and before.state != "skipped":
                self.results[call.tool_id] = before
            else:
                self.results[call.tool_id] = self._without_running(
                    call, "skipped", SKIPPED, f"not run: {reason}"
                )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that ended a group of workers: the others were cancelled because of it."""
    one = errors.exceptions[0]
    return _first(one) if isinstance(one, BaseExceptionGroup) else one


@lru_cache(maxsize=256)
def _policy(max_retries: int, backoff_ms: int, spent: int = 0) -> RetryPolicy:
    unwritten = (max_retries, backoff_ms) == (_UNWRITTEN.max_retries, _UNWRITTEN.backoff_ms)
    return plan_policy(max(0, max_retries - spent), backoff_ms, general=unwritten)


def _substituted(given: JsonObject, outputs: dict[str, JsonObject | None]) -> tuple[Any, list[str]]:
    """The input with outputs in place of references to them, and what is wrong with it."""
    problems: list[str] = []
    args = substitute(given, outputs, problems)
    if not problems and type(args) is not dict:
        problems.append("input: the reference gives no object")
    elif not problems and (excess := too_large(args)) is not None:
        problems.append(excess)
    return args, problems
