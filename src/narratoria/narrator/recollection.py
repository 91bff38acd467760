"""What a story remembers, for the narrators that read it: lore, characters, and the turns so far."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import StoryInvalid
from narratoria.narrator.casting import embedder
from narratoria.narrator.entries import LoreInvalid, front_matter
from narratoria.narrator.protocol import Narrator
from narratoria.narrator.worldinfo import import_folder
from narratoria.story import Story

if TYPE_CHECKING:
    from narratoria.narrator.lore import StoryMemory

_PATIENCE: Final = 1.0  # seconds a refusal waits for what could make its choices better


def check_lore(story: Story) -> list[str]:
    """What of the story's `lore/` cannot be used. Raise `StoryInvalid` for a file of its author that is wrong."""
    for name, text in story.lore.items():
        try:
            front_matter(name, text)
        except LoreInvalid as error:
            raise StoryInvalid(f"{story.root / 'lore' / name}.md: {error}") from None
    return [f"lore: {complaint}" for complaint in import_folder(story.root / "lore")[1]]


class Recollection:
    """A story's memory. It is made when somebody first asks for it; for a narrator that never does it costs nothing.

    A narrator says that it reads `request.memories` by an attribute `reads_memories`. One that wants them now and then,
    for its choices, calls `request.recall`.
    """

    def __init__(self, story: Story, narrator: Narrator, *, patience: float = _PATIENCE) -> None:
        self.story = story
        self.patience = patience
        self.wanted = bool(getattr(narrator, "reads_memories", False))
        self._made: Future[StoryMemory | None] | None = None
        self._lock = Lock()  # the memory takes one thread at a time
        self._turns: list[tuple[int, str]] = []  # not yet in it

    async def recall(
        self, text: str, state: Mapping[str, Any], past: Sequence[tuple[str, str]] = ()
    ) -> Sequence[str]:
        """What matters now. `past` is taken in the first time; later turns come by `add_turn`."""
        if not self.wanted:
            return ()
        memory = await asyncio.wrap_future(self._make(past))
        self.wanted = memory is not None  # None: the embedding model is not installed
        return await asyncio.to_thread(self._search, memory, text, state)

    def remind(
        self, text: str, state: Mapping[str, Any], past: Sequence[tuple[str, str]] = ()
    ) -> Sequence[str]:
        """The same for a thread in the middle of an answer: a memory long in the making is for the next time."""
        try:
            memory = self._make(past).result(self.patience)
        except TimeoutError:
            return ()
        return self._search(memory, text, state)

    async def add_turn(self, number: int, prompt: str, narrative: str) -> None:
        if self._made is not None:
            self._turns.append((number, f"{prompt} → {narrative}"))
            if self._made.done() and self._made.exception() is None:
                await asyncio.to_thread(self._take_in, self._made.result())

    def _make(self, past: Sequence[tuple[str, str]]) -> Future[StoryMemory | None]:
        with self._lock:
            if self._made is None:
                self._made = Future()
                self._made.set_running_or_notify_cancel()  # a turn that gives up waiting must not cancel it
                work = (self._made, list(past))
                Thread(target=self._work, args=work, name="recollection", daemon=True).start()
            return self._made

    def _work(self, made: Future[StoryMemory | None], past: Sequence[tuple[str, str]]) -> None:
        try:
            made.set_result(recollect(self.story, past))
        except BaseException as error:  # it belongs to whoever asks for the memory
            made.set_exception(error)

    def _search(self, memory: StoryMemory | None, text: str, state: Mapping[str, Any]) -> Sequence[str]:
        self._take_in(memory)
        if memory is None:
            return ()
        with self._lock:
            return memory.recall(text, state)

    def _take_in(self, memory: StoryMemory | None) -> None:
        with self._lock:
            turns, self._turns = self._turns, []
            if memory is not None:
                for number, summary in turns:
                    memory.add_turn(number, summary)


def recollect(story: Story, past: Sequence[tuple[str, str]]) -> StoryMemory | None:
    """What a story remembers: its lore, its characters (also from world-info files and character cards in `lore/`),
    and the turns so far. None where the embedding model is not installed."""
    found = embedder()
    if found is None:
        return None
    from narratoria.narrator.lore import (
        StoryMemory,
        summaries,
    )  # needs the extra `local`, as the embedder does

    model, cached = found
    memory = StoryMemory(cached, model.count_tokens)
    memory.add_lore(story.lore)
    for imported in import_folder(story.root / "lore")[0]:
        memory.add_entries(imported.entries)
        for character in imported.characters:
            memory.add_character(character.name, character.sheet)
    for number, summary in enumerate(summaries(past), 1):
        memory.add_turn(number, summary)
    return memory
