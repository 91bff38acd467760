"""Tools a story keeps for its rules: a narrator that goes by likeness alone does not get to see them.

A rule says when a deed can be done and what is told of it. A narrator that leads from meaning straight to a tool
knows nothing of that: it would light a torch that burns already.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from narratoria.narrator.protocol import Narrator, NarratorRequest, NoMatch
from narratoria.plan import PlanDocument


class Reserved:
    """A narrator that plans without the tools named here."""

    def __init__(self, narrator: Narrator, tools: Collection[str]) -> None:
        self._narrator = narrator
        self._tools = frozenset(tools)

    @property
    def name(self) -> str:
        return self._narrator.name

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        free = [card for card in request.tools if card.name not in self._tools]
        if request.tools and not free:
            raise NoMatch("the story keeps its tools for its rules")
        return await self._narrator.plan(replace(request, tools=free))
