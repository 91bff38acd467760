"""The games of one server among several over one database.

A session is played by the server that has its lease. The others follow it for their viewers, and hand what those send
to the server that plays it (`forwarding.py`). A session that nobody uses is closed, and is free for every server. The
turn of a server that died is taken over and finished by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from narratoria.errors import JournalError, NarratoriaError, SessionElsewhere
from narratoria.events import TurnStarted
from narratoria.play.story import Story
from narratoria.play.turn_types import Origin
from narratoria.session import Record
from narratoria.store.postgres import PostgresStore
from narratoria.store.postgres_listener import CONNECTED
from narratoria.store.store import SessionMeta
from narratoria.web.feed import Feed
from narratoria.web.followers import LOOK_SECONDS, Followers
from narratoria.web.games import Games, Unavailable
from narratoria.web.metrics import Metrics
from narratoria.web.open_game import OpenGame

IDLE_SECONDS: Final = 60.0
"""Seconds without a request after which a session is closed; its viewers stay."""
SCAN_SECONDS: Final = 0.5
BEGIN_SECONDS: Final = 15.0  # for the beginning of a turn to be written
TAKEN_AT_ONCE: Final = 4
logger = logging.getLogger("narratoria")


class Draining(Unavailable):
    """The server is ending, and no other one is there."""

    code = "draining"


class NotBegun(Unavailable):
    """The turn has not begun, or nobody knows if it has."""

    code = "not_begun"


class _Beginning:
    """A sink that waits for the written beginning of a turn."""

    full = False

    def __init__(self) -> None:
        self.written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def push(self, record: Record) -> None:
        if isinstance(record.event, TurnStarted) and not self.written.done():
            self.written.set_result(None)

    async def wait(self) -> None:
        return


class SharedGames(Games):
    """The games of this server. `store.keeper` has its leases."""

    def __init__(self, store: PostgresStore, *, idle_seconds: float = IDLE_SECONDS, **options: Any) -> None:
        super().__init__(store, **options)
        self.shared = store
        self.keeper = store.keeper
        self.players = store.players
        self.followers = Followers(store, self._tasks)
        self.metrics = Metrics()
        self.draining = False
        self._idle_seconds = idle_seconds
        self._used: dict[str, float] = {}
        self._hears: list[Any] = []  # called with messages that are not about records
        self._listener = store.listener(self._heard_in_thread)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self.keeper.on_lost = lambda session_id: self._soon(self._lost, session_id)
        self.keeper.serving = True
        self.keeper.start()
        self._listener.start()
        self._tasks.start(self._scan())
        self._tasks.start(self._look_around())
        return await super().__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            await asyncio.to_thread(self._listener.close)

    def begin_end(self) -> None:
        super().begin_end()
        self.followers.close()

    @property
    def count(self) -> int:
        return len(self._open_games)

    @property
    def running(self) -> int:
        return sum(opened.game.busy for opened in self._open_games.values())

    async def _play(self, opened: OpenGame, turn: Awaitable[object]) -> None:
        begun, before = time.monotonic(), len(opened.journal.timeline.turns)
        try:
            await super()._play(opened, turn)
        finally:
            if len(opened.journal.timeline.turns) > before:
                self.metrics.turn(time.monotonic() - begun)
            if opened.session.id in self._open_games:
                self._used[opened.session.id] = time.monotonic()

    async def _begin(self, opened: OpenGame, text: str, origin: Origin) -> int:
        """Begin a turn, and return once that is written: from then on another server would finish it."""
        beginning = _Beginning()
        detach = opened.journal.attach(beginning)
        try:
            turn = await super()._begin(opened, text, origin)
            playing = opened.turn
            assert playing is not None  # noqa: S101 - just begun
            await asyncio.wait(
                [beginning.written, playing], timeout=BEGIN_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            detach()
        if not beginning.written.done():
            how = "did not begin; try again" if playing.done() else "may not be saved; look at the story"
            raise NotBegun(f"the turn {how}")
        return turn

    # --- where a session is --------------------------------------------------------------------------------

    async def open(self, session_id: str) -> OpenGame:
        if session_id not in self._open_games:
            await self._check_place(session_id)
        opened = await super().open(session_id)
        self._used[session_id] = time.monotonic()
        return opened

    async def metas(self, player: str | None = None) -> Sequence[SessionMeta]:
        if player is None:
            return await super().metas()
        ids = await asyncio.to_thread(self.shared.players.sessions, player)
        return await asyncio.to_thread(self.shared.metas, ids)

    async def create(self, story_id: str, *, owner: str | None = None) -> str:
        if self.draining:
            raise Draining("this server is ending; try again, and another one answers")
        session_id = await super().create(story_id, owner=owner)
        self._used[session_id] = time.monotonic()
        return session_id

    async def _check_place(self, session_id: str) -> None:
        server = await asyncio.to_thread(self.keeper.elsewhere, session_id)
        if server is None and self.draining:
            server = await asyncio.to_thread(self.keeper.peer)
            if server is None:
                raise Draining("this server is ending, and there is no other one; try again in a moment")
        if server is not None:
            raise SessionElsewhere(f"session {session_id} is played by another server", server)

    async def feed(self, session_id: str) -> Feed:
        opened = self._open_games.get(session_id)
        if opened is not None:
            return opened.feed
        await asyncio.to_thread(self._meta, session_id)
        return await self.followers.feed(session_id)

    async def story_of(self, session_id: str) -> Story:
        opened = self._open_games.get(session_id)
        if opened is not None:
            return opened.game.story
        meta = await asyncio.to_thread(self._meta, session_id)
        return await asyncio.to_thread(self.shelf.story_of, meta)

    # --- messages ------------------------------------------------------------------------------------------

    def on_message(self, hears: Any) -> None:
        self._hears.append(hears)

    def _heard_in_thread(self, message: str) -> None:
        what, _, rest = message.partition(" ")
        if what == "records" and not self.followers.follows(rest.partition(" ")[2]):
            return  # most are of sessions that nobody watches here: they do not wake the loop
        self._soon(self._hear, message)

    def _hear(self, message: str) -> None:
        what, _, rest = message.partition(" ")
        if what == "records":
            self.followers.look(rest.partition(" ")[2])
            return
        if what == CONNECTED:
            for session_id in self.followers.sessions():
                self.followers.look(session_id)
        for hears in self._hears:
            hears(what, rest)

    def _soon(self, act: Any, *given: Any) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it closes this very moment
                loop.call_soon_threadsafe(act, *given)

    async def _look_around(self) -> None:
        while not self._ending.is_set():
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.followers.look_around()
                await self._close_unused()
            except JournalError as error:
                self.metrics.add("database_errors")
                logger.warning("the database does not answer: %s", error)

    # --- taking over, losing, closing ----------------------------------------------------------------------

    async def _scan(self) -> None:
        """Take over the turns of servers that died."""
        while not self._ending.is_set():
            await asyncio.sleep(SCAN_SECONDS)
            if self.draining:
                continue
            try:
                left = await asyncio.to_thread(self.keeper.abandoned)
            except JournalError:
                continue  # the heartbeat says what is wrong
            random.shuffle(left)
            for start in range(0, len(left), TAKEN_AT_ONCE):
                await asyncio.gather(*map(self._take_over, left[start : start + TAKEN_AT_ONCE]))

    async def _take_over(self, session_id: str) -> None:
        try:
            await self.open(session_id)
        except SessionElsewhere:
            return  # another one was quicker
        except NarratoriaError as error:
            logger.warning("session %s could not be taken over: %s", session_id, error)
            return
        self.metrics.add("takeovers")
        logger.warning("session %s was taken over from a server that is gone", session_id)

    def _lost(self, session_id: str) -> None:
        """End a game that another server plays now: nothing of it was written since that one took it."""
        opened = self._open_games.pop(session_id, None)
        self._used.pop(session_id, None)
        if opened is None:
            return
        self.metrics.add("leases_lost")
        logger.warning(
            "session %s was taken over by another server while this one did not answer; "
            "it is written up to record %d, and later ones of this server are dropped",
            session_id,
            opened.journal.written,
        )
        opened.journal.abandon()
        if opened.turn is not None:
            opened.turn.cancel()
        self._tasks.start(opened.game.close())
        self._tasks.start(self.followers.take(session_id, opened.feed))

    async def _close_unused(self) -> None:
        now = time.monotonic()
        if not self.keeper.beating:
            return  # closing writes
        for session_id, used in [*self._used.items()]:
            if now - used > self._idle_seconds:
                await self.close_game(session_id)

    async def close_game(self, session_id: str) -> bool:
        """Close a game in which no turn runs, and give its lease back. Its viewers follow it on."""
        async with self._opening.setdefault(session_id, asyncio.Lock()):
            opened = self._open_games.get(session_id)
            if opened is None:
                self._used.pop(session_id, None)
                return True
            if opened.game.busy or opened.session.turn_lock.locked():
                return False
            del self._open_games[session_id]
            self._used.pop(session_id, None)
            async with opened.session.turn_lock:
                await opened.journal.close()
                await opened.game.close()
        self._opening.pop(session_id, None)
        await self.followers.take(session_id, opened.feed)
        return True

    async def drain(self, seconds: float) -> None:
        """Give every session up: those without a turn at once, the others when it ends, or after some seconds."""
        self.draining = True
        until = time.monotonic() + seconds
        while self._open_games and time.monotonic() < until:
            for session_id in [*self._open_games]:
                with contextlib.suppress(JournalError):
                    await self.close_game(session_id)
            await asyncio.sleep(0.05)
