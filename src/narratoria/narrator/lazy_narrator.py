"""A narrator that is made in the background, because its model takes long to load."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Final, Generic, TypeVar

from narratoria.narrator.protocol import Declaration, Narrator, NarratorRequest, declaration_of
from narratoria.run.plan import PlanDocument

_GRACE: Final = 0.5  # seconds before a warm-up begins: a game that has just started needs the processor
_LATE: Final = 2  # generations that are waited for a narrator still being made
# A hundred games that begin at once load one model, and embed their phrases one after the other, the first for all.
_one_at_a_time = Lock()
_one_completes = Lock()
_Made = TypeVar("_Made", bound=Narrator)


class LazyNarrator(Generic[_Made]):
    """A narrator that is made in a thread of its own: its model must not delay the first page, a turn, or the exit.

    `warm_up` begins early, after a moment's grace in which the game itself starts; `plan` waits for what is made, but
    not until it is complete, which only makes it faster. The thread is a daemon, so a program that ends does not wait.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], _Made],
        complete: Callable[[_Made], None] = lambda made: None,
        declaration: Declaration = Declaration(),  # noqa: B008 (frozen)
    ) -> None:
        self.name = name
        self._declaration = declaration
        self._make = make
        self._complete = complete
        self._lock = Lock()
        self._asked = Event()  # somebody waits: no more grace
        self._made: Future[_Made] | None = None
        self._is_complete = Event()
        self._late = 0

    def warm_up(self) -> Future[_Made]:
        """Begin to make the narrator, unless that is done or under way; after a failure, begin again."""
        with self._lock:
            if self._made is None or (self._made.done() and self._made.exception() is not None):
                self._made = Future()
                self._made.set_running_or_notify_cancel()  # a turn that gives up waiting must not cancel it
                work = Thread(target=self._work, args=(self._made,), name=f"{self.name} warm-up", daemon=True)
                work.start()
            return self._made

    def hurry(self) -> Future[_Made]:
        self._asked.set()
        return self.warm_up()

    def declare(self, speaker: str = "") -> Declaration:
        made = self._made
        if made is not None and made.done() and made.exception() is None:
            return declaration_of(made.result(), speaker)
        return self._declaration

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        narrator = await asyncio.wrap_future(self.hurry())
        return await narrator.plan(request)

    def learns_from(self, error: BaseException) -> bool:
        """On a new machine the first prompt may come before the phrases are embedded; a generation later they are."""
        late = self._made is not None and not self._is_complete.is_set() and self._late < _LATE
        self._late += late
        return late

    def _work(self, made: Future[_Made]) -> None:
        self._asked.wait(_GRACE)
        try:
            with _one_at_a_time:
                narrator = self._make()
        except BaseException as error:  # it belongs to whoever asks for the narrator
            self._is_complete.set()
            made.set_exception(error)
            return
        made.set_result(narrator)
        # A full disk or a locked cache is told when a prompt meets it; here nobody asked.
        with _one_completes, suppress(OSError, sqlite3.Error):
            self._complete(narrator)
        self._is_complete.set()
