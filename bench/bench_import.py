"""How light the package is: importing it, and asking the command for its version, beside `import asyncio`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from _measure import against, interleaved, report

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
    base = costs["asyncio"]
    public = "from narratoria import Session, ToolRegistry, tool / import asyncio, CPU"
    report(
        "import",
        [
            against("import narratoria / import asyncio, CPU", costs["package"], base, 2.5, by="cpu"),
            against("narratoria --version / import asyncio, CPU", costs["version"], base, 2.5, by="cpu"),
            against(public, costs["registry"], base, None, by="cpu"),
        ],
    )


if __name__ == "__main__":
    main()
