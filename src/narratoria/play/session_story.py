"""The story a saved session is of, found by its id or its folder."""

from __future__ import annotations

from pathlib import Path

from narratoria.errors import StoryInvalid
from narratoria.play.story import Story
from narratoria.play.story_library import library_story, open_story, story_folders
from narratoria.store.store import SessionMeta


def folder_of(story: Story) -> str | None:
    """Return the folder to remember with a session; None for a story of the library, which is found by its id."""
    shelves = {folder.resolve() for folder in story_folders()}
    return None if story.root.parent in shelves else str(story.root)


def story_of(meta: SessionMeta, given: Story | str | None = None) -> Story:
    """Return the story of a saved session: the one `given`, which must be the session's own, or the one it was begun
    with, in its present place. Raise `StoryInvalid`, with advice, if there is none.
    """
    if given is not None:
        story = given if isinstance(given, Story) else open_story(given)
        return _same(meta, story, "leave the story out, or begin a new game without the session")
    if meta.folder is not None:
        if not (Path(meta.folder) / "story.toml").is_file():
            raise StoryInvalid(
                f"session {meta.id} was played with the story {meta.story!r} in {meta.folder}, which is not there "
                f"any more; say with --story where it is now"
            )
        return _same(
            meta, Story.load(meta.folder), f"{meta.folder} holds another story now; name it with --story"
        )
    if meta.story is None:
        raise StoryInvalid(f"session {meta.id} does not say which story it is of; name it with --story")
    try:
        return library_story(meta.story)
    except StoryInvalid as error:
        if error.problems:  # it is there, with mistakes in it
            raise
        raise StoryInvalid(f"session {meta.id}: {error}; say with --story where the story is") from None


def _same(meta: SessionMeta, story: Story, advice: str) -> Story:
    if meta.story is not None and story.id != meta.story:
        raise StoryInvalid(f"session {meta.id} is of the story {meta.story!r}, not of {story.id!r}; {advice}")
    return story
