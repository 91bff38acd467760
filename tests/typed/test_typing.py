"""mypy and pyright, both strict, accept what is right and refuse what is wrong, on the lines that are marked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RIGHT, WRONG = HERE / "right_uses.py", HERE / "wrong_uses.py"
NPM = Path(os.environ.get("NARRATORIA_SOURCE", ".")) / "build" / "npm"
PYRIGHT = NPM / "node_modules" / ".bin" / "pyright"

Found = dict[str, set[int]]  # lines with an error, by the name of the file


def mypy(folder: Path) -> Found:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={folder / 'cache'}"]
    done = subprocess.run([*command, RIGHT.name, WRONG.name], cwd=folder, capture_output=True, text=True)
    found: Found = {RIGHT.name: set(), WRONG.name: set()}
    for name, line in re.findall(r"^(\w+\.py):(\d+): error:", done.stdout, re.M):
        found[name].add(int(line))
    assert done.returncode == 1, done.stdout + done.stderr
    return found


def pyright(folder: Path) -> Found:
    if not PYRIGHT.exists():
        pytest.skip("needs build/npm; scripts/npm_needs.sh installs it")
    node = f"{NPM.resolve() / 'node_modules' / 'node' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    command = [str(PYRIGHT.resolve()), "--outputjson", "--pythonpath", sys.executable, RIGHT.name, WRONG.name]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PATH": node}
    )
    found: Found = {RIGHT.name: set(), WRONG.name: set()}
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        found[Path(one["file"]).name].add(one["range"]["start"]["line"] + 1)
    return found


@pytest.mark.parametrize("check", [pytest.param(mypy, marks=pytest.mark.slow), pyright])
def test_strict_type_checkers_tell_right_uses_from_wrong_ones(
    check: Callable[[Path], Found], tmp_path: Path
) -> None:
    for file in (RIGHT, WRONG):
        shutil.copy(file, tmp_path)
    found = check(tmp_path)
    marked = {
        number for number, line in enumerate(WRONG.read_text().splitlines(), 1) if line.endswith("# error")
    }
    assert found[RIGHT.name] == set()
    assert found[WRONG.name] == marked
