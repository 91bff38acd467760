"""How light the package is: importing it, and asking the command for its version, beside `import asyncio`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from _measure import Row, interleaved, report

ROUNDS = 15
COMMAND = Path(sys.executable).with_name("narratoria")


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    python = sys.executable
    costs = interleaved(
        {
            "asyncio": lambda: run(python, "-c", "import asyncio"),
            "package": lambda: run(python, "-c", "import narratoria"),
            "version": lambda: run(str(COMMAND), "--version"),
            "registry": lambda: run(python, "-c", "from narratoria import Session, ToolRegistry, tool"),
        },
        ROUNDS,
    )
    base = costs["asyncio"].cpu
    report(
        "import",
        [
            Row("import narratoria / import asyncio, CPU", costs["package"].cpu / base, 2.5),
            Row("narratoria --version / import asyncio, CPU", costs["version"].cpu / base, 2.5),
            Row("from narratoria import Session, ToolRegistry, tool / import asyncio, CPU",
                costs["registry"].cpu / base, None),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
