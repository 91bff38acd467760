"""`narratoria run`, `lint` and `plan`: plans from files."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from narratoria.bounds import DocumentFault, read_file, read_stream, text_of
from narratoria.cli import FAILED, TIMED_OUT
from narratoria.cli.approval_options import TerminalApprover, approval_options
from narratoria.cli.completion import SESSION
from narratoria.cli.engine_option import engine_option
from narratoria.cli.env_option import env_option
from narratoria.cli.output import Seconds, console, print_json, styled
from narratoria.cli.plan_progress import PlanProgress
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.skills_option import known_skills, say_problems, skills_option
from narratoria.cli.source_options import opened_sources, source_of, source_options
from narratoria.errors import PlanRejected
from narratoria.kinds.process.custody import custody, sweep
from narratoria.run.graph import mermaid, svg
from narratoria.run.lint import PlanReport, keys_that_mean_nothing, lint_plan
from narratoria.run.plan import ExecutionResult, PlanDocument
from narratoria.run.plan_executor import LONGEST_PLAN, PLAN_TIMEOUT, PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.run.resolve import ToolResolver
from narratoria.session import Session

if TYPE_CHECKING:
    from narratoria.kinds.foreign_sources import ToolSources

_plan_file = click.argument(
    "plan_file", metavar="PLAN.json", type=click.Path(allow_dash=True, path_type=Path)
)
_tools = click.option(
    "--tools", multiple=True, type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A folder whose tools the plan may use, besides its own.",
)  # fmt: skip
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_grant = click.option("--grant", multiple=True, metavar="PERMISSION", help="Grant a permission.")


def _read(path: Path) -> str:
    try:
        return text_of(read_stream(sys.stdin.buffer) if str(path) == "-" else read_file(path))
    except DocumentFault as error:
        raise click.BadParameter(error.at(path), param_hint="PLAN.json") from None
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{path}: {error}", param_hint="PLAN.json") from None


def _roots(path: Path, tools: tuple[Path, ...]) -> list[Path]:
    """Return the plan's own folder and the folders given by --tools."""
    return [Path.cwd() if str(path) == "-" else path.resolve().parent, *tools]


def _rejected(error: PlanRejected, as_json: bool) -> int:
    if as_json:
        print_json({"problems": list(error.problems)})
    else:
        err = console(stderr=True)
        err.print(styled(("✗ the plan was rejected; nothing was run", "bold red")))
        for problem in error.problems:
            err.print(styled(("  → ", "dim"), (problem, "")))
    return FAILED


@click.command()
@_plan_file
@_tools
@_json
@_grant
@click.option(
    "--session", "session_id", type=SESSION, help="Run in a saved session, and keep what the plan does there."
)
@click.option(
    "--call-timeout",
    type=Seconds(),
    metavar="SECONDS",
    help="For each attempt at a call, in place of what the tools declare.",
)
@approval_options
@engine_option
@env_option
@sandbox_option
@source_options
@skills_option
@click.option(
    "--plan-timeout", "--timeout", "plan_timeout", type=Seconds(LONGEST_PLAN), default=PLAN_TIMEOUT, show_default=True,
    metavar="SECONDS", help="For the whole plan.",
)  # fmt: skip
def run(
    plan_file: Path,
    tools: tuple[Path, ...],
    as_json: bool,
    grant: tuple[str, ...],
    session_id: str | None,
    call_timeout: float | None,
    yes: bool,
    approve: tuple[str, ...],
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
    plan_timeout: float,
) -> int:
    """Execute a plan and print its trace."""
    text = _read(plan_file)
    for line in keys_that_mean_nothing(text):
        click.echo(f"warning: {line}", err=True)
    try:
        plan = PlanDocument.from_json(text)
    except PlanRejected as error:
        return _rejected(error, as_json)
    bounds = {"call_timeout": call_timeout, "plan_timeout": plan_timeout}
    custody().adopt_orphans()
    equipment = _equipped(plan, sources, skill_folders)
    approver = TerminalApprover(yes=yes, approve=approve)
    roots = _roots(plan_file, tools)
    result = asyncio.run(_run(plan, roots, equipment, as_json, grant, session_id, approver, bounds))
    if as_json:
        print_json(result)
    if result.success:
        return 0
    return TIMED_OUT if any(one.state == "timeout" for one in result.tool_results) else FAILED


