"""Sessions that commands open by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from narratoria.session import Session
from narratoria.session.store import default_store


@asynccontextmanager
async def saved_session(session_id: str | None) -> AsyncIterator[Session]:
    """The saved session of this id, made if there is none yet; with no id, one that is forgotten."""
    if session_id is None:
        yield Session()
        return
    store = await asyncio.to_thread(default_store)
    try:
        known = {meta.id for meta in await asyncio.to_thread(store.list)}
        if session_id in known:
            journal = await asyncio.to_thread(store.open, session_id)
        else:
            journal = await asyncio.to_thread(store.create, Session(session_id, assets=store.assets))
        try:
            yield journal.session
        finally:
            await journal.close()
    finally:
        store.close()
