"""The time a composition may take: as long as its parts may, so that it cuts none of them short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from narratoria.tools.tool import DEFAULT_TIMEOUT, Tool

AnyTool = Tool[Any, Any]


class Times(NamedTuple):
    """The longest time that a call may take: as declared, None if there is no limit, and in a plan, which has one for
    every call.
    """

    declared: float | None
    in_plan: float


def _times(tool: AnyTool) -> Times:
    """Return the longest times of a call of the tool with all its retries."""
    retries = tool.retry.max_retries
    waits = sum(tool.retry.backoff.longest(n + 1) for n in range(retries))
    declared = None if tool.timeout is None else tool.timeout * (retries + 1) + waits
    return Times(declared, tool.plan_timeout * (retries + 1) + waits)


def _combined(combine: Callable[[list[float]], float], times: Sequence[Times]) -> Times:
    declared = [one.declared for one in times if one.declared is not None]
    return Times(
        combine(declared) if len(declared) == len(times) else None, combine([one.in_plan for one in times])
    )


def time_in_order(tools: Sequence[AnyTool]) -> Times:
    """Return the time of tools that run one after another."""
    return _combined(sum, [*map(_times, tools)])


def time_side_by_side(tools: Sequence[AnyTool], places: int) -> Times:
    """Return a bound on the time of a schedule that keeps all places taken (Graham's bound); with a place for each
    tool, the longest.
    """

    def bound(limits: list[float]) -> float:
        if places >= len(limits):
            return max(limits)
        return sum(limits) / places + max(limits) * (places - 1) / places

    return _combined(bound, [*map(_times, tools)])


def time_of_chains(chains: Sequence[Sequence[AnyTool]]) -> Times:
    """Return the time of branches, of which one is taken."""
    if not chains:
        return Times(None, DEFAULT_TIMEOUT)
    # Every branch's first tool may run before one is taken, so their times add up.
    probes = time_in_order([chain[0] for chain in chains])
    return _combined(sum, [probes, _combined(max, [*map(time_in_order, chains)])])
