"""The library: stories with their covers, and saved sessions as cards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from narratoria.errors import StoryInvalid
from narratoria.narrator.rules.fillable import fill_state
from narratoria.play.offering import ending_of
from narratoria.play.session_story import folder_of, story_of
from narratoria.play.story import Story
from narratoria.play.story_library import BrokenStory, shelved
from narratoria.session import Session
from narratoria.store.store import JournalDamaged, SessionMeta, Store
from narratoria.web.cards import excerpt
from narratoria.web.covers import draw_cover
from narratoria.web.documents import SessionCard, StoryCard


class Shelf:
    """The stories in folders and the sessions in the store; results that are costly to read are cached."""

    def __init__(self, store: Store, extra: Sequence[Story] = ()) -> None:
        self._store = store
        self._extra = tuple(extra)  # stories that lie in no folder of stories
        self._covers: dict[str, str | None] = {}
        self._glimpses: dict[str, tuple[int, SessionCard]] = {}

    # --- stories -------------------------------------------------------------------------------------------

    async def cards(self) -> list[StoryCard]:
        return [self._story_card(one) for one in await asyncio.to_thread(self.shelved)]

    def _story_card(self, story: Story | BrokenStory) -> StoryCard:
        if isinstance(story, BrokenStory):
            return StoryCard(id=story.id, title=story.title, description="", problem=story.mistake)
        return StoryCard(
            id=story.id,
            title=story.title,
            description=story.premise,
            author=story.author,
            note=story.note,
            language=story.language,
            cover=self._covers.get(story.id),
            cover_alt=story.cover.alt,
            warning=story.warning,
        )

    def shelved(self) -> list[Story | BrokenStory]:
        """Return the stories as they are now, those with mistakes too; only what changed is read again."""
        extra = {story.id for story in self._extra}
        found = [one for one in shelved() if one.id not in extra]
        return sorted([*found, *self._extra], key=lambda story: story.title)

    def stories(self) -> list[Story]:
        """Return the stories that can be played."""
        return [one for one in self.shelved() if isinstance(one, Story)]

    def story(self, story_id: str) -> Story:
        for one in self.shelved():
            if one.id == story_id:
                if isinstance(one, BrokenStory):
                    raise one.error
                return one
        raise StoryInvalid(f"there is no story {story_id!r}; the library lists those there are")

    def story_of(self, meta: SessionMeta) -> Story:
        return story_of(meta, next((story for story in self._extra if story.id == meta.story), None))

    async def check(self, meta: SessionMeta, given: Story | None) -> None:
        """Check that a session can be played, with the story `given` if there is one, before a page opens on it."""
        if given is None:
            await asyncio.to_thread(self.story_of, meta)
            return
        folder = folder_of(story_of(meta, given))
        if folder != meta.folder:
            await asyncio.to_thread(self._store.relocate, meta.id, folder)

    def is_cover(self, digest: str) -> bool:
        return digest in self._covers.values()

    async def draw_covers(self) -> None:
        for story in await asyncio.to_thread(self.stories):
            self._covers[story.id] = await draw_cover(story, self._store.assets)

    # --- sessions ------------------------------------------------------------------------------------------

    def card(self, meta: SessionMeta, stories: Sequence[Story], played: Session | None) -> SessionCard:
        """Return the card of a session of one of the stories, `played` if it is open. It is folded once for each
        change.
        """
        story = next((story for story in stories if story.id == meta.story), None)
        card = _bare_card(meta, story)
        known = self._glimpses.get(meta.id)
        if known is not None and known[0] == meta.last_seq and known[1].title == card.title:
            return known[1]
        try:
            session = played or self._store.restore(meta.id)
            len(session.asset_records)  # they are read when they are asked for
        except JournalDamaged as error:  # the others are listed all the same
            return msgspec.structs.replace(card, excerpt=str(error))
        told = session.past[-1][1] if session.past else _beginning(story, session)
        pictures = [one.hash for one in session.asset_records.values() if one.media_type.startswith("image/")]
        ending = ending_of(session.state)
        card = msgspec.structs.replace(
            card,
            excerpt=excerpt(told),
            picture=pictures[-1] if pictures else None,
            ending=ending[1] if ending else None,
        )
        self._glimpses[meta.id] = (meta.last_seq, card)
        return card

    def forget(self, session_id: str) -> None:
        self._glimpses.pop(session_id, None)

    def newest(self) -> str | None:
        """Return the session played last that can still be played."""
        known = {story.id for story in self.stories()}
        metas = [meta for meta in self._store.list() if meta.begun]
        return next((meta.id for meta in metas if meta.story in known or _is_there(meta.folder)), None)


def title_of(meta: SessionMeta, story: Story | None) -> str:
    return meta.title or (story.title if story else meta.id)


def _bare_card(meta: SessionMeta, story: Story | None) -> SessionCard:
    """Return a card with what is known of a session without opening it."""
    return SessionCard(
        id=meta.id,
        title=title_of(meta, story),
        story=meta.story,
        story_title=story.title if story else meta.story or "",
        updated=meta.updated,
        turns=meta.turns,
        parent=meta.parent,
        language=story.language if story else "en",
    )


def _beginning(story: Story | None, session: Session) -> str:
    return fill_state(story.opening.narrative, session.state) if story else ""


def _is_there(folder: str | None) -> bool:
    return folder is not None and (Path(folder) / "story.toml").is_file()
