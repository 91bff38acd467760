"""Hints for hosts about a tool, from its preconditions and effects.

A hint is given only where the contract says it. A tool that declares no effects may still patch the state or act
outside, so nothing is claimed about it unless it declares to change nothing: a host then takes the careful defaults of
MCP.
"""

from __future__ import annotations

import re
from typing import Any, Final

from narratoria.tools.tool import Tool

_OUTSIDE: Final = re.compile(
    r"(^|[^a-z])(net|network|http|https|web|internet|browser|email|mail|remote)([^a-z]|$)"
)


def annotations_of(tool: Tool[Any, Any]) -> dict[str, Any]:
    """The annotations of a tool, as MCP writes them; only those that its contract settles."""
    hints: dict[str, Any] = {} if tool.title is None else {"title": tool.title}
    effects = tool.effects
    open_world = _needs_the_world(tool) or any(effect.leaves_session() for effect in effects)
    if effects:
        hints["readOnlyHint"] = False
        hints["destructiveHint"] = any(effect.destroys() for effect in effects)
        hints["idempotentHint"] = all(effect.repeats_without_change() for effect in effects)
        hints["openWorldHint"] = open_world
    elif tool.read_only:
        hints["readOnlyHint"] = True
        hints["openWorldHint"] = open_world or tool.kind.foreign
    elif open_world:
        hints["openWorldHint"] = True
    return hints


def _needs_the_world(tool: Tool[Any, Any]) -> bool:
    """Tell if a precondition names something outside, such as the permission `net:fetch`."""
    names = [name for one in tool.preconditions for name in (*one.permissions(), *one.resources())]
    return any(_OUTSIDE.search(name.lower()) for name in (*names, *tool.permissions))
