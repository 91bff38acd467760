"""`narratoria check`: the conformance kit for tool authors, and the checks of stories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from narratoria.cli import FAILED
from narratoria.cli.check_story import StoryReport, check_story, document, is_story, show
from narratoria.cli.completion import TARGET
from narratoria.cli.env_option import env_option
from narratoria.cli.output import Seconds, console, print_json, styled
from narratoria.cli.request_options import given_object, request_options
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.conformance import Judgement, Report, RequestParts, check_tool
from narratoria.conformance.ci_reports import github_annotations, junit_xml
from narratoria.errors import NarratoriaError
from narratoria.kinds.process.custody import custody
from narratoria.kinds.tool_files import NO_TOOL, tool_files
from narratoria.play.story_library import shelved, story_roots

_MARKS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "not exercised": ("·", "dim")}


@click.command()
@click.argument("targets", metavar="TOOL|FOLDER|STORY…", nargs=-1, required=True, type=TARGET)
@click.option(
    "--input", "input_", help="A good input: JSON, a file, or -; by default the manifest's first example."
)
@request_options
@click.option("--timeout", type=Seconds(), help="Seconds each run may take.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit XML report.")
@click.option("--github", is_flag=True, help="Print GitHub annotations for what fails.")
@env_option
@sandbox_option
def check(
    targets: tuple[Path, ...],
    input_: str | None,
    state: str | None,
    operation: str | None,
    dependencies: str | None,
    timeout: float | None,
    as_json: bool,
    junit: Path | None,
    github: bool,
) -> int:
    """Check tools and stories before anybody uses them.

    A TOOL is tried with good and with hostile input: each rule of the protocol is passed, failed (with the line and the
    fix) or not exercised. Of a tool that is no executable only the manifest is checked. A FOLDER stands for the tools
    and the stories in it. A STORY, a folder with a story.toml or a name from the library, is read, and its mistakes are
    told with file and line. The exit code is 0 when all conforms: no MUST is broken, and no story has an error.
    """
    if as_json and github:
        raise click.UsageError("--json and --github both print on standard output; choose one")
    custody().adopt_orphans()
    given = given_object("--input", input_)
    parts: RequestParts = {
        "state": given_object("--state", state),
        "operation": operation,
        "dependencies": given_object("--dependencies", dependencies),
    }
    found = [one for target in targets for one in _found(target)]
    reports = {
        path: check_story(path) if is_a_story else check_tool(path, input=given, timeout=timeout, **parts)
        for path, is_a_story in found
    }
    _tell(reports, as_json, junit, github)
    return 0 if all(report.conforms for report in reports.values()) else FAILED


def _tell(
    reports: Mapping[Path, Report | StoryReport], as_json: bool, junit: Path | None, github: bool
) -> None:
    """Print the reports in the form that was asked for, and write the JUnit file."""
    tools = {path: report for path, report in reports.items() if isinstance(report, Report)}
    stories = [report for report in reports.values() if isinstance(report, StoryReport)]
    if junit is not None:
        junit.write_bytes(junit_xml([*tools.values()], {one.name: one.problems for one in stories}))
    if as_json:
        print_json(_whole(list(reports.values())))
    else:
        for report in reports.values():
            show_report(report, console()) if isinstance(report, Report) else show(report, console())
    if github:
        for line in github_annotations(tools.items(), [one for report in stories for one in report.problems]):
            click.echo(line)


def _found(target: Path) -> Iterator[tuple[Path, bool]]:
    """Yield what a target stands for, and whether it is a story: itself, or the tools and the stories of a folder."""
    if is_story(target):
        yield target, True
    elif target.is_dir():
        inside = [(root, True) for root in story_roots(target)]
        inside += [
            (one.path, False)
            for one in tool_files(target)
            if not any(_is_below(one.path, root) for root, _ in inside)
        ]
        if not inside:
            raise NarratoriaError(f"{target}: {NO_TOOL}")
        yield from inside
    elif not target.exists() and len(target.parts) == 1 and target.name in {one.id for one in shelved()}:
        yield target, True
    else:
        yield target, False


def _is_below(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder)


def _whole(reports: list[Report | StoryReport]) -> dict[str, Any]:
    """Return one JSON document: of one tool or story its own, of several a list of each."""
    if len(reports) == 1:
        return _document(reports[0])
    listed: dict[str, Any] = {"conforms": all(one.conforms for one in reports)}
    tools = [_document(one) for one in reports if isinstance(one, Report)]
    stories = [{"story": one.name, **_document(one)} for one in reports if isinstance(one, StoryReport)]
    return listed | ({"tools": tools} if tools else {}) | ({"stories": stories} if stories else {})


def _document(report: Report | StoryReport) -> dict[str, Any]:
    if isinstance(report, StoryReport):
        return {"conforms": report.conforms, "problems": [document(one) for one in report.problems]}
    return {
        "tool": report.tool,
        "conforms": report.conforms,
        **({} if report.sandbox == "trusted" else {"sandbox": report.sandbox}),
        "rules": [_entry(one) for one in report.judgements],
        **({"stderr": report.stderr} if report.stderr else {}),
    }


def _entry(one: Judgement) -> dict[str, str]:
    return {
        "rule": one.rule.name,
        "level": one.rule.level,
        "verdict": one.verdict,
        "detail": one.detail,
    }


def show_report(report: Report, out: Console, *, brief: bool = False) -> None:
    """Print what was found of a tool; in brief, only the rules it breaks."""
    name = max(len(one.rule.name) for one in report.judgements)
    if not brief:
        out.print(styled((report.tool, "bold"), (f"  {_runs(report)}", "dim")))
    for one in report.judgements:
        if brief and one.verdict != "fail":
            continue
        mark, style = _MARKS[one.verdict]
        head = f" {one.rule.level:6} {one.rule.name:{name}}  "
        out.print(styled((mark, style), (head, style), (one.rule.says, "dim" if style == "dim" else "")))
        if one.verdict == "fail":
            problem, _, fix = one.detail.rpartition(" (fix: ")
            out.print(styled(("    ", ""), (problem or one.detail, "bold")))
            if problem:
                out.print(styled(("    → ", "green"), (fix.removesuffix(")"), "")))
    if not brief:
        out.print()
    out.print(_conclusion(report))
    if report.unset:
        out.print(
            f"Its manifest names {', '.join(report.unset)}: not set. Pass --env {report.unset[0]}=… to check it so."
        )
    if report.refused_input:
        out.print("It refused the good input. Give one that it accepts with --input, to check more of it.")


def _runs(report: Report) -> str:
    if report.other_kind is not None:
        return f"of the kind {report.other_kind}: only its manifest is checked, since the rules are for executables"
    count = report.runs
    if count == 0:
        return "could not be run"
    hostile = f", then {count - 1} times with hostile input" if count > 1 else ""
    where = "" if report.sandbox == "trusted" else f" in the sandbox {report.sandbox!r}"
    return f"run with good input{hostile}{where}"


def _conclusion(report: Report) -> Text:
    count = {verdict: sum(one.verdict == verdict for one in report.judgements) for verdict in _MARKS}
    advice = [one for one in report.judgements if one.verdict == "fail" and one.rule.level == "SHOULD"]
    tally = f": {count['pass']} passed, {count['fail']} failed, {count['not exercised']} not exercised"
    if not report.conforms:
        return styled((f"✗ {report.tool} does not conform", "bold red"), (tally, ""))
    hint = f" ({len(advice)} recommendation{'s' if len(advice) > 1 else ''} not kept)" if advice else ""
    return styled((f"✓ {report.tool} conforms", "bold green"), (hint, "yellow"), (tally, ""))
