"""The open games of this server: creating, opening, playing, leaving and ending them."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
import zipfile
from collections.abc import Awaitable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Final, Self

from narratoria.errors import NarratoriaError
from narratoria.events import Notice
from narratoria.kinds.foreign_sources import ToolSources
from narratoria.kinds.shares.shares import Shares
from narratoria.play.game import Game
from narratoria.play.session_story import folder_of
from narratoria.play.story import Story
from narratoria.play.story_watch import WATCH_SECONDS
from narratoria.session import Session
from narratoria.session.record import Sink
from narratoria.store.fold import fold
from narratoria.store.portable import SUFFIX, export_session, import_session
from narratoria.store.postgres_players import Players
from narratoria.store.store import AboutSession, SessionMeta, SessionUnknown, Store
from narratoria.store.transcripts import TRANSCRIPTS
from narratoria.web.call_views import CallViews
from narratoria.web.cards import branch_title
from narratoria.web.documents import (
    SessionCard,
    Settings,
    SettingsChange,
    ToolName,
)
from narratoria.web.feed import Feed
from narratoria.web.first_data import first_data
from narratoria.web.game_moves import Refused, refusing
from narratoria.web.library import Shelf
from narratoria.web.open_game import OpenGame
from narratoria.web.search import Search
from narratoria.web.server_tasks import ServerTasks
from narratoria.web.turn_pages import JournalRecords
from narratoria.web.turn_taking import TurnTaking

if TYPE_CHECKING:
    from narratoria.store.journal import Journal

GRACE_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 0.5  # that a page waits for its story before it comes without
BROKEN_OFF: Final = (
    "The turn broke off by a fault of this program; the log of the server says which. Try it again."
)


class NotFound(NarratoriaError):
    """There is no such session or story."""


class Unavailable(NarratoriaError):
    """The request cannot be answered now; `code` says why."""

    code = "unavailable"


class Games(TurnTaking):
    """Every session by its id. Turns run in its tasks, so none outlives the server."""

    def __init__(
        self,
        store: Store,
        *,
        narrators: Sequence[str] | None = None,
        extra: Sequence[Story] = (),
        patience: float = PATIENCE_SECONDS,
        sources: ToolSources | None = None,
        skills: Sequence[Path] = (),
        watched: bool = False,
        heard: Sink | None = None,
        covers: bool = True,
        shares: Shares | None = None,
    ) -> None:
        self.store = store
        self.shelf = Shelf(store, extra)
        self._narrators = narrators
        self._patience = patience
        self._sources = sources  # MCP servers and OpenAPI documents that every game gets
        self._skills = tuple(skills)  # folders of skills that every game gets
        self._watched = watched  # stories are read anew when their files are saved
        self._heard = heard  # hears all records of all games
        self.shares = shares  # of the processes of tools; without them nothing is limited
        self._covers = covers  # the covers of the library are drawn, by the stories' tools
        self._open_games: dict[str, OpenGame] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._tasks = ServerTasks()
        self.calls = CallViews()
        self._ending = threading.Event()  # asked by threads that nobody can cancel
        self.search = Search(store)
        self.players: Players | None = None  # where sessions are private to one

    async def __aenter__(self) -> Self:
        if self._covers:
            self._tasks.start(self.shelf.draw_covers())
        if self._watched:
            self._tasks.start(self._watch())
        return self

    async def _watch(self) -> None:
        """Look at the stories of open games now and then."""
        while not self._ending.is_set():
            for opened in [*self._open_games.values()]:
                await opened.game.look_between_turns()
            await asyncio.sleep(WATCH_SECONDS)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.begin_end()
        await self._let_turns_end()
        left = await asyncio.gather(
            *[self._interrupt(opened) for opened in self._open_games.values()], return_exceptions=True
        )
        await self._tasks.end()
        for failure in left:
            if failure is not None:
                raise failure

    async def _let_turns_end(self) -> None:
        """Wait for running turns for a moment: most end by then, and need not be resumed."""
        turns = [opened.turn for opened in self._open_games.values() if opened.turn is not None]
        if turns:
            await asyncio.wait(turns, timeout=GRACE_SECONDS)

    async def _interrupt(self, opened: OpenGame) -> None:
        """Leave a running turn as a crash would: it is finished when the session is opened next.

        The journal is closed first. Later records of the cancelled turn are dropped, so that the end of the server is
        never recorded as the player's own Cancel.
        """
        try:
            await opened.journal.close()
        finally:
            if opened.turn is not None:
                opened.turn.cancel()
            await opened.game.close()

    def begin_end(self) -> None:
        """Disconnect every viewer, and give up imports and exports that run; a page reconnects by itself."""
        self._ending.set()
        self.calls.stop()
        for opened in self._open_games.values():
            opened.feed.close()

    # --- saved sessions ------------------------------------------------------------------------------------

    async def metas(self, player: str | None = None) -> Sequence[SessionMeta]:
        """Return all sessions, or those of one player where players have their own."""
        return await asyncio.to_thread(self.store.list)

    async def sessions(self, player: str | None = None) -> list[SessionCard]:
        stories = await asyncio.to_thread(self.shelf.stories)
        cards = []
        for meta in await self.metas(player):
            if meta.begun:
                with contextlib.suppress(SessionUnknown):  # deleted since it was listed
                    cards.append(await self._card(meta, stories))
        return cards

    async def card(self, session_id: str) -> SessionCard:
        meta = await asyncio.to_thread(self._meta, session_id)
        return await self._card(meta, await asyncio.to_thread(self.shelf.stories))

    async def _card(self, meta: SessionMeta, stories: Sequence[Story]) -> SessionCard:
        opened = self._open_games.get(meta.id)
        return await asyncio.to_thread(self.shelf.card, meta, stories, opened.session if opened else None)

    def _meta(self, session_id: str) -> SessionMeta:
        try:
            return self.store.meta(session_id)
        except SessionUnknown as error:
            raise NotFound(error.args[0]) from None

    # --- opening and leaving -------------------------------------------------------------------------------

    async def create(self, story_id: str, *, owner: str | None = None) -> str:
        """Begin a story and return the id of its session, which is private to its owner if it has one."""
        story = await asyncio.to_thread(self.shelf.story, story_id)
        session = Session(state=story.state, permissions=story.permissions, assets=self.store.assets)
        game = self._game(story, session)  # first: what cannot be played is not kept
        about = AboutSession(story=story.id, title=story.title, folder=folder_of(story), owner=owner)
        journal = await asyncio.to_thread(self.store.create, session, **about)
        opened = self._open_game(game, journal)
        opened.game.begin()
        await journal.commit_turn()
        return session.id

    async def open(self, session_id: str) -> OpenGame:
        """Return the open game of a session, restored from its journal if it is not open yet."""
        async with self._opening.setdefault(session_id, asyncio.Lock()):
            opened = self._open_games.get(session_id)
            if opened is None:
                meta = await asyncio.to_thread(self._meta, session_id)
                story = await asyncio.to_thread(self.shelf.story_of, meta)
                journal = await asyncio.to_thread(self.store.open, session_id)
                opened = self._open_game(self._game(story, journal.session), journal)
                opened.restore()
                self._start(opened, opened.game.resume())
            return opened

    async def feed(self, session_id: str) -> Feed:
        """Return what a viewer of a session follows."""
        return (await self.open(session_id)).feed

    async def story_of(self, session_id: str) -> Story:
        """Return the story of a session, as it is being played if it is."""
        return (await self.open(session_id)).game.story

    async def first_look(self, session_id: str) -> bytes | None:
        """Return the first data of a page, as JSON; None if that would keep the page empty for too long."""
        looking = self._tasks.start(first_data(self, session_id))
        await asyncio.wait([looking], timeout=self._patience)
        return looking.result() if looking.done() else None

    def _game(self, story: Story, session: Session) -> Game:
        game = Game(
            story,
            session,
            narrators=self._narrators,
            sources=self._sources,
            skills=self._skills,
            watched=self._watched,
        )
        if self._heard is not None:
            session.attach(self._heard)
        if self.shares is not None:
            session.share = self.shares.of(session.id)
        return game

    def _open_game(self, game: Game, journal: Journal) -> OpenGame:
        session = game.session
        past = JournalRecords(self.store, session.id, journal.timeline)
        opened = OpenGame(game, journal, Feed(past, session.seq), self._narrators)
        journal.attach(opened.feed)  # not to the session: a viewer never knows more than a restarted server
        session.approvals.attended = True  # by the page and by programs
        self._open_games[session.id] = opened
        return opened

    async def _leave(self, session_id: str) -> None:
        opened = self._open_games.pop(session_id, None)
        if opened is None:
            return
        opened.game.cancel()
        async with opened.session.turn_lock:
            opened.feed.close()
            await opened.journal.close()
            await opened.game.close()

    async def delete(self, session_id: str) -> None:
        """Delete a session. Requests for it meanwhile wait, and get "not found"."""
        async with self._opening.setdefault(session_id, asyncio.Lock()):
            await asyncio.to_thread(self._meta, session_id)
            await self._leave(session_id)
            self.shelf.forget(session_id)
            await asyncio.to_thread(self.store.delete, session_id)

    async def rename(self, session_id: str, title: str) -> None:
        await asyncio.to_thread(self._meta, session_id)
        await asyncio.to_thread(self.store.rename, session_id, title)

    async def branch(
        self,
        session_id: str,
        turn: int | None = None,
        before: int | None = None,
        *,
        owner: str | None = None,
    ) -> str:
        """Make a session that shares the past up to the end of `turn`, or to the beginning of `before`; return its
        id.
        """
        if before is not None:
            turn = (await self.open(session_id)).journal.timeline.before(before)
            if turn is None:
                raise Refused(f"there is nothing before turn {before} to branch from; begin the story again")
        opened = self._open_games.get(session_id) if turn is not None else await self.open(session_id)
        if opened is not None:
            await opened.journal.flush()
            turn = opened.journal.timeline.last if turn is None else turn
        if turn is None:
            raise Refused("there is no turn to branch from yet")
        title = branch_title((await self.card(session_id)).title, turn)
        with refusing():
            meta = await asyncio.to_thread(self.store.branch, session_id, turn, title=title, owner=owner)
        return meta.id

    async def export(self, session_id: str) -> BinaryIO:
        """Return the session as one file, rewound to its beginning."""
        await asyncio.to_thread(self._meta, session_id)
        opened = self._open_games.get(session_id)
        if opened is not None:
            await opened.journal.flush()
        file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever sends it closes it
        try:
            await asyncio.to_thread(
                export_session, self.store, session_id, file, given_up=self._ending.is_set
            )
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file

    async def transcript(self, session_id: str, kind: str) -> bytes:
        """Return the session to be read elsewhere, in one of the forms of `TRANSCRIPTS`."""
        await asyncio.to_thread(self._meta, session_id)
        opened = self._open_games.get(session_id)
        if opened is not None:
            await opened.journal.flush()

        def make() -> bytes:
            return TRANSCRIPTS[kind].make(fold(self.store.read(session_id)), self.store.assets)

        return await asyncio.to_thread(make)

    async def import_file(self, file: BinaryIO, *, owner: str | None = None) -> str:
        if not await asyncio.to_thread(zipfile.is_zipfile, file):
            raise Refused(
                "this is not a story that was exported here, or only a part of one; nothing was imported. "
                f"Choose a file whose name ends in {SUFFIX}, as it was saved."
            )
        file.seek(0)
        with refusing():
            given_up = self._ending.is_set
            meta = await asyncio.to_thread(import_session, self.store, file, given_up=given_up, owner=owner)
            return meta.id

    # --- playing -------------------------------------------------------------------------------------------

    async def _play(self, opened: OpenGame, turn: Awaitable[object]) -> None:
        try:
            await turn
        except NarratoriaError as error:
            opened.session.notice(Notice(level="error", message=str(error)))
        except Exception:  # a fault of ours: it costs this turn, never the server
            opened.session.notice(Notice(level="error", message=BROKEN_OFF))
            raise

    async def tools(self, session_id: str) -> list[ToolName]:
        registry = (await self.open(session_id)).game.registry
        return [
            ToolName(name=tool.name, title=tool.title or "", description=tool.description)
            for tool in registry
        ]

    # --- settings ------------------------------------------------------------------------------------------

    def use_chosen_model(self) -> None:
        """Let every open game use the model a person has just chosen, from its next turn on."""
        for opened in self._open_games.values():
            self._tasks.start(opened.recast())

    async def settings(self, session_id: str) -> Settings:
        return (await self.open(session_id)).settings()

    async def change_settings(self, session_id: str, change: SettingsChange) -> Settings:
        opened = await self.open(session_id)
        await opened.change(change)
        return opened.settings()
