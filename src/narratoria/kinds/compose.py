"""Tools made of tools: one after another, side by side, or by condition.

The parts run through the pipeline like any call, with their own preconditions, retries and effects; these are not
copied to the whole, or they would happen twice. The whole is one transaction: when it fails, the changes of every
part are dropped, and effects of parts that reached outside are taken back.
"""
# 004, "Tool Composition".

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from narratoria.errors import (
    CANCELLED,
    EFFECT_FAILED,
    NO_BRANCH_MATCHED,
    TIMEOUT,
    PromptEvaluationError,
    ToolValidationError,
    VisibilityExpansionRequired,
)
from narratoria.events import JsonObject
from narratoria.kinds.composed_names import composed_name
from narratoria.kinds.composed_results import labels_of, together
from narratoria.kinds.composed_times import Times, time_in_order, time_of_chains, time_side_by_side
from narratoria.kinds.shared_arguments import SharedArguments
from narratoria.spelling import options_spelled
from narratoria.tools.cancellation import await_cancellable
from narratoria.tools.deadline import LONGEST_TIMEOUT, check_positive, check_seconds
from narratoria.tools.retry import RetryPolicies, RetryPolicy
from narratoria.tools.tool import Tool, ToolContext, ToolKind, ToolResult

AnyTool = Tool[Any, Any]
COMPOSITION: Final = ToolKind("composition", made_of_tools=True)
Arguments = Mapping[str, Any]
SequenceTool = Tool[Arguments, dict[str, list[ToolResult[Any]]]]  # the value is {"results": […]}
ParallelTool = Tool[
    Arguments, dict[str, ToolResult[Any]]
]  # the value maps the name of each tool to its result
ConditionalTool = Tool[Arguments, Any]
Share = Callable[[AnyTool], JsonObject]  # from a part to its own arguments


@dataclass(frozen=True, slots=True)
class Branch:
    """`condition`, plain or async, sees the result of the branch's first tool; when it holds, the others follow,
    whatever that result was: a condition on failure makes a branch that recovers."""

    condition: Callable[[ToolResult[Any], ToolContext], bool | Awaitable[bool]]
    tools: Sequence[AnyTool]


