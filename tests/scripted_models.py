"""A scripted model server for tests that have no event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from narratoria.testing import Behaviour, ScriptedModel


@contextlib.contextmanager
def model(*script: Behaviour, **options: Behaviour) -> Iterator[ScriptedModel]:
    """A scripted model server in a thread of its own."""
    loop = asyncio.new_event_loop()
    server, ended = ScriptedModel(*script, **options), asyncio.Event()
    began: threading.Event = threading.Event()

    async def serve() -> None:
        async with server:
            began.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert began.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()
