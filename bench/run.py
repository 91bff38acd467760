"""Every benchmark, one after another, and all targets in one table: on the terminal and in build/bench.json.

    python bench/run.py [--into build/bench.json] [NAME …]    # NAME: dispatch, plan, journal, …

A missed target is said and ends nothing; a benchmark that breaks off is told at the end, with status 1.
With names, the file keeps what it has of the other benchmarks.
`python bench/page.py` draws docs/benchmarks.md from the file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from _measure import NOTES, Row, table

HERE = Path(__file__).parent


def run_one(file: Path, notes: Path) -> bool:
    print(f"\n== {file.stem.removeprefix('bench_')}", flush=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONUNBUFFERED": "1", NOTES: str(notes)}
    return subprocess.run([sys.executable, str(file)], check=False, env=environment).returncode == 0


def kept(file: Path, measured: set[str]) -> list[dict[str, Any]]:
    """What a file has of benchmarks other than those `measured`."""
    if not file.exists():
        return []
    return [one for one in json.loads(file.read_text())["sections"] if one["bench"] not in measured]


def machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def main(arguments: list[str] | None = None, folder: Path = HERE) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--into", type=Path, default=HERE.parent / "build" / "bench.json")
    options = parser.parse_args(arguments)
    files = sorted(folder.glob("bench_*.py"))
    known = {file.stem.removeprefix("bench_"): file for file in files}
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no benchmark is called {unknown[0]}; there are: {', '.join(known)}")
    broken, sections = [], []
    chosen = [name for name in known if not options.names or name in options.names]
    with tempfile.TemporaryDirectory() as place:
        for name in chosen:
            notes = Path(place, name)
            notes.touch()
            if not run_one(known[name], notes):
                broken.append(name)
            sections += [{"bench": name} | json.loads(line) for line in notes.read_text().splitlines()]
    if options.names:
        sections += kept(options.into, set(chosen))
        sections.sort(key=lambda section: list(known).index(section["bench"]))
    found = {
        "measured": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "sections": sections,
    }
    options.into.parent.mkdir(parents=True, exist_ok=True)
    options.into.write_text(json.dumps(found, indent=1) + "\n")
    rows = [Row(**row) for section in sections for row in section["rows"]]
    judged = [row for row in rows if row.target is not None]
    missed = [row for row in judged if not row.met]
    print("\n== all targets")
    print("\n".join(table(judged)))
    print(f"\n{len(judged) - len(missed)} of {len(judged)} targets are met; the file is {options.into}")
    if missed:
        print("\n== missed")
        print("\n".join(table(missed)))
    if broken:
        print(f"broke off: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
