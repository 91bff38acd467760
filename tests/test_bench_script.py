"""`scripts/bench.sh`: what was missed is told, what broke off is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "bench.sh"


def bench(folder: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    for part in ("src", "bench"):
        (folder / part).mkdir()
    for name, text in programs.items():
        (folder / "bench" / f"bench_{name}.py").write_text(text)
    command = ["sh", str(SCRIPT), str(Path(sys.executable).parent)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_a_missed_target_is_listed_again_and_ends_nothing(tmp_path: Path) -> None:
    done = bench(tmp_path, first="print('a 3x ≤ 2x  MISSED')", second="print('b 1x ≤ 2x  met')")
    assert done.returncode == 0, done.stderr
    assert "== missed\na 3x ≤ 2x  MISSED\n" in done.stdout
    assert done.stderr == ""


def test_a_benchmark_that_breaks_off_is_an_error_after_the_others_ran(tmp_path: Path) -> None:
    done = bench(tmp_path, first="raise SystemExit(1)", second="print('b 1x ≤ 2x  met')")
    assert done.returncode == 1
    assert "broke off: bench/bench_first.py" in done.stderr
    assert "b 1x ≤ 2x  met" in done.stdout
    assert "== missed" not in done.stdout
