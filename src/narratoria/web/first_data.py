"""The first data of a story page, which comes along with the page itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from narratoria.errors import NarratoriaError
from narratoria.web.library import title_of

if TYPE_CHECKING:
    from narratoria.web.games import Games

FIRST_TURNS: Final = 50  # that a page opens with, as in `game.js`
MOST_BYTES_AT_FIRST: Final = 200_000  # more than that is better read from the stream, beside the page


async def first_data(games: Games, session_id: str) -> bytes | None:
    """Return the newest turns of a session, as JSON; None if they are too many, or cannot be read."""
    try:
        feed, story = await games.feed(session_id), await games.story_of(session_id)
        meta = await asyncio.to_thread(games.store.meta, session_id)
    except NarratoriaError:  # the page asks again, and says why it cannot be opened
        return None
    past = (await feed.so_far(FIRST_TURNS)).body
    if len(past) > MOST_BYTES_AT_FIRST:
        return None
    return msgspec.json.encode(
        {"title": title_of(meta, story), "language": story.language, "past": msgspec.Raw(past)}
    )
