"""The panel beside a story: its parts, the endings found, and the branches of the session."""

from __future__ import annotations

import asyncio

from narratoria.store.store import SessionMeta
from narratoria.web.documents import BranchCard, PanelView
from narratoria.web.games import Games
from narratoria.web.library import title_of


async def panel_view(games: Games, session_id: str, player: str | None = None) -> PanelView:
    """Return the panel of a session's story; without parts, if it declares none. `player` sees only their own."""
    story = (await games.open(session_id)).game.story
    parts = list(story.panel)
    if not parts:
        return PanelView(parts=[])
    metas = {meta.id: meta for meta in await games.metas(player)}
    meta = metas[session_id] if session_id in metas else await asyncio.to_thread(games.store.meta, session_id)

    def card(one: SessionMeta, turn: int | None) -> BranchCard:
        return BranchCard(id=one.id, title=title_of(one, story), turn=turn)

    endings: list[str] = []
    if any(part.kind == "endings" for part in parts):
        cards = await games.sessions(player)
        endings = sorted({one.ending for one in cards if one.story == meta.story and one.ending})
    return PanelView(
        parts=parts,
        endings=endings,
        parent=card(metas[meta.parent], meta.parent_turn) if meta.parent in metas else None,
        branches=[card(one, one.parent_turn) for one in metas.values() if one.parent == session_id],
    )
