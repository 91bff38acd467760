"""Watches what is offered: clients are told when the tools, the prompts or the resources of skills change."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from narratoria.events import JsonObject
from narratoria.mcp_server.offered_prompts import Prompts
from narratoria.mcp_server.offered_skills import OfferedSkills
from narratoria.mcp_server.subscriptions import Subscriptions
from narratoria.run.registry import ToolRegistry
from narratoria.skills.skill import Skill
from narratoria.tools.tool import Tool

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at the folders of skills."""
IDLE_SHARE: Final = 20
"""The pause after a look, in times of what it took: thousands of files cost at most a twentieth of a core."""


class ListWatch:
    """Compares what is offered with what was offered when it looked last, and tells each change once. MCP servers and
    programs change the registry; the folders of skills are looked at, as long as a client is there to be told.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        prompts: Prompts,
        skills: OfferedSkills | None,
        subscriptions: Subscriptions,
    ) -> None:
        self._registry = registry
        self._prompts = prompts
        self._skills = skills
        self._subscriptions = subscriptions
        self._tools = self._tools_now()
        self._known = [] if skills is None else skills.now()
        self._listed = self._lists_now()

    async def run(self) -> None:
        """Look again and again, until it is cancelled."""
        pause = LOOK_SECONDS
        while True:
            await asyncio.sleep(pause)
            if self._subscriptions.heard:
                began = time.monotonic()
                with suppress(
                    OSError
                ):  # a folder that went while it was read: the next look sees what is left
                    self.look()
                pause = max(LOOK_SECONDS, IDLE_SHARE * (time.monotonic() - began))

    def look(self) -> None:
        """Read the skills that changed, and tell what changed."""
        skills = [] if self._skills is None else self._skills.now()
        self.look_at_tools()  # after the skills: their tools are in the registry
        if _same(skills, self._known):
            return
        before, self._listed, self._known = self._listed, self._lists_now(), skills
        if before[0] != self._listed[0]:
            self._subscriptions.tell_list("prompts")
        if before[1] != self._listed[1]:
            self._subscriptions.tell_list("resources")

    def look_at_tools(self) -> None:
        """Tell if the registry has changed."""
        tools = self._tools_now()
        if tools != self._tools:
            self._tools = tools
            self._subscriptions.tell_list("tools")

    def _tools_now(self) -> tuple[Tool[Any, Any], ...]:
        return tuple(self._registry.tools.values())

    def _lists_now(self) -> tuple[list[JsonObject], list[JsonObject]]:
        return self._prompts.listed(), [] if self._skills is None else self._skills.resources()


def _same(one: list[Skill], other: list[Skill]) -> bool:
    """Tell if two lists hold the same objects: a skill that did not change stays the same one."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
