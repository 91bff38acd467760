"""MCP servers and OpenAPI documents of a game: the story's and those a person adds, opened while the player reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from narratoria.kinds.foreign_sources import OpenSources, ToolSources
from narratoria.run.registry import ToolRegistry

PATIENCE: Final = 20.0
"""Seconds that a turn waits for servers that are starting; their tools come later then."""


class GameSources:
    """The sources whose tools a registry gets. Nothing is opened before `start` or `wait`."""

    def __init__(self, found: ToolSources, registry: ToolRegistry) -> None:
        self._sources = OpenSources(found) if found else None
        self._starting: asyncio.Task[None] | None = None
        self._told: set[str] = set()
        if self._sources is not None:
            self._sources.follow(registry)

    def start(self) -> None:
        """Open the sources in the background, if there are any and a loop runs."""
        if self._sources is None or self._starting is not None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # a script that has not begun yet: the first turn starts them
        self._starting = loop.create_task(self._sources.open(), name="MCP servers of a game")

    async def wait(self, tell: Callable[[str], None] = lambda line: None) -> None:
        """Wait until the tools are there, for `PATIENCE` seconds; `tell` gets each problem once."""
        if self._sources is None:
            return
        if self._starting is not None and self._starting.cancelled():
            self._starting = None  # of a loop that has ended
        self.start()
        starting = self._starting
        if starting is not None and not starting.done():
            await asyncio.wait([starting], timeout=PATIENCE)
        lines = list(self._sources.problems)
        if starting is not None and not starting.done():
            lines.append("MCP servers are still starting; their tools are there when they are ready")
        for line in lines:
            if line not in self._told:
                self._told.add(line)
                tell(line)

    async def close(self) -> None:
        """End the servers."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
            self._starting = None
        if self._sources is not None:
            await self._sources.close()
