"""What a story remembers, for the narrators that read it: lore, characters, and the turns so far."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from narratoria.errors import StoryInvalid
from narratoria.narrator.casting import embedder
from narratoria.narrator.entries import LoreInvalid, front_matter
from narratoria.narrator.protocol import Narrator
from narratoria.narrator.worldinfo import import_folder
from narratoria.story import Story

if TYPE_CHECKING:
    from narratoria.narrator.lore import StoryMemory


def check_lore(story: Story) -> list[str]:
    """What of the story's `lore/` cannot be used. Raise `StoryInvalid` for a file of its author that is wrong."""
    for name, text in story.lore.items():
        try:
            front_matter(name, text)
        except LoreInvalid as error:
            raise StoryInvalid(f"{story.root / 'lore' / name}.md: {error}") from None
    return [f"lore: {complaint}" for complaint in import_folder(story.root / "lore")[1]]


class Recollection:
    """A story's memory. It is made when a narrator that reads it is first asked; for the others it costs nothing.

    A narrator says that it reads `request.memories` by an attribute `reads_memories`.
    """

    def __init__(self, story: Story, narrator: Narrator) -> None:
        self.story = story
        self.wanted = bool(getattr(narrator, "reads_memories", False))
        self._memory: StoryMemory | None = None

    async def recall(
        self, text: str, state: Mapping[str, Any], past: Sequence[tuple[str, str]] = ()
    ) -> Sequence[str]:
        """What matters now. `past` is taken in the first time; later turns come by `add_turn`."""
        if not self.wanted:
            return ()
        if self._memory is None:
            self._memory = await asyncio.to_thread(recollect, self.story, list(past))
        if self._memory is None:
            self.wanted = False  # the embedding model is not installed
            return ()
        return await asyncio.to_thread(self._memory.recall, text, state)

    async def add_turn(self, number: int, prompt: str, narrative: str) -> None:
        if self._memory is not None:
            await asyncio.to_thread(self._memory.add_turn, number, f"{prompt} → {narrative}")


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
