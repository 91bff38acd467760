"""`python -m narratoria.wire_schemas [DIR]` writes the contracts, by default into `contracts/`."""

from __future__ import annotations

import sys
from pathlib import Path

from narratoria.wire_schemas import documents


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"wrote {folder / name}")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "contracts"))