@options_spelled
def sequence(
    tools: Sequence[AnyTool],
    *,
    name: str | None = None,
    description: str | None = None,
    stop_on_error: bool = False,
    transform_output: Callable[[Any, AnyTool], Arguments | Awaitable[Arguments]] | None = None,
    retry: RetryPolicy = RetryPolicies.NONE,
) -> SequenceTool:
    """Run `tools` in order.

    `transform_output(value, next_tool)`, plain or async, makes the next one's arguments; without it each gets those
    arguments of the whole that its own parameters know. A failure ends the sequence with `stop_on_error`; otherwise
    the rest still run, with the arguments as they were, and the whole fails.
    """
    tools = _some(tools, "sequence")
    # With a transform only the first surely gets the arguments of the whole.
    heirs = tools if transform_output is None else tools[:1]
    shared = SharedArguments(heirs, heirs)

    async def run(args: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        share = shared.split(args)
        made: list[Arguments] = []  # by the transform
        results: list[ToolResult[Any]] = []
        for index, tool in enumerate(tools):
            arguments = made[-1] if made else share(tool) if tool in heirs else args
            result = await context.call(tool, arguments)
            results.append(result)
            if result.success:
                if transform_output is not None and index + 1 < len(tools):
                    output = transform_output(result.value, tools[index + 1])
                    made.append(await await_cancellable(output) if isinstance(output, Awaitable) else output)
            elif stop_on_error:
                return result
        return together(tools, dict(enumerate(results)), {"results": results})

    return _composed(
        run,
        name
        or composed_name("sequence", tools, [tools, stop_on_error, transform_output, description, retry]),
        description or f"Sequential execution of {len(tools)} tools",
        tools,
        shared,
        time_in_order(tools),
        retry,
    )


@options_spelled
def parallel(
    tools: Sequence[AnyTool],
    *,
    name: str | None = None,
    description: str | None = None,
    max_concurrency: int | None = None,
    stop_on_error: bool = False,
    timeout: float | None = None,
    retry: RetryPolicy = RetryPolicies.NONE,
) -> ParallelTool:
    """Run `tools` side by side, at most `max_concurrency` at once; a place is taken again the moment it is free.

    Each tool gets those arguments that its own parameters know. With `stop_on_error` no tool starts after a failure,
    and those that run are cancelled. `value` maps each tool to its result, also when the whole fails.
    """
    tools = _some(tools, "parallel")
    if max_concurrency is not None and (type(max_concurrency) is not int or max_concurrency < 1):
        raise ToolValidationError(f"parallel: max_concurrency must be 1 or more, got {max_concurrency!r}")
    if timeout is not None:
        check_positive("parallel: timeout", timeout)
        check_seconds("parallel: timeout", timeout, LONGEST_TIMEOUT)
    at_once = min(max_concurrency or len(tools), len(tools))
    shared = SharedArguments(tools, tools)

    async def run(args: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        ended = await _side_by_side(tools, shared.split(args), context, at_once, stop_on_error)
        labels = labels_of(tools)
        value = {labels[index]: one for index, one in ended.results.items()}
        result = together(tools, ended.results, value, ended.stopped_by)
        if ended.late and result.failure is not None and result.failure.verdict != EFFECT_FAILED:
            return ToolResult.failed(
                f"{context.tool.name}: no result within {context.time_limit:g} s",
                code=TIMEOUT,
                suggestions=("allow more time",),
                value=value,
                source="runtime",
            )
        return result

    whole = _composed(
        run,
        name
        or composed_name(
            "parallel", tools, [tools, max_concurrency, stop_on_error, timeout, description, retry]
        ),
        description or f"Parallel execution of {len(tools)} tools",
        tools,
        shared,
        Times(timeout, timeout) if timeout else time_side_by_side(tools, at_once),
        retry,
    )
    whole.ends_itself = True  # at its time limit, with the results so far
    return whole


class _Ended(NamedTuple):
    """The end of tools that ran side by side, by their place in the list."""

    results: dict[int, ToolResult[Any]]  # of those that started
    stopped_by: int | None  # the one whose failure stopped the rest
    late: bool  # the time ran out before all had ended


async def _side_by_side(
    tools: Sequence[AnyTool], share: Share, context: ToolContext, at_once: int, stop_on_error: bool
) -> _Ended:
    """Run the tools; end them when one stops the rest, or when the time of the call is over."""
    places = asyncio.Semaphore(at_once)
    results: dict[int, ToolResult[Any]] = {}
    stopped_by: list[int] = []  # one at most
    raised: list[Exception] = []
    limit = asyncio.timeout(context.time_limit)
    tasks: list[asyncio.Task[None]] = []

    def stop_the_others() -> None:
        # Not by an error: a group that has one raises it, and a cancellation from outside would be lost.
        for one in tasks:
            if one is not asyncio.current_task():
                one.cancel()

    context.session.limits += (limit,)

    async def run_one(index: int) -> None:
        async with places:
            if stopped_by or raised or limit.expired():
                return
            try:
                result = await context.call(tools[index], share(tools[index]))
            except asyncio.CancelledError:
                if stopped_by or limit.expired():
                    why = f"{tools[stopped_by[0]].name} failed" if stopped_by else "the time was over"
                    results[index] = ToolResult.failed(
                        f"{tools[index].name}: stopped, because {why}", code=CANCELLED, source="runtime"
                    )
                raise
            except (PromptEvaluationError, VisibilityExpansionRequired) as error:
                raised.append(error)  # 002, failure table: it is raised as itself, not in a group
                if len(raised) == 1 and not stopped_by:
                    stop_the_others()
                return
            results[index] = result
            if stop_on_error and not result.success and not stopped_by:
                stopped_by.append(index)
                if not raised:
                    stop_the_others()

    try:
        async with limit, asyncio.TaskGroup() as group:
            for index in range(len(tools)):
                tasks.append(group.create_task(run_one(index)))
    except TimeoutError:
        pass  # the group has cancelled the others; `limit` has expired
    if raised:
        raise raised[0]
    late = limit.expired() and not stopped_by
    return _Ended(dict(sorted(results.items())), next(iter(stopped_by), None), late)


@options_spelled
def conditional(
    branches: Sequence[Branch],
    fallback: Sequence[AnyTool] | None = (),
    *,
    name: str | None = None,
    description: str | None = None,
    retry: RetryPolicy = RetryPolicies.NONE,
) -> ConditionalTool:
    """Take the first branch whose condition holds for the result of its first tool, and run its other tools, up to
    the first of them that fails. The last result is the result of the whole.

    The changes of the first tool of a branch not taken are dropped; its assets and choices are kept. With no match the
    `fallback` runs; without one the call fails with `NO_BRANCH_MATCHED`.
    """
    branches = _checked_branches(branches)
    fallback = fallback if isinstance(fallback, Tool) else tuple(fallback or ())
    if fallback:
        fallback = _some(fallback, "conditional")
    chains = [*(branch.tools for branch in branches), *([fallback] if fallback else [])]
    parts = [tool for chain in chains for tool in chain]
    made_of = [[branch.condition, branch.tools] for branch in branches]
    # Only the first tool surely runs.
    shared = SharedArguments(parts, [chain[0] for chain in chains[:1]], alternatives=True)

    async def run(args: JsonObject, *, context: ToolContext) -> ToolResult[Any]:
        share = shared.split(args)
        for branch in branches:
            async with context.attempt() as trial:
                result = await trial.call(branch.tools[0], share(branch.tools[0]))
                holds = branch.condition(result, trial)
                if not (await await_cancellable(holds) if isinstance(holds, Awaitable) else holds):
                    trial.abandon()
                    continue
            return await _in_order(branch.tools[1:], share, context, result)
        if fallback:
            first = await context.call(fallback[0], share(fallback[0]))
            return await _in_order(fallback[1:], share, context, first, True)
        return ToolResult.failed(
            "No conditional branch matched and no fallback provided",
            code=NO_BRANCH_MATCHED,
            recoverable=False,
            source="runtime",
        )

    return _composed(
        run,
        name or composed_name("conditional", parts, [made_of, fallback, description, retry]),
        description or "Conditional tool execution based on runtime conditions",
        parts,
        shared,
        time_of_chains(chains),
        retry,
    )


def _checked_branches(branches: Sequence[Branch]) -> list[Branch]:
    """The branches that have tools; raise `ToolValidationError` for one that is none."""
    checked: list[Branch] = []
    for index, branch in enumerate(branches):
        if not isinstance(branch, Branch):
            raise ToolValidationError(f"conditional: branches[{index}]: write Branch(condition, tools)")
        if not callable(branch.condition):
            raise ToolValidationError(
                f"conditional: branches[{index}].condition is not callable: {branch.condition!r}"
            )
        if isinstance(branch.tools, Tool):
            raise ToolValidationError(f"conditional: branches[{index}].tools: expected a list of tools")
        if listed := tuple(branch.tools):
            checked.append(Branch(branch.condition, _some(listed, "conditional")))
    return checked


async def _in_order(
    tools: Sequence[AnyTool],
    share: Share,
    context: ToolContext,
    result: ToolResult[Any],
    needed: bool = False,
) -> ToolResult[Any]:
    """Return the last result of `tools`, or of the first that fails. `result` is the one before them, and counts only
    if it is `needed`.
    """
    if needed and not result.success:
        return result
    for tool in tools:
        result = await context.call(tool, share(tool))
        if not result.success:
            return result
    return result


def _composed(
    run: Callable[..., Any],
    name: str,
    description: str,
    parts: Sequence[AnyTool],
    shared: SharedArguments,
    times: Times,
    retry: RetryPolicy,
) -> AnyTool:
    whole: AnyTool = Tool(
        name,
        description,
        run,
        parameters=shared.parameters,
        timeout=times.declared,
        retry=retry,
        kind=COMPOSITION,
    )
    whole.parts = tuple(parts)
    whole.read_only = all(part.read_only for part in parts)
    whole.plan_timeout = times.in_plan
    whole.parse = shared.parse  # exact, where the published schema of several parts cannot be
    return whole


def _some(tools: Sequence[AnyTool], what: str) -> tuple[AnyTool, ...]:
    if isinstance(tools, Tool):
        raise ToolValidationError(f"{what}: expected a list of tools, got {tools!r} alone")
    tools = tuple(tools)
    if not tools:
        raise ToolValidationError(f"{what}: needs at least one tool")
    for tool in tools:
        if not isinstance(tool, Tool):
            raise ToolValidationError(f"{what}: {tool!r} is not a Tool")
    return tools
