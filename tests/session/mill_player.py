"""Plays the mill as a process of its own, so that a test can kill it: STORE SESSION TURNS.

Going on after a kill is the same as beginning: open the session, finish the open turn, take the next one.
Every seventh turn is taken back, which must happen once, whenever the process dies.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from pathlib import Path

from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.game import Game
from narratoria.play.history import undo
from narratoria.play.resume import open_turn
from narratoria.play.story import Story
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.session import Session
from narratoria.store.default_store import default_store
from narratoria.store.journal import Journal
from narratoria.store.store import SessionUnknown, Store

MILL = Path(__file__).with_name("mill")


class Miller:
    """Always the same plan for the same prompt."""

    name = "miller"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        n = int(request.prompt.split()[-1])
        return PlanDocument(
            request_id=str(uuid.uuid5(uuid.NAMESPACE_OID, request.prompt)),
            narrative=f"The wheel turns for sack {n}.",
            parallel=True,
            tools=[
                PlannedCall(tool_id="grind", tool_path="grind", input={"n": n}, async_=True),
                PlannedCall(tool_id="more", tool_path="grind", input={"n": n + 1000}, async_=True),
                PlannedCall(tool_id="carry", tool_path="carry", dependencies=["grind"], async_=True),
            ],
        )


def seat(store: Store, session_id: str) -> tuple[Journal, Game]:
    story = Story.load(MILL)
    try:
        journal = store.open(session_id)
    except SessionUnknown:
        session = Session(session_id, state=story.state, permissions=story.permissions)
        journal = store.create(session, story=story.id, title=story.title)
    return journal, Game(story, journal.session, narrator=Miller())


async def play(store: Store, session_id: str, turns: int) -> None:
    journal, game = seat(store, session_id)
    if journal.timeline.last is None:
        game.begin()
        await journal.commit_turn()
    print("ready", flush=True)
    unfinished = open_turn(journal)
    if unfinished is not None:
        await game.prompt(unfinished.prompt, resume=unfinished)
    while True:
        last = journal.timeline.last
        if last and last % 7 == 0:
            await undo(journal, game.registry)
        if journal.session.turn_count >= turns:
            break
        await game.prompt(f"grind sack {journal.session.turn_count + 1}")
    await journal.close()


if __name__ == "__main__":
    home, session_id, turns = sys.argv[1:]
    if home.startswith("postgres"):
        os.environ["NARRATORIA_STORE"] = home
    store = default_store(Path(os.environ["NARRATORIA_HOME"]))
    asyncio.run(play(store, session_id, int(turns)))
    store.close()
