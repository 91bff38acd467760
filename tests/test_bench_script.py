"""`bench/run.py`: what was missed is told, what broke off is an error, and all of it is in one file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(os.environ.get("NARRATORIA_SOURCE", Path(__file__).parents[1])) / "bench"
HEAD = "from _measure import Curve, Row, report\n"
MISSED = HEAD + "report('one', [Row('a thing', 3, 2, spread=(2.5, 3.5), peer='other 1.0')])"
MET = HEAD + "report('two', [Row('b thing', 1, 2)], [Curve('cost', 'size', ' µs', ((10, 1.0), (100, 1.5)))])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("_measure.py", "run.py", "page.py"):
        shutil.copy(BENCH / name, tmp_path)
    return tmp_path


def bench(folder: Path, *arguments: str, **programs: str) -> subprocess.CompletedProcess[str]:
    for name, text in programs.items():
        (folder / f"bench_{name}.py").write_text(text)
    command = [sys.executable, str(folder / "run.py"), "--into", str(folder / "found.json"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_missed_target_is_listed_again_and_ends_nothing(folder: Path) -> None:
    done = bench(folder, first=MISSED, second=MET)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 targets are met" in done.stdout
    missed = done.stdout.partition("== missed")[2]
    assert (
        "a thing" in missed
        and "3x [2.5, 3.5]" in missed
        and "other 1.0" in missed
        and "b thing" not in missed
    )
    found = json.loads((folder / "found.json").read_text())
    assert [section["title"] for section in found["sections"]] == ["one", "two"]
    assert found["sections"][1]["curves"][0]["points"] == [[10, 1.0], [100, 1.5]]

    into = folder / "docs"
    into.mkdir()
    drawn = [
        sys.executable,
        str(folder / "page.py"),
        "--from",
        str(folder / "found.json"),
        "--into",
        str(into),
    ]
    subprocess.run(drawn, check=True, timeout=60)
    page = (into / "benchmarks.md").read_text()
    assert "| a thing | 3x [2.5, 3.5] | ≤ 2x | MISSED | other 1.0 |" in page
    assert "![cost](benchmark-1.svg)" in page and "1.5" in (into / "benchmark-1.svg").read_text()


def test_a_benchmark_that_breaks_off_is_an_error_after_the_others_ran(folder: Path) -> None:
    done = bench(folder, first="raise SystemExit(1)", second=MET)
    assert done.returncode == 1
    assert "broke off: first" in done.stderr
    assert "b thing" in done.stdout and "== missed" not in done.stdout


def test_one_benchmark_can_be_run_and_an_unknown_name_is_refused(folder: Path) -> None:
    done = bench(folder, "second", first="raise SystemExit(1)", second=MET)
    assert done.returncode == 0 and "1 of 1 targets are met" in done.stdout
    assert "no benchmark is called third; there are: first, second" in bench(folder, "third").stderr
