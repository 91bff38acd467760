"""The temporary folder of one call of an executable."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from narratoria.kinds.process import folder_removal
from narratoria.kinds.process.custody import custody


@asynccontextmanager
async def scratch_folder() -> AsyncIterator[str]:
    """Make the temporary folder of one call; it is removed when the call ends, after its assets are copied."""
    scratch = custody().scratch_folder()
    try:
        yield scratch
    finally:
        try:
            os.rmdir(scratch)  # noqa: PTH106 - the common case, an empty folder, must stay cheap
        except OSError:
            await asyncio.shield(asyncio.to_thread(folder_removal.remove, scratch))
