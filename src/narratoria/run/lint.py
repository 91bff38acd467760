"""Checks of a plan before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from narratoria.errors import ArgumentsInvalid, PlanRejected
from narratoria.run.plan import PlanDocument, PlannedCall, levels
from narratoria.run.plan_problems import unknown_keys
from narratoria.run.plan_references import sources, substitute
from narratoria.run.resolve import ToolRefused, ToolResolver
from narratoria.strict_json import decode
from narratoria.tools.tool import Tool

SHOWN = 8  # names in one line; the rest is counted
EXACT = 200  # writers of one value that are compared each with each


class PlanReport(msgspec.Struct, kw_only=True, rename="camel"):
    """The findings. `problems` keep a plan from running at all; the others are worth knowing."""

    ok: bool = True
    parallel: bool = False
    problems: list[str] = []
    unknown_keys: list[str] = []
    levels: list[list[str]] = []
    never_run: list[str] = []
    conflicts: list[str] = []
    effects: list[str] = []
    missing_permissions: list[str] = []
    approvals: list[str] = []
    """Calls that a person will be asked about first."""


def lint_plan(text: str | bytes, resolver: ToolResolver, permissions: Iterable[str] = ()) -> PlanReport:
    """Return all findings about the plan in `text`; nothing is started."""
    unknown = keys_that_mean_nothing(text)
    try:
        plan = PlanDocument.from_json(text)
    except PlanRejected as error:
        return PlanReport(ok=False, problems=list(error.problems), unknown_keys=unknown)
    report = PlanReport(levels=levels(plan), parallel=plan.parallel, unknown_keys=unknown)
    tools = _resolve(plan, resolver, report)
    granted = frozenset(permissions)
    for call in plan.tools:
        tool = tools.get(call.tool_id)
        if tool is None:
            continue
        report.effects.extend(f"{call.tool_id}: {one.type}: {one.description}" for one in tool.effects)
        reason = _asks(call, tool)
        if reason is not None:
            report.approvals.append(f"{call.tool_id}: {tool.name}: {reason}")
        for permission in _permissions(tool):
            if permission not in granted:
                report.missing_permissions.append(f"{call.tool_id}: {tool.name} needs {permission!r}")
        report.problems.extend(_argument_problems(call, tool))
    report.never_run.extend(_never_run(plan, tools))
    report.conflicts.extend(_conflicts(plan, tools))
    report.ok = not report.problems and not report.never_run
    return report


def keys_that_mean_nothing(text: str | bytes) -> list[str]:
    """Return the unknown keys of a plan's text, each with the key perhaps meant; none if it is not JSON."""
    try:
        return unknown_keys(decode(text))
    except (ValueError, RecursionError):
        return []


def _resolve(plan: PlanDocument, resolver: ToolResolver, report: PlanReport) -> dict[str, Tool[Any, Any]]:
    tools: dict[str, Tool[Any, Any]] = {}
    for index, call in enumerate(plan.tools):
        try:
            tool = resolver.resolve(call.tool_path)
        except ToolRefused as refusal:
            report.problems.append(f"$.tools[{index}].toolPath: {refusal}")
            continue
        tools[call.tool_id] = tool
        if {tool.name, tool.skill} & set(plan.disabled_skills):
            report.problems.append(f"$.tools[{index}].toolPath: {tool.name} is in disabledSkills")
    return tools


def _asks(call: PlannedCall, tool: Tool[Any, Any]) -> str | None:
    """Return why a person is asked before the call, by the plan or by its tool; None if nobody is."""
    return "the plan asks for approval" if call.approval is True else tool.asks(tool.approval)


def _permissions(tool: Tool[Any, Any]) -> list[str]:
    """Return the permissions a tool needs; a manifest may declare them in two places."""
    asked = [permission for one in tool.preconditions for permission in one.permissions()]
    return list(dict.fromkeys([*tool.permissions, *asked]))


def _argument_problems(call: PlannedCall, tool: Tool[Any, Any]) -> list[str]:
    """Return the arguments the tool would refuse. Inputs that refer to another call are known only when it has run."""
    if any(True for _ in sources(call.input)):
        return []
    try:
        tool.parse(substitute(call.input, {}, []))
    except ArgumentsInvalid as error:
        return [f"{call.tool_id}: input.{problem}" for problem in error.problems]
    return []


def _never_run(plan: PlanDocument, tools: Mapping[str, Tool[Any, Any]]) -> list[str]:
    """Return the calls behind a required call that is sure to fail, because there is no tool for it."""
    by_id = {call.tool_id: call for call in plan.tools}
    doomed: dict[str, str] = {}
    for level in levels(plan):
        for tool_id in level:
            for dependency in by_id[tool_id].all_dependencies:
                if dependency in doomed or (dependency not in tools and by_id[dependency].required):
                    doomed.setdefault(tool_id, dependency)
    return [f"{tool_id}: it waits for {cause!r}, which cannot succeed" for tool_id, cause in doomed.items()]


def _conflicts(plan: PlanDocument, tools: Mapping[str, Tool[Any, Any]]) -> list[str]:
    """Return the calls that may run at the same time and declare that they set the same state."""
    if not plan.parallel:
        return []
    writers: dict[str, list[str]] = {}
    for call in plan.tools:
        tool = tools.get(call.tool_id)
        if tool is not None and call.async_:
            for what in dict.fromkeys(what for effect in tool.effects for what in effect.writes()):
                writers.setdefault(what, []).append(call.tool_id)
    return [
        line for what, calls in writers.items() if len(calls) > 1 for line in _unordered(plan, what, calls)
    ]


def _unordered(plan: PlanDocument, what: str, calls: list[str]) -> list[str]:
    """Return those of `calls` that no dependency puts in order, in one line."""
    if len(calls) <= EXACT:
        before = _ancestors_among(plan, set(calls))
        free = [
            one
            for one in calls
            if any(two not in before[one] | {one} and one not in before[two] for two in calls)
        ]
    else:  # those of one level are surely unordered; more is not worth comparing each with each
        wanted = set(calls)
        free = [
            one for level in levels(plan) if len(found := wanted.intersection(level)) > 1 for one in found
        ]
    if len(free) < 2:
        return []
    shown = ", ".join(free[:SHOWN]) + (f" and {len(free) - SHOWN} more" if len(free) > SHOWN else "")
    return [f"{shown} may run at the same time and all set {what}"]


def _ancestors_among(plan: PlanDocument, wanted: set[str]) -> dict[str, frozenset[str]]:
    """For each call, which of the `wanted` ones it waits for."""
    by_id = {call.tool_id: call for call in plan.tools}
    found: dict[str, frozenset[str]] = {}
    for level in levels(plan):
        for tool_id in level:
            own = by_id[tool_id].all_dependencies
            direct = frozenset(one for one in own if one in wanted)
            found[tool_id] = direct.union(*(found[one] for one in own)) if own else direct
    return found
