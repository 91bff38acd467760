"""Searches in the stories of this server, each in a thread and one at a time: a long story takes a moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Final

from narratoria.store.store import Store
from narratoria.store.story_search import Findings, search_story
from narratoria.web.documents import ExcerptPart, FoundTurn, FoundTurns
from narratoria.web.open_game import OpenGame

MOST_FOUND: Final = 200
"""Turns in one answer; the rest is asked for by turn number."""


class Search:
    """Searches, one at a time, so that they never take all threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = asyncio.Lock()

    async def find(self, opened: OpenGame, words: Sequence[str], before: int | None, most: int) -> FoundTurns:
        """Search the turns of a session that count. Who is cancelled leaves nothing running for long."""
        async with self._turn:
            await opened.journal.flush()
            counting, given_up = tuple(opened.journal.timeline.turns), threading.Event()

            def search() -> Findings:
                records = self._store.read(opened.session.id)
                top = min(most, MOST_FOUND)
                return search_story(
                    records, counting, words, before=before, most=top, given_up=given_up.is_set
                )

            try:
                found = await asyncio.to_thread(search)
            finally:
                given_up.set()
        return FoundTurns(
            total=found.total,
            turns=[
                FoundTurn(
                    turn=one.turn,
                    newer=one.newer,
                    said=one.said,
                    excerpt=[ExcerptPart(text=run.text, found=run.found) for run in one.excerpt],
                )
                for one in found.turns
            ],
        )
