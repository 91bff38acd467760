"""A recorded call as a command line, `narratoria call …`, that runs the same tool with the same request."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from narratoria.kinds.redaction import HIDDEN, Redaction
from narratoria.session import Session
from narratoria.store.recorded_call import RecordedCall
from narratoria.tools.tool import Tool

LONGEST_INLINE: Final = 20_000
"""Characters of JSON that stand in the command itself; a longer state is read from a file."""
_SECRET: Final = re.compile(
    r"(?i)(^|[_-])(api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|token|password|passwd"
    r"|passphrase|credentials?|authorization|cookie|secret)$"
)
_LEAST: Final = 6


class CallCommand(msgspec.Struct, kw_only=True, rename="camel"):
    """A command for a shell; empty with a reason in `notes` where there is none for such a tool."""

    command: str = ""
    notes: list[str] = msgspec.field(default_factory=list)


def call_command(
    call: RecordedCall,
    tool: Tool[Any, Any],
    world: Session | None,
    session_id: str,
    *,
    permissions: Iterable[str] = (),
) -> CallCommand:
    """Return the command that repeats a call. Values that look like secrets are left out, and a note says so."""
    if not isinstance(tool.origin, Path) or tool.kind.foreign or tool.kind.made_of_tools:
        what = f"a tool of {tool.origin}" if tool.origin is not None else "part of the program, not a file"
        return CallCommand(notes=[f"there is no command for {tool.name}: it is {what}; use Run again"])
    hiding = _Hiding()
    told = CallCommand()
    words = ["narratoria", "call", str(tool.origin), "--input", hiding.json(call.input)]
    if call.operation is not None and call.operation != "run":
        words += ["--operation", call.operation]
    if call.dependencies:
        words += ["--dependencies", hiding.json(call.dependencies)]
    for name in sorted({*tool.permissions} & {*permissions}):
        words += ["--grant", name]
    before = ""
    if world is not None and (needed := _state_for(call, tool, world)):
        state = hiding.json(needed)
        if len(state) <= LONGEST_INLINE:
            words += ["--state", state]
        else:
            before = (
                shlex.join(["narratoria", "sessions", "call", session_id, call.call, "--print-state"])
                + " > state.json && "
            )
            words += ["--state", "@state.json"]
            told.notes.append("the state is too long for a command line: it is written to state.json first")
    told.command = before + shlex.join(words)
    if hiding.count:
        told.notes.append(
            f"{hiding.count} {'value that looks' if hiding.count == 1 else 'values that look'} like a secret "
            f"{'was' if hiding.count == 1 else 'were'} left out: put in what belongs where {HIDDEN} stands"
        )
    return told


def _state_for(call: RecordedCall, tool: Tool[Any, Any], world: Session) -> Any:
    """Return the state if the tool, its preconditions or its effects read it."""
    sent = call.request is not None and "state" in call.request
    return world.snapshot() if sent or tool.preconditions or tool.effects else None


class _Hiding:
    """Takes secrets out: values under names such as `api_key`, and the values of such variables of this program."""

    def __init__(self) -> None:
        self.count = 0
        own = (value for name, value in os.environ.items() if _SECRET.search(name))
        self._known = Redaction(value for value in own if len(value) >= _LEAST)

    def json(self, value: Any) -> str:
        return msgspec.json.encode(self._hidden(value)).decode()

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._entry(key, child) for key, child in value.items()}
        if isinstance(value, list):
            return [self._hidden(child) for child in value]
        if isinstance(value, str) and (shown := self._known.text(value)) != value:
            self.count += 1
            return shown
        return value

    def _entry(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and len(value) >= _LEAST and _SECRET.search(key):
            self.count += 1
            return HIDDEN
        return self._hidden(value)
