"""The kit for tools in Python: one file, the standard library alone.

    from narratoria.sdk import Call, Refused, serve      # or `narratoria_sdk`, the copy beside a new tool

    def run(call: Call) -> str:
        name = call.input.get("name", "world")
        if not isinstance(name, str):
            raise Refused('"name" must be a string.')
        call.progress(0.5, "Clearing my throat...")
        call.patch({"greeting": f"Hello, {name}!"})
        return f"Greeted {name}."                        # the summary

    serve(run)

`serve` reads the request, runs the function and writes `done`. Events go out at once. What anything else prints
(`print`, a library, a child process) goes to standard error, so it cannot spoil the events. An exception other than
`Refused` ends the program with its traceback: the runtime then reports a broken tool and names the line.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` alone would cost a new tool a third of its start
    from collections.abc import Callable, Mapping
    from typing import Any, TextIO

__all__ = ["Call", "Refused", "serve"]


class Refused(Exception):
    """Raise it to fail politely: an `error` event, then `done` with `ok` false."""

    def __init__(
        self, message: str, code: str = "INVALID_INPUT", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details = details


class Call:
    """A request and the way to answer it. Each method writes one event."""

    def __init__(self, request: Mapping[str, Any], out: TextIO) -> None:
        self.request = request
        self.request_id: str | None = request.get("requestId")
        self.operation: str = request.get("operation", "run")
        self.input: dict[str, Any] = request.get("input", {})
        self.state: dict[str, Any] = request.get("state", {})
        """The session's state, if the manifest says `"wantsState": true`."""
        self.dependencies: dict[str, Any] = request.get("dependencies", {})
        """In a plan: the output of each call this one depends on, by its toolId."""
        self._out = out
        self._assets = 0

    def emit(self, event_type: str, **fields: Any) -> None:
        """Write an event of any type."""
        event = {"version": "0", "type": event_type, **fields}
        self._out.write(json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n")
        self._out.flush()

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        """Write a line for whoever watches: `debug`, `info`, `warn` or `error`."""
        self.emit("log", level=level, message=message, **({"fields": fields} if fields else {}))

    def progress(self, fraction: float, message: str = "") -> None:
        """Move the progress bar: 0 is the beginning, 1 the end."""
        self.log(message, progress=fraction)

    def patch(self, patch: Mapping[str, Any]) -> None:
        """Change the state: objects are merged, arrays replaced, `None` removes a key."""
        self.emit("state_patch", patch=patch)

    def asset(
        self,
        path: str | os.PathLike[str],
        *,
        media_type: str | None = None,
        kind: str | None = None,
        asset_id: str | None = None,
    ) -> None:
        """Show a file that has been written. The media type is guessed from its name, the kind from the type."""
        self._assets += 1
        if media_type is None:
            from mimetypes import guess_type

            media_type = guess_type(os.fspath(path))[0] or "application/octet-stream"
        major = media_type.partition("/")[0]
        self.emit(
            "asset",
            assetId=asset_id or f"asset-{self._assets}",
            kind=kind or {"audio": "audio", "image": "image", "video": "video"}.get(major, "file"),
            mediaType=media_type,
            path=os.path.abspath(path),
        )

    def choices(self, *texts: str) -> None:
        """Offer the player these choices."""
        self.ui("narrative_choice", {"choices": list(texts)})

    def ui(self, event: str, payload: Mapping[str, Any] | None = None) -> None:
        """Ask the client for something."""
        self.emit("ui_event", event=event, **({} if payload is None else {"payload": payload}))


def serve(run: Callable[[Call], str | None]) -> None:
    """Answer one request with `run`; what it returns is the summary."""
    out = _take_stdout()
    call = Call({}, out)
    try:
        call = Call(_read(), out)
        summary = run(call)
    except Refused as refused:
        # The exit code stays 0: any other means that the tool broke.
        more = {} if refused.details is None else {"details": refused.details}
        call.emit("error", errorCode=refused.code, errorMessage=refused.message, **more)
        call.emit("done", ok=False, summary=refused.message)
    else:
        call.emit("done", ok=True, **({} if summary is None else {"summary": summary}))
    out.close()


def _take_stdout() -> TextIO:
    """Return a stream of its own for events, and point standard output, children's too, at standard error."""
    sys.stdout.flush()
    events = os.dup(1)
    os.dup2(2, 1)
    return open(events, "w", encoding="utf-8", errors="replace", newline="\n")


def _read() -> dict[str, Any]:
    """Return the request; an empty one if nothing was sent."""
    try:
        request = json.loads(sys.stdin.buffer.read() or b"{}")
    except (ValueError, RecursionError):
        raise Refused("The request is not JSON.") from None
    if not isinstance(request, dict) or not isinstance(request.get("input", {}), dict):
        raise Refused('The request has no "input" object.')
    return request
