"""Running a plan under its time limit, again where that may help, with a trace that is complete however it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from narratoria import telemetry
from narratoria.errors import (
    CANCELLED,
    TIMEOUT,
    PromptEvaluationError,
    ToolValidationError,
    VisibilityExpansionRequired,
    describe,
)
from narratoria.events import PlanFinished
from narratoria.run.cores import usable_cores
from narratoria.run.executor import ToolExecutor
from narratoria.run.handlers import STUBBORN
from narratoria.run.plan import CallResult, ExecutionResult, PlanDocument
from narratoria.run.plan_run import PlanRun
from narratoria.run.registry import ToolRegistry
from narratoria.run.resolve import ToolResolver
from narratoria.session import Session
from narratoria.tools.deadline import LONGEST_TIMEOUT, check_seconds

PLAN_TIMEOUT: Final = 60.0
LONGEST_PLAN: Final = 21_600.0  # in seconds; what is longer can only be meant in milliseconds
MAX_EXECUTIONS: Final = 3
MAX_GENERATIONS: Final = 5
GENERATION_TIMEOUT: Final = 5.0  # 000 §13.6


class PlanExecutor:
    """Executes plans in one session.

    `limit` bounds the calls that run at the same time: by default, the cores this process may use. `call_timeout`
    bounds each attempt, in place of what the tools declare.
    """

    # 000 §13.4.

    def __init__(
        self,
        registry: ToolRegistry,
        session: Session,
        *,
        roots: Sequence[Path] = (),
        resolver: ToolResolver | None = None,
        executor: ToolExecutor | None = None,
        limit: int | None = None,
        call_timeout: float | None = None,
        plan_timeout: float = PLAN_TIMEOUT,
        max_executions: int = MAX_EXECUTIONS,
    ) -> None:
        for what, seconds, longest in (
            ("call_timeout", call_timeout, LONGEST_TIMEOUT),
            ("plan_timeout", plan_timeout, LONGEST_PLAN),
        ):
            if seconds is not None and not seconds > 0:  # nan is not either
                raise ToolValidationError(f"{what}: must be more than 0 seconds, got {seconds!r}")
            check_seconds(what, seconds, longest)
        self.registry = registry
        self.session = session
        self.resolver = resolver or ToolResolver(registry, roots)
        self.executor = executor or registry.executor
        self.limit = limit or usable_cores()
        self.call_timeout = call_timeout
        self.plan_timeout = plan_timeout
        self.max_executions = max_executions

    async def execute(
        self, plan: PlanDocument, *, completed: Mapping[str, CallResult] | None = None
    ) -> ExecutionResult:
        """Run `plan`; `completed` holds results of an earlier, interrupted run, which are kept.

        Raises `PlanRejected` before anything runs; after that every ending is an `ExecutionResult`, except that a
        cancellation, or an error that ends the whole evaluation, passes through once all calls are settled.
        """
        result, error = await self.settle(plan, completed=completed)
        if error is not None:
            raise error
        return result

    async def settle(
        self,
        plan: PlanDocument,
        *,
        completed: Mapping[str, CallResult] | None = None,
        generations: int = MAX_GENERATIONS,
    ) -> tuple[ExecutionResult, PromptEvaluationError | VisibilityExpansionRequired | None]:
        """Run a plan for a turn, which may make `generations` plans. Return the trace, also if a tool ended the
        evaluation, and the error it did that with.
        """
        plan = plan.checked()
        with telemetry.plan(plan.request_id, len(plan.tools)) as span:
            result, ended_by = await self._settle(plan, completed or {}, generations)
            if result.failed_tools:
                span.note(failed_calls=len(result.failed_tools))
            if not result.success:
                span.failed("PLAN_FAILED")
        return result, ended_by

    async def _settle(
        self, plan: PlanDocument, completed: Mapping[str, CallResult], generations: int
    ) -> tuple[ExecutionResult, PromptEvaluationError | VisibilityExpansionRequired | None]:
        started = time.perf_counter()
        run = PlanRun(self, plan, dict(completed))
        limits = self.session.approvals.limits  # they stand still while a person is asked
        ended_by: PromptEvaluationError | VisibilityExpansionRequired | None = None
        try:
            # The second timer is for a handler that swallows the first one's cancellation: a second one closes it.
            async with (
                asyncio.timeout(self.plan_timeout + STUBBORN) as last,
                asyncio.timeout(self.plan_timeout) as first,
            ):
                limits.append((last, first))
                try:
                    await run.go()
                    for _ in range(self.max_executions - 1):
                        if not run.worth_repeating():
                            break
                        run.forget_failures()
                        await run.go()
                finally:
                    limits.remove((last, first))
        except TimeoutError:
            run.abandon(
                "timeout", TIMEOUT, f"the plan did not finish within {self.plan_timeout:g} s{self._hint()}"
            )
        except (PromptEvaluationError, VisibilityExpansionRequired) as error:
            run.abandon("failed", CANCELLED, f"a tool ended the evaluation: {describe(error)}")
            ended_by = error
        except asyncio.CancelledError:
            run.abandon("failed", CANCELLED, "the plan was cancelled")
            self._finish(plan, run, started, generations)
            raise
        return self._finish(plan, run, started, generations), ended_by

    def _hint(self) -> str:
        if self.plan_timeout != PLAN_TIMEOUT:  # whoever chose another limit knows where
            return ""
        return ", the default; --plan-timeout (in Python plan_timeout) gives it longer"

    def _finish(self, plan: PlanDocument, run: PlanRun, started: float, generations: int) -> ExecutionResult:
        results = [run.results[call.tool_id] for call in plan.tools]
        success = all(run.results[call.tool_id].ok for call in plan.tools if call.required)
        attempt = plan.metadata.generation_attempt
        elapsed = time.perf_counter() - started
        result = ExecutionResult(
            plan_id=plan.request_id,
            success=success,
            narrative=plan.narrative or "",
            execution_time=round(elapsed * 1000, 3),
            tool_results=results,
            failed_tools=[one.tool_id for one in results if one.state in ("failed", "timeout")],
            generation_attempt=attempt,
            can_replan=not success and attempt < generations,
        )
        self.session.record(
            PlanFinished(
                plan=plan.request_id,
                success=success,
                failed=result.failed_tools,
                duration=round(elapsed, 6),
                can_replan=result.can_replan,
            )
        )
        return result
