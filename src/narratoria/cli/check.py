"""`narratoria check`: the conformance kit for tool authors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from narratoria.cli import FAILED
from narratoria.cli.env_option import env_option
from narratoria.cli.output import Seconds, console, print_json, read_object, styled
from narratoria.conformance import Judgement, Report, check_tool
from narratoria.conformance.ci_reports import github_annotations, junit_xml
from narratoria.kinds.process.custody import custody

_MARKS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "not exercised": ("·", "dim")}


@click.command()
@click.argument("tools", metavar="TOOL…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--input", "input_", help="A good input: JSON, @file, or -; by default the manifest's first example."
)
@click.option("--timeout", type=Seconds(), help="Seconds each run may take.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit XML report.")
@click.option("--github", is_flag=True, help="Print GitHub annotations for what fails.")
@env_option
def check(
    tools: tuple[Path, ...],
    input_: str | None,
    timeout: float | None,
    as_json: bool,
    junit: Path | None,
    github: bool,
) -> int:
    """Try each TOOL with good and with hostile input, rule by rule.

    Each rule of the protocol is passed, failed (with the line and the fix) or not exercised. The exit code is 0 when it
    conforms: no MUST is broken. Of a tool that is no executable only the manifest is checked.
    """
    if as_json and github:
        raise click.UsageError("--json and --github both print on standard output; choose one")
    custody().adopt_orphans()
    given = None if input_ is None else read_object("--input", input_)
    reports = [check_tool(tool, input=given, timeout=timeout) for tool in tools]
    conforms = all(report.conforms for report in reports)
    if junit is not None:
        junit.write_bytes(junit_xml(reports))
    if as_json:
        listed = [_document(report) for report in reports]
        print_json(listed[0] if len(listed) == 1 else {"conforms": conforms, "tools": listed})
    else:
        for report in reports:
            _show(report, console())
    if github:
        for line in github_annotations(zip(tools, reports, strict=True)):
            click.echo(line)
    return 0 if conforms else FAILED


def _document(report: Report) -> dict[str, Any]:
    return {
        "tool": report.tool,
        "conforms": report.conforms,
        "rules": [_entry(one) for one in report.judgements],
    }


def _entry(one: Judgement) -> dict[str, str]:
    return {
        "rule": one.rule.name,
        "level": one.rule.level,
        "verdict": one.verdict,
        "detail": one.detail,
    }


def _show(report: Report, out: Console) -> None:
    name = max(len(one.rule.name) for one in report.judgements)
    out.print(styled((report.tool, "bold"), (f"  {_runs(report)}", "dim")))
    for one in report.judgements:
        mark, style = _MARKS[one.verdict]
        head = f" {one.rule.level:6} {one.rule.name:{name}}  "
        out.print(styled((mark, style), (head, style), (one.rule.says, "dim" if style == "dim" else "")))
        if one.verdict == "fail":
            problem, _, fix = one.detail.rpartition(" (fix: ")
            out.print(styled(("    ", ""), (problem or one.detail, "bold")))
            if problem:
                out.print(styled(("    → ", "green"), (fix.removesuffix(")"), "")))
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
    return f"run with good input{hostile}"


def _conclusion(report: Report) -> Text:
    count = {verdict: sum(one.verdict == verdict for one in report.judgements) for verdict in _MARKS}
    advice = [one for one in report.judgements if one.verdict == "fail" and one.rule.level == "SHOULD"]
    tally = f": {count['pass']} passed, {count['fail']} failed, {count['not exercised']} not exercised"
    if not report.conforms:
        return styled((f"✗ {report.tool} does not conform", "bold red"), (tally, ""))
    hint = f" ({len(advice)} recommendation{'s' if len(advice) > 1 else ''} not kept)" if advice else ""
    return styled((f"✓ {report.tool} conforms", "bold green"), (hint, "yellow"), (tally, ""))
