"""The conformance kit in CI: JUnit XML, GitHub annotations, a pytest plugin, an assertion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests import warm_start

from narratoria.conformance import RULES
from narratoria.testing import conformance

EXAMPLES = Path(__file__).parents[2] / "examples" / "tools"
GOOD = EXAMPLES / "door-examiner"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A tool without `done` that prints what neither XML nor an annotation can hold as it is."""
    tool = tmp_path / "bad, tool"
    tool.write_text("#!/bin/sh\nprintf 'no: 100%%\\001\\n'\n")
    tool.chmod(0o755)
    return tool


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return warm_start.run("check", *arguments, env=os.environ)


def test_a_junit_report_has_a_suite_for_each_tool_and_a_case_for_each_rule(bad: Path, tmp_path: Path) -> None:
    ended = check(GOOD, bad, "--junit", tmp_path / "report.xml")
    assert ended.returncode == 1
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["door-examiner", "bad-tool"]
    assert [suite.get("tests") for suite in suites] == [str(len(RULES))] * 2
    good, broken = suites
    assert good.get("failures") == "0" and not good.findall(".//failure")
    assert int(broken.get("failures", "0")) == len(broken.findall("./testcase/failure")) >= 2
    assert int(broken.get("skipped", "0")) == len(broken.findall("./testcase/skipped"))


def test_annotations_name_the_file_and_the_fault_on_one_line_each(bad: Path) -> None:
    ended = check(bad, "--github")
    lines = [line for line in ended.stdout.splitlines() if line.startswith("::")]
    errors = [line for line in lines if line.startswith("::error ")]
    where = str(bad).replace(":", "%3A").replace(",", "%2C")
    assert errors and all(f"file={where},title=" in line for line in lines)
    assert any("ends with exactly one done" in line for line in errors)
    assert any("100%25" in line for line in errors)
    assert not [line for line in check(GOOD, "--github").stdout.splitlines() if line.startswith("::error")]


def test_json_of_several_tools_is_one_document(bad: Path) -> None:
    report: Any = json.loads(check(GOOD, bad, "--json").stdout)
    assert report["conforms"] is False
    verdicts = {one["tool"]: one["conforms"] for one in report["tools"]}
    assert verdicts == {"door-examiner": True, "bad-tool": False}
    assert check(GOOD, "--json", "--github").returncode == 2


def test_conformance_in_a_test_says_what_is_broken(bad: Path) -> None:
    conformance(GOOD)
    with pytest.raises(
        AssertionError, match=r"bad-tool does not conform:\n- .*(.|\n)*ends with exactly one done"
    ):
        conformance(bad)


def run_pytest(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    environment.pop("PYTEST_ADDOPTS", None)
    options = ["-p", "narratoria.pytest_plugin", "-v", f"--rootdir={folder}"]
    command = [sys.executable, "-m", "pytest", *options, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_the_pytest_plugin_makes_a_test_of_each_rule(bad: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "test_own.py").write_text("def test_own(): pass\n")
    ended = run_pytest(folder, f"--narratoria-tool={GOOD}")
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" not in ended.stdout and "door-examiner::done-once PASSED" in ended.stdout
    (folder / "pytest.ini").write_text(f"[pytest]\nnarratoria_tools =\n  {GOOD}\n")
    assert run_pytest(folder).stdout.count("PASSED") == ended.stdout.count("PASSED")
    ended = run_pytest(folder, f"--narratoria-tool={bad}")
    assert ended.returncode == 1 and "done-once FAILED" in ended.stdout
    ended = run_pytest(folder, "--narratoria-tool=nowhere")
    assert ended.returncode == 4 and "there is no tool at" in ended.stderr
