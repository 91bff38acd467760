"""Tools that are processes and misbehave as they were drawn: small shell scripts, one for each call."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
import uuid
from pathlib import Path
from typing import Final

from tests.chaos.games import PlayedGame, Toolbox, expect
from tests.chaos.leaks import processes_with
from tests.chaos.scenarios import Attempt, DrawnCall, DrawnPlan, Scenario

from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.registry import ToolRegistry
from narratoria.store.sqlite import SqliteStore

BRIEF: Final = 0.5  # seconds that a tool has which falls silent now and then
DONE: Final = '{"version":"0","type":"done","ok":true,"summary":"done"}'
REFUSED: Final = '{"version":"0","type":"done","ok":false,"summary":"no"}'
ERROR: Final = '{"version":"0","type":"error","errorCode":"BROKEN","errorMessage":"it is broken"}'


def say(line: str) -> str:
    return f"printf '%s\\n' {shlex.quote(line)}"


def ending_lines(name: str, token: str) -> list[str]:
    """The end of an attempt in shell. A process that outlives it has `token` among its arguments."""
    done = say(DONE)
    return {
        "ok": [done],
        "is slow": ["sleep 0.05", done, "sleep 0.01"],
        "leaves a child": [f"sleep 31.{token} &", done],
        "leaves a daemon": [f"setsid sleep 31.{token} </dev/null >/dev/null 2>&1 &", done],
        "reads nothing": ["exec </dev/null", done],
        "is loud": ["head -c 200000 /dev/zero | tr '\\0' x >&2", done],
        "lingers": [done, f"sleep 31.{token}"],
        "says no": [say(REFUSED)],
        "reports an error": [say(ERROR), say(REFUSED)],
        "exits 3": [done, "exit 3"],
        "crashes": ["kill -SEGV $$"],
        "is cut": ['printf \'%s\' \'{"version":"0","type":"sta\''],
        "writes garbage": ["head -c 64 /dev/urandom | tr '\\n{' '??'", "echo"],
        "forgets done": ["exit 0"],
        "writes too much": ["head -c 3000000 /dev/zero | tr '\\0' a"],
        "is silent": [f"exec sleep 31.{token}"],
        "stops itself": ["kill -STOP $$"],
    }[name]


def shell_tool(attempts: tuple[Attempt, ...], token: str) -> str:
    """A script that plays attempt after attempt, the last one again and again; it counts them beside itself."""
    lines = ["#!/bin/sh", 'echo run >> "$0.runs"', 'case $(wc -l < "$0.runs") in']
    for number, attempt in enumerate(attempts, 1):
        lines.append(f"{number if number < len(attempts) else '*'})")
        if attempt.ending.name != "reads nothing":
            lines.append("cat >/dev/null")
        lines += [
            say(json.dumps({"version": "0", "type": "state_patch", "patch": patch}))
            for patch in attempt.patches
        ]
        lines += [*ending_lines(attempt.ending.name, token), ";;"]
    return "\n".join([*lines, "esac", ""])


class Processes(Toolbox):
    """Tools in processes. Nothing of them may be left when the game is over."""

    def __init__(
        self, scenario: Scenario, folder: Path, patience: float = 1.0, *, write: bool = True
    ) -> None:
        super().__init__(scenario, patience)
        self.folder = folder
        self.token = str(uuid.uuid4().int)[:18]
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            for key, (_, call) in self.calls.items():
                self._write(key, call)

    def _write(self, key: str, call: DrawnCall) -> None:
        path = self.folder / self.name_of(key)
        path.write_text(shell_tool(call.attempts, self.token))
        path.chmod(0o755)
        silent = any(one.ending.timed_out for one in call.attempts)
        manifest = {"name": path.name, "description": "Does what was drawn for it."}
        if silent:
            manifest["timeout"] = BRIEF * self.patience  # type: ignore[assignment]
        path.with_name(f"{path.name}.tool.json").write_text(json.dumps(manifest))

    @staticmethod
    def name_of(key: str) -> str:
        return key.replace(":", "-")

    def registry(self) -> ToolRegistry:
        return ToolRegistry([process_tool(self.folder / self.name_of(key)) for key in self.calls])

    def tool_path(self, plan: DrawnPlan, call: DrawnCall) -> str:
        return self.name_of(f"{plan.id}:{call.id}")

    def count(self, key: str) -> int:
        counted = self.folder / f"{self.name_of(key)}.runs"
        return len(counted.read_text().splitlines()) if counted.exists() else 0

    async def close(self) -> None:
        until = time.monotonic() + 10
        while processes_with(self.token) and time.monotonic() < until:
            await asyncio.sleep(0.02)  # a sweep of the loop ends them
        expect("processes that outlive their calls", processes_with(self.token), [])


async def play_processes(scenario: Scenario, folder: Path, patience: float = 1.0) -> None:
    """Play a game whose tools are processes, on a store of its own."""
    store = SqliteStore(folder / "sessions.db")
    toolbox = Processes(scenario, folder / "tools", patience)
    try:
        await PlayedGame(scenario, store, toolbox).play()
        await toolbox.close()
        expect("faults of the tables", store.table_faults(), [])
    finally:
        store.close()
