"""The memory of a story for the narrators that read it: lore, characters, and the turns so far."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import NarratorUnavailable, StoryInvalid
from narratoria.lore.entries import LoreInvalid, front_matter
from narratoria.lore.past_turns import Chronicle
from narratoria.lore.world_info import import_folder
from narratoria.narrator.embedding.loading import load_embedder
from narratoria.narrator.protocol import Narrator, declaration_of
from narratoria.play.story import Story

if TYPE_CHECKING:
    from narratoria.lore.lore import StoryMemory

_PATIENCE: Final = 1.0  # seconds a refusal waits for what could make its choices better
_PORTION: Final = 16  # turns that are embedded at a time
_MOST_TURNS: Final = 2_000  # of the past of a game that are embedded unasked


def check_lore(story: Story) -> list[str]:
    """Complaints about files of `lore/` that cannot be used. Raise `StoryInvalid` for a wrong file of the author."""
    for name, text in story.lore.items():
        try:
            front_matter(name, text)
        except LoreInvalid as error:
            raise StoryInvalid(f"{story.root / 'lore' / name}.md: {error}") from None
    unused = [f"left out: {complaint}" for complaint in story.unread_lore]
    return [f"lore: {complaint}" for complaint in (*unused, *import_folder(story.root / "lore")[1])]


class Recollection:
    """A story's memory, made at its first use; a narrator that never uses it pays nothing.

    A narrator declares that it reads `request.memories`. One that needs them only sometimes, for its choices, calls
    `request.recall`. In a long game the newest turns are available at once, the others soon after.
    """

    def __init__(
        self,
        story: Story,
        narrator: Narrator,
        *,
        chronicle: Chronicle | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self.story = story
        self.patience = patience
        self.wanted = declaration_of(narrator).reads_memories
        self._chronicle = chronicle or Chronicle()
        self._made: Future[StoryMemory | None] | None = None
        self._lock = Lock()  # the memory takes one thread at a time
        self._known: set[int] = set()  # the turns that are in it

    async def recall(self, text: str, state: Mapping[str, Any]) -> Sequence[str]:
        """The memories for a prompt in this state."""
        if not self.wanted:
            return ()
        memory = await asyncio.wrap_future(self._make())
        self.wanted = memory is not None  # None: the embedding model is not installed
        return await asyncio.to_thread(self._search, memory, text, state)

    def remind(self, text: str, state: Mapping[str, Any]) -> Sequence[str]:
        """Return the same in a thread, in the middle of an answer; nothing if the memory is not ready in time."""
        try:
            memory = self._make().result(self.patience)
        except TimeoutError:
            return ()
        return self._search(memory, text, state)

    def _make(self) -> Future[StoryMemory | None]:
        with self._lock:
            if self._made is None:
                self._made = Future()
                self._made.set_running_or_notify_cancel()  # a turn that gives up waiting must not cancel it
                Thread(target=self._work, args=(self._made,), name="recollection", daemon=True).start()
            return self._made

    def _work(self, made: Future[StoryMemory | None]) -> None:
        try:
            memory = recollect(self.story)
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
            told = self._chronicle.standing()
            fresh = sorted(told.keys() - self._known, reverse=True)[:_PORTION]
            for turn in fresh:
                memory.add_turn(turn, told[turn])
            self._known.update(fresh)
        return bool(fresh)

    def _search(self, memory: StoryMemory | None, text: str, state: Mapping[str, Any]) -> Sequence[str]:
        if memory is None:
            return ()
        self._take_in(memory)
        with self._lock:
            return memory.recall(text, state, turns=self._chronicle.standing())


def recollect(story: Story) -> StoryMemory | None:
    """The memory of a story before it is played: its lore and its characters, also from world-info files and character
    cards in `lore/`. None where the embedding model is not installed."""
    try:
        model, cached = load_embedder()
    except NarratorUnavailable:
        return None
    from narratoria.lore.lore import StoryMemory  # needs the extra `local`, as the embedder does

    memory = StoryMemory(cached, model.count_tokens)
    memory.add_lore(story.lore)
    for imported in import_folder(story.root / "lore")[0]:
        memory.entries += imported.entries
        for character in imported.characters:
            memory.add_character(character.name, character.sheet)
    return memory
