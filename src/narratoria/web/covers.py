"""The cover pictures of stories: a story's own file, or one that a tool of the story draws."""

from __future__ import annotations

import logging

from narratoria.errors import NarratoriaError
from narratoria.play.game import story_registry
from narratoria.play.story import Story
from narratoria.session import Session
from narratoria.session.assets import AssetStore

logger = logging.getLogger("narratoria")


async def draw_cover(story: Story, assets: AssetStore) -> str | None:
    """Keep the cover in `assets` and return its hash. Without one, the page draws its own."""
    cover = story.cover
    try:
        if cover.picture is not None:
            return assets.add_bytes(cover.picture.read_bytes())
        if cover.tool is not None:
            session = Session(state=story.state, permissions=story.permissions, assets=assets)
            await story_registry(story).execute(cover.tool, cover.input, session=session)
            drawn = [
                one.hash for one in session.asset_records.values() if one.media_type.startswith("image/")
            ]
            return drawn[0] if drawn else None
    except (NarratoriaError, OSError) as error:
        logger.warning("the cover of %s could not be made: %s", story.id, error)
    return None
