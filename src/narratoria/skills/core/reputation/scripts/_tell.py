"""The request and the events of a script, in the standard library alone. Each core skill has the same copy, since a
skill is a folder that runs wherever it is copied, without the package or its neighbours."""

import json
import os
import sys


class Refused(Exception):
    """The input cannot be used; the message says why."""


def emit(kind, **fields):
    print(json.dumps({"version": "0", "type": kind, **fields}, ensure_ascii=False), flush=True)


def patch(**state):
    emit("state_patch", patch=state)


def settings():
    """The skill's settings, as the person and the story left them."""
    return json.loads(os.environ.get("NARRATORIA_SKILL_SETTINGS") or "{}")


def at(state, path, default=None):
    """The value at a dotted path of the state."""
    for part in path.split("."):
        state = state.get(part) if isinstance(state, dict) else None
    return default if state is None else state


def serve(run):
    """Answer one request: `run` gets the input and the state, and returns the summary."""
    request = json.loads(sys.stdin.buffer.read() or b"{}")
    try:
        summary = run(request.get("input", {}), request.get("state", {}))
    except Refused as refused:
        emit("error", errorCode="INVALID_INPUT", errorMessage=str(refused))
        emit("done", ok=False)
    else:
        emit("done", ok=True, **({"summary": summary} if summary else {}))