async def _run(
    plan: PlanDocument,
    roots: list[Path],
    equipment: AbstractAsyncContextManager[ToolRegistry],
    as_json: bool,
    grant: tuple[str, ...],
    session_id: str | None,
    approver: TerminalApprover,
    bounds: dict[str, Any],
) -> ExecutionResult:
    from narratoria.cli.session_options import saved_session

    async with saved_session(session_id) as session, equipment as registry:
        session.grant(*grant)
        session.approvals.approver = approver
        executor = PlanExecutor(registry, session, roots=roots, **bounds)
        if as_json:
            result = await executor.execute(plan)
        else:
            with PlanProgress(plan) as view:
                session.attach(view)
                approver.quiet = view.quiet
                result = await executor.execute(plan)
            view.conclude(result, session)
    await sweep()
    return result


@asynccontextmanager
async def _equipped(
    plan: PlanDocument | None, found: ToolSources | None, folders: tuple[Path, ...]
) -> AsyncIterator[ToolRegistry]:
    """Return a registry with the scripts of skills, and the tools of those servers and documents that the plan
    names; without a plan, of all.
    """
    registry = ToolRegistry()
    only = (
        None if plan is None else {source_of(call.tool_path) for call in plan.tools if "." in call.tool_path}
    )
    if only != set() or folders:
        library = known_skills(folders, only)
        say_problems(library)
        library.follow(registry)
    if found is None:
        yield registry
        return
    async with opened_sources(found, only=only) as opened:
        opened.follow(registry)
        yield registry


@click.command()
@_plan_file
@_tools
@_json
@_grant
@source_options
@skills_option
def lint(
    plan_file: Path,
    tools: tuple[Path, ...],
    as_json: bool,
    grant: tuple[str, ...],
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
) -> int:
    """Check a plan without running it.

    It lists the plan's problems, levels, conflicts, effects and permissions. With --mcp, the servers are asked for
    their tools.
    """
    text = _read(plan_file)

    async def registered() -> ToolRegistry:
        async with _equipped(None, sources, skill_folders) as registry:
            return ToolRegistry(registry.list())

    # Outside the event loop, where a signal ends the check at once.
    resolver = ToolResolver(asyncio.run(registered()), _roots(plan_file, tools))
    report = lint_plan(text, resolver, Session(permissions=grant).permissions)
    if as_json:
        print_json(report)
    else:
        _show(report)
    return 0 if report.ok else FAILED


def _show(report: PlanReport) -> None:
    out = console()
    for title, style, lines in (
        ("problems", "bold red", report.problems),
        ("unknown keys", "yellow", report.unknown_keys),
        ("never run", "bold red", report.never_run),
        ("missing permissions", "yellow", report.missing_permissions),
        ("conflicts", "yellow", report.conflicts),
        ("effects", "cyan", report.effects),
        ("asked about first", "cyan", report.approvals),
    ):
        if lines:
            out.print(styled((title, style)))
            for line in lines:
                out.print(styled(("  → ", "dim"), (line, "")))
    if report.levels:
        note = (
            "could run at the same time"
            if report.parallel
            else "wait for none of each other; the plan is sequential"
        )
        out.print(styled(("levels", "bold"), (f"  calls of one level {note}", "dim")))
        for number, level in enumerate(report.levels, 1):
            out.print(styled((f"  {number}  ", "dim"), (", ".join(level), "")))
    if report.ok:
        out.print(styled(("✓ ", "green"), ("the plan can be run", "")))


@click.command("plan")
@_plan_file
@click.option("--graph", is_flag=True, required=True, help="Draw the calls and what they wait for.")
@click.option(
    "--format", "format_", type=click.Choice(["svg", "mermaid"]), default="mermaid", show_default=True
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@_json
def plan(plan_file: Path, graph: bool, format_: str, out: Path | None, as_json: bool) -> int:
    """Show a plan as a picture (SVG) or as Mermaid text."""
    try:
        document = PlanDocument.from_json(_read(plan_file))
    except PlanRejected as error:
        return _rejected(error, as_json)
    text = (
        svg(document) if format_ == "svg" or (out is not None and out.suffix == ".svg") else mermaid(document)
    )
    if out is not None:
        out.write_text(text, encoding="utf-8")
        click.echo(f"wrote {out}", err=True)
    elif as_json:
        print_json({"format": format_, "graph": text})
    else:
        click.echo(text)
    return 0
