"""The input and the six events of every Python tool of this story. Standard library only."""

import json
import os
import sys

VERSION = "0"


def listen():
    """The object on stdin: `input`, and `state` where the manifest asks for it. Nothing is no mistake."""
    try:
        given = json.loads(sys.stdin.buffer.read() or b"{}")
    except ValueError as error:
        refuse("BAD_INPUT", f"standard input is not JSON: {error}")
    given = given if isinstance(given, dict) else {}
    return Given(given.get("input"), given.get("state"))


class Given:
    def __init__(self, told, state):
        self.input = told if isinstance(told, dict) else {}
        self.state = state if isinstance(state, dict) else {}

    def at(self, path, default=None):
        """A value of the state by its dotted path."""
        node = self.state
        for key in path.split("."):
            if not isinstance(node, dict) or key not in node:
                return default
            node = node[key]
        return node


def emit(kind, /, **fields):
    line = json.dumps({"version": VERSION, "type": kind, **fields}, ensure_ascii=False)
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()


def log(message, **fields):
    emit("log", level="info", message=message, **({"fields": fields} if fields else {}))


def patch(**change):
    emit("state_patch", patch=change)


def choices(options):
    emit("ui_event", event="narrative_choice", payload={"choices": options})


def asset(name, kind, media_type, data, /, **metadata):
    """Write a file, then the event that names it."""
    import tempfile  # here: most tools make no file, and it takes a fifth of their time

    folder = tempfile.mkdtemp(prefix="lighthouse-")
    path = os.path.join(folder, name)  # noqa: PTH118  (pathlib would double the start-up time)
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(data)
    emit(
        "asset", assetId=name.rsplit(".", 1)[0], kind=kind, mediaType=media_type, path=path, metadata=metadata
    )


def done(summary=""):
    """A summary is told below the narrative: give one only where it says what no rule has said."""
    emit("done", ok=True, **({"summary": summary} if summary else {}))
    sys.exit(0)


def refuse(code, message, **details):
    """A controlled failure: the tool understood, and it cannot be done."""
    emit("error", errorCode=code, errorMessage=message, **({"details": details} if details else {}))
    emit("done", ok=False, summary=message)
    sys.exit(0)
