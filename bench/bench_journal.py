"""What the journal costs: taking events in, room on the disk, opening a long session, undoing.

Ingest is the whole path of a tool's output: pipe → decode → merge → journal → subscriber. The naive path reads with
`readline`, validates with pydantic, and commits every event by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from _measure import Row, against, cpu_seconds, interleaved, report

from narratoria.cli import spare_the_collector
from narratoria.events import TurnCommitted, TurnStarted
from narratoria.kinds.process.process_tool import process_tool
from narratoria.play.history import undo
from narratoria.session import Record, Session
from narratoria.state import merge
from narratoria.store import mending
from narratoria.store.journal import Journal
from narratoria.store.sqlite import SqliteStore

CALLS, EVENTS = 12, 5_000  # of a session, and of each call
SHORT, LONG = 100, 10_000
PLAYED = 500

TOOL = "#!/bin/sh\nexec cat {path}\n"  # costs next to nothing itself


def event(number: int) -> dict[str, Any]:
    """About 200 bytes, as tools write them: half progress, half patches."""
    if number % 2:
        return {
            "version": "0", "type": "log", "level": "info", "timestamp": "2026-01-01T12:00:00Z",
            "message": f"room {number % 97}: the lamp flickers, somebody moves, the wind turns to the north-west",
            "fields": {"step": number},
        }  # fmt: skip
    note = f"at step {number} the keeper saw the lamp go out and come back"
    patch = {"rooms": {f"r{number % 97}": {"lamp": number % 3, "visitor": f"npc{number % 29}", "note": note}}}
    return {"version": "0", "type": "state_patch", "timestamp": "2026-01-01T12:00:00Z", "patch": patch}


def prepare(folder: Path) -> tuple[Path, int]:
    lines = [json.dumps(event(number), separators=(",", ":")) for number in range(EVENTS)]
    lines.append('{"version":"0","type":"done","ok":true}')
    source = folder / "events.ndjson"
    source.write_text("\n".join(lines) + "\n")
    tool = folder / "emit"
    tool.write_text(TOOL.format(path=source))
    tool.chmod(0o755)
    return tool, source.stat().st_size


# --- ingest -----------------------------------------------------------------------------------------------------


class Subscriber:
    """A viewer that takes everything."""

    full = False

    def __init__(self) -> None:
        self.seen = 0

    async def wait(self) -> None:
        return None

    def push(self, record: Record) -> None:
        self.seen += 1


async def ours(tool: Path, folder: Path) -> SqliteStore:
    from narratoria.run.registry import ToolRegistry

    store = SqliteStore(folder / "sessions.db")
    session = Session(assets=store.assets)
    journal = store.create(session)
    viewer = Subscriber()
    journal.attach(viewer)
    registry, run = ToolRegistry(), process_tool(tool)
    for turn in range(1, CALLS + 1):
        session.turn = turn
        session.record(TurnStarted(turn=turn, prompt="go"))
        result = await registry.executor.execute(run, {}, session=session)
        assert result.success, result.message
        session.record(TurnCommitted(turn=turn))
        session.turn = None
        await journal.commit_turn()
    assert viewer.seen >= CALLS * EVENTS
    await journal.close()
    store.close()
    return store


async def naive(tool: Path, folder: Path) -> None:
    """What one would write first: a line, a model, a merge, a commit."""
    from pydantic import BaseModel, TypeAdapter

    class Log(BaseModel):
        version: Literal["0"]
        type: Literal["log"]
        level: Literal["debug", "info", "warn", "error"]
        message: str
        timestamp: str | None = None
        fields: dict[str, Any] | None = None

    class StatePatch(BaseModel):
        version: Literal["0"]
        type: Literal["state_patch"]
        timestamp: str | None = None
        patch: dict[str, Any]

    class Done(BaseModel):
        version: Literal["0"]
        type: Literal["done"]
        ok: bool

    adapter: TypeAdapter[Any] = TypeAdapter(Log | StatePatch | Done)
    connection = sqlite3.connect(folder / "naive.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, ts REAL, turn INTEGER, body TEXT)")
    state: Any = {}
    viewer = Subscriber()
    seq = 0
    for turn in range(1, CALLS + 1):
        process = await asyncio.create_subprocess_exec(
            str(tool), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        while line := await process.stdout.readline():
            found = adapter.validate_json(line)
            if isinstance(found, StatePatch):
                state = merge(state, found.patch)
            seq += 1
            body = (seq, time.time(), turn, found.model_dump_json(exclude_none=True))
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", body)
            connection.commit()
            viewer.seen += 1
        await process.wait()
    connection.close()
    assert viewer.seen > CALLS * EVENTS


def bench_ingest() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tool, payload = prepare(folder)
        sizes: list[float] = []

        def run_ours() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                store = asyncio.run(ours(tool, Path(place)))
                sizes.append(store.path.stat().st_size / (CALLS * payload))

        def run_naive() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                asyncio.run(naive(tool, Path(place)))

        costs = interleaved({"ours": run_ours, "naive": run_naive}, rounds=3)
    per_event = costs["ours"].cpu / (CALLS * EVENTS) * 1e6
    return [
        against(
            "ingest, events per CPU second against the naive path",
            costs["naive"],
            costs["ours"],
            6,
            by="cpu",
            at_least=True,
            note=f"{per_event:.1f} µs of CPU per event",
        ),
        Row("room on the disk against the payload", statistics.median(sizes), 1.3),
    ]


# --- long sessions ----------------------------------------------------------------------------------------------


async def lengthen(store: SqliteStore, session_id: str, turns: int, *, pictures: bool = False) -> None:
    """A game of so many turns: each moves, takes, tells, and shows a picture if asked to."""
    from narratoria.events import AssetStored, Choices, Narration
    from narratoria.session.draft_operations import AssetMade

    digest = store.assets.add_bytes(b"a picture")
    session = Session(session_id, assets=store.assets)
    journal = store.create(session, story="bench")
    for turn in range(turns):
        session.turn = session.turn_count = turn
        session.record(TurnStarted(turn=turn, prompt=f"go to room {turn % 50} and look"))
        session.patch(
            {"place": turn % 50, "rooms": {str(turn % 50): {"visits": turn, "note": f"turn {turn}"}}}
        )
        session.record(
            Narration(text=f"The corridor bends, and you count step {turn}. " * 4, narrator="bench")
        )
        if pictures:
            made = AssetMade(
                AssetStored(
                    call=f"c{turn}",
                    asset_id=f"view{turn}",
                    kind="image",
                    media_type="image/png",
                    hash=digest,
                    size=9,
                )
            )
            made.seq = session.record(made.stored)
            session.commit(f"c{turn}", [made])
        session.record(Choices(choices=[f"Go on to {turn + 1}", "Turn back"]))
        session.record(TurnCommitted(turn=turn))
        session.turn = None
        if turn % 16 == 15:
            await journal.flush()
        else:
            await asyncio.sleep(0)
    await journal.close()


def bench_long() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        store = SqliteStore(Path(name) / "sessions.db")
        for turns in (SHORT, LONG):
            asyncio.run(lengthen(store, f"turns{turns}", turns))
            asyncio.run(lengthen(store, f"pictures{turns}", turns, pictures=True))

        async def opened(name: str) -> None:
            journal: Journal = store.open(name)
            assert name.endswith(str(journal.session.turn_count + 1))
            await journal.close()

        names = [f"{kind}{turns}" for kind in ("turns", "pictures") for turns in (SHORT, LONG)]
        rows = interleaved({name: lambda name=name: asyncio.run(opened(name)) for name in names}, 15)  # type: ignore[misc]
        undoing = asyncio.run(time_undo(store))
        store.close()
    return [
        *(
            against(
                f"opening {LONG:,} turns against {SHORT}{what}",
                rows[f"{kind}{LONG}"],
                rows[f"{kind}{SHORT}"],
                3,
                by="wall",
                note=f"{rows[f'{kind}{LONG}'].wall * 1000:.1f} ms against {rows[f'{kind}{SHORT}'].wall * 1000:.1f} ms",
            )
            for kind, what in (("turns", ""), ("pictures", ", each with a picture"))
        ),
        Row(
            f"undo after {LONG:,} turns against {SHORT}",
            undoing[LONG] / undoing[SHORT],
            1.5,
            note=f"{undoing[LONG] * 1000:.2f} ms of CPU each",
        ),
    ]


async def time_undo(store: SqliteStore) -> dict[int, float]:
    """CPU of one undo; the fsync of its commit depends on the disk, not on us."""
    journals = {turns: store.open(f"turns{turns}") for turns in (SHORT, LONG)}
    samples: dict[int, list[float]] = {SHORT: [], LONG: []}
    for number in range(31):
        for turns, journal in journals.items():
            before = cpu_seconds()
            await undo(journal)
            if number:
                samples[turns].append(cpu_seconds() - before)
    for journal in journals.values():
        await journal.close()
    return {turns: statistics.median(found) for turns, found in samples.items()}


# --- reading back -----------------------------------------------------------------------------------------------


def bench_reading_back() -> list[Row]:
    """Every record is decoded again before it is written (`store/mending.py`), so that it can be read later."""

    def played() -> None:
        with tempfile.TemporaryDirectory() as name:
            store = SqliteStore(Path(name) / "sessions.db")
            asyncio.run(lengthen(store, "turns", PLAYED))
            store.close()

    def unchecked() -> None:
        check, mending.check_records = mending.check_records, lambda lines: None
        try:
            played()
        finally:
            mending.check_records = check

    costs = interleaved({"with": played, "without": unchecked}, rounds=7)
    per_turn = {name: cost.cpu / PLAYED * 1e6 for name, cost in costs.items()}
    return [
        against(
            "a turn that reads back what it writes against one that does not",
            costs["with"],
            costs["without"],
            1.1,
            by="cpu",
            note=f"{per_turn['with']:.0f} µs of CPU per turn with, {per_turn['without']:.0f} µs without",
        )
    ]


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    spare_the_collector()  # as every command does
    report("journal", [*bench_ingest(), *bench_long(), *bench_reading_back()])
