"""The journal's records of each attempt at a call: how long it took, how its process ended, what it was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from narratoria.events import CallFinished, CallRetrying
from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.tools.retry import no_waiting, plan_policy

FLAKY = """#!/bin/bash
echo "attempt of $$" >&2
if [ ! -e "{mark}" ]; then touch "{mark}"; exit 3; fi
echo '{{"version":"0","type":"done","ok":true,"summary":"Done."}}'
"""
MANIFEST = {
    "name": "flaky",
    "description": "Fails once.",
    "operation": "light",
    "parameters": {
        "type": "object",
        "properties": {"what": {"type": "string"}, "days": {"type": "integer", "default": 3}},
    },
}


class Heard:
    full = False

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.events.append(record.event)


async def called(folder: Path, *, listening: bool = True) -> tuple[Session, list[Any]]:
    path = folder / "flaky"
    path.write_text(FLAKY.format(mark=folder / "mark"))
    path.chmod(0o755)
    (folder / "flaky.tool.json").write_text(json.dumps(MANIFEST))
    session, heard = Session(), Heard()
    if listening:
        session.attach(heard)
    with no_waiting():
        call = Call(policy=plan_policy(2, 100))
        result = await ToolRegistry().executor.execute(
            process_tool(path), {"what": "x"}, session=session, call=call
        )
    assert result.success
    return session, heard.events


async def test_every_attempt_has_its_duration_exit_code_and_stderr(tmp_path: Path) -> None:
    session, events = await called(tmp_path)
    (retrying,) = [one for one in events if isinstance(one, CallRetrying)]
    (finished,) = [one for one in events if isinstance(one, CallFinished)]
    assert retrying.exit_code == 3 and retrying.duration > 0
    assert finished.exit_code == 0 and finished.operation == "light"
    assert (retrying.stderr or "").startswith("attempt of ") and finished.stderr
    assert retrying.stderr != finished.stderr
    assert 0 < finished.last_duration < finished.duration
    assert retrying.duration + finished.last_duration <= finished.duration
    assert finished.sent == {"what": "x", "days": 3}, "the defaults were sent too"
    assert not session.attempt_notes


async def test_nothing_is_noted_where_nobody_listens(tmp_path: Path) -> None:
    session, _ = await called(tmp_path, listening=False)
    assert not session.attempt_notes


def test_records_older_than_the_fields_are_read() -> None:
    old = b'{"type":"call_retrying","call":"c","attempt":1,"delay":0.5,"errorCode":"X","error":"x"}'
    retrying = msgspec.json.decode(old, type=CallRetrying)
    assert (retrying.duration, retrying.exit_code, retrying.stderr) == (0.0, None, None)
    old = b'{"type":"call_finished","call":"c","tool":"t","ok":true,"state":"completed"}'
    assert msgspec.json.decode(old, type=CallFinished).sent is None
