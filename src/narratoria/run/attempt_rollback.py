"""Discarding a failed attempt: its outside effects are taken back, newest first, then its draft is dropped.

That happens once and completely. A cancellation meanwhile is passed on at the end, and an enclosing call that ends
first waits for its parts.
"""

from __future__ import annotations

import asyncio
import sys

from narratoria.session import Draft
from narratoria.tools import contract


async def drop(draft: Draft) -> None:
    """Take back and discard; a second call waits for the first."""
    dropping = draft.root.dropping
    work = dropping.get(draft)
    if work is None:
        if not dropping and not draft.applied:
            draft.discard()
            return
        work = dropping[draft] = asyncio.ensure_future(_take_back(draft))
    if not isinstance(sys.exception(), GeneratorExit):  # a coroutine that is being closed cannot wait
        await contract.undisturbed(work)


async def _take_back(draft: Draft) -> None:
    try:
        for part, work in [*draft.root.dropping.items()]:
            if draft in part.enclosing:  # the handler that waited for it was closed
                await asyncio.wait([work])
        applied = draft.applied[::-1]
        draft.applied.clear()
        for one, context in applied:
            context.session = draft  # a part's own draft is over; this one still lives
            await contract.take_back([one], context)
        draft.discard()
    finally:
        draft.root.dropping.pop(draft)
