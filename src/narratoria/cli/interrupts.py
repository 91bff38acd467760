"""Ctrl+C at a game: the first stops the running turn, the second ends the game."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

import click

from narratoria.play.game import Game

AGAIN: Final = 2.0  # seconds in which a second Ctrl+C ends the game
_HINT: Final = "Ctrl+C again ends the game; it is saved"


class Interrupts:
    """Counts Ctrl+C for one game."""

    def __init__(self, game: Game, say: Callable[[str], None]) -> None:
        self.game = game
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._last = -AGAIN
        self._hinted = False  # the last line was Ctrl+C, with nothing typed

    def heard(self) -> bool:
        """Take the signal; False ends the game. It runs between any two steps of the program, so it only notes."""
        now = monotonic()
        if now - self._last <= AGAIN:
            return False
        self._last = now
        self._loop.call_soon_threadsafe(self._stop)
        return True

    def _stop(self) -> None:
        if not self.game.cancel():
            self._say(_HINT)

    def at_prompt(self, *, empty: bool) -> None:
        """Take Ctrl+C at the prompt: it drops the line that was typed; the second on an empty line ends the game."""
        now = monotonic()
        if empty and (self._hinted or now - self._last <= AGAIN):
            raise click.Abort
        self._last = now if empty else -AGAIN
        self._hinted = empty
        if empty:
            self._say(_HINT)

    def answered(self) -> None:
        """A line was read: the next Ctrl+C is the first again."""
        self._hinted, self._last = False, -AGAIN
