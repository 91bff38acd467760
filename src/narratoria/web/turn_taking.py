"""The turns of open games: beginning, refusing and counting them."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING

from narratoria.errors import SessionBusy
from narratoria.web.game_moves import undo

if TYPE_CHECKING:
    from narratoria.play.turn_types import Origin
    from narratoria.web.open_game import OpenGame
    from narratoria.web.server_tasks import ServerTasks


class TurnTaking:
    """Takes turns in the games that `open` returns."""

    _tasks: ServerTasks

    async def open(self, session_id: str) -> OpenGame:
        """Return the open game of a session."""
        raise NotImplementedError

    async def _play(self, opened: OpenGame, turn: Awaitable[object]) -> None:
        """Take a turn to its end."""
        raise NotImplementedError

    async def prompt(self, session_id: str, text: str, origin: Origin, player: str | None = None) -> int:
        """Begin a turn and return its number; its events are on the stream. Raise `TurnRefused` if the session or the
        player has used its share, or there is too much to do.
        """
        opened = await self.idle(session_id)
        with _admitted(opened, player):
            return await self._begin(opened, text, origin)

    async def go_on(self, session_id: str, player: str | None = None) -> int:
        """Begin a turn without words of the player."""
        return await self.prompt(session_id, "", "continue", player)

    async def retry(
        self, session_id: str, text: str | None, to: int | None = None, player: str | None = None
    ) -> int:
        """Take the turn `to`, or the newest, again, with the same prompt or another."""
        opened = await self.idle(session_id)
        with _admitted(opened, player):  # else nothing is undone either
            undone = await undo(opened, to)
            return await self._begin(await self.idle(session_id), text or undone[-1].prompt, "retry")

    async def idle(self, session_id: str) -> OpenGame:
        """Return the open game of a session in which no turn runs; refuse it while one does."""
        opened = await self.open(session_id)
        if opened.game.busy or opened.session.turn_lock.locked():
            raise SessionBusy("a turn is running; wait for its end, or cancel it")
        return opened

    async def cancel(self, session_id: str) -> bool:
        """Stop the running turn of a session; tell if there was one."""
        opened = await self.open(session_id)
        return opened.game.cancel()

    async def _begin(self, opened: OpenGame, text: str, origin: Origin) -> int:
        self._start(opened, opened.game.prompt(text, origin=origin))
        return opened.session.turn_count + 1

    def _start(self, opened: OpenGame, turn: Awaitable[object]) -> None:
        """Play a turn in the background; it counts as running until it ends."""
        running = opened.turn = self._tasks.start(self._play(opened, turn))
        if (share := opened.session.share) is not None:
            ends = share.resume_turn()
            running.add_done_callback(lambda _: ends())


@contextlib.contextmanager
def _admitted(opened: OpenGame, player: str | None) -> Iterator[None]:
    """Let a turn begin inside the block, if there is a share for it. It counts from here on."""
    share = opened.session.share
    if share is None:
        yield
        return
    share.player = player or ""
    ends = share.begin_turn()
    try:
        yield
    finally:
        ends()  # it counts by itself since it was started
