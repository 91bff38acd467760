"""Effects that an undo cannot take back, described for a player: by the titles of tools, without ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from narratoria.play.compensation import SentNotification, Staying, StayingEffect
from narratoria.run.registry import ToolRegistry


def in_words(staying: Iterable[Staying], tools: ToolRegistry) -> list[str]:
    """Return a line for each. A tool that no longer exists is named by its id, and a notification by its name."""
    return [
        _effect(one, tools) if isinstance(one, StayingEffect) else _notification(one, tools)
        for one in staying
    ]


def _effect(one: StayingEffect, tools: ToolRegistry) -> str:
    tool = tools.get(one.tool)
    return str(replace(one, tool=tool.title)) if tool is not None and tool.title else str(one)


def _notification(one: SentNotification, tools: ToolRegistry) -> str:
    for tool in tools:
        if any(effect.notifies(one.event) for effect in tool.effects):
            return f"{tool.title or tool.name}: what it has sent"
    return str(one)
