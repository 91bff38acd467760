"""Calls of an open game for its Tools view: taken apart, as a command, and run again in a scratch session."""

from __future__ import annotations

import asyncio
from typing import Final

from narratoria.errors import SessionBusy
from narratoria.events import JsonObject
from narratoria.play.call_again import (
    NotRunAgain,
    RepeatedCall,
    is_imported,
    outside_effects,
    run_again,
    tool_of,
)
from narratoria.play.call_command import CallCommand, call_command
from narratoria.session import Session
from narratoria.store.recorded_call import (
    RecordedCall,
    events_of,
    find_call,
    recorded_call,
    state_before,
)
from narratoria.web.documents import CallDetails, CallEvents
from narratoria.web.open_game import OpenGame

MOST_EVENTS: Final = 1_000
"""Events in one answer; the rest is asked for by number."""
MOST_AT_ONCE: Final = 4
"""Calls that are run again at the same time, of all sessions."""


class CallViews:
    """The calls of open games, read from their journals."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[RepeatedCall]] = set()

    async def details(self, opened: OpenGame, call: str, turn: int | None) -> CallDetails:
        await opened.journal.flush()
        return await asyncio.to_thread(self._details, opened, call, turn)

    def _details(self, opened: OpenGame, call: str, turn: int | None) -> CallDetails:
        world, told = _read(opened, call, turn)
        try:
            tool = tool_of(told, opened.game.executor)
        except NotRunAgain as refusal:
            return CallDetails(call=told, command="", notes=[str(refusal)], refused=str(refusal))
        made = _command(told, opened, world)
        outside = outside_effects(tool, imported=is_imported(opened.journal.store, opened.session.id))
        lost = "the state it had was lost to damage" if told.attempts else "it was not run"
        refused = "" if world is not None else f"{told.tool} cannot be run again: {lost}"
        return CallDetails(
            call=told, command=made.command, notes=made.notes, outside=outside, refused=refused
        )

    async def events(
        self, opened: OpenGame, call: str, turn: int | None, first: int, most: int
    ) -> CallEvents:
        """Return the events of a call from number `first` on."""
        await opened.journal.flush()

        def read() -> CallEvents:
            records = find_call(opened.journal.store, opened.session.id, call, turn)
            shown = events_of(records, first, min(most, MOST_EVENTS))
            return CallEvents(first=first, total=len(records.own), events=shown)

        return await asyncio.to_thread(read)

    async def run(
        self, opened: OpenGame, call: str, turn: int | None, given: JsonObject | None, agreed: bool
    ) -> RepeatedCall:
        """Run a call again. Cancelling ends its process first."""
        if len(self._running) >= MOST_AT_ONCE:
            raise SessionBusy(f"{MOST_AT_ONCE} calls are being run again already; wait for one, or stop it")
        await opened.journal.flush()
        store, session = opened.journal.store, opened.session
        records = await asyncio.to_thread(find_call, store, session.id, call, turn)
        task = asyncio.create_task(
            run_again(
                store,
                session.id,
                records,
                opened.game.executor,
                given=given,
                permissions=opened.game.story.permissions,
                agreed=agreed,
            )
        )
        self._running.add(task)
        try:
            return await task
        finally:
            self._running.discard(task)

    def stop(self) -> None:
        """End the calls that are being run again: the server ends."""
        for task in self._running:
            task.cancel()


def _read(opened: OpenGame, call: str, turn: int | None) -> tuple[Session | None, RecordedCall]:
    store, session_id = opened.journal.store, opened.session.id
    records = find_call(store, session_id, call, turn)
    world = state_before(store, session_id, records)
    return world, recorded_call(records, world)


def _command(told: RecordedCall, opened: OpenGame, world: Session | None) -> CallCommand:
    tool = tool_of(told, opened.game.executor)
    granted = world.permissions if world is not None else ()
    return call_command(told, tool, world, opened.session.id, permissions=granted)
