"""Runs a program of the command line for a call, and tells what it printed as events. Standard library alone.

The request's input has `args` and `stdin`; the program is in the variable COMMAND, as a JSON list.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

COMMAND = "NARRATORIA_SKILL_COMMAND"
MOST = 100_000
"""Bytes of the output that are kept."""


def emit(kind: str, **fields: Any) -> None:
    """Write one event."""
    print(json.dumps({"version": "0", "type": kind, **fields}), flush=True)


def main() -> None:
    """Answer one request."""
    given = json.loads(sys.stdin.buffer.read() or b"{}").get("input", {})
    command = [*json.loads(os.environ.pop(COMMAND)), *given.get("args", [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        # A file of this size fits into no pipe: written and read at once.
        output, _ = program.communicate(given.get("stdin", "").encode())
    text = output[:MOST].decode(errors="replace").rstrip()
    if len(output) > MOST:
        text += f"\n… {len(output) - MOST:,} bytes more"
    if program.returncode:
        last = f": {text[-500:]}" if text else ""
        message = f"the script ended with status {program.returncode}{last}"
        emit("error", errorCode="SCRIPT_FAILED", errorMessage=message)
        emit("done", ok=False)
        # Its own words are on standard error, which is kept with the failure.
        return
    emit("done", ok=True, summary=text)


if __name__ == "__main__":
    main()
