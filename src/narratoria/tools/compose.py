"""Tools made of tools (004, "Tool Composition"): one after another, side by side, or by condition.

The parts run through the pipeline like any call, with their own preconditions, retries and effects; nothing of theirs
is copied to the whole, or it would happen twice. The whole is one transaction: when it fails, nothing of any part
stays, and effects of parts that reached outside are taken back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from narratoria.errors import NO_BRANCH_MATCHED, ToolValidationError
from narratoria.events import JsonObject
from narratoria.retry import RetryPolicies, RetryPolicy
from narratoria.tool import Tool, ToolContext, ToolResult

AnyTool = Tool[Any, Any]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Branch:
    """`condition` sees the result of the branch's first tool; when it holds, the others follow."""

    condition: Callable[[ToolResult[Any], ToolContext], bool]
    tools: Sequence[AnyTool]


def sequence(
    tools: Sequence[AnyTool],
    *,
    name: str | None = None,
    description: str | None = None,
    stop_on_error: bool = False,
    transform_output: Callable[[Any, AnyTool], Arguments] | None = None,
    retry: RetryPolicy = RetryPolicies.NONE,
) -> AnyTool:
    """Run `tools` in order. `transform_output(value, next_tool)` makes the next one's arguments; without it each gets
    the arguments of the whole. A failure ends the sequence with `stop_on_error`; otherwise the rest still run, with
    the arguments as they were, and the whole fails."""
    tools = _some(tools, "sequence")

    async def run(args: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        arguments: Arguments = args
        results: list[ToolResult[Any]] = []
        for index, tool in enumerate(tools):
            result = await context.call(tool, arguments)
            results.append(result)
            if result.success:
                if transform_output is not None and index + 1 < len(tools):
                    arguments = transform_output(result.value, tools[index + 1])
            elif stop_on_error:
                return result
        return _together(tools, results, {"results": results})

    return _composed(
        run,
        name or _name("sequence", tools),
        description or f"Sequential execution of {len(tools)} tools",
        tools[0].parameters,
        _sum_of_timeouts(tools),
        retry,
    )


def parallel(
    tools: Sequence[AnyTool],
    *,
    name: str | None = None,
    description: str | None = None,
    max_concurrency: int | None = None,
    stop_on_error: bool = False,
    timeout: float | None = None,
    retry: RetryPolicy = RetryPolicies.NONE,
) -> AnyTool:
    """Run `tools` side by side, at most `max_concurrency` at once; a place is taken again the moment it is free.

    Each tool gets the arguments its own parameters name. With `stop_on_error` the first failure cancels the rest.
    """
    tools = _some(tools, "parallel")
    if max_concurrency is not None and max_concurrency < 1:
        raise ToolValidationError(f"parallel: max_concurrency must be 1 or more, got {max_concurrency}")

    async def run(args: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        places = asyncio.Semaphore(max_concurrency or len(tools))
        results: list[ToolResult[Any] | None] = [None] * len(tools)
        failed: list[ToolResult[Any]] = []

        async def run_one(index: int) -> None:
            async with places:
                result = await context.call(tools[index], _own_arguments(tools[index], args))
            results[index] = result
            if stop_on_error and not result.success:
                failed.append(result)
                raise _Stop

        try:
            async with asyncio.TaskGroup() as group:
                for index in range(len(tools)):
                    group.create_task(run_one(index))
        except* _Stop:
            pass  # the group has cancelled the others; the failure is in `failed`
        if failed:
            return failed[0]
        done = [result for result in results if result is not None]
        return _together(tools, done, dict(zip(_labels(tools), done, strict=True)))

    return _composed(
        run,
        name or _name("parallel", tools),
        description or f"Parallel execution of {len(tools)} tools",
        _merged_parameters(tools),
        timeout or max((tool.timeout or 0.0 for tool in tools), default=0.0) or None,
        retry,
    )


def conditional(
    branches: Sequence[Branch],
    fallback: Sequence[AnyTool] = (),
    *,
    name: str | None = None,
    description: str | None = None,
    retry: RetryPolicy = RetryPolicies.NONE,
) -> AnyTool:
    """Take the first branch whose condition holds for the result of its first tool.

    What the first tool of a branch not taken did is dropped again. With no match the `fallback` runs; without one
    the call fails with `NO_BRANCH_MATCHED`.
    """
    branches = [branch for branch in branches if branch.tools]
    if not branches and not fallback:
        raise ToolValidationError("conditional: needs a branch with tools, or a fallback")

    async def run(args: JsonObject, *, context: ToolContext) -> ToolResult[Any]:
        for branch in branches:
            async with context.attempt() as trial:
                result = await trial.call(branch.tools[0], args)
                if not branch.condition(result, trial):
                    trial.abandon()
                    continue
            return await _in_order(branch.tools[1:], args, context, result)
        if fallback:
            return await _in_order(fallback, args, context, None)
        return ToolResult.failed(
            "No conditional branch matched and no fallback provided",
            code=NO_BRANCH_MATCHED,
            recoverable=False,
        )

    chains = [*(branch.tools for branch in branches), *([fallback] if fallback else [])]
    return _composed(
        run,
        name or f"conditional_{len(branches)}_branches",
        description or "Conditional tool execution based on runtime conditions",
        chains[0][0].parameters,
        _longest(chains),
        retry,
    )


async def _in_order(
    tools: Sequence[AnyTool], args: Arguments, context: ToolContext, result: ToolResult[Any] | None
) -> ToolResult[Any]:
    for tool in tools:
        if result is not None and not result.success:
            return result
        result = await context.call(tool, args)
    assert result is not None  # noqa: S101 - a branch has a first result, a fallback at least one tool
    return result


class _Stop(Exception):
    """Ends a task group early."""


def _composed(
    run: Callable[..., Any],
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    timeout: float | None,
    retry: RetryPolicy,
) -> AnyTool:
    # The parts check their own arguments; the whole accepts what any of them may want.
    accepted = {**parameters, "additionalProperties": True}
    return Tool(name, description, run, parameters=accepted, timeout=timeout, retry=retry, kind="composition")


def _some(tools: Sequence[AnyTool], what: str) -> tuple[AnyTool, ...]:
    if not tools:
        raise ToolValidationError(f"{what}: needs at least one tool")
    for tool in tools:
        if not isinstance(tool, Tool):
            raise ToolValidationError(f"{what}: {tool!r} is not a Tool")
    return tuple(tools)


def _together(
    tools: Sequence[AnyTool], results: Sequence[ToolResult[Any]], value: JsonObject
) -> ToolResult[JsonObject]:
    failed = [(tool, result) for tool, result in zip(tools, results, strict=False) if not result.success]
    if not failed:
        messages = "; ".join(result.message for result in results if result.message)
        return ToolResult.ok(value, message=messages)
    tool, first = failed[0]
    error = first.failure
    return ToolResult.failed(
        f"{len(failed)} of {len(results)} tools failed, first {tool.name}: {first.message}",
        code=error.code if error else "EXECUTION_FAILED",
        recoverable=error.recoverable if error else True,
        suggestions=error.suggestions if error else (),
        value=value,
    )


def _name(what: str, tools: Sequence[AnyTool]) -> str:
    return f"{what}_{'_'.join(tool.name for tool in tools)}"[:64]


def _labels(tools: Sequence[AnyTool]) -> list[str]:
    """The names of the tools; the second of one name is `name#2`."""
    seen: dict[str, int] = {}
    labels = []
    for tool in tools:
        seen[tool.name] = count = seen.get(tool.name, 0) + 1
        labels.append(tool.name if count == 1 else f"{tool.name}#{count}")
    return labels


def _own_arguments(tool: AnyTool, args: Arguments) -> JsonObject:
    known = tool.parameters.get("properties")
    if not isinstance(known, Mapping):
        return dict(args)
    return {key: value for key, value in args.items() if key in known}


def _merged_parameters(tools: Sequence[AnyTool]) -> JsonObject:
    merged: JsonObject = {}
    for tool in tools:
        merged.update(tool.parameters.get("properties", {}))
    shared: JsonObject = {}
    for tool in tools:
        shared.update(tool.parameters.get("$defs", {}))
    return {"type": "object", "properties": merged, **({"$defs": shared} if shared else {})}


def _sum_of_timeouts(tools: Sequence[AnyTool]) -> float | None:
    if any(tool.timeout is None for tool in tools):
        return None
    return sum(tool.timeout or 0.0 for tool in tools)


def _longest(chains: Sequence[Sequence[AnyTool]]) -> float | None:
    sums = [_sum_of_timeouts(chain) for chain in chains]
    if any(one is None for one in sums):
        return None
    # Every branch's first tool may run before one is taken, so their times add up.
    probes = sum(chain[0].timeout or 0.0 for chain in chains)
    return probes + max(one or 0.0 for one in sums)
