"""Reports on tools in the forms that CI systems read: JUnit XML, and annotations of GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from narratoria.conformance.verdicts import FAIL, NOT_EXERCISED
from narratoria.errors import StoryProblem

if TYPE_CHECKING:
    from narratoria.conformance import Report

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(
    reports: Sequence[Report], stories: Mapping[str, Sequence[StoryProblem]] | None = None
) -> bytes:
    """Return a JUnit report: a suite for each tool with a case for each rule, and one for each story with its problems.
    A broken SHOULD and a warning are no failures.
    """
    root = Element("testsuites", name="narratoria check")
    for report in reports:
        judged = report.judgements
        broken = [one for one in judged if one.verdict == FAIL and one.rule.level == "MUST"]
        skipped = [one for one in judged if one.verdict == NOT_EXERCISED]
        suite = SubElement(
            root,
            "testsuite",
            name=_xml(report.tool),
            tests=str(len(judged)),
            failures=str(len(broken)),
            errors="0",
            skipped=str(len(skipped)),
        )
        for one in judged:
            case = SubElement(
                suite, "testcase", classname=_xml(report.tool), name=f"{one.rule.name}: {one.rule.says}"
            )
            if one in broken:
                SubElement(case, "failure", message=_xml(one.detail)).text = _xml(one.detail)
            elif one.verdict == NOT_EXERCISED:
                SubElement(case, "skipped", message=_xml(one.detail))
            elif one.verdict == FAIL:
                SubElement(case, "system-out").text = _xml(f"recommended: {one.detail}")
    for name, problems in (stories or {}).items():
        _add_story(root, name, problems)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _add_story(root: Element, name: str, problems: Sequence[StoryProblem]) -> None:
    errors = [one for one in problems if one.severity == "error"]
    suite = SubElement(
        root,
        "testsuite",
        name=_xml(name),
        tests=str(max(1, len(problems))),
        failures=str(len(errors)),
        errors="0",
        skipped="0",
    )
    for one in problems:
        case = SubElement(suite, "testcase", classname=_xml(name), name=_xml(one.place()))
        if one.severity == "error":
            SubElement(case, "failure", message=_xml(one.message)).text = _xml(str(one))
        else:
            SubElement(case, "system-out").text = _xml(f"warning: {one.message}")
    if not problems:
        SubElement(suite, "testcase", classname=_xml(name), name="it has no mistakes")


def github_annotations(
    checked: Iterable[tuple[Path, Report]], problems: Iterable[StoryProblem] = ()
) -> Iterator[str]:
    """Yield a workflow command of GitHub for each rule that is broken, an error for a MUST, a warning for a SHOULD, and
    for each problem of a story.
    """
    for problem in problems:
        line = f",line={problem.line}" if problem.line else ""
        place = f"file={_property(str(problem.file))}{line},title={_property(problem.file.name)}"
        yield f"::{problem.severity} {place}::{_message(problem.message)}"
    for path, report in checked:
        for one in report.judgements:
            if one.verdict == FAIL:
                level = "error" if one.rule.level == "MUST" else "warning"
                title = f"{report.tool}: {one.rule.says}"
                yield f"::{level} file={_property(str(path))},title={_property(title)}::{_message(one.detail)}"


def _xml(text: str) -> str:
    """Replace characters that XML cannot hold."""
    return _NOT_IN_XML.sub("�", text)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
