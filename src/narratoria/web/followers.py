"""Viewers of sessions that another server plays: their records are read from the store as they are announced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from narratoria.errors import JournalError
from narratoria.store.postgres import PostgresStore
from narratoria.store.timeline import Timeline
from narratoria.web.feed import Feed
from narratoria.web.server_tasks import ServerTasks
from narratoria.web.turn_pages import JournalRecords

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at the tables, for announcements that were lost."""
logger = logging.getLogger("narratoria")


@dataclass(slots=True, eq=False)
class Follower:
    """A feed that is filled from the store. `timeline` stands at record `at`."""

    feed: Feed
    timeline: Timeline
    at: int
    behind: bool = False  # a look is under way, and another one is needed after it
    looking: bool = False
    idle: int = 0  # looks since it had a viewer
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Followers:
    """The feeds of the sessions that are watched here and played elsewhere."""

    def __init__(self, store: PostgresStore, tasks: ServerTasks) -> None:
        self._store = store
        self._tasks = tasks
        self._known: dict[str, Follower] = {}
        self._beginning: dict[str, asyncio.Lock] = {}

    def __len__(self) -> int:
        return len(self._known)

    async def feed(self, session_id: str) -> Feed:
        """Return the feed of a session, up to date."""
        async with self._beginning.setdefault(session_id, asyncio.Lock()):
            follower = self._known.get(session_id)
            if follower is None:
                timeline, at = await asyncio.to_thread(self._store.glimpse, session_id)
                feed = Feed(JournalRecords(self._store, session_id, timeline), at)
                follower = self._known[session_id] = Follower(feed, timeline, at)
        self._beginning.pop(session_id, None)
        follower.idle = 0
        await self._catch_up(session_id, follower)
        return follower.feed

    async def take(self, session_id: str, feed: Feed) -> None:
        """Go on with the feed of a session that this server plays no more."""
        if session_id in self._known or not feed.watched:
            feed.close()
            return
        try:
            timeline, at = await asyncio.to_thread(self._store.glimpse, session_id)
        except JournalError:
            feed.close()  # its viewers come again
            return
        if at < feed.seq:
            feed.close()  # a crash of the database has taken back what its viewers have seen
            return
        feed.rebase(JournalRecords(self._store, session_id, timeline))
        self._known[session_id] = Follower(feed, timeline, at)
        self.look(session_id)

    def follows(self, session_id: str) -> bool:
        """Tell if a session is watched here and played elsewhere; any thread may ask. What was written before it was
        is read when the watching begins.
        """
        return session_id in self._known

    def look(self, session_id: str) -> None:
        """Read what is new in a session, if it is watched."""
        follower = self._known.get(session_id)
        if follower is not None:
            follower.behind = True
            if not follower.looking:
                follower.looking = True
                self._tasks.start(self._look(session_id, follower))

    async def _look(self, session_id: str, follower: Follower) -> None:
        try:
            while follower.behind:
                follower.behind = False
                await self._catch_up(session_id, follower)
        except JournalError as error:
            logger.warning("session %s is not followed for a moment: %s", session_id, error)
        finally:
            follower.looking = False

    async def _catch_up(self, session_id: str, follower: Follower) -> None:
        async with follower.lock:
            feed = follower.feed
            records = await asyncio.to_thread(lambda: list(self._store.read(session_id, feed.seq)))
            for record in records:
                if record.seq > follower.at:
                    follower.timeline.apply(record)
                    follower.at = record.seq
                feed.push(record)

    async def look_around(self) -> None:
        """Find what no announcement told, and let go of feeds that nobody watches."""
        for session_id, follower in [*self._known.items()]:
            follower.idle = 0 if follower.feed.watched else follower.idle + 1
            if follower.idle > 10:
                del self._known[session_id]
        if not self._known:
            return
        rows = await asyncio.to_thread(
            self._store.query, "SELECT id, last_seq FROM sessions WHERE id = ANY(?)", (list(self._known),)
        )
        reached = dict(rows)
        for session_id, follower in [*self._known.items()]:
            if session_id not in reached or reached[session_id] < follower.feed.seq:  # it was deleted
                follower.feed.close()
                del self._known[session_id]
            elif reached[session_id] > follower.feed.seq:
                self.look(session_id)

    def sessions(self) -> Iterable[str]:
        return list(self._known)

    def close(self) -> None:
        for follower in self._known.values():
            follower.feed.close()
        self._known.clear()
