"""Reports on tools in the forms that CI systems read: JUnit XML, and annotations of GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from narratoria.conformance.verdicts import FAIL, NOT_EXERCISED

if TYPE_CHECKING:
    from narratoria.conformance import Report

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(reports: Sequence[Report]) -> bytes:
    """Return a JUnit report: a suite for each tool, a case for each rule. A broken SHOULD is no failure."""
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
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def github_annotations(checked: Iterable[tuple[Path, Report]]) -> Iterator[str]:
    """Yield a workflow command of GitHub for each rule that is broken: an error for a MUST, a warning for a SHOULD."""
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
