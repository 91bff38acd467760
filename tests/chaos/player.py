"""Plays a drawn game as a process of its own, so that it can be killed: PLACE FOLDER SEED.

PLACE is `sqlite` or the URL of a PostgreSQL database. To go on after a kill is the same as to begin. Its exit status
is 0 at the end of the game, and 3 if the store could not be used; that is said in one line.
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
import sys
import time
from pathlib import Path

JUMPS = os.environ.get("CHAOS_CLOCK")
if (
    JUMPS
):  # a wall clock that jumps by days, back and forth; before anything keeps a reference to the real one
    _real, _chance = time.time, random.Random(JUMPS)
    time.time = lambda: _real() + _chance.choice((0, 0, 86_400, -86_400, 3e8, -3e8))  # type: ignore[assignment]
if os.environ.get("CHAOS_FILE_BYTES"):
    _limit = int(os.environ["CHAOS_FILE_BYTES"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (_limit, _limit))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.chaos.games import SESSION, document_of  # noqa: E402
from tests.chaos.processes import Processes  # noqa: E402
from tests.chaos.scenarios import PROCESS_ENDINGS, Lot, Scenario  # noqa: E402

from narratoria.errors import JournalError, SessionBusy  # noqa: E402
from narratoria.narrator.protocol import NarratorRequest, NoMatch  # noqa: E402
from narratoria.play.history import finish_undo, undo  # noqa: E402
from narratoria.play.resume import open_turn  # noqa: E402
from narratoria.play.turn import take_turn  # noqa: E402
from narratoria.run.plan import PlanDocument  # noqa: E402
from narratoria.run.plan_executor import PlanExecutor  # noqa: E402
from narratoria.session import Session  # noqa: E402
from narratoria.store.sqlite import SqliteStore  # noqa: E402
from narratoria.store.store import SessionUnknown, Store  # noqa: E402

LASTING = tuple(one for one in PROCESS_ENDINGS if not one.timed_out)


def drawn_game(seed: int) -> Scenario:
    """A game for faults: each call ends in one way however often it is tried, so a kill changes no outcome."""
    return Lot(seed, LASTING, "process").steady(turns=6, calls=4)


def undone_after(scenario: Scenario, turn: int) -> bool:
    """Tell if a turn is taken back as soon as it has ended."""
    return random.Random(f"undo {scenario.seed} {turn}").random() < 0.25


def open_store(place: str, folder: Path) -> Store:
    if place == "sqlite":
        return SqliteStore(folder / "home" / "sessions.db")
    from narratoria.store.postgres import PostgresStore

    return PostgresStore(place, assets=folder / "home" / "assets")


class Script:
    """Always the same plans for the same turn, whoever asks."""

    name = "script"

    def __init__(self, scenario: Scenario, toolbox: Processes) -> None:
        self.scenario = scenario
        self.toolbox = toolbox

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        plans = self.scenario.turns[int(request.prompt.split()[1]) - 1].plans
        if request.attempt > len(plans):
            return PlanDocument(request_id=f"{request.prompt}/{request.attempt}", narrative="It is quiet.")
        drawn = plans[request.attempt - 1]
        if drawn is None:
            raise NoMatch("nothing comes to mind")
        return document_of(drawn, self.toolbox)


async def play(store: Store, scenario: Scenario, toolbox: Processes) -> None:
    try:
        journal = store.open(SESSION)
    except SessionUnknown:
        journal = store.create(Session(SESSION, state=scenario.state, assets=store.assets), story="chaos")
    registry, narrator = toolbox.registry(), Script(scenario, toolbox)

    async def take(prompt: str, **how: object) -> None:
        executor = PlanExecutor(registry, journal.session, limit=scenario.limit)
        result = await take_turn(
            journal.session,
            prompt,
            narrator=narrator,
            registry=registry,
            executor=executor,
            **how,  # type: ignore[arg-type]
        )
        if result.unsaved is not None:
            print(f"unsaved: {result.unsaved}", file=sys.stderr, flush=True)

    print("ready", flush=True)
    await finish_undo(journal, registry)
    unfinished = open_turn(journal)
    if unfinished is not None:
        await take(unfinished.prompt, resume=unfinished)
    while True:
        last = journal.timeline.last
        if last and last == journal.session.turn_count and undone_after(scenario, last):
            await undo(journal, registry)
        if journal.session.turn_count >= len(scenario.turns):
            break
        await take(f"turn {journal.session.turn_count + 1}")
    await journal.close()


def main(place: str, folder: Path, seed: int) -> int:
    scenario = drawn_game(seed)
    toolbox = Processes(scenario, folder / "tools", write=False)
    store = open_store(place, folder)
    try:
        asyncio.run(play(store, scenario, toolbox))
    except (JournalError, SessionBusy) as error:
        print(f"storage: {error}", file=sys.stderr, flush=True)
        return 3
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
