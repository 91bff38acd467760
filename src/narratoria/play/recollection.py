"""The memory of a story for the narrators that read it: what fires on words, and what is near in meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from narratoria.errors import NarratorUnavailable
from narratoria.events import RecalledMemory
from narratoria.lore.past_turns import Chronicle
from narratoria.narrator.embedding.loading import load_embedder
from narratoria.narrator.protocol import Narrator, declaration_of
from narratoria.play.game_lore import NO_LORE
from narratoria.play.story import Story
from narratoria.play.story_lore import MOST_RECALLED, Situation, StoryLore

if TYPE_CHECKING:
    from narratoria.lore.lore import StoryMemory
    from narratoria.lore.lore_files import Memory

_PATIENCE: Final = 1.0  # seconds a refusal waits for what could make its choices better
_PORTION: Final = 16  # turns that are embedded at a time
_MOST_TURNS: Final = 2_000  # of the past of a game that are embedded unasked


class Recollection:
    """A story's memory. What fires on words needs nothing; what is near in meaning is made at its first use.

    A narrator declares that it reads `request.memories`. One that needs them only sometimes, for its choices, calls
    `request.recall`. In a long game the newest turns are available at once, the others soon after.
    """

    def __init__(
        self,
        story: Story,
        narrator: Narrator,
        *,
        chronicle: Chronicle | None = None,
        lore: StoryLore | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self.story = story
        self.patience = patience
        self.lore = lore or StoryLore(story)
        self.wanted = declaration_of(narrator).reads_memories
        self._by_meaning = self.wanted
        self._chronicle = chronicle or Chronicle()
        self._made: Future[StoryMemory | None] | None = None
        self._lock = Lock()  # the memory takes one thread at a time
        self._known: set[int] = set()  # the turns that are in it

    async def recall(self, now: Situation) -> list[RecalledMemory]:
        """The memories for a prompt: those that fire, and, for a narrator that reads them, those near in meaning."""
        silent = not self.lore.entries and now.lore is NO_LORE
        fired = [] if silent else await asyncio.to_thread(self.lore.fired, now)
        if not self._by_meaning:
            return fired
        memory = await asyncio.wrap_future(self._make())
        self._by_meaning = memory is not None  # None: the embedding model is not installed
        return await asyncio.to_thread(self._search, memory, now, fired)

    def remind(self, now: Situation) -> Sequence[str]:
        """Return the same in a thread, in the middle of an answer; only what fires if the rest is not ready in time."""
        fired = self.lore.fired(now)
        try:
            memory = self._make().result(self.patience)
        except TimeoutError:
            memory = None
        return [one.text for one in self._search(memory, now, fired)]

    def _make(self) -> Future[StoryMemory | None]:
        with self._lock:
            if self._made is None:
                self._made = Future()
                self._made.set_running_or_notify_cancel()  # a turn that gives up waiting must not cancel it
                Thread(target=self._work, args=(self._made,), name="recollection", daemon=True).start()
            return self._made

    def _work(self, made: Future[StoryMemory | None]) -> None:
        try:
            memory = recollect(self.story, self.lore)
            if memory is not None:
                self._take_in(memory)
        except BaseException as error:  # it belongs to whoever asks for the memory
            made.set_exception(error)
            return
        made.set_result(memory)
        while memory is not None and len(self._known) < _MOST_TURNS and self._take_in(memory):
            pass

    def _take_in(self, memory: StoryMemory) -> bool:
        """Add a few of the newest turns that are missing; return False if none are left."""
        with self._lock:
            told = self._chronicle.standing(self._known)
            fresh = sorted(told, reverse=True)[:_PORTION]
            for turn in fresh:
                memory.add("turn", str(turn), told[turn])
            self._known.update(fresh)
        return bool(fresh)

    def _search(
        self, memory: StoryMemory | None, now: Situation, fired: list[RecalledMemory]
    ) -> list[RecalledMemory]:
        if memory is None or len(fired) >= MOST_RECALLED:
            return fired
        self._take_in(memory)

        def stands(one: Memory) -> bool:
            return one.kind != "turn" or now.stands(int(one.source))

        with self._lock:
            near = memory.near(now.prompt, 2 * MOST_RECALLED, stands)
        return self.lore.joined(fired, near, now.lore)


def recollect(story: Story, lore: StoryLore) -> StoryMemory | None:
    """The memory of a story before it is played: its lore and its characters. None where the embedding model is not
    installed."""
    try:
        model, cached = load_embedder()
    except NarratorUnavailable:
        return None
    from narratoria.lore.lore import StoryMemory  # needs the extra `local`, as the embedder does

    memory = StoryMemory(cached, model.count_tokens)
    memory.add_lore(story.lore)
    for character in lore.characters:
        memory.add("character", character.name, character.sheet, named=character.name)
    return memory
