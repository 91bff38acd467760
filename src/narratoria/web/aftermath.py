"""What an undo cannot take back, said to a player: by the names tools have before players, without ids."""

from __future__ import annotations

from collections.abc import Sequence

from narratoria.contract import NotificationEffect
from narratoria.registry import ToolRegistry


def in_words(lines: Sequence[str], tools: ToolRegistry) -> list[str]:
    """The lines of `history`, which name tools and events as a program does; one that is not known stays as it is."""
    names = {tool.name: tool.title or tool.name for tool in tools}
    sent = {
        f"notification {effect.event!r} (it was sent)": f"{names[tool.name]}: what it has sent"
        for tool in tools
        for effect in tool.effects
        if isinstance(effect, NotificationEffect)
    }
    return [sent.get(line) or _named(line, names) for line in lines]


def _named(line: str, names: dict[str, str]) -> str:
    tool, colon, rest = line.partition(":")
    return names.get(tool, tool) + colon + rest
