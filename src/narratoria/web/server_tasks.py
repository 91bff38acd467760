"""The tasks of a server: turns, looks at a story, covers. A fault of one is logged, and the others go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
logger = logging.getLogger("narratoria")


class ServerTasks:
    """Tasks that belong to the server and end with it. A task group would end all of them with the first fault."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("a task of the server failed; the others go on", exc_info=error)

    async def end(self) -> None:
        """Cancel what runs, and return once it has ended."""
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)
